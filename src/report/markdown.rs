//! Markdown for the summary of a GitHub step and for discussions on the Hub.
//!
//! Nothing of a checkpoint's is ever text here: what is not a plain word stands in code, where no tag, link, mention or
//! table is made of it.

use super::text::Look;
use super::words::{BY_NAMES, cleaned, evidence, level, levels, one_line, raised, tally, while_};
use super::{Class, Report, Section, Shown, anchor};
use crate::finding::words::{count, size, thousands};
use crate::finding::{Level, VllmMessage};
use crate::locate::clean;
use std::io::{self, Write};

/// Bytes after which findings are only counted: GitHub drops a summary of more than 1 MiB whole.
const ROOM: usize = 900 << 10;
/// Bytes of what is to be pasted: whole, unless it would fill the summary alone.
const HELP: usize = 64 << 10;
/// Characters of the message in the verdict.
const VERDICT: usize = 160;

/// Renders a report: a verdict each checkpoint, then its findings.
///
/// # Errors
/// When writing fails.
pub fn render(report: &Report, look: Look, out: &mut dyn Write) -> io::Result<()> {
    let mut text = format!("## ckpt-lint for vLLM {}\n\n", report.target.vllm);
    for e in &report.errors {
        text.push_str(&format!("**not looked at:** {}\n\n", code(&e.message)));
    }
    if report.checkpoints.len() > 1 {
        table(report, &mut text);
    }
    for section in &report.checkpoints {
        if text.len() > ROOM {
            text.push_str("… and more checkpoints, for which there is no room here\n");
            break;
        }
        checkpoint(section, report, look, &mut text);
    }
    out.write_all(text.trim_end().as_bytes())?;
    writeln!(out)
}

fn table(report: &Report, out: &mut String) {
    out.push_str("| checkpoint | verdict | findings |\n|---|---|---|\n");
    for section in report.checkpoints.iter().take(1_000) {
        let (path, class) = (code(&section.path).replace('|', "\\|"), word(section.verdict.class));
        out.push_str(&format!("| {path} | {class} | {} |\n", levels(|l| section.count(l))));
    }
    let total = count(report.checkpoints.len(), "checkpoint");
    out.push_str(&format!("\n**{total}**: {}\n\n", tally(report)));
}

fn checkpoint(section: &Section, report: &Report, look: Look, out: &mut String) {
    let vllm = &report.target.vllm;
    out.push_str(&format!("### {}\n\n", code(&section.path)));
    out.push_str(&format!("{}\n\n", verdict(section, vllm)));
    let read = &section.read;
    let what = if read.config_only {
        "no weights looked at".to_owned()
    } else if read.names_only {
        format!("{} by name, no weights here", count(read.tensors, "tensor"))
    } else {
        let (shards, tensors) = (count(read.shards, "shard"), count(read.tensors, "tensor"));
        format!("{shards}, {tensors}, {}", size(read.bytes))
    };
    out.push_str(&format!("{} · {what}\n\n", levels(|l| section.count(l))));
    let mut quoted = Vec::new();
    for (i, shown) in section.findings.iter().enumerate() {
        if look.quiet && shown.finding.level == Level::Note {
            continue;
        }
        if out.len() > ROOM {
            let left = count(section.findings.len() - i, "finding");
            out.push_str(&format!("… and {left} more, for which there is no room here\n\n"));
            break;
        }
        finding(shown, section, vllm, &mut quoted, out);
    }
}

fn finding<'s>(shown: &'s Shown, section: &Section, vllm: &str, quoted: &mut Vec<&'s VllmMessage>, out: &mut String) {
    let f = &shown.finding;
    out.push_str(&format!("#### {}: {}\n\n", level(f.level), prose(&f.message)));
    let place = anchor::lines(shown).map_or(String::new(), |[line, column, ..]| format!(":{line}:{column}"));
    let place = code(&format!("{}{place}", anchor::path(section, shown)));
    out.push_str(&format!("[`{}`]({}) at {place}\n\n", f.rule, shown.url));
    if let Some(label) = &f.label {
        out.push_str(&format!("{}\n\n", prose(label)));
    }
    let lines = evidence(shown);
    if !lines.is_empty() {
        out.push_str(&fenced(&lines.join("\n")));
    }
    // Of a message that belongs to several findings, once is enough.
    if let (Some(message), Some(text)) = (&f.vllm, raised(shown))
        && !quoted.contains(&message)
    {
        quoted.push(message);
        let first = section.verdict.message.as_deref() == Some(&message.text)
            && section.verdict.error_type.as_deref() == Some(&message.error_type);
        let stage = section.verdict.stage.filter(|_| first).map_or("", while_);
        let lead = if first { format!("stops here{stage} with") } else { "would stop here next with".to_owned() };
        out.push_str(&format!("vLLM {vllm} {lead}\n\n{}", fenced(&text)));
    }
    if let Some(help) = &f.help {
        let (first, rest) = help.split_once('\n').unwrap_or((help, ""));
        out.push_str(&format!("**help:** {}\n\n", prose(first)));
        if !rest.is_empty() {
            let mut text = String::new();
            for line in rest.lines() {
                if text.len() + line.len() > HELP {
                    text.push_str("… (all of it is in the other formats)");
                    break;
                }
                text.push_str(&clean(line));
                text.push('\n');
            }
            out.push_str(&fenced(text.trim_end()));
        }
    }
}

