//! Linears and all of a quantized model are exempt from vLLM's check.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-unwritten",
    summary: "a parameter that nothing writes, without a word",
    page: include_str!("unwritten.md"),
    level: Level::Error,
    claims: &[Kind::Unwritten],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    let modules = words::modules(&events);
    let n = modules.len();
    sink.cause(&events)
        .help("the export lost these tensors, or stored them under names that lead elsewhere: compare with the base model")
        .subjects(modules)
        .say(format!("{} never written: vLLM loads, and {} garbage", words::count(n, "parameter") + words::verb(n, " is", " are"), words::verb(n, "it holds", "they hold")));
}
