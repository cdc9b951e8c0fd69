//! The safetensors crate is the judge: it accepts a file if and only if we call it good, and its words are ours.

use super::*;
use safetensors::SafeTensors;

fn file(header: &[u8], data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header);
    bytes.resize(bytes.len() + data, 0);
    bytes
}

/// Holds our judgement of a whole file against the crate's.
fn compare(bytes: &[u8]) -> ShardState {
    let state = judge(bytes, bytes.len() as u64, &mut Vec::new());
    let shown = String::from_utf8_lossy(bytes);
    let theirs = SafeTensors::read_metadata(bytes);
    match (&state, theirs) {
        (ShardState::Good(header), Ok((_, metadata))) => {
            let mut names: Vec<_> = metadata.tensors().into_keys().collect();
            names.sort();
            let ours: Vec<_> = header.tensors.iter().map(|t| t.name.to_string()).collect();
            assert_eq!(ours, names, "{shown}");
            for t in &header.tensors {
                let info = metadata.info(&t.name).unwrap();
                assert_eq!(format!("{:?}", info.dtype), t.dtype.tag());
                assert_eq!((info.data_offsets.0 as u64, info.data_offsets.1 as u64), t.span);
                assert!(info.shape.iter().map(|&d| d as u64).eq(t.shape.iter().copied()));
            }
            let count = metadata.metadata().as_ref().map_or(0, |m| m.len());
            let unique: std::collections::HashSet<_> = header.metadata.iter().map(|(k, _)| k).collect();
            assert_eq!(unique.len(), count, "{shown}");
        }
        (ShardState::Broken(defects, header), Err(e)) => {
            assert!(!defects.is_empty());
            let said: Vec<_> = defects.iter().filter_map(|d| d.said.as_deref()).collect();
            let theirs = e.to_string();
            // Of tensors with equal offsets the crate judges first whichever its hash map gave it first, so of two that
            // are wrong in different ways it may name either. All other words are the same.
            let mut spans: Vec<_> = header.tensors.iter().map(|t| t.span).collect();
            spans.sort();
            if spans.windows(2).any(|w| w[0] == w[1]) {
                let of_a_tensor =
                    ["invalid offset for tensor ", "invalid shape, data type, or offset", "overflow", "The slice"];
                let of_a_tensor = |text: &str| of_a_tensor.iter().any(|p| text.starts_with(p));
                assert_eq!(said.len(), 1, "{shown}");
                assert!(
                    said[0] == theirs || of_a_tensor(said[0]) && of_a_tensor(&theirs),
                    "{said:?} {theirs}\n{shown}"
                );
            } else {
                assert_eq!(said, [theirs], "{shown}");
            }
        }
        (ShardState::Pointer { .. }, Err(_)) => {}
        (state, theirs) => panic!("{state:?}\nbut the crate says {theirs:?}\n{shown}"),
    }
    state
}

fn kinds(bytes: &[u8]) -> Vec<DefectKind> {
    match compare(bytes) {
        ShardState::Broken(defects, _) => defects.iter().map(|d| d.kind).collect(),
        other => panic!("{other:?}"),
    }
}

const TWO: &str = concat!(
    r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"#,
    r#""b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}}"#
);

#[test]
fn good_files() {
    let state = compare(&file(TWO.as_bytes(), 11));
    let ShardState::Good(header) = state else { panic!() };
    assert_eq!(header.metadata, [("format".to_owned(), "pt".to_owned())]);
    assert_eq!(header.tensors[0].bytes(), 8);
    assert_eq!(header.tensors[0].elements(), Some(2));
    for (header, data) in [
        ("{}", 0),
        (" {} \n", 0),
        (r#"{"__metadata__":null,"a":["F32",[1],[0,4]],"b":{"dtype":{"U8":null},"shape":[],"data_offsets":[4,5]}}"#, 5),
        (
            r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2],"x":[{}]},"\u0061b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#,
            2,
        ),
        (
            r#"{"z":{"dtype":"F4","shape":[2],"data_offsets":[0,1]},"e":{"dtype":"F4","shape":[0],"data_offsets":[0,0]}}"#,
            1,
        ),
    ] {
        assert!(matches!(compare(&file(header.as_bytes(), data)), ShardState::Good(_)), "{header}");
    }
}

