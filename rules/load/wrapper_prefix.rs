//! `_orig_mod.`, `module.`, `base_model.model.`: torch.compile, DDP, PEFT.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "load-wrapper-prefix",
    summary: "names carry the prefix of a training wrapper",
    page: include_str!("wrapper_prefix.md"),
    level: Level::Error,
    claims: &[Kind::WrapperPrefix],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    for (prefix, group) in words::groups(&events, |e| e.detail.clone()) {
        let Some(first) = group.first() else { continue };
        let n = group.len();
        sink.cause(&group)
            .at(first)
            .subjects(words::names(&group))
            .evidence(words::tensor_lines(cp, &group))
            .help(format!("strip `{prefix}` from the names: save the unwrapped module"))
            .say(format!(
                "{} the wrapper prefix `{prefix}`",
                words::count(n, "name") + words::verb(n, " carries", " carry")
            ));
    }
}
