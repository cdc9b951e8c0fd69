//! What the safetensors crate would refuse, with the numbers that it does not give.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "header-broken",
    summary: "a shard whose header or length is defective",
    page: include_str!("broken.md"),
    level: Level::Error,
    claims: &[Kind::HeaderBroken],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    for (file, group) in words::groups(&events, |e| e.file.clone().unwrap_or_default()) {
        let size = cp.shard(&file).map_or(0, |s| s.size);
        let mut lines: Vec<String> = group.iter().map(|e| e.detail.clone()).collect();
        lines.push(format!("{file} has {}", words::bytes(size)));
        sink.cause(&group)
            .file(&file)
            .evidence(lines)
            .help("copy or download the file again and compare its size and hash; if it was written like this, export it again")
            .say(words::fit(format!("`{file}` is not a valid safetensors file"), || "a shard is not a valid safetensors file".into()));
    }
}
