//! vLLM copies with `copy_`, which casts anything into anything.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-meaning-lost-cast",
    summary: "a stored dtype that loses its meaning in the parameter",
    page: include_str!("meaning_lost_cast.md"),
    level: Level::Error,
    claims: &[Kind::Cast],
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
        .help("the tensor is quantized and the module is not, or the reverse: make config and files agree")
        .say(format!(
            "{} cast into another kind of number without a word",
            words::count(n, "tensor") + words::verb(n, " is", " are")
        ));
}
