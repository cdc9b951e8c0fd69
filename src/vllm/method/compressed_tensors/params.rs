//! The parameters of linear layers, heads and embeddings: `create_weights` of every scheme, at tensor-parallel size 1,
//! where no scale is repeated on ranks.

use super::args::{Args, Strategy};
use super::py::raised;
use super::scheme::Scheme;
use crate::vllm::method::{Element, Layer, Load, Param};
use crate::vllm::trace::Raised;

/// Parameters and the attributes registered as `None`.
pub(super) type Made = (Vec<Param>, Vec<&'static str>);

/// A parameter that vLLM reads.
pub(super) fn param(name: &'static str, shape: &[u64], element: Element, load: Load) -> Param {
    Param { name, shape: shape.to_vec(), element, load, unread: false }
}

/// A parameter that vLLM never reads.
pub(super) fn unread(name: &'static str, shape: &[u64], element: Element, load: Load) -> Param {
    Param { unread: true, ..param(name, shape, element, load) }
}

fn weight_shape() -> Param {
    unread("weight_shape", &[2], Element::I64, Load::Whole)
}

/// `ceil(count * bits / 32)`.
fn packed(count: u64, bits: i64) -> u64 {
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

fn dimension(n: i128) -> Result<u64, Raised> {
    let text = || format!("Trying to create tensor with negative dimension {n}");
    u64::try_from(n).map_err(|_| raised("RuntimeError", text()))
}

/// Columns of group scales, and whether the groups fill the input dimension.
fn groups(input: u64, group: Option<i64>) -> Result<(u64, bool), Raised> {
    match group {
        None | Some(-1) => Ok((1, true)),
        Some(size) => {
            let columns = floor(input, size)?;
            Ok((columns, u64::try_from(size).is_ok_and(|s| input.is_multiple_of(s))))
        }
    }
}

/// `verify_group_size_divides_partition`.
fn divided(input: u64, group: Option<i64>, name: &str) -> Result<u64, Raised> {
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

/// What a scheme creates on a linear layer or a head.
pub(super) fn linear(scheme: &Scheme, layer: &Layer<'_>) -> Result<Made, Raised> {
    use Element::{F8E4M3, F32, I8, I32, Model, U8};
    let k = layer.input;
    let n = layer.outputs.iter().fold(0u64, |a, b| a.saturating_add(*b));
    let parts = layer.outputs.len() as u64;
    let name = layer.prefix;
    let only = |params| Ok((params, Vec::new()));
    match scheme {
        Scheme::Nvfp4 { a16 } => {
            let mut params = vec![
                param("weight_packed", &[n, k / 2], U8, Load::Both),
                param("weight_global_scale", &[parts], F32, Load::PerTensor),
                param("weight_scale", &[n, k / 16], F8E4M3, Load::Both),
            ];
            if !a16 {
                params.push(param("input_global_scale", &[parts], F32, Load::PerTensor));
            }
            only(params)
        }
        Scheme::Mxfp4 { .. } => only(vec![
            param("weight_packed", &[n, k / 2], U8, Load::Both),
            param("weight_scale", &[n, k / 32], U8, Load::Both),
        ]),
        Scheme::Mxfp8 => only(vec![
            param("weight", &[n, k], F8E4M3, Load::Both),
            param("weight_scale", &[n, k / 32], U8, Load::Both),
        ]),
        Scheme::W4A8Fp8 => {
            let columns = divided(k, Some(128), "")?;
            only(vec![
                param("weight_packed", &[n, k / 8], I32, Load::PackedInput),
                param("weight_scale", &[n, columns], Model, Load::Both),
                weight_shape(),
            ])
        }
        Scheme::Wna8o8 { bits, group, packed } => {
            let mut params = if *packed {
                let width = floor(k, 32 / (*bits).max(1))?;
                vec![param("weight_packed", &[n, width], I32, Load::PackedInput), weight_shape()]
            } else {
                vec![param("weight", &[n, k], I8, Load::Both)]
            };
            params.push(param("weight_scale", &[n, divided(k, *group, name)?], Model, Load::Both));
            params.push(param("input_scale", &[1], F32, Load::Whole));
            params.push(param("output_scale", &[1], F32, Load::Whole));
            only(params)
        }
        Scheme::WnaInt { bits, group, symmetric, .. } => {
            let (columns, whole) = groups(k, *group)?;
            if !whole {
                return Err(raised("AssertionError", ""));
            }
            only(wna16(n, k, *bits, columns, *symmetric))
        }
        Scheme::Wna16 { bits, group, symmetric } => only(wna16(n, k, *bits, divided(k, *group, name)?, *symmetric)),
        Scheme::Fp8 { strategy, block, static_input, .. } => {
            let scale = match strategy {
                Strategy::Block => block_scale(layer.outputs, n, k, block.as_deref().unwrap_or_default())?,
                Strategy::Channel => param("weight_scale", &[n, 1], F32, Load::Output),
                _ => param("weight_scale", &[parts], F32, Load::PerTensor),
            };
            let mut params = vec![param("weight", &[n, k], F8E4M3, Load::Both), scale];
            if *static_input {
                params.push(param("input_scale", &[parts], F32, Load::PerTensor));
            }
            only(params)
        }
        Scheme::Int8 { channel, static_input, symmetric_input } => {
            let scale = if *channel {
                param("weight_scale", &[n, 1], F32, Load::Output)
            } else {
                param("weight_scale", &[parts], F32, Load::PerTensor)
            };
            let mut params = vec![param("weight", &[n, k], I8, Load::Both), scale];
            let mut nones = vec!["azp_adj"];
            if *static_input {
                params.push(param("input_scale", &[1], F32, Load::Whole));
            } else {
                nones.push("input_scale");
            }
            if *static_input && !symmetric_input {
                params.push(param("input_zero_point", &[1], I8, Load::Whole));
            } else {
                nones.push("input_zero_point");
            }
            Ok((params, nones))
        }
        // One parameter under two names: a tensor of either name fills both.
        Scheme::W4A8Int { group } => {
            let columns = divided(k, *group, "")?;
            only(vec![
                param("weight", &[n, k], I8, Load::Both),
                param("weight_scale", &[n, columns], Model, Load::Both),
                unread("weight_packed", &[n, k], I8, Load::Both),
            ])
        }
    }
}

fn wna16(n: u64, k: u64, bits: i64, columns: u64, symmetric: bool) -> Vec<Param> {
    let mut params = vec![
        param("weight_packed", &[n, packed(k, bits)], Element::I32, Load::PackedInput),
        param("weight_scale", &[n, columns], Element::Model, Load::Both),
        weight_shape(),
    ];
    if !symmetric {
        let load = Load::PackedOutput { both: true, num: 32, den: u32::try_from(bits).unwrap_or(1) };
        params.push(param("weight_zero_point", &[packed(n, bits), columns], Element::I32, load));
    }
    params
}

/// `validate_fp8_block_shape` and the scale.
fn block_scale(outputs: &[u64], n: u64, k: u64, block: &[i64]) -> Result<Param, Raised> {
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
    Ok(param("weight_scale", &shape, Element::F32, Load::Block { rows: u64::try_from(rows).unwrap_or(1) }))
}

/// `CompressedTensorsEmbeddingWNA16Int`: on an embedding, and on a head whose scheme could not be made.
pub(super) fn embedding(args: &Args, layer: &Layer<'_>) -> Result<Vec<Param>, Raised> {
    let rows = layer.outputs.iter().fold(0u64, |a, b| a.saturating_add(*b));
    let hidden = layer.input;
    if args.num_bits == 0 {
        return Err(raised("ZeroDivisionError", "integer division or modulo by zero"));
    }
    let width = floor(hidden, 32i64.div_euclid(args.num_bits))?;
    let scale = match (args.strategy(), args.group_size) {
        (Strategy::Group, Some(size)) => {
            let (columns, whole) = groups(hidden, Some(size))?;
            if !whole {
                return Err(raised("AssertionError", ""));
            }
            param("weight_scale", &[rows, columns], Element::Model, Load::Both)
        }
        _ => param("weight_scale", &[rows, 1], Element::Model, Load::Output),
    };
    Ok(vec![param("weight_packed", &[rows, width], Element::I32, Load::PackedInput), scale, weight_shape()])
}
