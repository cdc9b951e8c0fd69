//! Methods that quantize a 16-bit checkpoint while it loads (vllm/model_executor/layers/quantization/online, experts_int8.py):
//! their words, and `experts_int8`, which leaves all but experts as they are.

use super::py::raised;
use super::{Built, DeadEntry, Layer, List, Matching, Quantizer};
use crate::vllm::trace::Raised;

/// Words of `--quantization` that take a 16-bit checkpoint. The GPU's kernels run while it loads, so what comes of it is not
/// ours to say.
pub const WORDS: [&str; 8] = [
    "fp8",
    "fp8_per_tensor",
    "fp8_per_block",
    "fp8_per_channel",
    "int8_per_channel_weight_only",
    "mxfp8",
    "mxfp4",
    "experts_int8",
];

/// Words that only an argument may say: in a config, `OnlineQuantizationConfig.from_config` takes none of them.
const ARGUMENTS: [&str; 6] =
    ["online", "fp8_per_tensor", "fp8_per_block", "fp8_per_channel", "int8_per_channel_weight_only", "nvfp4_per_token"];

/// `ExpertsInt8Config`; experts take the tensors of unquantized ones.
#[derive(Debug)]
pub struct Online;

impl Online {
    /// By the word of a config.
    ///
    /// # Errors
    /// What `from_config` raises, with the JSON pointer relative to the quantization config.
    pub fn parse(word: &str) -> Option<Result<Online, (String, Raised)>> {
        if ARGUMENTS.contains(&word) {
            let text = "OnlineQuantizationConfig does not support loading from a checkpoint config. Use \
                        quantization_config or quantization='fp8_per_tensor'/'fp8_per_block' instead.";
            return Some(Err(("/quant_method".into(), raised("NotImplementedError", text))));
        }
        (word == "experts_int8").then_some(Ok(Online))
    }

    /// What the constructor of a method raises that needs a config, when the argument is all there is.
    pub fn without_config(word: &str) -> Option<Raised> {
        let (class, missing) = match word {
            "online" => ("OnlineQuantizationConfig", "1 required positional argument: 'args'"),
            "quark" => ("QuarkConfig", "1 required positional argument: 'quant_config'"),
            "compressed-tensors" => (
                "CompressedTensorsConfig",
                "3 required positional arguments: 'target_scheme_map', 'ignore', and 'quant_format'",
            ),
            _ => return None,
        };
        Some(raised("TypeError", format!("{class}.__init__() missing {missing}")))
    }
}

impl Quantizer for Online {
    fn name(&self) -> &'static str {
        "experts_int8"
    }

    /// Given by `--quantization-config`, never by the checkpoint.
    fn list(&self) -> List {
        List { pointer: "/ignore".into(), matching: Matching::Exact }
    }

    fn map_names(&mut self, _rename: &dyn Fn(&str) -> String) {}

    fn set_packed(&mut self, _mapping: Vec<(String, Vec<String>)>, _merge: bool) {}

    fn build(&mut self, _layer: &Layer<'_>) -> Built {
        Built::Plain { entry: None }
    }

    fn dead_entries(&self) -> Vec<DeadEntry> {
        Vec::new()
    }
}
