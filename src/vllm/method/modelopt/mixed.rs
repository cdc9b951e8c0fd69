//! `ModelOptMixedPrecisionConfig`: the algorithm of each layer, from `quantized_layers`.

use super::super::py::{self, raised, repr};
use super::params::Algo;
use crate::vllm::trace::Raised;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

/// `B12X_BLOCK_CODECS`: name, elements and bytes of a block.
const CODECS: [(&str, u64, u64); 3] = [("iq2_xs", 256, 74), ("iq2_xxs", 256, 66), ("q8_0", 32, 34)];

/// `quantized_layers`, under vLLM's names.
#[derive(Debug)]
pub(super) struct Mixed {
    /// The algorithm in capitals; none where the key is missing, which raises when it is looked up.
    layers: Vec<(String, Option<String>)>,
    by_name: FxHashMap<String, usize>,
    /// Places in `layers`, by name.
    sorted: Vec<usize>,
    /// Attention gets scales of its KV cache.
    pub(super) kv: bool,
    /// Values under one scale of NVFP4.
    group: i64,
    /// Rows and columns of a block of experts.
    block: i64,
}

/// `str.upper()` of the algorithm of a layer; none without the key.
fn algo_of(info: &Value, default: Option<&str>) -> Result<Option<String>, Raised> {
    let attribute = |value: &Value, name: &str| {
        raised("AttributeError", format!("'{}' object has no attribute '{name}'", py::type_name(value)))
    };
    let Value::Object(info) = info else { return Err(attribute(info, "get")) };
    match info.get("quant_algo") {
        None => Ok(default.map(str::to_owned)),
        Some(Value::String(algo)) => Ok(Some(algo.to_uppercase())),
        Some(other) => Err(attribute(other, "lower")),
    }
}

impl Mixed {
    /// `_from_config` and `__init__`.
    pub(super) fn parse(layers: Option<&Value>, group: Option<i64>, kv: bool) -> Result<Mixed, Raised> {
        let empty = "MIXED_PRECISION quant_algo requires a non-empty 'quantized_layers' mapping in the quantization \
                     config.";
        let Some(layers) = layers.filter(|v| py::truthy(v)) else { return Err(raised("ValueError", empty)) };
        let Value::Object(layers) = layers else {
            let attribute = if group.is_none() { "values" } else { "items" };
            let text = format!("'{}' object has no attribute '{attribute}'", py::type_name(layers));
            return Err(raised("AttributeError", text));
        };
        let mut size = group;
        if size.is_none() {
            for info in layers.values() {
                let algo = algo_of(info, Some(""))
                    .map_err(|e| Raised { text: e.text.replace("'lower'", "'upper'"), ..e })?
                    .unwrap_or_default();
                if matches!(algo.as_str(), "NVFP4" | "W4A16_NVFP4") {
                    size = info.get("group_size").map_or(Some(16), Value::as_i64);
                    break;
                }
            }
        }
        let mut blocks: Vec<i64> = Vec::new();
        let mut named = Vec::new();
        for (name, info) in layers {
            let algo = algo_of(info, None)?;
            codec(name, info, algo.as_deref())?;
            if matches!(algo.as_deref(), Some("FP8_PB_WO" | "FP8_BLOCK_SCALES")) {
                blocks.push(info.get("group_size").map_or(Some(128), Value::as_i64).unwrap_or(128));
            }
            named.push((name.clone(), algo));
        }
        blocks.sort_unstable();
        blocks.dedup();
        if blocks.len() > 1 {
            return Err(raised(
                "ValueError",
                format!(
                    "MIXED_PRECISION currently requires all block-FP8 MoE layers to use one group_size, got {blocks:?}."
                ),
            ));
        }
        let mut mixed = Mixed {
            layers: named,
            by_name: FxHashMap::default(),
            sorted: Vec::new(),
            kv,
            group: size.unwrap_or(16),
            block: blocks.first().copied().unwrap_or(128),
        };
        mixed.index();
        Ok(mixed)
    }

    fn index(&mut self) {
        // Of two that get one name, the later one's value counts, at the place of the first.
        let mut kept: Vec<(String, Option<String>)> = Vec::new();
        self.by_name.clear();
        for (name, algo) in self.layers.drain(..) {
            match self.by_name.get(&name) {
                Some(at) => kept[*at].1 = algo,
                None => {
                    self.by_name.insert(name.clone(), kept.len());
                    kept.push((name, algo));
                }
            }
        }
        self.layers = kept;
        self.sorted = (0..self.layers.len()).collect();
        self.sorted.sort_by(|a, b| self.layers[*a].0.cmp(&self.layers[*b].0));
    }

    /// `WeightsMapper.apply_dict`.
    pub(super) fn rename(&mut self, rename: &dyn Fn(&str) -> String) {
        for (name, _) in &mut self.layers {
            *name = rename(name);
        }
        self.index();
    }

