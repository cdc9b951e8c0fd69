//! AWQ (vllm/model_executor/layers/quantization/auto_awq.py; spec D.3): 4 bits, packed along the output dimension.

use super::kfirst::{self, Packed};
use super::params::Sizes;
use super::skip::SkipList;
use super::{Built, DeadEntry, Layer, List, Matching, Offered, Quantizer, py};
use crate::checkpoint::Checkpoint;
use crate::vllm::trace::{Kind, Raised};
use serde_json::Value;

/// `AutoAWQConfig`.
#[derive(Debug)]
pub struct Awq {
    skip: SkipList,
    packed: Packed,
    zero_point: bool,
    head: bool,
}

type Failure = (Kind, Raised);

impl Awq {
    /// `AutoAWQConfig.from_config`.
    ///
    /// # Errors
    /// What it raises, with the JSON pointer relative to the quantization config.
    pub fn parse(config: &Value) -> Result<Awq, (String, Raised)> {
        let bits = py::required(config, &["w_bit", "bits"])?;
        let group = py::required(config, &["q_group_size", "group_size"])?;
        let zero_point = py::required(config, &["zero_point"])?;
        let head = config.get("lm_head").is_some_and(py::truthy);
        let at = if config.get("w_bit").is_some() { "/w_bit" } else { "/bits" };
        if bits.as_i64() == Some(0) {
            let raised = py::raised("ZeroDivisionError", "integer division or modulo by zero");
            return Err((at.into(), raised));
        }
        if bits.as_i64() != Some(4) {
            let text = format!(
                "Unsupported num_bits = {}. Supported: 4. For 8-bit AWQ, use Marlin backend by setting \
                 backend='awq:marlin' or backend='marlin'.",
                py::display(bits)
            );
            return Err((at.into(), py::raised("ValueError", text)));
        }
        let skip = SkipList::parse(config, &["modules_to_not_convert"], Matching::Substring)?;
        let packed = Packed { bits: 4, group: group.as_i64().unwrap_or(0), output: true };
        Ok(Awq { skip, packed, zero_point: py::truthy(zero_point), head })
    }

    fn linear(&mut self, layer: &Layer<'_>) -> Result<Built, Failure> {
        if let Some(entry) = self.skip.skipped(layer.prefix).map_err(|raised| (Kind::FusedMixture, raised))? {
            return Ok(Built::Plain { entry });
        }
        let shape = |raised| (Kind::SchemeShape, raised);
        if !self.packed.known_group() || !self.packed.whole_groups(layer.input) {
            self.packed.unpadded(layer).map_err(shape)?;
        }
        let params = self.packed.linear(layer).map_err(shape)?;
        Ok(Built::Quantized { scheme: format!("AWQ (4 bits, {})", self.packed.per()), params, nones: Vec::new() })
    }

    fn experts(&mut self, layer: &Layer<'_>) -> Result<Built, Failure> {
        // The packed mapping is not passed: `experts` is no fused layer.
        if let Some(entry) = self.skip.hit(layer.prefix) {
            return Ok(Built::Plain { entry });
        }
        let s = Sizes::of(layer);
        let shape = |raised| (Kind::SchemeShape, raised);
        let mut params = self.packed.experts(&s).map_err(shape)?;
        if !self.packed.marlin_experts(&s, true) {
            kfirst::fallback(&mut params, self.packed, &s, self.zero_point).map_err(shape)?;
        }
        let scheme = format!("AWQ experts (4 bits, {})", self.packed.per());
        Ok(Built::Quantized { scheme, params, nones: Vec::new() })
    }
}

impl Quantizer for Awq {
    fn name(&self) -> &'static str {
        "auto_awq"
    }

    fn list(&self) -> List {
        self.skip.list()
    }

    fn see(&mut self, checkpoint: &Checkpoint) {
        if self.skip.is_empty() {
            self.skip.derive(kfirst::stems(checkpoint).1.into_iter().map(str::to_owned));
        }
    }

    fn map_names(&mut self, rename: &dyn Fn(&str) -> String) {
        self.skip.rename(rename);
    }

    fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool) {
        self.skip.set_packed(mapping, merge);
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
        self.skip.dead()
    }
}
