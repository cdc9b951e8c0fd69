//! Which scheme a specification asks for (`QuarkConfig._get_scheme_cls_from_config`,
//! `QuarkMoEMethod.get_moe_method_target`).

use super::super::py::{raised, repr, repr_str, truthy};
use super::int4::Int4;
use crate::vllm::trace::Raised;
use serde_json::Value;

/// How activations are quantized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// Not.
    None,
    /// 8-bit float, one stored scale.
    Static8,
    /// 8-bit float, one scale a tensor, found while running.
    Tensor8,
    /// 8-bit float, one scale a token.
    Token8,
    /// In blocks of 32, of this type.
    Mx(Mx),
}

/// Types of OCP MX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mx {
    /// 4 bit.
    Fp4,
    /// 6 bit, `e3m2`.
    Fp6E3M2,
    /// 6 bit, `e2m3`.
    Fp6E2M3,
    /// 8 bit.
    Fp8,
}

impl Mx {
    fn of(dtype: &str) -> Option<Mx> {
        Some(match dtype {
            "fp4" => Mx::Fp4,
            "fp6_e3m2" => Mx::Fp6E3M2,
            "fp6_e2m3" => Mx::Fp6E2M3,
            "fp8_e4m3" => Mx::Fp8,
            _ => return None,
        })
    }

    /// vLLM's word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Mx::Fp4 => "mxfp4",
            Mx::Fp6E3M2 => "mxfp6_e3m2",
            Mx::Fp6E2M3 => "mxfp6_e2m3",
            Mx::Fp8 => "mxfp8_e4m3",
        }
    }
}

/// A scheme of vLLM's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// 8-bit float.
    Fp8 {
        /// A scale a channel, else a tensor.
        channel: bool,
        /// Activations.
        input: Input,
    },
    /// 8-bit float in blocks of 128 x 128.
    Fp8Block {
        /// Scales are powers of two.
        e8m0: bool,
    },
    /// 8-bit integer.
    Int8 {
        /// A scale a channel, else a tensor.
        channel: bool,
        /// Stored activation scales.
        static_input: bool,
    },
    /// 4-bit integer in groups.
    Int4(Int4),
    /// OCP MX.
    Mx {
        /// Type of the weights.
        weight: Mx,
        /// Rows that one row of scales covers.
        rows: u64,
        /// Activations.
        input: Input,
    },
    /// MXFP4 weights, 8-bit activations with a stored scale.
    W4A8,
    /// NVFP4.
    Nvfp4,
    /// 4-bit integers within 8-bit floats: for ROCm.
    Int4Fp8,
}

/// `weight` and `input_tensors` of a specification.
struct Pair<'v> {
    weight: &'v Value,
    input: &'v Value,
}

fn is(spec: &Value, key: &str, word: &str) -> bool {
    spec.get(key).and_then(Value::as_str) == Some(word)
}

fn flag(spec: &Value, key: &str) -> bool {
    spec.get(key).is_some_and(truthy)
}

fn yes(spec: &Value, key: &str) -> bool {
    spec.get(key) == Some(&Value::Bool(true))
}

/// `==` with an integer.
fn number(spec: &Value, key: &str, want: i64) -> bool {
    spec.get(key).and_then(Value::as_f64) == Some(want as f64)
}

fn sizes(spec: &Value) -> Vec<Option<i64>> {
    let list = spec.get("block_size").and_then(Value::as_array);
    list.map(|l| l.iter().map(Value::as_i64).collect()).unwrap_or_default()
}

/// `_unwrap_single_quant_config`.
fn unwrapped(spec: &Value) -> &Value {
    match spec {
        Value::Array(list) if list.len() == 1 => &list[0],
        Value::Array(_) => &Value::Null,
        other => other,
    }
}

fn several(spec: &Value) -> bool {
    spec.as_array().is_some_and(|l| l.len() > 1)
}

fn unimplemented(text: &str) -> Raised {
    raised("NotImplementedError", text)
}

/// What nothing supports: quantized outputs and biases.
fn outputs(spec: &Value) -> Result<(), Raised> {
    if flag(spec, "output_tensors") || flag(spec, "bias") {
        return Err(unimplemented("Currently, Quark models with output_tensors and bias quantized are not supported"));
    }
    Ok(())
}

