//! The reverse: an entry that reaches too far.

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-ignored-but-packed",
    summary: "a module that `ignore` keeps plain, stored quantized",
    page: include_str!("ignored_but_packed.md"),
    level: Level::Error,
    claims: &[Kind::IgnoredButPacked],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    for (entry, group) in words::groups(&events, |e| e.detail.clone()) {
        let (file, list, _) = words::skip_list(plan);
        let at = format!("{list}/{entry}");
        let pattern = words::text(cp, &file, &at).unwrap_or_default().to_owned();
        let modules = words::modules(&group);
        let n = modules.len();
        let draft = sink
            .cause(&group)
            .key(&file, &at)
            .label(format!("matches {}", words::list(&modules[..1], 80)))
            .evidence(words::tensor_lines(cp, &group))
            .help(format!("remove `{pattern}`, or narrow it to the modules that are stored in 16 bit"))
            .fix(Fix::Remove { file, pointer: list, entries: vec![pattern.clone()] })
            .subjects(modules);
        let what = words::count(n, "module") + words::verb(n, " that is", " that are") + " stored quantized";
        draft.say(words::fit(format!("`{pattern}` ignores {what}"), || format!("an entry ignores {what}")));
    }
}
