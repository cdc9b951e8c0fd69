//! What a rule is, and what it may use: the facts, the plan, and a sink for its findings.

pub mod words;

use crate::checkpoint::Checkpoint;
use crate::finding::{Finding, Fix, Level, Place, Subjects, VllmMessage};
use crate::vllm::Plan;
use crate::vllm::trace::{Effect, Event, Kind};

/// Where the pages are read on the web.
const PAGES: &str = "https://github.com/ckpt-lint/ckpt-lint/blob/main/rules";

/// One rule: a bad pattern, and the words for it.
#[derive(Debug)]
pub struct Rule {
    /// Its identity, `family-thing`; reads as "allow `<name>`".
    pub name: &'static str,
    /// One line: lower case, no final period.
    pub summary: &'static str,
    /// The page beside the rule, for `explain`.
    pub page: &'static str,
    /// Level of what does not touch the verdict; what does is always an error.
    pub level: Level,
    /// Kinds of events that belong to this rule and to no other.
    pub claims: &'static [Kind],
    /// Earlier names, which keep working in `--select` and `--ignore`.
    pub aliases: &'static [&'static str],
    /// Turns events into findings.
    pub check: fn(&Checkpoint, &Plan, &mut Sink),
}

impl Rule {
    /// The first word of the name.
    pub fn family(&self) -> &'static str {
        self.name.split_once('-').map_or(self.name, |n| n.0)
    }

    /// Path of the page below `rules/`.
    pub fn page_path(&self) -> String {
        let (family, thing) = self.name.split_once('-').unwrap_or((self.name, ""));
        format!("{family}/{}.md", thing.replace('-', "_"))
    }

    /// Address of the page.
    pub fn url(&self) -> String {
        format!("{PAGES}/{}", self.page_path())
    }
}

/// Runs rules over a plan. Findings come in rule order.
pub fn check(rules: &[&'static Rule], cp: &Checkpoint, plan: &Plan) -> Vec<Finding> {
    let mut out = Vec::new();
    for rule in rules.iter().copied() {
        let mut sink = Sink { rule, findings: Vec::new() };
        (rule.check)(cp, plan, &mut sink);
        out.append(&mut sink.findings);
    }
    out
}

/// Takes the findings of one rule. A rule cannot emit under another's name, nor choose an effect's level.
#[derive(Debug)]
pub struct Sink {
    rule: &'static Rule,
    findings: Vec<Finding>,
}

impl Sink {
    /// The events that this rule claims, in order.
    pub fn events<'p>(&self, plan: &'p Plan) -> Vec<&'p Event> {
        plan.trace.events.iter().filter(|e| self.rule.claims.contains(&e.kind)).collect()
    }

    /// Starts a finding about a cause. What refuses or damages is an error, and nothing else is one: so verdict and
    /// findings cannot disagree.
    pub fn cause(&mut self, events: &[&Event]) -> Draft<'_> {
        let loud = events.iter().any(|e| e.effect != Effect::Keeps);
        let level = if loud { Level::Error } else { self.rule.level.min(Level::Warning) };
        let raised = events.iter().filter(|e| e.effect == Effect::Refuses).find_map(|e| e.error.as_ref());
        let finding = Finding {
            rule: self.rule.name,
            level,
            message: String::new(),
            place: Place::Folder,
            label: None,
            subjects: Subjects::default(),
            evidence: Vec::new(),
            vllm: raised.map(|r| VllmMessage { error_type: r.error_type.clone(), text: r.text.clone() }),
            help: None,
            fix: None,
        };
        Draft { sink: self, finding }
    }

    /// Starts a finding about something that only the checkpoint shows; it never touches the verdict.
    pub fn fact(&mut self) -> Draft<'_> {
        self.cause(&[])
    }
}

/// A finding in the making; [`Draft::say`] ends it.
#[derive(Debug)]
#[must_use = "a draft becomes a finding with `say`"]
pub struct Draft<'s> {
    sink: &'s mut Sink,
    finding: Finding,
}

impl Draft<'_> {
    /// At a key of a JSON file.
    pub fn key(mut self, file: &str, pointer: &str) -> Self {
        self.finding.place = Place::Key { file: file.to_owned(), pointer: pointer.to_owned() };
        self
    }

    /// At a file.
    pub fn file(mut self, file: &str) -> Self {
        self.finding.place = Place::File { file: file.to_owned() };
        self
    }

    /// At a stored tensor.
    pub fn tensor(mut self, file: &str, name: &str) -> Self {
        self.finding.place = Place::Tensor { file: file.to_owned(), name: name.to_owned() };
        self
    }

    /// Where the event points: its key, its tensor, its file, else `config.json`.
    pub fn at(self, event: &Event) -> Self {
        match (event.pointer.as_deref(), event.file.as_deref(), event.tensor.as_deref()) {
            (Some(pointer), file, _) => self.key(file.unwrap_or("config.json"), pointer),
            (None, Some(file), Some(tensor)) => self.tensor(file, tensor),
            (None, Some(file), None) => self.file(file),
            _ => self,
        }
    }

    /// Hygiene only: a warning becomes a note.
    pub fn note(mut self) -> Self {
        self.finding.level = if self.finding.level == Level::Error { Level::Error } else { Level::Note };
        self
    }

    /// Words under the marker.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.finding.label = Some(label.into());
        self
    }

    /// What it is about: all names, duplicates dropped, in the order given.
    pub fn subjects<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        let mut seen = rustc_hash::FxHashSet::default();
        let names: Vec<String> =
            names.into_iter().map(Into::into).filter(|n: &String| seen.insert(n.clone())).collect();
        self.finding.subjects = Subjects { count: names.len(), names };
        self
    }

    /// Lines of evidence. Without any, a report shows the names of the subjects.
    pub fn evidence(mut self, lines: Vec<String>) -> Self {
        self.finding.evidence = lines;
        self
    }

    /// What to do next.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.finding.help = Some(help.into());
        self
    }

    /// The same as data.
    pub fn fix(mut self, fix: Fix) -> Self {
        self.finding.fix = Some(fix);
        self
    }

    /// Ends the finding: lower case, no final period, under 120 columns.
    pub fn say(mut self, message: impl Into<String>) {
        self.finding.message = message.into();
        self.sink.findings.push(self.finding);
    }
}
