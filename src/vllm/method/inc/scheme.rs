//! What auto-round's schemes create (inc/schemes): integers as GPTQ and AWQ store them, and floats in blocks.

use super::super::kfirst::{self, Packed};
use super::super::params::{Sizes, floor, param};
use super::super::{Built, Element, Layer, Load, Offered, Param, fp8, gptq, modelopt, py};
use super::{Data, Failure, Group, Inc, Width};
use crate::vllm::trace::Kind;

/// `resolve_scheme`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scheme {
    /// `INCWna16Scheme`, with the values under one scale.
    Wna16(i64),
    /// `INCFp8Scheme`, with a block.
    Fp8([i64; 2]),
    /// `INCMxfp8Scheme`.
    Mxfp8,
    /// `INCMxfp4Scheme`.
    Mxfp4,
}

type Made = (String, Vec<Param>);

impl Inc {
    pub(super) fn scheme(&self, width: Width) -> Result<Scheme, Failure> {
        match (self.data, width.bits, width.group) {
            (Data::Int, _, Group::One(group)) => Ok(Scheme::Wna16(group)),
            (Data::Float, 8, Group::Two(block)) if width.symmetric => Ok(Scheme::Fp8(block)),
            (Data::Mx, 8, _) => Ok(Scheme::Mxfp8),
            (Data::Mx, 4, _) => Ok(Scheme::Mxfp4),
            _ => Err(unimplemented(format!("No INC scheme found for layer config: {}", self.shown(width)))),
        }
    }

    /// `repr` of `INCLayerConfig`.
    fn shown(&self, Width { bits, group, symmetric }: Width) -> String {
        format!(
            "INCLayerConfig(bits={bits}, group_size={group}, sym={}, packing_format={}, backend={}, data_type={}, \
             quantized=True)",
            if symmetric { "True" } else { "False" },
            py::repr_str(&self.format),
            py::repr_str(&self.backend),
            py::repr_str(&self.word)
        )
    }

    /// `get_linear_method`, `get_moe_method`, and what they create.
    pub(super) fn create(&self, scheme: Scheme, width: Width, layer: &Layer<'_>) -> Result<Built, Failure> {
        let experts = layer.offered == Offered::Experts;
        let (label, params) = match scheme {
            Scheme::Wna16(group) => self.integers(width, group, layer)?,
            Scheme::Fp8(_) if experts => {
                let text = format!("INCFp8Scheme does not support MoE layers. Layer config: {}", self.shown(width));
                return Err(unimplemented(text));
            }
            Scheme::Fp8(block) => (format!("FP8 (blocks of {} x {})", block[0], block[1]), fp8::blocks(&block, layer)?),
            Scheme::Mxfp8 => {
                let k = layer.input;
                if !experts && !k.is_multiple_of(32) {
                    let text = format!("INC MXFP8 requires input_size_per_partition ({k}) to be divisible by 32.");
                    return Err((Kind::SchemeShape, py::raised("ValueError", text)));
                }
                return modelopt::mxfp8(layer).map_err(|raised| (Kind::SchemeShape, raised));
            }
            Scheme::Mxfp4 => mxfp4(width.group, layer)?,
        };
        Ok(Built::Quantized { scheme: format!("auto-round {label}"), params, nones: Vec::new() })
    }

    fn integers(&self, width: Width, group: i64, layer: &Layer<'_>) -> Result<Made, Failure> {
        let (gptq, awq) = (self.has("gptq"), self.has("awq"));
        let packed = Packed { bits: width.bits, group, output: !gptq && awq };
        let shape = |raised| (Kind::SchemeShape, raised);
        let unsupported = |kind: &str, text: String| Err((Kind::SchemeUnsupported, py::raised(kind, text)));
        let fits = matches!(width.bits, 4 | 8);
        let (scheme, params) = if layer.offered == Offered::Experts {
            let s = Sizes::of(layer);
            let symmetric = fits && (width.symmetric || !gptq);
            let params = if !symmetric || !packed.marlin_experts(&s, false) {
                let mut params = packed.experts(&s).map_err(shape)?;
                kfirst::fallback(&mut params, packed, &s, !width.symmetric).map_err(shape)?;
                params
            } else if gptq {
                gptq::marlin_experts(packed, &s, layer)?
            } else {
                packed.experts(&s).map_err(shape)?
            };
            ("experts ", params)
        } else if gptq {
            let marlin = self.backend == "auto" || self.backend.contains("marlin");
            if !marlin || !fits || !width.symmetric || !packed.known_group() {
                return unsupported(
                    "NotImplementedError",
                    format!(
                        "INC quantization with bits={}, sym={} is not supported. Only 4-bit and 8-bit symmetric quantization is \
                         supported with Marlin kernels.",
                        width.bits,
                        if width.symmetric { "True" } else { "False" }
                    ),
                );
            }
            ("", gptq::marlin(packed, layer)?)
        } else {
            if width.bits != 4 {
                return unsupported(
                    "ValueError",
                    format!(
                        "Unsupported num_bits = {}. Supported: 4. For 8-bit AWQ, use Marlin backend by setting \
                         backend='awq:marlin' or backend='marlin'.",
                        width.bits
                    ),
                );
            }
            if !packed.known_group() || !packed.whole_groups(layer.input) {
                packed.unpadded(layer).map_err(shape)?;
            }
            ("", packed.linear(layer).map_err(shape)?)
        };
        let layout = if packed.output { "AWQ" } else { "GPTQ" };
        Ok((format!("{scheme}({layout} layout, {} bits, {})", width.bits, packed.per()), params))
    }

    fn has(&self, word: &str) -> bool {
        self.format.contains(word) || self.backend.contains(word)
    }
}

fn unimplemented(text: String) -> Failure {
    (Kind::SchemeUnsupported, py::raised("NotImplementedError", text))
}

/// `INCMxfp4LinearMethod`, `INCMxfp4MoEMethod`.
fn mxfp4(group: Group, layer: &Layer<'_>) -> Result<Made, Failure> {
    use Element::U8;
    if layer.offered == Offered::Experts {
        let s = Sizes::of(layer);
        let mut params = s.pair(["w13_weight_packed", "w2_weight_packed"], |k| k / 2, U8, Load::Both).to_vec();
        params.extend(s.pair(["w13_weight_scale", "w2_weight_scale"], |k| k / 32, U8, Load::Both));
        return Ok(("MXFP4 experts (group 32)".into(), params));
    }
    let size = match group {
        Group::One(0) => 32,
        Group::One(size) => size,
        Group::Two(_) => {
            let text = format!("INC MXFP4 requires scalar group_size, but found group_size={group}.");
            return Err((Kind::SchemeUnsupported, py::raised("ValueError", text)));
        }
    };
    let (n, k) = (layer.outputs.iter().fold(0u64, |a, b| a.saturating_add(*b)), layer.input);
    let columns = floor(k, size).map_err(|raised| (Kind::SchemeShape, raised))?;
    let params =
        vec![param("weight_packed", &[n, k / 2], U8, Load::Both), param("weight_scale", &[n, columns], U8, Load::Both)];
    Ok((format!("MXFP4 (group {size})"), params))
}
