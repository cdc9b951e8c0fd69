//! GPTQ (vllm/model_executor/layers/quantization/auto_gptq.py, utils/gptq_utils.py; spec D.2): 4 or 8 bits, symmetric, packed
//! along the input dimension; rules a module in `dynamic`.

use super::kfirst::{self, Packed};
use super::params::{Sizes, unread};
use super::skip::SkipList;
use super::{Built, DeadEntry, Element, Layer, List, Load, Matching, Offered, Param, Quantizer, py};
use crate::checkpoint::{Checkpoint, escape_pointer};
use crate::pattern::Pattern;
use crate::vllm::trace::{Kind, Raised};
use serde_json::Value;

/// `AutoGPTQConfig`.
#[derive(Debug)]
pub struct Gptq {
    /// What *is* quantized: `modules_in_block_to_quantize`, or read off the headers.
    modules: SkipList,
    rules: Vec<Rule>,
    broken: Vec<(String, String)>,
    bits: i64,
    group: i64,
    symmetric: bool,
    head: bool,
}

/// One entry of `dynamic`.
#[derive(Debug)]
struct Rule {
    key: String,
    excludes: bool,
    pattern: Result<Pattern, Raised>,
    values: Value,
    used: bool,
}

type Failure = (Kind, Raised);

const ORDERED: &str = "GPTQ group activation ordering (desc_act=True) is no longer supported";

impl Gptq {
    /// `AutoGPTQConfig.from_config`.
    ///
    /// # Errors
    /// What it raises, with the JSON pointer relative to the quantization config.
    pub fn parse(config: &Value) -> Result<Gptq, (String, Raised)> {
        let bits = py::required(config, &["bits"])?;
        let group = py::required(config, &["group_size"])?;
        let ordered = py::required(config, &["desc_act"])?;
        let symmetric = py::required(config, &["sym"])?;
        let value_error = |at: &str, text: String| Err((at.to_owned(), py::raised("ValueError", text)));
        let whole = |group: &Value| group.as_i64() == Some(-1);
        if py::truthy(ordered) && !whole(group) {
            let text = format!("{ORDERED}. Use a checkpoint with static activation ordering or desc_act=False.");
            return value_error("/desc_act", text);
        }
        let mut rules = Vec::new();
        let mut broken = Vec::new();
        if let Some(Value::Object(map)) = config.get("dynamic") {
            for (key, values) in map {
                let excludes = key.starts_with("-:");
                let get = |name: &str, base: &Value| values.get(name).unwrap_or(base).clone();
                if !excludes
                    && values.is_object()
                    && py::truthy(&get("desc_act", ordered))
                    && !whole(&get("group_size", group))
                {
                    let text = format!(
                        "{ORDERED}, but is enabled by dynamic rule {}. Use a checkpoint with static activation ordering \
                         or desc_act=False.",
                        py::repr_str(key)
                    );
                    return value_error("/dynamic", text);
                }
                let source = key.strip_prefix("-:").or_else(|| key.strip_prefix("+:")).unwrap_or(key);
                let pattern = Pattern::new(&format!("re:{source}")).map_err(|e| py::raised("error", e.to_string()));
                if pattern.is_err() {
                    let at = escape_pointer(key);
                    broken.push((format!("/dynamic/{at}"), key.clone()));
                }
                rules.push(Rule { key: key.clone(), excludes, pattern, values: values.clone(), used: false });
            }
        }
        if bits.as_i64() == Some(0) {
            let text = "integer division or modulo by zero";
            return Err(("/bits".into(), py::raised("ZeroDivisionError", text)));
        }
        let known = matches!(bits.as_i64(), Some(4 | 8)) && matches!(symmetric, Value::Bool(true));
        if !known {
            let text = unsupported(bits, symmetric);
            return value_error(if matches!(bits.as_i64(), Some(4 | 8)) { "/sym" } else { "/bits" }, text);
        }
        let mut modules = SkipList::parse(config, &["modules_in_block_to_quantize"], Matching::Substring)?;
        // Nested lists are flattened.
        if let Some(Value::Array(items)) = config.get("modules_in_block_to_quantize") {
            fn flat(v: &Value, out: &mut Vec<String>) {
                match v {
                    Value::Array(items) => items.iter().for_each(|v| flat(v, out)),
                    Value::String(s) => out.push(s.clone()),
                    _ => {}
                }
            }
            let mut names = Vec::new();
            items.iter().for_each(|v| flat(v, &mut names));
            modules.derive(names);
        }
        Ok(Gptq {
            modules,
            rules,
            broken,
            bits: bits.as_i64().unwrap_or(4),
            group: group.as_i64().unwrap_or(0),
            symmetric: true,
            head: config.get("lm_head").is_some_and(py::truthy),
        })
    }

    /// `get_dynamic_override` and `override_config`: none when a rule excludes the module.
    fn rule(&mut self, prefix: &str) -> Result<Option<Packed>, Failure> {
        let mut packed = Packed { bits: self.bits, group: self.group, output: false };
        for rule in &mut self.rules {
            let pattern = rule.pattern.as_ref().map_err(|raised| (Kind::PatternBroken, raised.clone()))?;
            if !pattern.is_match(prefix).unwrap_or(false) {
                continue;
            }
            rule.used = true;
            if rule.excludes {
                return Ok(None);
            }
            let number = |key: &str, base: i64| rule.values.get(key).and_then(Value::as_i64).unwrap_or(base);
            packed.bits = number("bits", packed.bits);
            packed.group = number("group_size", packed.group);
            let symmetric = rule.values.get("sym").and_then(Value::as_bool).unwrap_or(self.symmetric);
            if packed.bits == 0 {
                let text = "integer division or modulo by zero";
                return Err((Kind::QuantConfigRejected, py::raised("ZeroDivisionError", text)));
            }
            if !matches!(packed.bits, 4 | 8) || !symmetric {
                let text = unsupported(&packed.bits.into(), &symmetric.into());
                return Err((Kind::SchemeUnsupported, py::raised("ValueError", text)));
            }
            break;
        }
        Ok(Some(packed))
    }

