//! What releases of vLLM do differently where no table says it. Nothing else compares versions.

/// The behaviour of one release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Semantics {
    /// Under which names compressed-tensors looks for the projections of an expert (gate, down, up), when not under those
    /// that the class has for them in the checkpoint (`CompressedTensorsMoEMethod.get_moe_method`).
    pub expert_names: Option<[&'static str; 3]>,
}

impl Semantics {
    /// Of a version that there are facts for.
    pub fn of(version: &str) -> Semantics {
        let fixed = version == "0.30";
        Semantics { expert_names: fixed.then_some(["gate_proj", "down_proj", "up_proj"]) }
    }
}
