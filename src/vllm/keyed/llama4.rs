//! Llama 4 (vllm/model_executor/models/llama4.py, mllama4.py).

use super::super::experts::{self, Param};
use super::super::place;
use super::super::stream::{Stored, Stream};
use super::super::trace::Raised;
use super::Keyed;
use super::{container, expert, has, no_expert_key, no_key, plain, stacked};
use crate::facts::NodeKind;

/// `Llama4ForCausalLM.permute_qk_weight_for_rotary`: rows are grouped by head and half, so they must divide. None when
/// vLLM raised.
pub fn permuted(s: &mut Stream, at: usize, name: &str, heads: (u64, u64), t: &Stored) -> Option<()> {
    let parts: Vec<&str> = name.split('.').collect();
    let key = parts.iter().any(|p| matches!(*p, "wk" | "k_proj"));
    let query = parts.iter().any(|p| matches!(*p, "wq" | "q_proj"));
    let Some(shape) = t.shape else { return Some(()) };
    let elements = shape.iter().fold(1u64, |n, d| n.saturating_mul(*d));
    let concerned = match parts.last() {
        Some(&("weight" | "weight_packed")) => true,
        Some(&"weight_scale") => elements > 1,
        _ => false,
    };
    if !concerned || !(key || query) {
        return Some(());
    }
    let n = if key { heads.1 } else { heads.0 };
    let (rows, columns) = match *shape {
        [rows] => (rows, 1),
        [rows, columns] => (rows, columns),
        _ => {
            let text = match shape.len() {
                0 | 1 => format!("not enough values to unpack (expected 2, got {})", shape.len()),
                _ => "too many values to unpack (expected 2)".to_owned(),
            };
            refuse(s, at, "ValueError", text, t);
            return None;
        }
    };
    let half = rows.checked_div(n).unwrap_or(0) / 2;
    if n.saturating_mul(half).saturating_mul(2) == rows {
        return Some(());
    }
    refuse(
        s,
        at,
        "RuntimeError",
        format!("shape '[{n}, {half}, 2, {columns}]' is invalid for input of size {elements}"),
        t,
    );
    None
}

fn refuse(s: &mut Stream, at: usize, error_type: &str, text: String, t: &Stored) {
    let detail = format!("stored {:?}", t.shape.unwrap_or(&[]));
    let raised = Raised { error_type: error_type.into(), text };
    s.refuse(super::super::trace::Kind::ShapeMismatch, at, raised, t, &detail);
}

/// `Llama4Model.load_weights`.
pub(super) fn model(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) {
    if name.contains("experts.gate_up_proj") || name.contains("experts.down_proj") {
        s.banked = true;
    }
    let cache_scale = name.contains("self_attn") && (name.ends_with(".k_scale") || name.ends_with(".v_scale"));
    if !name.contains("experts") {
        for (param, part, shard) in &tables.stacked {
            if !name.contains(part.as_str()) {
                continue;
            }
            let mapped = if cache_scale { name.to_owned() } else { name.replace(part.as_str(), param) };
            return stacked(s, at, &mapped, *shard, t);
        }
    }
    if let Some((module, before, rest)) = container(s, at, name) {
        return moe(s, module, name, before, rest, tables, t);
    }
    plain(s, at, name, t);
}

/// `Llama4Model.load_moe_expert_weights`. Once a tensor for all experts has come, those of single experts find no row.
fn moe(s: &mut Stream, module: usize, name: &str, before: &str, rest: &str, tables: &Keyed, t: &Stored) {
    if !s.banked {
        return expert(s, module, name, before, rest, tables, t);
    }
    for (stem, prefix) in [("gate_up_proj", "w13_"), ("down_proj", "w2_")] {
        let Some(more) = rest.strip_prefix(stem) else { continue };
        let suffix = format!("weight{more}");
        let param = Param(prefix, &suffix);
        if !has(s, module, param) {
            return experts::missing(s, module, &param.to_string(), no_expert_key(before, param), rest, t);
        }
        // Three dimensions are `[experts, in, out]` and turned; a scale of fewer is taken as it is.
        return experts::bank(s, module, rest, param, true, t);
    }
    experts::missing(s, module, rest, no_key(name), rest, t);
}

