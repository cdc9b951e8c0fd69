//! A `weight_map` value such as `../x.safetensors` or `/x.safetensors`; ckpt-lint never follows it.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "index-escaping-path",
    summary: "the index names a file outside the folder",
    page: include_str!("escaping_path.md"),
    level: Level::Error,
    claims: &[Kind::IndexEscapes],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    let files: Vec<&str> = events.iter().filter_map(|e| e.file.as_deref()).collect();
    let map = cp.index.get().and_then(|i| i.weight_map.as_deref()).unwrap_or_default();
    let first = map.iter().find(|m| files.contains(&m.1.as_str())).and_then(|m| words::index_key(cp, &m.0));
    sink.cause(&events)
        .key(words::INDEX, first.as_deref().unwrap_or_default())
        .label("leaves the folder")
        .subjects(files.iter().copied())
        .help("name files at the top of the folder only")
        .say(format!("the index names {} outside the folder", words::count(files.len(), "file")));
}
