//! What pydantic makes of JSON values: coercions, and the text of a `ValidationError`. vLLM prints these words, so they have
//! to be the same.

use serde_json::Value;

pub(super) use crate::facts::expr::truthy;
pub(super) use crate::vllm::python::{display, repr, repr_map, repr_str, type_name};

use crate::vllm::trace::Raised;

/// An exception.
pub(super) fn raised(error_type: &str, text: impl Into<String>) -> Raised {
    Raised::new(error_type, text)
}

/// `QuantizationConfig.get_from_keys`: the first of these keys.
pub(super) fn required<'v>(config: &'v Value, keys: &[&str]) -> Result<&'v Value, (String, Raised)> {
    keys.iter().find_map(|k| config.get(*k)).ok_or_else(|| {
        let list: Vec<String> = keys.iter().map(|k| format!("'{k}'")).collect();
        let text = format!("Cannot find any of [{}] in the model's quantization config.", list.join(", "));
        (String::new(), raised("ValueError", text))
    })
}

/// One line of a `ValidationError`.
#[derive(Debug)]
pub(super) struct Issue {
    /// Steps to the value; empty for the model itself.
    pub(super) loc: Vec<String>,
    /// The message.
    pub(super) text: String,
    /// pydantic's type of error.
    pub(super) kind: &'static str,
    /// The value.
    pub(super) input: Value,
}

impl Issue {
    /// An issue with the value at `loc`.
    pub(super) fn new(loc: &[&str], kind: &'static str, text: impl Into<String>, input: &Value) -> Self {
        let loc = loc.iter().map(|s| (*s).to_owned()).collect();
        Issue { loc, text: text.into(), kind, input: input.clone() }
    }

    /// A `ValueError` of a validator.
    pub(super) fn value(loc: &[&str], text: &str, input: &Value) -> Self {
        Issue::new(loc, "value_error", format!("Value error, {text}"), input)
    }
}

/// The `ValidationError` of a model.
pub(super) fn validation_error(model: &str, issues: &[Issue]) -> Raised {
    let s = if issues.len() == 1 { "" } else { "s" };
    let mut text = format!("{} validation error{s} for {model}", issues.len());
    for issue in issues {
        if !issue.loc.is_empty() {
            let steps = issue.loc.iter().map(|l| if l.contains('.') { format!("`{l}`") } else { l.clone() });
            text.push('\n');
            text.push_str(&steps.collect::<Vec<_>>().join("."));
        }
        let (kind, input) = (issue.kind, cut(&repr(&issue.input)));
        text.push_str(&format!("\n  {} [type={kind}, input_value={input}, input_type=", issue.text));
        text.push_str(type_name(&issue.input));
        text.push_str("]\n    For further information visit <url>");
    }
    raised("ValidationError", text)
}

/// pydantic shows 50 bytes of a value.
fn cut(text: &str) -> String {
    if text.len() <= 50 {
        return text.to_owned();
    }
    let (mut head, mut tail) = (25, text.len() - 24);
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    format!("{}...{}", &text[..head], &text[tail..])
}

/// What a coercion says when it fails: pydantic's type and text.
pub(super) type Refusal = (&'static str, &'static str);

/// pydantic's lax `int`. Beyond 64 bits the nearest number.
pub(super) fn to_int(value: &Value) -> Result<i64, Refusal> {
    match value {
        Value::Bool(b) => Ok(i64::from(*b)),
        Value::Number(n) => match (n.as_i64(), n.as_u64(), n.as_f64()) {
            (Some(i), ..) => Ok(i),
            (_, Some(_), _) => Ok(i64::MAX),
            (.., Some(f)) if f.fract() != 0.0 => {
                Err(("int_from_float", "Input should be a valid integer, got a number with a fractional part"))
            }
            // An integer of more than 64 bits arrives as such a float, too; pydantic would take it.
            (.., Some(f)) if f.abs() >= 9.3e18 => {
                Err(("int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size"))
            }
            (.., Some(f)) => Ok(f as i64),
            _ => Err(("int_type", "Input should be a valid integer")),
        },
        Value::String(s) => {
            let text = s.trim();
            let text = match text.split_once('.') {
                Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => whole,
                _ => text,
            };
            int_of_str(text)
                .ok_or(("int_parsing", "Input should be a valid integer, unable to parse string as an integer"))
        }
        _ => Err(("int_type", "Input should be a valid integer")),
    }
}

