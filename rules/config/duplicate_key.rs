//! JSON readers keep the last one; whoever edited the first is surprised.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;

pub(super) static RULE: Rule = Rule {
    name: "config-duplicate-key",
    summary: "a key occurs twice in one JSON object",
    page: include_str!("duplicate_key.md"),
    level: Level::Warning,
    claims: &[],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, _: &Plan, sink: &mut Sink) {
    let texts = [("config.json", &cp.config), ("generation_config.json", &cp.generation_config)];
    let quant = cp.quant_files.iter().map(|f| (f.0.as_str(), &f.1));
    let mut found: Vec<(&str, &[String])> = texts
        .into_iter()
        .chain(quant)
        .filter_map(|(file, part)| Some((file, part.get()?.duplicate_keys.as_slice())))
        .collect();
    if let Some(index) = cp.index.get() {
        found.push((words::INDEX, &index.duplicate_keys));
    }
    for (file, keys) in found {
        let Some(first) = keys.first() else { continue };
        sink.fact()
            .key(file, first)
            .subjects(keys.iter().cloned())
            .help("keep one of them: Python, and so vLLM, reads the last")
            .say(format!(
                "{} {} twice; the last one counts",
                words::count(keys.len(), "key"),
                words::verb(keys.len(), "occurs", "occur")
            ));
    }
}
