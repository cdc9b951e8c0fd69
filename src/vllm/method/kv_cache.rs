//! `BaseKVCacheMethod` (vllm/model_executor/layers/quantization/kv_cache.py): scales that have a default.

use super::params::unread;
use super::{Built, Element, Layer, Load};

/// What an attention layer gets from every method but compressed-tensors.
pub(super) fn build(layer: &Layer<'_>) -> Built {
    // `isinstance(layer, Attention)` does not hold for multi-head latent attention.
    if layer.class.starts_with("MLA") {
        return Built::Plain { entry: None };
    }
    let scale = |name| unread(name, &[], Element::F32, Load::Scalar);
    Built::Quantized {
        scheme: "KV cache".into(),
        params: ["q_scale", "k_scale", "v_scale", "prob_scale"].map(scale).to_vec(),
        nones: Vec::new(),
    }
}
