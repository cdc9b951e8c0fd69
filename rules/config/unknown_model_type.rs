//! The config class is chosen by `model_type`.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "config-unknown-model-type",
    summary: "`model_type` is missing or unknown to transformers",
    page: include_str!("unknown_model_type.md"),
    level: Level::Error,
    claims: &[Kind::ModelTypeUnknown],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    let named = words::json(cp, "config.json").and_then(|c| c.get("model_type")?.as_str());
    let draft = sink.cause(&events).key("config.json", "/model_type");
    let draft = draft.label(if named.is_some() { "no config class of this name" } else { "no `model_type` in here" });
    match named {
        Some(t) => draft
            .help("check the spelling; a model newer than the transformers of your image needs a newer image")
            .say(words::fit(format!("transformers does not know the model type `{t}`"), || {
                "transformers does not know this model type".into()
            })),
        None => draft.help("add the `model_type` of the base model").say("config.json names no `model_type`"),
    }
}
