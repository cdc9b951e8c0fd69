//! The KV-cache scheme: `CompressedTensorsKVCacheMethod`, which every attention layer gets, whatever targets and ignore
//! list say.

use serde_json::Value;

use super::args::Strategy;
use crate::vllm::method::params::unread;
use crate::vllm::method::py::{self, raised};
use crate::vllm::method::{Built, Element, Layer, Load};
use crate::vllm::trace::{Kind, Raised};

/// Scales and zero points with their defaults. (Nothing is missing when the checkpoint has none.)
pub(super) fn build(scheme: &Value, layer: &Layer<'_>) -> Result<Built, (Kind, Raised)> {
    let per_head = validate(scheme).map_err(|raised| (Kind::QuantConfigRejected, raised))?;
    let shape = [if per_head { layer.kv_heads } else { 1 }];
    let scale = |name| unread(name, &shape, Element::F32, Load::Whole);
    let zero = |name| unread(name, &shape, Element::Model, Load::Whole);
    let params = vec![
        scale("k_scale"),
        scale("v_scale"),
        scale("q_scale"),
        zero("k_zero_point"),
        zero("v_zero_point"),
        zero("q_zero_point"),
    ];
    let scheme = match (scheme.is_null(), per_head) {
        (true, _) => "KV cache (no scheme)",
        (false, true) => "KV cache (FP8, attn_head)",
        (false, false) => "KV cache (FP8, tensor)",
    };
    Ok(Built::Quantized { scheme: scheme.into(), params, nones: Vec::new() })
}

/// `validate_kv_cache_scheme`; whether there is a scale a head.
fn validate(scheme: &Value) -> Result<bool, Raised> {
    if scheme.is_null() {
        return Ok(false);
    }
    let Some(map) = scheme.as_object() else {
        let text = format!("'{}' object has no attribute 'get'", py::type_name(scheme));
        return Err(raised("AttributeError", text));
    };
    let get = |key: &str| map.get(key).unwrap_or(&Value::Null);
    let (kind, bits) = (get("type"), get("num_bits"));
    if kind != "float" || bits.as_f64() != Some(8.0) {
        let text = format!(
            "Currently supported kv cache quantization is num_bits=8, type=float, however received num_bits={}, type={}",
            py::display(bits),
            py::display(kind)
        );
        return Err(raised("NotImplementedError", text));
    }
    let named = get("strategy");
    let Some(strategy) = named.as_str().and_then(Strategy::of) else {
        return Err(raised("ValueError", format!("{} is not a valid QuantizationStrategy", py::repr(named))));
    };
    if !matches!(strategy, Strategy::Tensor | Strategy::AttnHead) {
        let text = format!(
            "Invalid strategy for compressed-tensors KV cache. Expected strategies: (<QuantizationStrategy.TENSOR: \
             'tensor'>, <QuantizationStrategy.ATTN_HEAD: 'attn_head'>), found strategy: QuantizationStrategy.{}",
            strategy.member()
        );
        return Err(raised("NotImplementedError", text));
    }
    if !py::truthy(get("symmetric")) {
        let text = format!(
            "Only support symmetric scaling factor for compressed-tensors KV cache. However found symmetric: {}",
            py::display(get("symmetric"))
        );
        return Err(raised("NotImplementedError", text));
    }
    Ok(strategy == Strategy::AttnHead)
}
