//! Bits, type, strategy and format in a combination without a kernel.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-scheme-unsupported",
    summary: "no scheme of vLLM's fits the quantization arguments",
    page: include_str!("scheme_unsupported.md"),
    level: Level::Error,
    claims: &[Kind::SchemeUnsupported],
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
        .label("no scheme for this combination")
        .subjects(modules)
        .help("check `format` first: `pack-quantized` is for integer weights without activations, `float-quantized` and `int-quantized` for 8 bit")
        .say(format!("vLLM has no scheme for the quantization of {}", words::count(n, "module")));
}
