//! Dropped without a word: bytes that are downloaded and never used.

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "tower-leftover-tensors",
    summary: "tensors of a tower that vLLM does not build",
    page: include_str!("leftover_tensors.md"),
    level: Level::Warning,
    claims: &[Kind::TowerLeftover],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    for (off, group) in words::groups(&events, |e| e.detail == "disabled") {
        let Some(first) = group.first() else { continue };
        let n = group.len();
        let bytes = words::total(&group);
        let amount = if bytes > 0 { format!(" ({})", words::size(bytes)) } else { String::new() };
        let what = words::count(n, "tower tensor");
        let draft =
            sink.cause(&group).at(first).subjects(words::names(&group)).evidence(words::tensor_lines(cp, &group));
        if off {
            draft.note().say(format!(
                "{what}{amount} {} read and dropped, since towers are off in this run",
                words::verb(n, "is", "are")
            ));
        } else {
            draft
                .help("drop them from the shards, or use the multimodal architecture and config if the tower is wanted")
                .fix(Fix::DropTensors { names: words::names(&group).into_iter().map(str::to_owned).collect() })
                .say(format!(
                    "{what}{amount} {} no module: vLLM drops {}",
                    words::verb(n, "has", "have"),
                    words::verb(n, "it", "them")
                ));
        }
    }
}
