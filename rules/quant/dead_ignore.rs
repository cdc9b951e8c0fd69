//! Dead entries, with the near miss that explains most of them.

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::{Event, Kind};

pub(super) static RULE: Rule = Rule {
    name: "quant-dead-ignore",
    summary: "an entry of `ignore` that matches no module",
    page: include_str!("dead_ignore.md"),
    level: Level::Warning,
    claims: &[Kind::IgnoreDead],
    aliases: &[],
    check,
};

fn check(_: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let part = |e: &Event, i: usize| e.detail.split('\t').nth(i).unwrap_or_default().to_owned();
    for (hint, group) in words::groups(&events, |e| part(e, 1)) {
        let Some(first) = group.first() else { continue };
        let entries: Vec<String> = group.iter().map(|e| part(e, 0)).collect();
        let pairs: Vec<(String, String)> =
            group.iter().map(|e| (part(e, 0), part(e, 2))).filter(|p| !p.1.is_empty() && hint != "cut-tower").collect();
        let (why, suspicious) = words_of(&hint);
        let draft = sink.cause(&group).at(first).label(why).subjects(entries.clone());
        let regexes = entries.iter().all(|e| e.starts_with("re:"));
        // Other tools list what they left alone, in whichever names they know; where that harms, the tensors say so.
        let patterns = plan.method.as_deref() == Some("compressed-tensors");
        let harmless = matches!(hint.as_str(), "cut-tower" | "covered");
        let draft = if patterns && (suspicious || !regexes && !harmless) { draft } else { draft.note() };
        let (file, pointer, key) = words::skip_list(plan);
        let draft = if pairs.is_empty() {
            draft
                .help("remove what is left over; if a module was meant, write its name as vLLM has it")
                .fix(Fix::Remove { file, pointer, entries })
        } else {
            let lines: Vec<String> = pairs.iter().take(12).map(|p| format!("{:?} -> {:?}", p.0, p.1)).collect();
            draft.help(format!("perhaps\n{}", lines.join("\n"))).fix(Fix::Replace { file, pointer, entries: pairs })
        };
        draft.say(format!(
            "{} of `{key}` {} nothing",
            words::count(group.len(), "entry"),
            words::verb(group.len(), "matches", "match")
        ));
    }
}

/// What a hint means: a headline, and whether something is likely to be wrong.
fn words_of(hint: &str) -> (&'static str, bool) {
    match hint {
        "space" => ("begins or ends with a space", true),
        "unanchored" => ("would match only further inside the name: `re:` is anchored at the start", true),
        "hf-name" => ("is a pattern over file names: vLLM matches its own names", true),
        "weight-suffix" => ("names a tensor: entries name modules, without `.weight`", true),
        "class-name" => ("names a class: `ignore` knows module names only", true),
        "glob" => ("is a glob: only exact names and `re:` patterns match", true),
        "wrong-prefix" => ("has another prefix than the module", true),
        "parent" => ("names a parent: entries match whole names only", true),
        "pattern" => ("is a pattern: this method compares whole names", true),
        "broken" => ("is not a valid pattern", true),
        "covered" => ("means modules that other entries have already", false),
        "cut-tower" => ("is left from a tower that the model does not have", false),
        _ => ("matches no module of this model", false),
    }
}
