//! The mission: vLLM decides by config alone, and never looks at the tensors.

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::{Effect, Event, Kind};
use rustc_hash::FxHashSet;

pub(super) static RULE: Rule = Rule {
    name: "quant-unlisted-linear",
    summary: "a 16-bit linear that a target reaches and `ignore` does not name",
    page: include_str!("unlisted_linear.md"),
    level: Level::Error,
    claims: &[Kind::UnlistedLinear],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let packed = packed_stems(cp, &events);
    let half = |e: &Event| e.detail.lines().any(|entry| packed.contains(entry));
    let (mixed, plain): (Vec<&Event>, Vec<&Event>) = events.into_iter().partition(|e| half(e));
    if !mixed.is_empty() {
        sink.cause(&mixed)
            .subjects(words::names(&mixed))
            .evidence(words::tensor_lines(cp, &mixed))
            .help("no list can say this: vLLM needs one scheme for a fused layer. Quantize all of its shards, or none")
            .say(format!(
                "{} quantized in part only",
                words::count(words::modules(&mixed).len(), "fused linear")
                    + words::verb(words::modules(&mixed).len(), " is", " are")
            ));
    }
    let Some(first) = plain.first() else { return };
    let mut entries: Vec<String> = Vec::new();
    let mut seen = rustc_hash::FxHashSet::default();
    entries.extend(plain.iter().flat_map(|e| e.detail.lines()).filter(|e| seen.insert(*e)).map(str::to_owned));
    let (file, pointer, key) = words::skip_list(plan);
    let n = plain.len();
    let became = if first.effect == Effect::Damages { "casts it without a scale" } else { "builds it quantized" };
    let became = if n == 1 { became.to_owned() } else { became.replacen(" it", " them", 1) };
    let listed = words::has(cp, &file, &pointer);
    let reaches = if key == "ignore" { "a target reaches" } else { "the method reaches" };
    let missing = match listed {
        true => "no entry matches".to_owned(),
        false => format!("there is no `{key}`, and {reaches}"),
    };
    sink.cause(&plain)
        .key(&file, &pointer)
        .label(format!("{missing} `{}`", first.module.as_deref().unwrap_or_default()))
        .subjects(words::names(&plain))
        .evidence(words::tensor_lines(cp, &plain))
        .help(format!("add to {key:?}\n{}", words::paste(&entries)))
        .fix(Fix::Append { file, pointer, entries })
        .say(format!(
            "{} not on the ignore list, so vLLM {became}",
            words::count(n, "16-bit linear") + words::verb(n, " is", " are")
        ));
}

/// Of the entries to suggest, those whose stored module is quantized.
fn packed_stems(cp: &Checkpoint, events: &[&Event]) -> FxHashSet<String> {
    let wanted: FxHashSet<&str> = events.iter().flat_map(|e| e.detail.lines()).collect();
    if wanted.is_empty() {
        return FxHashSet::default();
    }
    let stem = |name: &str| {
        ["weight_packed", "weight_scale", "qweight"]
            .iter()
            .find_map(|s| name.strip_suffix(s)?.strip_suffix('.').map(str::to_owned))
    };
    cp.tensors().filter_map(|(_, t)| stem(&t.name)).filter(|s| wanted.contains(s.as_str())).collect()
}
