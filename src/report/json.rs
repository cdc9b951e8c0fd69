//! The report as JSON. Version 1: fields may be added, none changes its meaning or goes.

use super::{Class, Read, Report, RunError, Section, Shown, Stage, Target};
use crate::finding::{Fix, Level, Place, Subjects, VllmMessage};
use crate::locate::Spot;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// Version of the format.
pub const VERSION: u32 = 1;

/// A report of ckpt-lint.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "ckpt-lint report")]
pub struct Document<'a> {
    /// Version of this format.
    version: u32,
    /// What made it.
    tool: Tool<'a>,
    /// The knowledge that it was made with.
    facts: Facts<'a>,
    /// What the verdicts are about.
    target: &'a Target,
    /// One entry a checkpoint, in the order of the arguments.
    checkpoints: Vec<Checkpoint<'a>>,
    /// Errors of the run: what could not be looked at. Not empty means exit code 2.
    errors: &'a [RunError],
}

/// The program.
#[derive(Debug, Serialize, JsonSchema)]
struct Tool<'a> {
    name: &'a str,
    version: &'a str,
}

/// Versions that there are facts for.
#[derive(Debug, Serialize, JsonSchema)]
struct Facts<'a> {
    /// Of vLLM.
    vllm: &'a [&'a str],
}

/// One checkpoint.
#[derive(Debug, Serialize, JsonSchema)]
struct Checkpoint<'a> {
    /// As given or found.
    path: &'a str,
    /// What vLLM would do.
    verdict: Verdict<'a>,
    /// Errors first, then by file, rule and place.
    findings: Vec<Finding<'a>>,
    /// What the settings or the baseline ignore; of it only the verdict still speaks.
    ignored: Vec<Ignored<'a>>,
    /// Why the verdict is not complete.
    unknown: &'a [String],
    /// What was read and what was not.
    read: &'a Read,
}

/// What vLLM would do.
#[derive(Debug, Serialize, JsonSchema)]
struct Verdict<'a> {
    class: Class,
    /// What it would print first, word for word; sets sorted, the folder written as `<dir>`.
    message: Option<&'a str>,
    /// Python exception type.
    error_type: Option<&'a str>,
    /// Where it raises.
    stage: Option<Stage>,
    /// Parameters and buffers that would hold garbage.
    garbage: usize,
}

/// One cause, however many tensors it touches.
#[derive(Debug, Serialize, JsonSchema)]
struct Finding<'a> {
    /// Name of the rule.
    rule: &'a str,
    /// Page of the rule.
    url: &'a str,
    level: Level,
    message: &'a str,
    place: &'a Place,
    /// Line and column of the place, from 1, when it is in a text file.
    position: Option<Position<'a>>,
    subjects: &'a Subjects,
    /// What vLLM would raise because of this.
    vllm_message: Option<&'a VllmMessage>,
    help: Option<&'a str>,
    /// The repair as data; ckpt-lint applies none.
    fix: Option<&'a Fix>,
}

/// A finding that is known and accepted.
#[derive(Debug, Serialize, JsonSchema)]
struct Ignored<'a> {
    /// Rule.
    rule: &'a str,
    /// What the finding said.
    message: &'a str,
    /// How many things it was about.
    subjects: usize,
    /// Why it is ignored: the reason of the settings, or `baseline`.
    reason: &'a str,
}

/// A position in a text file: of a tensor that an index names, there.
#[derive(Debug, Serialize, JsonSchema)]
struct Position<'a> {
    file: &'a str,
    line: usize,
    column: usize,
}

/// Renders a report.
///
/// # Errors
/// When writing fails.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        version: VERSION,
        tool: Tool { name: "ckpt-lint", version: report.tool },
        facts: Facts { vllm: &report.facts },
        target: &report.target,
        checkpoints: report.checkpoints.iter().map(checkpoint).collect(),
        errors: &report.errors,
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// The JSON Schema of the format.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Document).to_value()
}

fn checkpoint(section: &Section) -> Checkpoint<'_> {
    let v = &section.verdict;
    Checkpoint {
        path: &section.path,
        verdict: Verdict {
            class: v.class,
            message: v.message.as_deref(),
            error_type: v.error_type.as_deref(),
            stage: v.stage,
            garbage: v.garbage,
        },
        findings: section.findings.iter().map(finding).collect(),
        ignored: section.ignored.iter().map(ignored).collect(),
        unknown: &section.unknown,
        read: &section.read,
    }
}

fn finding(shown: &Shown) -> Finding<'_> {
    let f = &shown.finding;
    Finding {
        rule: f.rule,
        url: &shown.url,
        level: f.level,
        message: &f.message,
        place: &f.place,
        position: shown.spot.as_ref().and_then(position),
        subjects: &f.subjects,
        vllm_message: f.vllm.as_ref(),
        help: f.help.as_deref(),
        fix: f.fix.as_ref(),
    }
}

fn ignored(i: &super::Ignored) -> Ignored<'_> {
    let f = &i.shown.finding;
    Ignored { rule: f.rule, message: &f.message, subjects: f.subjects.count, reason: &i.reason }
}

fn position(spot: &Spot) -> Option<Position<'_>> {
    let region = spot.region.as_ref()?;
    Some(Position { file: &spot.file, line: region.line, column: region.column })
}
