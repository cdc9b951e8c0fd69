//! Auto-round, which vLLM calls `inc` (vllm/model_executor/layers/quantization/inc; spec D.5): integer weights in GPTQ's or
//! AWQ's layout, with a width of its own for every name or pattern of `extra_config`.

use super::kfirst::{self, Packed};
use super::params::Sizes;
use super::{Built, DeadEntry, Layer, List, Matching, Offered, Quantizer, gptq, py};
use crate::checkpoint::escape_pointer;
use crate::pattern::Pattern;
use crate::vllm::trace::{Kind, Raised};
use serde_json::Value;

/// `INCConfig` with `data_type` int.
#[derive(Debug)]
pub struct Inc {
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
    group: i64,
    symmetric: bool,
}

const PLAIN: Width = Width { bits: 16, group: -1, symmetric: true };

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
type Refused = (String, Raised);

impl Inc {
    /// Whether a config is one of those that are simulated: integers of 4 or 8 bits. Others go to kernels (humming, MXFP)
    /// with layouts of their own.
    pub fn knows(config: &Value) -> bool {
        let int = config.get("data_type").is_none_or(|t| t == "int");
        let wide = |v: &Value| v.get("bits").is_none_or(|b| !matches!(b.as_i64(), Some(2 | 3 | 5 | 6 | 7)));
        let extra = config.get("extra_config").and_then(Value::as_object);
        int && wide(config) && extra.is_none_or(|m| m.values().all(wide))
    }

