//! Never a guess: the reason instead.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-unknown",
    summary: "a part of the load for which the facts are missing",
    page: include_str!("unknown.md"),
    level: Level::Note,
    claims: &[Kind::Unknown],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let reasons: Vec<String> = events.iter().map(|e| e.detail.clone()).collect();
    let n = reasons.len();
    let draft = sink.cause(&events).at(first);
    let one = format!("not judged: {}", first.detail);
    if n == 1 && one.chars().count() < 118 {
        return draft.say(one);
    }
    let what = words::count(n, "thing") + words::verb(n, " is", " are");
    draft.evidence(reasons).say(format!("{what} not judged, for want of facts"));
}
