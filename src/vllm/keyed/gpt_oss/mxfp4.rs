//! `GptOssModel._load_weights_mxfp4` (vllm/model_executor/models/gpt_oss.py), and the part of `RoutedExperts.weight_loader`
//! that takes the experts of a layer at once: whatever is smaller than the parameter fills a corner of it.

use super::super::super::place::{self, Placed};
use super::super::super::stream::{Stored, Stream};
use super::super::super::trace::Raised;
use super::super::missing;
use super::bank;

/// Values of a block.
pub(super) const BLOCK: u64 = 32;

/// The tensors of all experts of a layer, in the order in which the loop asks for them.
const PARTS: [&str; 6] =
    [".w13_weight_scale", ".w2_weight_scale", ".w13_weight", ".w2_weight", ".w13_bias", ".w2_bias"];

/// Whether the name is one of an expert's parameters, which then is loaded.
pub(super) fn load(s: &mut Stream, at: usize, name: &str, t: &Stored) -> bool {
    let Some(part) = PARTS.into_iter().find(|p| name.contains(p)) else { return false };
    let Some((module, slot)) = bank(s, at, name) else {
        missing(s, at, name, t);
        return true;
    };
    let result = place(s, module, slot, part, t);
    s.finish(module, slot, result, t, true);
    true
}

fn index_error(text: String) -> Raised {
    Raised { error_type: "IndexError".into(), text }
}

fn place(s: &Stream, module: usize, slot: usize, part: &str, t: &Stored) -> Result<Placed, Raised> {
    let Some(shape) = t.shape else { return Ok(Placed::Whole) };
    let m = &s.tree.modules[module];
    let intermediate = m.rows;
    let end = intermediate / BLOCK * BLOCK;
    let viewed = match part {
        ".w13_weight" => view(shape, [Some(m.experts), Some(intermediate.saturating_mul(2)), None])?,
        ".w2_weight" => view(shape, [Some(m.experts), None, Some(intermediate / 2)])?,
        _ => shape.to_vec(),
    };
    let (dim, take) = match part {
        ".w13_weight_scale" | ".w13_weight" | ".w13_bias" => (1, end.saturating_mul(2)),
        ".w2_weight_scale" => (viewed.len().saturating_sub(1), end / BLOCK),
        ".w2_weight" => (2, end / 2),
        _ => (usize::MAX, 0),
    };
    let mut left = viewed.clone();
    let mut placed = Placed::Whole;
    if dim != usize::MAX {
        let Some(size) = left.get_mut(dim) else {
            return Err(index_error(format!("too many indices for tensor of dimension {}", viewed.len())));
        };
        if *size > take {
            placed = Placed::Cut(dim, take, *size);
        }
        *size = take.min(*size);
    }
    corner(&m.slots[slot].shape, &left, if part.ends_with("_bias") { 1 } else { 2 })
        .map(|short| if placed == Placed::Whole { short } else { placed })
}

/// `param.data[:, :dim1, :dim2].copy_(loaded)`, with as many dimensions as the parameter has besides the first.
fn corner(want: &[u64], left: &[u64], dims: usize) -> Result<Placed, Raised> {
    let mut into = want.to_vec();
    let mut short = Placed::Whole;
    for (dim, size) in into.iter_mut().enumerate().skip(1).take(dims) {
        let Some(have) = left.get(dim) else { return Err(index_error("tuple index out of range".into())) };
        // vLLM's parameter is larger than the model where its kernels want that; the rest stays zero.
        if have < size {
            if short == Placed::Whole {
                short = Placed::Short(dim, *have, *size);
            }
            *size = *have;
        }
    }
    place::copy(&into, left)?;
    Ok(short)
}

/// `Tensor.view`, with one dimension to be found.
pub(super) fn view(shape: &[u64], want: [Option<u64>; 3]) -> Result<Vec<u64>, Raised> {
    let count = shape.iter().fold(1u64, |a, b| a.saturating_mul(*b));
    let known = want.iter().flatten().fold(1u64, |a, b| a.saturating_mul(*b));
    if known == 0 || !count.is_multiple_of(known) {
        let dims: Vec<String> = want.iter().map(|d| d.map_or_else(|| "-1".to_owned(), |d| d.to_string())).collect();
        let text = format!("shape '[{}]' is invalid for input of size {count}", dims.join(", "));
        return Err(Raised { error_type: "RuntimeError".into(), text });
    }
    Ok(want.iter().map(|d| d.unwrap_or(count / known)).collect())
}
