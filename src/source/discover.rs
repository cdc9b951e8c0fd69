//! From arguments to checkpoint folders.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::SourceError;

/// Folders below an argument that are still searched.
const MAX_DEPTH: usize = 12;
/// Entries that are looked at for one argument.
const MAX_ENTRIES: usize = 1_000_000;
/// Names that are looked at for what somebody may have meant.
const MAX_SIBLINGS: usize = 1_000;
/// What a file must end in for its folder to be linted in its stead once it is gone. Anything else that is missing is
/// a typing error.
const CHECKPOINT_FILES: [&str; 8] = ["json", "safetensors", "bin", "pt", "gguf", "jinja", "model", "txt"];

/// A checkpoint folder that an argument led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The folder.
    pub folder: PathBuf,
    /// How to call it: the argument as typed, with what was found below it, `/` as separator.
    pub display: String,
}

/// The argument that means standard input.
const STDIN: &str = "-";

impl Found {
    /// One `config.json` from standard input. A folder of that name is `./-`.
    pub fn stdin() -> Found {
        Found { folder: PathBuf::from(STDIN), display: "<stdin>".to_owned() }
    }

    /// Whether it is [`Found::stdin`].
    pub fn is_stdin(&self) -> bool {
        self.folder.as_os_str() == STDIN
    }
}

/// The checkpoint folders that `paths` stand for, in argument order, each once.
///
/// * A folder stands for itself when it is a checkpoint, and for every checkpoint below it. A folder is a checkpoint
///   when it holds `config.json`, an index, `*.safetensors`, `*.gguf`, `adapter_config.json` or `model_index.json`.
/// * Inside a checkpoint, a sub-folder counts only with a `config.json` *and* weights of its own (`checkpoint-500/`
///   does, `original/` does not). Parts of a pipeline (`model_index.json`, `modules.json`) never count on their own.
/// * A lone `config.json` above real checkpoints is taken for something else of that project.
/// * A file stands for the nearest checkpoint above it. So does a deleted one, as pre-commit passes them.
///
/// A path that is missing, or below which there is nothing to lint, is an error beside what the others led to.
pub fn discover<P: AsRef<Path>>(paths: &[P]) -> (Vec<Found>, Vec<SourceError>) {
    let mut found = Vec::new();
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for path in paths {
        let here = match stands_for(path.as_ref()) {
            Ok(here) => here,
            Err(e) => {
                errors.push(e);
                continue;
            }
        };
        for folder in here {
            let key = fs::canonicalize(&folder).unwrap_or_else(|_| folder.clone());
            if seen.insert(key) {
                let display = shown(&folder);
                found.push(Found { folder, display });
            }
        }
    }
    (found, errors)
}

/// A path as it is shown, however it was typed: no `./` before it, no `/` after it.
fn shown(folder: &Path) -> String {
    let text = folder.display().to_string().replace('\\', "/");
    let mut path = text.as_str();
    while let Some(rest) = path.strip_prefix("./").filter(|r| !r.is_empty()) {
        path = rest.trim_start_matches('/');
    }
    let path = path.trim_end_matches('/');
    match path {
        "" => if text.starts_with('/') { "/" } else { "." }.to_owned(),
        path => path.to_owned(),
    }
}

/// The checkpoint folders that one argument stands for.
fn stands_for(path: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let mut here = Vec::new();
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {
            let mut search = Search { root: path, entries: 0, visited: HashSet::new() };
            search.walk(path, 0, Parent::None, &mut here)?;
        }
        Ok(_) => here.extend(owner(path)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let ext = path.extension().and_then(|e| e.to_str()).unwrap_or("");
            match owner(path).filter(|_| CHECKPOINT_FILES.contains(&ext)) {
                Some(folder) => here.push(folder),
                None => return Err(SourceError::Missing(path.to_path_buf())),
            }
        }
        Err(e) => return Err(SourceError::io(path.display(), e)),
    }
    if here.is_empty() {
        return Err(SourceError::NothingHere(path.display().to_string()));
    }
    Ok(here)
}

/// Names beside a path that is not there, for whoever mistyped it.
pub fn siblings(path: &Path) -> Vec<String> {
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_SIBLINGS);
    let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The nearest checkpoint at or above a file's folder; three levels up at most.
fn owner(file: &Path) -> Option<PathBuf> {
    file.ancestors()
        .skip(1)
        .take(3)
        .map(|dir| if dir.as_os_str().is_empty() { Path::new(".") } else { dir })
        .find(|dir| look(dir).is_some_and(|l| l.holds.is_checkpoint()))
        .map(Path::to_path_buf)
}

/// What the names in one folder say.
#[derive(Default, Clone, Copy)]
struct Holds {
    config: bool,
    weights: bool,
    /// `adapter_config.json`, `model_index.json`: a checkpoint of another kind.
    other: bool,
    /// A pipeline: its sub-folders are parts of it.
    pipeline: bool,
}

impl Holds {
    fn is_checkpoint(self) -> bool {
        self.config || self.weights || self.other
    }
}

struct Look {
    holds: Holds,
    folders: Vec<PathBuf>,
    count: usize,
}

