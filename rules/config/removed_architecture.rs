//! The registry remembers what it once had.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "config-removed-architecture",
    summary: "vLLM dropped the architecture in an earlier version",
    page: include_str!("removed_architecture.md"),
    level: Level::Error,
    claims: &[Kind::ArchitectureRemoved],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    sink.cause(&events)
        .at(first)
        .label("no longer in vLLM")
        .help("serve it with the last vLLM version that had it: the message names it")
        .say("vLLM no longer has this architecture");
}
