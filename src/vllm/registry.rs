//! Architecture lookup (vllm/model_executor/models/registry.py; spec B.2).

use super::python;
use super::trace::{Effect, Event, Kind, Raised, Stage};
use crate::facts::{self, Registry};
use serde_json::Value;

/// What an architecture name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Name in `architectures`.
    pub architecture: String,
    /// The registered name that it stands for: `GPTNeoXForCausalLM` for `GPTNeoXModel`.
    pub listed: String,
    /// vLLM class.
    pub class: String,
    /// Group: text, multimodal, embedding, speculative, …
    pub group: String,
    /// A draft model: the method of speculative decoding that takes it, and what its constructor raises without one.
    pub drafter: Option<(String, Option<String>)>,
    /// The ending of its name stands for pooling.
    pub pooling: bool,
    /// The config named none, and the base class of its model type stands in: the one that would generate text, as far
    /// as vLLM has it.
    pub stand_in: Option<Option<String>>,
}

impl Found {
    /// A class that generates text is given a `score` (`as_seq_cls_model`), where it is served for pooling.
    pub fn classifies(&self) -> bool {
        let name = self.architecture.as_str();
        name.ends_with("Classification") && SUFFIXES.iter().any(|(s, _)| name.ends_with(s))
            || name.ends_with("ClassificationModel")
    }

    /// `_get_pooling_model_name`: what the adapters call that class.
    pub fn pooling_class(&self) -> String {
        let stem = ["ForCausalLM", "ForConditionalGeneration", "ChatModel", "LMHeadModel"]
            .iter()
            .fold(self.class.as_str(), |name, s| name.strip_suffix(s).unwrap_or(name));
        format!("{stem}{}", if self.classifies() { "ForSequenceClassification" } else { "ForEmbedding" })
    }
}

/// `_SUFFIX_TO_DEFAULTS` (vllm/config/model.py): endings of class names, and whether they stand for pooling models.
const SUFFIXES: [(&str, bool); 15] = [
    ("ForCausalLM", false),
    ("ForConditionalGeneration", false),
    ("ChatModel", false),
    ("LMHeadModel", false),
    ("ForTextEncoding", true),
    ("EmbeddingModel", true),
    ("ForSequenceClassification", true),
    ("ForTokenClassification", true),
    ("ForAudioClassification", true),
    ("ForImageClassification", true),
    ("ForVideoClassification", true),
    ("ClassificationModel", true),
    ("ForRewardModeling", true),
    ("RewardModel", true),
    ("Model", true),
];

/// `_normalize_arch`: the registered class that a name stands for, and whether for pooling.
fn registered<'r>(registry: &'r Registry, name: &str) -> Option<(&'r String, &'r Value, bool)> {
    let suffix = SUFFIXES.iter().find(|(s, _)| name.ends_with(s));
    let pooling = suffix.is_some_and(|(_, pooling)| *pooling);
    if let Some((listed, entry)) = registry.architectures.get_key_value(name) {
        return Some((listed, entry, pooling));
    }
    let (suffix, _) = suffix?;
    let other = |(other, _): &(&str, bool)| registry.architectures.get_key_value(&name.replace(suffix, other));
    let (listed, entry) = SUFFIXES.iter().find_map(other)?;
    Some((listed, entry, pooling))
}

