//! Tensors that fill a part of a parameter: one projection of all experts, rows of queries, a table among others.

use super::super::mapper::Shard;
use super::super::place::{self, Placed};
use super::super::stream::{Stored, Stream};
use super::super::trace::{Kind, Raised};
use super::super::tree::{Quant, Slot};
use super::{Keyed, find, missing, no_expert_key};
use crate::checkpoint::Dtype;
use crate::facts::{Dialect, NodeKind};

/// `expert_params_mapping` of `Step3TextModel.load_weights`, `Step3p5Model.load_weights`: one projection of all experts.
pub(super) fn banked(
    s: &mut Stream,
    at: usize,
    name: &str,
    (from, to, part): &(String, String, usize),
    tables: &Keyed,
    t: &Stored,
) {
    let lenient = tables.dialect == Dialect::Lenient;
    let mapped = name.replace(from.as_str(), to);
    let (path, param) = mapped.rsplit_once('.').unwrap_or(("", &mapped));
    let experts = s.tree.find_below(at, path).filter(|m| s.tree.modules[*m].kind == NodeKind::Experts);
    let slot = experts.and_then(|m| Some((m, s.tree.modules[m].slots.iter().position(|x| x.name == param)?)));
    let Some((module, slot)) = slot else {
        if lenient {
            return s.dropped(at, "no parameter of this name", t);
        }
        let before = path.strip_suffix(".experts").unwrap_or(path);
        return s.homeless_key(at, name, no_expert_key(before, param), t);
    };
    let n = s.tree.modules[module].experts;
    let (stored, one) = match t.shape {
        None => (n, None),
        Some([]) if lenient => (n, Some(&[][..])),
        Some([1, one @ ..]) if lenient => (n, Some(one)),
        Some([stored, one @ ..]) => (*stored, Some(one)),
        Some([]) => (0, None),
    };
    let result = match (t.shape, one) {
        (Some([]), None) => Err(Raised::new("IndexError", "tuple index out of range")),
        _ if lenient && stored != n => Err(place::assertion("")),
        _ if stored > n => {
            Err(Raised::new("IndexError", format!("index {n} is out of bounds for dimension 0 with size {n}")))
        }
        (_, None) => Ok(Placed::Whole),
        (_, Some(one)) => place::expert(&s.tree.modules[module].slots[slot], one, *part < 2),
    };
    if result.is_ok() {
        let slot = &mut s.tree.modules[module].slots[slot];
        let stored = usize::try_from(stored).unwrap_or(0);
        (0..stored).for_each(|e| slot.mark(if *part < 2 { e * 2 + part } else { e }));
    }
    s.finish(module, slot, result, t, false);
}

/// `HYV4Model.load_fused_expert_weights`: gate and up, or down, of all experts in one tensor. False when it is no such name.
pub(super) fn bank(s: &mut Stream, at: usize, name: &str, t: &Stored) -> bool {
    let names = [(".experts.gate_up_proj", "w13_weight"), (".experts.down_proj", "w2_weight")];
    let hit = names.into_iter().find_map(|(from, to)| Some((name.split_once(from)?, to)));
    let Some(((before, tail), param)) = hit else { return false };
    let (gated, param) = (param == "w13_weight", format!("{param}{tail}"));
    let module = s.tree.find_below(at, &format!("{before}.experts"));
    let module = module.filter(|m| s.tree.modules[*m].kind == NodeKind::Experts);
    let slot = module.and_then(|m| Some((m, s.tree.modules[m].slots.iter().position(|x| x.name == param)?)));
    let Some((module, slot)) = slot else {
        s.homeless_key(at, name, no_expert_key(before, param), t);
        return true;
    };
    let m = &mut s.tree.modules[module];
    let result = t.shape.map_or(Ok(Placed::Whole), |shape| every_expert(&m.slots[slot], shape, m.experts, gated));
    if result.is_ok() {
        m.slots[slot].mark_all();
    }
    s.finish(module, slot, result, t, false);
    true
}

/// Expert after expert, of a gated projection first all gates (`chunk(2, dim=-2)`).
fn every_expert(slot: &Slot, shape: &[u64], experts: u64, gated: bool) -> Result<Placed, Raised> {
    let mut pieces = vec![shape.to_vec()];
    if gated {
        let Some(dim) = shape.len().checked_sub(2) else {
            let text = "Dimension out of range (expected to be in range of [-1, 0], but got -2)";
            return Err(Raised::new("IndexError", text));
        };
        pieces.push(shape.to_vec());
        pieces[0][dim] = shape[dim].div_ceil(2);
        pieces[1][dim] = shape[dim] / 2;
    }
    let mut placed = Placed::Whole;
    for piece in pieces {
        let Some((stored, one)) = piece.split_first() else {
            return Err(Raised::new("IndexError", "invalid index of a 0-dim tensor. Use `tensor.item()`"));
        };
        if *stored > 0 {
            placed = place::expert(slot, one, gated)?;
        }
        if *stored < experts {
            let text = format!("index {stored} is out of bounds for dimension 0 with size {stored}");
            return Err(Raised::new("IndexError", text));
        }
        if *stored > experts {
            placed = Placed::Cut(0, experts, *stored);
        }
    }
    Ok(placed)
}

