//! Conformance cases: a tiny checkpoint as text, and what the real vLLM said of it. `README.md` beside them has the format.

#![allow(unreachable_pub, reason = "shared between test binaries")]

use serde_json::{Map, Value, json};
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// One case.
pub struct Case {
    pub id: String,
    pub arch: String,
    pub family: String,
    pub good: bool,
    pub expect: Vec<String>,
    pub json: Value,
}

impl Case {
    pub fn text(&self, pointer: &str) -> Option<&str> {
        self.json.pointer(pointer).and_then(Value::as_str)
    }

    /// Writes the folder; tensor data is a hole, since nothing here reads it.
    pub fn materialize(&self, dir: &Path) {
        for (name, content) in object(&self.json, "files") {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = match content {
                Value::String(s) => s.clone(),
                v => serde_json::to_string_pretty(v).unwrap() + "\n",
            };
            fs::write(path, text).unwrap();
        }
        for (name, shard) in object(&self.json, "shards") {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            write_shard(&path, shard);
        }
        for (name, op) in object(&self.json, "raw") {
            raw(dir, name, op);
        }
    }
}

fn object<'a>(v: &'a Value, key: &str) -> Vec<(&'a String, &'a Value)> {
    v.get(key).and_then(Value::as_object).into_iter().flatten().collect()
}

fn write_shard(path: &Path, shard: &Value) {
    let mut header = Map::new();
    if let Some(m) = shard.get("metadata").filter(|m| !m.is_null()) {
        header.insert("__metadata__".into(), m.clone());
    }
    let mut at = 0;
    for t in shard["tensors"].as_array().unwrap() {
        let n: u64 = t["shape"].as_array().unwrap().iter().map(|d| d.as_u64().unwrap()).product();
        let bytes = n * width(t["dtype"].as_str().unwrap());
        let entry = json!({
            "dtype": t.get("header_dtype").unwrap_or(&t["dtype"]),
            "shape": t.get("header_shape").unwrap_or(&t["shape"]),
            "data_offsets": [at, at + bytes],
        });
        header.insert(t["name"].as_str().unwrap().into(), entry);
        at += bytes;
    }
    let mut text = Value::Object(header).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut f = fs::File::create(path).unwrap();
    f.write_all(&(text.len() as u64).to_le_bytes()).unwrap();
    f.write_all(&text).unwrap();
    f.set_len(8 + text.len() as u64 + at).unwrap();
}

fn width(dtype: &str) -> u64 {
    match dtype {
        "F64" | "I64" | "U64" => 8,
        "F32" | "I32" | "U32" => 4,
        "F16" | "BF16" | "I16" | "U16" => 2,
        _ => 1,
    }
}

fn raw(dir: &Path, name: &str, op: &Value) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let bytes = |key: &str| op.get(key).and_then(Value::as_str).map(base64);
    if let Some(b) = bytes("base64") {
        fs::write(&path, b).unwrap();
    }
    if let Some(from) = op.get("copy_of").and_then(Value::as_str) {
        fs::copy(dir.join(from), &path).unwrap();
    }
    if let Some(to) = op.get("symlink").and_then(Value::as_str) {
        std::os::unix::fs::symlink(to, &path).unwrap();
    }
    let edit = || fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    if let Some(b) = bytes("append_base64") {
        let mut f = edit();
        f.seek(SeekFrom::End(0)).unwrap();
        f.write_all(&b).unwrap();
    }
    if let Some(o) = op.get("overwrite") {
        let mut f = edit();
        f.seek(SeekFrom::Start(o["offset"].as_u64().unwrap())).unwrap();
        f.write_all(&base64(o["base64"].as_str().unwrap())).unwrap();
    }
    if let Some(n) = op.get("truncate").and_then(Value::as_u64) {
        edit().set_len(n).unwrap();
    }
    if let Some(n) = op.get("truncate_by").and_then(Value::as_u64) {
        let f = edit();
        let len = f.metadata().unwrap().len();
        f.set_len(len - n).unwrap();
    }
    if op.get("delete").and_then(Value::as_bool) == Some(true) {
        fs::remove_file(&path).unwrap();
    }
}

fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut out, mut bits, mut n) = (Vec::new(), 0u32, 0);
    for c in text.bytes().filter(|c| *c != b'=' && !c.is_ascii_whitespace()) {
        bits = bits << 6 | ALPHABET.iter().position(|a| *a == c).unwrap() as u32;
        n += 6;
        if n >= 8 {
            n -= 8;
            out.push((bits >> n & 0xff) as u8);
        }
    }
    out
}

/// All recorded cases, sorted by id; of another folder when `CONFORMANCE_CASES` names one.
pub fn all() -> Vec<Case> {
    let here = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/cases");
    let dir = std::env::var_os("CONFORMANCE_CASES").map_or_else(here, PathBuf::from);
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|p| read(p)).collect()
}

/// One case file.
pub fn read(path: &Path) -> Case {
    let json: Value =
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let text = |k: &str| json[k].as_str().unwrap().to_owned();
    Case {
        id: text("id"),
        arch: text("arch"),
        family: text("family"),
        good: json["good"] == true,
        expect: json["expect"].as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
        json,
    }
}
