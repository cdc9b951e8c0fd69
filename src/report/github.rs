//! Workflow commands of GitHub Actions: findings become annotations of files.

use super::text::Look;
use super::words::{plain, tally};
use super::{Report, anchor};
use crate::finding::Level;
use crate::finding::words::count;
use std::io::{self, Write};

/// Annotations of each level that GitHub shows of a step; it drops the rest without a word.
const SHOWN: usize = 10;

/// Renders a report: errors first, one command a finding, then one line for people.
///
/// # Errors
/// When writing fails.
pub fn render(report: &Report, look: Look, out: &mut dyn Write) -> io::Result<()> {
    let left = annotations(report, look, out)?;
    // Nothing of a checkpoint's stands in this line: the runner looks for commands in any.
    writeln!(out, "ckpt-lint: {}: {}", count(report.checkpoints.len(), "checkpoint"), tally(report))?;
    out.write_all(left.as_bytes())
}

/// The report for people with the annotations behind it: what one wants of a log, when nobody asked for a format. The
/// runner looks for commands in any line, so none of the text may be one.
///
/// # Errors
/// When writing fails.
pub fn render_log(report: &Report, look: Look, text: &str, out: &mut dyn Write) -> io::Result<()> {
    for line in text.lines() {
        writeln!(out, "{}", harmless(line))?;
    }
    let left = annotations(report, look, out)?;
    out.write_all(left.as_bytes())
}

/// A line that gives no orders, with the characters that [`crate::locate::clean`] takes.
fn harmless(line: &str) -> String {
    let line = line.replace("##[", "##\u{ff3b}");
    match line.trim_start().strip_prefix("::") {
        Some(rest) => format!("\u{fe55}:{rest}"),
        None => line,
    }
}

/// One command a finding; returns what to say of those that are left out.
fn annotations(report: &Report, look: Look, out: &mut dyn Write) -> io::Result<String> {
    for e in report.errors.iter().take(SHOWN) {
        writeln!(out, "::error title=ckpt-lint::{}", data(&e.message))?;
    }
    let mut room = [SHOWN.saturating_sub(report.errors.len()), SHOWN, SHOWN];
    let mut left = [report.errors.len().saturating_sub(SHOWN), 0, 0];
    for (section, shown) in anchor::findings(report) {
        let (at, command) = match shown.finding.level {
            Level::Error => (0, "error"),
            Level::Warning => (1, "warning"),
            Level::Note if look.quiet => continue,
            Level::Note => (2, "notice"),
        };
        if room[at] == 0 {
            left[at] += 1;
            continue;
        }
        room[at] -= 1;
        write!(out, "::{command} file={}", property(&anchor::path(section, shown)))?;
        if let Some([line, column, end_line, end_column]) = anchor::lines(shown) {
            write!(out, ",line={line},endLine={end_line},col={column}")?;
            // GitHub takes no columns of what spans lines, and none that is empty.
            if line == end_line && column < end_column {
                write!(out, ",endColumn={end_column}")?;
            }
        }
        let text = format!("{}\n\n{}", plain(shown, &report.target.vllm), shown.url);
        writeln!(out, ",title={}::{}", property(shown.finding.rule), data(&text))?;
    }
    let names = ["error", "warning", "note"];
    let left: Vec<String> = left.iter().zip(names).filter(|l| *l.0 > 0).map(|(n, name)| count(*n, name)).collect();
    if left.is_empty() {
        return Ok(String::new());
    }
    let left = left.join(", ");
    Ok(format!("ckpt-lint: {left} not annotated: GitHub shows {SHOWN} of a level in a step\n"))
}

/// A message. The runner undoes this after it has found the command's end.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A value before the message, where colons and commas end something.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_command() {
        assert_eq!(data("50%\r\n::stop-commands::x"), "50%25%0D%0A::stop-commands::x");
        assert_eq!(harmless("  ::error::x ##[add-mask]y"), "\u{fe55}:error::x ##\u{ff3b}add-mask]y");
        assert_eq!(harmless(" 3 │ \"a::b\""), " 3 │ \"a::b\"");
        assert_eq!(property("a,b::c%\n"), "a%2Cb%3A%3Ac%25%0A");
    }
}