fn word(class: Class) -> &'static str {
    match class {
        Class::Loads => "would load",
        Class::Refuses => "**would refuse**",
        Class::Damages => "**would load it damaged**",
        Class::Unknown => "unknown",
    }
}

fn verdict(section: &Section, vllm: &str) -> String {
    let Section { verdict: v, unknown, read, .. } = section;
    let short = |s: &str| code(&one_line(s, VERDICT));
    match v.class {
        Class::Loads if read.names_only => format!("vLLM {vllm} **would load** this checkpoint, {BY_NAMES}"),
        Class::Loads => format!("vLLM {vllm} **would load** this checkpoint"),
        Class::Refuses => {
            let message = v.message.as_deref().filter(|m| !m.is_empty()).or(v.error_type.as_deref());
            format!("vLLM {vllm} **would refuse** it: {}", short(message.unwrap_or_default()))
        }
        Class::Damages => {
            format!("vLLM {vllm} would load it, and **{} would hold garbage**", count(v.garbage, "parameter"))
        }
        Class::Unknown => {
            let more = match unknown.len() {
                0 | 1 => String::new(),
                n => format!(" (and {} more)", thousands((n - 1) as u64)),
            };
            let why = unknown.first().map_or("no facts", String::as_str);
            format!("vLLM {vllm} **unknown**: {}{more}", short(why))
        }
    }
}

/// A code span: one line, its fence longer than any in it.
fn code(text: &str) -> String {
    let text = cleaned(text).replace('\n', " ");
    let text = text.trim();
    if text.is_empty() {
        return String::new();
    }
    let fence = "`".repeat(run(text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// A fenced block, its fence longer than any in it.
fn fenced(text: &str) -> String {
    let fence = "`".repeat((run(text) + 1).max(3));
    format!("{fence}text\n{text}\n{fence}\n\n")
}

/// The longest run of backticks.
fn run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// A sentence of ours with names of strangers in it. What stands in backticks becomes code, and so does any word
/// outside of them that is more than letters, digits and the usual marks around it.
fn prose(text: &str) -> String {
    let text = clean(text);
    let pieces: Vec<&str> = text.split('`').collect();
    let mut words = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        if i % 2 == 1 && i + 1 < pieces.len() {
            words.push(code(piece));
            continue;
        }
        words.push(
            piece.split(' ').map(|w| if is_plain(w) { w.to_owned() } else { code(w) }).collect::<Vec<_>>().join(" "),
        );
    }
    words.concat()
}

/// Whether a word can be nothing but text. No `:` inside, for addresses and emoji; no `.`, for addresses.
fn is_plain(word: &str) -> bool {
    let inner = word.trim_start_matches(['(', '"', '\'']).trim_end_matches([')', '"', '\'', ',', '.', ':', ';', '?']);
    inner.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '\'' | ',' | '×' | '…' | '·'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_strangers_are_code() {
        assert_eq!(prose("no entry matches `a.b`"), "no entry matches `a.b`");
        assert_eq!(prose("ask @octocat, see #1 or <b>x</b>"), "ask `@octocat,` see `#1` or `<b>x</b>`");
        assert_eq!(prose("add to \"ignore\": 1,333 16-bit ones (all)"), "add to \"ignore\": 1,333 16-bit ones (all)");
        assert_eq!(
            prose("https://e.example *a* [l](u) a|b \\x &lt;"),
            "`https://e.example` `*a*` `[l](u)` `a|b` `\\x` `&lt;`"
        );
        assert_eq!(prose("one ` alone"), "one  alone");
        assert_eq!(code("a``b\n#c"), "```a``b #c```");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(fenced("a\n````\nb"), "`````text\na\n````\nb\n`````\n\n");
    }
}
