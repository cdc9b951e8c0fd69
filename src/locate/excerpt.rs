//! A few lines of a text, cut and cleaned so that any terminal can show them.

use std::ops::Range;

/// Columns that are shown of a line.
const WIDTH: usize = 200;
/// Columns that are shown before the mark when a line is cut.
const LEAD: usize = 60;

/// Up to three lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Number of the first of `lines`, from 1.
    pub first_line: usize,
    /// The lines, at most about 200 columns each; `…` stands where something was cut.
    pub lines: Vec<String>,
    /// Which of `lines` is marked, from 0.
    pub marked: usize,
    /// What is marked of it, in bytes of that string. Empty at a point, e.g. the end of the file.
    pub mark: Range<usize>,
}

impl Excerpt {
    /// From the line with this number (from 1), the bytes to mark in it, and its neighbours.
    pub(super) fn new(
        number: usize,
        before: Option<&str>,
        line: &str,
        mark: Range<usize>,
        after: Option<&str>,
    ) -> Self {
        let (cut, mark) = window(line, mark);
        let marked = usize::from(before.is_some());
        let plain = |line: &str| window(line, 0..0).0;
        let lines = before.map(plain).into_iter().chain([cut]).chain(after.map(plain)).collect();
        Excerpt { first_line: number - marked, lines, marked, mark }
    }
}

impl Excerpt {
    /// The same in fewer columns.
    pub fn narrow(&self, columns: usize) -> Excerpt {
        // Room for what says that something was cut.
        let most = columns.saturating_sub(2).max(20);
        let mut out = self.clone();
        for (i, line) in out.lines.iter_mut().enumerate() {
            if line.chars().count() <= columns {
                continue;
            }
            let mark = if i == self.marked { self.mark.clone() } else { 0..0 };
            let (cut, mark) = cut(line, mark, most, LEAD.min(most / 4));
            if i == self.marked {
                out.mark = mark;
            }
            *line = cut;
        }
        out
    }
}

/// Cuts a line around a mark to what is kept of it. Returns the mark's place in the result.
fn window(line: &str, mark: Range<usize>) -> (String, Range<usize>) {
    cut(line, mark, WIDTH, LEAD)
}

fn cut(line: &str, mark: Range<usize>, most: usize, lead: usize) -> (String, Range<usize>) {
    // Only as much is looked at as is shown: a line may have megabytes.
    let head = line.get(..mark.start).unwrap_or_default();
    let keep = if mark.start < most / 2 && mark.end < most { mark.start } else { lead };
    let from = head.char_indices().rev().take(keep).last().map_or(mark.start.min(line.len()), |(i, _)| i);
    let mut out = String::new();
    if from > 0 {
        out.push('…');
    }
    let mut found = None;
    let mut end = None;
    for (shown, (i, c)) in line.get(from..).unwrap_or_default().char_indices().enumerate() {
        let i = i + from;
        if i >= mark.start && found.is_none() {
            found = Some(out.len());
        }
        if i >= mark.end && end.is_none() {
            end = Some(out.len());
        }
        if shown >= most {
            let full = out.len();
            out.push('…');
            return (out, found.unwrap_or(full)..end.unwrap_or(full));
        }
        out.push(harmless(c));
    }
    let full = out.len();
    (out, found.unwrap_or(full)..end.unwrap_or(full))
}

/// A text from a checkpoint, one character for one character, without anything that could move a cursor, hide text or
/// turn its direction around. Names of files and tensors need it before a terminal sees them.
///
/// Nor may a name give orders to a CI runner: those take `::` at the start of a line, and `##[` anywhere.
pub fn clean(text: &str) -> String {
    let mut before = ' ';
    let mut chars = text.chars().map(harmless).peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        let ahead = chars.peek().copied();
        out.push(match c {
            ':' if ahead == Some(':') && before.is_whitespace() => '\u{fe55}',
            '[' if out.ends_with("##") => '\u{ff3b}',
            c => c,
        });
        before = c;
    }
    out
}

fn harmless(c: char) -> char {
    match c {
        '\t' => ' ',
        // Soft hyphen, direction marks and overrides, zero widths, line separators, byte order mark, annotations,
        // language tags.
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str, mark: Range<usize>) -> (String, String) {
        let (text, mark) = window(line, mark);
        let marked = text[mark].to_owned();
        (text, marked)
    }

    #[test]
    fn short_lines_stay_whole() {
        assert_eq!(shown("  \"a\": 1,", 2..8), ("  \"a\": 1,".to_owned(), "\"a\": 1".to_owned()));
        assert_eq!(shown("", 0..0), (String::new(), String::new()));
        assert_eq!(shown("ab", 2..2).1, "");
    }

    #[test]
    fn long_lines_are_cut_around_the_mark() {
        let line = format!("{}MARK{}", "é".repeat(5000), "x".repeat(5000));
        let (text, marked) = shown(&line, 10_000..10_004);
        assert_eq!(marked, "MARK");
        assert!(text.starts_with("…é") && text.ends_with("x…"));
        assert_eq!(text.chars().count(), WIDTH + 2);
        // A mark that is longer than what is shown ends with it.
        let (text, marked) = shown(&line, 0..line.len());
        assert_eq!(marked.chars().count(), WIDTH);
        assert!(text.ends_with('…'));
    }

    #[test]
    fn nothing_dangerous_passes() {
        assert_eq!(clean("a\u{1b}[31m\u{202e}b\tc\u{200b}\r"), "a\u{fffd}[31m\u{fffd}b c\u{fffd}\u{fffd}");
        assert_eq!(clean("normal é 😀 漢"), "normal é 😀 漢");
    }
}
