//! Some towers may be null, some may not.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "tower-null-config",
    summary: "a multimodal class without the config of its tower",
    page: include_str!("null_config.md"),
    level: Level::Error,
    claims: &[Kind::TowerConfigMissing],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    for event in sink.events(plan) {
        let pointer = event.pointer.clone().unwrap_or_default();
        sink.cause(&[event])
            .key("config.json", &pointer)
            .help("restore the config of the tower, or name the text architecture for a text-only export")
            .say(format!("`{}` is missing or null, and this class needs it", pointer.trim_start_matches('/')));
    }
}
