//! compressed-tensors: parsing, names, and what a module becomes (vllm/model_executor/layers/quantization/compressed_tensors;
//! spec C).

pub mod args;
pub mod experts;
pub mod scheme;

use super::{Built, DeadEntry, Element, Layer, Load, Offered, Param};
use crate::vllm::config::python_type;
use crate::vllm::trace::{Kind, Raised};
use args::{Args, Numbers, Strategy};
use fancy_regex::Regex;
use rustc_hash::FxHashMap;
use scheme::{Scheme, is_activation_format, refused};
use serde_json::{Map, Value};
use std::cell::RefCell;

/// One entry of a list, as written and as vLLM will compare it.
#[derive(Debug)]
struct Entry {
    written: String,
    name: String,
    pointer: String,
    regex: Option<Regex>,
    used: std::cell::Cell<bool>,
}

impl Entry {
    fn new(written: &str, pointer: String) -> Entry {
        let regex = written.strip_prefix("re:").and_then(|p| Regex::new(&format!("^(?:{})", python_regex(p))).ok());
        Entry { written: written.to_owned(), name: written.to_owned(), pointer, regex, used: false.into() }
    }

    /// `re:` at the start anchors like `regex.match`; anything else must be equal.
    fn matches(&self, name: &str) -> bool {
        if self.name.starts_with("re:") {
            self.regex.as_ref().is_some_and(|r| r.is_match(name).unwrap_or(false))
        } else {
            self.name == name
        }
    }
}

/// Python's `\Z` is the very end, which the Rust engines call `\z`.
fn python_regex(p: &str) -> String {
    p.replace("\\Z", "\\z")
}

/// A parsed config.
#[derive(Debug, Default)]
pub struct CompressedTensors {
    ignore: Vec<Entry>,
    /// Exact ignore entries by name: first index.
    exact: FxHashMap<String, usize>,
    targets: Vec<(Entry, Option<Scheme>)>,
    packed: Vec<(String, Vec<String>)>,
    kv_cache: Option<Value>,
    /// Patterns that do not compile.
    pub broken: Vec<(String, String)>,
    matched: RefCell<FxHashMap<String, Option<usize>>>,
}

type Rejected = (String, Raised);

fn raised(error_type: &str, text: impl Into<String>) -> Raised {
    Raised { error_type: error_type.into(), text: text.into() }
}

/// `/` and `~` of a JSON pointer token.
fn token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

impl CompressedTensors {
    /// `CompressedTensorsConfig.from_config`, in its order; pointers are relative to the quantization config.
    pub fn parse(config: &Value) -> Result<Self, Rejected> {
        let empty = Map::new();
        let config = config.as_object().unwrap_or(&empty);
        let none = Value::Object(Map::new());
        let groups = config.get("config_groups").unwrap_or(&none);
        let Some(groups) = groups.as_object() else {
            return Err((
                "/config_groups".into(),
                raised("AttributeError", format!("'{}' object has no attribute 'items'", python_type(groups))),
            ));
        };
        let mut out = Self::default();
        let mut kept = Vec::new();
        for (name, group) in groups {
            let at = format!("/config_groups/{}", token(name));
            let Some(targets) = group.get("targets") else { return Err((at, raised("KeyError", "'targets'"))) };
            let list: Vec<&str> = match targets {
                Value::Array(a) => a.iter().filter_map(Value::as_str).collect(),
                _ => {
                    return Err((
                        format!("{at}/targets"),
                        raised("TypeError", format!("object of type '{}' has no len()", python_type(targets))),
                    ));
                }
            };
            if let [one] = list.as_slice()
                && one.ends_with("Attention")
            {
                continue;
            }
            kept.push((at, group, list));
        }
        let global = config.get("format").and_then(Value::as_str);
        for (at, group, targets) in &kept {
            for (i, target) in targets.iter().enumerate() {
                let scheme = Self::group(group, at, global)?;
                let entry = Entry::new(target, format!("{at}/targets/{i}"));
                match out.targets.iter_mut().find(|(e, _)| e.written == *target) {
                    Some(slot) => slot.1 = Some(scheme),
                    None => out.targets.push((entry, Some(scheme))),
                }
            }
        }
        if config
            .get("sparsity_config")
            .and_then(|s| s.get("targets"))
            .and_then(Value::as_array)
            .is_some_and(|t| !t.is_empty())
        {
            let text = "Sparsity support has been removed from compressed-tensors. Please use a model without sparsity configuration.";
            return Err(("/sparsity_config".into(), raised("DeprecationWarning", text)));
        }
        match config.get("ignore") {
            None => {}
            Some(Value::Array(a)) => {
                out.ignore = a
                    .iter()
                    .enumerate()
                    .filter_map(|(i, v)| Some(Entry::new(v.as_str()?, format!("/ignore/{i}"))))
                    .collect();
            }
            // A string is a list of characters to Python: none of them names a module.
            Some(Value::String(_)) => {}
            Some(v) => {
                return Err((
                    "/ignore".into(),
                    raised("TypeError", format!("'{}' object is not iterable", python_type(v))),
                ));
            }
        }
        for e in out.ignore.iter().chain(out.targets.iter().map(|t| &t.0)) {
            if e.written.starts_with("re:") && e.regex.is_none() {
                out.broken.push((e.pointer.clone(), e.written.clone()));
            }
        }
        out.kv_cache = config.get("kv_cache_scheme").filter(|v| !v.is_null()).cloned();
        out.reindex();
        Ok(out)
    }

