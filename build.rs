//! Embeds every file below `rules/facts/vllm`, minified, in compressed blocks, and a sorted table of where each one is. A text
//! that several versions share is there once.
//!
//! `base.json` of a version names another one and the files of it that hold here, too, each with the fingerprint of what was
//! compared. One that has changed since is left out: nothing is said of it until somebody compares again. `instead` are pieces
//! of text that are others in all of them.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new("rules/facts/vllm");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut rows = BTreeMap::new();
    let mut bases = Vec::new();
    for version in fs::read_dir(root)? {
        let dir = version?.path();
        let base = dir.join("base.json");
        if base.exists() {
            bases.push((dir.clone(), json(&fs::read_to_string(base)?)?));
        }
        collect(root, &dir, &mut rows)?;
    }
    for (dir, base) in bases {
        let from = base["base"].as_str().unwrap_or_default();
        let instead: Vec<(String, String)> =
            serde_json::from_value(base["instead"].clone()).map_err(io::Error::other)?;
        for (file, known) in base["same"].as_object().into_iter().flatten() {
            let text = fs::read_to_string(root.join(from).join(format!("{file}.json"))).unwrap_or_default();
            if *known == fingerprint(&text) {
                let text = instead.iter().fold(text, |text, (a, b)| text.replace(a, b));
                rows.entry(key(root, &dir.join(format!("{file}.json")))?).or_insert(lean(json(&text)?));
            } else {
                println!("cargo::warning={}: {file} of {from} was compared before it changed", dir.display());
            }
        }
    }
    let dir = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    let (packed, tables) = pack(&rows);
    fs::write(Path::new(&dir).join("facts.bin"), packed)?;
    fs::write(Path::new(&dir).join("facts.rs"), tables)
}

/// What a block holds at most, unless one file alone is larger: a run unpacks few of them, each in a tenth of a millisecond,
/// and files that are alike share what they have in common.
const BLOCK: usize = 32 * 1024;

/// All blocks, one after the other, and their tables as Rust.
fn pack(rows: &BTreeMap<String, String>) -> (Vec<u8>, String) {
    // By the path below the version: what is new in one is mostly the same as before.
    let mut order: Vec<_> = rows.iter().map(|(key, text)| (key.split_once('/').map(|k| k.1), text)).collect();
    order.sort();
    let mut blocks: Vec<String> = Vec::new();
    let mut places = BTreeMap::new();
    for (_, text) in order {
        places.entry(text).or_insert_with(|| {
            if blocks.last().is_none_or(|b| b.len() + text.len() > BLOCK) {
                blocks.push(String::new());
            }
            let (last, n) = (blocks.len() - 1, blocks.last().map_or(0, String::len));
            blocks[last].push_str(text);
            (last, n..n + text.len())
        });
    }
    let mut packed = Vec::new();
    let mut out = format!("static BLOCKS: [Block; {}] = [\n", blocks.len());
    for block in &blocks {
        let start = packed.len();
        packed.extend(miniz_oxide::deflate::compress_to_vec(block.as_bytes(), 9));
        out.push_str(&format!("    Block::new({start}..{}, {}),\n", packed.len(), block.len()));
    }
    out.push_str("];\n/// Fact files by `version/path`, sorted: block, and where in it.\n");
    out.push_str("static EMBEDDED: &[(&str, usize, std::ops::Range<usize>)] = &[\n");
    for (key, text) in rows {
        let (block, place) = &places[text];
        out.push_str(&format!("    ({key:?}, {block}, {place:?}),\n"));
    }
    out.push_str("];\n");
    (packed, out)
}

fn collect(root: &Path, dir: &Path, rows: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let read =
            |name| !["base.json", "sources.json"].iter().any(|n| path.ends_with(n)) && path.extension() == Some(name);
        if path.is_dir() {
            collect(root, &path, rows)?;
        } else if read("json".as_ref()) {
            let text =
                json(&fs::read_to_string(&path)?).map_err(|e| io::Error::other(format!("{}: {e}", path.display())))?;
            rows.insert(key(root, &path)?, lean(text));
        }
    }
    Ok(())
}

fn key(root: &Path, path: &Path) -> io::Result<String> {
    Ok(path.strip_prefix(root).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/"))
}

fn json(text: &str) -> io::Result<Value> {
    serde_json::from_str(text).map_err(io::Error::other)
}

/// What a run reads of a fact file: without what is only for those who make it.
fn lean(mut file: Value) -> String {
    if let Some(fields) = file.as_object_mut() {
        for key in ["notes", "source", "also_refused", "words"] {
            fields.remove(key);
        }
        // That of a config class is part of its name in messages.
        if fields.contains_key("tree") {
            fields.remove("module");
        }
        // Classes that are given the whole config, though they are no wrappers.
        if !fields.contains_key("unwrap") && fields.get("tree").is_some_and(|t| t.to_string().contains("text_config")) {
            fields.insert("nested".into(), true.into());
        }
    }
    file.to_string()
}

/// FNV-1a, as tools/facts/where.py has it: of the text without carriage returns.
fn fingerprint(text: &str) -> String {
    let bytes = text.bytes().filter(|b| *b != b'\r');
    format!("{:016x}", bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)))
}
