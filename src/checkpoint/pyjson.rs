//! JSON as Python's `json.loads` reads it, since that is what vLLM and transformers read it with.
//!
//! The differences to strict JSON are few and real: `NaN` and `Infinity` are numbers, of duplicate keys the last one
//! counts (in the place of the first), lone surrogates pass, and errors have words of their own, which vLLM prints.
//! The order of the checks is that of CPython 3.11's `_json.c`, so that the words and positions are the same.

use serde_json::{Map, Number, Value};

/// Deeper documents are not read. Python's own limit is higher, but no config comes near either.
const MAX_DEPTH: usize = 128;

/// What `json.loads` would return, and two things that it forgets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parsed {
    /// The value. `Infinity` is `f64::MAX`, `-Infinity` is `f64::MIN`, `NaN` the smallest positive number, because
    /// [`Value`] cannot hold them and their *type* is what config checks look at.
    pub(crate) value: Value,
    /// JSON pointers of keys that occur more than once in one object.
    pub(crate) duplicate_keys: Vec<String>,
    /// JSON pointers of numbers that are not finite.
    pub(crate) non_finite: Vec<String>,
}

/// A `json.decoder.JSONDecodeError`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PyError {
    /// Python's whole text: `Expecting value: line 1 column 1 (char 0)`.
    pub(crate) text: String,
    /// Byte offset.
    pub(crate) at: usize,
}

/// `json.loads(text)`.
pub(crate) fn parse(text: &str) -> Result<Parsed, PyError> {
    if text.starts_with('\u{feff}') {
        return Err(error(text, "Unexpected UTF-8 BOM (decode using utf-8-sig)", 0));
    }
    let mut p =
        Parser { text, s: text.as_bytes(), path: Vec::new(), duplicate_keys: Vec::new(), non_finite: Vec::new() };
    let fail = |Fail { what, at }| error(text, what, at);
    let start = p.skip(0);
    let (value, end) = p.value(start).map_err(fail)?;
    let end = p.skip(end);
    if end != p.s.len() {
        return Err(error(text, "Extra data", end));
    }
    Ok(Parsed { value, duplicate_keys: p.duplicate_keys, non_finite: p.non_finite })
}

/// The words of a `JSONDecodeError` at a byte offset. Python counts characters, after `open()` has turned `\r\n` into
/// `\n`.
fn error(text: &str, what: &str, at: usize) -> PyError {
    let mut end = at.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (mut chars, mut line, mut column) = (0usize, 1usize, 1usize);
    let mut rest = text[..end].chars().peekable();
    while let Some(c) = rest.next() {
        if c == '\r' && rest.peek() == Some(&'\n') {
            continue;
        }
        chars += 1;
        column += 1;
        if matches!(c, '\n' | '\r') {
            line += 1;
            column = 1;
        }
    }
    PyError { text: format!("{what}: line {line} column {column} (char {chars})"), at: end }
}

/// A fault, before its position is counted out.
struct Fail {
    what: &'static str,
    at: usize,
}

fn fail<T>(what: &'static str, at: usize) -> Result<T, Fail> {
    Err(Fail { what, at })
}

enum Step {
    Key(String),
    Index(usize),
}

struct Parser<'a> {
    text: &'a str,
    s: &'a [u8],
    path: Vec<Step>,
    duplicate_keys: Vec<String>,
    non_finite: Vec<String>,
}

