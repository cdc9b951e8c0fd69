//! `create_weights` of Quark's schemes (quark/schemes, quark_moe.py), at tensor-parallel size 1.

use super::super::params::{Sizes, block_scale, expert_blocks, param, unread};
use super::super::py::{raised, repr_str};
use super::super::{Element, Layer, Load, Param};
use super::scheme::{Input, Mx, Scheme};
use crate::vllm::trace::{Kind, Raised};

/// Parameters, and attributes registered as `None`.
pub(super) type Made = (Vec<Param>, Vec<&'static str>);

type Failure = (Kind, Raised);

const BLOCK: [i64; 2] = [128, 128];

/// Bytes of a row of `k` values.
fn width(k: u64, dtype: Mx) -> u64 {
    match dtype {
        Mx::Fp4 => k / 2,
        Mx::Fp6E3M2 | Mx::Fp6E2M3 => k.saturating_mul(3) / 4,
        Mx::Fp8 => k,
    }
}

/// A short name for messages.
pub(super) fn label(scheme: Scheme) -> String {
    let acts = |input: Input| match input {
        Input::None => "16-bit activations",
        Input::Static8 => "static activations",
        _ => "dynamic activations",
    };
    match scheme {
        Scheme::Fp8 { channel, input } => {
            format!("FP8 (per {}, {})", if channel { "channel" } else { "tensor" }, acts(input))
        }
        Scheme::Fp8Block { .. } => "FP8 (blocks of 128 x 128)".into(),
        Scheme::Int8 { channel, static_input } => {
            let acts = if static_input { "static" } else { "dynamic" };
            format!("W8A8 (int8, per {}, {acts} activations)", if channel { "channel" } else { "tensor" })
        }
        Scheme::Int4(int4) => int4.label(),
        Scheme::Mx { weight, input, .. } => format!("{} ({})", weight.word().to_uppercase(), acts(input)),
        Scheme::W4A8 => "MXFP4 (8-bit activations)".into(),
        Scheme::Nvfp4 => "NVFP4".into(),
        Scheme::Int4Fp8 => "W4A8 (int4 in FP8)".into(),
    }
}

/// What a scheme creates on a linear layer.
pub(super) fn linear(scheme: Scheme, layer: &Layer<'_>) -> Result<Made, Failure> {
    use Element::{F8E4M3, F32, I8, U8};
    let shape = |raised| (Kind::SchemeShape, raised);
    let k = layer.input;
    let n = layer.outputs.iter().fold(0u64, |a, b| a.saturating_add(*b));
    let parts = layer.outputs.len() as u64;
    let mut nones = Vec::new();
    let params = match scheme {
        Scheme::Fp8 { channel, input } => {
            let scale = match channel {
                true => param("weight_scale", &[n], F32, Load::Output),
                false => param("weight_scale", &[parts], F32, Load::PerTensor),
            };
            let mut params = vec![param("weight", &[n, k], F8E4M3, Load::Both), scale];
            if input == Input::Static8 {
                params.push(param("input_scale", &[parts], F32, Load::PerTensor));
            }
            params
        }
        Scheme::Fp8Block { e8m0 } => {
            let mut scale = block_scale("weight_scale", layer.outputs, n, k, &BLOCK).map_err(shape)?;
            if e8m0 {
                scale.element = Element::E8M0;
            }
            vec![param("weight", &[n, k], F8E4M3, Load::Both), scale]
        }
        Scheme::Int8 { channel, static_input } => {
            let (size, load) = if channel { (vec![n, 1], Load::Column) } else { (vec![parts], Load::PerTensor) };
            let mut params = vec![param("weight", &[n, k], I8, Load::Both)];
            params.push(param("weight_scale", &size, F32, load));
            params.push(param("weight_zero_point", &size, I8, load));
            if static_input {
                params.push(param("input_scale", &[1], F32, Load::Whole));
                params.push(param("input_zero_point", &[1], I8, Load::Whole));
            } else {
                nones.extend(["input_scale", "input_zero_point"]);
            }
            nones.push("azp_adj");
            params
        }
        Scheme::Mx { weight, rows, .. } => {
            if !k.is_multiple_of(32) {
                let text = format!(
                    "OCP MX linear layer {} has an input size per partition of {k}, which must be divisible by the OCP MX \
                     group size 32. Choose a compatible tensor-parallel size or avoid tensor-parallel sharding for this \
                     layer.",
                    repr_str(layer.prefix)
                );
                return Err(shape(raised("ValueError", text)));
            }
            let (element, load) = if weight == Mx::Fp8 { (F8E4M3, Load::Both) } else { (U8, Load::PackedInput) };
            let scale = match rows {
                // One stored row stands for several.
                2.. => param("weight_scale", &[n.div_ceil(rows), k / 32], U8, Load::Block { rows }),
                _ => param("weight_scale", &[n, k / 32], U8, Load::Both),
            };
            vec![param("weight", &[n, width(k, weight)], element, load), scale]
        }
        Scheme::W4A8 => {
            if !k.is_multiple_of(2) {
                let text = format!("Dimension {k} must be even for MXFP4 packing");
                return Err(shape(raised("AssertionError", text)));
            }
            vec![
                param("weight", &[n, k / 2], U8, Load::PackedInput),
                param("weight_scale", &[n, k / 32], U8, Load::Both),
                param("input_scale", &[parts], F32, Load::PerTensor),
            ]
        }
        Scheme::Nvfp4 => {
            if !k.is_multiple_of(16) {
                let text = format!("Input size per partition ({k}) must be divisible by group size (16)");
                return Err(shape(raised("ValueError", text)));
            }
            vec![
                param("weight", &[n, k / 2], U8, Load::Both),
                param("weight_scale", &[n, k / 16], F8E4M3, Load::Both),
                param("weight_scale_2", &[parts], F32, Load::PerTensor),
                param("input_scale_2", &[parts], F32, Load::PerTensor),
            ]
        }
        Scheme::Int4(int4) => int4.linear(layer)?,
        // Only experts are of this scheme.
        Scheme::Int4Fp8 => Vec::new(),
    };
    Ok((params, nones))
}

/// What a scheme creates on experts.
pub(super) fn experts(scheme: Scheme, layer: &Layer<'_>) -> Result<Made, Failure> {
    use Element::{F8E4M3, F32, I8, U8};
    const WEIGHT: [&str; 2] = ["w13_weight", "w2_weight"];
    const SCALE: [&str; 2] = ["w13_weight_scale", "w2_weight_scale"];
    let unsupported = |kind: &str, text: String| Err((Kind::SchemeUnsupported, raised(kind, text)));
    let s = Sizes::of(layer);
    let one = |name| param(name, &[s.e], F32, Load::Whole);
    let inputs = || ["w13_input_scale", "w2_input_scale"].map(one);
    let channels = |names: [&'static str; 2]| {
        [param(names[0], &[s.e, s.w13()], F32, Load::Output), param(names[1], &[s.e, s.h], F32, Load::Output)]
    };
    let params = match scheme {
        Scheme::Fp8 { channel, input } => {
            if channel != (input == Input::Token8) {
                let word = |channel: bool| if channel { "per_channel" } else { "per_tensor" };
                let text = format!(
                    "For FP8 Fused MoE layers, only per-tensor, per-channel and per-block scales for weights and \
                     activations are supported. Found {}, {}",
                    word(channel),
                    word(input == Input::Token8)
                );
                return unsupported("ValueError", text);
            }
            let mut params = s.pair(WEIGHT, |k| k, F8E4M3, Load::Both).to_vec();
            params.extend(if channel { channels(SCALE) } else { s.per_tensor(SCALE) });
            if input == Input::Static8 {
                params.extend(inputs());
            }
            params
        }
        Scheme::Fp8Block { .. } => {
            let mut params = s.pair(WEIGHT, |k| k, F8E4M3, Load::Both).to_vec();
            params.extend(expert_blocks(SCALE, &BLOCK, &s).map_err(|raised| (Kind::SchemeShape, raised))?);
            params
        }
        Scheme::Int8 { channel, static_input } => {
            let mut params = s.pair(WEIGHT, |k| k, I8, Load::Both).to_vec();
            params.extend(if channel { channels(SCALE) } else { s.per_tensor(SCALE) });
            if static_input {
                params.extend(inputs());
            }
            // Zero to begin with, and thrown away after loading.
            let points =
                ["w13_input_zero_point", "w2_input_zero_point", "w13_weight_zero_point", "w2_weight_zero_point"];
            params.extend(points.map(|name| unread(name, &[s.e], I8, Load::Whole)));
            params
        }
        Scheme::Mx { weight, input, .. } => {
            mx_experts(weight, input)?;
            let mut params = s.pair(WEIGHT, |k| width(k, weight), U8, Load::Both).to_vec();
            params.extend(s.pair(SCALE, |k| k / 32, U8, Load::Both));
            if input == Input::Static8 {
                params.extend(inputs());
            }
            params
        }
        Scheme::Nvfp4 => {
            let mut params = s.pair(WEIGHT, |k| k / 2, U8, Load::Both).to_vec();
            params.extend(s.pair(SCALE, |k| k / 16, F8E4M3, Load::Both));
            params.extend(s.per_tensor(["w13_weight_scale_2", "w2_weight_scale_2"]));
            params.extend(s.per_tensor(["w13_input_scale_2", "w2_input_scale_2"]));
            params
        }
        Scheme::Int4Fp8 => {
            return unsupported("AssertionError", "W4A8 FP8 MoE requires ROCm AITER fused MoE support.".into());
        }
        Scheme::Int4(int4) => int4.experts(layer)?,
        Scheme::W4A8 => return unsupported("RuntimeError", "Unsupported FusedMoe scheme".into()),
    };
    Ok((params, Vec::new()))
}

/// What `QuarkOCP_MX_MoEMethod` raises.
fn mx_experts(weight: Mx, input: Input) -> Result<(), Failure> {
    let word = match input {
        Input::None => "None",
        Input::Static8 | Input::Tensor8 | Input::Token8 => "fp8",
        Input::Mx(mx) => mx.word(),
    };
    let fits = match (weight, input) {
        (Mx::Fp8, _) => false,
        (Mx::Fp4, Input::Mx(mx)) => mx != Mx::Fp8,
        (_, Input::Mx(mx)) => mx == weight,
        _ => true,
    };
    let error = |kind: &str, text: String| Err((Kind::SchemeUnsupported, raised(kind, text)));
    if !fits {
        let text = format!(
            "Unsupported OCP MX dtype combination for MoE: input_dtype={word}, weight_dtype={}. MXFP8 experts are not \
             supported through the MoE path; only the linear path handles MXFP8. Supported MoE weight dtypes are mxfp4, \
             mxfp6_e3m2, and mxfp6_e2m3.",
            weight.word()
        );
        return error("ValueError", text);
    }
    if input == Input::Tensor8 {
        let text = format!(
            "QuarkOCP_MX_MoEMethod with dynamic input scales is currently not implemented for OCP MX scheme \
             OCP_MX_Scheme.w_{}_a_fp8. Please open an issue.",
            weight.word()
        );
        return error("NotImplementedError", text);
    }
    Ok(())
}
