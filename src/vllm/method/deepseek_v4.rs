//! deepseek_v4_fp8 (vllm/models/deepseek_v4/quant_config.py): fp8 in blocks, experts in MXFP4 or fp8 as `expert_dtype` says.

use super::fp8::Fp8;
use super::mxfp4::Mxfp4;
use super::{Built, CacheScales, DeadEntry, Element, Layer, List, Offered, Quantizer, py};
use crate::vllm::trace::{Kind, Raised};
use serde_json::Value;

/// `DeepseekV4FP8Config`.
#[derive(Debug)]
pub struct DeepseekV4Fp8 {
    linears: Fp8,
    /// None for fp8.
    experts: Option<Mxfp4>,
    /// What building any layer raises.
    broken: Option<Raised>,
}

impl DeepseekV4Fp8 {
    /// Whether it is simulated: experts in NVFP4 are not.
    pub fn knows(config: &Value) -> bool {
        !config.get("moe_quant_algo").and_then(Value::as_str).is_some_and(|a| a.eq_ignore_ascii_case("nvfp4"))
    }

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
        Ok(DeepseekV4Fp8 { linears: Fp8::parse(config)?, experts: four.then(|| Mxfp4::new(false)), broken })
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
            return experts.build(layer);
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
