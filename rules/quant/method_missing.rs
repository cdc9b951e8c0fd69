//! vLLM then treats the model as unquantized.

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-method-missing",
    summary: "a quantization config without `quant_method`",
    page: include_str!("method_missing.md"),
    level: Level::Warning,
    claims: &[Kind::QuantMethodMissing],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    for event in sink.events(plan) {
        let file = event.file.clone().unwrap_or_else(|| "config.json".into());
        let pointer = event.pointer.clone().unwrap_or_default();
        let groups = words::json(cp, &file).and_then(|j| j.pointer(&format!("{pointer}/config_groups"))).is_some();
        let method = if groups { "compressed-tensors" } else { "…" };
        // MLX writes its parameters twice, under both names, and no method.
        let mlx = words::json(cp, &file).is_some_and(|j| j.pointer("/quantization/bits").is_some());
        let help = if mlx {
            "this is an MLX export, and vLLM has no method for it: serve the original model".to_owned()
        } else {
            format!("add `\"quant_method\": \"{method}\"`")
        };
        let draft = sink.cause(&[event]).at(event).label("no `quant_method` in here").help(help);
        let draft = if groups {
            draft.fix(Fix::Set { file, pointer: format!("{pointer}/quant_method"), value: method.into() })
        } else {
            draft
        };
        draft.say("the quantization config names no `quant_method`, so vLLM loads the model as unquantized");
    }
}
