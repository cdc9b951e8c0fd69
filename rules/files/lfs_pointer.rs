//! A clone that was interrupted: vLLM reads the pointer as a header.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "files-lfs-pointer",
    summary: "some shards are Git LFS pointers while others are not",
    page: include_str!("lfs_pointer.md"),
    level: Level::Error,
    claims: &[Kind::PointerAmongShards],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let files: Vec<&str> = events.iter().filter_map(|e| e.file.as_deref()).collect();
    sink.cause(&events)
        .at(first)
        .evidence(
            events
                .iter()
                .filter_map(|e| Some(format!("{}   stands for {}", e.file.as_deref()?, words::bytes(e.bytes))))
                .collect(),
        )
        .help(format!("git lfs pull --include=\"{}\"", files.join(",")))
        .say(format!(
            "{} not the weights but {}",
            words::count(files.len(), "shard") + words::verb(files.len(), " is", " are"),
            words::verb(files.len(), "a Git LFS pointer", "Git LFS pointers")
        ));
}
