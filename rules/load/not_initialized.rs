//! Norms and plain parameters of unquantized models.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-not-initialized",
    summary: "a parameter that vLLM checks, and that nothing writes",
    page: include_str!("not_initialized.md"),
    level: Level::Error,
    claims: &[Kind::NotInitialized],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    if events.is_empty() {
        return;
    }
    let modules = words::modules(&events);
    let n = modules.len();
    sink.cause(&events).help("restore the tensors, or rename them to what the class has").subjects(modules).say(
        format!(
            "{} not in the files, and vLLM checks {}",
            words::count(n, "parameter") + words::verb(n, " is", " are"),
            words::verb(n, "it", "them")
        ),
    );
}
