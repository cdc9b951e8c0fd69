//! `GptOssModel.load_weights` (vllm/model_executor/models/gpt_oss.py), `_load_weights_other` and what it shares with
//! `_load_weights_mxfp4` and `_load_weights_quark`: what they do not know, they skip.

mod mxfp4;
mod quark;

use super::super::place::{self, Placed};
use super::super::stream::{Stored, Stream};
use super::super::trace::Raised;
use super::super::tree::Quant;
use super::Keyed;
use super::{find, missing, stacked};
use crate::facts::NodeKind;

/// One tensor, after the root's mapper.
pub(super) fn load(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) {
    if tables.quant_method.as_deref() == Some("quark") {
        return quark::load(s, at, name, tables, t);
    }
    if let Some((before, rest)) = name.split_once(".mlp.experts.")
        && let Some((index, param)) = rest.split_once('.')
        && let Ok(expert) = index.parse::<u64>()
        && let Some((module, slot)) = bank(s, at, &format!("{before}.mlp.experts.{param}"))
    {
        return streamed(s, module, slot, expert, t);
    }
    if matches!(tables.quant_method.as_deref(), Some("mxfp4" | "gpt_oss_mxfp4")) {
        if mxfp4::load(s, at, name, t) {
            return;
        }
        return rest(s, at, name, tables, t);
    }
    let expert = [".w13_weight", ".w2_weight", ".w13_bias", ".w2_bias"].into_iter().find(|p| name.contains(p));
    if let Some(part) = expert {
        let Some((module, slot)) = bank(s, at, name) else { return missing(s, at, name, t) };
        let result = experts(s, module, slot, part, t);
        return s.finish(module, slot, result, t, true);
    }
    rest(s, at, name, tables, t);
}

/// All but experts.
fn rest(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) {
    if name.contains("sinks") {
        let Some((module, slot)) = find(s, at, name) else { return missing(s, at, name, t) };
        let want = s.tree.modules[module].slots[slot].shape.clone();
        let result = match t.shape {
            None => Ok(Placed::Whole),
            Some(shape) => place::narrow(shape, 0, 0, want.first().copied().unwrap_or(0))
                .and_then(|(left, placed)| place::copy(&want, &left).map(|()| placed)),
        };
        return s.finish(module, slot, result, t, true);
    }
    let row = tables.stacked.iter().find(|(_, part, _)| name.contains(part.as_str()));
    if let Some((param, part, shard)) = row {
        return stacked(s, at, &name.replace(part.as_str(), param), *shard, t);
    }
    match find(s, at, name) {
        Some((module, slot)) => s.plain(module, slot, t),
        None => s.dropped(at, "not a parameter of gpt-oss", t),
    }
}

/// Parameters of the experts lie below `routed_experts`, which the names of checkpoints leave out.
fn bank(s: &Stream, at: usize, name: &str) -> Option<(usize, usize)> {
    let (before, leaf) = name.rsplit_once('.')?;
    let module = s.tree.find_below(at, before.strip_suffix(".routed_experts").unwrap_or(before))?;
    if s.tree.modules[module].kind != NodeKind::Experts {
        return find(s, at, name);
    }
    let slot = s.tree.modules[module].slots.iter().position(|x| x.name == leaf)?;
    Some((module, slot))
}

/// Sliced to the intermediate size, turned, copied: longer tensors are cut, and single rows are repeated.
fn experts(s: &Stream, module: usize, slot: usize, part: &str, t: &Stored) -> Result<Placed, Raised> {
    let want = &s.tree.modules[module].slots[slot].shape;
    let Some(shape) = t.shape else { return Ok(Placed::Whole) };
    let (dim, matrix) = match part {
        ".w13_weight" => (2, true),
        ".w2_weight" => (1, true),
        ".w13_bias" => (1, false),
        _ => {
            place::copy(want, shape)?;
            return Ok(Placed::Whole);
        }
    };
    if shape.len() <= dim {
        return Err(Raised {
            error_type: "IndexError".into(),
            text: format!("too many indices for tensor of dimension {}", shape.len()),
        });
    }
    let take = match (part, want.as_slice()) {
        (".w13_weight", [_, rows, _]) => *rows,
        (".w2_weight", [_, _, columns]) => *columns,
        (".w13_bias", [_, rows]) => *rows,
        _ => shape[dim],
    };
    let had = shape[dim];
    let mut left = shape.to_vec();
    left[dim] = had.min(take);
    if matrix {
        if left.len() != 3 {
            return Err(Raised {
                error_type: "RuntimeError".into(),
                text: format!(
                    "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = 3",
                    left.len()
                ),
            });
        }
        left.swap(1, 2);
    }
    place::copy(want, &left)?;
    Ok(if had > take { Placed::Cut(dim, take, had) } else { Placed::Whole })
}

/// `GptOssRoutedExperts.weight_loader`: one expert at a time, gate and up in one tensor; smaller ones fill a corner.
fn streamed(s: &mut Stream, module: usize, slot: usize, expert: u64, t: &Stored) {
    let m = &s.tree.modules[module];
    let sl = &m.slots[slot];
    let (name, want) = (sl.name.clone(), sl.shape.get(1..).unwrap_or_default().to_vec());
    if expert >= m.experts {
        let text = format!("index {expert} is out of bounds for dimension 0 with size {}", m.experts);
        let raised = Raised { error_type: "IndexError".into(), text };
        return s.finish(module, slot, Err(raised), t, false);
    }
    let w13 = name.starts_with("w13");
    let packed = matches!(m.quant, Quant::Scheme(_));
    let result = match t.shape {
        None => Ok(Placed::Whole),
        Some(shape) => (|| {
            let mut shape = shape.to_vec();
            if packed && matches!(name.rsplit('_').next(), Some("weight" | "packed")) && shape.len() > 2 {
                // `[rows, blocks, 16]` as rows.
                shape = vec![shape[0], shape[1..].iter().fold(1, |a: u64, b| a.saturating_mul(*b))];
            }
            let (narrowed, turned) = match (name.ends_with("_bias"), packed) {
                (true, _) => (w13.then_some((0, 0)), false),
                (false, true) => (Some(if w13 { (0, 0) } else { (1, 1) }), false),
                (false, false) => (Some(if w13 { (1, 0) } else { (0, 1) }), true),
            };
            let mut placed = Placed::Whole;
            if let Some((dim, of)) = narrowed {
                let size = want.get(of).copied().unwrap_or(0);
                let take = size.min(shape.get(dim).copied().unwrap_or(0));
                let (left, how) = place::narrow(&shape, dim, 0, take)?;
                (shape, placed) = (left, how);
            }
            if turned {
                shape.reverse();
            }
            let corner: Vec<u64> = want.iter().zip(&shape).map(|(w, d)| *w.min(d)).collect();
            place::copy(&corner, &shape)?;
            let short = want.iter().zip(&corner).position(|(w, d)| d < w);
            Ok(short.map_or(placed, |dim| Placed::Short(dim, corner[dim], want[dim])))
        })(),
    };
    if result.is_ok() {
        let e = usize::try_from(expert).unwrap_or(usize::MAX);
        let sl = &mut s.tree.modules[module].slots[slot];
        if w13 {
            sl.mark(e.saturating_mul(2));
            sl.mark(e.saturating_mul(2) + 1);
        } else {
            sl.mark(e);
        }
    }
    s.finish(module, slot, result, t, false);
}
