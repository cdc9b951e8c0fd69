//! Group and block sizes must divide the layer.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-scheme-shape",
    summary: "a layer whose sizes do not fit its scheme",
    page: include_str!("scheme_shape.md"),
    level: Level::Error,
    claims: &[Kind::SchemeShape],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    let (file, pointer) = words::scheme_key(plan);
    let modules = words::modules(&events);
    let n = modules.len();
    sink.cause(&events)
        .key(&file, &pointer)
        .label(format!("does not fit {}", words::list(&modules[..1], 80)))
        .subjects(modules)
        .help("put these modules on the ignore list and store them in 16 bit, or quantize with a group size that divides them")
        .say(format!("{} not fit the group or block size of the scheme", words::count(n, "layer") + words::verb(n, " does", " do")));
}
