//! mxfp4 (vllm/model_executor/layers/quantization/mxfp4.py; spec D.5): experts in blocks of 32, all else as it is.

use super::params::Sizes;
use super::{Built, DeadEntry, Element, Layer, List, Load, Matching, Offered, Quantizer};

/// `Mxfp4Config` and `GptOssMxfp4Config`.
#[derive(Debug)]
pub struct Mxfp4 {
    gpt_oss: bool,
}

impl Mxfp4 {
    /// `from_config`, which reads nothing of the config.
    pub fn new(gpt_oss: bool) -> Mxfp4 {
        Mxfp4 { gpt_oss }
    }
}

impl Quantizer for Mxfp4 {
    fn name(&self) -> &'static str {
        if self.gpt_oss { "gpt_oss_mxfp4" } else { "mxfp4" }
    }

    /// Written by every tool, read by nobody.
    fn list(&self) -> List {
        List { pointer: "/modules_to_not_convert".into(), matching: Matching::Exact }
    }

    fn map_names(&mut self, _rename: &dyn Fn(&str) -> String) {}

    fn set_packed(&mut self, _mapping: Vec<(String, Vec<String>)>, _merge: bool) {}

    fn build(&mut self, layer: &Layer<'_>) -> Built {
        if layer.offered != Offered::Experts {
            return Built::Plain { entry: None };
        }
        let s = Sizes::of(layer);
        let mut params = s.pair(["w13_weight", "w2_weight"], |k| k / 2, Element::U8, Load::Both).to_vec();
        // `Mxfp4MoEMethod._encode_mxfp4_weight_scale`.
        let scale = if self.gpt_oss { Element::U8 } else { Element::E8M0 };
        params.extend(s.pair(["w13_weight_scale", "w2_weight_scale"], |k| k / 32, scale, Load::Both));
        Built::Quantized { scheme: "MXFP4 experts".into(), params, nones: Vec::new() }
    }

    fn dead_entries(&self) -> Vec<DeadEntry> {
        Vec::new()
    }
}
