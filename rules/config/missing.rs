//! Nothing tells vLLM what the folder is.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "config-missing",
    summary: "there is no `config.json`",
    page: include_str!("missing.md"),
    level: Level::Error,
    claims: &[Kind::ConfigMissing],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    sink.cause(&events)
        .help("copy config.json from the base model, or from the tool that exported the weights")
        .say("there is no config.json, so vLLM cannot tell what this is");
}
