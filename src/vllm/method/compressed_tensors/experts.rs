//! Mixtures of experts: `CompressedTensorsMoEMethod.get_moe_method` and the methods' parameters.

use serde_json::Value;

use super::Group;
use super::args::{Args, Dynamic, Strategy};
use super::scheme::{
    WNA16_BITS, is_fp8_w4a8, is_fp8_w8a8, is_mxfp4, is_mxfp4_w4a8, is_mxfp8, is_nvfp4, is_w4a8_int, is_w8a8, is_wna16,
};
use crate::vllm::method::params::{Sizes, expert_blocks, param, unread};
use crate::vllm::method::py::raised;
use crate::vllm::method::{Element, Layer, Load, Param};
use crate::vllm::trace::{Kind, Raised};

/// A short name of the method, and its parameters.
type Made = (String, Vec<Param>);

const PACKED: [&str; 2] = ["w13_weight_packed", "w2_weight_packed"];
const WEIGHT: [&str; 2] = ["w13_weight", "w2_weight"];
const SCALE: [&str; 2] = ["w13_weight_scale", "w2_weight_scale"];
const INPUT_SCALE: [&str; 2] = ["w13_input_scale", "w2_input_scale"];
const GLOBAL: [&str; 2] = ["w13_weight_global_scale", "w2_weight_global_scale"];
const INPUT_GLOBAL: [&str; 2] = ["w13_input_global_scale", "w2_input_global_scale"];

/// What experts get.
pub(super) fn build(group: &Group, format: &Value, layer: &Layer<'_>) -> Result<Made, (Kind, Raised)> {
    use Element::{F8E4M3, F32, I8, U8};
    let s = Sizes::of(layer);
    let (w, input) = (&group.weights, group.input.as_ref());
    let unsupported = |kind: &str, text: String| Err((Kind::SchemeUnsupported, raised(kind, text)));
    if is_mxfp4(w) {
        let mut params = s.pair(PACKED, |k| k / 2, U8, Load::Both).to_vec();
        params.extend(s.pair(SCALE, |k| k / 32, U8, Load::Both));
        let acts = if is_mxfp4_w4a8(w, input) { 8 } else { 4 };
        return Ok((format!("W4A{acts} experts (MXFP4)"), params));
    }
    if is_mxfp8(w) {
        let mut params = s.pair(WEIGHT, |k| k, F8E4M3, Load::Both).to_vec();
        params.extend(s.pair(SCALE, |k| k / 32, U8, Load::Both));
        return Ok(("W8A8 experts (MXFP8)".into(), params));
    }
    if is_wna16(w, input) {
        let bits = w.num_bits;
        if !(2..=8).contains(&bits) || format != "pack-quantized" {
            let text = format!(
                "For Fused MoE layers, only format: pack-quantized and bits: {WNA16_BITS} is supported but got format: \
                 pack-quantized and bits: {bits}"
            );
            return unsupported("ValueError", text);
        }
        return wna16(w, &s).map_err(|raised| (Kind::SchemeShape, raised));
    }
    if is_nvfp4(w) {
        if let Some(i) = input.filter(|i| !is_nvfp4(i)) {
            let text = format!(
                "For NVFP4 weights, input quantization must also be NVFP4 format or None for NVFP4A16, found {}",
                i.words()
            );
            return unsupported("ValueError", text);
        }
        let mut params = s.pair(PACKED, |k| k / 2, U8, Load::Both).to_vec();
        params.extend(s.pair(SCALE, |k| k / 16, F8E4M3, Load::Both));
        params.extend(s.per_tensor(GLOBAL));
        // Created in any case; without activation quantization nothing reads them.
        params.extend(s.per_tensor(INPUT_GLOBAL).map(|p| Param { unread: input.is_none(), ..p }));
        return Ok((format!("W4A{} experts (NVFP4)", if input.is_none() { 16 } else { 4 }), params));
    }
    let Some(i) = input else {
        return unsupported("AttributeError", "'NoneType' object has no attribute 'num_bits'".to_owned());
    };
    if is_fp8_w8a8(w, input) {
        return fp8(w, i, &s);
    }
    if is_w8a8(w, i, Strategy::Token) {
        if w.strategy() != Strategy::Channel {
            let text = format!(
                "For INT8 Fused MoE layers, we require channelwise, dynamic per token quantization. Found {}, {}",
                w.words(),
                i.words()
            );
            return unsupported("ValueError", text);
        }
        let mut params = s.pair(WEIGHT, |k| k, I8, Load::Both).to_vec();
        params.extend(s.pair(SCALE, |_| 1, F32, Load::Output));
        return Ok(("W8A8 experts (int8, channel)".into(), params));
    }
    if is_fp8_w4a8(w, input) {
        return w4a8(w, &s);
    }
    if is_w4a8_int(w, i) {
        let size = w.group_size.unwrap_or(-1);
        let divides = |n: u64| u64::try_from(size).is_ok_and(|g| g > 0 && n.is_multiple_of(g));
        if size != -1 && !(divides(s.h) && divides(s.m)) {
            let text = format!(
                "Group size ({size}) must evenly divide both hidden size ({}) and intermediate size per partition ({}).",
                s.h, s.m
            );
            return Err((Kind::SchemeShape, raised("ValueError", text)));
        }
        return unsupported("NotImplementedError", "W4A8 Int8 MoE is only supported on CPU platforms".to_owned());
    }
    unsupported("RuntimeError", format!("Unsupported FusedMoe scheme: {}, {}", w.words(), i.words()))
}

