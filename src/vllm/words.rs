//! The vocabulary of checkpoint names: towers, quantization parameters, wrapper prefixes.

/// Name components under which vision and audio towers, their projectors and embedders live.
const TOWERS: [&str; 16] = [
    "vision_tower",
    "audio_tower",
    "embed_vision",
    "embed_audio",
    "vision_embedder",
    "vision_model",
    "visual",
    "audio_model",
    "multi_modal_projector",
    "mm_projector",
    "vision_encoder",
    "image_newline",
    "audio_encoder",
    "vision_projection",
    "speech_encoder",
    "vision",
];

/// Whether a tensor name lies in a tower.
pub fn is_tower_name(name: &str) -> bool {
    tower_of(name).is_some()
}

/// The tower component of a name.
pub fn tower_of(name: &str) -> Option<&'static str> {
    // A tower is one of the first components: `model.visual.blocks…`, `model.language_model…` never is.
    name.split('.').take(3).find_map(|c| TOWERS.iter().find(|t| **t == c).copied())
}

/// Whether a parameter name only occurs on quantized modules.
pub fn is_quant_parameter(name: &str) -> bool {
    matches!(
        name,
        "weight_packed"
            | "weight_scale"
            | "weight_zero_point"
            | "weight_shape"
            | "weight_g_idx"
            | "weight_scale_inv"
            | "weight_scale_2"
            | "weight_global_scale"
            | "input_scale"
            | "input_global_scale"
            | "output_scale"
            | "input_zero_point"
            | "qweight"
            | "qzeros"
            | "scales"
            | "g_idx"
            | "activation_scale"
            | "scale"
            | "SCB"
            | "absmax"
    )
}

/// Prefixes that training wrappers leave on every name.
pub fn wrapper_prefix(name: &str) -> Option<&'static str> {
    ["base_model.model.", "_orig_mod.", "module.", "model.model.", "_fsdp_wrapped_module.", "transformer.model."]
        .into_iter()
        .find(|p| name.starts_with(p))
}
