//! Where no other rule says more.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-homeless-tensor",
    summary: "a tensor for which the model has no place",
    page: include_str!("homeless_tensor.md"),
    level: Level::Error,
    claims: &[Kind::NoHome],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let n = events.len();
    sink.cause(&events)
        .at(first)
        .subjects(words::names(&events))
        .evidence(words::tensor_lines(cp, &events))
        .help("rename it to what the class has (the message lists that), or drop it from the shards and the index")
        .say(format!("{} no home in this class", words::count(n, "tensor") + words::verb(n, " has", " have")));
}
