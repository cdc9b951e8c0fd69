//! The nearest of some files, from a folder up to the root of its repository.

use super::SourceError;
use std::fs;
use std::path::{Path, PathBuf};

/// A settings file is a page, not a book.
const MAX_SETTINGS: u64 = 1 << 20;

/// The text of a file.
///
/// # Errors
/// When it cannot be read, is not UTF-8, or has more than a megabyte.
pub fn text(path: &Path) -> Result<String, SourceError> {
    let wrap = |e| SourceError::io(path.display(), e);
    let size = fs::metadata(path).map_err(wrap)?.len();
    if size > MAX_SETTINGS {
        return Err(wrap(std::io::Error::other(format!("{size} bytes are too many for a settings file"))));
    }
    fs::read_to_string(path).map_err(wrap)
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
                let text = text(&path)?;
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
