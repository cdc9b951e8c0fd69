//! In what precision a weight is stored: from dtypes and shapes, and where these leave bits open from what the other
//! side or the quantization config says. What stays open is told as the dtype that the values are packed into.

use super::stored::{Hints, Packing, Role, Weight};
use crate::checkpoint::Dtype;
use std::fmt;

/// A precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Precision {
    /// A tensor of this type, and nothing else.
    Plain(Dtype),
    /// Quantized.
    Quantized {
        /// The values.
        number: Number,
        /// How many share a scale.
        grain: Grain,
        /// There are zero points.
        zeros: bool,
    },
    /// Only the name is known, and it is that of a plain tensor.
    Unknown,
}

/// Quantized values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Number {
    /// Integers of so many bits.
    Int(u64),
    /// A type of its own, such as an 8-bit float.
    Type(Dtype),
    /// 4-bit floats, a 8-bit float a group, and a global scale.
    Nvfp4,
    /// 4-bit floats, and an exponent a group.
    Mxfp4,
    /// The 4 bits of bitsandbytes.
    Bnb4,
    /// Packed into this type, with an unknown number of bits.
    Packed(Dtype),
    /// Packed; only the name is known.
    Quantized,
}

/// What shares a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Grain {
    /// All values.
    Tensor,
    /// An output channel.
    Channel,
    /// So many values of a row.
    Group(u64),
    /// So many rows and columns.
    Block(u64, u64),
    /// No scale is stored.
    Missing,
    /// Cannot be told.
    Open,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, grain, zeros) = match self {
            Precision::Plain(dtype) => return f.write_str(dtype.tag()),
            Precision::Unknown => return f.write_str("unknown"),
            Precision::Quantized { number, grain, zeros } => (number, grain, zeros),
        };
        match number {
            Number::Int(bits) => write!(f, "int{bits}")?,
            Number::Type(Dtype::F8_E4M3) => f.write_str("fp8")?,
            Number::Type(dtype) => f.write_str(dtype.tag())?,
            Number::Nvfp4 => f.write_str("nvfp4")?,
            Number::Mxfp4 => f.write_str("mxfp4")?,
            Number::Bnb4 => f.write_str("bitsandbytes 4-bit")?,
            Number::Packed(dtype) => write!(f, "packed {dtype}")?,
            Number::Quantized => f.write_str("quantized")?,
        }
        match grain {
            Grain::Tensor => f.write_str(" per tensor")?,
            Grain::Channel => f.write_str(" per channel")?,
            Grain::Group(n) => write!(f, " group {n}")?,
            Grain::Block(rows, columns) => write!(f, " block {rows}x{columns}")?,
            Grain::Missing => f.write_str(" without scales")?,
            Grain::Open => {}
        }
        if *zeros { f.write_str(" with zero points") } else { Ok(()) }
    }
}

