//! Which scheme a combination of arguments and format gets: `_get_scheme_from_parts` for linear layers.
//! The constructors of the schemes belong to it, since they raise, too.

use serde_json::Value;

use super::Group;
use super::args::{Args, Dynamic, Strategy};
use super::parse::is_activation_format;
use crate::vllm::method::HOPPER_ONLY;
use crate::vllm::method::py::{self, raised};
use crate::vllm::trace::Raised;

/// The device that vLLM would find. Nothing here judges a capability; this only decides which branch is taken.
pub(super) struct Device {
    /// Compute capability, as in `89`.
    pub(super) capability: u32,
}

/// An L4, 4090 and the like.
pub(super) const DEVICE: Device = Device { capability: 89 };

/// A scheme with what its parameters depend on.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scheme {
    /// `CompressedTensorsW4A4Fp4`.
    Nvfp4 { a16: bool },
    /// `CompressedTensorsW4A4Mxfp4` and `CompressedTensorsW4A8Mxfp4`.
    Mxfp4 { a8: bool },
    /// `CompressedTensorsW8A8Mxfp8`.
    Mxfp8,
    /// `CompressedTensorsW4A8Fp8`.
    W4A8Fp8,
    /// `CompressedTensorsWNA8O8Int`.
    Wna8o8 { bits: i64, group: Option<i64>, packed: bool },
    /// `CompressedTensorsWNA8Int` and `CompressedTensorsWNA4Int`.
    WnaInt { act: i64, bits: i64, group: Option<i64>, symmetric: bool },
    /// `CompressedTensorsWNA16`.
    Wna16 { bits: i64, group: Option<i64>, symmetric: bool },
    /// `CompressedTensorsW8A8Fp8` (or `W8A16Fp8`).
    Fp8 { a8: bool, strategy: Strategy, block: Option<Vec<i64>>, static_input: bool },
    /// `CompressedTensorsW8A8Int8`.
    Int8 { channel: bool, static_input: bool, symmetric_input: bool },
    /// `CompressedTensorsW4A8Int`.
    W4A8Int { group: Option<i64> },
}

impl Scheme {
    /// A short name.
    pub(super) fn label(&self) -> String {
        let per = |group: &Option<i64>| match group {
            Some(n) if *n > 0 => format!("group {n}"),
            _ => "channel".to_owned(),
        };
        match self {
            Scheme::Nvfp4 { a16: true } => "W4A16 (NVFP4)".into(),
            Scheme::Nvfp4 { a16: false } => "W4A4 (NVFP4)".into(),
            Scheme::Mxfp4 { a8: true } => "W4A8 (MXFP4)".into(),
            Scheme::Mxfp4 { a8: false } => "W4A4 (MXFP4)".into(),
            Scheme::Mxfp8 => "W8A8 (MXFP8)".into(),
            Scheme::W4A8Fp8 => HOPPER_ONLY.into(),
            Scheme::Wna8o8 { bits, group, packed } => {
                let format = if *packed { "pack-quantized" } else { "int-quantized" };
                format!("W{bits}A8 (static int8 in and out, {format}, {})", per(group))
            }
            Scheme::WnaInt { act, bits, group, .. } => format!("W{bits}A{act} (pack-quantized, {})", per(group)),
            Scheme::Wna16 { bits, group, .. } => format!("W{bits}A16 (pack-quantized, {})", per(group)),
            Scheme::Fp8 { a8, strategy, .. } => {
                format!("W8A{} (FP8, {})", if *a8 { 8 } else { 16 }, strategy.name())
            }
            Scheme::Int8 { channel, .. } => format!("W8A8 (int8, {})", if *channel { "channel" } else { "tensor" }),
            Scheme::W4A8Int { group } => format!("W4A8 (int8 activations, {})", per(group)),
        }
    }
}

/// float4 `tensor_group` 16, symmetric.
pub(super) fn is_nvfp4(a: &Args) -> bool {
    a.strategy() == Strategy::TensorGroup && a.float && a.num_bits == 4 && a.group_size == Some(16) && a.symmetric
}

/// float4 `group` 32, symmetric.
pub(super) fn is_mxfp4(a: &Args) -> bool {
    a.strategy() == Strategy::Group && a.float && a.num_bits == 4 && a.group_size == Some(32) && a.symmetric
}

