//! A wrapper that gets the config of another class: its towers were cut off, and `architectures` still names it.

use super::config::Resolved;
use super::trace::{Effect, Event, Kind, Raised, Stage};
use crate::facts::{self, ClassFile, Foreign};

/// What vLLM raises of it, if it does and the facts say so.
pub(super) fn refusal(version: &str, class: &ClassFile, architecture: &str, resolved: &Resolved) -> Option<Event> {
    let foreign = class.foreign.as_ref().filter(|_| !resolved.remote)?;
    let stands = match foreign {
        Foreign::Reads { reads, .. } => resolved.value.get(reads).is_some(),
        Foreign::Expects { types, .. } => types.contains(&resolved.model_type),
    };
    if stands {
        return None;
    }
    let config = facts::config(version, &resolved.model_type)?;
    let (stage, error_type, text) = match foreign {
        Foreign::Reads { reads, early } => {
            let stage = if *early { Stage::Config } else { Stage::Init };
            (stage, "AttributeError", format!("'{}' object has no attribute '{reads}'", config.class))
        }
        Foreign::Expects { .. } if config.module.is_empty() => return None,
        Foreign::Expects { expects, .. } => {
            let found = format!("{}.{}", config.module, config.class);
            let text = format!(
                "Invalid type of HuggingFace config. Expected type: <class '{expects}'>, but found type: <class '{found}'>"
            );
            (Stage::Config, "TypeError", text)
        }
    };
    let mut e = Event::new(stage, Effect::Refuses, Kind::ForeignConfig);
    e.file = Some("config.json".into());
    e.pointer = Some("/architectures".into());
    e.detail = format!("`architectures` names {architecture}, but `model_type` is `{}`", resolved.model_type);
    e.module = facts::names(version).and_then(|n| n.causal.get(&resolved.model_type).cloned());
    e.error = Some(Raised::new(error_type, text));
    Some(e)
}
