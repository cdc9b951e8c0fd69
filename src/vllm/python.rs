//! Python's words for JSON values: `repr`, `str`, type names. vLLM prints them, so they have to be the same.

use serde_json::{Map, Value};

/// `type(value).__name__`.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

/// `str(value)`.
pub fn display(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        other => repr(other),
    }
}

/// `repr(value)`.
pub fn repr(value: &Value) -> String {
    let mut out = String::new();
    write_repr(value, &mut out);
    out
}

/// `repr` of an object's entries.
pub fn repr_map(map: &Map<String, Value>) -> String {
    let mut out = String::new();
    write_map(map, &mut out);
    out
}

fn write_map(map: &Map<String, Value>, out: &mut String) {
    out.push('{');
    for (i, (key, value)) in map.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        out.push_str(&repr_str(key));
        out.push_str(": ");
        write_repr(value, out);
    }
    out.push('}');
}

fn write_repr(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(n) => match n.as_f64() {
            Some(f) if n.is_f64() => out.push_str(&repr_float(f)),
            _ => out.push_str(&n.to_string()),
        },
        Value::String(s) => out.push_str(&repr_str(s)),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_repr(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => write_map(map, out),
    }
}

fn repr_float(f: f64) -> String {
    // Rust's shortest digits and thresholds are Python's; only the exponent is written differently.
    let text = format!("{f:?}");
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let (sign, number) = match exponent.strip_prefix('-') {
                Some(number) => ('-', number),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{number:0>2}")
        }
    }
}

/// `repr` of a string.
pub fn repr_str(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if !unprintable(c) => out.push(c),
            c => {
                let n = u32::from(c);
                out.push_str(&match n {
                    0..=0xff => format!("\\x{n:02x}"),
                    0x100..=0xffff => format!("\\u{n:04x}"),
                    _ => format!("\\U{n:08x}"),
                });
            }
        }
    }
    out.push(quote);
    out
}

fn unprintable(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
}
/// A message with `{field}` and, for lists, `{field.len}` filled in from a config.
pub fn fill(message: &str, config: &Value) -> String {
    let mut text = message.to_owned();
    for (k, v) in config.as_object().into_iter().flatten() {
        if !text.contains('{') {
            break;
        }
        text = text.replace(&format!("{{{k}}}"), &display(v));
        if let Value::Array(items) = v {
            text = text.replace(&format!("{{{k}.len}}"), &items.len().to_string());
        }
    }
    text
}
