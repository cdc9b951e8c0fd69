//! `GptOssModel._load_weights_quark` (vllm/model_executor/models/gpt_oss.py): experts one by one, or all of a layer at once.

use super::super::super::method::Load;
use super::super::super::place::{self, Placed};
use super::super::super::stream::{Stored, Stream};
use super::super::super::trace::Raised;
use super::super::super::tree::{Module, Quant};
use super::super::Keyed;
use super::{bank, mxfp4};

/// Where a tensor goes.
struct Target {
    module: usize,
    slot: usize,
    /// None for all of a layer.
    expert: Option<u64>,
}

/// What is left of a tensor after a slice, and what the slice did.
type Sliced = Result<(Vec<u64>, Placed), Raised>;

/// One tensor.
pub(super) fn load(s: &mut Stream, at: usize, name: &str, tables: &Keyed, t: &Stored) {
    let Some((fused, layer, expert)) = name.contains("experts").then(|| numbers(name)).flatten() else {
        if name.contains("experts") {
            let text = format!(
                "Layer {name} contains more than 2 numeric indices. This is an unexpected condition. Please open an issue if \
                 encountered."
            );
            return s.homeless_key(at, name, Raised::new("NameError", text), t);
        }
        return super::rest(s, at, name, tables, t);
    };
    let method = |s: &Stream, layer: &str| {
        let module = s.tree.find_below(at, &format!("layers.{layer}.mlp.experts"))?;
        Some(&s.tree.modules[module]).and_then(dtype)
    };
    if s.tree.find_below(at, &format!("layers.{layer}")).is_none() {
        return s.homeless_key(at, name, index_error(format!("index {layer} is out of range")), t);
    }
    let (here, first) = (method(s, &layer), method(s, "0"));
    let part = fused.rsplit('.').next().unwrap_or_default().to_owned();
    let input = name.contains("input_scale") && name.contains("mlp.experts") && expert.is_some();
    let known = match part.as_str() {
        "w13_bias" | "w2_bias" => true,
        "w13_weight" | "w2_weight" | "w13_weight_scale" | "w2_weight_scale" => here.is_some(),
        "w13_input_scale" => here == Some(Dtype::Fp8),
        _ => false,
    };
    if !input && !known {
        return super::rest(s, at, name, tables, t);
    }
    let Some((module, slot)) = bank(s, at, &fused) else {
        let fused = fused.replace(".mlp.experts.", ".mlp.experts.routed_experts.");
        let raised = Raised::new("KeyError", format!("'{fused}'"));
        return s.homeless_key(at, name, raised, t);
    };
    let to = Target { module, slot, expert };
    let m = &s.tree.modules[module];
    let end = if first == Some(Dtype::Mxfp4) { m.rows / mxfp4::BLOCK * mxfp4::BLOCK } else { m.rows };
    let result = match t.shape {
        None => Ok(Placed::Whole),
        Some(shape) if input => one(m, &to, shape),
        Some(shape) if part.ends_with("bias") => bias(m, &to, &part, shape, end),
        Some(shape) if here == Some(Dtype::Mxfp4) => blocks(m, &to, &part, shape, end),
        Some(shape) => floats(m, &to, &part, shape, end),
    };
    finish(s, &to, part.starts_with("w13"), result, t);
}

/// `weight_dtype` of a method that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dtype {
    Mxfp4,
    Fp8,
}

fn dtype(m: &Module) -> Option<Dtype> {
    match &m.quant {
        Quant::Scheme(scheme) if scheme.starts_with("MXFP4") => Some(Dtype::Mxfp4),
        Quant::Scheme(scheme) if scheme.starts_with("FP8") => Some(Dtype::Fp8),
        _ => None,
    }
}

/// The name without the number of an expert, the layer, and the expert; none for other counts of numbers.
fn numbers(name: &str) -> Option<(String, String, Option<u64>)> {
    let mut parts: Vec<&str> = name.split('.').collect();
    let digits = |p: &&str| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit());
    let ids: Vec<&str> = parts.iter().copied().filter(|p| digits(p)).collect();
    match ids[..] {
        [layer] => Some((name.to_owned(), layer.to_owned(), None)),
        [layer, expert] => {
            let number = expert.parse().ok()?;
            parts.remove(parts.iter().rposition(|p| *p == expert)?);
            Some((parts.join("."), layer.to_owned(), Some(number)))
        }
        _ => None,
    }
}

fn index_error(text: String) -> Raised {
    Raised::new("IndexError", text)
}

/// `tensor[:, :take]` and its like.
fn slice(shape: &[u64], dim: usize, take: u64) -> Sliced {
    let mut left = shape.to_vec();
    let Some(size) = left.get_mut(dim) else {
        return Err(index_error(format!("too many indices for tensor of dimension {}", shape.len())));
    };
    let had = *size;
    *size = had.min(take);
    Ok((left, if had > take { Placed::Cut(dim, take, had) } else { Placed::Whole }))
}

/// `tensor[..., :take]`.
fn last(shape: &[u64], take: u64) -> Sliced {
    slice(shape, shape.len().saturating_sub(1), take)
}

