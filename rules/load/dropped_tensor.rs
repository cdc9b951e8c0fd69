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
    for (by, group) in words::groups(&events, |e| e.detail.clone()) {
        let Some(first) = group.first() else { continue };
        let n = group.len();
        let bytes = words::total(&group);
        let draft = sink
            .cause(&group)
            .at(first)
            .subjects(words::names(&group))
            .evidence(words::tensor_lines(cp, &group))
            .help("drop it from the shards if it is left over; if the model needs it, this class does not know how to use it");
        // Skip lists of a class are its authors' knowledge; a bias or an expert that goes missing is not.
        let lost = by.ends_with(".bias") || by.contains("expert");
        let draft = if lost { draft } else { draft.note() };
        draft.say(format!(
            "{} dropped without a word ({})",
            words::count(n, "tensor") + words::verb(n, " is", " are"),
            words::size(bytes)
        ));
    }
}
