//! Hand-written loops over `params_dict = dict(self.named_parameters())`: an unknown name is a `KeyError`
//! (spec E.6; each dialect names the function that it follows).

use super::experts::{self, Param};
use super::mapper::{self, Mapped, Shard};
use super::place::{self, Placed};
use super::stream::{Stored, Stream};
use super::trace::{Kind, Raised};
use super::words;
use crate::facts::{Dialect, NodeKind};

pub mod llama4;

mod ernie45_vl;
mod gpt_oss;
mod slices;
mod tables;

pub use tables::Keyed;

/// One tensor; `name` is relative to the module that loops, and `shard` what a mapper before has said.
pub fn load(s: &mut Stream, at: usize, name: &str, shard: Option<&Shard>, tables: &Keyed, t: &Stored) {
    s.even &= tables.even;
    s.buffers = tables.buffers;
    let name = match tables.renames.map(name) {
        Mapped::Kept(name, _) => name,
        Mapped::Dropped(why) => return s.dropped(at, &why, t),
    };
    let name = name.as_ref();
    if tables.skip.as_ref().is_some_and(|skip| skip.hits(name)) {
        return s.dropped(at, "beyond the last layer built", t);
    }
    if tables.cache_scales && find(s, at, name).is_none() && mapper::is_cache_scale(name) {
        let mapped = mapper::cache_scale(name.into());
        return match find(s, at, &mapped) {
            Some((module, slot)) => s.plain(module, slot, t),
            None => s.dropped(at, "a scale of the key-value cache", t),
        };
    }
    if let Some(row) = tables.banked.iter().find(|row| name.contains(row.0.as_str())) {
        return slices::banked(s, at, name, row, tables, t);
    }
    let ranked = slices::ranked(name, tables, t);
    let name = ranked.as_deref().unwrap_or(name);
    let shape = t.shape.filter(|_| tables.kda).and_then(|shape| slices::convolution(name, shape));
    let t = &Stored { shape: shape.as_deref().or(t.shape), ..*t };
    if tables.kda && slices::gate(s, at, name, t) {
        return;
    }
    if slices::rows(s, at, name, tables, t)
        || slices::table(s, at, name, tables, t)
        || slices::dequantized(s, at, name, tables, t)
    {
        return;
    }
    match tables.dialect {
        Dialect::Deepseek => deepseek(s, at, name, tables, t),
        Dialect::Llama4 => llama4::model(s, at, name, tables, t),
        Dialect::Llama4Wrapper => llama4::wrapper(s, at, name, tables, t),
        Dialect::GptOss => gpt_oss::load(s, at, name, tables, t),
        Dialect::Whole => whole(s, at, name, tables, t),
        Dialect::Lenient => lenient(s, at, name, shard, tables, t),
        Dialect::Rows => rows(s, at, name, tables, t),
        Dialect::DeepseekV4 => deepseek_v4(s, at, name, tables, t),
        Dialect::Ernie45Vl => ernie45_vl::load(s, at, name, tables, t),
    }
}

/// `DeepseekV2Model.load_weights`.
fn deepseek(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) {
    if name.contains("rotary_emb.inv_freq") {
        return s.dropped(at, "rotary_emb.inv_freq", t);
    }
    let layer = name.strip_prefix("layers.").and_then(|r| r.split('.').next()).and_then(|i| i.parse::<u64>().ok());
    if layer.is_some_and(|l| (tables.skip_layers.0..tables.skip_layers.1).contains(&l)) {
        return s.dropped(at, "a layer of the drafter (multi-token prediction)", t);
    }
    let rows: &[_] = if name.contains("mlp.experts.") { &[] } else { &tables.stacked };
    for (param, stored, shard) in rows {
        if !name.contains(stored.as_str()) {
            continue;
        }
        let mapped = name.replace(stored.as_str(), param);
        let found = find(s, at, &mapped);
        if found.is_none() && tables.optional.contains(param) {
            continue;
        }
        if found.is_none() && mapped.ends_with(".bias") {
            continue;
        }
        return stacked(s, at, &mapped, *shard, t);
    }
    if let Some((module, before, rest)) = container(s, at, name) {
        if tables.banks && !rest.starts_with(|c: char| c.is_ascii_digit()) {
            return experts::load(s, module, rest, t);
        }
        return expert(s, module, name, before, rest, tables, t);
    }
    if name.ends_with(".bias") && find(s, at, name).is_none() {
        return s.dropped(at, ".bias", t);
    }
    plain(s, at, name, t);
}

