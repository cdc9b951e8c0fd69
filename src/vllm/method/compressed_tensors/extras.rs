//! Two more models of the library: `SparsityCompressionConfig` and `TransformConfig`.

use serde_json::{Map, Value};

use super::fields::dtype_issues;
use super::parse::Refused;
use crate::vllm::method::py::{self, Issue, raised, validation_error};

/// `_parse_sparsity_config`.
pub(super) fn sparsity(config: &Map<String, Value>) -> Result<(), Refused> {
    const MODEL: &str = "SparsityCompressionConfig";
    const AT: &str = "/sparsity_config";
    let Some(value) = config.get("sparsity_config").filter(|v| py::truthy(v)) else { return Ok(()) };
    let Some(map) = value.as_object() else {
        return Err((AT.into(), validation_error(MODEL, &[not_a_model(&[], MODEL, value)])));
    };
    let mut issues = Vec::new();
    match map.get("format") {
        None => issues.push(missing(&["format"], value)),
        Some(v) => issues.extend(string(&["format"], v)),
    }
    for key in ["targets", "ignore"] {
        if let Some(v) = map.get(key).filter(|v| !v.is_null()) {
            strings(&[key], v, &mut issues);
        }
    }
    match map.get("global_sparsity") {
        Some(v @ Value::String(s)) if s.trim().parse::<f64>().is_err() => {
            let text = "Input should be a valid number, unable to parse string as a number";
            issues.push(Issue::new(&["global_sparsity"], "float_parsing", text, v));
        }
        Some(v @ (Value::Array(_) | Value::Object(_))) => {
            issues.push(Issue::new(&["global_sparsity"], "float_type", "Input should be a valid number", v));
        }
        _ => {}
    }
    if let Some(v) = map.get("sparsity_structure").filter(|v| !v.is_null()) {
        issues.extend(string(&["sparsity_structure"], v));
    }
    if !issues.is_empty() {
        return Err((AT.into(), validation_error(MODEL, &issues)));
    }
    if map.get("targets").is_some_and(py::truthy) {
        let text = "Sparsity support has been removed from compressed-tensors. \
                    Please use a model without sparsity configuration.";
        return Err((format!("{AT}/targets"), raised("DeprecationWarning", text)));
    }
    Ok(())
}

/// `TransformConfig.model_validate`; whether there are any transforms.
pub(super) fn transforms(config: &Map<String, Value>) -> Result<bool, Refused> {
    const MODEL: &str = "TransformConfig";
    let Some(value) = config.get("transform_config").filter(|v| py::truthy(v)) else { return Ok(false) };
    let mut issues = Vec::new();
    let mut any = false;
    match value.as_object() {
        None => issues.push(not_a_model(&[], MODEL, value)),
        Some(map) => {
            match map.get("config_groups") {
                None => issues.push(missing(&["config_groups"], value)),
                Some(Value::Object(groups)) => {
                    any = !groups.is_empty();
                    for (name, group) in groups {
                        scheme(&["config_groups", name], group, &mut issues);
                    }
                }
                Some(v) => {
                    issues.push(Issue::new(&["config_groups"], "dict_type", "Input should be a valid dictionary", v));
                }
            }
            extra(&[], map, &["config_groups"], &mut issues);
        }
    }
    if issues.is_empty() { Ok(any) } else { Err(("/transform_config".into(), validation_error(MODEL, &issues))) }
}

fn scheme(loc: &[&str], value: &Value, issues: &mut Vec<Issue>) {
    let Some(map) = value.as_object() else {
        issues.push(not_a_model(loc, "TransformScheme", value));
        return;
    };
    let at = |key| [loc, &[key]].concat();
    match map.get("type") {
        None => issues.push(missing(&at("type"), value)),
        Some(v) => issues.extend(string(&at("type"), v)),
    }
    match map.get("apply") {
        None => {}
        Some(Value::Array(list)) => {
            for (i, item) in list.iter().enumerate() {
                let i = i.to_string();
                arguments(&[&at("apply")[..], &[&i]].concat(), item, issues);
            }
        }
        Some(v) => issues.push(Issue::new(&at("apply"), "list_type", "Input should be a valid list", v)),
    }
    for key in ["randomize", "requires_grad"] {
        if let Some(v) = map.get(key) {
            issues.extend(py::to_bool(v).err().map(|(kind, text)| Issue::new(&at(key), kind, text, v)));
        }
    }
    if let Some(v) = map.get("head_dim").filter(|v| !v.is_null()) {
        issues.extend(py::to_int(v).err().map(|(kind, text)| Issue::new(&at("head_dim"), kind, text, v)));
    }
    if let Some(v) = map.get("precision").filter(|v| v.as_str().and_then(py::torch_dtype).is_none()) {
        issues.extend(dtype_issues(&at("precision"), v));
    }
    extra(loc, map, &["type", "apply", "randomize", "requires_grad", "head_dim", "precision"], issues);
}

fn arguments(loc: &[&str], value: &Value, issues: &mut Vec<Issue>) {
    const PLACES: [&str; 6] = ["input", "weight_input", "weight_output", "output", "k_cache", "q_attn"];
    let Some(map) = value.as_object() else {
        issues.push(not_a_model(loc, "TransformArgs", value));
        return;
    };
    let at = |key| [loc, &[key]].concat();
    match map.get("targets") {
        None => issues.push(missing(&at("targets"), value)),
        Some(Value::String(_)) => {}
        Some(v) => strings(&at("targets"), v, issues),
    }
    match map.get("location") {
        None => issues.push(missing(&at("location"), value)),
        Some(v) if v.as_str().is_some_and(|s| PLACES.contains(&s)) => {}
        Some(v) => {
            let text = "Input should be 'input', 'weight_input', 'weight_output', 'output', 'k_cache' or 'q_attn'";
            issues.push(Issue::new(&at("location"), "enum", text, v));
        }
    }
    if let Some(v) = map.get("inverse") {
        issues.extend(py::to_bool(v).err().map(|(kind, text)| Issue::new(&at("inverse"), kind, text, v)));
    }
    if let Some(v) = map.get("ignore").filter(|v| !v.is_string()) {
        strings(&at("ignore"), v, issues);
    }
    extra(loc, map, &["targets", "location", "inverse", "ignore"], issues);
}

fn not_a_model(loc: &[&str], model: &str, value: &Value) -> Issue {
    Issue::new(loc, "model_type", format!("Input should be a valid dictionary or instance of {model}"), value)
}

fn missing(loc: &[&str], owner: &Value) -> Issue {
    Issue::new(loc, "missing", "Field required", owner)
}

fn string(loc: &[&str], value: &Value) -> Option<Issue> {
    (!value.is_string()).then(|| Issue::new(loc, "string_type", "Input should be a valid string", value))
}

fn strings(loc: &[&str], value: &Value, issues: &mut Vec<Issue>) {
    let Some(list) = value.as_array() else {
        issues.push(Issue::new(loc, "list_type", "Input should be a valid list", value));
        return;
    };
    for (i, item) in list.iter().enumerate() {
        issues.extend(string(&[loc, &[&i.to_string()]].concat(), item));
    }
}

fn extra(loc: &[&str], map: &Map<String, Value>, known: &[&str], issues: &mut Vec<Issue>) {
    for (key, value) in map.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
        let text = "Extra inputs are not permitted";
        issues.push(Issue::new(&[loc, &[key]].concat(), "extra_forbidden", text, value));
    }
}
