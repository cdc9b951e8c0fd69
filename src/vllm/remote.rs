//! Config classes that are remote code: `auto_map` of `config.json` (transformers `AutoConfig.from_pretrained`,
//! `resolve_trust_remote_code`; vllm/transformers_utils/config.py `HFConfigParser.parse`). Nobody runs the code here: the fields
//! of the file count, and what the code does not even mention is not there.

use super::Target;
use super::config::{self, Resolved};
use super::trace::{Effect, Event, Kind, Raised, Stage};
use super::unknown;
use crate::checkpoint::Checkpoint;
use crate::facts::{self, ConfigFile};
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

/// What the file says, and what the class that the code extends adds. Sub-configs of a class that transformers or vLLM have are
/// theirs, defaults included.
pub fn resolve(version: &str, raw: &Value, code: Option<&str>) -> Result<Resolved, Box<Event>> {
    let mut value = raw.clone();
    if let Some(code) = code
        && let Some(parent) = parent(version, code)
    {
        let mut all = config::of_class(version, &parent, raw)?;
        all.retain(|field, _| raw.get(field).is_some() || !words(code).any(|w| w == field));
        value = Value::Object(all);
    }
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
pub fn undecided(version: &str, code: Option<&str>, fields: Vec<String>) -> Option<Box<Event>> {
    if fields.is_empty() {
        return None;
    }
    let code = code.filter(|c| alone(c, parent(version, c).as_ref()));
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

/// Classes and their bases, as far as lines show them.
fn classes(code: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    code.lines().filter_map(|l| l.trim_start().strip_prefix("class ")).map(|class| {
        let (name, bases) = class.split_once(':').map_or(class, |c| c.0).split_once('(').unwrap_or((class, ")"));
        (name.trim().trim_end_matches(':'), bases.rsplit_once(')').map(|b| b.0))
    })
}

/// The config class of transformers that the one class of the code with a base of its own extends, if the facts have it.
fn parent(version: &str, code: &str) -> Option<ConfigFile> {
    let mut bases = classes(code).filter_map(|c| c.1).map(str::trim).filter(|b| b.ends_with("Config"));
    let base = bases.next().filter(|b| bases.next().is_none() && !BASES.contains(b))?;
    let mut model_type = String::new();
    for (i, c) in base.strip_suffix("Config")?.char_indices() {
        if c.is_ascii_uppercase() && i > 0 && !base[..i].ends_with(|c: char| c.is_ascii_uppercase()) {
            model_type.push('_');
        }
        model_type.push(c.to_ascii_lowercase());
    }
    facts::config(version, &model_type).filter(|p| p.class == base)
}

/// What every config class extends.
const BASES: [&str; 2] = ["PretrainedConfig", "PreTrainedConfig"];

/// Whether all that a config class has is in its file: it extends nothing but the base class of all configs, or one whose facts
/// are there, and invents no names.
fn alone(code: &str, parent: Option<&ConfigFile>) -> bool {
    let mut seen: Vec<&str> = BASES.into_iter().chain(["object"]).chain(parent.map(|p| p.class.as_str())).collect();
    let known = seen.len();
    for (name, bases) in classes(code) {
        let Some(bases) = bases else { return false };
        if !bases.split(',').all(|b| b.trim().is_empty() || seen.contains(&b.trim())) {
            return false;
        }
        seen.push(name);
    }
    let inventive =
        ["setattr", "__dict__", "__getattr__", "__getattribute__", "exec", "eval", "update", "import_module"];
    seen.len() > known
        && !words(&beside_helpers(code)).any(|w| inventive.contains(&w))
        && !code.lines().any(|l| l.trim_start().starts_with("from ."))
}

/// The code, but for what classes that nothing is built on do to themselves (`Block` of `DeciLMConfig`).
fn beside_helpers(code: &str) -> String {
    let mut helper = false;
    let mut out = String::new();
    for line in code.lines() {
        if !line.starts_with([' ', '\t']) && !line.is_empty() {
            helper = classes(line).any(|(name, bases)| {
                let built_on = |b: &str| b.split(',').any(|b| b.trim() == name);
                bases.is_some_and(|b| matches!(b.trim(), "" | "object"))
                    && !classes(code).filter_map(|c| c.1).any(built_on)
            });
        }
        let line = if helper { line.replace("setattr(self,", "").replace("self.__dict__", "") } else { line.into() };
        out += &line;
        out.push('\n');
    }
    out
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
        undecided("0.32", Some(code), fields.iter().map(|f| (*f).to_owned()).collect()).map(|e| e.detail)
    }

    #[test]
    fn what_the_code_does_not_mention_is_not_there() {
        assert_eq!(said(PLAIN, &["qkv_bias", "is_causal"]), None);
        assert!(said(PLAIN, &["bias", "qkv_bias"]).unwrap().contains("of `bias`:"));
        assert!(said(PLAIN, &["tie_word_embeddings"]).is_some());
    }

    #[test]
    fn a_class_of_transformers_brings_its_fields() {
        let code = "class A(LlamaConfig):\n    def __init__(self, rms_norm_eps=1, **kwargs):\n";
        assert_eq!(said(code, &["qkv_bias"]), None);
        let raw = serde_json::json!({"hidden_size": 64, "num_attention_heads": 4});
        let value = resolve("0.32", &raw, Some(code)).unwrap().value;
        assert_eq!((&value["head_dim"], &value["mlp_bias"]), (&16.into(), &false.into()));
        assert!(value.get("rms_norm_eps").is_none());
    }

    #[test]
    fn what_a_helper_does_to_itself_is_its_own() {
        let with = |class: &str| {
            said(&format!("{class}\n    def f(self, d):\n        setattr(self, d, 1)\n\n{PLAIN}"), &["qkv_bias"])
        };
        assert_eq!(with("class Block:"), None);
        assert_eq!(with("class Block(object):"), None);
        assert!(with("class Block(PretrainedConfig):").is_some());
        assert!(with("class Block:\n    def g(self, c):\n        setattr(c, 'a', 1)\n").is_some());
        assert!(
            said(
                &format!(
                    "class B:\n    def f(self, d):\n        setattr(self, d, 1)\n{PLAIN}class C(B, A):\n    pass\n"
                ),
                &["qkv_bias"]
            )
            .is_some()
        );
    }

    #[test]
    fn code_that_leans_on_other_code_decides_of_everything() {
        for other in
            ["from .base import x\n", "class B(NoSuchConfig):\n", "        setattr(self, n, v)\n", "class C(\n"]
        {
            assert!(said(&format!("{PLAIN}{other}"), &["qkv_bias"]).is_some(), "{other}");
        }
        assert!(said("", &["qkv_bias"]).is_some());
        assert!(undecided("0.32", None, vec!["qkv_bias".into()]).is_some());
        assert!(undecided("0.32", None, Vec::new()).is_none());
    }
}
