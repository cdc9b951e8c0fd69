//! `model.safetensors.index.json`: 9 MB and 92,000 entries for the largest, of the plainest shape.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde_json::Value;

use super::cursor::Cursor;
use super::{Defect, DefectKind, Digest, Index, Name, Part, digest, json, pyjson};

/// The index, or why there is none. Of a broken file, the text comes along for excerpts.
pub(super) fn parse(bytes: Vec<u8>) -> (Part<Index>, Option<String>) {
    let text = match json::decode(bytes) {
        Ok(text) => text,
        Err(defect) => return (Part::Broken(vec![defect]), None),
    };
    let text = Arc::new(text);
    if let Some(index) = scan(&text) {
        return (Part::Present(index), None);
    }
    match pyjson::parse(&text) {
        Ok(p) if p.value.is_object() => (Part::Present(general(text, p)), None),
        Ok(_) => {
            let defect = Defect::new(DefectKind::Json, "the index is not a JSON object").at(0);
            (Part::Broken(vec![defect]), Some(text.to_string()))
        }
        Err(e) => {
            let defect = Defect::new(DefectKind::Json, e.text.clone()).saying(e.text).at(e.at);
            (Part::Broken(vec![defect]), Some(text.to_string()))
        }
    }
}

fn general(text: Arc<String>, p: pyjson::Parsed) -> Index {
    let weight_map: Option<Vec<(Name, Name)>> = p.value.get("weight_map").and_then(Value::as_object).and_then(|map| {
        map.iter().map(|(k, v)| Some((k.as_str().into(), v.as_str()?.into()))).collect::<Option<Vec<_>>>()
    });
    let total_size = p.value.pointer("/metadata/total_size").and_then(total);
    let mut runs = Vec::new();
    weight_map.iter().flatten().for_each(|(name, shard)| run(&mut runs, shard, digest::hash(name)));
    Index { text, weight_map, total_size, duplicate_keys: p.duplicate_keys, runs }
}

/// Adds a name, by its hash, to the runs of names with the same shard.
fn run(runs: &mut Vec<(Name, Digest)>, shard: &Name, hash: u64) {
    match runs.last_mut() {
        Some((last, names)) if last == shard => names.add(hash),
        _ => {
            let mut names = Digest::default();
            names.add(hash);
            runs.push((shard.clone(), names));
        }
    }
}

/// A size in bytes; some writers store a float.
fn total(value: &Value) -> Option<u64> {
    let whole = |f: &f64| *f >= 0.0 && *f < 2f64.powi(63) && f.fract() == 0.0;
    value.as_u64().or_else(|| value.as_f64().filter(whole).map(|f| f as u64))
}

/// The fast way, for indexes of the usual shape: at most one `weight_map` of strings without escapes, and whatever
/// else in between, which is left to the general parser. `None` for anything else.
fn scan(text: &Arc<String>) -> Option<Index> {
    let mut c = Cursor::new(text);
    let mut index = Index { text: Arc::clone(text), ..Index::default() };
    let mut seen = Vec::new();
    c.token(b'{')?;
    if c.peek()? == b'}' {
        c.advance(1);
    } else {
        loop {
            let (_, key) = c.string()?;
            // Many keys are not the usual shape either.
            if seen.contains(&key) || seen.len() > 16 {
                return None;
            }
            seen.push(key);
            c.token(b':')?;
            if key == "weight_map" {
                index.weight_map = Some(weight_map(&mut c, text, &mut index.runs)?);
            } else {
                let value = small_value(&mut c)?;
                if key == "metadata" {
                    index.total_size = value.get("total_size").and_then(total);
                }
            }
            if !c.more(b'}')? {
                break;
            }
        }
    }
    c.at_end().then_some(index)
}

