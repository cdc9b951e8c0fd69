//! The comparison for people: what is stored how, how large it is, what is lost or should not have changed, and the
//! sum of it in the last line.

use super::{Cause, Count, Diff, Fate, Field, Kind, Part, Reshaped, Side, Weights, weights};
use crate::finding::words::{count, size, thousands, verb};
use crate::locate::clean;
use serde_json::Value;
use std::io::{self, Write};

/// Lines of one kind before "… and N more".
const LINES: usize = 12;
/// Lines of names below a row of weights.
const NAMES: usize = 4;
/// Characters of a value.
const VALUE: usize = 60;

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const RED: &str = "\u{1b}[1;31m";
const GREEN: &str = "\u{1b}[1;32m";
const YELLOW: &str = "\u{1b}[1;33m";
const OFF: &str = "\u{1b}[0m";

/// Renders a comparison of so many columns, with ANSI styles; the stream strips them where they are not wanted.
///
/// # Errors
/// When writing fails.
pub fn render(diff: &Diff, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page { width, out };
    let (before, after) = (clean(&diff.before.path), clean(&diff.after.path));
    // Paths are told whole, as one would paste them.
    let long = before.chars().count() + after.chars().count() + 3 > width;
    let gap = if long { "\n  " } else { " " };
    writeln!(page.out, "{BOLD}{before}{gap}→ {after}{OFF}")?;
    page.weights(&diff.weights)?;
    page.bytes(diff)?;
    for side in [&diff.before, &diff.after] {
        page.unread(side)?;
    }
    page.moved(diff)?;
    page.causes(diff)?;
    page.shapes(diff)?;
    page.fields(diff)?;
    writeln!(page.out)?;
    if diff.intact {
        return writeln!(page.out, "  {GREEN}nothing is lost{OFF}, and no field changed that must not");
    }
    writeln!(page.out, "  {}", verdict(diff))
}

struct Page<'o> {
    width: usize,
    out: &'o mut dyn Write,
}

