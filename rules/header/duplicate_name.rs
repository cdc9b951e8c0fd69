//! JSON allows it, the crate keeps the last: two tensors, one of which nobody will ever see.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;

pub(super) static RULE: Rule = Rule {
    name: "header-duplicate-name",
    summary: "a tensor name occurs twice in one header",
    page: include_str!("duplicate_name.md"),
    level: Level::Warning,
    claims: &[],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, _: &Plan, sink: &mut Sink) {
    for shard in &cp.shards {
        let Some(header) = shard.header().filter(|h| !h.duplicates.is_empty()) else { continue };
        let names = &header.duplicates;
        sink.fact()
            .file(&shard.file)
            .subjects(names.iter().cloned())
            .help("export the shard again: readers keep the last entry and never see the first")
            .say(format!(
                "{} {} twice in the header",
                words::count(names.len(), "name"),
                words::verb(names.len(), "occurs", "occur")
            ));
    }
}
