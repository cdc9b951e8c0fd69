//! An end that the model can never write.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use serde_json::Value;

pub(super) static RULE: Rule = Rule {
    name: "serve-token-id",
    summary: "a special token id outside of the vocabulary",
    page: include_str!("token_id.md"),
    level: Level::Warning,
    claims: &[],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, _: &Plan, sink: &mut Sink) {
    let Some(config) = cp.config.get() else { return };
    let nested = config.value.get("text_config").filter(|t| t.is_object());
    let text = nested.unwrap_or(&config.value);
    let Some(words) = text.get("vocab_size").and_then(Value::as_i64) else { return };
    let generation = cp.generation_config.get().map(|g| ("generation_config.json", "", &g.value));
    let places = [("config.json", if nested.is_some() { "/text_config" } else { "" }, text)];
    for (file, at, object) in places.into_iter().chain(generation) {
        for name in ["bos_token_id", "eos_token_id", "pad_token_id"] {
            let Some(value) = object.get(name) else { continue };
            let ids: Vec<i64> = match value {
                Value::Array(list) => list.iter().filter_map(Value::as_i64).collect(),
                one => one.as_i64().into_iter().collect(),
            };
            // Minus one stands for none.
            let Some(id) = ids.into_iter().find(|id| *id >= words || *id < -1) else { continue };
            sink.fact()
                .key(file, &format!("{at}/{name}"))
                .label(format!("the vocabulary ends at {}", words - 1))
                .subjects([name])
                .help(match name {
                    "eos_token_id" => {
                        "take both from one tokenizer: an end of text that cannot be written never stops a request"
                    }
                    _ => "take both from one tokenizer",
                })
                .say(format!("`{name}` {id} is outside of the vocabulary of {words} words"));
        }
    }
}
