//! vLLM ignores the tensor level of the index; other loaders do not.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "index-ghost-tensor",
    summary: "the index lists a tensor that its shard does not hold",
    page: include_str!("ghost_tensor.md"),
    level: Level::Warning,
    claims: &[Kind::IndexGhost],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let key = first.tensor.as_deref().and_then(|t| words::index_key(cp, t)).unwrap_or_default();
    let n = events.len();
    sink.cause(&events)
        .key(words::INDEX, &key)
        .label("no shard holds it")
        .subjects(words::names(&events))
        .help("write the index anew from the shard headers; if the tensor should be there, the export lost it")
        .say(format!("{} of the index {} in no shard", words::count(n, "tensor"), words::verb(n, "is", "are")));
}
