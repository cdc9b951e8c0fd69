//! Parameters as methods create them: the pieces that several have in common, at tensor-parallel size 1.

use super::py::raised;
use super::{Element, Layer, Load, Param};
use crate::vllm::trace::Raised;

/// A parameter that vLLM reads.
pub(super) fn param(name: &'static str, shape: &[u64], element: Element, load: Load) -> Param {
    Param { name, shape: shape.to_vec(), element, load, unread: false }
}

/// A parameter that vLLM never reads.
pub(super) fn unread(name: &'static str, shape: &[u64], element: Element, load: Load) -> Param {
    Param { unread: true, ..param(name, shape, element, load) }
}

/// `ceil(count * bits / 32)`.
pub(super) fn packed(count: u64, bits: i64) -> u64 {
    count.saturating_mul(u64::try_from(bits).unwrap_or(0)).div_ceil(32)
}

/// Python's `//` with the exceptions that follow from its outcome as a dimension.
pub(super) fn floor(count: u64, by: i64) -> Result<u64, Raised> {
    if by == 0 {
        return Err(raised("ZeroDivisionError", "integer division or modulo by zero"));
    }
    let by = i128::from(by);
    let (quotient, rest) = (i128::from(count) / by, i128::from(count) % by);
    dimension(if rest != 0 && by < 0 { quotient - 1 } else { quotient })
}

/// `(count + by - 1) // by`.
pub(super) fn ceil(count: u64, by: i64) -> Result<u64, Raised> {
    if by >= 0 { floor(count.saturating_add(by.unsigned_abs().saturating_sub(1)), by) } else { floor(count, by) }
}

pub(super) fn dimension(n: i128) -> Result<u64, Raised> {
    let text = || format!("Trying to create tensor with negative dimension {n}");
    u64::try_from(n).map_err(|_| raised("RuntimeError", text()))
}

/// Columns of group scales, and whether the groups fill the input dimension.
pub(super) fn groups(input: u64, group: Option<i64>) -> Result<(u64, bool), Raised> {
    match group {
        None | Some(-1) => Ok((1, true)),
        Some(size) => {
            let columns = floor(input, size)?;
            Ok((columns, u64::try_from(size).is_ok_and(|s| input.is_multiple_of(s))))
        }
    }
}

/// `verify_group_size_divides_partition`.
pub(super) fn divided(input: u64, group: Option<i64>, name: &str) -> Result<u64, Raised> {
    let (columns, whole) = groups(input, group)?;
    if whole {
        return Ok(columns);
    }
    let location = if name.is_empty() { String::new() } else { format!(" for layer '{name}'") };
    let text = format!(
        "Weight input_size_per_partition={input}{location} is not divisible by group_size={}. This happens when \
         tensor_parallel_size splits the layer input into shards that are not a whole number of quant groups. Consider \
         reducing tensor_parallel_size.",
        group.unwrap_or(-1)
    );
    Err(raised("ValueError", text))
}

/// `validate_fp8_block_shape` and the scale.
pub(super) fn block_scale(name: &'static str, outputs: &[u64], n: u64, k: u64, block: &[i64]) -> Result<Param, Raised> {
    let [rows, columns, ..] = *block else { return Err(raised("IndexError", "list index out of range")) };
    if let [merged @ .., _last] = outputs {
        for &size in merged {
            if rows == 0 {
                return Err(raised("ZeroDivisionError", "integer modulo by zero"));
            }
            if !size.is_multiple_of(rows.unsigned_abs()) {
                let text = format!(
                    "Weight output_partition_size = {size} is not divisible by weight quantization block_n = {rows}."
                );
                return Err(raised("ValueError", text));
            }
        }
    }
    let shape = [ceil(n, rows)?, ceil(k, columns)?];
    Ok(param(name, &shape, Element::F32, Load::Block { rows: u64::try_from(rows).unwrap_or(1) }))
}

/// Sizes of the stacked parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Experts.
    pub(super) e: u64,
    /// Hidden size.
    pub(super) h: u64,
    /// Intermediate size.
    pub(super) m: u64,
    /// 2 when gate and up are stacked.
    pub(super) shards: u64,
}

impl Sizes {
    /// Of experts under construction.
    pub(super) fn of(layer: &Layer<'_>) -> Sizes {
        Sizes {
            e: layer.experts,
            h: layer.input,
            m: layer.outputs.first().copied().unwrap_or(0),
            shards: if layer.expert_names[2].is_empty() { 1 } else { 2 },
        }
    }

    /// Rows of `w13`: gate and up.
    pub(super) fn w13(&self) -> u64 {
        self.m.saturating_mul(self.shards)
    }

    /// `[E, N, columns]` of both, where columns follow from the input size.
    pub(super) fn pair(
        &self,
        names: [&'static str; 2],
        of: impl Fn(u64) -> u64,
        element: Element,
        load: Load,
    ) -> [Param; 2] {
        [
            param(names[0], &[self.e, self.w13(), of(self.h)], element, load),
            param(names[1], &[self.e, self.h, of(self.m)], element, load),
        ]
    }

    /// One scale a projection and expert.
    pub(super) fn per_tensor(&self, names: [&'static str; 2]) -> [Param; 2] {
        [
            param(names[0], &[self.e, self.shards], Element::F32, Load::PerTensor),
            param(names[1], &[self.e], Element::F32, Load::PerTensor),
        ]
    }
}

/// `validate_fp8_block_shape_moe` and the scales.
pub(super) fn expert_blocks(names: [&'static str; 2], block: &[i64], s: &Sizes) -> Result<[Param; 2], Raised> {
    let [rows, columns, ..] = *block else { return Err(raised("IndexError", "list index out of range")) };
    if rows == 0 {
        return Err(raised("ZeroDivisionError", "integer modulo by zero"));
    }
    if !s.m.is_multiple_of(rows.unsigned_abs()) {
        let text = format!(
            "The output_size of gate's and up's weight = {} is not divisible by weight quantization block_n = {rows}.",
            s.m
        );
        return Err(raised("ValueError", text));
    }
    let load = Load::Block { rows: rows.unsigned_abs() };
    let w13 = [s.e, s.shards.saturating_mul(ceil(s.m, rows)?), ceil(s.h, columns)?];
    let w2 = [s.e, ceil(s.h, rows)?, ceil(s.m, columns)?];
    Ok([param(names[0], &w13, Element::F32, load), param(names[1], &w2, Element::F32, load)])
}