impl Parser<'_> {
    fn skip(&self, mut i: usize) -> usize {
        while matches!(self.s.get(i), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            i += 1;
        }
        i
    }

    /// `scan_once_unicode`.
    fn value(&mut self, i: usize) -> Result<(Value, usize), Fail> {
        let rest = self.s.get(i..).unwrap_or_default();
        let literal = |word: &str| rest.starts_with(word.as_bytes());
        match rest.first() {
            Some(b'"') => {
                let (string, end) = self.string(i + 1)?;
                Ok((Value::String(string), end))
            }
            Some(b'{' | b'[') if self.path.len() >= MAX_DEPTH => fail("nested deeper than 128 levels", i),
            Some(b'{') => self.object(i + 1),
            Some(b'[') => self.array(i + 1),
            Some(b'n') if literal("null") => Ok((Value::Null, i + 4)),
            Some(b't') if literal("true") => Ok((Value::Bool(true), i + 4)),
            Some(b'f') if literal("false") => Ok((Value::Bool(false), i + 5)),
            Some(b'N') if literal("NaN") => Ok((self.float(f64::NAN), i + 3)),
            Some(b'I') if literal("Infinity") => Ok((self.float(f64::INFINITY), i + 8)),
            Some(b'-') if literal("-Infinity") => Ok((self.float(f64::NEG_INFINITY), i + 9)),
            _ => self.number(i),
        }
    }

    /// `_parse_object_unicode`; `i` is after the brace.
    fn object(&mut self, i: usize) -> Result<(Value, usize), Fail> {
        let mut map = Map::new();
        let mut i = self.skip(i);
        if self.s.get(i) == Some(&b'}') {
            return Ok((Value::Object(map), i + 1));
        }
        loop {
            if self.s.get(i) != Some(&b'"') {
                return fail("Expecting property name enclosed in double quotes", i);
            }
            let (key, end) = self.string(i + 1)?;
            i = self.skip(end);
            if self.s.get(i) != Some(&b':') {
                return fail("Expecting ':' delimiter", i);
            }
            i = self.skip(i + 1);
            self.path.push(Step::Key(key));
            let (value, end) = self.value(i)?;
            if let Some(Step::Key(key)) = self.path.pop() {
                // `insert` keeps the first place and the last value: a Python dict.
                if map.contains_key(&key) {
                    self.path.push(Step::Key(key.clone()));
                    let pointer = self.pointer();
                    self.path.pop();
                    if !self.duplicate_keys.contains(&pointer) {
                        self.duplicate_keys.push(pointer);
                    }
                }
                map.insert(key, value);
            }
            i = self.skip(end);
            match self.s.get(i) {
                Some(b'}') => return Ok((Value::Object(map), i + 1)),
                Some(b',') => i = self.skip(i + 1),
                _ => return fail("Expecting ',' delimiter", i),
            }
        }
    }

    /// `_parse_array_unicode`; `i` is after the bracket.
    fn array(&mut self, i: usize) -> Result<(Value, usize), Fail> {
        let mut list = Vec::new();
        let mut i = self.skip(i);
        if self.s.get(i) == Some(&b']') {
            return Ok((Value::Array(list), i + 1));
        }
        loop {
            self.path.push(Step::Index(list.len()));
            let (value, end) = self.value(i)?;
            self.path.pop();
            list.push(value);
            i = self.skip(end);
            match self.s.get(i) {
                Some(b']') => return Ok((Value::Array(list), i + 1)),
                Some(b',') => i = self.skip(i + 1),
                _ => return fail("Expecting ',' delimiter", i),
            }
        }
    }

    /// `scanstring_unicode`; `i` is after the quote.
    fn string(&self, i: usize) -> Result<(String, usize), Fail> {
        let begin = i - 1;
        let mut out = String::new();
        let mut run = i;
        let mut i = i;
        loop {
            match self.s.get(i) {
                None => return fail("Unterminated string starting at", begin),
                Some(b'"') => {
                    out.push_str(self.text.get(run..i).unwrap_or_default());
                    return Ok((out, i + 1));
                }
                Some(b'\\') => {
                    out.push_str(self.text.get(run..i).unwrap_or_default());
                    i = self.escape(begin, i, &mut out)?;
                    run = i;
                }
                Some(0..=0x1f) => return fail("Invalid control character at", i),
                Some(_) => i += 1,
            }
        }
    }

    /// One escape; `i` is at the backslash. Returns what follows it.
    fn escape(&self, begin: usize, i: usize, out: &mut String) -> Result<usize, Fail> {
        let Some(&c) = self.s.get(i + 1) else {
            return fail("Unterminated string starting at", begin);
        };
        let plain = match c {
            b'"' | b'\\' | b'/' => char::from(c),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let bad = Fail { what: "Invalid \\uXXXX escape", at: i + 1 };
                // Python wants one more character after the digits, if only the closing quote.
                let high = self.hex4(i + 2).filter(|_| self.s.len() > i + 6).ok_or(bad)?;
                let mut end = i + 6;
                let mut code = high;
                let paired = (0xd800..0xdc00).contains(&high)
                    && self.s.get(end..end + 2) == Some(b"\\u".as_slice())
                    && self.s.len() > end + 6;
                if paired {
                    let bad = Fail { what: "Invalid \\uXXXX escape", at: end + 1 };
                    let low = self.hex4(end + 2).ok_or(bad)?;
                    if (0xdc00..0xe000).contains(&low) {
                        code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                        end += 6;
                    }
                }
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                return Ok(end);
            }
            _ => return fail("Invalid \\escape", i),
        };
        out.push(plain);
        Ok(i + 2)
    }

    fn hex4(&self, i: usize) -> Option<u32> {
        let digits = self.s.get(i..i + 4)?;
        digits.iter().try_fold(0, |n, &d| Some(n * 16 + char::from(d).to_digit(16)?))
    }

    /// `_match_number_unicode`: reads as far as it makes sense, and leaves the rest to be complained about.
    fn number(&mut self, start: usize) -> Result<(Value, usize), Fail> {
        let digit = |i: usize| self.s.get(i).is_some_and(u8::is_ascii_digit);
        let mut i = start;
        if self.s.get(i) == Some(&b'-') {
            i += 1;
        }
        match self.s.get(i) {
            Some(b'0') => i += 1,
            Some(b'1'..=b'9') => {
                while digit(i) {
                    i += 1;
                }
            }
            _ => return fail("Expecting value", start),
        }
        let mut is_float = false;
        if self.s.get(i) == Some(&b'.') && digit(i + 1) {
            is_float = true;
            i += 2;
            while digit(i) {
                i += 1;
            }
        }
        if matches!(self.s.get(i), Some(b'e' | b'E')) {
            let mut j = i + 1;
            if matches!(self.s.get(j), Some(b'+' | b'-')) {
                j += 1;
            }
            if digit(j) {
                while digit(j) {
                    j += 1;
                }
                is_float = true;
                i = j;
            }
        }
        let word = self.text.get(start..i).unwrap_or_default();
        if !is_float {
            if let Ok(n) = word.parse::<i64>() {
                return Ok((n.into(), i));
            }
            if let Ok(n) = word.parse::<u64>() {
                return Ok((n.into(), i));
            }
        }
        let n = word.parse().unwrap_or(f64::NAN);
        Ok((self.float(n), i))
    }

    fn float(&mut self, n: f64) -> Value {
        if !n.is_finite() {
            let pointer = self.pointer();
            self.non_finite.push(pointer);
        }
        let n = if n.is_nan() { f64::MIN_POSITIVE } else { n.clamp(f64::MIN, f64::MAX) };
        Number::from_f64(n).map_or(Value::Null, Value::Number)
    }

    fn pointer(&self) -> String {
        let mut out = String::new();
        for step in &self.path {
            out.push('/');
            match step {
                Step::Key(key) => out.push_str(&escape_pointer(key)),
                Step::Index(i) => out.push_str(&i.to_string()),
            }
        }
        out
    }
}

/// A key as a step of a JSON pointer (RFC 6901).
pub fn escape_pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
