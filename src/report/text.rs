//! The report for people: miette's frames around our own excerpts, vLLM's words, a help to paste, the verdict last.

use super::words::{BY_NAMES, levels, one_line, tally, while_, wrap};
use super::{Class, FileState, Report, Section, Shown, Verdict};
use crate::finding::words::{count, size, thousands};
use crate::finding::{Level, VllmMessage};
use crate::locate::{Spot, clean};
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, Severity,
    SourceCode, SourceSpan, SpanContents,
};
use std::fmt;
use std::io::{self, Write};

/// How to render.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Everything: all subjects, whole messages.
    pub verbose: bool,
    /// Neither notes nor the line of what was read.
    pub quiet: bool,
    /// Say how long it took: for people only, since reports get compared.
    pub time: bool,
    /// Somebody looks on: no line is wider than `width`, unless it is a single name.
    pub fit: bool,
    /// Names of rules are links to their pages (OSC 8).
    pub links: bool,
}

/// Lines of evidence before "… and N more".
const LINES: usize = 5;
/// The same of a note.
const NOTE_LINES: usize = 2;
/// Characters of a message of vLLM's before it is cut.
const MESSAGE: usize = 600;
/// Characters of the message in the verdict.
const VERDICT: usize = 160;

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const CYAN: &str = "\u{1b}[36m";
const RED: &str = "\u{1b}[1;31m";
const GREEN: &str = "\u{1b}[1;32m";
const YELLOW: &str = "\u{1b}[1;33m";
const LINK: &str = "\u{1b}]8;;";
const END: &str = "\u{1b}\\";
const OFF: &str = "\u{1b}[0m";

/// Renders a report, with ANSI styles; the stream strips them where they are not wanted.
///
/// # Errors
/// When writing fails.
pub fn render(report: &Report, look: Look, out: &mut dyn Write) -> io::Result<()> {
    for section in &report.checkpoints {
        writeln!(out, "{BOLD}{}{OFF}", clean(&section.path))?;
        let mut quoted = Vec::new();
        for shown in &section.findings {
            if !(look.quiet && shown.finding.level == Level::Note) {
                finding(shown, section, &report.target.vllm, look, &mut quoted, out)?;
            }
        }
        if !look.quiet {
            for (i, line) in fitted(&summary(section, look, report), look).iter().enumerate() {
                writeln!(out, "  {}{DIM}{line}{OFF}", if i > 0 { "  " } else { "" })?;
            }
        }
        for (i, line) in fitted(&verdict(section, &report.target.vllm), look).iter().enumerate() {
            writeln!(out, "  {}{line}", if i > 0 { "  " } else { "" })?;
        }
        if report.checkpoints.len() > 1 {
            writeln!(out)?;
        }
    }
    if report.checkpoints.len() > 1 {
        let total = count(report.checkpoints.len(), "checkpoint");
        writeln!(out, "{BOLD}{total}{OFF}: {}", tally(report))?;
    }
    Ok(())
}

/// A line of the end: whole where it goes to a file, broken where it would break anyway.
fn fitted(line: &str, look: Look) -> Vec<String> {
    if look.fit { wrap(line, look.width.saturating_sub(4)) } else { vec![line.to_owned()] }
}

fn finding<'s>(
    shown: &'s Shown,
    section: &Section,
    vllm: &str,
    look: Look,
    quoted: &mut Vec<&'s VllmMessage>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let f = &shown.finding;
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode())
        // The message is wrapped already: miette would break the rule's name at its hyphens.
        .with_width(usize::from(u16::MAX))
        .with_context_lines(1)
        .with_links(false);
    handler.render_report(&mut text, &Framed::new(shown, look)).map_err(io::Error::other)?;
    writeln!(out, "{}", text.trim_end())?;
    let lines = if f.evidence.is_empty() { &f.subjects.names } else { &f.evidence };
    // A single name stands in the title or the frame already.
    let told = f.evidence.is_empty() && lines.iter().all(|l| f.message.contains(l.as_str()));
    if !told {
        let room = match f.level {
            _ if look.verbose => usize::MAX,
            Level::Note => NOTE_LINES,
            _ => LINES,
        };
        for line in lines.iter().take(room) {
            for (i, line) in hung(&clean(line), look).iter().enumerate() {
                writeln!(out, "    {}{line}", if i > 0 { "  " } else { "" })?;
            }
        }
        if lines.len() > room {
            writeln!(out, "    {DIM}… and {} more (all of them with -v){OFF}", thousands((lines.len() - room) as u64))?;
        }
    }
    // Of a message that belongs to several findings, once is enough.
    if let Some(message) = f.vllm.as_ref().filter(|m| !quoted.contains(m)) {
        quoted.push(message);
        quote(message, &section.verdict, vllm, look, out)?;
    }
    if let Some(help) = &f.help {
        let mut lines = help.lines();
        let first = lines.next().unwrap_or_default();
        for (i, line) in wrap(&clean(first), look.width.saturating_sub(10)).iter().enumerate() {
            let lead = if i == 0 { format!("{CYAN}help:{OFF} ") } else { "      ".into() };
            writeln!(out, "    {lead}{line}")?;
        }
        // What is to be pasted breaks at its spaces: lists stay lists.
        for line in lines.map(clean) {
            let broken = if look.fit { wrap(&line, look.width.saturating_sub(6)) } else { vec![line] };
            for line in broken {
                writeln!(out, "      {line}")?;
            }
        }
    }
    writeln!(out)
}

