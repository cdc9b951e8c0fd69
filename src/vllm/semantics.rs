//! What releases of vLLM do differently where no table says it. Nothing else compares versions.

/// The behaviour of one release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Semantics {
    /// Under which names compressed-tensors looks for the projections of an expert (gate, down, up), when not under those
    /// that the class has for them in the checkpoint (`CompressedTensorsMoEMethod.get_moe_method`).
    pub expert_names: Option<[&'static str; 3]>,
    /// Whether Quark's weight-only 4-bit integers are known (`QuarkW4A16Int4`).
    pub quark_int4: bool,
    /// Whether DeepSeek V4's experts that ModelOpt's `ignore` names stay in MXFP4 (`_is_nvfp4_expert_layer`).
    pub nvfp4_ignore: bool,
}

impl Semantics {
    /// Of a version that there are facts for.
    pub fn of(version: &str) -> Semantics {
        let older = version == "0.30";
        Semantics {
            expert_names: older.then_some(["gate_proj", "down_proj", "up_proj"]),
            quark_int4: !older,
            nvfp4_ignore: !older,
        }
    }
}
