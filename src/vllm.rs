//! The heart: what one version of vLLM would do with a checkpoint, as a trace.

pub mod experts;
pub mod mapper;
pub mod method;
pub mod place;
pub mod stream;
pub mod trace;
pub mod tree;
pub mod words;

use crate::checkpoint::Checkpoint;
use trace::Trace;

/// What changes the verdict besides the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// vLLM version, e.g. `0.32`.
    pub vllm: String,
    /// `--quantization`.
    pub quantization: Option<String>,
    /// `--load-format`, `auto` by default.
    pub load_format: String,
    /// `--language-model-only`.
    pub language_model_only: bool,
}

impl Default for Target {
    fn default() -> Self {
        Target { vllm: "0.32".into(), quantization: None, load_format: "auto".into(), language_model_only: false }
    }
}

/// One simulated load: the trace, and what rules and reports want to know of the way there.
#[derive(Debug, Default)]
pub struct Plan {
    /// Ordered events.
    pub trace: Trace,
    /// The vLLM class that was chosen.
    pub class: Option<String>,
    /// The quantization method in effect, e.g. `compressed-tensors`.
    pub method: Option<String>,
    /// JSON pointer of the quantization config in effect and the file that holds it.
    pub quant_place: Option<(String, String)>,
    /// Parameters that would hold garbage (for the verdict line of `damages`).
    pub garbage: usize,
    /// Tensors that were streamed.
    pub tensors: usize,
    /// Bytes of the tensors that were streamed.
    pub bytes: u64,
}

impl Plan {
    /// Simulate the load of `checkpoint` by `target`.
    pub fn of(checkpoint: &Checkpoint, target: &Target) -> Plan {
        let _ = (checkpoint, target);
        Plan::default()
    }
}
