//! Any tensor of that ending unties, be it of a talker, of a draft or of a stale shard.

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "tie-stray-head",
    summary: "a name that ends in `lm_head.weight` unties the head, and nothing fills it",
    page: include_str!("stray_head.md"),
    level: Level::Error,
    claims: &[Kind::StrayHeadUnties],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let stray = first.tensor.clone().unwrap_or_default();
    let head = first.module.clone().unwrap_or_default();
    sink.cause(&events)
        .at(first)
        .subjects([stray.clone()])
        .evidence(words::tensor_lines(cp, &events))
        .help(format!("rename or drop `{stray}`, or store the model's own head as well"))
        .fix(Fix::DropTensors { names: vec![stray.clone()] })
        .say(words::fit(format!("`{stray}` unties the head, and `{head}` is never written"), || {
            "a stray head unties the real one, which is never written".into()
        }));
}
