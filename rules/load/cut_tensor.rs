//! Narrowing in column and row layers never complains about what is left over.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-cut-tensor",
    summary: "a tensor of which vLLM takes only a part, without a word",
    page: include_str!("cut_tensor.md"),
    level: Level::Error,
    claims: &[Kind::Cut],
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
        .help("a size or group size in config.json is smaller than that of the files: take both from one export")
        .say(format!(
            "{} larger than {} place, and vLLM cuts {} without a word",
            words::count(n, "tensor") + words::verb(n, " is", " are"),
            words::verb(n, "its", "their"),
            words::verb(n, "it", "them")
        ));
}
