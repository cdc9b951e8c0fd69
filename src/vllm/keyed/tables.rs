//! What the facts say of a hand-written loop.

use crate::facts::{self, Dialect, Scope};
use crate::vllm::mapper::{self, Mapper};
use crate::vllm::tree::Skip;
use serde_json::Value;

/// Tables of a hand-written loop (spec E.6).
#[derive(Debug, Default)]
pub struct Keyed {
    /// Which loop.
    pub dialect: Dialect,
    /// Names that differ in the number of the expert alone go the same way.
    pub even: bool,
    /// What names become before anything else.
    pub renames: Mapper,
    /// `Lenient`: names that are no parameter and begin with one of these raise.
    pub strict: Vec<String>,
    /// `Lenient`: a row that leads to no parameter raises.
    pub strict_rows: bool,
    /// Persistent buffers are found, too.
    pub buffers: bool,
    /// Text of the error for an unknown name.
    pub stranger: Option<String>,
    /// Number of attention sinks that are read.
    pub sinks: Option<u64>,
    /// Experts may come in one piece.
    pub banks: bool,
    /// Parameter, name in the checkpoint, shard.
    pub stacked: Vec<(String, String, u16)>,
    /// Parameters that fall back to the plain name.
    pub optional: Vec<String>,
    /// An expert's gate, down and up projections, where its module knows other names.
    pub expert_names: Option<[String; 3]>,
    /// `Lenient`: an expert's tensor without a parameter raises.
    pub strict_experts: bool,
    /// Part of a name with all experts of a layer, what it becomes, and 0, 1, 2 for gate, up, down.
    pub banked: Vec<(String, String, usize)>,
    /// Rows of queries, and of keys and of values, of a linear that is not fused.
    pub slices: Option<(u64, u64)>,
    /// Rows of a table, before what its index adds.
    pub tables: Option<u64>,
    /// Rows of a head.
    pub heads: Option<u64>,
    /// Parts of names that are copied as a whole.
    pub exact: Vec<String>,
    /// Number of dimensions, part of a name, what it becomes.
    pub ranked: Vec<(usize, String, String)>,
    /// Parameters of `KimiGatedDeltaNetAttention`.
    pub kda: bool,
    /// Number of experts for text.
    pub text_experts: Option<u64>,
    /// Scales of the key-value cache have other names.
    pub cache_scales: bool,
    /// Layers from the first to before the second index belong to a drafter.
    pub skip_layers: (u64, u64),
    /// Elements that are left out.
    pub skip: Option<Skip>,
    /// `config.quantization_config["quant_method"]`, as the loop finds it.
    pub quant_method: Option<String>,
}

impl Keyed {
    /// From the facts.
    pub fn read(l: &facts::Loader, scope: &Scope, skip: Option<Skip>) -> Keyed {
        let layers = l.skip_layers.as_ref().map(|(a, n)| (a.size(scope).unwrap_or(0), n.size(scope).unwrap_or(0)));
        let (first, n) = layers.unwrap_or((0, 0));
        let shard = |v: &Value| {
            v.as_u64().and_then(|n| u16::try_from(n).ok()).or_else(|| v.as_str().and_then(facts::facts_shard))
        };
        let renames = Mapper::new(l.mapper.as_ref(), scope);
        let numbered = l.stacked.iter().any(|row| mapper::numbered(&row.1));
        Keyed {
            dialect: l.dialect,
            even: plain_loop(l) && renames.even() && !numbered,
            renames,
            strict: l.strict.clone(),
            strict_rows: l.strict_rows,
            buffers: l.buffers,
            stranger: l.stranger.clone(),
            sinks: l.sinks.as_ref().and_then(|n| n.size(scope)),
            banks: l.banks,
            stacked: l.stacked.iter().filter_map(|(p, w, s)| Some((p.clone(), w.clone(), shard(s)?))).collect(),
            optional: l.optional.clone(),
            expert_names: l.expert_names.clone(),
            strict_experts: l.strict_experts,
            banked: l.banked.clone(),
            slices: l.slices.as_ref().and_then(|(q, k)| Some((q.size(scope)?, k.size(scope)?))),
            tables: l.tables.as_ref().and_then(|n| n.size(scope)),
            heads: l.heads.as_ref().and_then(|n| n.size(scope)),
            exact: l.exact.clone(),
            ranked: l.ranked.clone(),
            kda: l.kda,
            text_experts: l.text_experts.as_ref().and_then(|n| n.size(scope)),
            cache_scales: l.cache_scales,
            skip_layers: (first, first.saturating_add(n)),
            skip,
            quant_method: scope
                .root
                .pointer("/quantization_config/quant_method")
                .and_then(Value::as_str)
                .map(str::to_lowercase),
        }
    }
}

/// A loop without words that look at single names or indices.
fn plain_loop(l: &facts::Loader) -> bool {
    matches!(l.dialect, Dialect::Deepseek | Dialect::Lenient)
        && !(l.kda || l.cache_scales || l.skip.is_some())
        && l.banked.is_empty()
        && l.exact.is_empty()
        && l.ranked.is_empty()
        && [&l.tables, &l.heads, &l.text_experts].iter().all(|word| word.is_none())
        && l.slices.is_none()
}
