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
    /// Experts may come in one piece.
    pub banks: bool,
    /// Parameter, name in the checkpoint, shard.
    pub stacked: Vec<(String, String, u16)>,
    /// Parameters that fall back to the plain name.
    pub optional: Vec<String>,
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
        let renames = Mapper::new(l.mapper.as_ref(), scope).rename_only();
        let numbered = l.stacked.iter().any(|row| mapper::numbered(&row.1));
        Keyed {
            dialect: l.dialect,
            even: matches!(l.dialect, Dialect::Deepseek | Dialect::Lenient) && renames.even() && !numbered,
            renames,
            strict: l.strict.clone(),
            banks: l.banks,
            stacked: l.stacked.iter().filter_map(|(p, w, s)| Some((p.clone(), w.clone(), shard(s)?))).collect(),
            optional: l.optional.clone(),
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