impl Page<'_> {
    /// A line, cut to the width.
    fn line(&mut self, style: &str, indent: usize, text: &str) -> io::Result<()> {
        let text = cut(&clean(text), self.width.saturating_sub(indent));
        let off = if style.is_empty() { "" } else { OFF };
        writeln!(self.out, "{:indent$}{style}{text}{off}", "")
    }

    /// A mark, and what it is about.
    fn marked(&mut self, style: &str, mark: char, text: &str) -> io::Result<()> {
        let text = cut(&clean(text), self.width.saturating_sub(4));
        writeln!(self.out, "  {style}{mark}{OFF} {text}")
    }

    /// As many lines as fit, and how many there are more.
    fn lines(&mut self, lines: impl ExactSizeIterator<Item = String>, room: usize, indent: usize) -> io::Result<()> {
        let more = lines.len().saturating_sub(room);
        for line in lines.take(room) {
            self.line("", indent, &line)?;
        }
        if more > 0 {
            let text = format!("… and {} more (all of them with --format json)", thousands(more as u64));
            self.line(DIM, indent, &text)?;
        }
        Ok(())
    }

    fn weights(&mut self, rows: &[Weights]) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let texts: Vec<[String; 3]> = rows.iter().map(|r| [label(r), counts(&r.before), counts(&r.after)]).collect();
        let wide = |i: usize| texts.iter().filter_map(|t| t.get(i)).map(|s| s.chars().count()).max().unwrap_or(0);
        let (first, second) = (wide(0).max("weights".len()), wide(1).clamp("before".len(), 34));
        self.line(DIM, 2, &format!("{:first$}   {:second$}   after", "weights", "before"))?;
        for ([label, before, after], row) in texts.iter().zip(rows) {
            let after = if before == after { "the same" } else { after };
            self.line("", 2, &format!("{label:first$}   {before:second$}   {after}"))?;
            // What became of most is clear from the row; the others are told by name.
            for change in row.changes.iter().skip(1).filter(|_| row.kind == Kind::Matrix) {
                let n = thousands(change.weights as u64);
                let what = if change.before == change.after {
                    format!("{n} {} {}", verb(change.weights, "stays", "stay"), change.after)
                } else {
                    format!("{n} {} → {}", change.before, change.after)
                };
                self.line(DIM, 4, &what)?;
                self.lines(change.names.iter().cloned(), NAMES, 6)?;
            }
        }
        writeln!(self.out)
    }

    fn bytes(&mut self, diff: &Diff) -> io::Result<()> {
        let known = diff.before.by_name == 0 && diff.after.by_name == 0;
        let ratio = weights::ratio(diff.before.bytes, diff.after.bytes).filter(|_| known);
        let total = ("total", diff.before.bytes, diff.after.bytes, ratio);
        if total.1 == 0 && total.2 == 0 {
            return Ok(());
        }
        let rows = diff.bytes.iter().map(|b| (b.part.word(), b.before, b.after, b.ratio)).chain([total]);
        let nothing = |n: u64| if n == 0 { "–".to_owned() } else { size(n) };
        let rows: Vec<_> = rows.map(|(part, a, b, r)| (part, nothing(a), nothing(b), percent(r))).collect();
        let wide = |f: fn(&(&str, String, String, String)) -> usize| rows.iter().map(f).max().unwrap_or(0);
        let (a, b, c) = (wide(|r| r.0.len()), wide(|r| r.1.chars().count()), wide(|r| r.2.chars().count()));
        let (b, c) = (b.max("before".len()), c.max("after".len()));
        self.line(DIM, 2, &format!("{:a$}   {:>b$}   {:>c$}   ratio", "bytes", "before", "after"))?;
        for (part, before, after, ratio) in &rows {
            let style = if *part == "total" { BOLD } else { "" };
            self.line(style, 2, &format!("{part:a$}   {before:>b$}   {after:>c$}   {ratio}"))?;
        }
        writeln!(self.out)
    }

    fn unread(&mut self, side: &Side) -> io::Result<()> {
        if side.by_name > 0 {
            let text = format!("{}: {} known by name only, for the weights are not here", side.path, side.by_name);
            self.marked(YELLOW, '!', &text)?;
        }
        for what in &side.unread {
            self.marked(RED, '×', &format!("{}: {what}", side.path))?;
        }
        Ok(())
    }

    fn moved(&mut self, diff: &Diff) -> io::Result<()> {
        for r in &diff.renamed {
            let shown = |p: &str| if p.is_empty() { "no prefix".to_owned() } else { format!("`{p}`") };
            let n = count(r.weights, "weight");
            self.marked(DIM, '·', &format!("renamed: {} → {} ({n})", shown(&r.before), shown(&r.after)))?;
        }
        for l in &diff.layouts {
            self.marked(DIM, '·', &format!("another layout: {}", l.name))?;
            self.line("", 6, &format!("{} → {}", l.before, l.after))?;
        }
        Ok(())
    }

    fn causes(&mut self, diff: &Diff) -> io::Result<()> {
        let lost: Vec<&Cause> = diff.lost.iter().filter(|c| c.reason.is_none()).collect();
        let row = |c: &Cause| format!("{} ({}, {})", c.name, count(c.weights, "weight"), c.part.word());
        if !lost.is_empty() {
            self.marked(RED, '×', &format!("lost: {}", count(sum(&lost), "weight")))?;
            self.lines(lost.iter().map(|c| row(c)), LINES, 6)?;
        }
        for c in diff.lost.iter().filter(|c| c.reason.is_some()) {
            self.marked(DIM, '·', &format!("no loss: {}, for {}", c.name, c.reason.as_deref().unwrap_or_default()))?;
        }
        let gained: Vec<&Cause> = diff.gained.iter().collect();
        if !gained.is_empty() {
            self.marked(YELLOW, '!', &format!("gained: {}", count(sum(&gained), "weight")))?;
            self.lines(gained.iter().map(|c| row(c)), LINES, 6)?;
        }
        Ok(())
    }

    fn shapes(&mut self, diff: &Diff) -> io::Result<()> {
        if diff.reshaped.is_empty() {
            return Ok(());
        }
        let n = diff.reshaped.iter().map(|r| r.weights).sum();
        self.marked(RED, '×', &format!("{} of another shape", count(n, "weight")))?;
        let row = |r: &Reshaped| format!("{} {:?} → {:?} {}", r.name, r.before, r.after, r.stored);
        self.lines(diff.reshaped.iter().map(row), LINES, 6)
    }

    fn fields(&mut self, diff: &Diff) -> io::Result<()> {
        for (breaks, style, mark) in [(true, RED, '×'), (false, YELLOW, '!')] {
            let some: Vec<&Field> = diff.fields.iter().filter(|f| f.breaks == breaks).collect();
            let Some(longest) = some.iter().take(LINES).map(|f| f.name.chars().count()).max() else { continue };
            let what = if breaks { "changed that must not" } else { verb(some.len(), "differs", "differ") };
            self.marked(style, mark, &format!("{} {what}", count(some.len(), "field")))?;
            let longest = longest.min(self.width / 2);
            self.lines(some.iter().map(|f| field(f, longest)), LINES, 6)?;
        }
        if !diff.harmless.is_empty() {
            self.marked(DIM, '·', &format!("harmless: {}", some_of(&diff.harmless)))?;
        }
        if !diff.files_lost.is_empty() {
            self.marked(YELLOW, '!', &format!("files that only the source has: {}", some_of(&diff.files_lost)))?;
        }
        Ok(())
    }
}

