use super::*;
use crate::source::MemorySource;

fn checkpoint(files: &[(&str, &str)]) -> Checkpoint {
    let mut source = MemorySource::new();
    for (name, text) in files {
        source.add(name, *text);
    }
    Checkpoint::read(&source, "m").unwrap()
}

fn key(file: &str, pointer: &str) -> Place {
    Place::Key { file: file.to_owned(), pointer: pointer.to_owned() }
}

const CONFIG: &str = r#"{
  "a/b": {"x": [1, "two"]},
  "é": "ü", "flag" : true,
  "ignore": [
    "lm_head",
    {"k": null}
  ],
  "dup": 1, "dup": 2
}
"#;

#[test]
fn keys_and_values() {
    let c = checkpoint(&[("config.json", CONFIG)]);
    let mut l = Locator::new(&c);
    for (pointer, marked, line, column) in [
        ("/a~1b", "\"a/b\"", 2, 3),
        ("/a~1b/x/1", "\"two\"", 2, 20),
        ("/flag", "\"flag\" : true", 3, 13),
        ("/ignore", "\"ignore\"", 4, 3),
        ("/ignore/0", "\"lm_head\"", 5, 5),
        ("/ignore/1", "{", 6, 5),
        ("/ignore/1/k", "\"k\": null", 6, 6),
        ("/dup", "\"dup\": 2", 8, 13),
        // Not there: the nearest that is.
        ("/ignore/7", "\"ignore\"", 4, 3),
        ("/flag/deeper", "\"flag\" : true", 3, 13),
    ] {
        let spot = l.locate(&key("config.json", pointer)).unwrap();
        let r = spot.region.unwrap();
        assert_eq!((&CONFIG[r.bytes.clone()], r.line, r.column), (marked, line, column), "{pointer}");
        let e = &r.excerpt;
        assert_eq!(&e.lines[e.marked][e.mark.clone()], marked, "{pointer}");
        assert_eq!(e.first_line + e.marked, line);
        assert_eq!((r.end_line, r.end_column), (line, column + marked.chars().count()));
    }
    assert_eq!(l.locate(&key("config.json", "/nope")).unwrap().region, None);
    assert_eq!(l.locate(&key("config.json", "")).unwrap().region, None);
    assert_eq!(l.locate(&key("other.json", "/a")), None);
    assert_eq!(l.locate(&Place::Folder), None);
}

#[test]
fn keys_with_escapes() {
    let text = r#"{"a\u0062": 1, "ab\n": 2, "ab": [3], "\u0063": 4}"#;
    let c = checkpoint(&[("config.json", text)]);
    let mut l = Locator::new(&c);
    let mut marked = |pointer: &str| {
        let bytes = l.locate(&key("config.json", pointer)).unwrap().region.unwrap().bytes;
        text[bytes].to_owned()
    };
    // `ab` is there twice, once with an escape; the last one counts.
    assert_eq!(marked("/ab"), "\"ab\"");
    assert_eq!(marked("/c"), r#""\u0063": 4"#);
    assert_eq!(marked("/ab\n"), r#""ab\n": 2"#);
}

#[test]
fn crlf_and_one_line_files() {
    let c = checkpoint(&[
        ("config.json", "{\r\n \"a\": 1,\r\n \"b\": 2\r\n}"),
        ("quant_config.json", "{\"a\":1,\"b\":[]}"),
    ]);
    let mut l = Locator::new(&c);
    let r = l.locate(&key("config.json", "/b")).unwrap().region.unwrap();
    assert_eq!((r.line, r.column, r.end_column), (3, 2, 8));
    assert_eq!(r.excerpt.lines, [" \"a\": 1,", " \"b\": 2", "}"]);
    let r = l.locate(&key("quant_config.json", "/b")).unwrap().region.unwrap();
    assert_eq!((r.line, r.column), (1, 8));
    assert_eq!(r.excerpt.lines.len(), 1);
}

#[test]
fn tensors_are_where_the_index_names_them() {
    let map: Vec<_> = (0..5000).map(|i| format!("\"layers.{i}.w\": \"m-{i}.safetensors\"")).collect();
    let index = format!("{{\"metadata\": {{}}, \"weight_map\": {{{}}}}}", map.join(", "));
    let c = checkpoint(&[(INDEX, &index), ("x.safetensors", "x")]);
    let mut l = Locator::new(&c);
    let tensor = |name: &str| Place::Tensor { file: "x.safetensors".to_owned(), name: name.to_owned() };
    let spot = l.locate(&tensor("layers.4321.w")).unwrap();
    assert_eq!(spot.file, INDEX);
    let r = spot.region.unwrap();
    assert_eq!(&index[r.bytes], "\"layers.4321.w\": \"m-4321.safetensors\"");
    assert!(r.excerpt.lines[0].chars().count() <= 202);
    let spot = l.locate(&tensor("layers.4321")).unwrap();
    assert_eq!((spot.file.as_str(), spot.region), ("x.safetensors", None));
}

#[test]
fn broken_files_are_marked_where_they_break() {
    let c = checkpoint(&[("config.json", "{\n  \"a\": 1,\n  b\n}"), ("generation_config.json", "{\"a\": ")]);
    let mut l = Locator::new(&c);
    let mut region = |file: &str| l.locate(&Place::File { file: file.to_owned() }).unwrap().region.unwrap();
    let r = region("config.json");
    assert_eq!((r.line, r.column, r.end_column), (3, 3, 4));
    let r = region("generation_config.json");
    assert_eq!((r.line, r.column, r.bytes.is_empty()), (1, 7, true));
}

/// Whatever the text, no panic, and every span is inside it.
#[test]
fn torn_texts_do_no_harm() {
    for end in (0..CONFIG.len()).filter(|i| CONFIG.is_char_boundary(*i)) {
        let text = &CONFIG[..end];
        let t = Text::new(text);
        for pointer in ["/a~1b/x/1", "/flag", "/ignore/1/k", "/é", "/dup"] {
            if let Some(found) = t.spans().find(pointer) {
                assert!(found.value.end <= text.len() && t.region(found).is_some(), "{pointer} in {text}");
            }
        }
        assert!(t.point(end).is_some());
    }
    let deep = "[".repeat(10_000);
    let text = Text::new(&deep);
    assert!(text.spans().find("/0").is_none_or(|found| found.value.end <= deep.len()));
}

#[test]
fn names_give_no_orders_to_a_runner() {
    assert_eq!(super::clean("::stop-commands::x"), "\u{fe55}:stop-commands::x");
    assert_eq!(super::clean("  ::error::x"), "  \u{fe55}:error::x");
    assert_eq!(super::clean("a ##[group]"), "a ##\u{ff3b}group]");
    for fine in ["torch::Tensor", "re:.*[a-z]", "# [x]", "a: :b"] {
        assert_eq!(super::clean(fine), fine);
    }
}
