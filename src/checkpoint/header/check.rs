//! The rules of `Metadata::validate` of the safetensors crate, applied to every tensor.

use std::sync::Arc;

use super::{Defect, DefectKind, Entries, Raw};
use crate::checkpoint::{Header, Name, ShardState, Tensor, digest};

/// Judges the entries of a header in front of `data` bytes, in a file of `size` bytes. Gives the list of entries back.
pub(super) fn check(entries: Entries<'_>, data: u64, size: u64) -> (ShardState, Vec<Raw<'_>>) {
    let Entries { mut tensors, metadata, mut defects, partial } = entries;
    // Files as written: in order, without gaps, exactly as long as they should be. Then nothing else can be wrong.
    let clean = defects.is_empty() && in_order(&tensors) == Some(data);
    // Stable, so that of equal names the last in the file stays last. No sort can leave two names side by side that it has
    // not compared.
    let mut twice = false;
    tensors.sort_by(|a, b| {
        let order = a.name.cmp(&b.name);
        twice |= order.is_eq();
        order
    });
    let duplicates = if twice { drop_duplicates(&mut tensors) } else { Vec::new() };
    if !clean || !duplicates.is_empty() {
        offsets(&tensors, !partial, data, size, &mut defects);
    }
    if !defects.is_empty() {
        // The crate takes them and keeps the last; in a broken header they are one more thing to know.
        defects.extend(duplicates.iter().map(|name| {
            Defect::new(DefectKind::DuplicateName, format!("`{name}` is in the header more than once")).of(name)
        }));
    }
    let mut header = Header { metadata, duplicates, ..Header::default() };
    keep(&mut tensors, &mut header);
    let state = if defects.is_empty() { ShardState::Good(header) } else { ShardState::Broken(defects, header) };
    (state, tensors)
}

/// The tensors that can be read, all their names in one piece of memory.
fn keep(tensors: &mut Vec<Raw>, header: &mut Header) {
    let mut names = String::with_capacity(tensors.iter().map(|t| t.name.len()).sum());
    tensors.iter().for_each(|t| names.push_str(&t.name));
    let names = Arc::new(names);
    let mut start = 0u32;
    header.tensors.reserve_exact(tensors.len());
    for t in tensors.drain(..) {
        // A header has at most 100 MB, and so have its names.
        let len = u32::try_from(t.name.len()).unwrap_or(0);
        if let (Some(dtype), Some(shape), Some(span)) = (t.dtype, t.shape, t.span) {
            header.names.add(digest::hash(&t.name));
            header.tensors.push(Tensor { name: Name::part(&names, (start, len)), dtype, shape, span });
        }
        start += len;
    }
}

/// The end of the last tensor, when all follow one another in file order and have the size they should have.
fn in_order(tensors: &[Raw]) -> Option<u64> {
    tensors.iter().try_fold(0u64, |at, t| {
        let (start, end) = t.span?;
        (start == at && end >= start && bytes_of(t).ok()? == end - start).then_some(end)
    })
}

/// Of sorted tensors, keeps the last of each name, and tells which names occurred more than once.
fn drop_duplicates<'a>(tensors: &mut Vec<Raw<'a>>) -> Vec<String> {
    let mut duplicates: Vec<String> = Vec::new();
    let mut kept: Vec<Raw<'a>> = Vec::with_capacity(tensors.len());
    for t in tensors.drain(..) {
        match kept.last_mut() {
            Some(last) if last.name == t.name => {
                if duplicates.last().map(String::as_str) != Some(&*t.name) {
                    duplicates.push(t.name.to_string());
                }
                *last = t;
            }
            _ => kept.push(t),
        }
    }
    *tensors = kept;
    duplicates
}

enum Size {
    Overflow,
    /// Bits that are no whole number of bytes.
    Bits(u64),
    Unknown,
}