/// float8 `group` 32, symmetric, scales of type uint8.
pub(super) fn is_mxfp8(a: &Args) -> bool {
    a.strategy() == Strategy::Group
        && a.float
        && a.num_bits == 8
        && a.group_size == Some(32)
        && a.symmetric
        && a.scales_are_bytes()
}

fn is_static(a: &Args) -> bool {
    a.dynamic == Dynamic::No
}

fn channel_or_group(a: &Args) -> bool {
    matches!(a.strategy(), Strategy::Channel | Strategy::Group)
}

/// `_is_mxfp4_w4a8_fp8`.
pub(super) fn is_mxfp4_w4a8(w: &Args, input: Option<&Args>) -> bool {
    let Some(i) = input.filter(|_| is_mxfp4(w)) else { return false };
    let per = matches!(i.strategy(), Strategy::Token | Strategy::Group);
    i.float && i.num_bits == 8 && is_static(w) && !is_static(i) && per && i.symmetric
}

/// `_is_fp8_w4a8`.
pub(super) fn is_fp8_w4a8(w: &Args, input: Option<&Args>) -> bool {
    let Some(i) = input.filter(|i| !w.float && i.float) else { return false };
    w.num_bits == 4
        && i.num_bits == 8
        && w.strategy() == Strategy::Group
        && i.strategy() == Strategy::Token
        && w.symmetric
        && i.symmetric
        && is_static(w)
        && !is_static(i)
}

/// `_is_fp8_w8a16`.
fn is_fp8_weight(w: &Args) -> bool {
    let per = matches!(w.strategy(), Strategy::Tensor | Strategy::Channel | Strategy::Block);
    w.float && w.symmetric && is_static(w) && per
}

/// `_is_fp8_w8a8`.
pub(super) fn is_fp8_w8a8(w: &Args, input: Option<&Args>) -> bool {
    let Some(i) = input.filter(|i| i.float && is_fp8_weight(w)) else { return false };
    !is_static(i) || (i.symmetric && i.strategy() == Strategy::Tensor)
}

/// `_is_wNa16_group_channel`.
pub(super) fn is_wna16(w: &Args, input: Option<&Args>) -> bool {
    channel_or_group(w) && input.is_none() && is_static(w)
}

fn is_wna8o8(w: &Args, input: Option<&Args>, output: Option<&Args>, format: &Value) -> bool {
    let int8 = |a: &Args| !a.float && a.strategy() == Strategy::Tensor && a.num_bits == 8 && is_static(a);
    !w.float
        && is_static(w)
        && channel_or_group(w)
        && matches!(format.as_str(), Some("pack-quantized" | "int-quantized"))
        && input.is_some_and(int8)
        && output.is_some_and(int8)
}

fn is_wna_int(w: &Args, i: &Args, format: &Value) -> bool {
    !w.float
        && is_static(w)
        && channel_or_group(w)
        && format.as_str() == Some("pack-quantized")
        && !i.float
        && i.symmetric
        && !is_static(i)
        && matches!(i.strategy(), Strategy::Token | Strategy::Group)
}

/// `_is_dynamic_token_w8a8`, `_is_static_tensor_w8a8`.
pub(super) fn is_w8a8(w: &Args, i: &Args, per: Strategy) -> bool {
    w.num_bits == 8
        && i.num_bits == 8
        && matches!(w.strategy(), Strategy::Tensor | Strategy::Channel)
        && i.strategy() == per
        && w.symmetric
        && is_static(w)
        && is_static(i) == (per == Strategy::Tensor)
}

/// `_is_dynamic_token_w4a8_int`.
pub(super) fn is_w4a8_int(w: &Args, i: &Args) -> bool {
    !w.float
        && !i.float
        && w.num_bits == 4
        && i.num_bits == 8
        && channel_or_group(w)
        && i.strategy() == Strategy::Token
        && w.symmetric
        && is_static(w)
        && !is_static(i)
}

/// Bits that `CompressedTensorsWNA16` takes.
pub(super) const WNA16_BITS: &str = "[2, 3, 4, 5, 6, 7, 8]";

