//! Putting a stored tensor into a parameter: vLLM's weight loaders at tensor-parallel size 1
//! (vllm/model_executor/layers/linear.py, parameter.py, layers/vocab_parallel_embedding.py; spec E.4, C.8).

use super::mapper::Shard;
use super::method::{Element, Load};
use super::trace::Raised;
use super::tree::{Module, Slot};
use crate::checkpoint::Dtype;
use crate::facts::NodeKind;

/// What placing a tensor did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// All of it is there.
    Whole,
    /// Only a part was taken: dimension, elements taken, elements stored.
    Cut(usize, u64, u64),
    /// It fills only a part of its place: dimension, elements stored, elements wanted.
    Short(usize, u64, u64),
}

/// A bare `AssertionError`.
pub fn assertion(text: &str) -> Raised {
    Raised { error_type: "AssertionError".into(), text: text.into() }
}

fn runtime(text: String) -> Raised {
    Raised { error_type: "RuntimeError".into(), text }
}

/// `torch.Size([1, 2])`.
pub fn size(shape: &[u64]) -> String {
    let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("torch.Size([{}])", dims.join(", "))
}

/// `Tensor.narrow(dim, 0, length)`: what is left, and whether it was cut.
pub(super) fn narrow(shape: &[u64], dim: usize, start: u64, length: u64) -> Result<(Vec<u64>, Placed), Raised> {
    if shape.is_empty() {
        return Err(runtime("narrow() cannot be applied to a 0-dim tensor.".into()));
    }
    let Some(have) = shape.get(dim).copied() else {
        let n = shape.len();
        return Err(Raised {
            error_type: "IndexError".into(),
            text: format!("Dimension out of range (expected to be in range of [-{n}, {}], but got {dim})", n - 1),
        });
    };
    if start.saturating_add(length) > have {
        return Err(runtime(format!("start ({start}) + length ({length}) exceeds dimension size ({have}).")));
    }
    let mut left = shape.to_vec();
    left[dim] = length;
    Ok((left, if length < have && start == 0 { Placed::Cut(dim, length, have) } else { Placed::Whole }))
}

fn scalar_fits(slot: &[u64], shape: &[u64]) -> bool {
    slot == [1] && shape.is_empty()
}

fn exact(slot: &[u64], shape: &[u64], placed: Placed) -> Result<Placed, Raised> {
    if slot == shape || scalar_fits(slot, shape) { Ok(placed) } else { Err(assertion("")) }
}

/// `default_weight_loader`.
pub fn default(slot: &[u64], shape: &[u64]) -> Result<Placed, Raised> {
    let one = |s: &[u64]| s.iter().all(|d| *d == 1);
    if slot == shape || one(slot) && one(shape) {
        return Ok(Placed::Whole);
    }
    Err(assertion(&format!("Attempted to load weight ({}) into parameter ({})", size(shape), size(slot))))
}

/// `KVCacheScaleParameter.weight_loader`.
pub fn scalar(shape: &[u64]) -> Result<Placed, Raised> {
    if shape.iter().all(|d| *d == 1) {
        return Ok(Placed::Whole);
    }
    let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
    let tuple = if dims.len() == 1 { format!("({},)", dims[0]) } else { format!("({})", dims.join(", ")) };
    Err(Raised {
        error_type: "ValueError".into(),
        text: format!("KV-cache scale expects a scalar weight, got shape {tuple}"),
    })
}

/// The dimension of output features.
fn output_dim(load: Load) -> usize {
    usize::from(matches!(load, Load::Turned { .. } | Load::TurnedPadded))
}

