//! What the terminal and the environment say. Nothing else of ours asks them.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

/// Columns where there is no terminal to ask.
const WIDTH: usize = 100;
/// Columns of prose, however wide the terminal is.
const PROSE: usize = 100;
/// The pager of whoever names none: ends where the page fits the screen, keeps colours, leaves the page on the screen,
/// and ends on Ctrl-C, as we do: one of two that is left would fight the shell for the keyboard.
const PAGER: &str = "less -FRXK";

/// Whether somebody looks on.
pub(super) fn watched() -> bool {
    io::stdout().is_terminal()
}

/// Columns of the terminal.
pub(super) fn width(terminal: bool) -> usize {
    let columns = terminal.then(terminal_size::terminal_size).flatten().map(|s| usize::from(s.0.0));
    columns.unwrap_or(WIDTH).clamp(40, 140)
}

/// Whether the terminal makes links of names; `FORCE_HYPERLINK` says so or not for those that are not known.
pub(super) fn links() -> bool {
    supports_hyperlinks::on(supports_hyperlinks::Stream::Stdout)
}

/// Whether the log is one of GitHub Actions, which makes annotations of lines.
pub(super) fn in_actions() -> bool {
    env::var_os("GITHUB_ACTIONS").is_some_and(|v| v == "true") && !watched()
}

/// Prints a page of Markdown; on a terminal that is too low for it, in a pager. A pager that does not start is none.
pub(super) fn page(markdown: &str, out: &mut dyn Write) -> io::Result<()> {
    let size = terminal_size::terminal_size().filter(|_| watched());
    let Some((columns, rows)) = size else { return out.write_all(markdown.as_bytes()) };
    let text = reflow(markdown, usize::from(columns.0).min(PROSE));
    // A row is left for the prompt.
    if text.lines().count() < usize::from(rows.0) || !paged(&text) {
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Whether a pager showed the text.
fn paged(text: &str) -> bool {
    let named = ["CKPT_LINT_PAGER", "PAGER"].iter().find_map(|name| env::var(name).ok());
    let line = named.as_deref().unwrap_or(PAGER);
    let mut words = line.split_whitespace();
    // As for git, nothing and `cat` are ways to say: no pager.
    let Some(program) = words.next().filter(|p| *p != "cat") else { return false };
    let Ok(mut child) = Command::new(program).args(words).stdin(Stdio::piped()).spawn() else { return false };
    if let Some(mut pipe) = child.stdin.take() {
        // Whoever has read enough closes the pipe.
        let _ = pipe.write_all(text.as_bytes());
    }
    // One that starts and fails has shown its reason.
    child.wait().is_ok()
}

/// Paragraphs and items of lists, broken to a width; code, tables and headings as they are.
fn reflow(markdown: &str, width: usize) -> String {
    let mut out = String::new();
    let mut paragraph = String::new();
    let mut code = false;
    for line in markdown.lines() {
        let fence = line.trim_start().starts_with("```");
        let item = ["* ", "- "].iter().any(|i| line.trim_start().starts_with(i));
        let plain = !code && !fence && !line.trim().is_empty() && !line.starts_with(['#', '|', '>']);
        if plain && !item && !paragraph.is_empty() {
            paragraph.push(' ');
            paragraph.push_str(line.trim());
            continue;
        }
        flush(&mut paragraph, width, &mut out);
        if plain {
            paragraph.push_str(line);
        } else {
            out.push_str(line);
            out.push('\n');
            code ^= fence;
        }
    }
    flush(&mut paragraph, width, &mut out);
    out
}

fn flush(paragraph: &mut String, width: usize, out: &mut String) {
    if paragraph.is_empty() {
        return;
    }
    let body = paragraph.trim_start().trim_start_matches(['*', '-']).trim_start();
    let lead = &paragraph[..paragraph.len() - body.len()];
    // A word of emphasis begins with stars, too; only an item has a space after its own.
    let (lead, body) = if lead.is_empty() || lead.ends_with(' ') { (lead, body) } else { ("", paragraph.as_str()) };
    let indent = " ".repeat(lead.chars().count());
    for (i, line) in crate::report::wrap(body, width.saturating_sub(indent.len())).iter().enumerate() {
        out.push_str(if i == 0 { lead } else { &indent });
        out.push_str(line);
        out.push('\n');
    }
    paragraph.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_and_code_is_not() {
        let page = "# a\n\nsome words that\ngo on and on\n\n* **one** item of many words\n* two\n\n```sh\na very long line of code it is\n```\n| a very long row of a table it is |\n";
        let shown = reflow(page, 24);
        assert_eq!(
            shown,
            "# a\n\nsome words that go on and\non\n\n* **one** item of many\n  words\n* two\n\n```sh\na very long line of code it is\n```\n| a very long row of a table it is |\n"
                .replace("some words that go on and\non", "some words that go on\nand on")
        );
    }
}
