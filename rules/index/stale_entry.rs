//! Loaded all the same: a stale index over renamed or re-sharded files.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "index-stale-entry",
    summary: "a shard holds tensors that the index does not place there",
    page: include_str!("stale_entry.md"),
    level: Level::Warning,
    claims: &[Kind::IndexStale],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    for (detail, group) in words::groups(&events, |e| e.detail.clone()) {
        let Some(first) = group.first() else { continue };
        let key = first.tensor.as_deref().and_then(|t| words::index_key(cp, t));
        let n = group.len();
        sink.cause(&group)
            .key(words::INDEX, key.as_deref().unwrap_or_default())
            .subjects(words::names(&group))
            .evidence(words::tensor_lines(cp, &group))
            .help("write the index anew from the shard headers: vLLM loads by file, transformers and others by name")
            .say(words::fit(
                format!(
                    "{} stored otherwise than the index says ({detail})",
                    words::count(n, "tensor") + words::verb(n, " is", " are")
                ),
                || {
                    format!(
                        "{} stored otherwise than the index says",
                        words::count(n, "tensor") + words::verb(n, " is", " are")
                    )
                },
            ));
    }
}
