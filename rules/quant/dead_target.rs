//! A group that quantizes nothing, or less than was meant.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::{Event, Kind};

pub(super) static RULE: Rule = Rule {
    name: "quant-dead-target",
    summary: "a target that matches no module",
    page: include_str!("dead_target.md"),
    level: Level::Warning,
    claims: &[Kind::TargetDead],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let part = |e: &Event, i: usize| e.detail.split('\t').nth(i).unwrap_or_default().to_owned();
    let Some(first) = events.first() else { return };
    let targets: Vec<String> = events.iter().map(|e| part(e, 0)).collect();
    let lines: Vec<String> = events
        .iter()
        .map(|e| (part(e, 0), part(e, 2)))
        .filter(|p| !p.1.is_empty())
        .map(|p| format!("{:?} -> {:?}", p.0, p.1))
        .collect();
    let help = if lines.is_empty() {
        "name modules as vLLM has them, a `re:` pattern, or a class of vLLM's such as `Linear`".to_owned()
    } else {
        format!("perhaps\n{}", lines.join("\n"))
    };
    let n = targets.len();
    sink.cause(&events).at(first).label("no module of this name or class").subjects(targets).help(help).say(format!(
        "{} {} nothing",
        words::count(n, "target"),
        words::verb(n, "matches", "match")
    ));
}
