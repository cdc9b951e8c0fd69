//! One of q, k, v is missing; or experts are.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-half-written",
    summary: "a fused parameter of which parts stay unwritten",
    page: include_str!("half_written.md"),
    level: Level::Error,
    claims: &[Kind::HalfWritten],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    let lines =
        events.iter().map(|e| format!("{}   without {}", e.module.as_deref().unwrap_or_default(), e.detail)).collect();
    let modules = words::modules(&events);
    let n = modules.len();
    sink.cause(&events)
        .evidence(lines)
        .help("restore the missing parts: vLLM counts a fused parameter as loaded once one part has come")
        .subjects(modules)
        .say(format!(
            "{} written in part only: vLLM loads, and the rest is garbage",
            words::count(n, "fused parameter") + words::verb(n, " is", " are")
        ));
}
