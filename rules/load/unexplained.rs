//! The catch-all: verdict and findings may never disagree.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Event;

pub(super) static RULE: Rule = Rule {
    name: "load-unexplained",
    summary: "an event of the simulated load that no rule explains",
    page: include_str!("unexplained.md"),
    level: Level::Warning,
    claims: &[],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let claimed = |e: &Event| crate::rules::all().any(|r| r.claims.contains(&e.kind));
    let events: Vec<&Event> = plan.trace.events.iter().filter(|e| !claimed(e)).collect();
    for (kind, group) in words::groups(&events, |e| e.kind) {
        let Some(first) = group.first() else { continue };
        sink.cause(&group)
            .at(first)
            .subjects(words::names(&group))
            .say(format!("the load does not go as it should: {kind:?}"));
    }
}
