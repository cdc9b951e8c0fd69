//! `INCConfig.from_config`: what is read, and what it raises.

use super::super::py;
use super::{Data, Extra, Group, Inc, Width, pattern};
use crate::vllm::trace::Raised;
use serde_json::{Value, json};

pub(super) type Refused = (String, Raised);

const FORMATS: [&str; 4] =
    ["auto_round:auto_awq", "auto_round:auto_gptq", "auto_round:fp8", "auto_round:llm_compressor"];
const BACKENDS: [&str; 6] = ["auto", "awq", "awq:marlin", "gptq", "gptq:marlin", "marlin"];

impl Inc {
    /// Whether a config is one of those that are simulated: other widths of integers go to a package (humming) with layouts of
    /// its own.
    pub fn knows(config: &Value) -> bool {
        let int = config.get("data_type").is_none_or(|t| t == "int");
        let wide = |v: &Value| v.get("bits").is_none_or(|b| !matches!(b.as_i64(), Some(2 | 3 | 5 | 6 | 7)));
        let extra = config.get("extra_config").and_then(Value::as_object);
        !int || wide(config) && extra.is_none_or(|m| m.values().all(wide))
    }

    /// `INCConfig.from_config`.
    ///
    /// # Errors
    /// What it raises, with the JSON pointer relative to the quantization config.
    pub fn parse(config: &Value) -> Result<Inc, Refused> {
        let value_error = |at: &str, text: String| Err((at.to_owned(), py::raised("ValueError", text)));
        let word = config.get("data_type").cloned().unwrap_or_else(|| "int".into());
        let word = if word == "fp8" { "fp".into() } else { word };
        let bits = py::required(config, &["bits"])?;
        let group = group_size(py::required(config, &["group_size"])?)?;
        let Some(data) = Data::of(&word) else {
            let text = format!("argument of type '{}' is not iterable", py::type_name(&word));
            return Err(("/data_type".into(), py::raised("TypeError", text)));
        };
        let format = config.get("packing_format").filter(|v| !v.is_null()).cloned();
        let format = format.unwrap_or_else(|| match (data, group) {
            (Data::Float, Group::Two(_)) if *bits == 8 => "auto_round:fp8".into(),
            (Data::Mx, _) => "auto_round:llm_compressor".into(),
            _ => "auto_round:auto_gptq".into(),
        });
        if !bits.as_i64().is_some_and(|b| (2..=8).contains(&b)) {
            let text = format!(
                "Unsupported weight_bits: {}, currently only support {{2, 3, 4, 5, 6, 7, 8}}.",
                py::display(bits)
            );
            return value_error("/bits", text);
        }
        if data == Data::Other {
            let types = set(&["fp", "int", "mx_fp"]);
            let text = format!("Unsupported data_type: {}, currently only support {types}.", py::display(&word));
            return value_error("/data_type", text);
        }
        if !FORMATS.iter().any(|f| format == *f) {
            let text = format!(
                "Unsupported packing_format: {}, currently only support {}.",
                py::display(&format),
                set(&FORMATS)
            );
            return value_error("/packing_format", text);
        }
        let backend = ["backend", "vllm_backend"].iter().find_map(|k| config.get(*k)).cloned();
        let backend = backend.unwrap_or_else(|| "auto".into());
        if !BACKENDS.iter().any(|b| backend == *b) {
            let text =
                format!("Unsupported backend: {}, currently only support {}.", py::display(&backend), set(&BACKENDS));
            return value_error("/backend", text);
        }
        let inc = Inc {
            data,
            word: word.as_str().unwrap_or_default().to_owned(),
            base: Width {
                bits: bits.as_i64().unwrap_or(4),
                group,
                symmetric: config.get("sym").is_none_or(py::truthy),
            },
            format: format.as_str().unwrap_or_default().to_owned(),
            backend: backend.as_str().unwrap_or_default().to_owned(),
            blocks: blocks(config),
            extra: extra(config),
            packed: Vec::new(),
            odd: config.get("extra_config").filter(|v| !v.is_object() && !v.is_null()).map(|v| {
                py::raised("AttributeError", format!("'{}' object has no attribute 'items'", py::type_name(v)))
            }),
        };
        let failed = |(at, text): (&str, String)| (format!("/{at}"), py::raised("AssertionError", text));
        inc.validate().map_err(failed)?;
        inc.activations(config).map_err(failed)?;
        Ok(inc)
    }