fn wna16(w: &Args, s: &Sizes) -> Result<Made, Raised> {
    let value_error = |text: String| Err(raised("ValueError", text));
    let (bits, size) = (w.num_bits, w.group_size.unwrap_or(-1));
    let group = match (w.strategy(), u64::try_from(size)) {
        // Refused by Marlin's check, a bare assertion.
        (_, Ok(0)) => return Err(raised("AssertionError", "")),
        (Strategy::Channel, _) | (_, Err(_)) => None,
        (_, Ok(g)) => Some(g),
    };
    if let Some(g) = group {
        if !s.h.is_multiple_of(g) {
            return value_error(format!(
                "CompressedTensors WNA16 MoE requires hidden_size ({}) to be divisible by group_size ({g}).",
                s.h
            ));
        }
        if !s.m.is_multiple_of(g) {
            return value_error(format!(
                "CompressedTensors WNA16 MoE with static group scales requires the MoE intermediate size per \
                 tensor-parallel partition ({}) to be divisible by group_size ({g}). Scale groups would otherwise cross \
                 TP shard boundaries; use a compatible TP size or enable expert parallelism.",
                s.m
            ));
        }
    }
    let whole = |n: u64| n.saturating_mul(bits.unsigned_abs()).is_multiple_of(32);
    if !w.symmetric {
        let factor = fraction(bits);
        let doubled = s.m.saturating_mul(2);
        if !whole(doubled) {
            return value_error(format!(
                "CompressedTensors WNA16 MoE: gate+up output channels per TP rank (2 * intermediate_size_per_partition \
                 = {doubled}) must be divisible by packed_factor ({factor}). Use a TP size where 2 * intermediate_size \
                 is divisible by {factor}."
            ));
        }
        if !whole(s.h) {
            return value_error(format!(
                "CompressedTensors WNA16 MoE: hidden_size ({}) must be divisible by packed_factor ({factor}) for \
                 correct ZP unpacking.",
                s.h
            ));
        }
    }
    // `k // Fraction(32, bits)`.
    let floor = |k: u64| k.saturating_mul(bits.unsigned_abs()) / 32;
    let groups = |k: u64| group.map_or(1, |g| k / g);
    let mut params = s.pair(PACKED, floor, Element::I32, Load::PackedInput).to_vec();
    params.extend(s.pair(SCALE, groups, Element::Model, Load::Both));
    if !w.symmetric {
        let load = Load::PackedOutput { both: true, num: 32, den: u32::try_from(bits).unwrap_or(1) };
        let shape = |n: u64, k: u64| [s.e, floor(n), groups(k)];
        params.push(param("w13_weight_zero_point", &shape(s.w13(), s.h), Element::I32, load));
        params.push(param("w2_weight_zero_point", &shape(s.h, s.m), Element::I32, load));
    }
    params.extend(shapes(s));
    let per = group.map_or_else(|| "channel".to_owned(), |g| format!("group {g}"));
    Ok((format!("W{bits}A16 experts (pack-quantized, {per})"), params))
}

/// `str(Fraction(32, bits))`.
fn fraction(bits: i64) -> String {
    match bits {
        6 => "16/3".into(),
        b if b > 0 && 32 % b == 0 => (32 / b).to_string(),
        b => format!("32/{b}"),
    }
}

/// vLLM makes them of the model's dtype and reads them nowhere: as the file has them, so that no cast is seen here.
fn shapes(s: &Sizes) -> [Param; 2] {
    ["w13_weight_shape", "w2_weight_shape"].map(|name| unread(name, &[s.e, 2], Element::I64, Load::Whole))
}

fn fp8(w: &Args, i: &Args, s: &Sizes) -> Result<Made, (Kind, Raised)> {
    use Element::{F8E4M3, F32};
    let per = (w.strategy(), i.strategy());
    let plain = matches!(per, (Strategy::Tensor, Strategy::Tensor) | (Strategy::Channel, Strategy::Token));
    if !plain && per.0 != Strategy::Block {
        return Err((Kind::SchemeUnsupported, raised("AssertionError", "")));
    }
    let mut params = s.pair(WEIGHT, |k| k, F8E4M3, Load::Both).to_vec();
    match per.0 {
        Strategy::Tensor => params.extend(s.per_tensor(SCALE)),
        Strategy::Channel => params.extend(s.pair(SCALE, |_| 1, F32, Load::Output)),
        _ => {
            let block = w.block.as_deref().unwrap_or_default();
            params.extend(expert_blocks(SCALE, block, s).map_err(|raised| (Kind::SchemeShape, raised))?);
        }
    }
    if i.dynamic == Dynamic::No {
        params.extend(INPUT_SCALE.map(|name| param(name, &[s.e], F32, Load::Whole)));
    }
    Ok((format!("W8A8 experts (FP8, {})", per.0.name()), params))
}

/// `CompressedTensorsW4A8Fp8MoEMethod`.
fn w4a8(w: &Args, s: &Sizes) -> Result<Made, (Kind, Raised)> {
    let assertion = |text: String| Err((Kind::SchemeShape, raised("AssertionError", text)));
    if w.group_size != Some(128) {
        return assertion("Only group size 128 supported for W4A8 MoE".into());
    }
    for (name, size) in [("hidden_size", s.h), ("intermediate_size_per_partition", s.m)] {
        if !size.is_multiple_of(256) {
            return assertion(format!("{name}={size} must be divisible by 256"));
        }
    }
    let mut params = s.pair(PACKED, |k| k / 8, Element::I32, Load::PackedInput).to_vec();
    params.extend(s.pair(SCALE, |k| k / 128, Element::Model, Load::Both));
    params.extend(shapes(s));
    Ok(("W4A8 experts (FP8 activations, group 128)".into(), params))
}