/// `_get_scheme_cls_from_config`.
pub(super) fn linear(spec: &Value, pack: &Value) -> Result<Scheme, Raised> {
    outputs(spec)?;
    let (weight, input) = (&spec["weight"], &spec["input_tensors"]);
    if several(weight) || several(input) {
        return if nvfp4(weight, input) {
            Ok(Scheme::Nvfp4)
        } else {
            Err(unimplemented("Multi-entry weight or activation quantization configs are only supported for NVFP4."))
        };
    }
    let pair = Pair { weight: unwrapped(weight), input: unwrapped(input) };
    if is(pair.weight, "qscheme", "per_block") && !flag(pair.weight, "block_size") {
        let text =
            "Quark W8A8 FP8 per-block weight quantization requires `block_size` in the weight quantization config.";
        return Err(raised("ValueError", text));
    }
    if let Some(found) = pair.fp8().or_else(|| pair.int8()) {
        return Ok(found);
    }
    if let Some(found) = pair.int4(pack)? {
        return Ok(found);
    }
    if pair.w4a8() {
        return Ok(Scheme::W4A8);
    }
    if let Some(Scheme::Mx { weight, rows, input }) = pair.mx(false)? {
        if input == Input::Tensor8 {
            return Err(raised("ValueError", format!("Unsupported activation quant key: {TENSOR8}")));
        }
        return Ok(Scheme::Mx { weight, rows, input });
    }
    Err(unimplemented(&format!(
        "No quark compatible scheme was found. Weight config: {}, Input config: {}",
        repr(pair.weight),
        repr(pair.input)
    )))
}

/// `str(kFp8DynamicTensorSym)`.
const TENSOR8: &str = "QuantKey(f8e4m3fn,scale(f32,dynamic,per_tensor),symmetric)";

/// `get_moe_method_target`.
pub(super) fn experts(spec: &Value, pack: &Value) -> Result<Scheme, Raised> {
    outputs(spec)?;
    let unsupported = || raised("RuntimeError", "Unsupported FusedMoe scheme");
    let (weight, input) = (&spec["weight"], &spec["input_tensors"]);
    if several(weight) || several(input) {
        return match (int4_fp8(weight, input), nvfp4(weight, input)) {
            (true, _) => Ok(Scheme::Int4Fp8),
            (_, true) => Ok(Scheme::Nvfp4),
            _ => Err(unsupported()),
        };
    }
    let pair = Pair { weight: unwrapped(weight), input: unwrapped(input) };
    if let Some(found) = pair.fp8() {
        return Ok(found);
    }
    if let Some(found) = pair.int4(pack)? {
        return Ok(found);
    }
    if let Some(found) = pair.mx(true)? {
        return Ok(found);
    }
    pair.int8().ok_or_else(unsupported)
}

/// Whether weights are 4-bit integers, whatever else is said.
pub(super) fn integers(weight: &Value) -> bool {
    is(weight, "dtype", "int4") || is(weight, "dtype", "uint4")
}

/// `_is_nvfp4`.
fn nvfp4(weight: &Value, input: &Value) -> bool {
    let two = |v: &Value| v.as_array().is_some_and(|l| l.len() == 2);
    let fp4 = |s: &Value| is(s, "dtype", "fp4") && is(s, "qscheme", "per_group") && number(s, "group_size", 16);
    let fp8 = |s: &Value| is(s, "dtype", "fp8_e4m3") && is(s, "qscheme", "per_tensor") && !flag(s, "is_dynamic");
    two(weight)
        && two(input)
        && fp4(&weight[0])
        && !flag(&weight[0], "is_dynamic")
        && fp4(&input[0])
        && flag(&input[0], "is_dynamic")
        && fp8(&weight[1])
        && fp8(&input[1])
}

/// `_is_fp8_w4a8`.
fn int4_fp8(weight: &Value, input: &Value) -> bool {
    let input = if input.is_array() { unwrapped(input) } else { input };
    if weight.as_array().is_none_or(|l| l.len() != 2) || !input.is_object() {
        return false;
    }
    let (outer, inner) = (&weight[0], &weight[1]);
    is(outer, "dtype", "fp8_e4m3")
        && is(inner, "dtype", "int4")
        && is(input, "dtype", "fp8_e4m3")
        && !flag(outer, "is_dynamic")
        && !flag(inner, "is_dynamic")
        && is(outer, "qscheme", "per_tensor")
        && is(inner, "qscheme", "per_channel")
        && yes(inner, "symmetric")
        && number(inner, "ch_axis", 0)
        && (flag(input, "is_dynamic") || is(input, "qscheme", "per_tensor"))
}

