//! Which rules run, at which level, and what makes a run fail.

mod baseline;
mod settings;

pub use baseline::{Baseline, Known};
pub use settings::{Fail, Ignore, Ignores, NAMES, Settings, parse, wanted};

use crate::finding::{Finding, Level};
use crate::rule::Rule;
use std::fmt;

/// The lowest level that makes a run fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// This level or a higher one.
    At(Level),
    /// Nothing does.
    Never,
}

/// What the command line asks for, by rule or family name.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Only these; all when empty.
    pub select: Vec<String>,
    /// Not these.
    pub ignore: Vec<String>,
    /// Missing weights are an error.
    pub require_weights: bool,
}

/// Selection and levels, checked.
#[derive(Debug)]
pub struct Policy {
    rules: Vec<&'static Rule>,
    require_weights: bool,
    fail_on: FailOn,
}

/// The rule whose level `--require-weights` raises.
const WEIGHTS_RULE: &str = "files-weights-absent";

/// A name that is neither a rule nor a family.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownRule {
    /// As given.
    pub name: String,
    /// The nearest name, when one is near.
    pub nearest: Option<&'static str>,
}

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no rule or family `{}`", self.name)?;
        match self.nearest {
            Some(n) => write!(f, "; did you mean `{n}`?"),
            None => write!(f, "; `ckpt-lint rules` lists them"),
        }
    }
}

impl std::error::Error for UnknownRule {}

impl Policy {
    /// Checks the wishes against the rules that there are.
    ///
    /// # Errors
    /// On a name that is neither a rule, nor a rule's earlier name, nor a family.
    pub fn new(
        all: impl IntoIterator<Item = &'static Rule>,
        wishes: &Wishes,
        fail_on: FailOn,
    ) -> Result<Policy, UnknownRule> {
        let all: Vec<&'static Rule> = all.into_iter().collect();
        for name in wishes.select.iter().chain(&wishes.ignore) {
            if !all.iter().any(|r| matches(r, name)) {
                return Err(unknown(&all, name));
            }
        }
        let wanted = |r: &Rule| {
            (wishes.select.is_empty() || wishes.select.iter().any(|n| matches(r, n)))
                && !wishes.ignore.iter().any(|n| matches(r, n))
        };
        let rules = all.into_iter().filter(|r| wanted(r)).collect();
        Ok(Policy { rules, require_weights: wishes.require_weights, fail_on })
    }

    /// The rules that run.
    pub fn rules(&self) -> &[&'static Rule] {
        &self.rules
    }

    /// Sets levels and the order: errors first, then by file, rule and place.
    pub fn apply(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        if self.require_weights {
            for f in findings.iter_mut().filter(|f| f.rule == WEIGHTS_RULE) {
                f.level = Level::Error;
            }
        }
        findings.sort_by(|a, b| {
            b.level
                .cmp(&a.level)
                .then_with(|| a.place.file().cmp(&b.place.file()))
                .then_with(|| a.rule.cmp(b.rule))
                .then_with(|| a.place.cmp(&b.place))
                .then_with(|| a.message.cmp(&b.message))
        });
        findings
    }

    /// Whether a finding of this level makes the run fail.
    pub fn fails(&self, level: Level) -> bool {
        matches!(self.fail_on, FailOn::At(lowest) if level >= lowest)
    }
}

fn matches(rule: &Rule, name: &str) -> bool {
    rule.name == name || rule.family() == name || rule.aliases.contains(&name)
}

/// What to say of a name that is no rule's.
pub fn unknown(all: &[&'static Rule], name: &str) -> UnknownRule {
    let nearest = nearest_name(all.iter().flat_map(|r| [r.name, r.family()]), name);
    UnknownRule { name: name.to_owned(), nearest }
}

/// The name that somebody may have meant.
pub fn nearest_name<'n>(names: impl IntoIterator<Item = &'n str>, name: &str) -> Option<&'n str> {
    // A word in another place (`ignore-dead` for `quant-dead-ignore`) is as near as a slip of the finger.
    let score = |n: &str| {
        let words = name.split('-').filter(|w| w.len() > 2 && n.split('-').any(|m| m == *w)).count();
        distance(name, n).saturating_sub(3 * words)
    };
    names.into_iter().map(|n| (score(n), n)).min().filter(|n| n.0 <= name.len() / 3 + 1).map(|n| n.1)
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let best = (before + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            before = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    fn policy(select: &[&str], ignore: &[&str]) -> Result<Policy, UnknownRule> {
        let own = |v: &[&str]| v.iter().map(|s| (*s).to_owned()).collect();
        let wishes = Wishes { select: own(select), ignore: own(ignore), require_weights: false };
        Policy::new(rules::all(), &wishes, FailOn::At(Level::Error))
    }

    #[test]
    fn families_and_names() {
        assert_eq!(policy(&[], &[]).unwrap().rules().len(), rules::all().count());
        let tie = policy(&["tie"], &["tie-flag-conflict"]).unwrap();
        assert!(tie.rules().iter().all(|r| r.family() == "tie" && r.name != "tie-flag-conflict"));
        assert!(!tie.rules().is_empty());
    }

    #[test]
    fn unknown_names_come_with_the_nearest() {
        let nearest = |n: &str| policy(&[n], &[]).unwrap_err().nearest;
        assert_eq!(nearest("quant-unlisted-linaer"), Some("quant-unlisted-linear"));
        assert_eq!(nearest("unlisted-linear"), Some("quant-unlisted-linear"));
        assert_eq!(nearest("teh"), Some("tie"));
        assert_eq!(nearest("xyzzy-plugh"), None);
    }

    #[test]
    fn levels_that_fail() {
        let p = policy(&[], &[]).unwrap();
        assert!(p.fails(Level::Error) && !p.fails(Level::Warning));
    }
}
