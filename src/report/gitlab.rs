//! GitLab's Code Quality report: a list of findings for the widget of a merge request.

use super::words::{one_line, raised};
use super::{Report, Shown, anchor};
use crate::finding::Level;
use crate::locate::clean;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Characters of vLLM's message.
const MESSAGE: usize = 160;

/// Renders a report. GitLab has no place for errors of the run; these are on the error stream and in the exit code.
///
/// # Errors
/// When writing fails.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let issues: Vec<Value> = anchor::findings(report)
        .into_iter()
        .map(|(section, shown)| {
            let f = &shown.finding;
            json!({
                "description": description(shown, &report.target.vllm),
                "check_name": f.rule,
                "fingerprint": shown.print,
                "severity": match f.level {
                    Level::Error => "major",
                    Level::Warning => "minor",
                    Level::Note => "info",
                },
                "location": {
                    "path": anchor::path(section, shown),
                    "lines": {"begin": anchor::lines(shown).map_or(1, |l| l[0])},
                },
            })
        })
        .collect();
    serde_json::to_writer_pretty(&mut *out, &issues)?;
    writeln!(out)
}

/// One line: the widget has no room for more.
fn description(shown: &Shown, vllm: &str) -> String {
    let message = clean(&shown.finding.message);
    match raised(shown) {
        None => message,
        Some(raised) => format!("{message}: vLLM {vllm} raises {}", one_line(&raised, MESSAGE)),
    }
}
