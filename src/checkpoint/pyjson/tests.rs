use super::*;
use serde_json::json;

fn words(text: &str) -> String {
    parse(text).unwrap_err().text
}

/// Each line was printed by CPython 3.11.
#[test]
fn errors_in_pythons_words() {
    for (text, said) in [
        ("", "Expecting value: line 1 column 1 (char 0)"),
        ("{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("{\"a\":1,}", "Expecting property name enclosed in double quotes: line 1 column 8 (char 7)"),
        ("{\"a\" 1}", "Expecting ':' delimiter: line 1 column 6 (char 5)"),
        ("{\"a\":1 \"b\"", "Expecting ',' delimiter: line 1 column 8 (char 7)"),
        ("[1,]", "Expecting value: line 1 column 4 (char 3)"),
        ("[1 2]", "Expecting ',' delimiter: line 1 column 4 (char 3)"),
        ("{}{", "Extra data: line 1 column 3 (char 2)"),
        ("01", "Extra data: line 1 column 2 (char 1)"),
        ("1.", "Extra data: line 1 column 2 (char 1)"),
        ("-", "Expecting value: line 1 column 1 (char 0)"),
        ("\"a", "Unterminated string starting at: line 1 column 1 (char 0)"),
        ("\"a\\", "Unterminated string starting at: line 1 column 1 (char 0)"),
        ("\"a\n\"", "Invalid control character at: line 1 column 3 (char 2)"),
        ("\"\\x\"", "Invalid \\escape: line 1 column 2 (char 1)"),
        ("\"\\u12g4\"", "Invalid \\uXXXX escape: line 1 column 3 (char 2)"),
        ("\"\\ud83d\\u12g4\"", "Invalid \\uXXXX escape: line 1 column 9 (char 8)"),
        ("{\n \"é\": x", "Expecting value: line 2 column 7 (char 8)"),
        ("{\r\n\r\n x", "Expecting property name enclosed in double quotes: line 3 column 2 (char 4)"),
        ("\u{feff}{}", "Unexpected UTF-8 BOM (decode using utf-8-sig): line 1 column 1 (char 0)"),
        ("version https://git-lfs", "Expecting value: line 1 column 1 (char 0)"),
    ] {
        assert_eq!(words(text), said, "{text:?}");
    }
}

#[test]
fn what_python_takes_and_strict_json_does_not() {
    let p = parse("{\"a\": [NaN, -Infinity, 1e999], \"s\": \"NaN\"}").unwrap();
    assert_eq!(p.non_finite, ["/a/0", "/a/1", "/a/2"]);
    assert_eq!(p.value["s"], "NaN");
    assert!(p.value["a"][0].is_f64());
    assert_eq!(p.value["a"][1], json!(f64::MIN));
    assert_eq!(parse("\"\\ud800\"").unwrap().value, json!("\u{fffd}"));
    assert_eq!(parse("\"\\ud83d\\ude00\"").unwrap().value, json!("😀"));
    assert_eq!(parse("-0").unwrap().value, json!(0));
    assert_eq!(parse("18446744073709551615").unwrap().value, json!(u64::MAX));
}

#[test]
fn duplicate_keys_have_pointers_and_the_last_counts() {
    let p = parse(r#"{"q": {"a/b": 1, "c": 2, "a/b": 3, "a/b": 4}, "l": [{"x": 0, "x": 1}]}"#).unwrap();
    assert_eq!(p.duplicate_keys, ["/q/a~1b", "/l/0/x"]);
    assert_eq!(p.value["q"], json!({"a/b": 4, "c": 2}));
    assert_eq!(p.value["q"].as_object().unwrap().keys().next().unwrap(), "a/b");
}

#[test]
fn agrees_with_serde_json_on_strict_json() {
    let text = r#" {"a": [1, -2, 3.5e-3, true, false, null, "x\n\u00e9\\"], "b": {"": {}}, "c": []} "#;
    let strict: Value = serde_json::from_str(text).unwrap();
    assert_eq!(parse(text).unwrap().value, strict);
}

#[test]
fn depth_is_bounded() {
    let deep = "[".repeat(100_000);
    assert!(words(&deep).starts_with("nested deeper"));
    let fine = format!("{}{}", "[".repeat(127), "]".repeat(127));
    assert!(parse(&fine).is_ok());
}
