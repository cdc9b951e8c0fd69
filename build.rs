//! Embeds every file below `rules/facts/vllm` (minified) as a sorted table.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new("rules/facts/vllm");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut rows = Vec::new();
    if root.is_dir() {
        collect(root, root, &mut rows)?;
    }
    rows.sort();
    let mut out = String::from("/// Fact files by `version/path`, sorted.\nstatic EMBEDDED: &[(&str, &str)] = &[\n");
    for (key, text) in rows {
        out.push_str(&format!("    ({key:?}, {text:?}),\n"));
    }
    out.push_str("];\n");
    let dir = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&dir).join("facts.rs"), out)
}

fn collect(root: &Path, dir: &Path, rows: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, rows)?;
        } else if path.extension().is_some_and(|e| e == "json") {
            let key = path.strip_prefix(root).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
            let value: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path)?)
                .map_err(|e| io::Error::other(format!("{}: {e}", path.display())))?;
            rows.push((key, value.to_string()));
        }
    }
    Ok(())
}
