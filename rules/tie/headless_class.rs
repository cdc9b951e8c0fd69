//! Classes that compute logits from the embedding refuse any head.

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "tie-headless-class",
    summary: "a head is stored, and the class has no module for it",
    page: include_str!("headless_class.md"),
    level: Level::Error,
    claims: &[Kind::HeadWithoutModule],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let names: Vec<String> = words::names(&events).into_iter().map(str::to_owned).collect();
    sink.cause(&events)
        .at(first)
        .subjects(names.clone())
        .evidence(words::tensor_lines(cp, &events))
        .help("drop the head from the shards: this class takes its logits from the embedding, or knows the head by another name")
        .fix(Fix::DropTensors { names })
        .say("the class has no place for the stored head");
}
