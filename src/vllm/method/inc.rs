//! Auto-round, which vLLM calls `inc` (vllm/model_executor/layers/quantization/inc; spec D.5): integers in GPTQ's or AWQ's
//! layout, MXFP4, MXFP8 or blocks of FP8, with a width of its own for every name or pattern of `extra_config`.

mod parse;
mod scheme;

use super::{Built, DeadEntry, Layer, List, Matching, Offered, Quantizer, py};
use crate::checkpoint::escape_pointer;
use crate::pattern::Pattern;
use crate::vllm::trace::{Kind, Raised};
use serde_json::Value;
use std::fmt;

/// `INCConfig`.
#[derive(Debug)]
pub struct Inc {
    data: Data,
    /// `data_type`, whose aliases are told apart in messages.
    word: String,
    base: Width,
    format: String,
    backend: String,
    /// `block_name_to_quantize`, under vLLM's names.
    blocks: Vec<String>,
    extra: Vec<Extra>,
    packed: Vec<(String, Vec<String>)>,
    /// An `extra_config` that is no object: what renaming it raises, said once.
    odd: Option<Raised>,
}

/// How wide a layer's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Width {
    bits: i64,
    group: Group,
    symmetric: bool,
}

const PLAIN: Width = Width { bits: 16, group: Group::One(-1), symmetric: true };

/// Values under one scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Along the input dimension.
    One(i64),
    /// Rows and columns.
    Two([i64; 2]),
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Group::One(size) => write!(f, "{size}"),
            Group::Two([rows, columns]) => write!(f, "({rows}, {columns})"),
        }
    }
}

/// `data_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Data {
    /// `int`.
    Int,
    /// `fp`, which is 8 bits wide.
    Float,
    /// `mx_fp`, with or without the name of an element.
    Mx,
    /// A word that vLLM does not know.
    Other,
}

impl Data {
    /// None of what cannot be searched for a word.
    fn of(word: &Value) -> Option<Data> {
        Some(match word {
            Value::String(w) if w == "int" => Data::Int,
            Value::String(w) if w == "fp" => Data::Float,
            Value::String(w) if w.contains("mx_fp") => Data::Mx,
            Value::String(_) | Value::Array(_) | Value::Object(_) => Data::Other,
            _ => return None,
        })
    }
}

/// One entry of `extra_config`.
#[derive(Debug)]
struct Extra {
    written: String,
    name: String,
    /// Names with a special character are searched for, too.
    pattern: Option<Pattern>,
    values: Value,
    used: bool,
}

type Failure = (Kind, Raised);

impl Inc {
    fn width(&self, at: usize, quantized: bool) -> Result<Width, Raised> {
        let base = if quantized { self.base } else { PLAIN };
        let values = &self.extra[at].values;
        let group = match values.get("group_size") {
            None => base.group,
            Some(v) => parse::group_size(v).map_err(|e| e.1)?,
        };
        Ok(Width {
            bits: values.get("bits").and_then(Value::as_i64).unwrap_or(base.bits),
            group,
            symmetric: values.get("sym").map_or(base.symmetric, py::truthy),
        })
    }

    /// An entry by exact name, else the first pattern that is found in it.
    fn entry(&mut self, name: &str) -> Option<usize> {
        let exact = self.extra.iter().position(|e| e.name == name);
        let at = exact.or_else(|| {
            let found = |p: &Pattern| p.is_match(name).unwrap_or(false);
            self.extra.iter().position(|e| e.pattern.as_ref().is_some_and(found))
        })?;
        self.extra[at].used = true;
        Some(at)
    }

    /// `get_config`.
    fn config(&mut self, name: &str, quantized: bool) -> Result<Width, Raised> {
        match self.entry(name) {
            Some(at) => self.width(at, quantized),
            None => Ok(if quantized { self.base } else { PLAIN }),
        }
    }

