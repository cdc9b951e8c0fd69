//! Skip lists of the class, biases without a parameter, experts beyond the last.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-dropped-tensor",
    summary: "a tensor that vLLM drops without a word",
    page: include_str!("dropped_tensor.md"),
    level: Level::Warning,
    claims: &[Kind::Dropped],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    for (reason, group) in words::groups(&events, |e| Reason::of(&e.detail)) {
        let Some(first) = group.first() else { continue };
        let n = group.len();
        let draft =
            sink.cause(&group).at(first).subjects(words::names(&group)).evidence(words::tensor_lines(cp, &group));
        let what = format!("{} ({})", words::count(n, "tensor"), words::size(words::total(&group)));
        let is = words::verb(n, "is", "are");
        match reason {
            // Skip lists are the knowledge of those who wrote the class: hygiene.
            Reason::Skipped => draft
                .note()
                .help("nothing is wrong; without them the shards are smaller")
                .say(format!("{what} {is} on the skip list of the class")),
            Reason::Bias => draft
                .help("let the config say that the layer has a bias, if it has one; else drop it from the shards")
                .say(format!("{what} {is} dropped without a word: the layer has no bias")),
            Reason::Expert => draft
                .help("compare the number of experts, and the names of their tensors, with the config")
                .say(format!("{what} of experts {is} dropped without a word")),
        }
    }
}

/// Why a tensor is dropped.
#[derive(PartialEq)]
enum Reason {
    Skipped,
    Bias,
    Expert,
}

impl Reason {
    fn of(detail: &str) -> Reason {
        if detail.contains("expert") {
            Reason::Expert
        } else if detail.ends_with(".bias") {
            Reason::Bias
        } else {
            Reason::Skipped
        }
    }
}
