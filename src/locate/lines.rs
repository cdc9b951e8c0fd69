//! Lines of a text, without a list of them: an index has 92,000.

use std::ops::Range;

use memchr::memchr_iter;

/// Bytes that are looked at for one question, besides a line of their own.
const BLOCK: usize = 16 << 10;

/// Where lines begin and end.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    text: &'a [u8],
    /// Line breaks before each block of the text, and in all of it.
    before: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let text = text.as_bytes();
        let mut before = vec![0];
        let mut sum = 0;
        for block in text.chunks(BLOCK) {
            sum += memchr_iter(b'\n', block).count();
            before.push(sum);
        }
        Lines { text, before }
    }

    /// How many there are; what follows the last line break is one.
    pub(super) fn count(&self) -> usize {
        self.before.last().map_or(1, |breaks| breaks + 1)
    }

    /// The line that holds a byte, from 0.
    pub(super) fn holding(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        let block = at / BLOCK;
        let rest = self.text.get(block * BLOCK..at).unwrap_or_default();
        self.before.get(block).copied().unwrap_or_default() + memchr_iter(b'\n', rest).count()
    }

    /// Offset of the first byte of a line.
    pub(super) fn start(&self, line: usize) -> Option<usize> {
        let Some(nth) = line.checked_sub(1) else { return Some(0) };
        // The block with the line break in front of it.
        let block = self.before.partition_point(|before| *before <= nth).checked_sub(1)?;
        let here = self.text.get(block * BLOCK..)?;
        let here = here.get(..BLOCK).unwrap_or(here);
        Some(block * BLOCK + memchr_iter(b'\n', here).nth(nth - self.before.get(block)?)? + 1)
    }

    /// A line without its end.
    pub(super) fn range(&self, line: usize) -> Option<Range<usize>> {
        let start = self.start(line)?;
        let end = self.start(line + 1).map_or(self.text.len(), |next| next - 1);
        let end = if self.text.get(start..end)?.ends_with(b"\r") { end - 1 } else { end };
        Some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a list of all lines, with breaks at, before and after the ends of blocks.
    #[test]
    fn lines_are_those_of_a_list() {
        let far = |n: usize| "x".repeat(n);
        for text in [
            String::new(),
            "\n".into(),
            "a\r\nb\n\nc".into(),
            far(3 * BLOCK),
            format!("{}\n{}\n", far(BLOCK - 1), far(BLOCK - 1)),
            format!("{}\n{}\r\n\n{}", far(BLOCK), far(2 * BLOCK - 3), far(5)),
            "\n".repeat(BLOCK + 3),
        ] {
            let lines = Lines::new(&text);
            let starts: Vec<usize> =
                std::iter::once(0).chain(memchr_iter(b'\n', text.as_bytes()).map(|i| i + 1)).collect();
            assert_eq!(lines.count(), starts.len());
            assert_eq!(lines.start(starts.len()), None);
            let wanted: Vec<&str> = text.split('\n').map(|l| l.strip_suffix('\r').unwrap_or(l)).collect();
            // Of many lines those at ends, of the text and of a block.
            let ends = |line: &usize| [0, BLOCK, starts.len()].iter().any(|end| line.abs_diff(*end) < 5);
            for line in (0..starts.len()).filter(ends) {
                assert_eq!(lines.start(line), Some(starts[line]), "{line}");
                assert_eq!(lines.holding(starts[line]), line);
                assert_eq!(&text[lines.range(line).unwrap()], wanted[line]);
            }
            assert_eq!(lines.holding(text.len() + 7), starts.len() - 1);
        }
    }
}