/// The class of a language model inside a wrapper (`init_vllm_registered_model`), or why it is not known here.
pub fn inner(version: &str, config: &Value) -> Result<String, String> {
    let mut names: Vec<&str> = config
        .get("architectures")
        .and_then(Value::as_array)
        .map(|a| a.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let model_type = config.get("model_type").and_then(Value::as_str).unwrap_or_default();
    if names.is_empty() {
        names.extend(facts::names(version).and_then(|n| n.causal.get(model_type)).map(String::as_str));
    }
    facts::registry(version)
        .and_then(|r| names.iter().find_map(|n| r.architectures.get(*n)?.get("class")?.as_str().map(str::to_owned)))
        .ok_or_else(|| format!("no class is known for its model type `{model_type}`, architectures {names:?}"))
}

fn refused(kind: Kind, text: String) -> Box<Event> {
    let mut e = Event::new(Stage::Config, Effect::Refuses, kind);
    e.pointer = Some("/architectures".into());
    e.error = Some(Raised { error_type: "ValidationError".into(), text });
    Box::new(e)
}

/// Resolve `architectures`; the error is the event that ends the load there.
pub fn resolve(version: &str, registry: Option<&Registry>, raw: &Value, model_type: &str) -> Result<Found, Box<Event>> {
    let Some(registry) = registry else {
        let mut e = Event::new(Stage::Config, Effect::Keeps, Kind::Unknown);
        e.detail = format!("no facts for vLLM {version}");
        return Err(Box::new(e));
    };
    let mut names: Vec<String> = raw
        .get("architectures")
        .and_then(Value::as_array)
        .map(|a| a.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let stand_in = names.is_empty();
    if stand_in {
        names.extend(facts::names(version).and_then(|n| n.base.get(model_type).cloned()));
    }
    if names.is_empty() {
        return Err(refused(Kind::NoArchitecture, "No model architectures are specified".into()));
    }
    for name in &names {
        if let Some((listed, entry, pooling)) = registered(registry, name) {
            let text = |k: &str| entry.get(k).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (class, group) = (text("class"), text("group"));
            let generates = || {
                let stem = name.strip_suffix("Model").unwrap_or(name);
                ["ForCausalLM", "ForConditionalGeneration"]
                    .map(|s| format!("{stem}{s}"))
                    .into_iter()
                    .find(|n| registry.architectures.contains_key(n))
            };
            let stand_in = stand_in.then(generates);
            let drafter = (group == "speculative")
                .then(|| (text("method"), Some(text("alone")).filter(|error| !error.is_empty())));
            return Ok(Found {
                architecture: name.clone(),
                listed: listed.clone(),
                class,
                group,
                drafter,
                pooling,
                stand_in,
            });
        }
    }
    // A class that transformers has may still run through vLLM's Transformers backend; a name nobody has cannot.
    let first = &names[0];
    let known = facts::names(version).is_some_and(|n| n.classes.contains(first) && !n.incompatible.contains(first));
    let built = |name: &String| facts::class(version, name).filter(|f| f.class.starts_with("Transformers"));
    if let Some((name, file)) = names.iter().filter(|_| known).find_map(|n| Some((n, built(n)?))) {
        return Ok(Found {
            architecture: name.clone(),
            listed: name.clone(),
            class: file.class,
            group: "transformers".into(),
            drafter: None,
            pooling: false,
            stand_in: None,
        });
    }
    let unknown = || {
        let mut e = Event::new(Stage::Config, Effect::Keeps, Kind::Unknown);
        e.detail = format!(
            "{} is not one of vLLM's own architectures; its Transformers backend takes it if the class in transformers dispatches its \
             attention (`_supports_attention_backend`), and what it builds then is not in the facts",
            names.join(", ")
        );
        Box::new(e)
    };
    if known {
        return Err(unknown());
    }
    for name in &names {
        if let Some(last) = registry.removed.get(name).and_then(Value::as_str) {
            return Err(refused(
                Kind::ArchitectureRemoved,
                format!(
                    "Model architecture {name} was supported in vLLM until v{last}, and is not supported anymore. \
                     Please use an older version of vLLM if you want to use this model architecture."
                ),
            ));
        }
    }
    if raw.get("auto_map").is_some() {
        return Err(unknown());
    }
    let list: Vec<Value> = names.iter().map(|n| Value::from(n.as_str())).collect();
    let all: Vec<String> = registry.architectures.keys().map(|k| format!("'{k}'")).collect();
    let list = python::repr(&Value::Array(list));
    Err(refused(
        Kind::ArchitectureUnknown,
        format!(
            "Model architectures {list} are not supported for now. Supported architectures: dict_keys([{}])",
            all.join(", ")
        ),
    ))
}
