//! Config resolution: what transformers and vLLM make of `config.json` (spec B.1, B.7.1), by the programs in
//! `rules/facts/vllm/<version>/configs`.

use super::python;
use super::rope;
use super::trace::{Effect, Event, Kind, Raised, Stage};
use crate::checkpoint::escape_pointer;
use crate::facts::{self, ConfigFile, Scope};
use serde_json::{Map, Value};

/// What is left of a language model's own tie flag, for the class around it.
const KEPT: &str = "kept_tie_word_embeddings";

/// A resolved config.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// All fields, defaults and derived ones included; sub-configs resolved in place.
    pub value: Value,
    /// `model_type`.
    pub model_type: String,
    /// Dotted name of what `get_text_config()` gives, where that is not `text_config`.
    pub text: Option<String>,
    /// The class is remote code: of its fields only those are known that the file gives.
    pub remote: bool,
}

impl Resolved {
    /// `get_text_config()`: the sub-config of the language model, or the config itself.
    pub fn text(&self) -> &Value {
        self.value.pointer(&pointer(self.text_path())).filter(|t| t.is_object()).unwrap_or(&self.value)
    }

    /// Dotted name of the sub-config of the language model, where there is one.
    pub fn text_path(&self) -> &str {
        self.text.as_deref().unwrap_or("text_config")
    }

    /// Whether word embeddings are tied, as vLLM's top level sees it.
    pub fn tied(&self) -> bool {
        self.value.get("tie_word_embeddings").is_some_and(facts::expr::truthy)
    }

    /// The tie flag of a sub-config.
    pub fn tie_flag(&self, path: &str) -> Option<bool> {
        let flag = self.value.pointer(&pointer(path))?.get("tie_word_embeddings")?;
        (!flag.is_null()).then(|| facts::expr::truthy(flag))
    }

    /// Clear the tie flag on the outer level and in the text config, for whoever asks.
    pub fn untie(&mut self, chain: &[(String, String)]) {
        let text = self.text_path().to_owned();
        for path in ["", &text].into_iter().chain(chain.iter().map(|c| c.1.as_str())) {
            if let Some(Value::Object(o)) = self.value.pointer_mut(&pointer(path)) {
                o.insert("tie_word_embeddings".into(), Value::Bool(false));
                o.insert(KEPT.into(), Value::Bool(false));
            }
        }
    }

    /// `VllmConfig.with_hf_config`: the outer flag goes to the language model inside. One that names no architecture is
    /// copied for that, and the outer class still sees its own flag.
    pub fn tie_inner(&mut self, version: &str, chain: &[(String, String)]) {
        for (outer, path) in chain {
            let Some(tied) = self.tie_flag(outer) else { continue };
            let Some(Value::Object(o)) = self.value.pointer_mut(&pointer(path)) else { continue };
            let named = o.get("architectures").and_then(Value::as_array).is_some_and(|a| !a.is_empty());
            let model_type = o.get("model_type").and_then(Value::as_str).unwrap_or_default();
            let copied = !named && facts::names(version).is_some_and(|n| n.causal.contains_key(model_type));
            let own = o.get("tie_word_embeddings").cloned().unwrap_or_default();
            o.insert(KEPT.into(), if copied { own } else { tied.into() });
            o.insert("tie_word_embeddings".into(), tied.into());
        }
    }
}

/// JSON pointer of a sub-config's dotted name; that of the config itself for an empty one.
pub fn pointer(path: &str) -> String {
    path.split('.').filter(|f| !f.is_empty()).map(|f| format!("/{f}")).collect()
}

fn refused(kind: Kind, error_type: &str, text: String, pointer: &str) -> Event {
    let mut e = Event::new(Stage::Config, Effect::Refuses, kind);
    e.pointer = Some(pointer.to_owned());
    e.error = Some(Raised { error_type: error_type.into(), text });
    e
}

fn unknown(detail: String) -> Event {
    let mut e = Event::new(Stage::Config, Effect::Keeps, Kind::Unknown);
    e.detail = detail;
    e
}