/// A line of evidence: on a terminal, broken at the gaps between its columns first.
fn hung(line: &str, look: Look) -> Vec<String> {
    let room = look.width.saturating_sub(6);
    if !look.fit || line.chars().count() <= room + 2 {
        return vec![line.to_owned()];
    }
    let mut out: Vec<String> = Vec::new();
    for part in line.split("   ").map(str::trim).filter(|p| !p.is_empty()) {
        match out.last_mut() {
            Some(last) if last.chars().count() + 3 + part.chars().count() <= room => {
                last.push_str("   ");
                last.push_str(part);
            }
            _ => out.extend(wrap(part, room)),
        }
    }
    out
}

/// vLLM's own words. Only one message is what it prints first.
fn quote(m: &VllmMessage, verdict: &Verdict, vllm: &str, look: Look, out: &mut dyn Write) -> io::Result<()> {
    let first = verdict.message.as_deref() == Some(&m.text) && verdict.error_type.as_deref() == Some(&m.error_type);
    let stage = verdict.stage.filter(|_| first).map_or("", while_);
    let lead = if first { format!("stops here{stage} with") } else { "would stop here next with".to_owned() };
    writeln!(out, "    vLLM {vllm} {lead}")?;
    let mut text = m.text.clone();
    if !look.verbose && text.chars().count() > MESSAGE {
        text = text.chars().take(MESSAGE).collect::<String>() + "…";
    }
    let text =
        if text.is_empty() { m.error_type.clone() + " (without a text)" } else { format!("{}: {text}", m.error_type) };
    for line in text.lines() {
        for line in wrap(&clean(line), look.width.saturating_sub(6)) {
            writeln!(out, "      {line}")?;
        }
    }
    Ok(())
}

/// `1 error, 1 warning · 49 shards, 1,333 tensors, 7.68 GiB · config, index and all headers read`.
fn summary(section: &Section, look: Look, report: &Report) -> String {
    let read = &section.read;
    let mut parts = vec![levels(|l| section.count(l))];
    if !section.ignored.is_empty() {
        parts.push(format!("{} ignored", section.ignored.len()));
    }
    let tensors = count(read.tensors, "tensor");
    parts.push(if read.names_only {
        format!("{} by name", count(read.tensors, "tensor"))
    } else if read.config_only {
        "no weights looked at".to_owned()
    } else if read.shards == 0 {
        "no shards".to_owned()
    } else {
        format!("{}, {tensors}, {}", count(read.shards, "shard"), size(read.bytes))
    });
    let mut done = Vec::new();
    let mut not = Vec::new();
    for (name, state) in [("config", read.config), ("index", read.index)] {
        match state {
            FileState::Read => done.push(name.to_owned()),
            FileState::Broken => not.push(format!("{name} broken")),
            FileState::Absent if name == "config" => not.push("no config".to_owned()),
            FileState::Absent => {}
        }
    }
    if read.headers > 0 {
        let all =
            if read.headers == read.shards { "all".to_owned() } else { format!("{} of {}", read.headers, read.shards) };
        done.push(format!("{all} headers"));
    } else if read.names_only {
        not.push("no weights here".to_owned());
    }
    let done = match done.split_last() {
        None => "nothing read".to_owned(),
        Some((last, [])) => format!("{last} read"),
        Some((last, rest)) => format!("{} and {last} read", rest.join(", ")),
    };
    parts.push(std::iter::once(done).chain(not).collect::<Vec<_>>().join(", "));
    if look.time && report.checkpoints.len() == 1 {
        parts.push(format!("{} ms", report.elapsed.as_millis()));
    }
    parts.join(" · ")
}

