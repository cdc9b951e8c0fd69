//! Extra shards are filtered out without a word.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "index-unlisted-shard",
    summary: "a safetensors file is not in the index, so vLLM does not read it",
    page: include_str!("unlisted_shard.md"),
    level: Level::Warning,
    claims: &[Kind::ShardUnlisted],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let n = events.len();
    let lines = events
        .iter()
        .map(|e| format!("{}   {}", e.file.as_deref().unwrap_or_default(), words::bytes(e.bytes)))
        .collect();
    sink.cause(&events)
        .at(first)
        .subjects(events.iter().filter_map(|e| e.file.as_deref()))
        .evidence(lines)
        .help("remove what is left over, or add its tensors to `weight_map`")
        .say(format!(
            "{} not in the index, so vLLM does not read {} ({})",
            words::count(n, "file") + words::verb(n, " is", " are"),
            words::verb(n, "it", "them"),
            words::size(words::total(&events))
        ));
}
