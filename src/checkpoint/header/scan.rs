//! The fast way: `{"name":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},…}` and nothing else.
//!
//! Whatever is unusual (an escape, a fourth field, an unknown dtype, a fault) ends the scan; [`super::loose`] then
//! reads the same text from the start. So this may only ever accept what serde_json would.

use super::super::cursor::Cursor;
use super::{Dtype, Entries, Raw, Shape};

/// The entries, in `tensors`, which is empty; or `None` when the text is not of the usual shape.
pub(super) fn scan<'a>(text: &'a str, tensors: Vec<Raw<'a>>) -> Option<Entries<'a>> {
    let mut s = Scanner { c: Cursor::new(text), shape: Vec::with_capacity(8) };
    let mut out = Entries { tensors, ..Entries::default() };
    let mut metadata = false;
    s.c.token(b'{')?;
    if s.c.peek()? == b'}' {
        s.c.advance(1);
    } else {
        loop {
            let (_, name) = s.c.string()?;
            s.c.token(b':')?;
            if name == "__metadata__" {
                if std::mem::replace(&mut metadata, true) {
                    return None;
                }
                s.metadata(&mut out.metadata)?;
            } else {
                out.tensors.push(s.tensor(name)?);
            }
            if !s.c.more(b'}')? {
                break;
            }
        }
    }
    s.c.at_end().then_some(out)
}

/// Nearly all tensors of large models.
const FREQUENT: [(&[u8], Dtype); 3] =
    [(b"\"BF16\"", Dtype::BF16), (b"\"F8_E4M3\"", Dtype::F8_E4M3), (b"\"F32\"", Dtype::F32)];

struct Scanner<'a> {
    c: Cursor<'a>,
    shape: Vec<u64>,
}

impl<'a> Scanner<'a> {
    fn dtype(&mut self) -> Option<Dtype> {
        for (tag, dtype) in FREQUENT {
            if self.c.skip(tag) {
                return Some(dtype);
            }
        }
        Dtype::from_tag_bytes(self.c.string()?.1.as_bytes())
    }

    fn shape(&mut self) -> Option<Shape> {
        self.c.token(b'[')?;
        self.shape.clear();
        if self.c.peek() == Some(b']') {
            self.c.advance(1);
            return Some(Shape::default());
        }
        loop {
            let n = self.c.number()?;
            self.shape.push(n);
            if !self.c.more(b']')? {
                return Some(self.shape.as_slice().into());
            }
        }
    }

    fn span(&mut self) -> Option<(u64, u64)> {
        self.c.token(b'[')?;
        let start = self.c.number()?;
        self.c.token(b',')?;
        let end = self.c.number()?;
        self.c.token(b']')?;
        Some((start, end))
    }

    /// The three fields as every writer spells them: in this order, without blanks between them.
    fn usual(&mut self) -> Option<(Dtype, Shape, (u64, u64))> {
        self.c.exactly(b"{\"dtype\":")?;
        let dtype = self.dtype()?;
        self.c.exactly(b",\"shape\":")?;
        let shape = self.shape()?;
        self.c.exactly(b",\"data_offsets\":")?;
        let span = self.span()?;
        self.c.exactly(b"}")?;
        Some((dtype, shape, span))
    }

    fn tensor(&mut self, name: &'a str) -> Option<Raw<'a>> {
        let start = self.c;
        if let Some((dtype, shape, span)) = self.usual() {
            return Some(Raw { name: name.into(), dtype: Some(dtype), shape: Some(shape), span: Some(span) });
        }
        self.c = start;
        self.c.token(b'{')?;
        let (mut dtype, mut shape, mut span) = (None, None, None);
        for field in 0..3 {
            if field > 0 {
                self.c.token(b',')?;
            }
            let (_, key) = self.c.string()?;
            self.c.token(b':')?;
            match key {
                "dtype" => dtype = Some(self.dtype()?),
                "shape" => shape = Some(self.shape()?),
                "data_offsets" => span = Some(self.span()?),
                _ => return None,
            }
        }
        self.c.token(b'}')?;
        // One of them twice means that another is missing.
        Some(Raw { name: name.into(), dtype: Some(dtype?), shape: Some(shape?), span: Some(span?) })
    }

    fn metadata(&mut self, out: &mut Vec<(String, String)>) -> Option<()> {
        self.c.token(b'{')?;
        if self.c.peek() == Some(b'}') {
            self.c.advance(1);
            return Some(());
        }
        loop {
            let (_, key) = self.c.string()?;
            self.c.token(b':')?;
            let (_, value) = self.c.string()?;
            out.push((key.to_owned(), value.to_owned()));
            if !self.c.more(b'}')? {
                return Some(());
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
        let e = scan(text, Vec::new()).unwrap();
        assert_eq!(e.metadata, [("format".to_owned(), "pt".to_owned())]);
        assert_eq!(e.tensors.len(), 2);
        assert_eq!(e.tensors[1].span, Some((8, 8)));
        assert!(scan("{}", Vec::new()).unwrap().tensors.is_empty());
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
            assert!(scan(&format!("{{\"a\":{field}}}"), Vec::new()).is_none(), "{field}");
        }
        assert!(scan("{} x", Vec::new()).is_none());
        assert!(scan("{\"a\\n\":{}}", Vec::new()).is_none());
    }
}
