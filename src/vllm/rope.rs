//! Rotary embeddings: what transformers and vLLM demand of `rope_parameters` (transformers modeling_rope_utils.py
//! `RotaryEmbeddingConfigMixin`, vllm/model_executor/layers/rotary_embedding `get_rope`).

use super::python;
use super::trace::{Effect, Event, Kind, Raised, Stage, Trace};
use serde_json::{Map, Value};

/// `rope_scaling`, the older name, wins when it says anything.
fn given(config: &Map<String, Value>) -> Option<(&'static str, &Map<String, Value>)> {
    ["rope_scaling", "rope_parameters"]
        .into_iter()
        .find_map(|k| Some((k, config.get(k)?.as_object().filter(|o| !o.is_empty())?)))
}

fn kind(parameters: &Map<String, Value>) -> &str {
    let text = |k: &str| parameters.get(k).and_then(Value::as_str);
    text("rope_type").or_else(|| text("type")).unwrap_or("default")
}

/// The parameters of each kind of layer; a flat dictionary stands for all of them.
fn parts<'c>(
    config: &Map<String, Value>,
    parameters: &'c Map<String, Value>,
) -> Vec<(&'c str, &'c Map<String, Value>)> {
    let labels = config.get("layer_types").and_then(Value::as_array);
    let nested: Vec<_> = parameters
        .iter()
        .filter(|(k, _)| labels.is_some_and(|l| l.iter().any(|x| x.as_str() == Some(k))))
        .filter_map(|(k, v)| Some((k.as_str(), v.as_object()?)))
        .collect();
    if nested.is_empty() { vec![("full_attention", parameters)] } else { nested }
}

/// Fills a flat dictionary into one for each kind of layer, so that the flat keys are never looked at.
fn always_nested(model_type: &str) -> bool {
    model_type.starts_with("gemma3") || model_type.starts_with("gemma4")
}

/// `validate_rope`: exception type, text, and the field.
pub fn validate(model_type: &str, config: &Map<String, Value>) -> Result<(), (&'static str, String, &'static str)> {
    let Some((field, parameters)) = given(config) else { return Ok(()) };
    let parts = parts(config, parameters);
    for (layers, p) in &parts {
        if always_nested(model_type) && parts.len() == 1 && std::ptr::eq(*p, parameters) {
            return Ok(());
        }
        let kind = match (model_type, kind(p)) {
            ("phi3", "su" | "yarn") => "longrope",
            (t, "mrope") if t.contains("_vl") => "default",
            (_, k) => k,
        };
        // `original_max_position_embeddings` and `rope_theta` are filled in.
        let required: &[&str] = match kind {
            "linear" | "dynamic" | "yarn" => &["factor"],
            "llama3" => &["factor", "high_freq_factor", "low_freq_factor"],
            "longrope" => &["long_factor", "short_factor"],
            _ => &[],
        };
        let missing: Vec<String> = required.iter().filter(|k| !p.contains_key(**k)).map(|k| format!("'{k}'")).collect();
        if !missing.is_empty() {
            let text = format!(
                "Missing required keys in `rope_parameters` for 'rope_type'='{kind}': {{{}}}",
                missing.join(", ")
            );
            return Err(("KeyError", python::repr(&Value::from(text)), field));
        }
        let head = config.get("head_dim").and_then(Value::as_u64).filter(|_| !config.contains_key("per_layer_config"));
        let share = p.get("partial_rotary_factor").or_else(|| config.get("partial_rotary_factor"));
        let share = share.and_then(Value::as_f64).unwrap_or(1.0);
        if let Some(head) = head.filter(|h| *h > 4 && h % 2 == 1 && (*h as f64 * share) as u64 == *h) {
            return Err((
                "StrictDataclassClassValidationError",
                format!(
                    "Class validation error for validator 'validate_rope':\n    ValueError: RoPE requires an even rotary dimension, but got \
                     `head_dim`={head} with `partial_rotary_factor`={share:?} for `{layers}`."
                ),
                "head_dim",
            ));
        }
        if model_type == "phi3" {
            phi3(config, p, kind, share).map_err(|text| {
                let text = format!("Class validation error for validator 'validate_rope':\n    ValueError: {text}");
                ("StrictDataclassClassValidationError", text, field)
            })?;
        }
    }
    Ok(())
}