#[test]
fn duplicates_are_taken_as_the_crate_takes_them() {
    let one =
        r#"{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#;
    let ShardState::Good(header) = compare(&file(one.as_bytes(), 2)) else { panic!() };
    assert_eq!(header.duplicates, ["a"]);
    assert_eq!(header.tensors[0].span, (0, 2));
    assert_eq!(kinds(&file(one.as_bytes(), 9)), [DefectKind::Length, DefectKind::DuplicateName]);
}

#[test]
fn every_fault_has_its_kind_and_several_are_all_told() {
    use DefectKind::*;
    assert_eq!(kinds(b""), [Empty]);
    assert_eq!(kinds(b"abc"), [HeaderTooSmall]);
    assert_eq!(kinds(&[0xff; 20]), [HeaderTooLarge]);
    assert_eq!(kinds(&100u64.to_le_bytes()), [HeaderPastEnd]);
    assert_eq!(kinds(&file(b"\xff{}", 0)), [HeaderJson]);
    assert_eq!(kinds(&file(b"[]", 0)), [HeaderJson]);
    assert_eq!(kinds(&file(b"", 0)), [HeaderJson]);
    assert_eq!(kinds(&file(TWO.as_bytes(), 10)), [Length]);
    assert_eq!(kinds(&file(TWO.as_bytes(), 12)), [Length]);
    let with = |from: &str, to: &str| file(TWO.replace(from, to).as_bytes(), 11);
    assert_eq!(kinds(&with("[8,11]", "[7,10]")), [Offsets, Length]);
    assert_eq!(kinds(&with("[0,8]", "[1,8]")), [Offsets, ShapeBytes]);
    assert_eq!(kinds(&with("[8,11]", "[11,8]")), [Offsets]);
    assert_eq!(kinds(&with("[2,1]", "[3,1]")), [ShapeBytes]);
    assert_eq!(kinds(&with("\"F32\"", "\"F4\"")), [ShapeBytes]);
    assert_eq!(kinds(&with("[3]", "[4294967296,4294967296,0]")), [Overflow]);
    assert_eq!(kinds(&with("\"U8\"", "\"U7\"")), [UnknownDtype]);
    assert_eq!(kinds(&with("\"U8\"", "8")), [HeaderJson]);
    assert_eq!(kinds(&with("[0,8]", "[0,8,9]")), [HeaderJson]);
    // Two at once: an unknown dtype hides nothing of the other tensor.
    let both = TWO.replace("\"U8\"", "\"F7\"").replace("[2,1]", "[2,2]");
    assert_eq!(kinds(&file(both.as_bytes(), 11)), [UnknownDtype, ShapeBytes]);
}

#[test]
fn what_can_be_read_of_a_torn_header_is_kept() {
    let torn = &TWO[..TWO.len() - 30];
    let ShardState::Broken(defects, header) = compare(&file(torn.as_bytes(), 11)) else { panic!() };
    assert_eq!(defects.len(), 1, "{defects:?}");
    assert_eq!(header.tensors.len(), 1);
}

/// A small generator with a fixed seed: same mutations on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

fn random_header(r: &mut Random) -> (String, usize) {
    let mut at = 0;
    let mut entries = Vec::new();
    for i in 0..r.below(6) {
        let dtype = Dtype::ALL[r.below(22)];
        let shape: Vec<usize> = (0..r.below(4)).map(|_| r.below(5) * 4).collect();
        let bytes = shape.iter().product::<usize>() * dtype.bits() as usize / 8;
        let name = ["a", "b", "layers.1.w", "layers.10.w", "é", "x y"][i];
        entries.push(format!(
            "\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":[{at},{}]}}",
            at + bytes
        ));
        at += bytes;
    }
    if r.below(2) == 0 {
        entries.insert(r.below(entries.len() + 1), "\"__metadata__\":{\"format\":\"pt\"}".to_owned());
    }
    let pad = " ".repeat(r.below(9));
    (format!("{{{}}}{pad}", entries.join(",")), at)
}

