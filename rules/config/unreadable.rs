//! Cut, commented, or a Git LFS pointer.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "config-unreadable",
    summary: "`config.json` is not a JSON object",
    page: include_str!("unreadable.md"),
    level: Level::Error,
    claims: &[Kind::ConfigBroken],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    sink.cause(&events)
        .file("config.json")
        .evidence(if first.detail.is_empty() { Vec::new() } else { vec![first.detail.clone()] })
        .help("mend the JSON: no comments, no trailing commas, UTF-8")
        .say("config.json cannot be read as a JSON object");
}
