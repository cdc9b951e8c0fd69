//! Fields of the config files that differ: those that must not, those that may, and those of no consequence.
//!
//! What both sides state, and state differently, must not differ unless it is known to change nothing. A field that
//! only one side states may well be its default, so only the loss of the fields that make a model what it is counts.

use super::{Fate, Field};
use crate::checkpoint::{Checkpoint, Json, Part};
use serde_json::{Map, Value};
use std::collections::HashSet;

const CONFIG: &str = "config.json";
const GENERATION: &str = "generation_config.json";
const TOKENIZER: &str = "tokenizer_config.json";

/// Fields that change nothing of what the weights mean, and those of training and sampling that older versions of
/// transformers write into each config.
const HARMLESS: &[&str] = &[
    "add_cross_attention",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "chunk_size_feed_forward",
    "compression_config",
    "cross_attention_hidden_size",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "initializer_range",
    "is_decoder",
    "is_encoder_decoder",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "output_scores",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "pruned_heads",
    "quantization_config",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "router_aux_loss_coef",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torchscript",
    "transformers_version",
    "typical_p",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
];

/// What differs, and the names of what differs and changes nothing.
pub(super) fn compare(before: &Checkpoint, after: &Checkpoint) -> (Vec<Field>, Vec<String>) {
    let mut all = Comparison { file: CONFIG, fields: Vec::new(), harmless: Vec::new(), path: Vec::new() };
    if let (Some(a), Some(b)) = (object(&before.config), object(&after.config)) {
        all.maps(&layers(a, b), &layers(b, a), false);
    }
    all.file = GENERATION;
    let none = Map::new();
    // Without the file, its token ids come from the config.
    let b = match &after.generation_config {
        Part::Present(_) => object(&after.generation_config).map(|b| vec![b]),
        Part::Absent => object(&after.config).map(|b| layers(b, &none)),
        Part::Broken(_) => None,
    };
    if let (Some(a), Some(b)) = (object(&before.generation_config), b) {
        all.generation(a, &b);
    }
    all.file = TOKENIZER;
    // Without the file there is nothing to compare, and that it is gone is told of the file.
    if after.file(TOKENIZER).is_some() {
        let find = |tokens: &[(&str, Value)], name| tokens.iter().find(|t| t.0 == name).map(|t| t.1.clone());
        for (key, a) in &before.special_tokens {
            let b = find(&after.special_tokens, *key);
            if b.as_ref() != Some(a) {
                all.tell(key, Some(a), b.as_ref(), true);
            }
        }
    }
    let (mut fields, harmless) = (all.fields, all.harmless);
    fields.sort_by_key(|f| (!f.breaks, f.fate));
    (fields, harmless)
}

/// Whether the config says that the head is the embedding.
pub(super) fn tied(cp: &Checkpoint) -> bool {
    let Some(config) = object(&cp.config) else { return false };
    let text = config.get("text_config").and_then(|t| t.get("tie_word_embeddings"));
    config.get("tie_word_embeddings").or(text) == Some(&Value::Bool(true))
}

fn object(part: &Part<Json>) -> Option<&Map<String, Value>> {
    part.get().and_then(|json| json.value.as_object())
}

/// Where fields are looked up. A language model that was taken out of its multimodal wrapper has the fields of
/// `text_config` at the top, so there the wrapper's are looked up in `text_config` first.
fn layers<'v>(map: &'v Map<String, Value>, other: &Map<String, Value>) -> Vec<&'v Map<String, Value>> {
    let text = map.get("text_config").and_then(Value::as_object);
    text.filter(|_| !other.contains_key("text_config")).into_iter().chain([map]).collect()
}

struct Comparison {
    file: &'static str,
    fields: Vec<Field>,
    harmless: Vec<String>,
    path: Vec<String>,
}

/// What is known of a field by its name.
#[derive(Clone, Copy, PartialEq)]
enum Weight {
    /// Makes the model what it is.
    Core,
    /// May matter.
    Open,
    /// Changes nothing.
    None,
}

fn weight(key: &str) -> Weight {
    let ends = [
        "_token_id",
        "_token_ids",
        "_token_index",
        "_size",
        "_heads",
        "_layers",
        "_dim",
        "_eps",
        "_act",
        "_activation",
        "_config",
    ];
    let core = ["architectures", "layer_types", "model_type", "sliding_window", "tie_word_embeddings"];
    if HARMLESS.contains(&key) || key.starts_with('_') || key.contains("dropout") {
        Weight::None
    } else if core.contains(&key)
        || ends.iter().any(|e| key.ends_with(e))
        || ["num_", "n_", "rope_"].iter().any(|s| key.starts_with(s))
    {
        Weight::Core
    } else {
        Weight::Open
    }
}

/// Fields of which several spellings are compared as one.
const DTYPE: [&str; 2] = ["dtype", "torch_dtype"];
const ROPE: [&str; 4] = ["rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor"];

