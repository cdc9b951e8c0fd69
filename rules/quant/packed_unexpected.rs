//! No quantization config, or no target that reaches the module.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-packed-unexpected",
    summary: "quantized tensors for a module that vLLM builds plain",
    page: include_str!("packed_unexpected.md"),
    level: Level::Error,
    claims: &[Kind::PackedUnexpected],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let modules = words::modules(&events);
    let n = modules.len();
    let stored = words::count(n, "module") + words::verb(n, " is", " are") + " stored quantized, and";
    let draft = sink.cause(&events).evidence(words::tensor_lines(cp, &events)).subjects(modules);
    if plan.method.is_none() {
        return draft
            .key("config.json", "/quantization_config")
            .help(match plan.trace.of(Kind::QuantMethodMissing).next() {
                Some(_) => "the config is there and is not read, for want of a `quant_method`",
                None => "copy `quantization_config` from the tool that quantized the weights into config.json",
            })
            .say(format!("{stored} no quantization config says so"));
    }
    let (file, pointer) = words::scheme_key(plan);
    let never = first.detail == "never quantized";
    let help = if never {
        "this class builds the module without a quantization config: store it in 16 bit"
    } else {
        "add a target that reaches it, by vLLM's name or class"
    };
    let why = if never { "this class never quantizes" } else { "no target reaches" };
    draft
        .key(&file, &pointer)
        .label(format!("nothing here reaches `{}`", first.module.as_deref().unwrap_or_default()))
        .help(help)
        .say(format!("{stored} {why} {}", words::verb(n, "it", "them")));
}
