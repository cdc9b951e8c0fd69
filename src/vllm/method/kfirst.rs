//! Integer weights with the input dimension first, as GPTQ and AWQ store them: parameters, and which kernel takes them
//! (vllm/model_executor/layers/quantization/utils/marlin_utils.py; spec D.2, D.3).

use super::params::{Sizes, floor, param};
use super::py::raised;
use super::{Element, Layer, Load, Param};
use crate::checkpoint::{Checkpoint, Dtype};
use crate::vllm::trace::Raised;
use rustc_hash::FxHashSet;

/// Bits, group and layout of packed integers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packed {
    /// Bits a value: 4 or 8.
    pub(super) bits: i64,
    /// Values that share a scale; -1 for a whole column.
    pub(super) group: i64,
    /// Packed along the output dimension (AWQ), else along the input (GPTQ).
    pub(super) output: bool,
}

impl Packed {
    /// Values in 32 bits.
    fn factor(self) -> u64 {
        u64::try_from(32 / self.bits.max(1)).unwrap_or(1).max(1)
    }

    /// `group 128` or `channel`.
    pub(super) fn per(self) -> String {
        if self.group == -1 { "channel".into() } else { format!("group {}", self.group) }
    }

    /// Whether Marlin knows the group size (`MARLIN_SUPPORTED_GROUP_SIZES`).
    pub(super) fn known_group(self) -> bool {
        matches!(self.group, -1 | 32 | 64 | 128)
    }

    /// `verify_marlin_supported`.
    pub(super) fn verify(self) -> Result<(), Raised> {
        if self.known_group() {
            return Ok(());
        }
        let text = format!(
            "Marlin does not support group_size = {}. Only group_sizes = [-1, 32, 64, 128] are supported.",
            self.group
        );
        Err(raised("ValueError", text))
    }

    /// `check_marlin_supports_layer`, and `MarlinLinearKernel.can_implement`: groups fill the input dimension.
    pub(super) fn whole_groups(self, input: u64) -> bool {
        match u64::try_from(self.group) {
            Err(_) => true,
            Ok(0) => false,
            Ok(g) => g >= input || input.is_multiple_of(g),
        }
    }

    /// `check_moe_marlin_supports_layer`; else the experts are built by moe_wna16. `padded`: sizes may be padded to tiles.
    pub(super) fn marlin_experts(self, s: &Sizes, padded: bool) -> bool {
        let group = u64::try_from(self.group).unwrap_or(0);
        let whole = if padded { group == 0 || s.m.is_multiple_of(group) } else { s.m.is_multiple_of(group.max(64)) };
        s.h.is_multiple_of(128) && whole && self.known_group()
    }

    /// `BaseAWQLinearMethod.create_weights`, where Marlin does not take the layer.
    pub(super) fn unpadded(self, layer: &Layer<'_>) -> Result<(), Raised> {
        let n = layer.outputs.iter().fold(0u64, |a, b| a.saturating_add(*b));
        let group = self.group;
        if group == 0 {
            return Err(raised("ZeroDivisionError", "integer modulo by zero"));
        }
        let side = match u64::try_from(group) {
            Ok(g) if !layer.input.is_multiple_of(g) => "input",
            _ if !n.is_multiple_of(8) => "output",
            _ => return Ok(()),
        };
        let text = format!(
            "The {side} size is not aligned with the quantized weight shape. This can be caused by too large tensor \
             parallel size."
        );
        Err(raised("ValueError", text))
    }

    /// Parameters of a linear or a head.
    pub(super) fn linear(self, layer: &Layer<'_>) -> Result<Vec<Param>, Raised> {
        let k = layer.input;
        let n = layer.outputs.iter().fold(0u64, |a, b| a.saturating_add(*b));
        let groups = match self.group {
            -1 => 1,
            g => floor(k, g)?,
        };
        let pf = self.factor();
        let weight = if self.output {
            param("qweight", &[k, n / pf], Element::I32, Load::Turned { per: pf })
        } else {
            param("qweight", &[k / pf, n], Element::I32, Load::Turned { per: 1 })
        };
        Ok(vec![
            weight,
            param("scales", &[groups, n], Element::Model, Load::Turned { per: 1 }),
            param("qzeros", &[groups, n / pf], Element::I32, Load::Turned { per: pf }),
        ])
    }

    /// Parameters of experts.
    pub(super) fn experts(self, s: &Sizes) -> Result<Vec<Param>, Raised> {
        let groups = |k: u64| if self.group == -1 { Ok(1) } else { floor(k, self.group) };
        let pf = self.factor();
        let mut out = Vec::new();
        let names = [["w13_qweight", "w13_scales", "w13_qzeros"], ["w2_qweight", "w2_scales", "w2_qzeros"]];
        for ([weight, scales, zeros], k, n) in [(names[0], s.h, s.w13()), (names[1], s.m, s.h)] {
            let shape = if self.output { [s.e, k, n / pf] } else { [s.e, k / pf, n] };
            out.push(param(weight, &shape, Element::I32, Load::Turned { per: if self.output { pf } else { 1 } }));
            out.push(param(scales, &[s.e, groups(k)?, n], Element::Model, Load::Turned { per: 1 }));
            out.push(param(zeros, &[s.e, groups(k)?, n / pf], Element::I32, Load::Turned { per: pf }));
        }
        Ok(out)
    }
}

/// `MoeWNA16Method`: the same tensors, repacked as they come; smaller groups where they do not fill a dimension, zero points
/// unread where there are none.
pub(super) fn fallback(params: &mut [Param], packed: Packed, s: &Sizes, zero_points: bool) -> Result<(), Raised> {
    let Ok(mut group) = u64::try_from(packed.group) else {
        // `% -1` is 0, and the columns of scales come out negative.
        return Err(raised("RuntimeError", format!("Trying to create tensor with negative dimension -{}", s.h)));
    };
    if group == 0 {
        return Err(raised("ZeroDivisionError", "integer modulo by zero"));
    }
    while !s.m.is_multiple_of(group) || !s.h.is_multiple_of(group) {
        group /= 2;
        if group < 32 {
            return Err(raised("AssertionError", ""));
        }
    }
    for p in params.iter_mut().filter(|p| p.name.ends_with("zeros")) {
        p.unread = !zero_points;
    }
    Ok(())
}

/// Modules that own a tensor which is no 16- or 32-bit float, and those that own none
/// (`get_safetensors_params_metadata`, `maybe_update_config`).
pub(super) fn stems(checkpoint: &Checkpoint) -> (FxHashSet<&str>, FxHashSet<&str>) {
    let (mut quantized, mut all) = (FxHashSet::default(), FxHashSet::default());
    for (_, tensor) in checkpoint.tensors() {
        let stem = tensor.name.rsplit_once('.').map_or(&*tensor.name, |s| s.0);
        all.insert(stem);
        if !matches!(tensor.dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32) {
            quantized.insert(stem);
        }
    }
    let plain = all.difference(&quantized).copied().collect();
    (quantized, plain)
}
