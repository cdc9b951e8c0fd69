//! A folder on this machine.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{FileEntry, Source, SourceError};
use walkdir::WalkDir;

/// Folders below the checkpoint that are still listed: `original/`, `assets/x/`, never a whole disk.
const MAX_DEPTH: usize = 6;
/// Entries that are still listed.
const MAX_ENTRIES: usize = 100_000;

/// The files of one folder, as they were when it was opened.
#[derive(Debug)]
pub struct LocalSource {
    files: Vec<FileEntry>,
    /// Listed name → real path. The only way from a name to the disk.
    paths: HashMap<String, PathBuf>,
}

impl LocalSource {
    /// Lists `folder`.
    ///
    /// Symbolic links to *files* count as files: a snapshot of the Hugging Face cache is a folder of links into
    /// `../../blobs`. Links to folders are not entered, as in vLLM's own listing (`Path.rglob`), and links to nothing
    /// are left out.
    ///
    /// # Errors
    /// When the folder is missing, cannot be listed, or holds more than 100,000 entries.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, SourceError> {
        let folder = folder.as_ref();
        if !folder.exists() {
            return Err(SourceError::Missing(folder.to_path_buf()));
        }
        let mut source = LocalSource { files: Vec::new(), paths: HashMap::new() };
        source.walk(folder)?;
        source.files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(source)
    }

    fn walk(&mut self, root: &Path) -> Result<(), SourceError> {
        let wrap = |e: walkdir::Error| SourceError::io(root.display(), e.into());
        // The root is at depth 0, what lies in it at depth 1.
        let mut entries = WalkDir::new(root).max_depth(MAX_DEPTH + 1).into_iter();
        let mut seen = 0;
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // A sub-folder that is closed to us takes nothing away from the checkpoint above it.
                Err(e) if e.depth() > 0 && e.path().is_some() => continue,
                Err(e) => return Err(wrap(e)),
            };
            if entry.depth() == 0 {
                continue;
            }
            seen += 1;
            if seen > MAX_ENTRIES {
                return Err(SourceError::TooMany { path: root.display().to_string(), limit: MAX_ENTRIES });
            }
            if entry.file_type().is_dir() {
                if entry.file_name().to_string_lossy().starts_with('.') {
                    entries.skip_current_dir();
                }
                continue;
            }
            // Follows links. A pipe or a device named `model.safetensors` would block the reader: files only.
            let Ok(meta) = fs::metadata(entry.path()) else { continue };
            if meta.is_file() {
                let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
                let parts: Vec<_> = below.components().map(|c| c.as_os_str().to_string_lossy()).collect();
                let name = parts.join("/");
                self.files.push(FileEntry { name: name.clone(), size: meta.len() });
                self.paths.insert(name, entry.into_path());
            }
        }
        Ok(())
    }
}

impl Source for LocalSource {
    fn list(&self) -> &[FileEntry] {
        &self.files
    }

    fn read_range(&self, name: &str, offset: u64, len: u64, into: &mut Vec<u8>) -> Result<(), SourceError> {
        into.clear();
        let mut file = Open::new(self, name)?;
        if offset > 0 {
            file.seek(offset)?;
        }
        file.append(len.min(file.size.saturating_sub(offset)), into)
    }

    fn read_head(
        &self,
        name: &str,
        first: u64,
        whole: &dyn Fn(&[u8]) -> u64,
        into: &mut Vec<u8>,
    ) -> Result<(), SourceError> {
        into.clear();
        let mut file = Open::new(self, name)?;
        file.append(first.min(file.size), into)?;
        let rest = whole(into).min(file.size).saturating_sub(into.len() as u64);
        file.append(rest, into)
    }
}

/// An open file, with its path for messages.
struct Open<'a> {
    file: File,
    path: &'a Path,
    size: u64,
}

impl<'a> Open<'a> {
    fn new(source: &'a LocalSource, name: &str) -> Result<Self, SourceError> {
        let path = source.paths.get(name).ok_or_else(|| SourceError::NotListed(name.to_owned()))?;
        let wrap = |e| SourceError::io(path.display(), e);
        let file = File::open(path).map_err(wrap)?;
        // What it has now: it may have shrunk since it was listed.
        let size = file.metadata().map_err(wrap)?.len();
        Ok(Open { file, path, size })
    }

    fn seek(&mut self, offset: u64) -> Result<(), SourceError> {
        self.file.seek(SeekFrom::Start(offset)).map_err(|e| SourceError::io(self.path.display(), e))?;
        Ok(())
    }

    /// Reads `len` more bytes, fewer at the end of the file. `len` is never more than the file's size.
    fn append(&mut self, len: u64, into: &mut Vec<u8>) -> Result<(), SourceError> {
        into.reserve_exact(usize::try_from(len).unwrap_or(0));
        // Into memory that nobody has to clear before.
        let read = Read::by_ref(&mut self.file).take(len).read_to_end(into);
        read.map(drop).map_err(|e| SourceError::io(self.path.display(), e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_sub_folders_and_skips_hidden_ones() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("b.json", "{}"), ("original/a.txt", "x"), (".git/c", "y"), (".hidden", "z")] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let source = LocalSource::open(dir.path()).unwrap();
        let names: Vec<_> = source.list().iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, [".hidden", "b.json", "original/a.txt"]);
        assert_eq!(source.size("b.json"), Some(2));
        assert_eq!(source.size("nope"), None);
    }

    #[test]
    fn never_leaves_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        let inner = dir.path().join("m");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("config.json"), "{}").unwrap();
        let source = LocalSource::open(&inner).unwrap();
        let absolute = dir.path().join("secret").display().to_string();
        for name in ["../secret", "./config.json", "x/../config.json", absolute.as_str(), "", "/"] {
            assert!(matches!(source.read(name, 10), Err(SourceError::NotListed(_))), "{name}");
        }
    }

    #[test]
    fn ranges_stop_at_the_end_and_never_trust_a_length() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), "0123456789").unwrap();
        let source = LocalSource::open(dir.path()).unwrap();
        let mut bytes = vec![9; 3];
        source.read_range("f", 4, u64::MAX, &mut bytes).unwrap();
        assert_eq!(bytes, b"456789");
        source.read_range("f", 400, 5, &mut bytes).unwrap();
        assert!(bytes.is_empty());
        assert_eq!(source.read("f", 3).unwrap(), b"012");
    }

    #[cfg(unix)]
    #[test]
    fn follows_links_to_files_only() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("blobs")).unwrap();
        fs::write(dir.path().join("blobs/abc"), "{\"a\":1}").unwrap();
        let snap = dir.path().join("snap");
        fs::create_dir(&snap).unwrap();
        symlink("../blobs/abc", snap.join("config.json")).unwrap();
        symlink("../blobs/gone", snap.join("dangling.json")).unwrap();
        symlink("..", snap.join("loop")).unwrap();
        let source = LocalSource::open(&snap).unwrap();
        let names: Vec<_> = source.list().iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["config.json"]);
        assert_eq!(source.read("config.json", 100).unwrap(), b"{\"a\":1}");
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        assert!(matches!(LocalSource::open("/no/such/folder"), Err(SourceError::Missing(_))));
    }
}
