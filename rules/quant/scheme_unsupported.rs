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
    let help = match plan.method.as_deref() {
        Some("quark") => {
            "vLLM's schemes for Quark are FP8 and INT8 by tensor or channel, FP8 in blocks of 128, and OCP MX in groups of 32"
        }
        Some(method) if method.starts_with("modelopt") => {
            "give each of these modules one `quant_algo`, the same for all shards of a fused layer"
        }
        _ => {
            "check `format` first: `pack-quantized` is for integer weights without activations, `float-quantized` and `int-quantized` for 8 bit"
        }
    };
    sink.cause(&events)
        .key(&file, &pointer)
        .label("no scheme for this combination")
        .subjects(modules)
        .help(help)
        .say(format!("vLLM has no scheme for the quantization of {}", words::count(n, "module")));
}