/// Into a linear that is not fused.
pub fn linear(kind: NodeKind, slot: &Slot, shape: &[u64]) -> Result<Placed, Raised> {
    if slot.load == Load::Numbered {
        return Err(Raised::new("TypeError", "list indices must be integers or slices, not NoneType"));
    }
    let one = [1u64];
    let padded = padded(slot, shape, slot.shape.get(1).copied().unwrap_or(0))?;
    let shape = padded.as_deref().unwrap_or(if shape.is_empty() { &one[..] } else { shape });
    let column = column(slot.load, shape);
    let shape = column.as_deref().unwrap_or(shape);
    match kind {
        NodeKind::Replicated | NodeKind::Gate => {
            if slot.shape == shape {
                return Ok(Placed::Whole);
            }
            Err(assertion(&format!(
                "Tried to load weights of size {}to a parameter of size {}",
                size(shape),
                size(&slot.shape)
            )))
        }
        NodeKind::Row => match slot.load {
            Load::Both
            | Load::PackedInput
            | Load::Block { .. }
            | Load::PackedOutput { both: true, .. }
            | Load::Turned { .. }
            | Load::TurnedPadded => {
                // ModelOpt stores scales of blocks as `[rows, 1, columns, 1]`.
                let dim = if slot.shape.len() == 4 { 2 } else { 1 - output_dim(slot.load) };
                let (left, placed) = narrow(shape, dim, 0, slot.shape.get(dim).copied().unwrap_or(0))?;
                exact(&slot.shape, &left, placed)
            }
            _ => exact(&slot.shape, shape, Placed::Whole),
        },
        _ => match slot.load {
            Load::Whole | Load::PerTensor => exact(&slot.shape, shape, Placed::Whole),
            load => {
                let dim = output_dim(load);
                let (left, placed) = narrow(shape, dim, 0, slot.shape.get(dim).copied().unwrap_or(0))?;
                exact(&slot.shape, &left, placed)
            }
        },
    }
}

/// A vector of scales as the column that its parameter is (`_scale_weight_loader` of `QuarkW8A8Int8`).
fn column(load: Load, shape: &[u64]) -> Option<Vec<u64>> {
    (load == Load::Column && shape.len() == 1).then(|| vec![shape[0], 1])
}

/// Columns of scales that are missing are zeros (`weight_scale_loader` of `QuarkW4A16Int4`), up to the width of the whole
/// parameter, of which a part takes the first ones.
fn padded(slot: &Slot, shape: &[u64], part: u64) -> Result<Option<Vec<u64>>, Raised> {
    let (Load::TurnedPadded, [rows, columns]) = (slot.load, &slot.shape[..]) else { return Ok(None) };
    let Some(have) = shape.get(1) else { return Err(Raised::new("IndexError", "tuple index out of range")) };
    if have >= columns {
        return Ok(None);
    }
    assign(&[*rows, *have], shape)?;
    Ok(Some(vec![*rows, part]))
}

/// Rows of a part in a parameter, after packing and blocks.
fn rows(load: Load, size: u64) -> u64 {
    match load {
        Load::PackedOutput { num, den, .. } => size.saturating_mul(u64::from(den)) / u64::from(num.max(1)),
        Load::Block { rows } => size.div_ceil(rows.max(1)),
        Load::Turned { per } => size / per.max(1),
        _ => size,
    }
}

/// Into a fused linear; marks the parts it wrote.
pub fn fused(module: &Module, slot: &mut Slot, shape: &[u64], shards: Option<&Shard>) -> Result<Placed, Raised> {
    let column = column(slot.load, shape);
    let shape = column.as_deref().unwrap_or(shape);
    let mut whole = None;
    let all: Vec<u16>;
    let parts: &[u16] = match shards {
        Some(Shard::Part(p)) => {
            let padded = padded(slot, shape, module.parts.get(usize::from(*p)).map_or(0, |x| x.1))?;
            let placed = part(module, slot, padded.as_deref().unwrap_or(shape), usize::from(*p))?;
            if slot.parts == 1 {
                slot.mark_all()
            } else {
                slot.mark(usize::from(*p))
            }
            return Ok(placed);
        }
        Some(Shard::Span(s)) => s,
        None => {
            whole = padded(slot, shape, slot.shape.get(1).copied().unwrap_or(0))?;
            all = (0..u16::try_from(module.parts.len()).unwrap_or(0)).collect();
            &all
        }
    };
    let shape = whole.as_deref().unwrap_or(shape);
    match slot.load {
        Load::PerTensor => {
            for p in parts {
                part(module, slot, shape, usize::from(*p))?;
                slot.mark(usize::from(*p));
            }
            Ok(Placed::Whole)
        }
        Load::Whole => {
            let r = exact(&slot.shape, shape, Placed::Whole)?;
            slot.mark_all();
            Ok(r)
        }
        load => {
            let (dim, mut at) = (output_dim(load), 0);
            for p in parts {
                let n = rows(slot.load, module.parts.get(usize::from(*p)).map_or(0, |x| x.1));
                let (left, _) = narrow(shape, dim, at, n)?;
                part(module, slot, &left, usize::from(*p))?;
                slot.mark(usize::from(*p));
                at = at.saturating_add(n);
            }
            let have = shape.get(dim).copied().unwrap_or(0);
            Ok(if at < have { Placed::Cut(dim, at, have) } else { Placed::Whole })
        }
    }
}

