//! Quark (vllm/model_executor/layers/quantization/quark/quark.py; spec D.5): one specification for all layers, and others
//! for layers by name.

mod exclude;
mod int4;
mod params;
mod scheme;

use super::fnmatch::fnmatch;
use super::{Built, CacheScales, DeadEntry, Layer, List, Matching, Offered, Quantizer, kv_cache, py};
use crate::vllm::trace::{Kind, Raised};
use exclude::Exclude;
use py::raised;
use serde_json::Value;

/// More specifications of single layers than a checkpoint has: they are compared one by one.
const MAX_LAYERS: usize = 2048;

/// `QuarkConfig`.
#[derive(Debug)]
pub struct Quark {
    exclude: Exclude,
    /// `layer_quant_config`: name or pattern under vLLM's names, and specification.
    layers: Vec<(String, Value)>,
    global: Value,
    /// `layer_type_quant_config` has no `get`: the type of what stands there. Its keys never match anything else, since
    /// vLLM looks for the class itself.
    types: Option<&'static str>,
    kv_cache: Value,
    pack: Value,
    /// vLLM stops at the first refusal.
    told: bool,
}

type Failure = (Kind, Raised);

impl Quark {
    /// `QuarkConfig.from_config`. None when the config asks for what is not simulated.
    ///
    /// # Errors
    /// What it raises, with the JSON pointer relative to the quantization config.
    pub fn parse(config: &Value) -> Option<Result<Quark, (String, Raised)>> {
        let mut layers: Vec<(String, Value)> = match config.get("layer_quant_config") {
            Some(Value::Object(map)) => map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            _ => Vec::new(),
        };
        let global = config.get("global_quant_config").unwrap_or(&Value::Null);
        if layers.len() > MAX_LAYERS {
            return None;
        }
        let export = config.get("export").unwrap_or(&Value::Null);
        let kv_cache = match cache(config, export, &mut layers) {
            Ok(kv_cache) => kv_cache,
            Err(failed) => return Some(Err(failed)),
        };
        let types = config.get("layer_type_quant_config").unwrap_or(&Value::Null);
        Some(Ok(Quark {
            exclude: Exclude::of(config.get("exclude")),
            layers,
            global: global.clone(),
            types: (!types.is_object()).then(|| py::type_name(types)),
            kv_cache,
            pack: export["pack_method"].clone(),
            told: false,
        }))
    }

    /// Whether the release knows 4-bit integers, which are all that `pack_method` is for.
    #[must_use]
    pub fn packing(mut self, known: bool) -> Quark {
        if !known {
            self.pack = Value::Null;
        }
        self
    }

    /// Whether some layer may be of a scheme that creates no biases on experts: 4-bit integers, NVFP4.
    pub fn unbiased(config: &Value) -> bool {
        let layers = config.get("layer_quant_config").and_then(Value::as_object).into_iter().flatten();
        let mut specs = layers.map(|(_, spec)| spec).chain(config.get("global_quant_config"));
        specs.any(|spec| match &spec["weight"] {
            Value::Array(list) => list.len() > 1 || list.iter().any(scheme::integers),
            weight => scheme::integers(weight),
        })
    }

    /// `get_layer_quant_config_from_name` of a name that is not fused.
    fn own(&self, name: &str) -> Option<&Value> {
        let fits = |pattern: &str| match pattern.contains('*') {
            true => fnmatch(name, pattern),
            false => pattern.contains(name),
        };
        self.layers.iter().find(|(pattern, _)| fits(pattern)).map(|(_, spec)| spec)
    }

    /// `_find_matched_config`.
    fn spec(&self, name: &str) -> Result<&Value, Failure> {
        if let Some(name) = self.types {
            let text = format!("'{name}' object has no attribute 'get'");
            return Err((Kind::QuantConfigRejected, raised("AttributeError", text)));
        }
        let last = name.rsplit('.').next().unwrap_or(name);
        let found = match self.exclude.packed.iter().find(|(key, _)| key == last) {
            None => self.own(name).unwrap_or(&self.global),
            Some((_, shards)) => {
                let of = |shard: &String| {
                    let part = name.replace(last, shard);
                    let own = if part == name { None } else { self.own(&part) };
                    own.unwrap_or(&self.global)
                };
                let mut specs = shards.iter().map(of);
                let first = specs.next().unwrap_or(&self.global);
                if specs.any(|spec| spec != first) {
                    let list: Vec<String> = shards.iter().map(|s| py::repr_str(s)).collect();
                    let text = format!(
                        "Found a different quantization configuration for [{}] in {name}. vLLM requires all to use the \
                         same scheme.",
                        list.join(", ")
                    );
                    return Err((Kind::FusedMixture, raised("ValueError", text)));
                }
                first
            }
        };
        if found.is_object() {
            return Ok(found);
        }
        let text = format!("'{}' object has no attribute 'get'", py::type_name(found));
        Err((Kind::QuantConfigRejected, raised("AttributeError", text)))
    }

