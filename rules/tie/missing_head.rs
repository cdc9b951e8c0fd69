//! Heads are exempt from vLLM's check of missing weights.

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "tie-missing-head",
    summary: "the head is not tied, and nothing writes it",
    page: include_str!("missing_head.md"),
    level: Level::Error,
    claims: &[Kind::HeadMissing],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    let key = "/tie_word_embeddings";
    let label = if !words::has(cp, "config.json", key) {
        "no `tie_word_embeddings`, so the class default counts: untied"
    } else {
        "not tied"
    };
    sink.cause(&events)
        .key("config.json", key)
        .label(label)
        .subjects(words::names(&events))
        .help("set `tie_word_embeddings` to true at the top level if the head is the embedding, else store the head")
        .fix(Fix::Set { file: "config.json".into(), pointer: "/tie_word_embeddings".into(), value: true.into() })
        .say("the head is not tied and no tensor writes it: vLLM loads, and answers noise");
}
