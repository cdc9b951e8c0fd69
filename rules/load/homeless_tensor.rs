//! Where no other rule says more.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::{Event, Kind};

pub(super) static RULE: Rule = Rule {
    name: "load-homeless-tensor",
    summary: "a tensor for which the model has no place",
    page: include_str!("homeless_tensor.md"),
    level: Level::Error,
    claims: &[Kind::NoHome],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let n = events.len();
    let help = match missing_prefix(&events) {
        Some(prefix) => format!("the class has these names below `{prefix}`: put it before them"),
        None => {
            "rename it to what the class has (the message lists that), or drop it from the shards and the index".into()
        }
    };
    sink.cause(&events)
        .at(first)
        .subjects(words::names(&events))
        .evidence(words::tensor_lines(cp, &events))
        .help(help)
        .say(format!("{} no home in this class", words::count(n, "tensor") + words::verb(n, " has", " have")));
}

/// The prefix that would make a stored name one of those that vLLM's message lists.
fn missing_prefix(events: &[&Event]) -> Option<&'static str> {
    let text = events.iter().find_map(|e| Some(e.error.as_ref()?.text.as_str()))?;
    let (_, list) = text.split_once(" are: {")?;
    ["model.", "language_model.", "language_model.model.", "model.language_model."].into_iter().find(|prefix| {
        let listed = |e: &&Event| e.tensor.as_deref().is_some_and(|t| list.contains(&format!("'{prefix}{t}'")));
        events.iter().any(listed)
    })
}
