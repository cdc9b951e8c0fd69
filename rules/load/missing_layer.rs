//! The number of layers in the config is larger than in the files.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-missing-layer",
    summary: "a whole layer without a tensor",
    page: include_str!("missing_layer.md"),
    level: Level::Error,
    claims: &[Kind::LayerMissing],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    let key = ["/text_config/num_hidden_layers", "/num_hidden_layers"]
        .into_iter()
        .find(|p| words::json(cp, "config.json").is_some_and(|c| c.pointer(p).is_some()));
    let lines = events
        .iter()
        .map(|e| format!("{}   {} parameters", e.module.as_deref().unwrap_or_default(), e.detail))
        .collect();
    let modules = words::modules(&events);
    let n = modules.len();
    sink.cause(&events)
        .key("config.json", key.unwrap_or_default())
        .label("more than the files have")
        .evidence(lines)
        .help("a shard is missing, or the number of layers is too large")
        .subjects(modules)
        .say(format!("{} without a single tensor", words::count(n, "layer") + words::verb(n, " is", " are")));
}