/// A weight's precision, and its shape as a plain tensor where that can be told.
pub(super) fn of(w: &Weight, hints: Hints, source: Option<&[u64]>) -> (Precision, Option<Vec<u64>>) {
    let Some(carrier) = w.carrier else {
        let quantized = matches!(w.packing, Packing::Packed | Packing::Qweight | Packing::Blocks);
        let known = Precision::Quantized { number: Number::Quantized, grain: Grain::Open, zeros: false };
        return (if quantized { known } else { Precision::Unknown }, None);
    };
    let find = |role: Role| w.extras.iter().find(|e| e.role == role).and_then(|e| e.tensor);
    let has = |role: Role| w.extras.iter().any(|e| e.role == role);
    let shape: &[u64] = &carrier.shape;
    let scale = find(Role::Scale);
    let quantized = |number, grain, whole| (Precision::Quantized { number, grain, zeros: has(Role::Zeros) }, whole);
    match w.packing {
        Packing::Alone => (Precision::Plain(carrier.dtype), Some(shape.to_vec())),
        Packing::Own if has(Role::Bnb4) => quantized(Number::Bnb4, Grain::Open, None),
        Packing::Own if carrier.dtype == Dtype::U8 && (has(Role::Global) || has(Role::Scale)) => {
            let whole = widened(shape, 2);
            let number =
                if has(Role::Global) || !exponents(scale.map(|s| s.dtype)) { Number::Nvfp4 } else { Number::Mxfp4 };
            quantized(number, grain(whole.as_deref(), scale.map(|s| &*s.shape), hints), whole)
        }
        Packing::Own => {
            let whole = Some(shape.to_vec());
            let grain = match (scale, has(Role::Bnb8)) {
                (_, true) => Grain::Channel,
                (Some(s), _) => grain(Some(shape), Some(&s.shape), hints),
                // Only the name of the scale is known.
                (None, _) if has(Role::Scale) => Grain::Open,
                (None, _) => return (Precision::Plain(carrier.dtype), whole),
            };
            let number = if carrier.dtype == Dtype::I8 { Number::Int(8) } else { Number::Type(carrier.dtype) };
            quantized(number, grain, whole)
        }
        Packing::Blocks => {
            // [.., groups, 16 bytes of 32 values]
            let whole = match shape {
                [lead @ .., groups, bytes] => {
                    groups.checked_mul(*bytes).and_then(|n| n.checked_mul(2)).map(|n| [lead, &[n]].concat())
                }
                _ => None,
            };
            quantized(Number::Mxfp4, grain(whole.as_deref(), scale.map(|s| &*s.shape), hints), whole)
        }
        Packing::Packed if carrier.dtype == Dtype::U8 => {
            let whole = widened(shape, 2);
            let number = if exponents(scale.map(|s| s.dtype)) { Number::Mxfp4 } else { Number::Nvfp4 };
            quantized(number, grain(whole.as_deref(), scale.map(|s| &*s.shape), hints), whole)
        }
        Packing::Packed => {
            let words = shape.last().copied().unwrap_or(0);
            let from_source = source.and_then(|s| bits(words, carrier.dtype, s.last().copied()?, hints.bits));
            let Some(bits) = from_source.or(hints.bits).filter(|b| (1..=16).contains(b)) else {
                return quantized(Number::Packed(carrier.dtype), Grain::Open, None);
            };
            let values = words.checked_mul(carrier.dtype.bits() / bits);
            // A width that is no multiple leaves the last integer half empty.
            let padded = source.and_then(|s| s.last().copied()).filter(|_| from_source.is_some());
            let whole =
                padded.or(values).map(|n| [shape.get(..shape.len().saturating_sub(1)).unwrap_or(&[]), &[n]].concat());
            quantized(Number::Int(bits), grain(whole.as_deref(), scale.map(|s| &*s.shape), hints), whole)
        }
        Packing::Qweight => qweight(w, shape, hints),
    }
}

/// GPTQ packs along the input, AWQ along the output; both store `[input, output]`.
fn qweight(w: &Weight, shape: &[u64], hints: Hints) -> (Precision, Option<Vec<u64>>) {
    let shape_of = |role| w.extras.iter().find(|e| e.role == role).and_then(|e| e.tensor).map(|t| &*t.shape);
    let open = |number, grain| (Precision::Quantized { number, grain, zeros: false }, None);
    let dtype = w.carrier.map_or(Dtype::I32, |c| c.dtype);
    let (&[rows, columns], Some(&[groups, outputs])) = (shape, shape_of(Role::Scale)) else {
        let grain = if w.extras.iter().any(|e| e.role == Role::Scale) { Grain::Open } else { Grain::Missing };
        return open(Number::Packed(dtype), grain);
    };
    let along = |words: u64| words.checked_mul(32).filter(|_| outputs > 0).map(|n| n / outputs);
    let zeros = shape_of(Role::Qzeros).and_then(|z| along(*z.last()?));
    let (bits, inputs) = if columns == outputs {
        let bits = zeros.or(hints.bits).filter(|b| (1..=16).contains(b));
        (bits, bits.and_then(|b| rows.checked_mul(32).map(|n| n / b)))
    } else {
        (along(columns), Some(rows))
    };
    let Some((bits, inputs)) = bits.zip(inputs).filter(|(b, _)| (1..=16).contains(b)) else {
        return open(Number::Packed(dtype), Grain::Open);
    };
    let grain = match groups {
        0 => Grain::Open,
        1 => Grain::Channel,
        n => Grain::Group(inputs.div_ceil(n)),
    };
    (Precision::Quantized { number: Number::Int(bits), grain, zeros: false }, Some(vec![outputs, inputs]))
}