    /// `INCConfig.from_config`.
    ///
    /// # Errors
    /// What it raises, with the JSON pointer relative to the quantization config.
    pub fn parse(config: &Value) -> Result<Inc, Refused> {
        let value_error = |at: &str, text: String| Err((at.to_owned(), py::raised("ValueError", text)));
        let bits = py::required(config, &["bits"])?;
        let group = group_size(py::required(config, &["group_size"])?)?;
        if !bits.as_i64().is_some_and(|b| (2..=8).contains(&b)) {
            let text = format!(
                "Unsupported weight_bits: {}, currently only support {{2, 3, 4, 5, 6, 7, 8}}.",
                py::display(bits)
            );
            return value_error("/bits", text);
        }
        let format = config.get("packing_format").filter(|v| !v.is_null()).cloned();
        let format = format.unwrap_or_else(|| "auto_round:auto_gptq".into());
        let formats = ["auto_round:auto_awq", "auto_round:auto_gptq", "auto_round:fp8", "auto_round:llm_compressor"];
        if !formats.iter().any(|f| format == *f) {
            let text = format!(
                "Unsupported packing_format: {}, currently only support {}.",
                py::display(&format),
                set(&formats)
            );
            return value_error("/packing_format", text);
        }
        let backend = ["backend", "vllm_backend"].iter().find_map(|k| config.get(*k)).cloned();
        let backend = backend.unwrap_or_else(|| "auto".into());
        let backends = ["auto", "awq", "awq:marlin", "gptq", "gptq:marlin", "marlin"];
        if !backends.iter().any(|b| backend == *b) {
            let text =
                format!("Unsupported backend: {}, currently only support {}.", py::display(&backend), set(&backends));
            return value_error("/backend", text);
        }
        let Some(group) = group else {
            let sizes = config.get("group_size").unwrap_or(&Value::Null);
            let pair: Vec<String> = sizes.as_array().into_iter().flatten().map(py::repr).collect();
            let text =
                format!("INC int quantization requires scalar group_size, but found group_size=({}).", pair.join(", "));
            return Err(("/group_size".into(), py::raised("AssertionError", text)));
        };
        if format != formats[0] && format != formats[1] {
            let text = format!(
                "INC int quantization only supports packing_format in ['auto_round:auto_awq', 'auto_round:auto_gptq'], but \
                 found packing_format={}.",
                py::repr(&format)
            );
            return Err(("/packing_format".into(), py::raised("AssertionError", text)));
        }
        let blocks = ["block_name_to_quantize", "to_quant_block_names"].iter().find_map(|k| config.get(*k));
        let blocks = match blocks {
            Some(Value::String(text)) => text.split(',').map(str::to_owned).collect(),
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let extra = config.get("extra_config").and_then(Value::as_object).into_iter().flatten();
        let extra = extra.map(|(key, values)| Extra {
            written: key.clone(),
            name: key.clone(),
            pattern: pattern(key),
            values: values.clone(),
            used: false,
        });
        Ok(Inc {
            base: Width {
                bits: bits.as_i64().unwrap_or(4),
                group,
                symmetric: config.get("sym").is_none_or(py::truthy),
            },
            format: format.as_str().unwrap_or_default().to_owned(),
            backend: backend.as_str().unwrap_or_default().to_owned(),
            blocks,
            extra: extra.collect(),
            packed: Vec::new(),
            odd: config.get("extra_config").filter(|v| !v.is_object() && !v.is_null()).map(|v| {
                py::raised("AttributeError", format!("'{}' object has no attribute 'items'", py::type_name(v)))
            }),
        })
    }

    fn width(&self, at: usize, quantized: bool) -> Result<Width, Raised> {
        let base = if quantized { self.base } else { PLAIN };
        let values = &self.extra[at].values;
        let group = match values.get("group_size") {
            None => base.group,
            Some(v) => group_size(v).map_err(|e| e.1)?.unwrap_or(base.group),
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
        let (gptq, awq) = (self.has("gptq"), self.has("awq"));
        if width.bits >= 16 || matches!(layer.offered, Offered::Embedding | Offered::Attention) {
            return Ok(Built::Plain { entry: None });
        }
        let packed = Packed { bits: width.bits, group: width.group, output: !gptq && awq };
        let shape = |raised| (Kind::SchemeShape, raised);
        let unsupported = |kind: &str, text: String| Err((Kind::SchemeUnsupported, py::raised(kind, text)));
        let fits = matches!(width.bits, 4 | 8);
        let (scheme, params) = if layer.offered == Offered::Experts {
            let s = Sizes::of(layer);
            let symmetric = fits && (width.symmetric || !gptq);
            let params = if !symmetric || !packed.marlin_experts(&s, false) {
                let mut params = packed.experts(&s).map_err(shape)?;
                kfirst::fallback(&mut params, packed, &s, !width.symmetric).map_err(shape)?;
                params
            } else if gptq {
                gptq::marlin_experts(packed, &s, layer)?
            } else {
                packed.experts(&s).map_err(shape)?
            };
            ("experts ", params)
        } else if gptq {
            let marlin = self.backend == "auto" || self.backend.contains("marlin");
            if !marlin || !fits || !width.symmetric || !packed.known_group() {
                return unsupported(
                    "NotImplementedError",
                    format!(
                        "INC quantization with bits={}, sym={} is not supported. Only 4-bit and 8-bit symmetric quantization is \
                         supported with Marlin kernels.",
                        width.bits,
                        if width.symmetric { "True" } else { "False" }
                    ),
                );
            }
            ("", gptq::marlin(packed, layer)?)
        } else {
            if width.bits != 4 {
                return unsupported(
                    "ValueError",
                    format!(
                        "Unsupported num_bits = {}. Supported: 4. For 8-bit AWQ, use Marlin backend by setting \
                         backend='awq:marlin' or backend='marlin'.",
                        width.bits
                    ),
                );
            }
            if !packed.known_group() || !packed.whole_groups(layer.input) {
                packed.unpadded(layer).map_err(shape)?;
            }
            ("", packed.linear(layer).map_err(shape)?)
        };
        let layout = if packed.output { "AWQ" } else { "GPTQ" };
        let scheme = format!("auto-round {scheme}({layout} layout, {} bits, {})", width.bits, packed.per());
        Ok(Built::Quantized { scheme, params, nones: Vec::new() })
    }

    fn has(&self, word: &str) -> bool {
        self.format.contains(word) || self.backend.contains(word)
    }
}

/// `_normalize_group_size`: a number, or none for two.
fn group_size(value: &Value) -> Result<Option<i64>, Refused> {
    let refused = |text: String| Err(("/group_size".to_owned(), py::raised("ValueError", text)));
    match value {
        Value::Array(items) if items.len() == 2 && items.iter().all(Value::is_i64) => Ok(None),
        Value::Array(_) => refused(format!(
            "INC block-wise FP8 requires group_size to be a 2-D integer sequence, but found {}.",
            py::repr(value)
        )),
        Value::Bool(b) => Ok(Some(i64::from(*b))),
        v if v.is_i64() => Ok(v.as_i64()),
        other => refused(format!(
            "INC group_size must be an int or a 2-D integer sequence, but found {}.",
            py::type_name(other)
        )),
    }
}

/// A key with a special character is a pattern, to be found anywhere; one that does not compile is none.
fn pattern(key: &str) -> Option<Pattern> {
    key.contains(['*', '+', '?', '^', '$', '(', ')', '[', ']', '{', '}', '|', '\\']).then_some(())?;
    Pattern::new(&format!("re:[\\s\\S]*?(?:{key})")).ok()
}

fn set(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|w| py::repr_str(w)).collect();
    format!("{{{}}}", words.join(", "))
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
