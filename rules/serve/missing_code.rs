//! Remote code that has gone missing.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "serve-missing-code",
    summary: "`auto_map` names Python files that are not in the folder",
    page: include_str!("missing_code.md"),
    level: Level::Warning,
    claims: &[],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let Some(map) = cp.config.get().and_then(|c| c.value.get("auto_map")?.as_object()) else { return };
    let mut missing = Vec::new();
    for target in map.values().flat_map(|v| v.as_array().map_or_else(|| vec![v], |a| a.iter().collect())) {
        // `owner/repository--module.Class` is code of another repository.
        let Some(target) = target.as_str().filter(|t| !t.contains("--")) else { continue };
        let Some((module, _)) = target.rsplit_once('.') else { continue };
        let file = format!("{}.py", module.replace('.', "/"));
        if !super::has(cp, &file) {
            missing.push(file);
        }
    }
    let refused = plan.trace.events.iter().any(|e| e.kind == Kind::RemoteCodeMissing);
    if missing.is_empty() || refused || !super::whole(cp) {
        return;
    }
    // A class that vLLM has does not need the code, unless somebody passes `--trust-remote-code`.
    let draft = if plan.class.is_some() { sink.fact().note() } else { sink.fact() };
    draft
        .key("config.json", "/auto_map")
        .label("names code that is not here")
        .subjects(missing)
        .help("copy the files from the base model; without `--trust-remote-code` vLLM does not look at them")
        .say("`auto_map` names Python files that the folder does not hold");
}