/// `MiMoV2Model.load_weights`, `ModernBertModel.load_weights` and the like: whatever leads to a parameter, in this order.
fn lenient(s: &mut Stream, at: usize, name: &str, shard: Option<&Shard>, tables: &Keyed, t: &Stored) {
    if tables.banks && slices::bank(s, at, name, t) {
        return;
    }
    if tables.sinks.is_some() && name.contains("learnable_sink_param") {
        return sinks(s, at, name, tables, t);
    }
    if let Some((module, before, rest)) = container(s, at, name)
        && expert_row(s, module, tables, rest)
            .is_some_and(|(_, _, param)| tables.strict_experts || has(s, module, param))
    {
        return expert(s, module, name, before, rest, tables, t);
    }
    if tables.strict_experts
        && let Some((before, rest)) = name.split_once(".experts.")
        && s.tree.find_below(at, before).is_none()
        && let Some((index, (proj, suffix))) = rest.split_once('.').and_then(|(i, x)| Some((i, x.split_once('.')?)))
        && index.parse::<u64>().is_ok()
        && let Some(prefix) = match proj {
            "gate_proj" | "up_proj" => Some("w13_"),
            "down_proj" => Some("w2_"),
            _ => None,
        }
    {
        // The rows of experts know no layers.
        return s.homeless_key(at, name, no_expert_key(before, format!("{prefix}{suffix}")), t);
    }
    if !slices::whole_heads(s, at, name, tables, t) {
        return;
    }
    for (param, stored, shard) in tables.stacked.iter().filter(|row| name.contains(row.1.as_str())) {
        let mapped = name.replace(stored.as_str(), param);
        if tables.strict_rows || find(s, at, &mapped).is_some() {
            return stacked(s, at, &mapped, *shard, t);
        }
    }
    match find(s, at, name) {
        None if tables.strict.iter().any(|p| name.starts_with(p.as_str())) => match &tables.stranger {
            Some(text) => s.homeless_key(at, name, Raised::new("ValueError", text.replace("{}", t.name)), t),
            None => missing(s, at, name, t),
        },
        None => s.dropped(at, "no parameter of this name", t),
        Some((module, slot)) if tables.exact.iter().any(|p| name.contains(p.as_str())) => {
            let into = &s.tree.modules[module].slots[slot].shape;
            let result = t.shape.map_or(Ok(Placed::Whole), |shape| place::default(into, shape));
            s.finish(module, slot, result, t, true);
        }
        Some((module, _)) if shard.is_some() && s.tree.modules[module].kind.is_fused() => {
            let leaf = name.rsplit_once('.').map_or(name, |(_, leaf)| leaf);
            s.fused(module, leaf, shard, t);
        }
        Some(_) => piece(s, at, name, t),
    }
}

/// `FalconModel.load_weights`: a fused weight comes in one piece.
fn whole(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) {
    if first_row(s, at, name, tables, t) {
        return;
    }
    if name.ends_with(".bias") && find(s, at, name).is_none() {
        return s.dropped(at, ".bias", t);
    }
    piece(s, at, name, t);
}

/// `param = params_dict[name]`, as a whole, also when that is fused.
fn piece(s: &mut Stream, at: usize, name: &str, t: &Stored) {
    match find(s, at, name) {
        Some((module, _)) if s.tree.modules[module].kind.is_fused() => {
            let leaf = name.rsplit_once('.').map_or(name, |(_, leaf)| leaf);
            s.fused(module, leaf, None, t);
        }
        _ => plain(s, at, name, t),
    }
}

/// `PixtralHFVisionModel.load_weights`.
fn rows(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) {
    if !first_row(s, at, name, tables, t) {
        piece(s, at, name, t);
    }
}

/// The first row of `stacked_params_mapping` that the name has the words of; false when there is none.
fn first_row(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) -> bool {
    for (param, stored, shard) in tables.stacked.iter().filter(|row| name.contains(row.1.as_str())) {
        let mapped = name.replace(stored.as_str(), param);
        if !tables.optional.contains(param) || find(s, at, &mapped).is_some() {
            stacked(s, at, &mapped, *shard, t);
            return true;
        }
    }
    false
}

/// `DeepseekV4Model.load_weights` (vllm/models/deepseek_v4/nvidia/model.py).
fn deepseek_v4(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) {
    if let Some((module, before, rest)) = container(s, at, name) {
        return expert(s, module, name, before, rest, tables, t);
    }
    if first_row(s, at, name, tables, t) {
        return;
    }
    if name.contains("attn_sink") { sinks(s, at, name, tables, t) } else { plain(s, at, name, t) }
}

/// `params_dict[name][:n].copy_(loaded_weight[:heads])`: the parameter may be longer, for the kernel's sake.
fn sinks(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) {
    match (find(s, at, name), t.shape) {
        (Some((module, slot)), Some(&[stored])) => {
            let size = s.tree.modules[module].slots[slot].shape.first().copied().unwrap_or(0);
            let read = stored.min(tables.sinks.unwrap_or(stored));
            let placed = if read < size {
                Placed::Short(0, read, size)
            } else if read < stored {
                Placed::Cut(0, read, stored)
            } else {
                Placed::Whole
            };
            s.finish(module, slot, Ok(placed), t, true);
        }
        _ => plain(s, at, name, t),
    }
}

