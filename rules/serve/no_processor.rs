//! The tower is there, and nothing says how to cut a picture for it.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;

pub(super) static RULE: Rule = Rule {
    name: "serve-no-processor",
    summary: "a multimodal model without the config of its image or audio processor",
    page: include_str!("no_processor.md"),
    level: Level::Warning,
    claims: &[],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let here = ["preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json"]
        .iter()
        .any(|name| super::has(cp, name));
    if !plan.multimodal || here || !super::dressed(cp) {
        return;
    }
    sink.fact()
        .help("copy preprocessor_config.json (and processor_config.json) from the base model, or serve it with `--language-model-only`")
        .say("no preprocessor_config.json or processor_config.json, and the class takes images or audio");
}
