//! A cursor for the fast ways through JSON of a known shape. It says `None` at whatever is unusual; the general parsers
//! then decide, so it may only ever accept what they would.

/// Numbers of so many digits fit 64 bits, whatever they are.
const SAFE_DIGITS: usize = 19;

/// A place in a text.
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
        let end = start + plain(self.s.get(start..)?);
        if self.s.get(end) != Some(&b'"') {
            return None;
        }
        self.i = end + 1;
        Some((start, self.text.get(start..end)?))
    }

    /// A natural number as JSON writes it.
    pub(super) fn number(&mut self) -> Option<u64> {
        self.blank();
        let rest = self.s.get(self.i..)?;
        let digits = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
        let (safe, more) = rest.get(..digits)?.split_at(digits.min(SAFE_DIGITS));
        let n = safe.iter().fold(0u64, |n, d| n * 10 + u64::from(d - b'0'));
        let n = more.iter().try_fold(n, |n, d| n.checked_mul(10)?.checked_add(u64::from(d - b'0')))?;
        if digits == 0 || (digits > 1 && rest.first() == Some(&b'0')) {
            return None;
        }
        self.i += digits;
        // `1.0` and `1e3` are floats, and no place for them.
        (!matches!(self.s.get(self.i), Some(b'.' | b'e' | b'E'))).then_some(n)
    }
}

/// Length of the run before the first quote, backslash or control character: eight bytes at a time, since names are
/// most of what there is to read.
fn plain(s: &[u8]) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The high bit of each byte that is zero, exact up to the first one.
    let zero = |x: u64| x.wrapping_sub(LOW) & !x & HIGH;
    let (chunks, tail) = s.as_chunks::<8>();
    for (i, chunk) in chunks.iter().enumerate() {
        let x = u64::from_le_bytes(*chunk);
        let control = x.wrapping_sub(LOW * 0x20) & !x & HIGH;
        let found = control | zero(x ^ (LOW * u64::from(b'"'))) | zero(x ^ (LOW * u64::from(b'\\')));
        if found != 0 {
            return i * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let stop = |b: &u8| matches!(b, b'"' | b'\\' | 0..=0x1f);
    chunks.len() * 8 + tail.iter().position(stop).unwrap_or(tail.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place, against the plain definition.
    #[test]
    fn runs_end_where_they_should() {
        for len in 0..20 {
            for at in 0..len {
                for b in 0..=255u8 {
                    let mut s = vec![0xe9; len];
                    s[at] = b;
                    let stop = |b: &u8| *b == b'"' || *b == b'\\' || *b < 0x20;
                    assert_eq!(plain(&s), s.iter().position(stop).unwrap_or(len), "{b} at {at} of {len}");
                }
            }
        }
        assert_eq!(plain(b"abcdefghijk\"\""), 11);
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