type Layers<'v> = [&'v Map<String, Value>];

fn get<'v>(layers: &Layers<'v>, key: &str) -> Option<&'v Value> {
    layers.iter().find_map(|l| l.get(key))
}

impl Comparison {
    /// Two objects. `inside` of the rope parameters, names mean what they say.
    fn maps(&mut self, a: &Layers, b: &Layers, inside: bool) {
        let unwrapped = a.len() != b.len();
        let special = |k: &str| !inside && (DTYPE.contains(&k) || ROPE.contains(&k)) || unwrapped && k == "text_config";
        let mut seen = HashSet::new();
        for key in a.iter().chain(b).flat_map(|l| l.keys()) {
            if special(key) || !seen.insert(key.as_str()) {
                continue;
            }
            self.values(key, get(a, key), get(b, key), inside);
        }
        if !inside {
            let dtype = |l: &Layers| DTYPE.iter().find_map(|k| get(l, k)).filter(|v| !v.is_null()).map(plain_dtype);
            let (x, y) = (dtype(a), dtype(b));
            if x != y {
                self.tell("dtype", x.as_ref(), y.as_ref(), false);
            }
            self.rope(a, b);
        }
    }

    /// The rope parameters, wherever a version of transformers puts them.
    fn rope(&mut self, a: &Layers, b: &Layers) {
        let (mut x, mut y) = (rope(a), rope(b));
        // One set of parameters for each kind of layer has types of its own. Anything else is unscaled unless it says so,
        // and so is a model that says nothing.
        let mut said = x.values().chain(y.values()).peekable();
        if said.peek().is_some() && !said.any(Value::is_object) {
            for side in [&mut x, &mut y] {
                side.entry("rope_type").or_insert_with(|| "default".into());
            }
        }
        let new = get(a, "rope_parameters").or(get(b, "rope_parameters")).is_some();
        let mut seen = HashSet::new();
        for key in x.keys().chain(y.keys()) {
            if !seen.insert(key) {
                continue;
            }
            let below = match key.as_str() {
                _ if new => Some("rope_parameters"),
                "rope_theta" | "partial_rotary_factor" => None,
                _ => Some("rope_scaling"),
            };
            self.path.extend(below.map(str::to_owned));
            self.values(key, x.get(key), y.get(key), true);
            if below.is_some() {
                self.path.pop();
            }
        }
    }

    fn values(&mut self, key: &str, a: Option<&Value>, b: Option<&Value>, inside: bool) {
        // A field that is null is as good as none.
        let said = |v: Option<&Value>| v.is_some_and(|v| !v.is_null());
        if !said(a) && !said(b) {
            return;
        }
        if let (Some(Value::Object(x)), Some(Value::Object(y))) = (a, b)
            && weight(key) != Weight::None
        {
            self.path.push(short(key));
            self.maps(&[x], &[y], inside);
            self.path.pop();
            return;
        }
        if let (Some(x), Some(y)) = (a, b)
            && equal(x, y, key)
        {
            return;
        }
        let both = a.is_some() && b.is_some();
        let breaks = match weight(key) {
            Weight::None if !inside => {
                let name = self.name(key);
                return self.harmless.push(name);
            }
            Weight::Core => both || a.is_some(),
            _ => both || inside && a.is_some(),
        };
        self.tell(key, a, b, breaks);
    }

    /// Token ids must stay; what one samples with may change.
    fn generation(&mut self, a: &Map<String, Value>, b: &Layers) {
        let own = |k: &&String| !k.starts_with('_') && *k != "transformers_version";
        for key in a.keys().filter(own) {
            let ids = key.ends_with("_token_id") || key.ends_with("_token_ids");
            let (x, y) = (a.get(key), get(b, key));
            let same = x.is_none_or(Value::is_null) || x.zip(y).is_some_and(|(x, y)| equal(x, y, key));
            if !same {
                self.tell(key, x, y, ids);
            }
        }
    }

    fn tell(&mut self, key: &str, before: Option<&Value>, after: Option<&Value>, breaks: bool) {
        let fate = match (before, after) {
            (Some(_), Some(_)) => Fate::Changed,
            (_, None) => Fate::Gone,
            (None, _) => Fate::New,
        };
        self.fields.push(Field {
            file: self.file.to_owned(),
            name: self.name(key),
            fate,
            breaks,
            before: before.cloned(),
            after: after.cloned(),
        });
    }

    fn name(&self, key: &str) -> String {
        let mut out = self.path.join(".");
        if !out.is_empty() {
            out.push('.');
        }
        out + &short(key)
    }
}

/// A key as a part of a path. Long ones are made up, and would be repeated for all that is below them.
fn short(key: &str) -> String {
    const MOST: usize = 80;
    let cut: String = key.chars().take(MOST).collect();
    if cut.len() == key.len() { cut } else { cut + "…" }
}