/// Python's `int("…")`.
pub(super) fn int_of_str(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let grouped = digits.split('_').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let number = grouped.then(|| {
        digits
            .bytes()
            .filter(u8::is_ascii_digit)
            .fold(0i64, |n, b| n.saturating_mul(10).saturating_add(i64::from(b - b'0')))
    })?;
    Some(if negative { -number } else { number })
}

/// pydantic's lax `bool`.
pub(super) fn to_bool(value: &Value) -> Result<bool, Refusal> {
    const PARSING: Refusal = ("bool_parsing", "Input should be a valid boolean, unable to interpret input");
    const TYPE: Refusal = ("bool_type", "Input should be a valid boolean");
    match value {
        Value::Bool(b) => Ok(*b),
        Value::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(0), _) => Ok(false),
            (Some(1), _) => Ok(true),
            (Some(_), _) => Err(PARSING),
            (None, Some(0.0)) => Ok(false),
            (None, Some(1.0)) => Ok(true),
            (None, Some(f)) if n.is_f64() && f.fract() == 0.0 && f.abs() < 9e18 => Err(PARSING),
            _ => Err(TYPE),
        },
        Value::String(s) => match s.to_ascii_lowercase().as_str() {
            "0" | "off" | "f" | "false" | "n" | "no" => Ok(false),
            "1" | "on" | "t" | "true" | "y" | "yes" => Ok(true),
            _ => Err(PARSING),
        },
        _ => Err(TYPE),
    }
}

/// The name `torch.…` of a dtype by its attribute name in torch 2.13, with or without `torch.` before it.
pub(super) fn torch_dtype(name: &str) -> Option<&'static str> {
    const NAMES: &[&str] = &[
        "torch.bfloat16",
        "torch.bits16",
        "torch.bits1x8",
        "torch.bits2x4",
        "torch.bits4x2",
        "torch.bits8",
        "torch.bool",
        "torch.complex128",
        "torch.complex32",
        "torch.complex64",
        "torch.float16",
        "torch.float32",
        "torch.float4_e2m1fn_x2",
        "torch.float64",
        "torch.float8_e4m3fn",
        "torch.float8_e4m3fnuz",
        "torch.float8_e5m2",
        "torch.float8_e5m2fnuz",
        "torch.float8_e8m0fnu",
        "torch.int1",
        "torch.int16",
        "torch.int2",
        "torch.int3",
        "torch.int32",
        "torch.int4",
        "torch.int5",
        "torch.int6",
        "torch.int64",
        "torch.int7",
        "torch.int8",
        "torch.qint32",
        "torch.qint8",
        "torch.quint2x4",
        "torch.quint4x2",
        "torch.quint8",
        "torch.uint1",
        "torch.uint16",
        "torch.uint2",
        "torch.uint3",
        "torch.uint32",
        "torch.uint4",
        "torch.uint5",
        "torch.uint6",
        "torch.uint64",
        "torch.uint7",
        "torch.uint8",
    ];
    let name = name.strip_prefix("torch.").unwrap_or(name);
    let name = match name {
        "bit" => "uint1",
        "cdouble" => "complex128",
        "cfloat" => "complex64",
        "chalf" => "complex32",
        "double" => "float64",
        "float" => "float32",
        "half" => "float16",
        "int" => "int32",
        "long" => "int64",
        "short" => "int16",
        other => other,
    };
    NAMES.iter().copied().find(|full| full.strip_prefix("torch.") == Some(name))
}
