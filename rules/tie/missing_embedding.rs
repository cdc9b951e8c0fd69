//! With a head in the files or without: the embedding stays as allocated.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "tie-missing-embedding",
    summary: "nothing writes the embedding",
    page: include_str!("missing_embedding.md"),
    level: Level::Error,
    claims: &[Kind::EmbeddingMissing],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let name = first.module.clone().unwrap_or_default();
    let draft = sink.cause(&events).key("config.json", "/tie_word_embeddings").subjects([name]);
    if let Some(head) = &first.tensor {
        return draft
            .help(format!("store the embedding under its own name; of tied weights vLLM skips `{head}`"))
            .say("the tied weight is stored as the head only, and vLLM skips the head");
    }
    draft.help("store the embedding; a head alone does not fill it, tied or not").say("no tensor writes the embedding");
}
