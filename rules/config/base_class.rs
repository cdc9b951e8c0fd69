//! Without `architectures`, vLLM takes the base class of the model type, which has no head.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "config-base-class",
    summary: "no architecture is named, so vLLM serves embeddings instead of text",
    page: include_str!("base_class.md"),
    level: Level::Warning,
    claims: &[Kind::BaseClass],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let help = match &first.module {
        Some(class) => format!("to generate text, add `\"architectures\": [\"{class}\"]` to config.json"),
        None => "copy `architectures` from the base model".to_owned(),
    };
    sink.cause(&events).key("config.json", "/architectures").help(help).say(format!(
        "config.json names no architecture: vLLM takes {}, a pooling model that cannot generate text",
        first.detail
    ));
}
