//! JUnit XML: a suite each checkpoint, a test each finding, for whatever shows test results.

use super::words::{BY_NAMES, plain};
use super::{Class, Report, Section, anchor};
use crate::finding::Level;
use crate::locate::clean;
use std::io::{self, Write};

/// Renders a report. Errors and warnings fail, notes are skipped tests, and a checkpoint without either passes one:
/// a suite without any test would look as if nothing had been done.
///
/// # Errors
/// When writing fails.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let failed = report.count(Level::Error) + report.count(Level::Warning);
    let passed = report.checkpoints.iter().filter(|s| passes(s)).count();
    let tests = failed + report.count(Level::Note) + passed + report.errors.len();
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    let errors = report.errors.len();
    writeln!(out, r#"<testsuites name="ckpt-lint" tests="{tests}" failures="{failed}" errors="{errors}">"#)?;
    for section in &report.checkpoints {
        suite(section, &report.target.vllm, out)?;
    }
    if errors > 0 {
        writeln!(out, r#"  <testsuite name="ckpt-lint" tests="{errors}" failures="0" errors="{errors}" skipped="0">"#)?;
        for e in &report.errors {
            let path = attribute(e.path.as_deref().unwrap_or("ckpt-lint"));
            writeln!(out, r#"    <testcase name="look at it" classname="{path}">"#)?;
            writeln!(out, r#"      <error message="{}"/>"#, attribute(&e.message))?;
            writeln!(out, "    </testcase>")?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn passes(section: &Section) -> bool {
    section.count(Level::Error) + section.count(Level::Warning) == 0
}

fn suite(section: &Section, vllm: &str, out: &mut dyn Write) -> io::Result<()> {
    let failed = section.count(Level::Error) + section.count(Level::Warning);
    let skipped = section.count(Level::Note);
    let tests = failed + skipped + usize::from(passes(section));
    let path = attribute(&section.path);
    writeln!(out, r#"  <testsuite name="{path}" tests="{tests}" failures="{failed}" errors="0" skipped="{skipped}">"#)?;
    if passes(section) {
        let name = match section.verdict.class {
            Class::Unknown => format!("nothing speaks against vLLM {vllm}"),
            _ if section.read.names_only => format!("vLLM {vllm} would load this checkpoint, {BY_NAMES}"),
            _ => format!("vLLM {vllm} would load this checkpoint"),
        };
        writeln!(out, r#"    <testcase name="{name}" classname="{path}"/>"#)?;
    }
    for shown in &section.findings {
        let f = &shown.finding;
        let file = attribute(&anchor::path(section, shown));
        // Readers take tests of one name for one test.
        let name = format!("{} {}", f.rule, shown.print);
        let line = anchor::lines(shown).map_or(String::new(), |l| format!(r#" line="{}""#, l[0]));
        writeln!(out, r#"    <testcase name="{name}" classname="{path}" file="{file}"{line}>"#)?;
        let message = attribute(&f.message);
        match f.level {
            Level::Note => writeln!(out, r#"      <skipped message="{message}"/>"#)?,
            Level::Error | Level::Warning => {
                let text = lines(&format!("{}\n\n{}", plain(shown, vllm), shown.url));
                let kind = super::words::level(f.level);
                writeln!(out, r#"      <failure message="{message}" type="{kind}">{text}</failure>"#)?;
            }
        }
        writeln!(out, "    </testcase>")?;
    }
    writeln!(out, "  </testsuite>")
}

/// One line, for an attribute in double quotes. XML has no way to write most control characters, so they are cleaned.
fn attribute(text: &str) -> String {
    escaped(&clean(text))
}

/// Many lines, for the text of an element.
fn lines(text: &str) -> String {
    text.lines().map(attribute).collect::<Vec<_>>().join("\n")
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Characters of Unicode that XML has not.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_an_attribute_or_an_element() {
        assert_eq!(
            attribute("a\"b\n\u{1b}</x> ]]>&\u{ffff}"),
            "a&quot;b\u{fffd}\u{fffd}&lt;/x&gt; ]]&gt;&amp;\u{fffd}"
        );
        assert_eq!(lines("a<\nb"), "a&lt;\nb");
    }
}
