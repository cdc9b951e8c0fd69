//! `CompressedTensorsConfig.from_config`: what is read, in which order it is checked, and what it raises.

use crate::checkpoint::escape_pointer;
use serde_json::{Map, Value};

use super::args::Args;
use super::entries::Entries;
use super::{CompressedTensors, Group, extras};
use crate::vllm::method::py::{self, raised};
use crate::vllm::trace::Raised;

/// A JSON pointer relative to the quantization config, and what vLLM raises there.
pub(super) type Refused = (String, Raised);

/// `from_config`.
pub(super) fn parse(config: &Value) -> Result<CompressedTensors, Refused> {
    let empty = Map::new();
    let config = config.as_object().unwrap_or(&empty);
    let groups = groups(config)?;
    let format = config.get("format").cloned().unwrap_or(Value::Null);
    let mut out = CompressedTensors { format, ..CompressedTensors::default() };
    for (pointer, group) in groups {
        read_group(&mut out, &pointer, group)?;
    }
    extras::sparsity(config)?;
    out.transforms = extras::transforms(config)?;
    out.ignore = ignore(config)?;
    out.broken = out.ignore.broken().chain(out.targets.broken()).collect();
    out.kv_cache_scheme = config.get("kv_cache_scheme").cloned().unwrap_or(Value::Null);
    Ok(out)
}

/// An object and its pointer.
type Located<'a> = (String, &'a Map<String, Value>);

/// A step of a JSON pointer.
fn step(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", escape_pointer(key))
}

/// Every group but those that quantize attention alone.
fn groups(config: &Map<String, Value>) -> Result<Vec<Located<'_>>, Refused> {
    let at = "/config_groups";
    let groups = match config.get("config_groups") {
        None => return Ok(Vec::new()),
        Some(Value::Object(groups)) => groups,
        Some(other) => return Err((at.into(), no_attribute(other, "items"))),
    };
    let mut kept = Vec::new();
    for (name, value) in groups {
        let pointer = step(at, name);
        let Some(group) = value.as_object() else {
            return Err((pointer, not_a_group(value)));
        };
        let Some(targets) = group.get("targets") else {
            return Err((pointer, raised("KeyError", "'targets'")));
        };
        let here = step(&pointer, "targets");
        let only = match targets {
            Value::Array(list) => (list.len() == 1).then(|| list[0].clone()),
            Value::String(s) => (s.chars().count() == 1).then(|| targets.clone()),
            Value::Object(map) if map.len() == 1 => return Err((here, raised("KeyError", "0"))),
            Value::Object(_) => None,
            other => {
                let text = format!("object of type '{}' has no len()", py::type_name(other));
                return Err((here, raised("TypeError", text)));
            }
        };
        match only {
            Some(Value::String(s)) if s.ends_with("Attention") => continue,
            Some(Value::String(_)) | None => kept.push((pointer, group)),
            Some(other) => return Err((step(&here, "0"), no_attribute(&other, "endswith"))),
        }
    }
    Ok(kept)
}

fn not_a_group(value: &Value) -> Raised {
    raised(
        "TypeError",
        match value {
            Value::String(_) => "string indices must be integers, not 'str'".to_owned(),
            Value::Array(_) => "list indices must be integers or slices, not str".to_owned(),
            other => format!("'{}' object is not subscriptable", py::type_name(other)),
        },
    )
}

fn no_attribute(value: &Value, name: &str) -> Raised {
    raised("AttributeError", format!("'{}' object has no attribute '{name}'", py::type_name(value)))
}

/// Items as iterating over a Python list, string or dict gives them, with their pointers.
fn items(value: &Value, pointer: &str) -> Option<Vec<(String, Value)>> {
    Some(match value {
        Value::Array(list) => list.iter().enumerate().map(|(i, v)| (format!("{pointer}/{i}"), v.clone())).collect(),
        Value::String(s) => s.chars().map(|c| (pointer.to_owned(), Value::String(c.into()))).collect(),
        Value::Object(map) => map.keys().map(|k| (step(pointer, k), Value::String(k.clone()))).collect(),
        _ => return None,
    })
}

fn read_group(out: &mut CompressedTensors, pointer: &str, group: &Map<String, Value>) -> Result<(), Refused> {
    let targets = group.get("targets").and_then(|t| items(t, &step(pointer, "targets"))).unwrap_or_default();
    if targets.is_empty() {
        return Ok(());
    }
    if let Some((at, bad)) = targets.first().filter(|(_, t)| t.is_array() || t.is_object()) {
        return Err((at.clone(), unhashable(bad)));
    }
    // Python validates once a target, with the same outcome.
    let index = out.groups.len();
    out.groups.push(read_args(pointer, group, &out.format)?);
    for (at, target) in targets {
        match target {
            Value::String(text) => out.targets.put(text, at, index),
            Value::Array(_) | Value::Object(_) => return Err((at, unhashable(&target))),
            other => out.targets.put_odd(&other, at, index),
        }
    }
    Ok(())
}

fn unhashable(value: &Value) -> Raised {
    raised("TypeError", format!("unhashable type: '{}'", py::type_name(value)))
}

fn read_args(pointer: &str, group: &Map<String, Value>, global: &Value) -> Result<Group, Refused> {
    let null = Value::Null;
    let get = |key: &str| group.get(key).unwrap_or(&null);
    let args = |key: &str| {
        Args::parse(get(key)).map_err(|(field, raised)| {
            let at = if group.contains_key(key) { step(pointer, key) } else { pointer.to_owned() };
            (if field.is_empty() { at } else { step(&at, &field) }, raised)
        })
    };
    let weights = args("weights")?;
    if let Some(order) = weights.refused_ordering() {
        let text = format!(
            "Compressed-tensors group/dynamic activation ordering (actorder={order}) is no longer supported. Use a \
             checkpoint with static/weight activation ordering or without activation ordering."
        );
        return Err((step(&step(pointer, "weights"), "actorder"), raised("ValueError", text)));
    }
    let own = get("format");
    let quantizes_activations = is_activation_format(if own.is_null() { global } else { own });
    let input = if py::truthy(get("input_activations")) {
        Some(args("input_activations")?)
    } else if quantizes_activations && !weights.float {
        return Err((pointer.to_owned(), raised("AssertionError", "")));
    } else {
        None
    };
    let output = if py::truthy(get("output_activations")) { Some(args("output_activations")?) } else { None };
    Ok(Group { weights, input, output, format: own.clone(), pointer: pointer.to_owned() })
}

/// `is_activation_quantization_format`.
pub(super) fn is_activation_format(format: &Value) -> bool {
    matches!(format.as_str(), Some("naive-quantized" | "int-quantized" | "float-quantized" | "nvfp4-pack-quantized"))
}

/// The list as Python iterates over it.
fn ignore(config: &Map<String, Value>) -> Result<Entries, Refused> {
    let mut entries = Entries::default();
    let Some(value) = config.get("ignore") else { return Ok(entries) };
    let Some(list) = items(value, "/ignore") else {
        let text = format!("'{}' object is not iterable", py::type_name(value));
        return Err(("/ignore".into(), raised("TypeError", text)));
    };
    for (i, (at, entry)) in list.into_iter().enumerate() {
        match entry {
            Value::String(text) => entries.push(text, at, i),
            other => entries.push_odd(&other, at, i),
        }
    }
    Ok(entries)
}
