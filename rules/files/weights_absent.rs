//! Only an index, or nothing but Git LFS pointers: names can be judged, bytes cannot.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "files-weights-absent",
    summary: "the weights are somewhere else, so only names were checked",
    page: include_str!("weights_absent.md"),
    level: Level::Note,
    claims: &[Kind::WeightsAbsent],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let pointers = cp.shards.iter().filter(|s| s.is_pointer()).count();
    let draft = sink.cause(&events);
    if pointers > 0 {
        return draft
            .help("fetch the weights with `git lfs pull`, or pass `--require-weights` to make this an error")
            .say(format!(
                "{} {}, so only names were checked",
                words::count(pointers, "shard"),
                words::verb(pointers, "is a Git LFS pointer", "are Git LFS pointers")
            ));
    }
    let names: usize = first.detail.parse().unwrap_or(0);
    draft
        .file(words::INDEX)
        .help("dtypes, shapes and sizes need the shards; pass `--require-weights` to make this an error")
        .say(format!("the weights are not here, so only {} of the index were checked", words::count(names, "name")));
}