/// Scales that are exponents only.
fn exponents(dtype: Option<Dtype>) -> bool {
    matches!(dtype, Some(Dtype::U8 | Dtype::F8_E8M0))
}

/// The shape with a last dimension so many times as large.
fn widened(shape: &[u64], by: u64) -> Option<Vec<u64>> {
    let (last, lead) = shape.split_last()?;
    Some([lead, &[last.checked_mul(by)?]].concat())
}

/// How many bits a value has when `words` hold a row of `values`. Short rows leave a choice; of it what the config
/// says, else what is usual.
fn bits(words: u64, dtype: Dtype, values: u64, said: Option<u64>) -> Option<u64> {
    said.into_iter().chain([4, 8, 2, 3, 6, 5, 7, 1, 16]).filter(|b| (1..=16).contains(b)).find(|b| {
        let each = dtype.bits() / b;
        // 3 bits: ten a word, or 32 in three words.
        let dense = || values.checked_mul(*b).is_some_and(|n| n.div_ceil(dtype.bits()) == words);
        each > 0 && (values.div_ceil(each) == words || dense())
    })
}

/// What shares a scale, when a weight of this shape has scales of that.
fn grain(whole: Option<&[u64]>, scale: Option<&[u64]>, hints: Hints) -> Grain {
    let Some(scale) = scale else { return Grain::Missing };
    if scale.iter().all(|d| *d == 1) {
        return Grain::Tensor;
    }
    let Some(&[ref lead @ .., rows, columns]) = whole else { return Grain::Open };
    match *scale {
        [n] if lead.is_empty() && n == rows => Grain::Channel,
        // One for each of stacked experts.
        [n] if lead == [n] => Grain::Tensor,
        [ref before @ .., 1, 1] if before == lead => Grain::Tensor,
        [ref before @ .., r, 1] if before == lead && r == rows => Grain::Channel,
        [ref before @ .., r, c] if before == lead && r == rows && c > 0 => Grain::Group(columns.div_ceil(c)),
        [ref before @ .., r, c] if before == lead && r > 0 && c > 0 => {
            let known = hints.block.into_iter().chain([128, 64, 32, 16].map(|n| (n, n)));
            let mut fits = known.filter(|(h, w)| rows.div_ceil(*h) == r && columns.div_ceil(*w) == c);
            fits.next().map_or(Grain::Open, |(h, w)| Grain::Block(h, w))
        }
        _ => Grain::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grains() {
        let none = Hints::default();
        let g = |w: &[u64], s: &[u64]| grain(Some(w), Some(s), none);
        assert_eq!(g(&[64, 128], &[]), Grain::Tensor);
        assert_eq!(g(&[64, 128], &[1]), Grain::Tensor);
        assert_eq!(g(&[64, 128], &[64]), Grain::Channel);
        assert_eq!(g(&[64, 128], &[64, 1]), Grain::Channel);
        assert_eq!(g(&[64, 128], &[64, 4]), Grain::Group(32));
        assert_eq!(g(&[576, 7168], &[5, 56]), Grain::Block(128, 128));
        assert_eq!(g(&[8, 64, 128], &[8, 64, 4]), Grain::Group(32));
        assert_eq!(g(&[64, 128], &[7, 0]), Grain::Open);
        assert_eq!(grain(Some(&[64, 128]), None, none), Grain::Missing);
    }

    #[test]
    fn bits_by_width() {
        assert_eq!(bits(768, Dtype::I32, 6144, None), Some(4));
        assert_eq!(bits(1536, Dtype::I32, 6144, None), Some(8));
        assert_eq!(bits(1, Dtype::I32, 8, None), Some(4));
        assert_eq!(bits(1, Dtype::I32, 8, Some(2)), Some(2));
        assert_eq!(bits(0, Dtype::I32, 6144, Some(0)), None);
        assert_eq!(bits(u64::MAX, Dtype::I32, u64::MAX, Some(64)), None);
    }
}
