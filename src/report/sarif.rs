//! SARIF 2.1.0, as much of it as code scanning reads.

use super::words::{level, plain};
use super::{Report, Section, Shown, anchor};
use crate::finding::words::count;
use crate::finding::{Level, Place};
use crate::locate::clean;
use crate::rule::Rule;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, Write};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
const HOME: &str = "https://github.com/ckpt-lint/ckpt-lint";
/// Results of a run above which GitHub rejects the file.
const RESULTS: usize = 25_000;
/// Characters of a description above which GitHub does.
const DESCRIPTION: usize = 1_024;
/// What relative addresses are relative to.
const ROOT: &str = "%SRCROOT%";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Log<'a> {
    #[serde(rename = "$schema")]
    schema: &'a str,
    version: &'a str,
    runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    tool: Value,
    automation_details: Value,
    column_kind: &'a str,
    original_uri_base_ids: Value,
    invocations: [Value; 1],
    results: Vec<Outcome<'a>>,
    properties: Value,
}

/// A result; `Result` is Rust's.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    rule_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<usize>,
    level: &'a str,
    message: Text,
    locations: [Location; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location>,
    partial_fingerprints: Value,
    /// All results of a run have some, or none has (3.27.23 of the standard); an empty list is a finding that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressions: Option<Value>,
}

#[derive(Serialize)]
struct Text {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: Physical,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Text>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Physical {
    artifact_location: Artifact,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_base_id: Option<&'static str>,
}

/// All four sides: what is missing, some readers take for the whole line and some for nothing.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
    start_column: usize,
    end_line: usize,
    end_column: usize,
}

/// Renders a report. All rules are listed, fired or not, so that their indexes do not move.
///
/// # Errors
/// When writing fails.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let index: HashMap<&str, usize> = report.rules.iter().enumerate().map(|(i, r)| (r.name, i)).collect();
    let mut all: Vec<_> = anchor::findings(report).into_iter().map(|(s, f)| (s, f, None)).collect();
    // What is ignored stays a result, or code scanning would take it for mended, and for news when it is not ignored
    // any more.
    for section in &report.checkpoints {
        all.extend(section.ignored.iter().map(|i| (section, &i.shown, Some(i.reason.as_str()))));
    }
    let any = all.iter().any(|r| r.2.is_some());
    let results = all.iter().take(RESULTS).map(|(section, shown, reason)| Outcome {
        suppressions: any.then(|| {
            let one = |reason: &&str| json!({"kind": "external", "justification": literal(&clean(reason))});
            reason.iter().map(one).collect()
        }),
        ..outcome(section, shown, &index, &report.target.vllm)
    });
    let mut notes: Vec<Value> =
        report.errors.iter().map(|e| json!({"level": "error", "message": {"text": literal(&e.message)}})).collect();
    if all.len() > RESULTS {
        let left = count(all.len() - RESULTS, "finding");
        notes.push(json!({"level": "warning", "message": {"text": format!("{left} left out, the least severe ones")}}));
    }
    let verdicts = report.checkpoints.iter().map(|s| json!({"path": s.path, "verdict": s.verdict.class}));
    let log = Log {
        schema: SCHEMA,
        version: "2.1.0",
        runs: [Run {
            tool: json!({"driver": {
                "name": "ckpt-lint",
                "semanticVersion": report.tool,
                "informationUri": HOME,
                "rules": report.rules.iter().map(|r| descriptor(r)).collect::<Vec<_>>(),
            }}),
            // Uploads of one category replace each other: what was asked for makes one, whatever is found there.
            automation_details: json!({"id": category(&report.scope)}),
            column_kind: "unicodeCodePoints",
            original_uri_base_ids: json!({ROOT: {"description": {"text": "The root of the repository."}}}),
            invocations: [json!({
                "executionSuccessful": report.errors.is_empty(),
                "toolExecutionNotifications": notes,
            })],
            results: results.collect(),
            properties: json!({"target": report.target, "checkpoints": verdicts.collect::<Vec<_>>()}),
        }],
    };
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)
}

