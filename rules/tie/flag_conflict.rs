//! The top level wins, even by its default.

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "tie-flag-conflict",
    summary: "`tie_word_embeddings` says one thing at the top and another in `text_config`",
    page: include_str!("flag_conflict.md"),
    level: Level::Warning,
    claims: &[Kind::TieFlagConflict],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    for event in sink.events(plan) {
        let (tied, how) = event.detail.split_once('\t').unwrap_or((&event.detail, "written"));
        let top = if how == "written" {
            format!("the top level says {tied}")
        } else {
            format!("the top level is absent, which means {tied}")
        };
        let inner = tied != "true";
        let draft = sink.cause(&[event]).at(event).label("overwritten by the top level");
        // transformers writes the default of the inner class; where a head is stored for untied ones only, the files say the
        // same as the top level.
        let draft = if inner == head_stored(cp) { draft.note() } else { draft };
        draft
            .help(format!("write `\"tie_word_embeddings\": {inner}` at the top level too, if that is what is meant"))
            .fix(Fix::Set { file: "config.json".into(), pointer: "/tie_word_embeddings".into(), value: inner.into() })
            .say(format!("`text_config.tie_word_embeddings` is {inner} and does not count: {top}"));
    }
}

fn head_stored(cp: &Checkpoint) -> bool {
    let map = cp.index.get().and_then(|i| i.weight_map.as_ref());
    let mut listed = map.into_iter().flatten().map(|m| m.0.as_str());
    cp.tensors().any(|(_, t)| t.name.ends_with("lm_head.weight")) || listed.any(|n| n.ends_with("lm_head.weight"))
}