    /// `QuarkKVCacheMethod.validate_kv_cache_config`.
    fn attention(&self, layer: &Layer<'_>) -> Result<Built, Failure> {
        if layer.class.starts_with("MLA") || self.kv_cache.is_null() {
            return Ok(kv_cache::build(layer));
        }
        let word = |key: &str| self.kv_cache.get(key).map_or_else(|| "None".to_owned(), py::display);
        let (dtype, qscheme) = (word("dtype"), word("qscheme"));
        let error = |text: String| Err((Kind::SchemeUnsupported, raised("NotImplementedError", text)));
        if dtype != "fp8_e4m3" {
            return error(format!(
                "Currently supported kv cache quantization is dtype=fp8_e4m3, however received {dtype}"
            ));
        }
        if qscheme != "per_tensor" {
            return error(format!(
                "Only support per-tensor scaling factor for quark KV cache. Expected qscheme: per_tensor, found qscheme: \
                 {qscheme}"
            ));
        }
        Ok(kv_cache::build(layer))
    }

    fn quantized(&mut self, layer: &Layer<'_>) -> Result<Built, Failure> {
        let experts = layer.offered == Offered::Experts;
        if let Some(entry) = self.exclude.ignored(layer.prefix, experts)? {
            return Ok(Built::Plain { entry });
        }
        match layer.offered {
            Offered::Attention => return self.attention(layer),
            Offered::Head | Offered::Embedding => return Ok(Built::Plain { entry: None }),
            Offered::Linear | Offered::Experts => {}
        }
        let spec = self.spec(layer.prefix)?;
        let choose = if experts { scheme::experts } else { scheme::linear };
        let scheme = choose(spec, &self.pack).map_err(|raised| (Kind::SchemeUnsupported, raised))?;
        let create = if experts { params::experts } else { params::linear };
        let (params, nones) = create(scheme, layer)?;
        Ok(Built::Quantized { scheme: params::label(scheme), params, nones })
    }
}

/// The specification of the KV cache, which is taken out of those of its layers.
fn cache(config: &Value, export: &Value, layers: &mut [(String, Value)]) -> Result<Value, (String, Raised)> {
    let error = |at: &str, kind: &str, text: String| Err((at.to_owned(), raised(kind, text)));
    if export.is_null() {
        let text = "The export key should be included in the configurations of Quark quantized model";
        return error("", "ValueError", text.into());
    }
    if !export.is_object() {
        let text = format!("'{}' object has no attribute 'get'", py::type_name(export));
        return error("/export", "AttributeError", text);
    }
    const GROUP: &str = "/export/kv_cache_group";
    let group: Vec<String> = match export.get("kv_cache_group") {
        Some(Value::Array(items)) => items.iter().map(|v| v.as_str().unwrap_or_default().to_owned()).collect(),
        Some(Value::String(text)) => text.chars().map(String::from).collect(),
        other => {
            let name = py::type_name(other.unwrap_or(&Value::Null));
            let at = if other.is_some() { GROUP } else { "/export" };
            return error(at, "TypeError", format!("object of type '{name}' has no len()"));
        }
    };
    if group.is_empty() {
        return Ok(Value::Null);
    }
    if let Some(other) = config.get("layer_quant_config").or(Some(&Value::Null)).filter(|v| !v.is_object()) {
        let text = format!("'{}' object has no attribute 'keys'", py::type_name(other));
        return error("/layer_quant_config", "AttributeError", text);
    }
    let fits = |name: &str| group.iter().any(|pattern| fnmatch(name, pattern));
    let known = |name: &String| layers.iter().any(|(key, _)| key == name);
    if !group.iter().all(known) && !layers.iter().any(|(key, _)| fits(key)) {
        let text = "The Quark quantized model has the kv_cache_group parameter setting, but no kv_cache quantization \
                    settings were found in the quantization configuration.";
        return error(GROUP, "ValueError", text.into());
    }
    let outputs: Vec<Value> =
        layers.iter().filter(|(key, _)| fits(key)).map(|(_, spec)| spec["output_tensors"].clone()).collect();
    let first = outputs.first().cloned().unwrap_or_default();
    if outputs.iter().any(|o| *o != first) {
        let text = "The quantization method used for kv_cache should be the same, but the quantization method for the \
                    kv_cache layer in the config is different.";
        return error("/layer_quant_config", "ValueError", text.into());
    }
    if first.is_null() {
        return error("/layer_quant_config", "ValueError", "The kv_cache quantization configuration is empty.".into());
    }
    for (key, spec) in layers.iter_mut() {
        if (fits(key) || key == "*q_proj")
            && let Some(out) = spec.get_mut("output_tensors")
        {
            *out = Value::Null;
        }
    }
    Ok(first)
}

impl Quantizer for Quark {
    fn name(&self) -> &'static str {
        "quark"
    }

    fn list(&self) -> List {
        List { pointer: "/exclude".into(), matching: Matching::Patterns }
    }

    /// `apply_vllm_mapper`: every list of words and the keys of every dict.
    fn map_names(&mut self, rename: &dyn Fn(&str) -> String) {
        self.exclude.rename(rename);
        for (name, _) in &mut self.layers {
            *name = rename(name);
        }
    }

    fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool) {
        self.exclude.set_packed(mapping, merge);
    }

    fn build(&mut self, layer: &Layer<'_>) -> Built {
        if self.told {
            return Built::Plain { entry: None };
        }
        self.quantized(layer).unwrap_or_else(|(why, raised)| {
            // A fault of the config as a whole need not be said of every module.
            self.told = matches!(why, Kind::QuantConfigRejected | Kind::PatternBroken);
            Built::Refused { why, raised }
        })
    }

    fn dead_entries(&self) -> Vec<DeadEntry> {
        self.exclude.dead()
    }

    fn broken(&self) -> &[(String, String)] {
        &self.exclude.broken
    }

    fn cache_scales(&self) -> CacheScales {
        CacheScales::OutputScales
    }
}