/// `_get_scheme_from_parts`.
pub(super) fn linear(group: &Group, format: &Value, layer_name: &str) -> Result<Scheme, Raised> {
    let (w, input, output) = (&group.weights, group.input.as_ref(), group.output.as_ref());
    let value_error = |text: String| Err(raised("ValueError", text));
    if is_nvfp4(w) {
        return match input {
            None => Ok(Scheme::Nvfp4 { a16: true }),
            Some(i) if is_nvfp4(i) => Ok(Scheme::Nvfp4 { a16: false }),
            Some(_) => value_error(
                "For NVFP4 weights, input quantization must also be NVFP4 format, None for NVFP4A16".to_owned(),
            ),
        };
    }
    if is_mxfp4(w) {
        return Ok(Scheme::Mxfp4 { a8: is_mxfp4_w4a8(w, input) });
    }
    if is_mxfp8(w) {
        return Ok(Scheme::Mxfp8);
    }
    // On Hopper; on any other device there is no scheme for it, and a note says so.
    if w.group_size == Some(128) && is_fp8_w4a8(w, input) {
        return Ok(Scheme::W4A8Fp8);
    }
    let (bits, size) = (w.num_bits, w.group_size);
    if is_wna8o8(w, input, output, format) {
        return match bits {
            0 => Err(raised("ZeroDivisionError", "integer division or modulo by zero")),
            2 | 4 | 8 => Ok(Scheme::Wna8o8 { bits, group: size, packed: format == "pack-quantized" }),
            _ => value_error(format!("Unsupported num_bits = {bits} for WNA8O8Int; supported = [2, 4, 8]")),
        };
    }
    if let Some(i) = input.filter(|i| is_wna_int(w, i, format) && matches!(i.num_bits, 4 | 8)) {
        let act = i.num_bits;
        return match bits {
            0 => Err(raised("ZeroDivisionError", "Fraction(32, 0)")),
            2..=8 => Ok(Scheme::WnaInt { act, bits, group: size, symmetric: w.symmetric }),
            _ => value_error(format!("Unsupported num_bits = {bits} for WNA{act}Int; supported = {WNA16_BITS}")),
        };
    }
    if is_wna16(w, input) && format == "pack-quantized" {
        return match bits {
            0 => Err(raised("ZeroDivisionError", "Fraction(32, 0)")),
            2..=8 => Ok(Scheme::Wna16 { bits, group: size, symmetric: w.symmetric }),
            _ => value_error(format!("Unsupported num_bits = {bits}. Supported num_bits = {WNA16_BITS}")),
        };
    }
    if is_activation_format(format) {
        let a8 = is_fp8_w8a8(w, input) && DEVICE.capability >= 89;
        if is_fp8_weight(w) {
            let static_input = input.is_some_and(is_static);
            return fp8(w, a8, static_input);
        }
        let Some(i) = input else {
            return Err(raised("AttributeError", "'NoneType' object has no attribute 'num_bits'"));
        };
        let per_tensor = is_w8a8(w, i, Strategy::Tensor);
        if per_tensor || is_w8a8(w, i, Strategy::Token) {
            let channel = w.strategy() == Strategy::Channel;
            return Ok(Scheme::Int8 { channel, static_input: per_tensor, symmetric_input: i.symmetric });
        }
        if is_w4a8_int(w, i) {
            return Ok(Scheme::W4A8Int { group: size });
        }
    }
    let none = |a: Option<&Args>| a.map_or_else(|| "None".to_owned(), Args::repr);
    Err(raised(
        "NotImplementedError",
        format!(
            "No compressed-tensors compatible scheme was found for layer_name={}, weight_quant={}, input_quant={}, \
             output_quant={}, format={}",
            py::repr_str(layer_name),
            w.repr(),
            none(input),
            none(output),
            py::repr(format)
        ),
    ))
}

/// The constructors of `CompressedTensorsW8A8Fp8` and `CompressedTensorsW8A16Fp8`.
fn fp8(w: &Args, a8: bool, static_input: bool) -> Result<Scheme, Raised> {
    if let Some(block) = w.block.as_ref().filter(|_| a8) {
        if static_input {
            return Err(raised("AssertionError", ""));
        }
        let given = block.len() + 1;
        let text = match block.len() {
            2 => None,
            1 => Some("_GroupShape.__new__() missing 1 required positional argument: 'col'".to_owned()),
            _ => Some(format!("_GroupShape.__new__() takes 3 positional arguments but {given} were given")),
        };
        if let Some(text) = text {
            return Err(raised("TypeError", text));
        }
    }
    Ok(Scheme::Fp8 { a8, strategy: w.strategy(), block: w.block.clone(), static_input })
}
