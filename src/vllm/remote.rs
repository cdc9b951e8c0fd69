//! Config classes that are remote code: `auto_map` of `config.json` (transformers `AutoConfig.from_pretrained`,
//! `resolve_trust_remote_code`; vllm/transformers_utils/config.py `HFConfigParser.parse`). Nobody runs the code here: the fields
//! of the file count, and what the code does not even mention is not there.

use super::Target;
use super::config::{self, Resolved};
use super::trace::{Effect, Event, Kind, Raised, Stage};
use super::unknown;
use crate::checkpoint::Checkpoint;
use crate::facts;
use serde_json::Value;

/// Whether the config class comes from the folder; the error is the event that ends the load there.
pub fn trusted(cp: &Checkpoint, target: &Target, raw: &Value) -> Result<bool, Box<Event>> {
    let Some(class) = raw.pointer("/auto_map/AutoConfig").and_then(Value::as_str) else { return Ok(false) };
    let Some(names) = facts::names(&target.vllm) else { return Ok(false) };
    let named = config::model_type(&target.vllm, raw);
    let among = |types: &[String]| named.as_ref().is_some_and(|t| types.contains(t));
    // The folder's class goes before one of transformers, and after one of vLLM.
    if among(&names.own) || !target.trust_remote_code && among(&names.model_types) {
        return Ok(false);
    }
    if !target.trust_remote_code {
        let what = match class.split_once("--") {
            Some((repository, _)) => repository,
            None => {
                "The repository <dir> contains custom code which must be executed to correctly load the model. You can inspect the \
                 repository content at <dir> .\n"
            }
        };
        let text = format!(
            "{what} You can inspect the repository content at <url>\nPlease pass the argument `trust_remote_code=True` to allow custom \
             code to be run."
        );
        return Err(refused(Kind::RemoteCode, "ValidationError", text, ""));
    }
    let Some(file) = cp.config_class().flatten() else {
        return Err(unknown(&format!("the config class is remote code that is not in the folder: `{class}`")));
    };
    if !cp.config_only && cp.files.binary_search_by(|f| f.name.as_str().cmp(&file)).is_err() {
        let text = format!("<dir> does not appear to have a file named {file}. Checkout '<url>' for available files.");
        return Err(refused(Kind::RemoteCodeMissing, "OSError", text, &file));
    }
    Ok(true)
}

/// What the file says. Sub-configs of a class that transformers or vLLM have are theirs, defaults included.
pub fn resolve(version: &str, raw: &Value) -> Result<Resolved, Box<Event>> {
    let mut value = raw.clone();
    for (field, inner) in value.as_object_mut().into_iter().flatten().filter(|(k, _)| k.ends_with("_config")) {
        if let Some(resolved) = config::inner(version, inner, field)? {
            *inner = resolved;
        }
    }
    // `_CONFIG_ATTRS_MAPPING`
    if let Some(o) = value.as_object_mut().filter(|o| !o.contains_key("text_config"))
        && let Some(inner) = o.get("llm_config").cloned()
    {
        o.insert("text_config".into(), inner);
    }
    let model_type = raw.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Resolved { value, model_type, text: None, remote: true })
}

/// The event for fields that the file does not give and the class may, if there are any.
pub fn undecided(code: Option<&str>, fields: Vec<String>) -> Option<Box<Event>> {
    let code = code.filter(|c| alone(c));
    // vLLM reads the tie flag without a default: a class that lacks it does not get this far.
    let decides = |f: &String| code.is_none_or(|c| f == "tie_word_embeddings" || words(c).any(|w| w == f));
    let names: Vec<String> = fields.into_iter().filter(decides).map(|f| format!("`{f}`")).collect();
    (!names.is_empty()).then(|| {
        unknown(&format!(
            "the config class is remote code, which decides of {}: config.json does not give it",
            names.join(", ")
        ))
    })
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Whether all that a config class has is in its file: it extends nothing but the base class of all configs, and invents no names.
fn alone(code: &str) -> bool {
    let classes = code.lines().filter_map(|l| l.trim_start().strip_prefix("class "));
    let mut seen = vec!["PretrainedConfig", "PreTrainedConfig", "object"];
    for class in classes {
        let (name, bases) = class.split_once(':').map_or(class, |c| c.0).split_once('(').unwrap_or((class, ")"));
        let Some((bases, _)) = bases.rsplit_once(')') else { return false };
        if !bases.split(',').all(|b| b.trim().is_empty() || seen.contains(&b.trim())) {
            return false;
        }
        seen.push(name.trim());
    }
    let inventive =
        ["setattr", "__dict__", "__getattr__", "__getattribute__", "exec", "eval", "update", "import_module"];
    seen.len() > 3
        && !words(code).any(|w| inventive.contains(&w))
        && !code.lines().any(|l| l.trim_start().starts_with("from ."))
}

fn refused(kind: Kind, error_type: &str, text: String, detail: &str) -> Box<Event> {
    let mut e = Event::new(Stage::Config, Effect::Refuses, kind);
    e.file = Some("config.json".into());
    e.pointer = Some("/auto_map/AutoConfig".into());
    e.detail = detail.to_owned();
    e.error = Some(Raised { error_type: error_type.into(), text });
    Box::new(e)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "from transformers import PretrainedConfig\nclass A(PretrainedConfig):\n    def __init__(self, bias=True, **k):\n";

    fn said(code: &str, fields: &[&str]) -> Option<String> {
        undecided(Some(code), fields.iter().map(|f| (*f).to_owned()).collect()).map(|e| e.detail)
    }

    #[test]
    fn what_the_code_does_not_mention_is_not_there() {
        assert_eq!(said(PLAIN, &["qkv_bias", "is_causal"]), None);
        assert!(said(PLAIN, &["bias", "qkv_bias"]).unwrap().contains("of `bias`:"));
        assert!(said(PLAIN, &["tie_word_embeddings"]).is_some());
    }

    #[test]
    fn code_that_leans_on_other_code_decides_of_everything() {
        for other in ["from .base import x\n", "class B(LlamaConfig):\n", "        setattr(self, n, v)\n", "class C(\n"]
        {
            assert!(said(&format!("{PLAIN}{other}"), &["qkv_bias"]).is_some(), "{other}");
        }
        assert!(said("", &["qkv_bias"]).is_some());
        assert!(undecided(None, vec!["qkv_bias".into()]).is_some());
        assert!(undecided(None, Vec::new()).is_none());
    }
}