/// The verdict in the design's words.
fn verdict(section: &Section, vllm: &str) -> String {
    let Section { verdict: v, unknown, read, .. } = section;
    let plain = |s: &str| clean(&one_line(s, VERDICT));
    match v.class {
        Class::Loads if read.names_only => format!("vLLM {vllm} {GREEN}would load{OFF} this checkpoint, {BY_NAMES}"),
        Class::Loads => format!("vLLM {vllm} {GREEN}would load{OFF} this checkpoint"),
        Class::Refuses => {
            let message =
                v.message.as_deref().filter(|m| !m.is_empty()).or(v.error_type.as_deref()).unwrap_or_default();
            format!("vLLM {vllm} {RED}would refuse{OFF} it: {}", plain(message))
        }
        Class::Damages => {
            let what = count(v.garbage, "parameter");
            format!("vLLM {vllm} {RED}would load it, and{OFF} {what} {RED}would hold garbage{OFF}")
        }
        Class::Unknown => {
            let why = unknown.first().map_or("no facts", String::as_str);
            let more = if unknown.len() > 1 { format!(" (and {} more)", unknown.len() - 1) } else { String::new() };
            format!("vLLM {vllm} {YELLOW}unknown{OFF}: {}{more}", plain(why))
        }
    }
}

/// A finding as miette wants it. It never sees more of a file than the excerpt.
#[derive(Debug)]
struct Framed {
    message: String,
    severity: Severity,
    source: Option<Lines>,
    label: Option<String>,
}

impl Framed {
    fn new(shown: &Shown, look: Look) -> Self {
        let f = &shown.finding;
        let room = look.width.saturating_sub(4);
        let mut lines = wrap(&clean(&f.message), room);
        let fits = lines.last().is_some_and(|l| l.chars().count() + 3 + f.rule.len() <= room);
        let rule = match look.links {
            true => format!("{DIM}{LINK}{}{END}{}{LINK}{END}{OFF}", shown.url, f.rule),
            false => format!("{DIM}{}{OFF}", f.rule),
        };
        match lines.last_mut() {
            Some(last) if fits => *last = format!("{last}   {rule}"),
            _ => lines.push(rule),
        }
        let severity = match f.level {
            Level::Error => Severity::Error,
            Level::Warning => Severity::Warning,
            Level::Note => Severity::Advice,
        };
        let source = shown.spot.as_ref().and_then(|s| Lines::new(s, look));
        let label = f.label.as_deref().map(clean).map(|label| match &source {
            Some(source) if look.fit => wrap(&label, look.width.saturating_sub(source.before_label())).join("\n"),
            _ => label,
        });
        Framed { message: lines.join("\n"), severity, source, label }
    }
}

impl fmt::Display for Framed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Framed {}

impl Diagnostic for Framed {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|s| s as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let source = self.source.as_ref()?;
        let (start, end) = source.mark;
        let label = LabeledSpan::new_primary_with_span(self.label.clone(), (start, end - start));
        Some(Box::new(std::iter::once(label)))
    }
}

/// An excerpt that knows its true position: miette would count from the start of the file, at every label.
#[derive(Debug)]
struct Lines {
    name: String,
    text: String,
    first_line: usize,
    mark: (usize, usize),
    position: (usize, usize),
    /// Columns before each line.
    gutter: usize,
}

impl Lines {
    fn new(spot: &Spot, look: Look) -> Option<Self> {
        let region = spot.region.as_ref()?;
        // What stands before a line: its number, the frame.
        let gutter = (region.excerpt.first_line + 2).to_string().len() + 4;
        let excerpt = match look.fit {
            true => region.excerpt.narrow(look.width.saturating_sub(gutter)),
            false => region.excerpt.clone(),
        };
        let before: usize = excerpt.lines.iter().take(excerpt.marked).map(|l| l.len() + 1).sum();
        Some(Lines {
            name: clean(&spot.file),
            text: excerpt.lines.join("\n"),
            first_line: excerpt.first_line,
            mark: (before + excerpt.mark.start, before + excerpt.mark.end),
            position: (region.line, region.column),
            gutter,
        })
    }
}

impl Lines {
    /// Columns before a label: the frame, what stands before the middle of the mark, the hook.
    fn before_label(&self) -> usize {
        let (start, end) = self.mark;
        let line = self.text.get(..start).map_or("", |t| t.rsplit('\n').next().unwrap_or_default());
        let mark = self.text.get(start..end).map_or(0, |t| t.chars().count());
        self.gutter + line.chars().count() + mark / 2 + 4
    }
}

impl SourceCode for Lines {
    fn read_span<'a>(
        &'a self,
        _: &SourceSpan,
        before: usize,
        _: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        // miette asks twice: with context for the frame, without for the position in its title.
        let (line, column) = match before {
            0 => (self.position.0.saturating_sub(1), self.position.1.saturating_sub(1)),
            _ => (self.first_line.saturating_sub(1), 0),
        };
        let (name, whole) = (self.name.clone(), SourceSpan::from((0, self.text.len())));
        let lines = self.text.lines().count();
        Ok(Box::new(MietteSpanContents::new_named(name, self.text.as_bytes(), whole, line, column, lines)))
    }
}