fn sum(causes: &[&Cause]) -> usize {
    causes.iter().map(|c| c.weights).sum()
}

fn some_of(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(LINES).map(String::as_str).collect();
    let more = if names.len() > LINES { ", …" } else { "" };
    shown.join(", ") + more
}

fn label(row: &Weights) -> String {
    match row.kind {
        _ if row.part == Part::Quantization => row.part.word().to_owned(),
        Kind::Unknown => format!("{}, by name", row.part.word()),
        Kind::Vector => format!("{}, vectors", row.part.word()),
        Kind::Matrix => row.part.word().to_owned(),
    }
}

fn counts(all: &[Count]) -> String {
    let all: Vec<String> = all.iter().map(|c| format!("{} {}", thousands(c.weights as u64), c.precision)).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(" + ") }
}

fn percent(ratio: Option<f64>) -> String {
    ratio.map_or_else(String::new, |r| format!("{:.1} %", r * 100.0))
}

fn field(f: &Field, longest: usize) -> String {
    let file = if f.file == "config.json" { String::new() } else { format!("{}: ", f.file) };
    let shown = |v: &Option<Value>| v.as_ref().map_or_else(String::new, value);
    let what = match (f.fate, &f.before, &f.after) {
        (Fate::Changed, Some(Value::Array(a)), Some(Value::Array(b))) if a.len() + b.len() > 4 => entries(a, b),
        (Fate::Changed, a, b) => format!("{} → {}", shown(a), shown(b)),
        (Fate::Gone, a, _) => format!("gone, was {}", shown(a)),
        (Fate::New, _, b) => format!("new, {}", shown(b)),
    };
    format!("{file}{:longest$}  {what}", f.name)
}

/// Where two long lists differ.
fn entries(a: &[Value], b: &[Value]) -> String {
    if a.len() != b.len() {
        return format!("{} → {}", count(a.len(), "entry"), count(b.len(), "entry"));
    }
    let differ: Vec<usize> = a.iter().zip(b).enumerate().filter(|(_, (x, y))| x != y).map(|(i, _)| i).collect();
    let first = differ.first().and_then(|&i| Some((i, a.get(i)?, b.get(i)?)));
    let (at, x, y) = first.map_or((0, String::new(), String::new()), |(i, x, y)| (i, value(x), value(y)));
    format!("{} of {}, the first at {at}: {x} → {y}", differ.len(), count(a.len(), "entry"))
}

fn value(v: &Value) -> String {
    match v {
        Value::Object(map) => format!("an object of {}", count(map.len(), "field")),
        Value::Array(list) if list.len() > 4 => format!("a list of {}", count(list.len(), "entry")),
        v => cut(&v.to_string(), VALUE),
    }
}

/// As many characters as fit.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.trim_end().to_owned();
    }
    text.chars().take(width.saturating_sub(1)).collect::<String>() + "…"
}

/// All that speaks against it.
fn verdict(diff: &Diff) -> String {
    let lost: Vec<&Cause> = diff.lost.iter().filter(|c| c.reason.is_none()).collect();
    let fields = diff.fields.iter().filter(|f| f.breaks).count();
    let shapes: usize = diff.reshaped.iter().map(|r| r.weights).sum();
    let unread = diff.before.unread.len() + diff.after.unread.len();
    let parts = [
        (sum(&lost), "weight", "lost"),
        (shapes, "weight", "of another shape"),
        (fields, "field", "changed that must not"),
        (unread, "thing", "not compared"),
    ];
    let parts = parts.into_iter().filter(|p| p.0 > 0);
    let text: Vec<String> = parts.map(|(n, what, how)| format!("{} {how}", count(n, what))).collect();
    format!("{RED}not the same model{OFF}: {}", text.join(", "))
}
