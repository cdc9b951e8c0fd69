//! vLLM compares the values of `weight_map` with the folder (`filter_duplicate_safetensors_files`).

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "index-missing-shard",
    summary: "the index names a shard that is not in the folder",
    page: include_str!("missing_shard.md"),
    level: Level::Error,
    claims: &[Kind::ShardMissing],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    let files: Vec<&str> = events.iter().filter_map(|e| e.file.as_deref()).collect();
    let names: usize = events.iter().filter_map(|e| e.detail.parse::<usize>().ok()).sum();
    let map = cp.index.get().and_then(|i| i.weight_map.as_deref()).unwrap_or_default();
    let first = map.iter().find(|m| files.contains(&m.1.as_str())).and_then(|m| words::index_key(cp, &m.0));
    let lines =
        events.iter().map(|e| format!("{}   {} tensors", e.file.as_deref().unwrap_or_default(), e.detail)).collect();
    sink.cause(&events)
        .key(words::INDEX, first.as_deref().unwrap_or_default())
        .label("not in the folder")
        .subjects(files.iter().copied())
        .evidence(lines)
        .help("copy the missing files, or write the index anew from the shards that are here")
        .say(format!(
            "{} that the index names {} not here ({})",
            words::count(files.len(), "shard"),
            words::verb(files.len(), "is", "are"),
            words::count(names, "tensor")
        ));
}