/// What the tensor is copied into: the parameter, or one expert of it.
fn into(m: &Module, to: &Target) -> Result<Vec<u64>, Raised> {
    let want = &m.slots[to.slot].shape;
    match to.expert {
        None => Ok(want.clone()),
        Some(expert) if expert >= m.experts => {
            Err(index_error(format!("index {expert} is out of bounds for dimension 0 with size {}", m.experts)))
        }
        Some(_) => Ok(want.get(1..).unwrap_or_default().to_vec()),
    }
}

/// Copies into the corner of an expert that has the size of the tensor; experts all at once have to fit.
fn corner(m: &Module, to: &Target, (left, placed): (Vec<u64>, Placed), dims: usize) -> Result<Placed, Raised> {
    let mut want = into(m, to)?;
    if left.len() < dims {
        return Err(index_error("tuple index out of range".into()));
    }
    let mut short = Placed::Whole;
    if to.expert.is_none() {
        // `param.data[None]` has one dimension more.
        want.insert(0, 1);
    } else {
        for (dim, (size, have)) in want.iter_mut().zip(&left).enumerate().take(dims) {
            if have < size {
                if short == Placed::Whole {
                    short = Placed::Short(dim, *have, *size);
                }
                *size = *have;
            }
        }
    }
    place::copy(&want, &left)?;
    Ok(if placed == Placed::Whole { short } else { placed })
}

fn one(m: &Module, to: &Target, shape: &[u64]) -> Result<Placed, Raised> {
    if shape.iter().any(|d| *d != 1) {
        return Err(place::assertion(""));
    }
    let want = into(m, to)?;
    place::copy(&want, shape).map(|()| Placed::Whole)
}

fn bias(m: &Module, to: &Target, part: &str, shape: &[u64], end: u64) -> Result<Placed, Raised> {
    let sliced = match part {
        "w13_bias" => slice(shape, usize::from(to.expert.is_none()), end.saturating_mul(2))?,
        _ => (shape.to_vec(), Placed::Whole),
    };
    corner(m, to, sliced, 1)
}

fn blocks(m: &Module, to: &Target, part: &str, shape: &[u64], end: u64) -> Result<Placed, Raised> {
    let (experts, w13, scale) = (m.experts, part.starts_with("w13"), part.ends_with("scale"));
    let mut shape = shape.to_vec();
    if !scale && to.expert.is_none() {
        let got = place::size(&shape);
        let error = |text: String| Err(Raised::new("ValueError", text));
        if shape.len() < 3 {
            return error(format!("Expected {part} to have at least 3 dimensions, got shape {got}"));
        }
        if shape[0] != experts {
            return error(format!("Expected {part} first dimension to be {experts}, got {}", shape[0]));
        }
        shape = match w13 {
            true => mxfp4::view(&shape, [Some(experts), Some(m.rows.saturating_mul(2)), None])?,
            false => mxfp4::view(&shape, [Some(experts), None, Some(m.rows / 2)])?,
        };
    }
    let sliced = match (w13, scale) {
        (true, _) => slice(&shape, usize::from(to.expert.is_none()), end.saturating_mul(2))?,
        (false, true) => last(&shape, end / mxfp4::BLOCK)?,
        (false, false) => last(&shape, end / 2)?,
    };
    corner(m, to, sliced, 2)
}

fn floats(m: &Module, to: &Target, part: &str, shape: &[u64], end: u64) -> Result<Placed, Raised> {
    let whole = (shape.to_vec(), Placed::Whole);
    let count = shape.iter().fold(1u64, |a, b| a.saturating_mul(*b));
    let (left, placed) = match part {
        "w13_weight" => {
            let dim = usize::from(to.expert.is_none());
            if shape.len() < dim + 2 {
                return Err(index_error(format!("too many indices for tensor of dimension {}", shape.len())));
            }
            slice(shape, dim, end.saturating_mul(2))?
        }
        "w2_weight" => last(shape, end)?,
        "w13_weight_scale" if shape.len() == 1 && count > 1 => slice(shape, 0, end.saturating_mul(2))?,
        _ => whole,
    };
    let mut want = into(m, to)?;
    if part == "w13_weight_scale" && m.slots[to.slot].load == Load::PerTensor {
        // Gate and up are one for this model, and have one scale.
        want.pop();
        want.push(1);
    }
    place::copy(&want, &left).map(|()| placed)
}

fn finish(s: &mut Stream, to: &Target, w13: bool, result: Result<Placed, Raised>, t: &Stored) {
    if let (Ok(_), Some(expert)) = (&result, to.expert) {
        let expert = usize::try_from(expert).unwrap_or(usize::MAX);
        let slot = &mut s.tree.modules[to.module].slots[to.slot];
        let parts = if w13 { 2 } else { 1 };
        (0..parts).for_each(|part| slot.mark(expert.saturating_mul(parts).saturating_add(part)));
    }
    s.finish(to.module, to.slot, result, t, to.expert.is_none());
}
