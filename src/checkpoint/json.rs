//! Bytes to JSON, with everything that may be in the way: nothing at all, a pointer, bytes that are not text.

use super::{Defect, DefectKind, Json, Part, pyjson};

/// JSON files above this are not read. The largest known index (92,000 tensors) has 9 MB.
pub(crate) const MAX_JSON: u64 = 64 << 20;

/// Text of a JSON file, or why there is none.
pub(crate) fn decode(bytes: Vec<u8>) -> Result<String, Defect> {
    if bytes.is_empty() {
        // `json.loads("")`
        let said = "Expecting value: line 1 column 1 (char 0)";
        return Err(Defect::new(DefectKind::Empty, "the file is empty").saying(said).at(0));
    }
    if let Some(size) = lfs_pointer(&bytes) {
        let text = format!("a Git LFS pointer to {size} bytes, not the file itself");
        let said = "Expecting value: line 1 column 1 (char 0)";
        return Err(Defect::new(DefectKind::JsonPointer, text).saying(said).at(0));
    }
    String::from_utf8(bytes).map_err(|e| {
        let said = decode_error(e.as_bytes(), e.utf8_error());
        Defect::new(DefectKind::Json, said.clone()).saying(said).at(e.utf8_error().valid_up_to())
    })
}

/// What Python's `open(..., encoding="utf-8").read()` says of such bytes.
fn decode_error(bytes: &[u8], error: std::str::Utf8Error) -> String {
    let start = error.valid_up_to();
    let first = bytes.get(start).copied().unwrap_or(0);
    let (len, why) = match error.error_len() {
        None => (bytes.len() - start, "unexpected end of data"),
        Some(len) if !(0xc2..0xf5).contains(&first) => (len, "invalid start byte"),
        Some(len) => (len, "invalid continuation byte"),
    };
    if len == 1 {
        format!("'utf-8' codec can't decode byte 0x{first:02x} in position {start}: {why}")
    } else {
        format!("'utf-8' codec can't decode bytes in position {start}-{}: {why}", start + len - 1)
    }
}

/// The defect of a file that is too large to be read.
pub(crate) fn too_large(size: u64) -> Defect {
    Defect::new(DefectKind::Json, format!("{size} bytes, more than the {MAX_JSON} that are read of a JSON file"))
}

/// A JSON object with its text. Of a broken file, the text comes along for excerpts.
pub(crate) fn parse(bytes: Vec<u8>) -> (Part<Json>, Option<String>) {
    let text = match decode(bytes) {
        Ok(text) => text,
        Err(defect) => return (Part::Broken(vec![defect]), None),
    };
    match pyjson::parse(&text) {
        Ok(p) if p.value.is_object() => {
            let json = Json { text, value: p.value, duplicate_keys: p.duplicate_keys, non_finite: p.non_finite };
            (Part::Present(json), None)
        }
        Ok(p) => {
            let defect = Defect::new(DefectKind::Json, format!("{}, not an object", kind_of(&p.value))).at(0);
            (Part::Broken(vec![defect]), Some(text))
        }
        Err(e) => {
            let defect = Defect::new(DefectKind::Json, e.text.clone()).saying(e.text).at(e.at);
            (Part::Broken(vec![defect]), Some(text))
        }
    }
}

fn kind_of(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "a boolean",
        serde_json::Value::Number(_) => "a number",
        serde_json::Value::String(_) => "a string",
        serde_json::Value::Array(_) => "a list",
        serde_json::Value::Object(_) => "an object",
    }
}

/// The size that a Git LFS pointer states, when `bytes` are one: a clone without `git lfs pull` holds nothing else.
pub(crate) fn lfs_pointer(bytes: &[u8]) -> Option<u64> {
    // The specification caps pointers at 1,024 bytes.
    let text = std::str::from_utf8(bytes.get(..bytes.len().min(1024))?).ok()?;
    let known = ["version https://git-lfs.github.com/spec/", "version https://hawser.github.com/spec/"];
    if !known.iter().any(|k| text.starts_with(k)) {
        return None;
    }
    let size = text.lines().find_map(|l| l.strip_prefix("size "));
    Some(size.and_then(|s| s.trim().parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(bytes: &[u8]) -> Defect {
        match parse(bytes.to_vec()).0 {
            Part::Broken(mut d) => d.remove(0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pointers_are_named() {
        let d = broken(b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 1234\n");
        assert_eq!(d.kind, DefectKind::JsonPointer);
        assert!(d.text.contains("1234"));
        assert_eq!(lfs_pointer(b"version 2"), None);
    }

    /// Each text was printed by CPython 3.11.
    #[test]
    fn undecodable_bytes_in_pythons_words() {
        for (bytes, said) in [
            (&b"{\xff"[..], "'utf-8' codec can't decode byte 0xff in position 1: invalid start byte"),
            (b"{\xe2(", "'utf-8' codec can't decode byte 0xe2 in position 1: invalid continuation byte"),
            (b"\xe2\x82(", "'utf-8' codec can't decode bytes in position 0-1: invalid continuation byte"),
            (b"{\xe2\x82", "'utf-8' codec can't decode bytes in position 1-2: unexpected end of data"),
        ] {
            let d = broken(bytes);
            assert_eq!((d.kind, d.text.as_str()), (DefectKind::Json, said));
        }
    }

    #[test]
    fn only_objects_will_do() {
        assert_eq!(broken(b"[]").text, "a list, not an object");
        assert_eq!(broken(b"").kind, DefectKind::Empty);
        assert!(parse(b"{}".to_vec()).0.get().is_some());
        let (part, text) = parse(b"{,".to_vec());
        assert!(part.get().is_none());
        assert_eq!(text.as_deref(), Some("{,"));
    }
}