    fn group(group: &Value, at: &str, global: Option<&str>) -> Result<Scheme, Rejected> {
        let put = |part: &str, (field, r): (&str, Raised)| {
            let field = if field.is_empty() { String::new() } else { format!("/{field}") };
            (format!("{at}/{part}{field}"), r)
        };
        let weights = Args::read(group.get("weights")).map_err(|e| put("weights", e))?;
        if weights.actorder.as_deref() == Some("group") {
            let text = "Compressed-tensors group/dynamic activation ordering (actorder='group') is no longer supported. Use a checkpoint with \
                        static/weight activation ordering or without activation ordering.";
            return Err((format!("{at}/weights/actorder"), raised("ValueError", text)));
        }
        let own = group.get("format").and_then(Value::as_str);
        let format = own.or(global).map(str::to_owned);
        let given = |key: &str| group.get(key).filter(|v| crate::facts::expr::truthy(v));
        let input = match given("input_activations") {
            Some(v) => Some(Args::read(Some(v)).map_err(|e| put("input_activations", e))?),
            None if is_activation_format(format.as_deref()) && weights.numbers != Numbers::Float => {
                return Err((format!("{at}/input_activations"), raised("AssertionError", "")));
            }
            None => None,
        };
        let output = match given("output_activations") {
            Some(v) => Some(Args::read(Some(v)).map_err(|e| put("output_activations", e))?),
            None => None,
        };
        Ok(Scheme { weights, input, output, format })
    }

    fn reindex(&mut self) {
        self.exact = FxHashMap::default();
        for (i, e) in self.ignore.iter().enumerate().filter(|(_, e)| !e.name.starts_with("re:")) {
            self.exact.entry(e.name.clone()).or_insert(i);
        }
        self.matched.get_mut().clear();
    }

    /// `apply_vllm_mapper`: only dotted names that are no patterns are renamed (spec C.3).
    pub fn map_names(&mut self, rename: &dyn Fn(&str) -> String) {
        for e in self.ignore.iter_mut().chain(self.targets.iter_mut().map(|t| &mut t.0)) {
            if e.name.contains('.') && !e.name.starts_with("re:") {
                e.name = rename(&e.name);
            }
        }
        self.reindex();
    }

