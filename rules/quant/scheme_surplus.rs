//! The files were made with other arguments than the config says.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-scheme-surplus",
    summary: "a stored tensor that the scheme has no parameter for",
    page: include_str!("scheme_surplus.md"),
    level: Level::Error,
    claims: &[Kind::SchemeSurplus],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    for (name, group) in words::groups(&events, |e| e.detail.split('\t').next().unwrap_or_default().to_owned()) {
        let help = match name.as_str() {
            n if n.ends_with("zero_point") => {
                "the weights have zero points: set `symmetric` to false, or drop them if they are all zero"
            }
            n if n.ends_with("input_scale") => {
                "the activations have a stored scale: `input_activations` must be static, or the scale goes"
            }
            n if n.ends_with("g_idx") => {
                "the weights were ordered by activation: vLLM's scheme has no `weight_g_idx`, quantize with `actorder: weight` or null"
            }
            _ => "quantization config and tensors come from different runs: take both from one",
        };
        let (file, pointer) = words::scheme_key(plan);
        let n = group.len();
        sink.cause(&group)
            .key(&file, &pointer)
            .label(format!("makes no `{name}`"))
            .subjects(words::names(&group))
            .evidence(words::tensor_lines(cp, &group))
            .help(help)
            .say(format!(
                "{} {} no parameter in the scheme",
                words::count(n, &format!("`{name}` tensor")),
                words::verb(n, "has", "have")
            ));
    }
}