    /// `INCConfigParser._resolve_raw`.
    fn resolve(&mut self, layer: &Layer<'_>) -> Result<Width, Raised> {
        let name = layer.prefix;
        if let Some(at) = self.extra.iter().position(|e| e.name == name) {
            self.extra[at].used = true;
            return self.width(at, true);
        }
        let short = |e: &Extra| name.strip_suffix(e.name.as_str()).is_some_and(|head| head.ends_with('.'));
        if let Some(at) = self.extra.iter().position(short) {
            self.extra[at].used = true;
            return self.width(at, true);
        }
        let mut quantized = layer.offered != Offered::Head;
        if !self.blocks.is_empty() {
            quantized = self.blocks.iter().any(|b| name.starts_with(b.as_str()));
        }
        if !self.extra.is_empty() {
            let fused = |(key, _): &&(String, Vec<String>)| name.matches(key.as_str()).count() == 1;
            let all: Vec<Vec<String>> = self
                .packed
                .iter()
                .filter(fused)
                .map(|(key, parts)| parts.iter().map(|part| name.replace(key.as_str(), part)).collect())
                .collect();
            for parts in all {
                let known: Vec<bool> = parts.iter().map(|n| self.entry(n).is_some()).collect();
                if !known.contains(&true) {
                    continue;
                }
                let widths = parts.iter().map(|n| self.config(n, quantized)).collect::<Result<Vec<_>, _>>()?;
                if widths.iter().any(|w| *w != widths[0]) {
                    let names: Vec<String> = parts.iter().map(|n| py::repr_str(n)).collect();
                    let text =
                        format!("Fused module '{name}' requires consistent quant config for [{}]", names.join(", "));
                    return Err(py::raised("ValueError", text));
                }
                return Ok(widths[0]);
            }
        }
        self.config(name, quantized)
    }

    fn layer(&mut self, layer: &Layer<'_>) -> Result<Built, Failure> {
        let width = self.resolve(layer).map_err(|raised| (Kind::FusedMixture, raised))?;
        if width.bits >= 16 {
            return Ok(Built::Plain { entry: None });
        }
        let scheme = self.scheme(width)?;
        match layer.offered {
            Offered::Embedding | Offered::Attention => Ok(Built::Plain { entry: None }),
            Offered::Linear | Offered::Head | Offered::Experts => self.create(scheme, width, layer),
        }
    }
}

/// A key with a special character is a pattern, to be found anywhere; one that does not compile is none.
fn pattern(key: &str) -> Option<Pattern> {
    key.contains(['*', '+', '?', '^', '$', '(', ')', '[', ']', '{', '}', '|', '\\']).then_some(())?;
    Pattern::new(&format!("re:[\\s\\S]*?(?:{key})")).ok()
}

impl Quantizer for Inc {
    fn name(&self) -> &'static str {
        "inc"
    }

    fn list(&self) -> List {
        List { pointer: "/extra_config".into(), matching: Matching::Widths }
    }

    fn map_names(&mut self, rename: &dyn Fn(&str) -> String) {
        self.blocks.iter_mut().for_each(|b| *b = rename(b));
        for e in &mut self.extra {
            e.name = rename(&e.name);
            e.pattern = pattern(&e.name);
        }
    }

    fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool) {
        super::set_packed(&mut self.packed, mapping, merge);
    }

    fn build(&mut self, layer: &Layer<'_>) -> Built {
        if let Some(raised) = self.odd.take() {
            return Built::Refused { why: Kind::QuantConfigRejected, raised };
        }
        let wide = |e: &Extra| e.values.get("bits").and_then(Value::as_i64).unwrap_or(16) >= 16;
        let named = |e: &Extra| e.name == layer.prefix || e.name.strip_prefix("model.") == Some(layer.prefix);
        if !layer.prefix.is_empty()
            && let Some(e) = self.extra.iter_mut().find(|e| named(e) && wide(e))
        {
            e.used = true;
            return Built::Plain { entry: None };
        }
        self.layer(layer).unwrap_or_else(|(why, raised)| Built::Refused { why, raised })
    }

    fn dead_entries(&self) -> Vec<DeadEntry> {
        let entry = |e: &Extra| DeadEntry {
            pointer: format!("/extra_config/{}", escape_pointer(&e.written)),
            entry: e.written.clone(),
            name: e.name.clone(),
            ignore: true,
        };
        self.extra.iter().filter(|e| !e.used).map(entry).collect()
    }
}
