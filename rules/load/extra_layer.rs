//! The number of layers in the config is smaller than in the files.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-extra-layer",
    summary: "tensors of a layer that the config does not have",
    page: include_str!("extra_layer.md"),
    level: Level::Error,
    claims: &[Kind::ExtraLayer],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let count = first.detail.split('\t').nth(1).unwrap_or("?");
    let key = ["/text_config/num_hidden_layers", "/num_hidden_layers"]
        .into_iter()
        .find(|p| words::json(cp, "config.json").is_some_and(|c| c.pointer(p).is_some()));
    let n = events.len();
    sink.cause(&events)
        .key("config.json", key.unwrap_or_default())
        .label(format!("makes {count}"))
        .subjects(words::names(&events))
        .evidence(words::tensor_lines(cp, &events))
        .help("correct the number of layers, or drop the layers (and the index entries) beyond it")
        .say(format!(
            "{} in layers beyond the {count} that the config has",
            words::count(n, "tensor") + words::verb(n, " lies", " lie")
        ));
}