    fn at(&self, index: usize) -> Result<&str, Raised> {
        self.layers[index].1.as_deref().ok_or_else(|| raised("KeyError", "'quant_algo'"))
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The first entry of the file whose name begins so.
    fn beginning(&self, prefix: &str) -> Option<usize> {
        let from = self.sorted.partition_point(|i| self.layers[*i].0.as_str() < prefix);
        self.sorted[from..].iter().take_while(|i| self.layers[**i].0.starts_with(prefix)).min().copied()
    }

    /// The one algorithm of the shards of a fused layer, if any is named.
    fn fused<'n>(&self, prefix: &str, names: impl Iterator<Item = &'n String>) -> Result<Option<&str>, Raised> {
        let mut algos: Vec<&str> = Vec::new();
        for name in names {
            if let Some(index) = self.named(name) {
                algos.push(self.at(index)?);
            }
        }
        algos.sort_unstable();
        algos.dedup();
        match algos.as_slice() {
            [] => Ok(None),
            [algo] => Ok(Some(algo)),
            several => {
                let set: Vec<String> = several.iter().map(|a| py::repr_str(a)).collect();
                Err(raised(
                    "ValueError",
                    format!(
                        "Mixed quant_algo within fused layer {prefix}: {{{}}}. All shards must use the same quantization.",
                        set.join(", ")
                    ),
                ))
            }
        }
    }

    /// `_resolve_quant_algo`.
    ///
    /// # Errors
    /// For fused layers of two algorithms, and for entries without one.
    pub(super) fn resolve(&self, prefix: &str, packed: Option<&[String]>) -> Result<Option<&str>, Raised> {
        let names = candidates(prefix);
        if let Some(index) = names.iter().find_map(|name| self.named(name)) {
            return self.at(index).map(Some);
        }
        let (base, leaf) = prefix.rsplit_once('.').unwrap_or((prefix, prefix));
        if let Some(parts) = packed {
            let bases = candidates(base);
            let shards: Vec<String> =
                bases.iter().flat_map(|b| parts.iter().map(move |p| format!("{b}.{p}"))).collect();
            if let Some(algo) = self.fused(prefix, shards.iter())? {
                return Ok(Some(algo));
            }
        }
        if let Some(index) = names.iter().find_map(|name| self.beginning(&format!("{name}."))) {
            return self.at(index).map(Some);
        }
        if let Some((parent, _)) =
            prefix.strip_suffix(".experts").map(|_| prefix.rsplit_once(".experts").unwrap_or_default())
            && let Some(index) = self.beginning(&format!("{parent}."))
        {
            return self.at(index).map(Some);
        }
        let shards: &[&str] = match leaf {
            "qkv_proj" => &["q_proj", "k_proj", "v_proj"],
            "gate_up_proj" => &["gate_proj", "up_proj"],
            _ => &[],
        };
        for name in &names {
            let parent = name.rsplit_once('.').map_or(name.as_str(), |p| p.0);
            let shards: Vec<String> = shards.iter().map(|s| format!("{parent}.{s}")).collect();
            if let Some(algo) = self.fused(prefix, shards.iter())? {
                return Ok(Some(algo));
            }
        }
        Ok(None)
    }

    /// What an algorithm is on a linear layer or a head; none leaves it plain.
    pub(super) fn linear(&self, algo: &str) -> Option<Algo> {
        Some(match algo {
            "FP8" => Algo::Tensor,
            "FP8_PER_CHANNEL_PER_TOKEN" => Algo::Channel,
            "FP8_PB_WO" => Algo::Block,
            "NVFP4" => Algo::Nvfp4 { group: self.group, a16: false },
            "W4A16_NVFP4" => Algo::Nvfp4 { group: self.group, a16: true },
            "MXFP8" => Algo::Mxfp8,
            _ => return None,
        })
    }

    /// What it is on experts.
    pub(super) fn experts(&self, algo: &str) -> Option<Algo> {
        match algo {
            "FP8_PB_WO" | "FP8_BLOCK_SCALES" => Some(Algo::ExpertBlocks { size: self.block }),
            "FP8_PER_CHANNEL_PER_TOKEN" => None,
            other => self.linear(other),
        }
    }
}

/// Whether an algorithm, in capitals, is one of the block codes.
pub(super) fn is_codec(algo: &str) -> bool {
    CODECS.iter().any(|c| c.0.eq_ignore_ascii_case(algo))
}

/// Block codes have one layout.
fn codec(name: &str, info: &Value, algo: Option<&str>) -> Result<(), Raised> {
    let Some((algo, (_, group, bytes))) =
        algo.and_then(|a| Some((a, CODECS.iter().find(|c| c.0.eq_ignore_ascii_case(a))?)))
    else {
        return Ok(());
    };
    let empty = Map::new();
    let info_map = info.as_object().unwrap_or(&empty);
    let is = |key: &str, want: u64| info_map.get(key).and_then(Value::as_f64) == Some(want as f64);
    if is("group_size", *group)
        && is("block_payload_bytes", *bytes)
        && info_map.get("packing").and_then(Value::as_str) == Some("ggml")
    {
        return Ok(());
    }
    Err(raised("ValueError", format!("unsupported {algo} block contract for {name}: {}", repr(info))))
}

/// `_quantized_layer_prefix_candidates`.
fn candidates(prefix: &str) -> Vec<String> {
    let mut names = vec![prefix.to_owned()];
    if prefix.ends_with(".lm_head") {
        names.push("lm_head".into());
    }
    if let Some(rest) = prefix.strip_prefix("language_model.model.") {
        names.push(format!("model.language_model.{rest}"));
    } else if let Some(rest) = prefix.strip_prefix("model.language_model.") {
        names.push(format!("language_model.model.{rest}"));
    }
    names
}
