//! Tied embeddings: which flag counts, and what unties a head (spec B.7; vllm/config/model.py `maybe_untie_word_embeddings`).

use super::Target;
use super::config::{self, Resolved};
use super::registry::Found;
use super::trace::{Effect, Event, Kind, Raised, Stage, Trace};
use super::tree::Tree;
use crate::checkpoint::{Checkpoint, ShardState};
use serde_json::Value;

/// Sets the tie flag as vLLM would, also that of the language models' configs inside. Returns the stored name that untied the head, when one did.
pub fn untie(
    cp: &Checkpoint,
    target: &Target,
    resolved: &mut Resolved,
    raw: &Value,
    found: &Found,
    chain: &[(String, String)],
    trace: &mut Trace,
) -> Option<String> {
    let tied = resolved.tied();
    // `VllmConfig.with_hf_config`: the top level overwrites the language model's config when that is created.
    for (outer, path) in if found.group == "multimodal" { chain } else { &[] } {
        let Some(tied) = resolved.tie_flag(outer) else { continue };
        let pointer = format!("{}/tie_word_embeddings", config::pointer(path));
        if resolved.value.pointer(&config::pointer(path)).is_some_and(Value::is_object)
            && raw.pointer(&pointer).and_then(Value::as_bool).is_some_and(|i| i != tied)
        {
            let mut e = Event::new(Stage::Config, Effect::Keeps, Kind::TieFlagConflict);
            e.file = Some("config.json".into());
            e.pointer = Some(pointer);
            e.detail =
                format!("{tied}\t{}", if raw.get("tie_word_embeddings").is_some() { "written" } else { "default" });
            trace.events.push(e);
        }
    }
    if found.group == "multimodal" {
        resolved.tie_inner(&target.vllm, chain);
    }
    if !tied || matches!(target.load_format.as_str(), "dummy" | "sharded_state" | "runai_streamer_sharded") {
        return None;
    }
    let mut found_in: Option<(String, String, u64)> = None;
    let ends = |name: &str| name.ends_with("lm_head.weight");
    for shard in &cp.shards {
        let (ShardState::Good(h) | ShardState::Broken(_, h)) = &shard.state else { continue };
        for t in h.tensors.iter().filter(|t| ends(&t.name)) {
            let candidate = (t.name.to_string(), shard.file.clone(), t.span.1.saturating_sub(t.span.0));
            // The model's own head first: `lm_head.weight` is shorter than anything that merely ends so.
            if found_in.as_ref().is_none_or(|f| candidate.0.len() < f.0.len()) {
                found_in = Some(candidate);
            }
        }
    }
    let here = cp.shards.iter().any(|s| matches!(s.state, ShardState::Good(_) | ShardState::Broken(..)));
    if found_in.is_none() && !here {
        let map = cp.index.get().and_then(|i| i.weight_map.as_ref());
        found_in = map
            .and_then(|m| m.iter().filter(|n| ends(&n.0)).min_by_key(|n| n.0.len()))
            .map(|n| (n.0.to_string(), n.1.to_string(), 0));
    }
    let (name, file, bytes) = found_in?;
    resolved.untie(chain);
    let mut e = Event::new(Stage::Config, Effect::Keeps, Kind::TiedWithHead);
    e.file = Some(file);
    e.tensor = Some(name.clone());
    e.bytes = bytes;
    trace.events.push(e);
    Some(name)
}

/// `AutoWeightsLoader._check_skipped_aliases`: an alias was skipped and its canonical tensor never came.
pub fn check_skipped(tree: &Tree, skipped: &[(String, String, String)], trace: &mut Trace) {
    for (alias, canonical, cls) in skipped {
        let written = tree.modules.iter().any(|m| {
            m.slots.iter().any(|s| {
                s.count() > 0 && (m.slot_path(s) == *canonical || m.slot_path(s).ends_with(&format!(".{canonical}")))
            })
        });
        if !written {
            let mut e = Event::new(Stage::Load, Effect::Refuses, Kind::EmbeddingMissing);
            e.tensor = Some(alias.clone());
            e.module = Some(canonical.clone());
            e.error = Some(Raised {
                error_type: "ValueError".into(),
                text: format!(
                    "'{alias}' was skipped because it is tied to '{canonical}' in {cls}, but '{canonical}' was not found in the checkpoint, \
                     so the tied weight is uninitialized."
                ),
            });
            trace.events.push(e);
        }
    }
}
