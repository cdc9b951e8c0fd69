//! Not in the registry, and no Transformers fallback either.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "config-unknown-architecture",
    summary: "vLLM does not know the architecture",
    page: include_str!("unknown_architecture.md"),
    level: Level::Error,
    claims: &[Kind::ArchitectureUnknown],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let named = words::json(cp, "config.json").and_then(|c| c.pointer("/architectures/0")?.as_str()).unwrap_or("?");
    sink.cause(&events)
        .at(first)
        .label("not in the registry of this vLLM")
        .subjects([named])
        .help("check the spelling against the base model; a class newer than this vLLM needs a newer vLLM")
        .say(words::fit(format!("vLLM does not know the architecture `{named}`"), || {
            "vLLM does not know this architecture".into()
        }));
}
