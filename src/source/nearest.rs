//! The nearest of some files, from a folder up to the root of its repository.

use super::SourceError;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A settings file is a page, not a book.
pub const MAX_SETTINGS: u64 = 1 << 20;
/// A baseline has a paragraph for each finding.
pub const MAX_BASELINE: u64 = 64 << 20;

/// The text of a file.
///
/// # Errors
/// When it cannot be read, is not UTF-8, or has more than `max` bytes.
pub fn text(path: &Path, max: u64) -> Result<String, SourceError> {
    let wrap = |e| SourceError::io(path.display(), e);
    let mut bytes = Vec::new();
    // What is read is counted: a pipe has no size, and a device no end.
    fs::File::open(path).map_err(wrap)?.take(max + 1).read_to_end(&mut bytes).map_err(wrap)?;
    if bytes.len() as u64 > max {
        return Err(wrap(std::io::Error::other(format!("more than {max} bytes are too many for such a file"))));
    }
    String::from_utf8(bytes).map_err(|_| wrap(std::io::Error::other("not UTF-8")))
}

/// The first file that `wanted` takes, folder by folder upwards from the current one and in the order of `names`. The
/// search ends with the folder that holds `.git`.
///
/// # Errors
/// When a file that is there cannot be read.
pub fn nearest(names: &[&str], wanted: &dyn Fn(&str, &str) -> bool) -> Result<Option<(PathBuf, String)>, SourceError> {
    let Ok(here) = fs::canonicalize(".") else { return Ok(None) };
    for folder in here.ancestors() {
        for name in names {
            let path = folder.join(name);
            if path.is_file() {
                let text = text(&path, MAX_SETTINGS)?;
                if wanted(name, &text) {
                    return Ok(Some((path, text)));
                }
            }
        }
        if folder.join(".git").exists() {
            break;
        }
    }
    Ok(None)
}
