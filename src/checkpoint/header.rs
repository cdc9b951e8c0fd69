//! The header of one shard, from its first bytes and its length.
//!
//! Two ways lead through: [`scan`] for the one shape that every writer produces, and [`loose`] for anything else, which
//! asks serde_json, as the safetensors crate does, and keeps what can still be read. [`check`] then applies the
//! crate's rules to all tensors instead of stopping at the first fault. A shard is [`ShardState::Good`] if and only if
//! the crate would accept the whole file; the tests hold both against each other.

mod check;
mod loose;
mod scan;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::{Defect, DefectKind, Dtype, Shape, Shard, ShardState, json};
use crate::source::{FileEntry, Source, SourceError};

/// safetensors refuses longer headers.
pub const MAX_HEADER: u64 = 100_000_000;
/// What is read at first: the length, and all of a small file such as a Git LFS pointer.
const FIRST_READ: u64 = 4 << 10;

/// One entry of a header, as far as it can be understood.
#[derive(Debug, Clone)]
pub(super) struct Raw<'a> {
    /// Of the header itself, unless it is written with escapes.
    pub(super) name: Cow<'a, str>,
    /// `None` when the tag is unknown or missing.
    pub(super) dtype: Option<Dtype>,
    pub(super) shape: Option<Shape>,
    pub(super) span: Option<(u64, u64)>,
}

/// Entries in file order.
#[derive(Debug, Default)]
pub(super) struct Entries<'a> {
    pub(super) tensors: Vec<Raw<'a>>,
    pub(super) metadata: Vec<(String, String)>,
    /// Faults of the JSON itself, of the crate's first one with its words.
    pub(super) defects: Vec<Defect>,
    /// The JSON breaks off, so there may be more entries than these.
    pub(super) partial: bool,
}

/// Memory that is used again from shard to shard: fresh memory costs more than what is done with it.
pub(super) struct Scratch {
    bytes: Vec<u8>,
    /// Empty between shards.
    entries: Vec<Raw<'static>>,
}

impl Scratch {
    /// Room for the headers of large models from the start, as growing leaves its traces: what is not touched costs nothing.
    pub(super) fn new() -> Self {
        Scratch { bytes: Vec::with_capacity(1 << 20), entries: Vec::with_capacity(8 << 10) }
    }
}

/// The memory of a list, for one of another text.
fn emptied(mut list: Vec<Raw>) -> Vec<Raw<'static>> {
    list.clear();
    // Collected in place.
    list.into_iter().map_while(|_| None).collect()
}

/// Reads the header of `entry`.
pub(super) fn read(source: &dyn Source, entry: &FileEntry, scratch: &mut Scratch) -> Result<Shard, SourceError> {
    let whole = |head: &[u8]| match header_len(head) {
        Some(len) if len <= MAX_HEADER && len.saturating_add(8) <= entry.size => len + 8,
        _ => 0,
    };
    source.read_head(&entry.name, FIRST_READ, &whole, &mut scratch.bytes)?;
    let state = judge(&scratch.bytes, entry.size, &mut scratch.entries);
    Ok(Shard { file: entry.name.clone(), size: entry.size, state })
}

fn header_len(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk::<8>().map(|n| u64::from_le_bytes(*n))
}

/// Judges a file of `size` bytes by its beginning, which holds the whole header if the file does.
fn judge(bytes: &[u8], size: u64, spare: &mut Vec<Raw<'static>>) -> ShardState {
    let refuse = |kind, text: String, said: &str| {
        ShardState::Broken(vec![Defect::new(kind, text).saying(said)], Default::default())
    };
    if let Some(pointed) = json::lfs_pointer(bytes.get(..size.min(1024) as usize).unwrap_or(bytes)) {
        return ShardState::Pointer { size: pointed };
    }
    if size == 0 {
        return refuse(DefectKind::Empty, "the file is empty".to_owned(), "header too small");
    }
    let Some(len) = header_len(bytes).filter(|_| size >= 8) else {
        return refuse(
            DefectKind::HeaderTooSmall,
            format!("the file has {size} bytes, fewer than the 8 of a header length"),
            "header too small",
        );
    };
    if len > MAX_HEADER {
        return refuse(
            DefectKind::HeaderTooLarge,
            format!("the first 8 bytes say that the header has {len} bytes; more than {MAX_HEADER} are never read"),
            "header too large",
        );
    }
    let header = usize::try_from(len).ok().and_then(|n| bytes.get(8..8 + n)).filter(|_| size - 8 >= len);
    let Some(header) = header else {
        return refuse(
            DefectKind::HeaderPastEnd,
            format!("the header should have {len} bytes, and the file has only {} after the header length", size - 8),
            "invalid header length",
        );
    };
    let text = match std::str::from_utf8(header) {
        Ok(text) => text,
        Err(e) => {
            let text = format!("the header is not UTF-8 at byte {}", 8 + e.valid_up_to());
            return refuse(DefectKind::HeaderJson, text, &format!("invalid UTF-8 in header: {e}"));
        }
    };
    let entries = scan::scan(text, std::mem::take(spare)).unwrap_or_else(|| loose::read(text));
    let (state, list) = check::check(entries, size - 8 - len, size);
    *spare = emptied(list);
    state
}
