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
    let help = if events.iter().all(|e| turned(&e.detail)) {
        "the same sizes in another order: the axes changed places when it was stored; transpose it back"
    } else {
        "a size in config.json (vocabulary, heads, intermediate size) is not that of the files: take both from one export"
    };
    sink.cause(&events)
        .at(first)
        .subjects(words::names(&events))
        .evidence(words::detail_lines(&events))
        .help(help)
        .say(format!(
            "{} another shape than the config asks for",
            words::count(n, "tensor") + words::verb(n, " has", " have")
        ));
}

/// Whether `stored [a, b], parameter [b, a]` has the same sizes on both sides, in another order.
fn turned(detail: &str) -> bool {
    let sizes = |part: &str| -> Option<Vec<u64>> {
        let list = part.split_once('[')?.1.split(']').next()?;
        list.split(", ").map(|n| n.parse().ok()).collect()
    };
    let Some((stored, parameter)) = detail.split_once("parameter") else { return false };
    let (Some(mut a), Some(mut b)) = (sizes(stored), sizes(parameter)) else { return false };
    if a == b {
        return false;
    }
    a.sort_unstable();
    b.sort_unstable();
    a == b
}
