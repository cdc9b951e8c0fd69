//! The towers were cut off, and `architectures` still names the class that has them.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "tower-foreign-config",
    summary: "a multimodal architecture over the config of a language model",
    page: include_str!("foreign_config.md"),
    level: Level::Error,
    claims: &[Kind::ForeignConfig],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    for event in sink.events(plan) {
        let help = match &event.module {
            Some(class) => format!(
                "for the language model alone, set `\"architectures\": [\"{class}\"]`; else restore the config of the whole model"
            ),
            None => "name the class that fits the config, or restore the config of the whole model".to_owned(),
        };
        sink.cause(&[event]).key("config.json", "/architectures").help(help).say(event.detail.clone());
    }
}