    /// `_validate_supported_quantization`: the key at fault, and what is said of it.
    fn validate(&self) -> Result<(), (&'static str, String)> {
        let Width { bits, group, symmetric } = self.base;
        let (name, widths, format) = match self.data {
            Data::Int => {
                if matches!(group, Group::Two(_)) {
                    let text =
                        format!("INC int quantization requires scalar group_size, but found group_size={group}.");
                    return Err(("group_size", text));
                }
                if self.format != FORMATS[0] && self.format != FORMATS[1] {
                    let text = format!(
                        "INC int quantization only supports packing_format in ['auto_round:auto_awq', \
                         'auto_round:auto_gptq'], but found packing_format={}.",
                        py::repr_str(&self.format)
                    );
                    return Err(("packing_format", text));
                }
                return Ok(());
            }
            Data::Float => ("block-wise FP8", "bits=8", "auto_round:fp8"),
            // The element's name in the word, and nothing is looked at.
            Data::Mx if self.word != "mx_fp" => return Ok(()),
            _ => ("MXFP", "bits=4 or bits=8", "auto_round:llm_compressor"),
        };
        if bits != 8 && (self.data == Data::Float || bits != 4) {
            return Err(("bits", format!("INC {name} only supports {widths}, but found bits={bits}.")));
        }
        if self.data == Data::Mx && group != Group::One(32) {
            return Err(("group_size", format!("INC MXFP only supports group_size=32, but found group_size={group}.")));
        }
        if self.data == Data::Float && matches!(group, Group::One(_)) {
            let text = format!("INC block-wise FP8 requires a 2-D group_size, but found group_size={group}.");
            return Err(("group_size", text));
        }
        if !symmetric {
            return Err(("sym", format!("INC {name} only supports symmetric weights.")));
        }
        for (key, found, only) in [("packing_format", &self.format, format), ("backend", &self.backend, "auto")] {
            if found != only {
                let found = py::repr_str(found);
                // The one says the key again, and the other does not.
                let found = if key == "backend" { format!("{key}={found}") } else { found };
                let text = format!("INC {name} only supports {key}={}, but found {found}.", py::repr_str(only));
                return Err((key, text));
            }
        }
        Ok(())
    }

    /// `_validate_raw_config`: what is said of activations, where it is said.
    fn activations(&self, config: &Value) -> Result<(), (&'static str, String)> {
        let (name, expected) = match (self.data, self.base.group) {
            (Data::Float, Group::Two([rows, _])) => (
                "block-wise FP8",
                vec![
                    ("act_bits", json!(8)),
                    ("act_group_size", json!(rows)),
                    ("act_data_type", json!("fp")),
                    ("act_sym", json!(true)),
                    ("act_dynamic", json!(true)),
                    ("activation_scheme", json!("dynamic")),
                    ("fmt", json!("e4m3")),
                ],
            ),
            (Data::Mx, _) if self.base.bits == 8 => (
                "MXFP8",
                vec![
                    ("act_bits", json!(8)),
                    ("act_data_type", json!("mx_fp")),
                    ("act_group_size", json!(32)),
                    ("act_sym", json!(true)),
                    ("act_dynamic", json!(true)),
                ],
            ),
            _ => return Ok(()),
        };
        for (key, want) in expected {
            let Some(found) = config.get(key).filter(|found| !equal(found, &want)) else { continue };
            let text =
                format!("INC {name} only supports {key}={}, but found {key}={}.", py::repr(&want), py::repr(found));
            return Err((key, text));
        }
        Ok(())
    }
}

/// Python's `==` of plain values: `True` is 1, and 8.0 is 8.
fn equal(a: &Value, b: &Value) -> bool {
    let number = |v: &Value| v.as_f64().or_else(|| v.as_bool().map(|b| f64::from(u8::from(b))));
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        _ => a == b,
    }
}

fn blocks(config: &Value) -> Vec<String> {
    match ["block_name_to_quantize", "to_quant_block_names"].iter().find_map(|k| config.get(*k)) {
        Some(Value::String(text)) => text.split(',').map(str::to_owned).collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn extra(config: &Value) -> Vec<Extra> {
    let entries = config.get("extra_config").and_then(Value::as_object).into_iter().flatten();
    let extra = entries.map(|(key, values)| Extra {
        written: key.clone(),
        name: key.clone(),
        pattern: pattern(key),
        values: values.clone(),
        used: false,
    });
    extra.collect()
}

/// `_normalize_group_size`.
pub(super) fn group_size(value: &Value) -> Result<Group, Refused> {
    let refused = |text: String| Err(("/group_size".to_owned(), py::raised("ValueError", text)));
    match value {
        Value::Array(items) => match items.iter().map(Value::as_i64).collect::<Option<Vec<_>>>().as_deref() {
            Some(&[rows, columns]) => Ok(Group::Two([rows, columns])),
            _ => refused(format!(
                "INC block-wise FP8 requires group_size to be a 2-D integer sequence, but found {}.",
                py::repr(value)
            )),
        },
        Value::Bool(b) => Ok(Group::One(i64::from(*b))),
        other => match other.as_i64() {
            Some(size) => Ok(Group::One(size)),
            None => refused(format!(
                "INC group_size must be an int or a 2-D integer sequence, but found {}.",
                py::type_name(other)
            )),
        },
    }
}

fn set(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|w| py::repr_str(w)).collect();
    format!("{{{}}}", words.join(", "))
}