/// Pieces that bring a mutant near the edges of the format.
const PIECES: [&str; 40] = [
    "0",
    "1",
    "8",
    "99999999999999999999",
    "18446744073709551615",
    "-0",
    "-1",
    "1.0",
    "1e2",
    "00",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0061",
    "\\ud800",
    "null",
    "\"F4\"",
    "\"F7\"",
    "{\"F32\":null}",
    "{\"F32\":{}}",
    "\"shape\":[1],",
    "\"dtype\":\"F32\",",
    "\"data_offsets\":[0,4],",
    "\"extra\":{\"a\":[1,2,{}]},",
    "\n",
    "\t",
    "\u{1}",
    "é",
    "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},",
    "\"__metadata__\":{},",
    "\"__metadata__\":null,",
    "[\"U8\",[1],[0,1]]",
    "4294967296",
    "true",
    " ",
];

#[test]
fn agrees_with_the_crate_on_thousands_of_mutants() {
    let (mut good, mut broken) = (0, 0);
    for seed in 0..8000 {
        let mut r = Random(seed);
        let (header, mut data) = random_header(&mut r);
        let mut header = header.into_bytes();
        for _ in 0..r.below(4) {
            let at = r.below(header.len() + 1);
            match r.below(6) {
                0 if at < header.len() => header[at] = r.below(256) as u8,
                1 if at < header.len() => drop(header.remove(at)),
                2 => drop(header.splice(at..at, PIECES[r.below(PIECES.len())].bytes())),
                3 => {
                    // Exchange a whole number.
                    let digits = |b: &u8| b.is_ascii_digit();
                    if let Some(from) = header[at..].iter().position(&digits).map(|p| at + p) {
                        let to = header[from..].iter().position(|b| !digits(b)).map_or(header.len(), |p| from + p);
                        header.splice(from..to, PIECES[r.below(9)].bytes());
                    }
                }
                4 => data = (data + r.below(3)).saturating_sub(1),
                _ => {
                    // Exchange a value after a colon.
                    if let Some(from) = header[at..].iter().position(|b| *b == b':').map(|p| at + p + 1) {
                        header.splice(from..from, PIECES[r.below(PIECES.len())].bytes());
                    }
                }
            }
        }
        let mut bytes = file(&header, data);
        if r.below(12) == 0 {
            bytes[0] = bytes[0].wrapping_add(r.below(3) as u8);
        }
        if r.below(20) == 0 {
            bytes.truncate(r.below(bytes.len()));
        }
        match compare(&bytes) {
            ShardState::Good(_) => good += 1,
            _ => broken += 1,
        }
    }
    assert!(good > 1000 && broken > 1000, "{good} good, {broken} broken: one-sided mutants prove little");
}

#[test]
fn nesting_does_not_overflow_the_stack() {
    for n in [100, 124, 125, 126, 127, 128, 129, 50_000] {
        let header = format!(
            "{{\"a\":{{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":{}{}}}}}",
            "[".repeat(n),
            "]".repeat(n)
        );
        compare(&file(header.as_bytes(), 1));
    }
}

#[test]
fn long_headers_are_read_whole() {
    use crate::source::{FileEntry, MemorySource};
    let entries: Vec<_> = (0..5000)
        .map(|i| format!("\"t{i:04}\":{{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[{i},{}]}}", i + 1))
        .collect();
    let bytes = file(format!("{{{}}}", entries.join(",")).as_bytes(), 0);
    assert!(bytes.len() as u64 > FIRST_READ);
    let mut source = MemorySource::new();
    let size = bytes.len() as u64 + 5000;
    source.add_sized("m.safetensors", bytes, size);
    let entry = FileEntry { name: "m.safetensors".to_owned(), size };
    let shard = read(&source, &entry, &mut Scratch::new()).unwrap();
    assert!(matches!(&shard.state, ShardState::Good(h) if h.tensors.len() == 5000));
}
