//! A cursor for the fast ways through JSON of a known shape. It says `None` at whatever is unusual; the general parsers
//! then decide, so it may only ever accept what they would.

/// A place in a text.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    s: &'a [u8],
    i: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Cursor { text, s: text.as_bytes(), i: 0 }
    }

    fn blank(&mut self) {
        while matches!(self.s.get(self.i), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.i += 1;
        }
    }

    /// Whether nothing but blanks follows.
    pub(super) fn at_end(&mut self) -> bool {
        self.blank();
        self.i == self.s.len()
    }

    /// What is left of the text.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.i..).unwrap_or_default()
    }

    /// Moves on by `n` bytes.
    pub(super) fn advance(&mut self, n: usize) {
        self.i += n;
    }

    /// The next byte that is no blank, left in place.
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.blank();
        self.s.get(self.i).copied()
    }

    /// The next byte that is no blank.
    pub(super) fn next(&mut self) -> Option<u8> {
        let b = self.peek()?;
        self.i += 1;
        Some(b)
    }

    /// The next byte that is no blank, which must be `want`.
    pub(super) fn token(&mut self, want: u8) -> Option<()> {
        (self.next()? == want).then_some(())
    }

    /// Goes on behind `word`, which must be next.
    pub(super) fn exactly(&mut self, word: &[u8]) -> Option<()> {
        self.skip(word).then_some(())
    }

    /// Skips `word` when the text goes on with exactly that.
    pub(super) fn skip(&mut self, word: &[u8]) -> bool {
        let here = self.s.get(self.i..).is_some_and(|s| s.starts_with(word));
        if here {
            self.i += word.len();
        }
        here
    }

    /// Skips this very string, when it comes next and needs no escapes.
    pub(super) fn quoted(&mut self, text: &str) -> bool {
        self.blank();
        let rest = self.s.get(self.i..).unwrap_or_default();
        let after = rest.strip_prefix(b"\"").and_then(|s| s.strip_prefix(text.as_bytes()));
        let here = after.is_some_and(|s| s.first() == Some(&b'"'));
        if here {
            self.i += text.len() + 2;
        }
        here
    }

    /// After an element of a list or object: `true` for a comma, `false` for the closing bracket.
    pub(super) fn more(&mut self, close: u8) -> Option<bool> {
        match self.next()? {
            b',' => Some(true),
            b if b == close => Some(false),
            _ => None,
        }
    }

    /// A string without escapes, and its byte offset.
    pub(super) fn string(&mut self) -> Option<(usize, &'a str)> {
        self.token(b'"')?;
        let start = self.i;
        let rest = self.s.get(start..)?;
        let len = memchr::memchr2(b'"', b'\\', rest).filter(|end| rest.get(*end) == Some(&b'"'))?;
        // The smallest rather than any: that is looked for in sixteen bytes at once.
        if rest.get(..len)?.iter().fold(b' ', |least, b| least.min(*b)) < b' ' {
            return None;
        }
        self.i = start + len + 1;
        Some((start, self.text.get(start..start + len)?))
    }

    /// A natural number as JSON writes it.
    pub(super) fn number(&mut self) -> Option<u64> {
        self.blank();
        let start = self.i;
        let mut n = 0u64;
        while let Some(eight) = self.s.get(self.i..).and_then(|s| s.first_chunk::<8>()) {
            let (part, digits) = leading_digits(*eight);
            n = n.checked_mul(*POWERS.get(digits)?)?.checked_add(part)?;
            self.i += digits;
            if digits < 8 {
                break;
            }
        }
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
}

/// Of ten.
const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The number that eight characters begin with, and how many of them it takes: all at once, since offsets are half of
/// what a header is.
fn leading_digits(eight: [u8; 8]) -> (u64, usize) {
    const LOW: u64 = 0x0101_0101_0101_0101;
    // What is no digit is more than nine now.
    let values = u64::from_le_bytes(eight) ^ (LOW * 0x30);
    let others = (((values & (LOW * 0x7f)) + LOW * 0x76) | values) & (LOW * 0x80);
    let digits = others.trailing_zeros() as usize / 8;
    // Zeros in front, the last digit in the highest byte; then neighbours are put together three times.
    let v = values.checked_shl(64 - 8 * digits as u32).unwrap_or(0);
    let v = (v.wrapping_mul(10).wrapping_add(v >> 8)) & 0x00ff_00ff_00ff_00ff;
    let v = (v.wrapping_mul(100).wrapping_add(v >> 16)) & 0x0000_ffff_0000_ffff;
    let v = (v.wrapping_mul(10_000).wrapping_add(v >> 32)) & 0xffff_ffff;
    (v, digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place, against the plain definition.
    #[test]
    fn strings_end_where_they_should() {
        for len in 0..40 {
            for at in 0..len {
                for b in 0..128u8 {
                    let mut s = vec![b'x'; len];
                    s[at] = b;
                    let text = format!("\"{}\"", String::from_utf8(s).unwrap());
                    let wanted = match b {
                        b'"' => Some((1, &text[1..=at])),
                        b'\\' | 0..=0x1f => None,
                        _ => Some((1, &text[1..=len])),
                    };
                    assert_eq!(Cursor::new(&text).string(), wanted, "{b} at {at} of {len}");
                }
            }
        }
        assert_eq!(Cursor::new("\"é\"").string(), Some((1, "é")));
        assert_eq!(Cursor::new("\"abc").string(), None);
    }

    /// Every byte after every number of digits, against the plain definition.
    #[test]
    fn numbers_end_where_they_should() {
        for digits in 0..=8 {
            for b in 0..=255u8 {
                let mut eight = *b"12345678";
                if let Some(place) = eight.get_mut(digits) {
                    *place = b;
                }
                let count = eight.iter().position(|b| !b.is_ascii_digit()).unwrap_or(8);
                let number = eight[..count].iter().fold(0, |n, d| n * 10 + u64::from(d - b'0'));
                assert_eq!(leading_digits(eight), (number, count), "{eight:?}");
            }
        }
        assert_eq!(leading_digits(*b"99999999"), (99_999_999, 8));
    }

    #[test]
    fn numbers_of_any_length() {
        for n in (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit]).chain([u64::MAX]) {
            for after in ["", ",", "]}          ", ",12345678"] {
                let text = format!("{n}{after}");
                let mut cursor = Cursor::new(&text);
                assert_eq!((cursor.number(), cursor.rest()), (Some(n), after), "{text}");
            }
        }
    }

    #[test]
    fn numbers_are_strict() {
        let number = |text| Cursor::new(text).number();
        assert_eq!(number(" 18446744073709551615,"), Some(u64::MAX));
        assert_eq!(number("0]"), Some(0));
        for no in ["", "-1", "01", "1.5", "1e3", "18446744073709551616"] {
            assert_eq!(number(no), None, "{no}");
        }
    }
}