/// Bytes of a tensor by shape and dtype, computed as the crate does: an overflow counts even if a later
/// dimension is zero.
fn bytes_of(t: &Raw) -> Result<u64, Size> {
    let (Some(dtype), Some(shape)) = (t.dtype, t.shape.as_deref()) else {
        return Err(Size::Unknown);
    };
    let elements = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).ok_or(Size::Overflow)?;
    let bits = elements.checked_mul(dtype.bits()).ok_or(Size::Overflow)?;
    if bits % 8 == 0 { Ok(bits / 8) } else { Err(Size::Bits(bits)) }
}

/// Coverage, sizes and length. The first fault is the one that the crate reports, and gets its words, unless the
/// JSON already had one.
fn offsets(tensors: &[Raw], complete: bool, data: u64, size: u64, defects: &mut Vec<Defect>) {
    let mut spans: Vec<((u64, u64), &Raw)> = tensors.iter().filter_map(|t| Some((t.span?, t))).collect();
    spans.sort_by_key(|(span, _)| *span);
    // With unreadable entries there is no telling what fills a hole.
    let all_known = complete && spans.len() == tensors.len();
    let mut out = Vec::new();
    let mut fault = |kind, text: String, name: Option<&str>, said: String| {
        let defect = Defect::new(kind, text).saying(said);
        out.push(match name {
            Some(name) => defect.of(name),
            None => defect,
        });
    };
    let mut at = 0u64;
    let mut last = "";
    for ((start, end), t) in spans {
        let name = &*t.name;
        let wrong = if end < start {
            Some(format!("`{name}` ends at {end}, before it starts at {start}"))
        } else if start < at {
            Some(format!(
                "`{name}` [{start}, {end}) overlaps `{last}`, which ends at {at}, by {} bytes",
                at.min(end) - start
            ))
        } else if start > at && all_known {
            Some(format!("{} bytes before `{name}` belong to no tensor: {at} to {start}", start - at))
        } else {
            None
        };
        if let Some(text) = wrong {
            fault(DefectKind::Offsets, text, Some(name), format!("invalid offset for tensor `{name}`"));
        }
        if end >= at {
            last = name;
        }
        // Of offsets that run backwards, the larger one: it is one fault, not two.
        at = at.max(end).max(start);
        let shape = || format!("{:?}", t.shape.as_deref().unwrap_or_default());
        let tag = t.dtype.map_or("?", |d| d.tag());
        match bytes_of(t) {
            Err(Size::Overflow) => fault(
                DefectKind::Overflow,
                format!("shape {} of `{name}` overflows 64 bits", shape()),
                Some(name),
                "overflow computing buffer size from shape and/or element type".to_owned(),
            ),
            Err(Size::Bits(bits)) => fault(
                DefectKind::ShapeBytes,
                format!("`{name}` {tag} {} takes {bits} bits, which is no whole number of bytes", shape()),
                Some(name),
                "The slice is slicing for subbytes dtypes, and the slice does not end up at a byte boundary, \
                 this is invalid."
                    .to_owned(),
            ),
            Ok(bytes) if end >= start && bytes != end - start => fault(
                DefectKind::ShapeBytes,
                format!("`{name}` {tag} {} takes {bytes} bytes, and its offsets span {}", shape(), end - start),
                Some(name),
                "invalid shape, data type, or offset for tensor".to_owned(),
            ),
            _ => {}
        }
    }
    if at != data && all_known {
        let text = if at > data {
            format!(
                "the file has {size} bytes and is {} short: the last tensor ends at {at}, the data at {data}",
                at - data
            )
        } else {
            format!("{} bytes follow the last tensor (the file has {size})", data - at)
        };
        fault(DefectKind::Length, text, None, "incomplete metadata, file not fully covered".to_owned());
    }
    // Only the very first fault has the crate's words: there it stops.
    let silent = usize::from(defects.is_empty());
    out.iter_mut().skip(silent).for_each(|d| d.said = None);
    defects.append(&mut out);
}
