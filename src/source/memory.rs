//! Files that exist only in memory: for tests, and for checkpoints that are described rather than stored.

use std::collections::BTreeMap;
use std::io::Read;

use super::{FileEntry, Source, SourceError};

/// A made-up folder. A file may claim a size beyond its bytes; what lies between reads as zeros, as in a sparse file.
#[derive(Debug, Default, Clone)]
pub struct MemorySource {
    files: Vec<FileEntry>,
    bytes: BTreeMap<String, Vec<u8>>,
}

impl MemorySource {
    /// An empty folder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a file.
    pub fn add(&mut self, name: &str, bytes: impl Into<Vec<u8>>) -> &mut Self {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        self.add_sized(name, bytes, size)
    }

    /// Adds or replaces a file of `size` bytes that begins with `bytes`.
    pub fn add_sized(&mut self, name: &str, bytes: impl Into<Vec<u8>>, size: u64) -> &mut Self {
        self.bytes.insert(name.to_owned(), bytes.into());
        let entry = FileEntry { name: name.to_owned(), size };
        match self.files.binary_search_by(|f| f.name.as_str().cmp(name)) {
            Ok(at) => self.files[at] = entry,
            Err(at) => self.files.insert(at, entry),
        }
        self
    }
}

/// Bytes that are read of standard input.
const MAX_STDIN: u64 = 64 << 20;

/// A folder of one file, from standard input.
///
/// # Errors
/// When it cannot be read, or has no end in sight.
pub fn stdin(name: &str) -> Result<MemorySource, SourceError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_STDIN + 1).read_to_end(&mut bytes);
    read.map_err(|e| SourceError::io("<stdin>", e))?;
    if bytes.len() as u64 > MAX_STDIN {
        let error = format!("more than {MAX_STDIN} bytes are no {name}");
        return Err(SourceError::io("<stdin>", std::io::Error::other(error)));
    }
    let mut source = MemorySource::new();
    source.add(name, bytes);
    Ok(source)
}

/// Zeros are made up only to this length.
const MAX_ZEROS: u64 = 1 << 20;

impl Source for MemorySource {
    fn list(&self) -> &[FileEntry] {
        &self.files
    }

    fn read_range(&self, name: &str, offset: u64, len: u64, into: &mut Vec<u8>) -> Result<(), SourceError> {
        into.clear();
        let missing = || SourceError::NotListed(name.to_owned());
        let bytes = self.bytes.get(name).ok_or_else(missing)?;
        let size = self.size(name).ok_or_else(missing)?;
        let len = len.min(size.saturating_sub(offset));
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = usize::try_from(offset.saturating_add(len)).unwrap_or(usize::MAX).min(bytes.len());
        into.extend_from_slice(&bytes[start..end]);
        let zeros = (len - (end - start) as u64).min(MAX_ZEROS);
        into.resize(into.len() + zeros as usize, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_with_zeros_up_to_the_claimed_size() {
        let mut source = MemorySource::new();
        source.add_sized("b", *b"xy", 4).add("a", *b"hello");
        assert_eq!(source.read("b", 100).unwrap(), b"xy\0\0");
        assert_eq!(source.read("a", 2).unwrap(), b"he");
        assert_eq!(source.list()[0].name, "a");
        assert!(source.read("c", 1).is_err());
    }
}
