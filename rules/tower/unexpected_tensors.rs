//! A text class, or a tower under another name.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "tower-unexpected-tensors",
    summary: "tensors of a tower that the class refuses",
    page: include_str!("unexpected_tensors.md"),
    level: Level::Error,
    claims: &[Kind::TowerUnexpected],
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
        .help("cut the tower out of the shards, or name the multimodal architecture (with its `vision_config`) in config.json")
        .say(format!("{} {} no place in this class", words::count(n, "tower tensor"), words::verb(n, "has", "have")));
}
