//! Parts of a model, by the words that are standard in names.

use schemars::JsonSchema;
use serde::Serialize;

/// A part of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Layers of the language model, without routed experts.
    Layers,
    /// Routed experts.
    Experts,
    /// Embeddings of the language model.
    Embedding,
    /// The head.
    Head,
    /// The vision tower.
    Vision,
    /// The audio tower.
    Audio,
    /// What brings the output of a tower into the language model.
    Projector,
    /// Scales, zero points and other parameters of a quantization method.
    Quantization,
    /// Everything else, such as the last norm.
    Other,
}

impl Part {
    /// In the order of a report.
    pub(super) const ALL: [Part; 9] = [
        Part::Layers,
        Part::Experts,
        Part::Embedding,
        Part::Head,
        Part::Vision,
        Part::Audio,
        Part::Projector,
        Part::Quantization,
        Part::Other,
    ];

    /// In one word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Part::Layers => "layers",
            Part::Experts => "experts",
            Part::Embedding => "embedding",
            Part::Head => "head",
            Part::Vision => "vision",
            Part::Audio => "audio",
            Part::Projector => "projector",
            Part::Quantization => "quantization",
            Part::Other => "other",
        }
    }

    /// The part that a name belongs to.
    pub(super) fn of(name: &str) -> Part {
        const PROJECTORS: [&str; 7] = [
            "multi_modal_projector",
            "mm_projector",
            "multimodal_projector",
            "embed_vision",
            "embed_audio",
            "audio_projector",
            "vision_projector",
        ];
        const EMBEDDINGS: [&str; 8] = [
            "embed_tokens",
            "embed_tokens_per_layer",
            "wte",
            "wpe",
            "word_embeddings",
            "tok_embeddings",
            "embed_in",
            "embeddings",
        ];
        // Deep names are made up; a limit keeps them cheap.
        let words = || name.split('.').take(16);
        if words().any(|w| PROJECTORS.contains(&w)) {
            return Part::Projector;
        }
        let tower = words().find_map(|w| match w {
            "visual" | "vpm" | "vit" => Some(Part::Vision),
            w if w.starts_with("vision_") || w.starts_with("image_") => Some(Part::Vision),
            "apm" => Some(Part::Audio),
            w if w.starts_with("audio_") || w.starts_with("speech_") => Some(Part::Audio),
            _ => None,
        });
        if let Some(tower) = tower {
            return tower;
        }
        if words().any(|w| w == "experts") {
            return Part::Experts;
        }
        if words().any(|w| matches!(w, "lm_head" | "embed_out")) || name.starts_with("output.") {
            return Part::Head;
        }
        let numbered = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_digit());
        let layers = |w: &str| matches!(w, "layers" | "h" | "blocks" | "block");
        if words().zip(words().skip(1)).any(|(w, next)| layers(w) && numbered(next)) {
            return Part::Layers;
        }
        if words().any(|w| EMBEDDINGS.contains(&w)) { Part::Embedding } else { Part::Other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_known_models() {
        for (name, part) in [
            ("model.layers.0.mlp.down_proj.weight", Part::Layers),
            ("model.layers.3.mlp.experts.7.down_proj.weight", Part::Experts),
            ("model.layers.3.mlp.shared_experts.down_proj.weight", Part::Layers),
            ("model.language_model.embed_tokens.weight", Part::Embedding),
            ("lm_head.weight", Part::Head),
            ("model.embed_vision.embedding_projection.weight", Part::Projector),
            ("model.vision_tower.encoder.layers.0.mlp.down_proj.linear.weight", Part::Vision),
            ("model.audio_tower.layers.0.norm_out.weight", Part::Audio),
            ("visual.blocks.0.attn.qkv.weight", Part::Vision),
            ("model.norm.weight", Part::Other),
            ("", Part::Other),
        ] {
            assert_eq!(Part::of(name), part, "{name}");
        }
    }
}
