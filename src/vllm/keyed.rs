//! Hand-written loops over `params_dict = dict(self.named_parameters())`: an unknown name is a `KeyError`
//! (vllm/model_executor/models/deepseek_v2.py `DeepseekV2Model.load_weights`; spec E.6).

use super::experts;
use super::mapper::Shard;
use super::stream::{Stored, Stream};
use super::trace::Raised;
use super::tree::Keyed;
use super::words;
use crate::facts::NodeKind;

/// One tensor; `name` is relative to the module that loops.
pub fn load(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) {
    if name.contains("rotary_emb.inv_freq") {
        return s.dropped(at, "rotary_emb.inv_freq", t);
    }
    let layer = name.strip_prefix("layers.").and_then(|r| r.split('.').next()).and_then(|i| i.parse::<u64>().ok());
    if layer.is_some_and(|l| (tables.skip_layers.0..tables.skip_layers.1).contains(&l)) {
        return s.dropped(at, "a layer of the drafter (multi-token prediction)", t);
    }
    for (param, stored, shard) in &tables.stacked {
        if !name.contains(stored.as_str()) || name.contains("mlp.experts.") {
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
        let Some((module, slot)) = found else { return missing(s, at, &mapped, t) };
        if !s.tree.modules[module].kind.is_fused() {
            return s.plain(module, slot, t);
        }
        let leaf = s.tree.modules[module].slots[slot].name.clone();
        return s.fused(module, &leaf, Some(&Shard::Part(*shard)), t);
    }
    if let Some((before, rest)) = name.split_once(".experts.")
        && let Some(module) = s.tree.find_below(at, &format!("{before}.experts"))
        && s.tree.modules[module].kind == NodeKind::Experts
    {
        return experts::load(s, module, rest, t);
    }
    match find(s, at, name) {
        Some((module, slot)) => s.plain(module, slot, t),
        None if name.ends_with(".bias") => s.dropped(at, ".bias", t),
        None => missing(s, at, name, t),
    }
}

fn find(s: &Stream, at: usize, name: &str) -> Option<(usize, usize)> {
    let (path, leaf) = name.rsplit_once('.')?;
    let module = s.tree.find_below(at, path)?;
    // The dictionary holds parameters only, no buffers.
    let slot = s.tree.modules[module].slots.iter().position(|x| x.name == leaf && !x.buffer)?;
    Some((module, slot))
}

fn missing(s: &mut Stream, at: usize, name: &str, t: &Stored) {
    let raised = Raised { error_type: "KeyError".into(), text: format!("'{name}'") };
    let (path, leaf) = name.rsplit_once('.').unwrap_or(("", name));
    match s.tree.find_below(at, path) {
        Some(module) if s.tree.modules[module].kind.is_linear() || words::is_quant_parameter(leaf) => {
            s.without_parameter(module, leaf, raised, t)
        }
        _ => s.homeless_key(at, name, raised, t),
    }
}
