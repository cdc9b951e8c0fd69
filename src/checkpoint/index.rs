//! `model.safetensors.index.json`: 9 MB and 92,000 entries for the largest, of the plainest shape.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashSet};
use serde_json::Value;

use super::{Defect, DefectKind, Index, Part, json, pyjson};

/// The index, or why there is none. Of a broken file, the text comes along for excerpts.
pub(super) fn parse(bytes: Vec<u8>) -> (Part<Index>, Option<String>) {
    let text = match json::decode(bytes) {
        Ok(text) => text,
        Err(defect) => return (Part::Broken(vec![defect]), None),
    };
    if let Some(found) = scan(&text) {
        let mut index = found;
        index.text = text;
        return (Part::Present(index), None);
    }
    match pyjson::parse(&text) {
        Ok(p) if p.value.is_object() => (Part::Present(general(text, p)), None),
        Ok(_) => {
            let defect = Defect::new(DefectKind::Json, "the index is not a JSON object").at(0);
            (Part::Broken(vec![defect]), Some(text))
        }
        Err(e) => {
            let defect = Defect::new(DefectKind::Json, e.text.clone()).saying(e.text).at(e.at);
            (Part::Broken(vec![defect]), Some(text))
        }
    }
}

fn general(text: String, p: pyjson::Parsed) -> Index {
    let weight_map =
        p.value.get("weight_map").and_then(Value::as_object).and_then(|map| {
            map.iter().map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect::<Option<Vec<_>>>()
        });
    let total_size = p.value.pointer("/metadata/total_size").and_then(total);
    Index { text, weight_map, total_size, duplicate_keys: p.duplicate_keys }
}

/// A size in bytes; some writers store a float.
fn total(value: &Value) -> Option<u64> {
    let whole = |f: &f64| *f >= 0.0 && *f < 2f64.powi(63) && f.fract() == 0.0;
    value.as_u64().or_else(|| value.as_f64().filter(whole).map(|f| f as u64))
}

/// The fast way, for indexes of the usual shape: at most one `weight_map` of strings without escapes, and whatever
/// else in between, which is left to the general parser. `None` for anything else. The text is left out.
fn scan(text: &str) -> Option<Index> {
    let mut s = Scanner { text, s: text.as_bytes(), i: 0 };
    let mut index = Index::default();
    let mut seen = Vec::new();
    s.token(b'{')?;
    if s.peek()? == b'}' {
        s.i += 1;
    } else {
        loop {
            let key = s.string()?;
            if seen.contains(&key) {
                return None;
            }
            seen.push(key);
            s.token(b':')?;
            if key == "weight_map" {
                index.weight_map = Some(s.weight_map()?);
            } else {
                let value = s.small_value()?;
                if key == "metadata" {
                    index.total_size = value.get("total_size").and_then(total);
                }
            }
            match s.next()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
    }
    s.blank();
    (s.i == s.s.len()).then_some(index)
}

struct Scanner<'a> {
    text: &'a str,
    s: &'a [u8],
    i: usize,
}

