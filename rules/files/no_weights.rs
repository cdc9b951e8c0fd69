//! No weight file of the load format (vllm `DefaultModelLoader._prepare_weights`).

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "files-no-weights",
    summary: "the folder holds no file that the load format would read",
    page: include_str!("no_weights.md"),
    level: Level::Error,
    claims: &[Kind::NoWeights],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    let Some(first) = events.first() else { return };
    if !first.detail.is_empty() {
        let help = format!("put `{}` into the folder: the class reads it besides the shards", first.detail);
        return sink.cause(&events).at(first).help(help).say("a file of weights that the class reads is not here");
    }
    let below = cp.files.iter().find(|f| f.name.contains('/') && f.name.ends_with(".safetensors"));
    let help = match below {
        Some(f) => format!("move `{}` and its siblings to the top of the folder: vLLM does not look below it", f.name),
        None => {
            "put the `*.safetensors` files beside config.json; a load format other than `auto` reads other names".into()
        }
    };
    sink.cause(&events).at(first).help(help).say("no weight file here that vLLM's load format reads");
}
