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
    for event in sink.events(plan) {
        let reason = event.detail.clone();
        let draft = sink.cause(&[event]).at(event);
        let draft = if reason.chars().count() > 100 { draft.evidence(vec![reason.clone()]) } else { draft };
        draft.say(words::fit(format!("not judged: {reason}"), || "not judged, for want of facts".into()));
    }
}