/// The model type; a few architectures stand for one (`_ARCHITECTURE_TO_MODEL_TYPE`).
pub(super) fn model_type(version: &str, raw: &Value) -> Option<String> {
    if let Some(named) = raw.get("model_type") {
        return named.as_str().map(str::to_owned);
    }
    let architecture = raw.get("architectures")?.get(0)?.as_str()?;
    facts::names(version)?.by_architecture.get(architecture).cloned()
}

/// Resolve a `config.json` value; the error is the event that ends the load there.
pub fn resolve(version: &str, raw: &Value) -> Result<Resolved, Box<Event>> {
    let Some(model_type) = &model_type(version, raw) else {
        let text = "Unrecognized model in <dir>. Should have a `model_type` key in its config.json.".to_owned();
        return Err(Box::new(refused(Kind::ModelTypeUnknown, "ValidationError", text, "/model_type")));
    };
    let Some(program) = facts::config(version, model_type) else {
        if facts::names(version).is_none_or(|n| n.model_types.iter().any(|t| t == model_type)) {
            return Err(Box::new(unknown(format!("no facts yet for the config class of model type `{model_type}`"))));
        }
        let text = format!(
            "The checkpoint you are trying to load has model type `{model_type}` but Transformers does not recognize this architecture. \
             This could be because of an issue with the checkpoint, or because your version of Transformers is out of date.\n\n\
             You can update Transformers with the command `pip install --upgrade transformers`. If this does not work, and the checkpoint is \
             very new, then there may not be a release version that supports this model yet. In this case, you can get the most up-to-date \
             code by installing Transformers from source with the command `pip install git+<url>`"
        );
        return Err(Box::new(refused(Kind::ModelTypeUnknown, "ValidationError", text, "/model_type")));
    };
    let empty = Map::new();
    let value = run(version, &program, raw.as_object().unwrap_or(&empty), "", 0)?;
    // transformers prints the config, and for that asks the quantization config for its dictionary.
    if let Some(q) = raw.get("quantization_config").filter(|q| !q.is_object() && !q.is_null()) {
        let text = format!("'{}' object has no attribute 'to_dict'", python::type_name(q));
        return Err(Box::new(refused(Kind::ConfigField, "AttributeError", text, "/quantization_config")));
    }
    // `get_hf_text_config`: a text config that no class has read is a plain dictionary.
    if let (None, Some(Value::Object(text))) = (&program.text, value.get("text_config"))
        && !program.auto.contains_key("text_config")
        && (!program.sub.contains_key("text_config") || !text.contains_key("num_attention_heads"))
    {
        let text = "The text_config extracted from the model config does not have `num_attention_heads` attribute. This indicates a \
                    mismatch between the model config and vLLM's expectations. Please ensure that the model config is compatible with vLLM.";
        return Err(Box::new(refused(Kind::ConfigField, "ValidationError", text.to_owned(), "/text_config")));
    }
    Ok(Resolved { value: Value::Object(value), model_type: model_type.to_owned(), text: program.text, remote: false })
}

/// What a class makes of a config that names another model type.
pub(super) fn of_class(version: &str, program: &ConfigFile, raw: &Value) -> Result<Map<String, Value>, Box<Event>> {
    run(version, program, raw.as_object().unwrap_or(&Map::new()), "", 0)
}

/// A sub-config by the class of its model type; none where there is none, or no facts.
pub(super) fn inner(version: &str, raw: &Value, field: &str) -> Result<Option<Value>, Box<Event>> {
    let program = raw.get("model_type").and_then(Value::as_str).and_then(|t| facts::config(version, t));
    let (Some(program), Some(object)) = (program, raw.as_object()) else { return Ok(None) };
    run(version, &program, object, &format!("/{field}"), 1).map(|o| Some(Value::Object(o)))
}

