//! Weights without the words they were trained on.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;

pub(super) static RULE: Rule = Rule {
    name: "serve-no-tokenizer",
    summary: "the folder holds no vocabulary for its tokenizer",
    page: include_str!("no_tokenizer.md"),
    level: Level::Warning,
    claims: &[],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, _: &Plan, sink: &mut Sink) {
    // Remote code may bring a vocabulary under any name.
    let own = cp.config.get().is_some_and(|c| c.value.get("auto_map").is_some());
    if !super::dressed(cp) || super::vocabulary(cp) || own {
        return;
    }
    sink.fact()
        .help("copy tokenizer.json (or tokenizer.model) from the base model, or pass `--tokenizer`")
        .say("no tokenizer.json, tokenizer.model or other vocabulary: vLLM cannot start its tokenizer");
}
