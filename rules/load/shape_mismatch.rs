//! What vLLM compares, it refuses; what it narrows, it cuts (`load-cut-tensor`).

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-shape-mismatch",
    summary: "a tensor whose shape is not that of its parameter",
    page: include_str!("shape_mismatch.md"),
    level: Level::Error,
    claims: &[Kind::ShapeMismatch],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let n = events.len();
    sink.cause(&events)
        .at(first)
        .subjects(words::names(&events))
        .evidence(words::detail_lines(&events))
        .help("a size in config.json (vocabulary, heads, intermediate size) is not that of the files: take both from one export")
        .say(format!("{} another shape than the config asks for", words::count(n, "tensor") + words::verb(n, " has", " have")));
}