fn look(dir: &Path) -> Option<Look> {
    let mut look = Look { holds: Holds::default(), folders: Vec::new(), count: 0 };
    for entry in fs::read_dir(dir).ok()?.flatten() {
        look.count += 1;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_dir = match entry.file_type() {
            Ok(t) if t.is_symlink() => fs::metadata(entry.path()).is_ok_and(|m| m.is_dir()),
            Ok(t) => t.is_dir(),
            Err(_) => continue,
        };
        if is_dir {
            if !name.starts_with('.') {
                look.folders.push(entry.path());
            }
            continue;
        }
        match &*name {
            "config.json" => look.holds.config = true,
            "adapter_config.json" => look.holds.other = true,
            "model_index.json" => {
                look.holds.other = true;
                look.holds.pipeline = true;
            }
            "modules.json" => look.holds.pipeline = true,
            n => {
                let weights = [".safetensors", ".safetensors.index.json", ".gguf"];
                look.holds.weights |= weights.iter().any(|w| n.ends_with(w));
            }
        }
    }
    look.folders.sort();
    Some(look)
}

#[derive(Clone, Copy, PartialEq)]
enum Parent {
    /// Nothing found above.
    None,
    /// Inside a checkpoint.
    Checkpoint,
}

struct Search<'a> {
    root: &'a Path,
    entries: usize,
    /// Real paths: links to folders are followed, and may go in circles.
    visited: HashSet<PathBuf>,
}

impl Search<'_> {
    fn walk(&mut self, dir: &Path, depth: usize, parent: Parent, out: &mut Vec<PathBuf>) -> Result<(), SourceError> {
        if depth > MAX_DEPTH || !self.visited.insert(fs::canonicalize(dir).unwrap_or_else(|_| dir.to_path_buf())) {
            return Ok(());
        }
        let Some(look) = look(dir) else {
            // Only the argument itself must be readable; a closed folder below it is no checkpoint of ours.
            return match fs::read_dir(dir) {
                Err(e) if depth == 0 => Err(SourceError::io(dir.display(), e)),
                _ => Ok(()),
            };
        };
        self.entries += look.count;
        if self.entries > MAX_ENTRIES {
            return Err(SourceError::TooMany { path: self.root.display().to_string(), limit: MAX_ENTRIES });
        }
        let here = match parent {
            Parent::None => look.holds.is_checkpoint(),
            Parent::Checkpoint => look.holds.config && look.holds.weights,
        };
        let at = out.len();
        if here {
            out.push(dir.to_path_buf());
            if look.holds.pipeline {
                return Ok(());
            }
        }
        let below = if here { Parent::Checkpoint } else { parent };
        for folder in &look.folders {
            self.walk(folder, depth + 1, below, out)?;
        }
        let lone_config = here && !look.holds.weights && !look.holds.other;
        if lone_config && out.len() > at + 1 {
            out.remove(at);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}").unwrap();
        }
        dir
    }

    fn found(dir: &tempfile::TempDir, args: &[&str]) -> Vec<String> {
        let args: Vec<_> = args.iter().map(|a| dir.path().join(a)).collect();
        discover(&args).0.iter().map(|f| f.folder.strip_prefix(dir.path()).unwrap().display().to_string()).collect()
    }

    #[test]
    fn a_tree_of_many() {
        let dir = tree(&[
            "b/config.json",
            "b/model.safetensors",
            "b/original/consolidated.safetensors",
            "b/checkpoint-5/config.json",
            "b/checkpoint-5/model.safetensors",
            "b/1_Pooling/config.json",
            "a/x/q.gguf",
            "pipe/model_index.json",
            "pipe/text_encoder/config.json",
            "pipe/text_encoder/model.safetensors",
            "src/main.py",
            ".hidden/config.json",
        ]);
        assert_eq!(found(&dir, &[""]), ["a/x", "b", "b/checkpoint-5", "pipe"]);
        // A part of a pipeline can still be asked for by name.
        assert_eq!(found(&dir, &["pipe/text_encoder"]), ["pipe/text_encoder"]);
    }

    #[test]
    fn a_stray_config_above_checkpoints_is_not_one() {
        let dir = tree(&["config.json", "m/config.json", "m/model.safetensors", "n/config.json"]);
        assert_eq!(found(&dir, &[""]), ["m"]);
        assert_eq!(found(&dir, &["n"]), ["n"]);
    }

    #[test]
    fn files_stand_for_their_checkpoint_once() {
        let dir = tree(&["m/config.json", "m/model.safetensors", "m/original/params.json", "src/main.py"]);
        let args = ["m/config.json", "m/model.safetensors", "m", "m/original/params.json", "m/deleted.safetensors"];
        assert_eq!(found(&dir, &args), ["m"]);
    }

    #[test]
    fn errors_name_the_path() {
        let dir = tree(&["m/config.json", "src/main.py"]);
        for (arg, missing) in [("m/typo", true), ("nowhere/x.json", true), ("src", false), ("src/main.py", false)] {
            let error = discover(&[dir.path().join(arg)]).1.remove(0);
            assert_eq!(matches!(error, SourceError::Missing(_)), missing, "{arg}: {error}");
            assert!(error.to_string().contains(arg), "{error}");
        }
        // What can be looked at is, beside what cannot.
        let (found, errors) = discover(&[dir.path().join("m"), dir.path().join("src")]);
        assert_eq!((found.len(), errors.len()), (1, 1));
        assert!(siblings(&dir.path().join("mm")).contains(&"m".to_owned()));
    }

    #[cfg(unix)]
    #[test]
    fn links_in_circles_end() {
        let dir = tree(&["store/m/config.json"]);
        fs::create_dir(dir.path().join("tree")).unwrap();
        std::os::unix::fs::symlink("../store/m", dir.path().join("tree/m")).unwrap();
        std::os::unix::fs::symlink("..", dir.path().join("tree/up")).unwrap();
        let found = found(&dir, &["tree"]);
        assert_eq!(found[0], "tree/m");
        assert_eq!(found.len(), 1);
    }
}
