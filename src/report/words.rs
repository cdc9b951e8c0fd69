//! Words that several formats need. What comes from a checkpoint is cleaned here, and escaped by the format.

use super::{Class, Report, Shown, Stage};
use crate::finding::Level;
use crate::finding::words::{count, thousands, verb};
use crate::locate::clean;

/// Characters of a message of vLLM's that a format without a switch for it shows.
const MESSAGE: usize = 2_000;
/// Lines of a help, of evidence and the like, in the same.
const LINES: usize = 20;

/// How far a verdict goes without the weights.
pub(super) const BY_NAMES: &str = "by its names: the weights are not here";

/// When vLLM raises, in the middle of a sentence.
pub(super) fn while_(stage: Stage) -> &'static str {
    match stage {
        Stage::Config => ", while reading the config,",
        Stage::Init => ", while building the model,",
        Stage::Load => ", while loading weights,",
        Stage::Track => ", when it checks that all weights have come,",
        Stage::Post => ", after loading,",
    }
}

/// `1 error, 2 notes`.
pub(super) fn levels(of: impl Fn(Level) -> usize) -> String {
    let parts: Vec<String> = [(Level::Error, "error"), (Level::Warning, "warning"), (Level::Note, "note")]
        .into_iter()
        .map(|(level, name)| (of(level), name))
        .filter(|(n, _)| *n > 0)
        .map(|(n, name)| count(n, name))
        .collect();
    if parts.is_empty() { "no findings".to_owned() } else { parts.join(", ") }
}

/// `1 refused, 3 load · 2 errors`: what came of all checkpoints.
pub(super) fn tally(report: &Report) -> String {
    let n = |class| report.checkpoints.iter().filter(|c| c.verdict.class == class).count();
    let parts: Vec<String> = [
        (n(Class::Refuses), "refused"),
        (n(Class::Damages), "damaged"),
        (n(Class::Unknown), "unknown"),
        (n(Class::Loads), verb(n(Class::Loads), "loads", "load")),
    ]
    .into_iter()
    .filter(|p| p.0 > 0)
    .map(|(n, what)| format!("{} {what}", thousands(n as u64)))
    .collect();
    if parts.is_empty() {
        return "nothing was looked at".to_owned();
    }
    format!("{} · {}", parts.join(", "), levels(|l| report.count(l)))
}

/// The first sentence of a message, cut to a width. (Names have no space after their points.)
pub(super) fn one_line(text: &str, max: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let sentence = line.split_once(". ").map_or(line, |s| s.0);
    let out: String = sentence.chars().take(max).collect();
    if out.len() == text.len() { out } else { out.trim_end_matches(['.', ' ', ':']).to_owned() + "…" }
}

/// Breaks at spaces; what has none stays whole.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |l| l.chars().count());
        if line > 0 && line + 1 + word.chars().count() > width.max(20) {
            lines.push(word.to_owned());
        } else if let Some(last) = lines.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

/// The level in one word.
pub(super) fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    }
}

/// A text of many lines, each cleaned, cut where it gets long.
pub(super) fn cleaned(text: &str) -> String {
    let cut: String = text.chars().take(MESSAGE).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    cut.lines().map(clean).collect::<Vec<_>>().join("\n") + more
}

/// What a finding is about: its evidence, else the names; none when the message says them all.
pub(super) fn evidence(shown: &Shown) -> Vec<String> {
    let f = &shown.finding;
    let told = f.evidence.is_empty() && f.subjects.names.iter().all(|l| f.message.contains(l.as_str()));
    let lines = if f.evidence.is_empty() { &f.subjects.names } else { &f.evidence };
    if told {
        return Vec::new();
    }
    let mut out: Vec<String> = lines.iter().take(LINES).map(|l| clean(l)).collect();
    if lines.len() > LINES {
        out.push(format!("… and {} more", thousands((lines.len() - LINES) as u64)));
    }
    out
}

/// vLLM's exception and its text, cleaned, in lines.
pub(super) fn raised(shown: &Shown) -> Option<String> {
    let m = shown.finding.vllm.as_ref()?;
    Some(match m.text.as_str() {
        "" => format!("{} (without a text)", clean(&m.error_type)),
        text => format!("{}: {}", clean(&m.error_type), cleaned(text)),
    })
}

/// All of a finding as plain text: message, evidence, vLLM's words, help.
pub(super) fn plain(shown: &Shown, vllm: &str) -> String {
    let mut parts = vec![clean(&shown.finding.message)];
    let lines = evidence(shown);
    if !lines.is_empty() {
        parts.push(lines.join("\n"));
    }
    if let Some(raised) = raised(shown) {
        parts.push(format!("vLLM {vllm} raises {raised}"));
    }
    if let Some(help) = &shown.finding.help {
        parts.push(format!("help: {}", cleaned(help)));
    }
    parts.join("\n\n")
}