    /// Merge (`SupportsQuant`) or replace (the loader) the packed mapping.
    pub fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool) {
        if !merge {
            self.packed.clear();
        }
        for (k, v) in mapping {
            match self.packed.iter_mut().find(|p| p.0 == k) {
                Some(p) => p.1 = v,
                None => self.packed.push((k, v)),
            }
        }
        self.matched.get_mut().clear();
    }

    /// First ignore entry that matches a name; marks every one that does.
    fn ignored_by(&self, name: &str) -> Option<usize> {
        if let Some(hit) = self.matched.borrow().get(name) {
            return *hit;
        }
        let mut first = self.exact.get(name).copied();
        if let Some(i) = first {
            // The same name may be listed twice, with and without a prefix that the mapper removes.
            self.ignore.iter().filter(|e| e.name == self.ignore[i].name).for_each(|e| e.used.set(true));
        }
        for (i, e) in self.ignore.iter().enumerate().filter(|(_, e)| e.name.starts_with("re:")) {
            if e.matches(name) {
                e.used.set(true);
                first = Some(first.map_or(i, |f| f.min(i)));
            }
        }
        self.matched.borrow_mut().insert(name.to_owned(), first);
        first
    }

    /// Names of the shards of a fused layer, by its last component.
    fn shards(&self, name: &str) -> Option<Vec<String>> {
        let last = name.rsplit('.').next().unwrap_or(name);
        let (key, parts) = self.packed.iter().find(|p| p.0 == last)?;
        Some(parts.iter().map(|p| name.replace(key.as_str(), p)).collect())
    }

    /// `should_ignore_layer` (spec C.4).
    fn ignored(&self, name: &str) -> Result<Option<usize>, Built> {
        let own = self.ignored_by(name);
        let Some(shards) = self.shards(name) else { return Ok(own) };
        let hits: Vec<Option<usize>> = shards.iter().map(|s| self.ignored_by(s)).collect();
        if own.is_some() {
            return Ok(own);
        }
        match hits.iter().flatten().count() {
            0 => Ok(None),
            n if n == hits.len() => Ok(hits[0]),
            _ => Err(refused(
                Kind::FusedMixture,
                "ValueError",
                format!(
                    "Found different quantization schemes for the shards of {name}. vLLM requires all to use the same scheme."
                ),
            )),
        }
    }

    /// `find_matched_target` (spec C.5): index into the targets.
    fn target(&self, name: &str, class: &str) -> Option<usize> {
        let by_name = |n: &str| self.targets.iter().position(|t| t.0.matches(n));
        if let Some(i) = by_name(name) {
            return Some(i);
        }
        if let Some((key, parts)) = self.packed.iter().find(|p| name.ends_with(p.0.as_str())) {
            let hits: Vec<Option<usize>> = parts.iter().map(|p| by_name(&name.replace(key.as_str(), p))).collect();
            hits.iter().flatten().for_each(|i| self.targets[*i].0.used.set(true));
            if !hits.is_empty() && hits.iter().all(Option::is_some) {
                return hits[0];
            }
        }
        let lower = class.to_lowercase();
        self.targets.iter().position(|t| {
            if t.0.name.starts_with("re:") { t.0.matches(class) } else { lower.contains(&t.0.name.to_lowercase()) }
        })
    }

    /// The scheme of a layer: ignore list first, then targets.
    fn scheme(&self, layer: &Layer, name: &str) -> Result<Result<&Scheme, Option<usize>>, Built> {
        if let Some(entry) = self.ignored(name)? {
            return Ok(Err(Some(entry)));
        }
        let Some(i) = self.target(name, layer.class) else { return Ok(Err(None)) };
        self.targets[i].0.used.set(true);
        Ok(self.targets[i].1.as_ref().ok_or(None))
    }

    /// What a module becomes (`get_quant_method`, spec C.6).
    pub fn build(&self, layer: &Layer) -> Built {
        match layer.offered {
            Offered::Attention => return self.attention(layer),
            Offered::Experts => return experts::build(self, layer),
            _ => {}
        }
        match self.scheme(layer, layer.prefix) {
            // The head swallows a ValueError of the lookup and stays plain.
            Err(Built::Refused { raised, .. })
                if layer.offered == Offered::Head && raised.error_type == "ValueError" =>
            {
                Built::Plain { entry: None }
            }
            Err(built) => built,
            Ok(Err(entry)) => Built::Plain { entry },
            Ok(Ok(s)) if layer.offered == Offered::Embedding => s.embedding(layer),
            Ok(Ok(s)) => s.linear(layer),
        }
    }

    /// KV-cache scales and the checks of `kv_cache_scheme` (spec C.11).
    fn attention(&self, layer: &Layer) -> Built {
        let mut shape = vec![1];
        if let Some(v) = &self.kv_cache {
            let bits = v.get("num_bits").and_then(Value::as_i64).unwrap_or(8);
            let numbers = v.get("type").and_then(Value::as_str).unwrap_or("int");
            if bits != 8 || numbers != "float" {
                let text = format!(
                    "Currently supported kv cache quantization is num_bits=8, type=float, however received num_bits={bits}, type={numbers}"
                );
                return refused(Kind::QuantConfigRejected, "NotImplementedError", text);
            }
            match v.get("strategy").and_then(Value::as_str) {
                Some("attn_head") => shape = vec![layer.kv_heads.max(1)],
                Some("tensor") | None => {}
                Some(s) => {
                    let text = format!(
                        "Invalid strategy for compressed-tensors KV cache. Expected strategies: [{:?}, {:?}], found strategy: {s}",
                        Strategy::Tensor,
                        Strategy::AttnHead
                    );
                    return refused(Kind::QuantConfigRejected, "NotImplementedError", text);
                }
            }
            if v.get("symmetric").and_then(Value::as_bool) == Some(false) {
                let text = "Only support symmetric scaling factor for compressed-tensors KV cache. However found symmetric: False";
                return refused(Kind::QuantConfigRejected, "NotImplementedError", text.into());
            }
        }
        let params = ["q_scale", "k_scale", "v_scale", "q_zero_point", "k_zero_point", "v_zero_point"]
            .map(|name| Param { name, shape: shape.clone(), element: Element::F32, load: Load::Whole, unread: true })
            .to_vec();
        Built::Quantized { scheme: "KV cache".into(), params, nones: Vec::new() }
    }

    /// Entries that no module matched, in the order of the file.
    pub fn dead_entries(&self) -> Vec<DeadEntry> {
        let dead = |e: &Entry, ignore| DeadEntry {
            pointer: e.pointer.clone(),
            entry: e.written.clone(),
            name: e.name.clone(),
            ignore,
        };
        let ignore = self.ignore.iter().filter(|e| !e.used.get()).map(|e| dead(e, true));
        ignore.chain(self.targets.iter().filter(|t| !t.0.used.get()).map(|t| dead(&t.0, false))).collect()
    }
}
