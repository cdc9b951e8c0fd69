//! Findings that were there when somebody decided to live with them: for checkpoints that one cannot edit.

use crate::finding::{Finding, Level};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// Version of the file.
const VERSION: u32 = 1;

/// A finding of a baseline. It is known by checkpoint and fingerprint; the rest is for whoever reads the file, and says
/// how bad it was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The checkpoint's folder, from the folder of the baseline.
    pub checkpoint: String,
    /// Rule.
    pub rule: String,
    /// What the finding says.
    pub message: String,
    /// Its level.
    pub level: Level,
    /// How many things it is about.
    pub subjects: usize,
    /// What it is known by.
    pub fingerprint: String,
}

impl Known {
    /// A finding as a baseline has it.
    pub fn new(checkpoint: &str, finding: &Finding, fingerprint: &str) -> Self {
        Known {
            checkpoint: checkpoint.to_owned(),
            rule: finding.rule.to_owned(),
            message: finding.message.clone(),
            level: finding.level,
            subjects: finding.subjects.count,
            fingerprint: fingerprint.to_owned(),
        }
    }
}

/// A baseline at work: which of its findings are still there.
#[derive(Debug, Default)]
pub struct Baseline {
    known: Vec<Known>,
    /// Index of `known`, by fingerprint: several checkpoints may share one.
    at: HashMap<String, Vec<usize>>,
    used: BTreeSet<usize>,
    looked: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    findings: Vec<Known>,
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(name: &str, text: &str) -> Result<Baseline, String> {
        let bad = |e: serde_json::Error| format!("{name} is no baseline of ckpt-lint: {e}");
        let version = serde_json::from_str::<Version>(text).map_err(bad)?.version;
        if version != VERSION {
            return Err(format!("{name} is a baseline of version {version}; this ckpt-lint reads version {VERSION}"));
        }
        let known = serde_json::from_str::<Document>(text).map_err(bad)?.findings;
        let mut at: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, k) in known.iter().enumerate() {
            at.entry(k.fingerprint.clone()).or_default().push(i);
        }
        Ok(Baseline { known, at, ..Baseline::default() })
    }

    /// Whether a finding was there before, no worse than it is now: a higher level, or more of the same, is news.
    pub fn covers(&mut self, checkpoint: &str, finding: &Finding, fingerprint: &str) -> bool {
        let Baseline { known, at, used, .. } = self;
        let same = at.get(fingerprint).into_iter().flatten().copied().filter(|i| known[*i].checkpoint == checkpoint);
        let mut covered = false;
        for i in same {
            used.insert(i);
            covered |= finding.level <= known[i].level && finding.subjects.count <= known[i].subjects;
        }
        covered
    }

    /// Remembers that a checkpoint was looked at: of others nothing can be said.
    pub fn looked_at(&mut self, checkpoint: &str) {
        self.looked.insert(checkpoint.to_owned());
    }

    /// Findings that are not there any more, though their checkpoint was looked at and their rule `ran`.
    pub fn gone(&self, ran: impl Fn(&str) -> bool) -> Vec<&Known> {
        let judged = |k: &Known| self.looked.contains(&k.checkpoint) && ran(&k.rule);
        self.known.iter().enumerate().filter(|(i, k)| !self.used.contains(i) && judged(k)).map(|k| k.1).collect()
    }

    /// The file that a new baseline makes of this one: what was looked at by rules that `ran` is replaced by `new`,
    /// the rest stays. Sorted, a finding on lines of its own, so that a change reads as one.
    ///
    /// # Errors
    /// None in practice: it is written to memory.
    pub fn updated(&self, new: Vec<Known>, ran: impl Fn(&str) -> bool) -> serde_json::Result<String> {
        let judged = |k: &&Known| self.looked.contains(&k.checkpoint) && ran(&k.rule);
        let mut findings: Vec<Known> = self.known.iter().filter(|k| !judged(k)).cloned().chain(new).collect();
        findings.sort();
        findings.dedup();
        Ok(serde_json::to_string_pretty(&Document { version: VERSION, findings })? + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(checkpoint: &str, print: &str) -> Known {
        Known {
            checkpoint: checkpoint.into(),
            rule: "tie-flag-conflict".into(),
            message: "m".into(),
            level: Level::Warning,
            subjects: 1,
            fingerprint: print.into(),
        }
    }

    #[test]
    fn what_was_not_looked_at_stays() {
        let all = vec![known("b", "1"), known("a", "1"), known("a", "0")];
        let first = Baseline::default().updated(all, |_| true).unwrap();
        let mut b = Baseline::parse("x", &first).unwrap();
        b.looked_at("a");
        assert_eq!(b.gone(|_| true).len(), 2);
        assert!(b.gone(|_| false).is_empty());
        let next = b.updated(vec![known("a", "7")], |_| true).unwrap();
        let next = Baseline::parse("x", &next).unwrap();
        let left: Vec<_> = next.known.iter().map(|k| (k.checkpoint.as_str(), k.fingerprint.as_str())).collect();
        assert_eq!(left, [("a", "7"), ("b", "1")]);
    }

    #[test]
    fn what_is_no_baseline() {
        for (text, said) in [
            ("", "x is no baseline of ckpt-lint: EOF"),
            ("[1]", "is no baseline"),
            ("{\"version\": 2, \"new\": []}", "a baseline of version 2; this ckpt-lint reads version 1"),
            ("{\"version\": 1}", "missing field `findings`"),
            ("{\"version\": 1, \"findings\": [{\"rule\": \"a\"}]}", "missing field"),
            ("{\"version\": 1, \"findings\": [], \"x\": 1}", "unknown field `x`"),
        ] {
            let e = Baseline::parse("x", text).unwrap_err();
            assert!(e.contains(said), "{text}: {e}");
        }
    }
}