impl<'a> Scanner<'a> {
    fn blank(&mut self) {
        while matches!(self.s.get(self.i), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.i += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.blank();
        self.s.get(self.i).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let b = self.peek()?;
        self.i += 1;
        Some(b)
    }

    fn token(&mut self, want: u8) -> Option<()> {
        (self.next()? == want).then_some(())
    }

    fn string(&mut self) -> Option<&'a str> {
        self.token(b'"')?;
        let start = self.i;
        let len = self.s.get(start..)?.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20)?;
        self.i = start + len + 1;
        if self.s.get(start + len) != Some(&b'"') {
            return None;
        }
        self.text.get(start..start + len)
    }

    fn weight_map(&mut self) -> Option<Vec<(String, String)>> {
        self.token(b'{')?;
        // An entry of the real ones takes 90 bytes and more.
        let mut map: Vec<(String, String)> = Vec::with_capacity((self.s.len() - self.i) / 80);
        if self.peek()? == b'}' {
            self.i += 1;
            return Some(map);
        }
        let mut names = FxHashSet::with_capacity_and_hasher(map.capacity(), FxBuildHasher);
        loop {
            let name = self.string()?;
            self.token(b':')?;
            let shard = self.string()?;
            // A name twice (or, once in a blue moon, two names with one hash) goes the slow way, which sorts it out.
            if !names.insert(FxBuildHasher.hash_one(name)) {
                return None;
            }
            map.push((name.to_owned(), shard.to_owned()));
            match self.next()? {
                b',' => {}
                b'}' => return Some(map),
                _ => return None,
            }
        }
    }

    /// A scalar, or an object that ends at its first brace: `metadata` as everyone writes it.
    fn small_value(&mut self) -> Option<Value> {
        let rest = self.text.get(self.i..)?;
        let len = if self.peek()? == b'{' { rest.find('}')? + 1 } else { rest.find([',', '}', '\n'])? };
        let parsed = pyjson::parse(rest.get(..len)?).ok()?;
        if !parsed.duplicate_keys.is_empty() {
            return None;
        }
        self.i = self.i.max(self.text.len() - rest.len() + len);
        Some(parsed.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(text: &str) -> Index {
        match parse(text.as_bytes().to_vec()).0 {
            Part::Present(index) => index,
            other => panic!("{other:?}"),
        }
    }

    fn pairs(index: &Index) -> Vec<(&str, &str)> {
        index.weight_map.as_ref().unwrap().iter().map(|(a, b)| (a.as_str(), b.as_str())).collect()
    }

    #[test]
    fn usual_indexes_in_file_order() {
        let text = "{\n  \"metadata\": {\n \"total_size\": 12\n },\n \"weight_map\": {\"b\": \"2\", \"a\": \"1\"}\n}\n";
        assert!(scan(text).is_some());
        let i = index(text);
        assert_eq!(i.total_size, Some(12));
        assert_eq!(pairs(&i), [("b", "2"), ("a", "1")]);
        assert_eq!(i.text, text);
    }

    #[test]
    fn unusual_ones_say_the_same() {
        for text in [
            r#"{"metadata":{"total_size":12.0,"x":{"y":"}"}},"weight_map":{"b":"2","a":"1"}}"#,
            r#"{"weight_map":{"\u0062":"2","a":"1"},"metadata":{"total_size":12}}"#,
            r#"{"z":NaN, "metadata":{"total_size":12}, "weight_map":{"b":"2","a":"1"}}"#,
        ] {
            let i = index(text);
            assert_eq!((i.total_size, pairs(&i)), (Some(12), vec![("b", "2"), ("a", "1")]), "{text}");
        }
    }

    #[test]
    fn duplicates_keep_the_last_value_in_the_first_place() {
        let i = index(r#"{"weight_map":{"b":"2","a":"1","b":"3"}}"#);
        assert_eq!(pairs(&i), [("b", "3"), ("a", "1")]);
        assert_eq!(i.duplicate_keys, ["/weight_map/b"]);
    }

    #[test]
    fn weight_maps_that_are_none() {
        for text in ["{}", r#"{"weight_map": []}"#, r#"{"weight_map": {"a": 1}}"#, r#"{"weight_map": null}"#] {
            assert!(index(text).weight_map.is_none(), "{text}");
        }
        assert_eq!(index(r#"{"weight_map": {}}"#).weight_map, Some(Vec::new()));
        assert!(matches!(parse(b"[]".to_vec()).0, Part::Broken(_)));
        let (part, text) = parse(b"{\"weight_map\": {\"a\": \"b\"".to_vec());
        match part {
            Part::Broken(d) => {
                assert_eq!(d[0].said.as_deref(), Some("Expecting ',' delimiter: line 1 column 25 (char 24)"))
            }
            other => panic!("{other:?}"),
        }
        assert!(text.is_some());
    }
}
