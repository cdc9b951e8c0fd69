//! compressed-tensors validates its own models, and forbids unknown keys; the other methods ask for keys of theirs.

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
        let said = event.error.as_ref().map_or("", |e| e.text.as_str());
        let help = match plan.method.as_deref() {
            _ if said.contains("is deprecated") => {
                "`--allow-deprecated-quantization` lets vLLM take it, for now: quantize anew before the method is gone"
            }
            _ if said.starts_with("Unknown ModelOpt quant algo") => {
                "vLLM knows FP8 and NVFP4 in this layout: put the rest into config.json, with `quant_method`, `quant_algo` and `ignore`"
            }
            Some(method) if plan.quant_place.is_some() && method.starts_with("modelopt") => {
                "compare with the config that ModelOpt wrote, or export with a version of it that this vLLM knows"
            }
            None | Some("compressed-tensors") => {
                "configs of newer tools carry keys that this vLLM does not know: remove the key, or use an image with a newer compressed-tensors"
            }
            Some(_) => "vLLM's message says what it asks for: take the config as the tool wrote it, whole",
        };
        sink.cause(&[event]).key(file, &pointer).label("rejected here").help(help).say(match name {
            "" => "vLLM rejects the quantization config".into(),
            name => words::fit(format!("vLLM rejects `{name}` of the quantization config"), || {
                "vLLM rejects a part of the quantization config".into()
            }),
        });
    }
}
