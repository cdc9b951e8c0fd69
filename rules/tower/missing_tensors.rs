//! Unquantized models are refused at the end, quantized ones run with noise.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::{Effect, Kind};

pub(super) static RULE: Rule = Rule {
    name: "tower-missing-tensors",
    summary: "the config has a tower for which no tensor is stored",
    page: include_str!("missing_tensors.md"),
    level: Level::Error,
    claims: &[Kind::TowerMissing],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    for event in events {
        let tower = event.module.clone().unwrap_or_default();
        let part = if tower.contains("audio") { "/audio_config" } else { "/vision_config" };
        let parameters = event.detail.parse().unwrap_or(0);
        let text =
            if event.effect == Effect::Refuses { "vLLM refuses it at the end of loading" } else { "vLLM says nothing" };
        sink.cause(&[event])
            .key("config.json", part)
            .label("builds a tower")
            .subjects([tower.clone()])
            .help("set this config to null if the class allows it, use the text architecture, or serve with `--language-model-only`")
            .say(words::fit(
                format!("no tensor for `{tower}` ({}): {text}", words::count(parameters, "parameter")),
                || format!("no tensor for a tower of {}: {text}", words::count(parameters, "parameter")),
            ));
    }
}
