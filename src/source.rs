//! Lists the files of one folder and reads byte ranges of them. It knows nothing of models.
//!
//! What fails here is an *error* of the run (exit 2), never a finding: findings are about content.
//! Only files of the listing can be read: names that come out of a checkpoint's own files (an index may say
//! `../../etc/passwd`) are looked up, never joined to a path.

mod discover;
mod local;
mod memory;
mod nearest;

use std::fmt;
use std::path::PathBuf;

pub use discover::{Found, discover, siblings};
pub use local::LocalSource;
pub use memory::{MemorySource, stdin};
pub use nearest::{MAX_BASELINE, MAX_SETTINGS, nearest, text};

/// A file of the folder (sub-folders included, hidden ones not).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Path relative to the folder, `/` as separator.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
}

/// Something that holds the files of one checkpoint.
///
/// `Sync`, since the headers of many shards are read side by side.
pub trait Source: Sync {
    /// Every regular file, sorted by name.
    fn list(&self) -> &[FileEntry];

    /// Replaces `into` with the bytes `offset .. offset + len` of a listed file; fewer when the file ends before.
    ///
    /// No allocation is larger than the file's real size allows, whatever `len` says.
    ///
    /// # Errors
    /// [`SourceError::NotListed`] for any other name, [`SourceError::Io`] when the bytes cannot be had.
    fn read_range(&self, name: &str, offset: u64, len: u64, into: &mut Vec<u8>) -> Result<(), SourceError>;

    /// Replaces `into` with the beginning of a listed file whose length only that beginning tells: reads `first` bytes,
    /// asks `whole` for the length, and reads the rest of that.
    ///
    /// # Errors
    /// As [`Source::read_range`].
    fn read_head(
        &self,
        name: &str,
        first: u64,
        whole: &dyn Fn(&[u8]) -> u64,
        into: &mut Vec<u8>,
    ) -> Result<(), SourceError> {
        self.read_range(name, 0, first, into)?;
        let whole = whole(into);
        if whole > into.len() as u64 { self.read_range(name, 0, whole, into) } else { Ok(()) }
    }

    /// Size in bytes of a listed file.
    fn size(&self, name: &str) -> Option<u64> {
        let files = self.list();
        let at = files.binary_search_by(|f| f.name.as_str().cmp(name)).ok()?;
        files.get(at).map(|f| f.size)
    }

    /// The first `max` bytes of a listed file: all of it when it is no larger.
    ///
    /// # Errors
    /// As [`Source::read_range`].
    fn read(&self, name: &str, max: u64) -> Result<Vec<u8>, SourceError> {
        let mut bytes = Vec::new();
        self.read_range(name, 0, max, &mut bytes)?;
        Ok(bytes)
    }
}

/// Why a run could not look at what it was asked to look at.
#[derive(Debug)]
pub enum SourceError {
    /// The path does not exist.
    Missing(PathBuf),
    /// The path, or everything below it, holds no checkpoint.
    NothingHere(String),
    /// A file that the listing does not have.
    NotListed(String),
    /// More files or folders than anyone keeps beside a checkpoint.
    TooMany {
        /// Where.
        path: String,
        /// The limit that was reached.
        limit: usize,
    },
    /// The system said no.
    Io {
        /// Path, for the message.
        path: String,
        /// What it said.
        error: std::io::Error,
    },
}

impl SourceError {
    pub(crate) fn io(path: impl fmt::Display, error: std::io::Error) -> Self {
        SourceError::Io { path: path.to_string(), error }
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceError::Missing(path) => write!(f, "{}: no such file or folder", path.display()),
            SourceError::NothingHere(path) => write!(f, "{path}: no checkpoint here"),
            SourceError::NotListed(name) => write!(f, "{name}: not a file of this folder"),
            SourceError::TooMany { path, limit } => write!(f, "{path}: more than {limit} files and folders"),
            SourceError::Io { path, error } => write!(f, "{path}: {error}"),
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SourceError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