/// A config with the fields of a sub-config that it lacks itself.
fn flattened(raw: &Map<String, Value>, inner: &Map<String, Value>) -> Map<String, Value> {
    let mut out = raw.clone();
    for (key, value) in inner.iter().filter(|(k, _)| !matches!(k.as_str(), "model_type" | "_name_or_path")) {
        out.entry(key.clone()).or_insert_with(|| value.clone());
    }
    out
}

/// One config class: aliases, types, defaults, sub-configs, derived fields, validators.
fn run(
    version: &str,
    program: &ConfigFile,
    raw: &Map<String, Value>,
    at: &str,
    depth: usize,
) -> Result<Map<String, Value>, Box<Event>> {
    let flat = program.flat.as_ref().and_then(|field| Some(flattened(raw, raw.get(field)?.as_object()?)));
    let raw = flat.as_ref().unwrap_or(raw);
    let mut out = Map::new();
    for (field, f) in &program.fields {
        let field = program.aliases.get(field).unwrap_or(field);
        out.insert(field.clone(), f.get("default").cloned().unwrap_or(Value::Null));
    }
    for (key, value) in raw {
        let field = program.aliases.get(key).unwrap_or(key);
        if let Some(kind) = program
            .fields
            .get(key)
            .or_else(|| program.fields.get(field))
            .and_then(|f| f.get("type"))
            .and_then(Value::as_str)
            && !of_type(value, kind)
        {
            let text =
                format!("Validation error for field '{field}':\n    TypeError: {}", mistyped(field, kind, value));
            return Err(Box::new(refused(
                Kind::ConfigField,
                "StrictDataclassFieldValidationError",
                text,
                &format!("{at}/{}", escape_pointer(key)),
            )));
        }
        out.insert(field.clone(), value.clone());
    }
    for (alias, field) in &program.aliases {
        let value = out.get(field).cloned().unwrap_or(Value::Null);
        out.insert(alias.clone(), value);
    }
    for (field, sub) in &program.sub {
        let key = sub.get("from").and_then(Value::as_str).unwrap_or(field);
        let given = out.get(key).filter(|v| v.is_object()).cloned();
        let missing = raw.get(key).is_none_or(Value::is_null);
        let inner = sub.get("model_type").and_then(Value::as_str).and_then(|t| facts::config(version, t));
        let stand_in = match sub.get("default").and_then(Value::as_str) {
            _ if !missing => Some(Value::Object(Map::new())),
            Some("class") => Some(Value::Object(Map::new())),
            // The older, flat form: the fields of the sub-config lie around it.
            Some("flat") => {
                let own = |k: &String| {
                    let inner = inner.as_ref().is_some_and(|i| i.fields.contains_key(k) || i.sub.contains_key(k));
                    inner && !program.fields.contains_key(k)
                };
                Some(Value::Object(raw.iter().filter(|(k, _)| own(k)).map(|(k, v)| (k.clone(), v.clone())).collect()))
            }
            _ => None,
        };
        let value = match (given.or(stand_in), inner) {
            (None, _) => Value::Null,
            (Some(Value::Object(object)), Some(p)) if depth < 4 => {
                Value::Object(run(version, &p, &object, &format!("{at}/{field}"), depth + 1)?)
            }
            (Some(other), _) => other,
        };
        out.insert(field.clone(), value);
    }
    for (field, auto) in &program.auto {
        let given = out.get(auto.from.as_ref().unwrap_or(field)).filter(|v| !v.is_null()).or(auto.default.as_ref());
        let Some(Value::Object(mut object)) = given.cloned() else { continue };
        let named = object.get("model_type").and_then(Value::as_str).or(auto.model_type.as_deref()).map(str::to_owned);
        if let (true, Some(Value::Object(below))) = (auto.merge && named == auto.model_type, &auto.default) {
            for (key, value) in below {
                object.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        let named = named.as_deref();
        let inner = named.and_then(|t| facts::config(version, t));
        let Some(inner) = inner.filter(|_| depth < 4) else {
            return Err(Box::new(unknown(format!("no facts yet for the config class of `{field}`"))));
        };
        let mut value = run(version, &inner, &object, &format!("{at}/{field}"), depth + 1)?;
        value.insert("model_type".into(), inner.model_type.clone().into());
        out.insert(field.clone(), Value::Object(value));
    }
    for (field, expr) in &program.derive {
        let snapshot = Value::Object(std::mem::take(&mut out));
        let value = expr.eval(&Scope::new(&snapshot, &[]));
        if let Value::Object(o) = snapshot {
            out = o;
        }
        out.insert(field.clone(), value);
    }
    if program.fields.contains_key("rope_parameters") {
        rope::validate(&program.model_type, &out).map_err(|(error, text, field)| {
            Box::new(refused(Kind::ConfigField, error, text, &format!("{at}/{field}")))
        })?;
    }
    let snapshot = Value::Object(out);
    let scope = Scope::new(&snapshot, &[]);
    for check in &program.checks {
        if !check.ok.truth(&scope) {
            let text = python::fill(&check.message, &snapshot);
            return Err(Box::new(refused(Kind::ConfigField, &check.error, text, at)));
        }
    }
    match snapshot {
        Value::Object(o) => Ok(o),
        _ => Ok(Map::new()),
    }
}

/// What huggingface_hub's strict dataclasses say of a value of another type.
fn mistyped(field: &str, kind: &str, value: &Value) -> String {
    let got = format!("got {} (value: {})", python::type_name(value), python::repr(value));
    let one = |k: &str| match k {
        "RopeParameters" => "TypedDict does not support instance and class checks".to_owned(),
        "null" => format!("Field '{field}' expected NoneType, {got}"),
        k => format!("Field '{field}' expected {k}, {got}"),
    };
    let kinds: Vec<&str> = kind.split('|').collect();
    if let [k] = kinds[..] {
        return one(k);
    }
    let classes: Vec<String> = kinds
        .iter()
        .map(|k| match *k {
            "null" => "<class 'NoneType'>".into(),
            "RopeParameters" => "<class 'transformers.modeling_rope_utils.RopeParameters'>".into(),
            k if k.contains('[') => k.to_owned(),
            k => format!("<class '{k}'>"),
        })
        .collect();
    let errors: Vec<String> = kinds.iter().map(|k| one(k)).collect();
    format!(
        "Field '{field}' with value {} doesn't match any type in ({}). Errors: {}",
        python::repr(value),
        classes.join(", "),
        errors.join("; ")
    )
}

/// Whether a JSON value fits a type of transformers' strict dataclasses, e.g. `int|null`, `list[int]`.
fn of_type(v: &Value, kind: &str) -> bool {
    kind.split('|').any(|k| {
        let k = k.trim();
        match (v, k) {
            (Value::Null, "null" | "None")
            | (Value::Bool(_), "bool")
            | (Value::String(_), "str")
            | (Value::Object(_), "dict") => true,
            (Value::Array(_), "list" | "tuple") => true,
            (Value::Number(n), "int") => n.is_i64() || n.is_u64(),
            // An int is accepted where a float is expected.
            (Value::Number(_), "float") => true,
            (_, "any" | "") => true,
            (Value::Array(a), _) => k
                .strip_prefix("list[")
                .or_else(|| k.strip_prefix("tuple["))
                .and_then(|k| k.strip_suffix(']'))
                .is_some_and(|inner| a.iter().all(|i| of_type(i, inner.trim_end_matches(", ...")))),
            (Value::Object(_), _) => k.starts_with("dict[") || k == "RopeParameters",
            // Types that we do not know are not ours to refuse.
            (_, k) => {
                !matches!(
                    k,
                    "null" | "None" | "bool" | "str" | "dict" | "list" | "tuple" | "int" | "float" | "RopeParameters"
                ) && !k.starts_with("list[")
                    && !k.starts_with("dict[")
                    && !k.starts_with("tuple[")
            }
        }
    })
}
