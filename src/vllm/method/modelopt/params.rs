//! What the algorithms create (`QuantKeyScheme.create_weights` and the `ModelOpt…FusedMoE` methods, modelopt.py).

use super::super::params::{Sizes, expert_blocks, floor, param, unread};
use super::super::py::raised;
use super::super::{Built, Element, Layer, Load};
use crate::vllm::trace::{Kind, Raised};

/// Rows and columns of a block of `FP8_PB_WO`.
const BLOCK: u64 = 128;
/// Values under one scale of MXFP8.
const MX: u64 = 32;

/// `LINEAR_ALGOS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algo {
    /// `FP8`: one scale a matrix, and one for its input.
    Tensor,
    /// `FP8_PER_CHANNEL_PER_TOKEN`.
    Channel,
    /// `FP8_PB_WO`.
    Block,
    /// `NVFP4` and `W4A16_NVFP4`.
    Nvfp4 {
        /// Values under one scale.
        group: i64,
        /// Activations stay in 16 bit.
        a16: bool,
    },
    /// `MXFP8`.
    Mxfp8,
    /// Experts of a mixed checkpoint in square blocks (`Fp8MoEMethod`).
    ExpertBlocks {
        /// Rows and columns of a block.
        size: i64,
    },
}

impl Algo {
    fn label(self) -> String {
        match self {
            Algo::Tensor => "FP8 (per tensor, static activations)".into(),
            Algo::Channel => "FP8 (per channel)".into(),
            Algo::Block => "FP8 (blocks of 128 x 128)".into(),
            Algo::Nvfp4 { group, a16: false } => format!("NVFP4 (group {group})"),
            Algo::Nvfp4 { group, a16: true } => format!("NVFP4 (weights only, group {group})"),
            Algo::Mxfp8 => "MXFP8 (group 32)".into(),
            Algo::ExpertBlocks { size } => format!("FP8 (blocks of {size} x {size})"),
        }
    }

    fn built(self, params: Vec<super::super::Param>, experts: bool) -> Built {
        let scheme = if experts { format!("{} experts", self.label()) } else { self.label() };
        Built::Quantized { scheme, params, nones: Vec::new() }
    }

    /// On a linear layer or a head.
    pub(super) fn linear(self, layer: &Layer<'_>) -> Result<Built, Raised> {
        use Element::{F8E4M3, F32, U8};
        let k = layer.input;
        let n = layer.outputs.iter().fold(0u64, |a, b| a.saturating_add(*b));
        let parts = layer.outputs.len() as u64;
        let one = |name| param(name, &[parts], F32, Load::PerTensor);
        let value_error = |text: String| Err(raised("ValueError", text));
        let params = match self {
            Algo::Tensor => {
                vec![param("weight", &[n, k], F8E4M3, Load::Both), one("weight_scale"), one("input_scale")]
            }
            Algo::Channel => {
                vec![param("weight", &[n, k], F8E4M3, Load::Both), param("weight_scale", &[n], F32, Load::Output)]
            }
            Algo::Block | Algo::ExpertBlocks { .. } => {
                if !k.is_multiple_of(BLOCK) {
                    return value_error(format!("FP8_PB_WO requires in divisible by 128, got {k}"));
                }
                let scale = [n.div_ceil(BLOCK), 1, k / BLOCK, 1];
                vec![
                    param("weight", &[n, k], F8E4M3, Load::Both),
                    param("weight_scale", &scale, F32, Load::Block { rows: BLOCK }),
                ]
            }
            Algo::Nvfp4 { group, a16 } => {
                if !k.is_multiple_of(16) {
                    return value_error("Unsupported model when in features size is not multiple of 16".into());
                }
                vec![
                    param("weight", &[n, k / 2], U8, Load::Both),
                    one("weight_scale_2"),
                    param("weight_scale", &[n, floor(k, group)?], F8E4M3, Load::Both),
                    // Older exports have it; it is dropped after the load.
                    if a16 { unread("input_scale", &[parts], F32, Load::PerTensor) } else { one("input_scale") },
                ]
            }
            Algo::Mxfp8 => {
                if !k.is_multiple_of(MX) {
                    return value_error(format!("MXFP8 requires input size divisible by 32, got {k}"));
                }
                vec![param("weight", &[n, k], F8E4M3, Load::Both), param("weight_scale", &[n, k / MX], U8, Load::Both)]
            }
        };
        Ok(self.built(params, false))
    }

    /// On experts.
    pub(super) fn experts(self, layer: &Layer<'_>) -> Result<Built, Raised> {
        use Element::{F8E4M3, F32, U8};
        let s = Sizes::of(layer);
        let weight = ["w13_weight", "w2_weight"];
        let scale = ["w13_weight_scale", "w2_weight_scale"];
        let input = ["w13_input_scale", "w2_input_scale"];
        let value_error = |text: String| Err(raised("ValueError", text));
        let mut params = match self {
            Algo::Nvfp4 { .. } => s.pair(weight, |k| k / 2, U8, Load::Both).to_vec(),
            _ => s.pair(weight, |k| k, F8E4M3, Load::Both).to_vec(),
        };
        match self {
            Algo::Tensor | Algo::Channel | Algo::Block => {
                params.extend(s.per_tensor(scale));
                params.extend(input.map(|name| param(name, &[s.e], F32, Load::Whole)));
            }
            Algo::Nvfp4 { group, a16 } => {
                let (wide, narrow) = (floor(s.h, group)?, floor(s.m, group)?);
                params.push(param(scale[0], &[s.e, s.w13(), wide], F8E4M3, Load::Both));
                params.push(param(scale[1], &[s.e, s.h, narrow], F8E4M3, Load::Both));
                params.extend(s.per_tensor(["w13_weight_scale_2", "w2_weight_scale_2"]));
                // Created in any case; without activation quantization nothing reads them.
                params.extend(s.per_tensor(input).map(|p| super::super::Param { unread: a16, ..p }));
            }
            Algo::Mxfp8 => {
                for (name, size) in [("hidden_size", s.h), ("intermediate_size_per_partition", s.m)] {
                    if !size.is_multiple_of(MX) {
                        return value_error(format!("MXFP8 MoE requires {name} divisible by 32, got {size}."));
                    }
                }
                params.extend(s.pair(scale, |k| k / MX, U8, Load::Both));
            }
            Algo::ExpertBlocks { size } => {
                params.extend(expert_blocks(["w13_weight_scale_inv", "w2_weight_scale_inv"], &[size, size], &s)?);
            }
        }
        Ok(self.built(params, true))
    }
}

/// A refusal of sizes.
pub(super) fn misfit(raised: Raised) -> Built {
    Built::Refused { why: Kind::SchemeShape, raised }
}
