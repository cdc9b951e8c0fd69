//! compressed-tensors validates its own models, and forbids unknown keys.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-config-rejected",
    summary: "vLLM rejects a key or value of the quantization config",
    page: include_str!("config_rejected.md"),
    level: Level::Error,
    claims: &[Kind::QuantConfigRejected],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    for event in sink.events(plan) {
        let file = event.file.as_deref().unwrap_or("config.json");
        let pointer = event.pointer.clone().unwrap_or_default();
        let name = pointer.rsplit('/').next().unwrap_or_default();
        sink.cause(&[event])
            .key(file, &pointer)
            .label("rejected here")
            .help("configs of newer tools carry keys that this vLLM does not know: remove the key, or use an image with a newer compressed-tensors")
            .say(words::fit(format!("vLLM rejects `{name}` of the quantization config"), || "vLLM rejects a part of the quantization config".into()));
    }
}
