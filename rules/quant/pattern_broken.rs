//! `re:` with a syntax error.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-pattern-broken",
    summary: "a pattern that Python's `re` does not compile",
    page: include_str!("pattern_broken.md"),
    level: Level::Error,
    claims: &[Kind::PatternBroken],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    for event in sink.events(plan) {
        let file = event.file.as_deref().unwrap_or("config.json");
        let text =
            event.pointer.as_deref().and_then(|p| words::json(cp, file)?.pointer(p)?.as_str()).unwrap_or_default();
        sink.cause(&[event])
            .at(event)
            .label("does not compile")
            .subjects([text])
            .help("what follows `re:` is a Python pattern: `re:.*name.*`, not `re:*name*`")
            .say(words::fit(format!("`{text}` is not a valid pattern"), || "an entry is not a valid pattern".into()));
    }
}
