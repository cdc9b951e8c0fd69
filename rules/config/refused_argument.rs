//! `--load-format`, `--quantization` and the like, against the config.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "config-refused-argument",
    summary: "an argument of the run is one that vLLM refuses",
    page: include_str!("refused_argument.md"),
    level: Level::Error,
    claims: &[Kind::ArgumentRefused],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    for event in sink.events(plan) {
        sink.cause(&[event])
            .at(event)
            .help("leave the argument out, or give the value that the config names")
            .say("vLLM refuses an argument of this run");
    }
}
