//! deepseek_v4_fp8 (vllm/models/deepseek_v41/quant_config.py): fp8 in blocks, experts in MXFP4 or fp8 as `expert_dtype` says,
//! or in NVFP4 as ModelOpt writes them.

use super::fnmatch::fnmatch;
use super::fp8::Fp8;
use super::mxfp4::Mxfp4;
use super::{Built, CacheScales, DeadEntry, Element, Layer, List, Offered, Quantizer, modelopt, py};
use crate::vllm::trace::{Kind, Raised};
use serde_json::Value;

/// `DeepseekV4FP8Config`.
#[derive(Debug)]
pub struct DeepseekV4Fp8 {
    linears: Fp8,
    /// None for fp8.
    experts: Option<Mxfp4>,
    /// Experts are in NVFP4, but for those that these patterns match.
    nvfp4: Option<Vec<String>>,
    /// What building any layer raises.
    broken: Option<Raised>,
}

impl DeepseekV4Fp8 {
    /// `from_config`, and `expert_dtype` of the model's config.
    ///
    /// # Errors
    /// What it raises, with the JSON pointer relative to the quantization config.
    pub fn parse(config: &Value, expert_dtype: Option<&Value>) -> Result<DeepseekV4Fp8, (String, Raised)> {
        let four = expert_dtype.is_none_or(|v| v == "fp4");
        let broken = expert_dtype.filter(|v| *v != "fp4" && *v != "fp8").map(|v| {
            let shown = py::repr(v);
            py::raised(
                "ValueError",
                format!("Unsupported DeepSeek V4 expert_dtype={shown}; expected one of ('fp4', 'fp8')."),
            )
        });
        let algo = config.get("moe_quant_algo").and_then(Value::as_str).unwrap_or_default();
        let nvfp4 = algo.eq_ignore_ascii_case("nvfp4").then(|| {
            let ignored = config.get("ignore").and_then(Value::as_array).into_iter().flatten();
            ignored.filter_map(Value::as_str).map(str::to_owned).collect()
        });
        Ok(DeepseekV4Fp8 { nvfp4, linears: Fp8::parse(config)?, experts: four.then(|| Mxfp4::new(false)), broken })
    }

    /// Whether the release reads `ignore`.
    #[must_use]
    pub fn ignoring(mut self, known: bool) -> DeepseekV4Fp8 {
        if let Some(ignored) = self.nvfp4.as_mut().filter(|_| !known) {
            ignored.clear();
        }
        self
    }
}

impl Quantizer for DeepseekV4Fp8 {
    fn name(&self) -> &'static str {
        "deepseek_v4_fp8"
    }

    fn list(&self) -> List {
        self.linears.list()
    }

    fn map_names(&mut self, rename: &dyn Fn(&str) -> String) {
        self.linears.map_names(rename);
    }

    fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool) {
        self.linears.set_packed(mapping, merge);
    }

    fn build(&mut self, layer: &Layer<'_>) -> Built {
        if let (Some(raised), Offered::Linear | Offered::Experts) = (&self.broken, layer.offered) {
            return Built::Refused { why: Kind::ConfigField, raised: raised.clone() };
        }
        let built = self.linears.build(layer);
        let Built::Quantized { scheme, mut params, nones } = built else { return built };
        let Some(experts) = &mut self.experts else { return Built::Quantized { scheme, params, nones } };
        if layer.offered == Offered::Experts {
            return if self.nvfp4.as_ref().is_some_and(|ignored| in_nvfp4(layer.prefix, ignored)) {
                modelopt::nvfp4_experts(layer)
            } else {
                experts.build(layer)
            };
        }
        // Beside such experts the scales of the linears are exponents (`is_scale_e8m0`).
        for scale in params.iter_mut().filter(|p| p.name == "weight_scale_inv") {
            scale.element = Element::E8M0;
        }
        Built::Quantized { scheme, params, nones }
    }

    fn dead_entries(&self) -> Vec<DeadEntry> {
        self.linears.dead_entries()
    }

    fn cache_scales(&self) -> CacheScales {
        self.linears.cache_scales()
    }
}

/// `_is_nvfp4_expert_layer`.
fn in_nvfp4(prefix: &str, ignored: &[String]) -> bool {
    let number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    let layer = prefix.strip_suffix(".ffn.experts").and_then(|p| match p.rsplit_once("layers.") {
        Some((before, n)) if number(n) && (before.is_empty() || before.ends_with('.')) => Some(n),
        _ => None,
    });
    let Some(layer) = layer else { return true };
    let name = format!("layers.{layer}.ffn.experts");
    !ignored.iter().any(|pattern| fnmatch(&name, pattern))
}
