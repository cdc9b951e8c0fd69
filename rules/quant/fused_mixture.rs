//! q, k and v, or gate and up, must be ignored all or not at all.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-fused-mixture",
    summary: "the shards of a fused layer disagree about being ignored",
    page: include_str!("fused_mixture.md"),
    level: Level::Error,
    claims: &[Kind::FusedMixture],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    let (file, pointer, _) = words::skip_list(plan);
    let module = first.module.as_deref().unwrap_or_default();
    let parent = module.rsplit_once('.').map_or("", |p| p.0);
    let shards: &[&str] = match module.rsplit('.').next() {
        Some("qkv_proj") => &["q_proj", "k_proj", "v_proj"],
        Some("gate_up_proj") => &["gate_proj", "up_proj"],
        _ => &[],
    };
    let names: Vec<String> = shards.iter().map(|s| format!("{parent}.{s}")).collect();
    let all = if names.is_empty() { "every shard".to_owned() } else { words::list(&names, 200) };
    let modules = words::modules(&events);
    let n = modules.len();
    sink.cause(&events)
        .key(&file, &pointer)
        .label(format!("names some shards of `{module}` and not the others"))
        .help(format!("list {all}, or none of them; that holds for a `v_proj` without tensors too (k_eq_v layers)"))
        .subjects(modules)
        .say(format!(
            "{} named on the ignore list in part only",
            words::count(n, "fused layer") + words::verb(n, " is", " are")
        ));
}
