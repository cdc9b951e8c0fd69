//! Another group size, another bit width, another strategy.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-scheme-misfit",
    summary: "a stored tensor whose shape does not fit the scheme",
    page: include_str!("scheme_misfit.md"),
    level: Level::Error,
    claims: &[Kind::SchemeMisfit],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let (file, pointer) = words::scheme_key(plan);
    let n = events.len();
    sink.cause(&events)
        .key(&file, &pointer)
        .label(format!("does not fit `{}`", first.tensor.as_deref().unwrap_or_default()))
        .subjects(words::names(&events))
        .evidence(words::detail_lines(&events))
        .help("compare `group_size`, `num_bits` and `strategy` with the run that made the tensors")
        .say(format!(
            "{} not fit the scheme of the config",
            words::count(n, "quantized tensor") + words::verb(n, " does", " do")
        ));
}
