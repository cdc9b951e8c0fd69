//! `architectures` is missing, null or empty.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "config-no-architecture",
    summary: "the config names no architecture",
    page: include_str!("no_architecture.md"),
    level: Level::Error,
    claims: &[Kind::NoArchitecture],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    sink.cause(&events)
        .key("config.json", "/architectures")
        .help("add `\"architectures\": [\"…\"]` with the class name of the base model")
        .say("config.json names no architecture");
}