/// `_try_load_fp8_indexer_wk` (vllm/model_executor/models/deepseek_v2.py): an 8-bit weight and its scale become a 16-bit part
/// of a fused linear once both are there. False when it is something else.
pub(super) fn dequantized(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) -> bool {
    let Some((before, leaf)) = name.split_once("indexer.wk.") else { return false };
    let (weight, scale) = (leaf == "weight" && t.dtype == Some(Dtype::F8_E4M3), leaf.starts_with("weight_scale"));
    if !(weight || scale) || !tables.stacked.iter().any(|row| row.0.contains("wk_weights_proj")) {
        return false;
    }
    let Some(module) = s.tree.find_below(at, &format!("{before}indexer.wk_weights_proj")) else { return false };
    let path = s.tree.modules[module].path.clone();
    let Some((was, shape)) = s.waiting.remove(&path).filter(|(was, _)| *was != weight) else {
        s.waiting.insert(path, (weight, t.shape.map(<[u64]>::to_vec).filter(|_| weight)));
        return true;
    };
    let mut shape = if was { shape } else { t.shape.map(<[u64]>::to_vec) };
    // All of it was read on the way: rows beyond the part's count as used.
    if let (Some(rows), Some(part)) = (shape.as_mut().and_then(|x| x.first_mut()), s.tree.modules[module].parts.first())
    {
        *rows = part.1.min(*rows);
    }
    let whole = Stored { shape: shape.as_deref(), dtype: Some(Dtype::BF16), ..*t };
    s.fused(module, "weight", Some(&Shard::Part(0)), &whole);
    true
}

/// `Moondream3ForCausalLM.load_weights`: the name of a tensor with the dimensions that all experts together have. Where only
/// names are known, they say nothing of it.
pub(super) fn ranked(name: &str, tables: &Keyed, t: &Stored) -> Option<String> {
    let dimensions = t.shape?.len();
    let row = tables.ranked.iter().find(|row| row.0 == dimensions && name.contains(row.1.as_str()))?;
    Some(name.replace(row.1.as_str(), &row.2))
}

/// `qkv_params_mapping` of `Step3TextModel.load_weights`: rows of a linear that knows of no parts.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "rows as vLLM counts them, in floating point"
)]
pub(super) fn rows(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) -> bool {
    let Some((q, k)) = tables.slices else { return false };
    let Some(part) = [".q_proj", ".k_proj", ".v_proj"].iter().position(|p| name.contains(p)) else { return false };
    let mapped = name.replace([".q_proj", ".k_proj", ".v_proj"][part], ".qkv_proj");
    let Some((module, slot)) = find(s, at, &mapped) else {
        missing(s, at, &mapped, t);
        return true;
    };
    let (q, k) = (q as f64, k as f64);
    let bounds = [0.0, q, q + k, q + k * 2.0].map(|n| n / (q + k * 2.0));
    let sl = &mut s.tree.modules[module].slots[slot];
    let mut into = sl.shape.clone();
    if let Some(rows) = into.first_mut() {
        let all = *rows as f64;
        *rows = ((bounds[part + 1] * all) as u64).saturating_sub((bounds[part] * all) as u64);
    }
    sl.divide(3);
    sl.mark(part);
    let result = t.shape.map_or(Ok(()), |shape| place::copy(&into, shape)).map(|()| Placed::Whole);
    s.finish(module, slot, result, t, false);
    true
}

