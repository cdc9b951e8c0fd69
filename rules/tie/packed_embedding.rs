//! A tied head borrows `.weight`, and a packed embedding has none.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "tie-packed-embedding",
    summary: "the head is tied to an embedding that is packed",
    page: include_str!("packed_embedding.md"),
    level: Level::Error,
    claims: &[Kind::TiedToPacked],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    sink.cause(&events)
        .key("config.json", "/tie_word_embeddings")
        .label("tied to an embedding that a target packs")
        .subjects(words::modules(&events))
        .help("keep the embedding plain (no `Embedding` target), or set `tie_word_embeddings` to false and ship a head, packed or plain")
        .say("the head is tied to an embedding that has no plain weight");
}