/// `Phi3Config.validate_rope`.
fn phi3(config: &Map<String, Value>, p: &Map<String, Value>, kind: &str, share: f64) -> Result<(), String> {
    if !matches!(kind, "default" | "longrope") {
        return Err(format!("`rope_parameters`'s type field must be one of ['longrope'], got {kind}"));
    }
    let size = |k: &str| config.get(k).and_then(Value::as_u64);
    let Some(head) = size("hidden_size").zip(size("num_attention_heads")).and_then(|(h, n)| h.checked_div(n)) else {
        return Ok(());
    };
    let want = (head as f64 * share) as usize / 2;
    for field in ["short_factor", "long_factor"] {
        let Some(v) = p.get(field).filter(|v| !v.is_null()) else { continue };
        let Some(list) = v.as_array().filter(|l| l.iter().all(Value::is_number)) else {
            return Err(format!(
                "`rope_parameters`'s {field} field must be a list of numbers, got {}",
                python::display(v)
            ));
        };
        if list.len() != want {
            return Err(format!("`rope_parameters`'s {field} field must have length {want}, got {}", list.len()));
        }
    }
    Ok(())
}

/// `get_rope`: a kind that vLLM has no layer for.
pub fn construct(model_type: &str, text: &Value, at: &str, trace: &mut Trace) {
    let Some(config) = text.as_object() else { return };
    let Some((field, parameters)) = given(config) else { return };
    if always_nested(model_type) {
        return;
    }
    for (_, p) in parts(config, parameters) {
        let kind = kind(p);
        let known = [
            "default",
            "bailing_mrope",
            "proportional",
            "llama3",
            "mllama4",
            "linear",
            "ntk",
            "dynamic",
            "yarn",
            "deepseek_yarn",
            "deepseek_llama_scaling",
            "longrope",
            "openpangu",
            "mrope",
            "su",
        ];
        if let Some(Value::Array(sections)) = p.get("mrope_section") {
            let size = |k: &str| config.get(k).and_then(Value::as_u64);
            let head = size("head_dim").or_else(|| size("hidden_size")?.checked_div(size("num_attention_heads")?));
            let share = p.get("partial_rotary_factor").and_then(Value::as_f64).unwrap_or(1.0);
            let sum: u64 = sections.iter().filter_map(Value::as_u64).fold(0, u64::saturating_add);
            if matches!(kind, "default" | "mrope" | "yarn")
                && head.is_some_and(|h| (h as f64 * share) as u64 / 2 != sum)
            {
                // A bare `assert sum(self.mrope_section) == rotary_dim // 2`.
                return refuse(trace, format!("{at}/{field}/mrope_section"), "AssertionError", String::new());
            }
        }
        // DeepSeek's classes rename whatever is not the default.
        if known.contains(&kind) || model_type.starts_with("deepseek") {
            continue;
        }
        let text = format!("Unknown RoPE scaling type {kind}");
        return refuse(trace, format!("{at}/{field}"), "ValueError", text);
    }
}

/// `ROPE_INIT_FUNCTIONS[rope_type]` of transformers, whose own module turns the embeddings in the Transformers backend.
pub fn construct_by_transformers(text: &Value, at: &str, trace: &mut Trace) {
    let Some((config, (field, parameters))) = text.as_object().and_then(|c| Some((c, given(c)?))) else { return };
    let known = ["default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional", "su", "mrope"];
    if let Some(kind) = parts(config, parameters).into_iter().map(|(_, p)| kind(p)).find(|k| !known.contains(k)) {
        refuse(trace, format!("{at}/{field}"), "KeyError", python::repr(&Value::from(kind)));
    }
}

fn refuse(trace: &mut Trace, pointer: String, error_type: &str, text: String) {
    let mut e = Event::new(Stage::Init, Effect::Refuses, Kind::ConfigField);
    e.file = Some("config.json".into());
    e.pointer = Some(pointer);
    e.error = Some(Raised { error_type: error_type.into(), text });
    trace.events.push(e);
}