fn part(module: &Module, slot: &Slot, shape: &[u64], part: usize) -> Result<Placed, Raised> {
    let Some((_, rows_of)) = module.parts.get(part) else { return Err(assertion("")) };
    match slot.load {
        Load::Whole => exact(&slot.shape, shape, Placed::Whole),
        Load::PerTensor => match shape {
            [] | [1] => Ok(Placed::Whole),
            _ => Err(assertion("")),
        },
        load => {
            let dim = output_dim(load);
            if let Load::Block { rows: block } = load {
                // The place in the parameter: a part that begins within a block takes the next one.
                let before = module.parts.iter().take(part).fold(0u64, |a, p| a.saturating_add(p.1));
                narrow(&slot.shape, 0, before.div_ceil(block.max(1)), rows(load, *rows_of))?;
            }
            let (left, placed) = narrow(shape, dim, 0, rows(load, *rows_of))?;
            let mut want = slot.shape.clone();
            if let Some(w) = want.get_mut(dim) {
                *w = rows(load, *rows_of);
            }
            exact(&want, &left, placed)
        }
    }
}

/// `param[...].copy_(tensor)`: broadcasting, with torch's words when it cannot.
pub(super) fn copy(into: &[u64], from: &[u64]) -> Result<(), Raised> {
    let dims = |back: usize| (into.len().checked_sub(back).map_or(1, |i| into[i]), from[from.len() - back]);
    for back in 1..=from.len() {
        let (have, d) = dims(back);
        if d != have && d != 1 && have != 1 {
            return Err(runtime(format!(
                "The size of tensor a ({have}) must match the size of tensor b ({d}) at non-singleton dimension {}",
                into.len().max(from.len()) - back
            )));
        }
    }
    if from.len() > into.len() || (1..=from.len()).any(|back| matches!(dims(back), (1, d) if d > 1)) {
        let mut both: Vec<u64> = into.iter().rev().copied().collect();
        both.resize(both.len().max(from.len()), 1);
        for (b, d) in both.iter_mut().zip(from.iter().rev()) {
            *b = (*b).max(*d);
        }
        both.reverse();
        return Err(runtime(format!("output with shape {into:?} doesn't match the broadcast shape {both:?}")));
    }
    Ok(())
}

/// `torch.cat([a, b], dim=0)`.
pub(super) fn concatenated(a: &[u64], b: &[u64]) -> Result<Vec<u64>, Raised> {
    let rows = match (a, b) {
        ([], _) | (_, []) => {
            let at = usize::from(!a.is_empty());
            return Err(runtime(format!("zero-dimensional tensor (at position {at}) cannot be concatenated")));
        }
        ([x, ..], [y, ..]) => x.saturating_add(*y),
    };
    if a.len() != b.len() {
        let text = format!("Tensors must have same number of dimensions: got {} and {}", a.len(), b.len());
        return Err(runtime(text));
    }
    if let Some((x, y)) = a.iter().zip(b).skip(1).find(|(x, y)| x != y) {
        return Err(runtime(format!(
            "Sizes of tensors must match except in dimension 0. Expected size {x} but got size {y} for tensor number 1 in the list."
        )));
    }
    Ok([&[rows], &a[1..]].concat())
}

/// `param[...] = tensor`: as `copy`, in other words.
fn assign(into: &[u64], from: &[u64]) -> Result<(), Raised> {
    let Some(more) = into.len().checked_sub(from.len()) else { return copy(into, from) };
    let Some(dim) = (0..from.len()).rev().find(|dim| from[*dim] != 1 && from[*dim] != into[more + dim]) else {
        return Ok(());
    };
    Err(runtime(format!(
        "The expanded size of the tensor ({}) must match the existing size ({}) at non-singleton dimension {}.  Target sizes: \
         {into:?}.  Tensor sizes: {from:?}",
        into[more + dim],
        from[dim],
        more + dim
    )))
}