/// `NgramEmbedding.load_weight` (vllm/model_executor/models/longcat_flash_ngram.py): table `i` has `2i + 1` rows more than
/// all have, and its projection lies turned among the others.
pub(super) fn table(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) -> bool {
    let Some(least) = tables.tables else { return false };
    let row =
        [("ngram_embeddings.embedders.", "oe_embedder.weight"), ("ngram_embeddings.post_projs.", "oe_projection")];
    let Some((rest, param)) = row.into_iter().find_map(|(p, to)| Some((name.split_once(p)?.1, to))) else {
        return false;
    };
    let found = find(s, at, &format!("ngram_embeddings.{param}"));
    let many = find(s, at, "ngram_embeddings.oe_projection");
    let (Some((module, slot)), Some((owner, stack))) = (found, many) else { return false };
    let many = s.tree.modules[owner].slots[stack].shape.first().copied().unwrap_or(0);
    let index = rest.split('.').next().unwrap_or(rest);
    let embedder = param.ends_with("weight");
    let sl = &s.tree.modules[module].slots[slot];
    let result = match (index.parse::<u64>(), t.shape) {
        (Err(_), _) => Err(Raised::new("ValueError", format!("invalid literal for int() with base 10: '{index}'"))),
        (Ok(i), _) if i >= many => Err(Raised::new(
            "IndexError",
            if embedder {
                "list index out of range".into()
            } else {
                format!("index {i} is out of bounds for dimension 0 with size {many}")
            },
        )),
        (Ok(_), None) => Ok(Placed::Whole),
        (Ok(i), Some(shape)) if embedder => {
            let rows = least.saturating_add(i.saturating_mul(2)).saturating_add(1);
            let stored = shape.first().copied().unwrap_or(0);
            if rows == stored {
                let into: Vec<u64> = [rows].iter().chain(sl.shape.iter().skip(1)).copied().collect();
                place::copy(&into, shape).map(|()| Placed::Whole)
            } else {
                Err(place::assertion(&format!("hi - lo={rows} loaded_weight.shape[0]={stored}")))
            }
        }
        (Ok(_), Some(shape)) => {
            let mut turned = shape.to_vec();
            turned.reverse();
            place::copy(sl.shape.get(1..).unwrap_or(&[]), &turned).map(|()| Placed::Whole)
        }
    };
    if result.is_ok() {
        let sl = &mut s.tree.modules[module].slots[slot];
        sl.divide(usize::try_from(many).unwrap_or(1));
        sl.mark(index.parse().unwrap_or(usize::MAX));
    }
    s.finish(module, slot, result, t, false);
    true
}

/// `_rope_weight_perm` of `K2HorizonModel.load_weights`: rows change places within heads, so there must be whole ones.
/// False when vLLM raised.
pub(super) fn whole_heads(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) -> bool {
    let (Some(size), Some(shape)) = (tables.heads, t.shape) else { return true };
    let Some((attention, rest)) = name.split_once(".self_attn.") else { return true };
    let projection = ["q_proj.weight", "k_proj.weight", "q_proj.bias", "k_proj.bias"].contains(&rest);
    if !(projection || ["q_norm.weight", "k_norm.weight"].contains(&rest) && find(s, at, name).is_some()) {
        return true;
    }
    let fused = ["qkv_proj", "qk_proj"].map(|p| s.tree.find_below(at, &format!("{attention}.self_attn.{p}")));
    let Some(module) = fused.into_iter().flatten().next() else { return true };
    let rows = shape.first().copied().unwrap_or(0);
    if matches!(s.tree.modules[module].quant, Quant::Scheme(_)) || rows.checked_rem(size).unwrap_or(0) == 0 {
        return true;
    }
    let hidden = if shape.len() > 1 { format!(", {}", shape[shape.len() - 1]) } else { String::new() };
    let elements = shape.iter().fold(1u64, |n, d| n.saturating_mul(*d));
    let text = format!("shape '[-1, {size}{hidden}]' is invalid for input of size {elements}");
    s.refuse(Kind::ShapeMismatch, module, Raised::new("RuntimeError", text), t, &format!("stored {shape:?}"));
    false
}

/// `_make_fused_conv1d_weight_loader` of `KimiGatedDeltaNetAttention`: a matrix gets its middle dimension.
pub(super) fn convolution(name: &str, shape: &[u64]) -> Option<Vec<u64>> {
    match shape {
        [rows, width] if name.ends_with("_conv1d.weight") => Some(vec![*rows, 1, *width]),
        _ => None,
    }
}

/// `a_log_weight_loader`, `sharded_weight_loader` of `KimiGatedDeltaNetAttention`: what follows the last head is left out.
pub(super) fn gate(s: &mut Stream, at: usize, name: &str, t: &Stored) -> bool {
    let old = name.ends_with(".A_log");
    if !(old || name.ends_with(".dt_bias")) {
        return false;
    }
    let Some((module, slot)) = find(s, at, name) else { return false };
    let into = &s.tree.modules[module].slots[slot].shape;
    let size = into.first().copied().unwrap_or(0);
    let result = match t.shape {
        None => Ok(Placed::Whole),
        Some(shape @ [a, b, heads, last]) if old => {
            if (*a, *b, *last) == (1, 1, 1) {
                place::narrow(&[*heads], 0, 0, size).map(|(_, placed)| placed)
            } else {
                let text = format!("Expected old A_log shape (1, 1, H, 1), got torch.Size({shape:?})");
                Err(place::assertion(&text))
            }
        }
        Some(shape) => {
            place::narrow(shape, 0, 0, size).and_then(|(left, placed)| place::default(into, &left).map(|_| placed))
        }
    };
    s.finish(module, slot, result, t, true);
    true
}