    /// `get_linear_quant_method`.
    fn linear(&mut self, layer: &Layer<'_>) -> Result<Built, Failure> {
        let quantized = self.quantized(layer.prefix).map_err(|raised| (Kind::FusedMixture, raised))?;
        let Some(packed) = self.rule(layer.prefix)?.filter(|_| quantized) else {
            return Ok(Built::Plain { entry: None });
        };
        let params = marlin(packed, layer)?;
        let scheme = format!("GPTQ ({} bits, {})", packed.bits, packed.per());
        Ok(Built::Quantized { scheme, params, nones: Vec::new() })
    }

    /// `is_layer_gptq_quantized`.
    fn quantized(&mut self, prefix: &str) -> Result<bool, Raised> {
        if self.modules.is_empty() {
            return Ok(true);
        }
        Ok(match self.modules.shards(prefix) {
            Some(shards) => self.modules.agreed(prefix, &shards)?.is_some(),
            None => self.modules.hit(prefix).is_some(),
        })
    }

    fn experts(&mut self, layer: &Layer<'_>) -> Result<Built, Failure> {
        let s = Sizes::of(layer);
        let shape = |raised| (Kind::SchemeShape, raised);
        let base = Packed { bits: self.bits, group: self.group, output: false };
        if !base.marlin_experts(&s, true) {
            // moe_wna16 knows no rules.
            let mut params = base.experts(&s).map_err(shape)?;
            kfirst::fallback(&mut params, base, &s, !self.symmetric).map_err(shape)?;
            return Ok(Built::Quantized { scheme: label(base), params, nones: Vec::new() });
        }
        let Some(packed) = self.rule(layer.prefix)? else { return Ok(Built::Plain { entry: None }) };
        let params = marlin_experts(packed, &s, layer)?;
        Ok(Built::Quantized { scheme: label(packed), params, nones: Vec::new() })
    }
}

/// `AutoGPTQLinearMethod`: parameters that Marlin's tiles can be made of.
pub(super) fn marlin(packed: Packed, layer: &Layer<'_>) -> Result<Vec<Param>, Failure> {
    packed.verify().map_err(|raised| (Kind::SchemeUnsupported, raised))?;
    if !packed.whole_groups(layer.input) {
        // Which kernels there are, and why each declines, depends on the machine; that none takes it does not.
        let text = "Failed to find a kernel that can implement the WNA16 linear layer. Reasons: ";
        return Err((Kind::SchemeShape, py::raised("ValueError", text)));
    }
    packed.linear(layer).map_err(|raised| (Kind::SchemeShape, raised))
}

/// `AutoGPTQMoEMethod`: biases are made in any case, and zero unless stored.
pub(super) fn marlin_experts(packed: Packed, s: &Sizes, layer: &Layer<'_>) -> Result<Vec<Param>, Failure> {
    let mut params = packed.experts(s).map_err(|raised| (Kind::SchemeShape, raised))?;
    if !layer.bias {
        params.push(unread("w13_bias", &[s.e, s.w13()], Element::Model, Load::Whole));
        params.push(unread("w2_bias", &[s.e, s.h], Element::Model, Load::Whole));
    }
    Ok(params)
}

fn label(packed: Packed) -> String {
    format!("GPTQ experts ({} bits, {})", packed.bits, packed.per())
}

fn unsupported(bits: &Value, symmetric: &Value) -> String {
    format!("Unsupported quantization config: bits={}, sym={}", py::display(bits), py::display(symmetric))
}

impl Quantizer for Gptq {
    fn name(&self) -> &'static str {
        "auto_gptq"
    }

    fn list(&self) -> List {
        List { pointer: "/dynamic".into(), matching: Matching::Rules }
    }

    fn see(&mut self, checkpoint: &Checkpoint) {
        if self.modules.is_empty() {
            self.modules.derive(kfirst::stems(checkpoint).0.into_iter().map(str::to_owned));
        }
    }

    fn map_names(&mut self, rename: &dyn Fn(&str) -> String) {
        self.modules.rename(rename);
    }

    fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool) {
        self.modules.set_packed(mapping, merge);
    }

    fn build(&mut self, layer: &Layer<'_>) -> Built {
        let built = match layer.offered {
            Offered::Linear => self.linear(layer),
            Offered::Head if self.head => self.linear(layer),
            Offered::Experts => self.experts(layer),
            _ => Ok(Built::Plain { entry: None }),
        };
        built.unwrap_or_else(|(why, raised)| Built::Refused { why, raised })
    }

    fn dead_entries(&self) -> Vec<DeadEntry> {
        let entry = |r: &Rule| DeadEntry {
            pointer: format!("/dynamic/{}", escape_pointer(&r.key)),
            entry: r.key.clone(),
            name: r.key.clone(),
            ignore: true,
        };
        self.rules.iter().filter(|r| !r.used).map(entry).collect()
    }

    fn broken(&self) -> &[(String, String)] {
        &self.broken
    }
}
