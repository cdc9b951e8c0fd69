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
    /// vLLM class.
    pub class: String,
    /// Group: text, multimodal, embedding, speculative, …
    pub group: String,
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
    if names.is_empty() {
        names.extend(facts::names(version).and_then(|n| n.causal_lm.get(model_type).cloned()));
    }
    if names.is_empty() {
        return Err(refused(Kind::NoArchitecture, "No model architectures are specified".into()));
    }
    for name in &names {
        if let Some(entry) = registry.architectures.get(name) {
            let text = |k: &str| entry.get(k).and_then(Value::as_str).unwrap_or_default().to_owned();
            return Ok(Found { architecture: name.clone(), class: text("class"), group: text("group") });
        }
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
    // A class that transformers has may still run through vLLM's Transformers backend; a name nobody has cannot.
    let known = facts::names(version).is_some_and(|n| n.classes.iter().any(|c| names.contains(c)));
    if known || raw.get("auto_map").is_some() {
        let mut e = Event::new(Stage::Config, Effect::Keeps, Kind::Unknown);
        e.detail = format!(
            "{} is not one of vLLM's own architectures; its Transformers backend may take it",
            names.join(", ")
        );
        return Err(Box::new(e));
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