fn outcome<'a>(section: &Section, shown: &'a Shown, index: &HashMap<&str, usize>, vllm: &str) -> Outcome<'a> {
    let f = &shown.finding;
    let [start_line, start_column, end_line, end_column] = anchor::lines(shown).unwrap_or([1; 4]);
    let path = anchor::path(section, shown);
    // A tensor is shown where the index names it; the shard that holds it is worth a look, too.
    let shard = match &f.place {
        Place::Tensor { file, name } if shown.spot.as_ref().is_some_and(|s| s.file != *file) => {
            let message = Some(Text { text: literal(&format!("holds {name}")) });
            let shard = anchor::inside(section, file);
            shard.map(|s| Location { physical_location: physical(&s, None), message })
        }
        _ => None,
    };
    Outcome {
        rule_id: f.rule,
        rule_index: index.get(f.rule).copied(),
        level: level(f.level),
        message: Text { text: literal(&plain(shown, vllm)) },
        locations: [Location {
            physical_location: physical(&path, Some(Region { start_line, start_column, end_line, end_column })),
            message: None,
        }],
        related_locations: shard.into_iter().collect(),
        // The only one that code scanning reads. What the upload computes instead needs text, and shards are none.
        partial_fingerprints: json!({"primaryLocationLineHash": shown.print}),
        suppressions: None,
    }
}

/// The category of code scanning: all before the last slash.
fn category(scope: &str) -> String {
    match scope.trim_matches('/') {
        "" => "ckpt-lint/".to_owned(),
        scope => format!("ckpt-lint/{}/", clean(scope)),
    }
}

fn physical(path: &str, region: Option<Region>) -> Physical {
    let artifact_location = match uri(path) {
        u if path.starts_with('/') => Artifact { uri: format!("file://{u}"), uri_base_id: None },
        u => Artifact { uri: u, uri_base_id: Some(ROOT) },
    };
    Physical { artifact_location, region }
}

fn descriptor(rule: &Rule) -> Value {
    let problem = match rule.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "recommendation",
    };
    let mut out = json!({
        "id": rule.name,
        "name": pascal(rule.name),
        "shortDescription": {"text": sentence(rule.summary)},
        "fullDescription": {"text": description(rule)},
        "help": {"text": rule.page, "markdown": rule.page},
        "helpUri": rule.url(),
        "defaultConfiguration": {"level": level(rule.level)},
        "properties": {"tags": ["vllm", rule.family()], "precision": "high", "problem.severity": problem},
    });
    if let (false, Some(map)) = (rule.aliases.is_empty(), out.as_object_mut()) {
        map.insert("deprecatedIds".into(), json!(rule.aliases));
    }
    out
}

/// What the page says it checks: its first paragraph under that heading.
fn description(rule: &Rule) -> String {
    let section = rule.page.split_once("## What it checks").map_or("", |s| s.1);
    let paragraph = section.trim_start().split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let text = if paragraph.starts_with('#') || paragraph.is_empty() { sentence(rule.summary) } else { paragraph };
    if text.chars().count() <= DESCRIPTION {
        return text;
    }
    text.chars().take(DESCRIPTION - 1).collect::<String>() + "…"
}

/// A line of ours as a sentence.
fn sentence(line: &str) -> String {
    let mut chars = line.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

fn pascal(name: &str) -> String {
    name.split('-').map(|w| sentence(w).trim_end_matches('.').to_owned()).collect()
}

/// A text without links and placeholders: in SARIF, `[text](address)` is one and `{0}` the other.
fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, part) in text.split('{').enumerate() {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match part.split_at(digits) {
            (number, rest) if i > 0 && digits > 0 && rest.starts_with('}') => {
                out.push_str(&format!("{{{{{number}}}{rest}"));
            }
            _ if i > 0 => out.push_str(&format!("{{{part}")),
            _ => out.push_str(part),
        }
    }
    out.replace("](", "\\](")
}

/// A path as part of an address (RFC 3986).
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for b in path.bytes() {
        match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(b)),
            b => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_others() {
        assert_eq!(pascal("quant-unlisted-linear"), "QuantUnlistedLinear");
        assert_eq!(sentence("a key occurs twice"), "A key occurs twice.");
        assert_eq!(uri("a b/ü:c\n?.json"), "a%20b/%C3%BC%3Ac%0A%3F.json");
        assert_eq!(literal("[64, 128] {'x'} {0} [l](u) {"), "[64, 128] {'x'} {{0}} [l\\](u) {");
    }
}
