//! `consolidated*.safetensors` anywhere below flips `auto` to `mistral`, whose glob looks at the top only.

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::{Effect, Kind};

pub(super) static RULE: Rule = Rule {
    name: "files-stray-consolidated",
    summary: "a `consolidated*.safetensors` changes which files vLLM reads",
    page: include_str!("stray_consolidated.md"),
    level: Level::Warning,
    claims: &[Kind::Consolidated],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    for event in sink.events(plan) {
        let file = event.file.clone().unwrap_or_default();
        let message = if event.effect == Effect::Refuses {
            format!("`{file}` makes vLLM look for consolidated weights at the top only, and there are none")
        } else {
            format!("`{file}` makes vLLM ignore the other shards")
        };
        let message = words::fit(message, || "a consolidated file makes vLLM ignore the other shards".into());
        sink.cause(&[event])
            .file(&file)
            .help(format!("remove `{file}`, or serve with `--load-format hf`"))
            .fix(Fix::DeleteFile { file: file.clone() })
            .say(message);
    }
}
