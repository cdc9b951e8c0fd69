//! A tied config with an `lm_head.weight` (vllm `maybe_untie_word_embeddings`).

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "tie-duplicate-head",
    summary: "embeddings are tied, and the files ship a head of their own",
    page: include_str!("duplicate_head.md"),
    level: Level::Warning,
    claims: &[Kind::TiedWithHead],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    // A head that is not the model's own is another finding: it unties the real one.
    if plan.trace.of(Kind::StrayHeadUnties).next().is_some() {
        return;
    }
    for event in sink.events(plan) {
        let name = event.tensor.clone().unwrap_or_default();
        let after = if plan.no_retie {
            "this model has two plain embeddings, so vLLM compares nothing and keeps the head apart in GPU memory, even when it is a copy"
        } else {
            "vLLM loads both, compares them, and ties them again when they are equal"
        };
        let waste = if event.bytes > 0 {
            format!("{} of download, disk and host memory", words::bytes(event.bytes))
        } else {
            "download, disk and host memory".into()
        };
        let amount =
            if event.bytes > 0 { format!("{} stored twice", words::bytes(event.bytes)) } else { "stored twice".into() };
        sink.cause(&[event])
            .key("config.json", "/tie_word_embeddings")
            .label(format!("tied, yet the files hold `{name}`"))
            .subjects([name.clone()])
            .evidence(words::tensor_lines(cp, &[event]))
            .help(format!(
                "a copy of the embedding wastes {waste}, certainly; of GPU memory, possibly: {after}\n\
                 drop the tensor if it is a copy; set `tie_word_embeddings` to false if it was trained apart"
            ))
            .fix(Fix::DropTensors { names: vec![name] })
            .say(format!("tied embeddings with a head of their own: {amount}"));
    }
}