fn weight_map(c: &mut Cursor, text: &Arc<String>, runs: &mut Vec<(Name, Digest)>) -> Option<Vec<(Name, Name)>> {
    c.token(b'{')?;
    // An entry of the real ones takes 90 bytes and more.
    let likely = c.rest().len() / 90;
    let mut map: Vec<(Name, Name)> = Vec::with_capacity(likely);
    let mut hashes = Vec::with_capacity(likely);
    if c.peek()? == b'}' {
        c.advance(1);
        return Some(map);
    }
    loop {
        let name = c.string()?;
        c.token(b':')?;
        // Mostly that of the entry before: then it is the same piece of text, and equal at a glance.
        let shard = match map.last().filter(|(_, before)| c.quoted(before)) {
            Some((_, before)) => before.clone(),
            None => part(text, c.string()?)?,
        };
        let hash = digest::hash(name.1);
        hashes.push(hash);
        run(runs, &shard, hash);
        map.push((part(text, name)?, shard));
        if !c.more(b'}')? {
            // A name twice goes the slow way, which sorts it out.
            return (!has_duplicates(&map, &hashes)).then_some(map);
        }
    }
}

fn part(text: &Arc<String>, (at, part): (usize, &str)) -> Option<Name> {
    Some(Name::part(text, (u32::try_from(at).ok()?, u32::try_from(part.len()).ok()?)))
}

/// A scalar, or an object that ends at its first brace: `metadata` as everyone writes it.
fn small_value(c: &mut Cursor) -> Option<Value> {
    let first = c.peek()?;
    let rest = c.rest();
    let len = if first == b'{' { rest.find('}')? + 1 } else { rest.find([',', '}', '\n'])? };
    let parsed = pyjson::parse(rest.get(..len)?).ok()?;
    c.advance(len);
    parsed.duplicate_keys.is_empty().then_some(parsed.value)
}

/// Whether a name is there twice.
///
/// A set of 92,000 strings is megabytes of memory at random places, and each of them a cache miss: it would take
/// longer than all parsing. A bit a name, sixteen times more bits than names, stays in the cache and clears all but a
/// few per cent of the names; only those few are then counted.
fn has_duplicates(map: &[(Name, Name)], hashes: &[u64]) -> bool {
    let mut bits = Bits::new(map.len() * 16);
    let mut suspected = Bits::new(map.len() * 16);
    for hash in hashes {
        if bits.set(*hash) {
            suspected.set(*hash);
        }
    }
    let mut seen = FxHashSet::default();
    let mut suspects = map.iter().zip(hashes).filter(|(_, hash)| suspected.get(**hash));
    !suspects.all(|((name, _), _)| seen.insert(name.as_str()))
}

/// A set of hashes: says yes for all members, and for few others.
struct Bits(Vec<u64>);

impl Bits {
    fn new(bits: usize) -> Self {
        Bits(vec![0; (bits / 64).next_power_of_two()])
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        ((hash >> 6) as usize & (self.0.len() - 1), 1 << (hash & 63))
    }

    fn get(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.0.get(word).is_some_and(|w| w & bit != 0)
    }

    /// Adds one; `true` when it, or another in its place, was there before.
    fn set(&mut self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.0.get_mut(word).is_some_and(|w| std::mem::replace(w, *w | bit) & bit != 0)
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
        assert!(scan(&Arc::new(text.to_owned())).is_some());
        let i = index(text);
        assert_eq!(i.total_size, Some(12));
        assert_eq!(pairs(&i), [("b", "2"), ("a", "1")]);
        assert_eq!(i.text.as_str(), text);
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
    fn duplicates_are_found_among_many() {
        let names: Vec<(Name, Name)> = (0..20_000).map(|i| (format!("layers.{i}.w").into(), "m".into())).collect();
        let has_duplicates = |names: &[(Name, Name)]| {
            let hashes: Vec<u64> = names.iter().map(|(name, _)| digest::hash(name)).collect();
            has_duplicates(names, &hashes)
        };
        assert!(!has_duplicates(&names) && !has_duplicates(&[]));
        for twice in [0, 1, 9_999, 19_999] {
            let mut names = names.clone();
            names.insert(7, names[twice].clone());
            assert!(has_duplicates(&names), "{twice}");
        }
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
