//! fp8 (vllm/model_executor/layers/quantization/fp8.py; spec D.1): per tensor or in blocks, activations dynamic or static.

use super::params::{Sizes, block_scale, expert_blocks, param};
use super::skip::{SkipList, Skipped};
use super::{
    Built, CacheScales, DeadEntry, Element, Layer, List, Load, Matching, Offered, Param, Quantizer, kv_cache, py,
};
use crate::vllm::trace::{Kind, Raised};
use serde_json::Value;

/// `Fp8Config`.
#[derive(Debug)]
pub struct Fp8 {
    skip: SkipList,
    block: Option<Vec<i64>>,
    static_input: bool,
}

type Failure = (Kind, Raised);

impl Fp8 {
    /// `Fp8Config.from_config`.
    ///
    /// # Errors
    /// What it raises, with the JSON pointer relative to the quantization config.
    pub fn parse(config: &Value) -> Result<Fp8, (String, Raised)> {
        let at = |key: &str, text: String| Err((key.to_owned(), py::raised("ValueError", text)));
        let scheme = py::required(config, &["activation_scheme"])?;
        let static_input = match scheme.as_str() {
            Some("static") => true,
            Some("dynamic") => false,
            _ => return at("/activation_scheme", format!("Unsupported activation scheme {}", py::display(scheme))),
        };
        let skip = SkipList::parse(config, &["ignored_layers", "modules_to_not_convert"], Matching::Exact)?;
        let block = match config.get("weight_block_size") {
            None | Some(Value::Null) => None,
            Some(Value::Array(sizes)) => {
                if sizes.len() != 2 {
                    let n = sizes.len();
                    let text =
                        format!("The quantization block size of weight must have 2 dimensions, but got {n} dimensions");
                    return at("/weight_block_size", text);
                }
                Some(sizes.iter().map(|v| v.as_i64().unwrap_or(0)).collect())
            }
            Some(other) => {
                let text = format!("object of type '{}' has no len()", py::type_name(other));
                return Err(("/weight_block_size".into(), py::raised("TypeError", text)));
            }
        };
        if block.is_some() && static_input {
            let text = "The block-wise quantization only supports dynamic activation scheme for now, but got static \
                        activation scheme.";
            return at("/activation_scheme", text.into());
        }
        Ok(Fp8 { skip, block, static_input })
    }

    fn label(&self) -> String {
        match &self.block {
            Some(b) => format!("FP8 (blocks of {})", b.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ")),
            None if self.static_input => "FP8 (per tensor, static activations)".into(),
            None => "FP8 (per tensor)".into(),
        }
    }

    fn linear(&self, layer: &Layer<'_>) -> Result<Built, Failure> {
        let parts = layer.outputs.len() as u64;
        let mut params = match &self.block {
            Some(block) => blocks(block, layer)?,
            None => {
                let n = layer.outputs.iter().fold(0u64, |a, b| a.saturating_add(*b));
                vec![
                    param("weight", &[n, layer.input], Element::F8E4M3, Load::Both),
                    param("weight_scale", &[parts], Element::F32, Load::PerTensor),
                ]
            }
        };
        if self.static_input {
            params.push(param("input_scale", &[parts], Element::F32, Load::PerTensor));
        }
        Ok(Built::Quantized { scheme: self.label(), params, nones: Vec::new() })
    }

    fn experts(&self, layer: &Layer<'_>) -> Result<Built, Failure> {
        let s = Sizes::of(layer);
        let mut params = s.pair(["w13_weight", "w2_weight"], |k| k, Element::F8E4M3, Load::Both).to_vec();
        match &self.block {
            Some(block) => {
                let names = ["w13_weight_scale_inv", "w2_weight_scale_inv"];
                params.extend(expert_blocks(names, block, &s).map_err(|raised| (Kind::SchemeShape, raised))?);
            }
            None => params.extend(s.per_tensor(["w13_weight_scale", "w2_weight_scale"])),
        }
        if self.static_input {
            let scale = |name| param(name, &[s.e], Element::F32, Load::Whole);
            params.extend(["w13_input_scale", "w2_input_scale"].map(scale));
        }
        Ok(Built::Quantized { scheme: format!("{} experts", self.label()), params, nones: Vec::new() })
    }
}

/// `Fp8LinearMethod.create_weights`, in blocks.
pub(super) fn blocks(block: &[i64], layer: &Layer<'_>) -> Result<Vec<Param>, Failure> {
    let k = layer.input;
    let n = layer.outputs.iter().fold(0u64, |a, b| a.saturating_add(*b));
    // Fused parts that are no whole blocks are let pass (`_maybe_allow_fp8_block_shape_mismatch`).
    let scale = block_scale("weight_scale_inv", &[n], n, k, block).map_err(|raised| (Kind::SchemeShape, raised))?;
    Ok(vec![param("weight", &[n, k], Element::F8E4M3, Load::Both), scale])
}

impl Quantizer for Fp8 {
    fn name(&self) -> &'static str {
        "fp8"
    }

    fn list(&self) -> List {
        self.skip.list()
    }

    fn map_names(&mut self, rename: &dyn Fn(&str) -> String) {
        self.skip.rename(rename);
    }

    fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool) {
        self.skip.set_packed(mapping, merge);
    }

    fn build(&mut self, layer: &Layer<'_>) -> Built {
        let quantized = match layer.offered {
            Offered::Attention => return kv_cache::build(layer),
            Offered::Head | Offered::Embedding => return Built::Plain { entry: None },
            Offered::Linear => Fp8::linear,
            Offered::Experts => Fp8::experts,
        };
        let skipped: Result<Skipped, Raised> = self.skip.skipped(layer.prefix);
        match skipped {
            Err(raised) => Built::Refused { why: Kind::FusedMixture, raised },
            Ok(Some(entry)) => Built::Plain { entry },
            Ok(None) => quantized(self, layer).unwrap_or_else(|(why, raised)| Built::Refused { why, raised }),
        }
    }

    fn dead_entries(&self) -> Vec<DeadEntry> {
        self.skip.dead()
    }

    fn cache_scales(&self) -> CacheScales {
        CacheScales::OutputScales
    }
}
