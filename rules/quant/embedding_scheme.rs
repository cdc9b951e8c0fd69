//! Embeddings take weight-only integers in groups or channels, and only under a target of their class.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-embedding-scheme",
    summary: "a packed embedding or head that vLLM cannot take there",
    page: include_str!("embedding_scheme.md"),
    level: Level::Error,
    claims: &[Kind::EmbeddingScheme],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let modules = words::modules(&events);
    let (file, pointer) = words::scheme_key(plan);
    let stored = first.tensor.is_some();
    let n = modules.len();
    let what = if n == 1 { "an embedding or head".to_owned() } else { format!("{n} embeddings or heads") };
    let draft = sink.cause(&events).key(&file, &pointer).evidence(words::tensor_lines(cp, &events)).subjects(modules);
    if stored {
        draft
            .label("no target takes it")
            .help("add a group with the targets \"Embedding\" or \"ParallelLMHead\" (weights only, int, group or channel), or store it in 16 bit")
            .say(format!("{what} {} stored quantized, and no target takes {}", words::verb(n, "is", "are"), words::verb(n, "it", "them")));
    } else {
        draft
            .label("reaches an embedding")
            .help("embeddings take weight-only int, group or channel: give them a group of their own, or list them in `ignore`")
            .say(format!("{what} cannot take the scheme that a target gives {}", words::verb(n, "it", "them")));
    }
}
