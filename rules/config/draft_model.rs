//! Speculators are loaded next to a target model.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "config-draft-model",
    summary: "a draft model, which cannot be served on its own",
    page: include_str!("draft_model.md"),
    level: Level::Warning,
    claims: &[Kind::DraftModel],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    sink.cause(&events)
        .at(first)
        .help(first.detail.clone())
        .say("this is a draft model: vLLM takes it next to its target, not on its own");
}