impl Pair<'_> {
    fn both(&self, dtype: &str) -> bool {
        is(self.weight, "dtype", dtype) && is(self.input, "dtype", dtype)
    }

    /// A scale a channel, or one a tensor.
    fn channel(&self) -> Option<bool> {
        match self.weight.get("qscheme").and_then(Value::as_str) {
            Some("per_channel") => Some(true),
            Some("per_tensor") => Some(false),
            _ => None,
        }
    }

    /// `_is_fp8_w8a8`.
    fn fp8(&self) -> Option<Scheme> {
        let (w, i) = (self.weight, self.input);
        if !self.both("fp8_e4m3") || flag(w, "is_dynamic") {
            return None;
        }
        if is(w, "qscheme", "per_block") && sizes(w) == [Some(128), Some(128)] && yes(w, "symmetric") {
            let fits = flag(i, "is_dynamic")
                && is(i, "qscheme", "per_group")
                && number(i, "group_size", 128)
                && yes(i, "symmetric");
            return fits.then(|| Scheme::Fp8Block { e8m0: is(w, "scale_type", "float8_e8m0fnu") });
        }
        let channel = self.channel()?;
        let input = match (flag(i, "is_dynamic"), i.get("qscheme").and_then(Value::as_str)) {
            (true, Some("per_channel")) => Input::Token8,
            (true, _) => Input::Tensor8,
            (false, Some("per_tensor")) => Input::Static8,
            (false, _) => return None,
        };
        Some(Scheme::Fp8 { channel, input })
    }

    /// `_is_w8a8_int8`.
    fn int8(&self) -> Option<Scheme> {
        let (w, i) = (self.weight, self.input);
        let channel = self.channel()?;
        if !self.both("int8") || !yes(w, "symmetric") {
            return None;
        }
        let static_input = is(i, "qscheme", "per_tensor") && !flag(i, "is_dynamic");
        let dynamic = is(i, "qscheme", "per_channel") && yes(i, "is_dynamic");
        let fits = static_input && !flag(w, "is_dynamic") || dynamic;
        fits.then_some(Scheme::Int8 { channel, static_input })
    }

    /// `_is_w4a16_int4`.
    fn int4(&self, pack: &Value) -> Result<Option<Scheme>, Raised> {
        if !integers(self.weight) || !self.input.is_null() || !matches!(pack.as_str(), Some("order" | "reorder")) {
            return Ok(None);
        }
        Int4::parse(self.weight).map(|int4| Some(Scheme::Int4(int4)))
    }

    /// `_is_w4a8_mxfp4_fp8`.
    fn w4a8(&self) -> bool {
        let (w, i) = (self.weight, self.input);
        is(w, "dtype", "fp4")
            && is(w, "qscheme", "per_group")
            && number(w, "group_size", 32)
            && is(w, "scale_format", "e8m0")
            && !flag(w, "is_dynamic")
            && is(i, "dtype", "fp8_e4m3")
            && is(i, "qscheme", "per_tensor")
            && !flag(i, "is_dynamic")
            && yes(i, "symmetric")
    }

    /// `ocp_mx_weight_dtype_and_rows`.
    fn mx_weight(&self) -> Option<(Mx, u64)> {
        let w = self.weight;
        let dtype = Mx::of(w.get("dtype")?.as_str()?)?;
        match w.get("qscheme")?.as_str()? {
            "per_group" => (number(w, "group_size", 32) && is(w, "scale_format", "e8m0")).then_some((dtype, 1)),
            "per_block" if dtype == Mx::Fp8 => match sizes(w)[..] {
                [Some(rows), Some(32)]
                    if is(w, "scale_type", "float8_e8m0fnu") && yes(w, "symmetric") && !flag(w, "is_dynamic") =>
                {
                    Some((dtype, u64::try_from(rows).ok()?))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// `_is_w_ocp_mx_a_x`.
    fn mx(&self, allow_static: bool) -> Result<Option<Scheme>, Raised> {
        let Some((weight, rows)) = self.mx_weight() else { return Ok(None) };
        let i = self.input;
        let input = if i.is_null() {
            Input::None
        } else if !flag(i, "is_dynamic") {
            let fits = is(i, "dtype", "fp8_e4m3") && is(i, "qscheme", "per_tensor") && yes(i, "symmetric");
            if !(allow_static && fits) {
                return Ok(None);
            }
            Input::Static8
        } else if is(i, "dtype", "fp8_e4m3") {
            let blocks = is(i, "qscheme", "per_group") && number(i, "group_size", 32);
            if blocks { Input::Mx(Mx::Fp8) } else { Input::Tensor8 }
        } else {
            let Some(dtype) = i.get("dtype") else { return Err(raised("KeyError", repr_str("dtype"))) };
            let Some(found) = dtype.as_str().and_then(Mx::of) else {
                let text = format!(
                    "Unsupported input_dtype={} in Quark's vLLM integration. Supported activation dtypes are \
                     dict_keys(['mxfp4', 'mxfp6_e3m2', 'mxfp6_e2m3', 'mxfp8_e4m3']), or None for weight-only quantization.",
                    dtype.as_str().unwrap_or_default().replace("fp", "mxfp")
                );
                return Err(raised("ValueError", text));
            };
            Input::Mx(found)
        };
        Ok(Some(Scheme::Mx { weight, rows, input }))
    }
}