/// `torch.bfloat16` and `bfloat16` are one.
fn plain_dtype(value: &Value) -> Value {
    match value {
        Value::String(s) => s.strip_prefix("torch.").unwrap_or(s).into(),
        other => other.clone(),
    }
}

/// The rope parameters of a config as transformers 5 writes them.
fn rope(layers: &Layers) -> Map<String, Value> {
    let mut out = Map::new();
    for place in ["rope_scaling", "rope_parameters"] {
        for (key, value) in get(layers, place).and_then(Value::as_object).into_iter().flatten() {
            let key = if key == "type" { "rope_type" } else { key };
            out.insert(key.to_owned(), value.clone());
        }
    }
    for key in ["rope_theta", "partial_rotary_factor"] {
        if let Some(value) = get(layers, key).filter(|v| !v.is_null()) {
            out.entry(key).or_insert_with(|| value.clone());
        }
    }
    out
}

/// The same value: numbers by size, token ids as sets, since the order in which a request may stop says nothing.
fn equal(a: &Value, b: &Value, key: &str) -> bool {
    if a == b {
        return true;
    }
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => (x.is_f64() || y.is_f64()) && x.as_f64() == y.as_f64(),
        _ if key.ends_with("_token_id") => {
            let ids = |v: &Value| -> Option<HashSet<i64>> {
                v.as_array().map_or_else(|| Some([v.as_i64()?].into()), |l| l.iter().map(Value::as_i64).collect())
            };
            ids(a).is_some_and(|a| Some(a) == ids(b))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(a: Value, b: Value) -> Vec<String> {
        let part = |value: Value| {
            let json = Json { text: String::new(), value, duplicate_keys: Vec::new(), non_finite: Vec::new() };
            Checkpoint { config: Part::Present(json), ..Checkpoint::default() }
        };
        let (fields, harmless) = compare(&part(a), &part(b));
        let field = |f: Field| format!("{}{:?} {}", if f.breaks { "! " } else { "" }, f.fate, f.name);
        fields.into_iter().map(field).chain(harmless.into_iter().map(|h| format!("({h})"))).collect()
    }

    #[test]
    fn what_must_not_change() {
        let a = json!({"hidden_size": 64, "text_config": {"num_hidden_layers": 2}, "eos_token_id": [1, 2], "x": 1});
        let b = json!({"hidden_size": 65, "text_config": {"num_hidden_layers": 3}, "eos_token_id": [2, 1], "y": 1});
        let all = ["! Changed hidden_size", "! Changed text_config.num_hidden_layers", "Gone x", "New y"];
        assert_eq!(told(a, b), all);
        assert_eq!(told(json!({"vision_config": {"a": 1}}), json!({})), ["! Gone vision_config"]);
        assert_eq!(told(json!({}), json!({"head_dim": 64})), ["New head_dim"]);
        assert_eq!(told(json!({"sliding_window": null}), json!({"sliding_window": 4})), ["! Changed sliding_window"]);
    }

    #[test]
    fn what_may() {
        let a = json!({"torch_dtype": "bfloat16", "use_cache": true, "a": null, "eps": 1, "_name_or_path": "x"});
        let b = json!({"dtype": "torch.bfloat16", "use_cache": false, "eps": 1.0, "quantization_config": {}});
        assert_eq!(told(a, b), ["(use_cache)", "(_name_or_path)", "(quantization_config)"]);
        assert_eq!(told(json!({"dtype": "float16"}), json!({"dtype": "bfloat16"})), ["Changed dtype"]);
    }

    #[test]
    fn rope_is_compared_by_meaning() {
        let old = json!({"rope_theta": 10000.0, "rope_scaling": null});
        let new = json!({"rope_parameters": {"rope_theta": 10000, "rope_type": "default"}});
        assert_eq!(told(old.clone(), new), Vec::<String>::new());
        let scaled = json!({"rope_theta": 10000.0, "rope_scaling": {"type": "yarn", "factor": 4.0}});
        assert_eq!(told(old, scaled), ["! Changed rope_scaling.rope_type", "New rope_scaling.factor"]);
        assert_eq!(told(json!({}), json!({"rope_scaling": {"type": "yarn"}})), ["! Changed rope_scaling.rope_type"]);
        let layered = |theta: u32| json!({"rope_parameters": {"full_attention": {"rope_theta": theta}}});
        assert_eq!(told(layered(1), layered(2)), ["! Changed rope_parameters.full_attention.rope_theta"]);
    }

    #[test]
    fn a_language_model_out_of_its_wrapper() {
        let wrapped =
            json!({"model_type": "m", "text_config": {"model_type": "t", "hidden_size": 4}, "vision_config": {}});
        let bare = json!({"model_type": "t", "hidden_size": 4});
        assert_eq!(told(wrapped, bare), ["! Gone vision_config"]);
    }
}