/// `param = params_dict[name]`, as a whole.
fn plain(s: &mut Stream, at: usize, name: &str, t: &Stored) {
    match find(s, at, name) {
        Some((module, slot)) => s.plain(module, slot, t),
        None => missing(s, at, name, t),
    }
}

/// The experts that a name lies below, and what stands before and after `.experts.` in it.
fn container<'n>(s: &Stream, at: usize, name: &'n str) -> Option<(usize, &'n str, &'n str)> {
    let (before, rest) = name.split_once(".experts.")?;
    let module = s.tree.find_below(at, &name[..before.len() + ".experts".len()])?;
    (s.tree.modules[module].kind == NodeKind::Experts).then_some((module, before, rest))
}

/// `param = params_dict[name]`, into a shard of a fused linear or into the whole of a parameter.
fn stacked(s: &mut Stream, at: usize, mapped: &str, shard: u16, t: &Stored) {
    let Some((module, slot)) = find(s, at, mapped) else { return missing(s, at, mapped, t) };
    if !s.tree.modules[module].kind.is_fused() {
        return s.plain(module, slot, t);
    }
    let m = &s.tree.modules[module];
    // The rows of an indexer, where the module has none (`QKVParallelLinear.validate_shard_id`).
    if let (NodeKind::Qkv, 3, Some(id)) =
        (m.kind, m.parts.len(), ["index_q", "index_k"].get(usize::from(shard).wrapping_sub(3)))
    {
        let text = format!("Shard id for QKVParallelLinear should be 'q', 'k', or 'v', got shard id {id}.");
        return s.refuse(Kind::NoHome, module, Raised::new("ValueError", text), t, mapped);
    }
    let leaf = m.slots[slot].name.clone();
    s.fused(module, &leaf, Some(&Shard::Part(shard)), t);
}

/// A tensor of one expert, by the rows of `fused_moe_make_expert_params_mapping`; `rest` is what follows `experts.`.
fn expert(s: &mut Stream, module: usize, name: &str, before: &str, rest: &str, tables: &Keyed, t: &Stored) {
    match expert_row(s, module, tables, rest) {
        None => experts::missing(s, module, rest, no_key(name), rest, t),
        Some((_, _, param)) if !has(s, module, param) => {
            experts::missing(s, module, &param.to_string(), no_expert_key(before, param), rest, t);
        }
        Some((index, part, param)) => experts::one(s, module, rest, param, index, part, false, t),
    }
}

/// Expert, part, and parameter.
fn expert_row<'n>(s: &Stream, module: usize, tables: &Keyed, rest: &'n str) -> Option<(u64, usize, Param<'n>)> {
    let [gate, down, up] = tables.expert_names.as_ref().unwrap_or(&s.tree.modules[module].expert_names);
    let (index, tail) = rest.split_once('.')?;
    let index: u64 = index.parse().ok().filter(|i| *i < s.tree.modules[module].experts)?;
    let (proj, suffix) = tail.split_once('.')?;
    let rows = [(gate, "w13_", 0), (up, "w13_", 1), (down, "w2_", 2)];
    let (_, prefix, part) = rows.into_iter().find(|r| r.0 == proj)?;
    Some((index, part, Param(prefix, suffix)))
}

fn has(s: &Stream, module: usize, param: Param) -> bool {
    param.slot(&s.tree.modules[module]).is_some()
}

fn no_key(name: &str) -> Raised {
    Raised::new("KeyError", format!("'{name}'"))
}

fn no_expert_key(before: &str, param: impl std::fmt::Display) -> Raised {
    no_key(&format!("{before}.experts.routed_experts.{param}"))
}

fn find(s: &Stream, at: usize, name: &str) -> Option<(usize, usize)> {
    let (path, leaf) = name.rsplit_once('.').unwrap_or(("", name));
    let module = s.tree.find_below(at, path)?;
    // Parameters of experts lie below `routed_experts`.
    if s.tree.modules[module].kind == NodeKind::Experts {
        return None;
    }
    // The dictionary holds parameters only, most times.
    let slot = s.tree.modules[module].slots.iter().position(|x| x.name == leaf && (s.buffers || !x.buffer))?;
    Some((module, slot))
}

fn missing(s: &mut Stream, at: usize, name: &str, t: &Stored) {
    let raised = no_key(name);
    let (path, leaf) = name.rsplit_once('.').unwrap_or(("", name));
    match s.tree.find_below(at, path) {
        Some(module) if s.tree.modules[module].kind.is_linear() || words::is_quant_parameter(leaf) => {
            s.without_parameter(module, leaf, raised, t)
        }
        _ => s.homeless_key(at, name, raised, t),
    }
}
