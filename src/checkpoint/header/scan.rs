//! The fast way: `{"name":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},…}` and nothing else.
//!
//! Whatever is unusual (an escape, a fourth field, an unknown dtype, a fault) ends the scan; [`super::loose`] then
//! reads the same text from the start. So this may only ever accept what serde_json would.

use super::{Dtype, Entries, Raw};

/// The entries, or `None` when the text is not of the usual shape.
pub(super) fn scan(text: &str) -> Option<Entries> {
    let mut s = Scanner { text, s: text.as_bytes(), i: 0, shape: Vec::with_capacity(8) };
    // A tensor takes a hundred bytes or more; a small guess costs little, and a hostile header gains nothing.
    let mut out = Entries { tensors: Vec::with_capacity(text.len() / 128), ..Entries::default() };
    let mut metadata = false;
    s.token(b'{')?;
    if s.peek() == Some(b'}') {
        s.i += 1;
    } else {
        loop {
            let name = s.string()?;
            s.token(b':')?;
            if name == "__metadata__" {
                if std::mem::replace(&mut metadata, true) {
                    return None;
                }
                s.metadata(&mut out.metadata)?;
            } else {
                out.tensors.push(s.tensor(name)?);
            }
            match s.next()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
    }
    s.blank();
    (s.i == s.s.len()).then_some(out)
}

struct Scanner<'a> {
    text: &'a str,
    s: &'a [u8],
    i: usize,
    shape: Vec<u64>,
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

    /// Skips `word` when the text goes on with exactly that.
    fn skip(&mut self, word: &[u8]) -> bool {
        let here = self.s.get(self.i..).is_some_and(|s| s.starts_with(word));
        if here {
            self.i += word.len();
        }
        here
    }

    /// A string without escapes.
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

    /// A natural number as JSON writes it.
    fn number(&mut self) -> Option<u64> {
        self.blank();
        let start = self.i;
        let mut n = 0u64;
        while let Some(d) = self.s.get(self.i).filter(|b| b.is_ascii_digit()) {
            n = n.checked_mul(10)?.checked_add(u64::from(d - b'0'))?;
            self.i += 1;
        }
        let digits = self.i - start;
        if digits == 0 || (digits > 1 && self.s.get(start) == Some(&b'0')) {
            return None;
        }
        // `1.0` and `1e3` are floats, and no place for them.
        (!matches!(self.s.get(self.i), Some(b'.' | b'e' | b'E'))).then_some(n)
    }

    fn dtype(&mut self) -> Option<Dtype> {
        let tag = self.string()?.as_bytes();
        match tag {
            b"BF16" => Some(Dtype::BF16),
            b"F32" => Some(Dtype::F32),
            b"F8_E4M3" => Some(Dtype::F8_E4M3),
            tag => Dtype::from_tag_bytes(tag),
        }
    }

    fn shape(&mut self) -> Option<Box<[u64]>> {
        self.token(b'[')?;
        self.shape.clear();
        if self.peek() == Some(b']') {
            self.i += 1;
            return Some(Box::default());
        }
        loop {
            let n = self.number()?;
            self.shape.push(n);
            match self.next()? {
                b',' => {}
                b']' => return Some(self.shape.as_slice().into()),
                _ => return None,
            }
        }
    }

    fn span(&mut self) -> Option<(u64, u64)> {
        self.token(b'[')?;
        let start = self.number()?;
        self.token(b',')?;
        let end = self.number()?;
        self.token(b']')?;
        Some((start, end))
    }

    fn tensor(&mut self, name: &str) -> Option<Raw> {
        self.token(b'{')?;
        let (mut dtype, mut shape, mut span) = (None, None, None);
        for field in 0..3 {
            if field > 0 {
                self.token(b',')?;
            }
            // The way every writer spells it first; whitespace and other orders after that.
            let key = if self.skip(b"\"dtype\":") {
                "dtype"
            } else if self.skip(b"\"shape\":") {
                "shape"
            } else if self.skip(b"\"data_offsets\":") {
                "data_offsets"
            } else {
                let key = self.string()?;
                self.token(b':')?;
                key
            };
            match key {
                "dtype" => dtype = Some(self.dtype()?),
                "shape" => shape = Some(self.shape()?),
                "data_offsets" => span = Some(self.span()?),
                _ => return None,
            }
        }
        self.token(b'}')?;
        // One of them twice means that another is missing.
        Some(Raw { name: name.into(), dtype: Some(dtype?), shape: Some(shape?), span: Some(span?) })
    }

    fn metadata(&mut self, out: &mut Vec<(String, String)>) -> Option<()> {
        self.token(b'{')?;
        if self.peek() == Some(b'}') {
            self.i += 1;
            return Some(());
        }
        loop {
            let key = self.string()?;
            self.token(b':')?;
            let value = self.string()?;
            out.push((key.to_owned(), value.to_owned()));
            match self.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_shapes_in_any_order_and_spacing() {
        let text = r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
            "b" : { "data_offsets" : [ 8 , 8 ] , "shape" : [ ] , "dtype" : "U8" } }   "#;
        let e = scan(text).unwrap();
        assert_eq!(e.metadata, [("format".to_owned(), "pt".to_owned())]);
        assert_eq!(e.tensors.len(), 2);
        assert_eq!(e.tensors[1].span, Some((8, 8)));
        assert!(scan("{}").unwrap().tensors.is_empty());
    }

    #[test]
    fn anything_else_is_left_to_the_general_reader() {
        for field in [
            r#"{"dtype":"F7","shape":[2],"data_offsets":[0,8]}"#,
            r#"{"dtype":"F32","shape":[02],"data_offsets":[0,8]}"#,
            r#"{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}"#,
            r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}"#,
            r#"{"dtype":"F32","shape":[2],"shape":[2]}"#,
            r#"{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]}"#,
            r#"{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}"#,
            r#"{"dtype":"F32","shape":[2,],"data_offsets":[0,8]}"#,
        ] {
            assert!(scan(&format!("{{\"a\":{field}}}")).is_none(), "{field}");
        }
        assert!(scan("{} x").is_none());
        assert!(scan("{\"a\\n\":{}}").is_none());
    }
}
