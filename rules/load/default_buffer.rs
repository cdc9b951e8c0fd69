//! Buffers are never checked.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-default-buffer",
    summary: "a persistent buffer that keeps its default",
    page: include_str!("default_buffer.md"),
    level: Level::Error,
    claims: &[Kind::BufferDefault],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    let modules = words::modules(&events);
    let n = modules.len();
    sink.cause(&events)
        .help("restore the buffers from the base model: exports of parameters alone lose them")
        .subjects(modules)
        .say(format!(
            "{} no stored value and {} default",
            words::count(n, "buffer") + words::verb(n, " has", " have"),
            words::verb(n, "keeps its", "keep their")
        ));
}
