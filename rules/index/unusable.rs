//! A present index is believed: when it cannot be read, or names nothing, vLLM stops.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "index-unusable",
    summary: "the index cannot be used: not JSON, without `weight_map`, or empty",
    page: include_str!("unusable.md"),
    level: Level::Error,
    claims: &[Kind::IndexBroken],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let why = if first.detail.is_empty() { "it cannot be read" } else { &first.detail };
    sink.cause(&events)
        .file(words::INDEX)
        .evidence(vec![why.to_owned()])
        .help(
            "write the index anew from the shard headers, or remove it: without one, vLLM reads every `*.safetensors`",
        )
        .say("the index of the shards cannot be used");
}
