//! `Ernie4_5_VLMoeForCausalLM.load_weights` (vllm/model_executor/models/ernie45_vl_moe.py): the first experts are those of
//! text, the others those of pictures.

use super::super::stream::{Stored, Stream};
use super::{Keyed, expert, find, plain, stacked};
use crate::facts::NodeKind;

/// One tensor, after the names that are left out.
pub(super) fn load(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) {
    if name.ends_with("lm_head.weight") && s.tree.tied_head.is_some() {
        return s.dropped(at, "tied to the embedding", t);
    }
    if !name.contains("mlp.experts.") {
        for (param, stored, shard) in tables.stacked.iter().filter(|row| name.contains(row.1.as_str())) {
            let mapped = name.replace(stored.as_str(), param);
            if mapped.ends_with("bias") && find(s, at, &mapped).is_none() {
                continue;
            }
            return stacked(s, at, &mapped, *shard, t);
        }
    }
    if let Some((before, rest)) = name.split_once(".experts.")
        && let Some((index, tail)) = rest.split_once('.')
        && let Ok(index) = index.parse::<u64>()
    {
        let text = tables.text_experts.unwrap_or(0);
        let (list, index) = index.checked_sub(text).map_or(("text_experts", index), |i| ("vision_experts", i));
        let (path, rest) = (format!("{before}.{list}"), format!("{index}.{tail}"));
        let module = s.tree.find_below(at, &path).filter(|m| s.tree.modules[*m].kind == NodeKind::Experts);
        return match module {
            Some(module) => expert(s, module, &format!("{path}.{rest}"), before, &rest, tables, t),
            None => plain(s, at, &format!("{path}.{rest}"), t),
        };
    }
    let gates =
        [("mlp.gate.weight", "mlp.text_experts_gate.weight"), ("mlp.gate.weight_1", "mlp.vision_experts_gate.weight")];
    if let Some((from, to)) = gates.into_iter().find(|(from, _)| name.ends_with(from)) {
        let turned = t.shape.map(|shape| shape.iter().rev().copied().collect::<Vec<u64>>());
        let mapped = format!("{}{to}", &name[..name.len() - from.len()]);
        return plain(s, at, &mapped, &Stored { shape: turned.as_deref(), ..*t });
    }
    let mapped =
        if name.contains("e_score_correction_bias") { name.replace(".moe_statics.", ".") } else { name.into() };
    if mapped.ends_with("bias") && find(s, at, &mapped).is_none() {
        return s.dropped(at, ".bias", t);
    }
    plain(s, at, &mapped, t);
}
