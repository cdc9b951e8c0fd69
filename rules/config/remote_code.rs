//! A config class that comes with the checkpoint.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "config-remote-code",
    summary: "the config class is code of the checkpoint, and vLLM cannot run it",
    page: include_str!("remote_code.md"),
    level: Level::Error,
    claims: &[Kind::RemoteCode, Kind::RemoteCodeMissing],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    for event in sink.events(plan) {
        let draft = sink.cause(&[event]).at(event);
        if event.kind == Kind::RemoteCode {
            draft
                .label("neither transformers nor vLLM has this class")
                .help("read the code, then serve with `--trust-remote-code`")
                .say("the config class is code of the checkpoint, and the run does not trust it");
        } else {
            draft
                .label("names code that is not here")
                .subjects([event.detail.clone()])
                .help("copy the file from the base model")
                .say("`auto_map` names a config class whose file the folder does not hold");
        }
    }
}