/// `Llama4ForConditionalGeneration.load_weights`: the language model as it streams, everything else by key at the end.
pub(super) fn wrapper(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) {
    let renamed = modelopt(name);
    let first = renamed.split('.').next().unwrap_or(&renamed);
    let Some(child) = s.tree.modules[at].child(first) else {
        let text = format!("'{}' object has no attribute '{first}'", s.tree.modules[at].cls);
        return s.homeless_key(at, &renamed, Raised { error_type: "AttributeError".into(), text }, t);
    };
    if s.tree.modules[child].kind == NodeKind::Placeholder {
        return s.swallowed(child, t);
    }
    let mark = s.trace.events.len();
    if first == "language_model" {
        let scale = renamed.contains("feed_forward.experts.")
            && renamed.contains("scale")
            && !renamed.contains(".shared_expert");
        if scale && let Some((module, slot)) = expert_scale(s, at, &renamed) {
            let size: u64 = s.tree.modules[module].slots[slot].shape.iter().product();
            if size > 1 && t.shape.is_some_and(|x| x.iter().product::<u64>() == 1) {
                // One value for all experts.
                return s.finish(module, slot, Ok(place::Placed::Whole), t, true);
            }
        }
        let tail = renamed.strip_prefix("language_model.").unwrap_or_default();
        s.below(child, tail, t);
        if scale {
            let late = s.trace.events.split_off(mark);
            s.late.splice(0..0, late);
        }
        return;
    }
    let row = tables.stacked.iter().find(|(_, part, _)| renamed.contains(part.as_str()));
    match row {
        Some((param, part, shard)) => stacked(s, at, &renamed.replace(part.as_str(), param), *shard, t),
        None => plain(s, at, &renamed, t),
    }
    let late = s.trace.events.split_off(mark);
    s.late.extend(late);
}

/// `feed_forward.experts.w13_weight_scale` and the like, where the runner has it.
fn expert_scale(s: &Stream, at: usize, name: &str) -> Option<(usize, usize)> {
    let (before, leaf) = name.split_once(".experts.")?;
    let module = s.tree.find_below(at, &format!("{before}.experts"))?;
    let slot = s.tree.modules[module].slots.iter().position(|x| x.name == leaf)?;
    Some((module, slot))
}

/// `_rename_weight_for_modelopt_checkpoint`.
fn modelopt(name: &str) -> String {
    if !(name.starts_with("model.") || name.starts_with("language_model.model.")) {
        return match name.strip_prefix("lm_head.weight") {
            Some(rest) => format!("language_model.lm_head.weight{rest}"),
            None => name.to_owned(),
        };
    }
    let renamed = if name.starts_with("model.") { format!("language_model.{name}") } else { name.to_owned() };
    if name.contains("feed_forward.experts.") && (name.contains("_input_scale") || name.contains("_weight_scale")) {
        for (from, to) in [("down_proj_", "w2_"), ("gate_up_proj_", "w13_")] {
            for scale in ["input_scale", "weight_scale"] {
                let old = format!("{from}{scale}");
                if renamed.contains(&old) {
                    return renamed.replace(&old, &format!("{to}{scale}"));
                }
            }
        }
    } else if name.contains("self_attn.") {
        for part in ["k", "v"] {
            let old = format!(".{part}_proj.{part}_scale");
            if renamed.contains(&old) {
                return renamed.replace(&old, &format!(".attn.{part}_scale"));
            }
        }
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::modelopt;

    #[test]
    fn names_of_other_writers() {
        for (name, vllm) in [
            ("language_model.model.norm.weight", "language_model.model.norm.weight"),
            ("model.layers.0.self_attn.k_proj.k_scale", "language_model.model.layers.0.self_attn.attn.k_scale"),
            (
                "model.layers.1.feed_forward.experts.gate_up_proj_weight_scale",
                "language_model.model.layers.1.feed_forward.experts.w13_weight_scale",
            ),
            ("lm_head.weight", "language_model.lm_head.weight"),
            ("vision_model.class_embedding", "vision_model.class_embedding"),
        ] {
            assert_eq!(modelopt(name), vllm);
        }
    }
}