/// Into an embedding or a head (`VocabParallelEmbedding.weight_loader`).
pub fn vocabulary(module: &Module, slot: &Slot, shape: &[u64]) -> Result<Placed, Raised> {
    match slot.load {
        Load::Whole | Load::PerTensor => exact(&slot.shape, shape, Placed::Whole),
        load => {
            // No scale of blocks knows that a vocabulary has fewer of them than rows.
            let want = if slot.shape.len() == 4 { module.rows } else { rows(load, module.rows) };
            let dim = output_dim(load);
            if shape.get(dim) != Some(&want) {
                return Err(if shape.is_empty() {
                    Raised { error_type: "IndexError".into(), text: "tuple index out of range".into() }
                } else {
                    assertion("")
                });
            }
            // `param[: loaded_weight.shape[0]]`, whichever dimension holds the vocabulary.
            let mut into = slot.shape.clone();
            if let (Some(d), Some(first)) = (into.first_mut(), shape.first()) {
                *d = (*d).min(*first);
            }
            copy(&into, shape)?;
            Ok(Placed::Whole)
        }
    }
}

/// One expert's matrix into `[E, N, K]`: the half of it (`w1`, `w3`) or all (`w2`). A smaller tensor fills a corner
/// (`_narrow_expert_data_for_padding` takes it for an unpadded one), a larger one raises.
pub fn expert(slot: &Slot, shape: &[u64], half: bool) -> Result<Placed, Raised> {
    if slot.load == Load::PerTensor {
        // `_to_scalar`
        let n = shape.iter().fold(1u64, |a, b| a.saturating_mul(*b));
        return match n {
            1 => Ok(Placed::Whole),
            n => Err(runtime(format!("shape '[]' is invalid for input of size {n}"))),
        };
    }
    let turned = match (slot.load, shape) {
        (Load::Repacked { rows, halved, repeat }, [k, n]) => {
            Some([n.saturating_mul(rows), k / if halved { 2 } else { 1 } * repeat])
        }
        _ => None,
    };
    let shape = turned.as_ref().map_or(shape, |s| &s[..]);
    let one = slot.shape.get(1..).unwrap_or_default();
    let halved = half && (one.len() > 1 || one == [2] || slot.load == Load::Output);
    let output = if one.len() > 1 { output_dim(slot.load) } else { 0 };
    let wanted = one.iter().enumerate().map(|(dim, d)| if halved && dim == output { d / 2 } else { *d });
    // Nearly always, and tens of thousands of times.
    if wanted.clone().eq(shape.iter().copied()) {
        return Ok(Placed::Whole);
    }
    let mut want: Vec<u64> = wanted.collect();
    if want.iter().all(|d| *d == 1) && shape.iter().all(|d| *d == 1) {
        return Ok(Placed::Whole);
    }
    // Zero points, which the loader of the method puts there by itself.
    if matches!(slot.load, Load::Repacked { rows: 4, .. }) {
        return assign(&want, shape).map(|()| Placed::Whole);
    }
    let mut short = None;
    if want.len() == shape.len() {
        for (dim, (w, have)) in want.iter_mut().zip(shape).enumerate() {
            if have < w {
                short.get_or_insert(Placed::Short(dim, *have, *w));
                *w = *have;
            }
        }
    }
    copy(&want, shape)?;
    Ok(short.unwrap_or(Placed::Whole))
}

/// Whether a stored dtype keeps its meaning in a parameter's element type when vLLM copies it over.
pub fn keeps_meaning(stored: Dtype, element: Element) -> bool {
    use Dtype::{BF16, BOOL, C64, F8_E4M3, F8_E8M0, F16, F32, F64, I8, I32, I64, U8};
    match element {
        Element::Model => matches!(stored, BF16 | F16 | F32 | F64),
        // Powers of two stay what they are.
        Element::F32 => matches!(stored, BF16 | F16 | F32 | F64 | F8_E8M0),
        Element::F8E4M3 => matches!(stored, F8_E4M3),
        Element::I8 => matches!(stored, I8 | U8),
        Element::U8 => matches!(stored, U8 | I8),
        Element::E8M0 => matches!(stored, U8 | I8 | F8_E8M0),
        Element::I32 => matches!(stored, I32) || !matches!(stored, BF16 | F16 | F32 | F64 | C64 | BOOL | I64),
        Element::I64 => matches!(stored, I64 | I32),
    }
}
