//! Schemes that vLLM has on one kind of GPU alone.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-one-device",
    summary: "a scheme that vLLM has on one kind of GPU alone",
    page: include_str!("one_device.md"),
    level: Level::Note,
    claims: &[Kind::DeviceOnly],
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
        .subjects(modules)
        .help("deploy it on H100, H200 or GH200; elsewhere vLLM stops with `No compressed-tensors compatible scheme was found`")
        .say(format!(
            "{} have 4-bit weights with FP8 activations, which vLLM takes on compute capability 9.0 alone",
            words::count(n, "module")
        ));
}
