//! `ckpt-lint.toml`: what a repository asks for, and what it ignores for a reason.

use super::{UnknownRule, matches, nearest_name, unknown};
use crate::finding::{Finding, Level};
use crate::rule::Rule;
use glob::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names that are looked for, in this order.
pub const NAMES: [&str; 3] = ["ckpt-lint.toml", ".ckpt-lint.toml", "pyproject.toml"];

/// The settings of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(title = "ckpt-lint settings")]
pub struct Settings {
    /// Only these rules or families.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub select: Vec<String>,
    /// Lowest level that makes the exit code 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_on: Option<Fail>,
    /// Missing weights are an error, not a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_weights: Option<bool>,
    /// vLLM version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vllm: Option<String>,
    /// vLLM runs with `--trust-remote-code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_remote_code: Option<bool>,
    /// File of findings that are known and accepted, as `--write-baseline` writes it; relative to the settings file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Findings that are known and accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<Ignore>,
}

/// `fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fail {
    /// Refuses or damages.
    Error,
    /// Not as meant.
    Warning,
    /// Anything.
    Note,
    /// Nothing.
    Never,
}

impl From<Fail> for super::FailOn {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Error => super::FailOn::At(Level::Error),
            Fail::Warning => super::FailOn::At(Level::Warning),
            Fail::Note => super::FailOn::At(Level::Note),
            Fail::Never => super::FailOn::Never,
        }
    }
}

/// A finding that is known and accepted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ignore {
    /// Rule or family.
    pub rule: String,
    /// Glob of the checkpoint's path, as it is shown; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Glob that everything the finding is about (tensors, modules, entries) must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor: Option<String>,
    /// Why. Whoever reads the file next wants to know.
    pub reason: String,
}

/// `pyproject.toml`, as far as it is ours.
#[derive(Debug, Default, Deserialize)]
struct Project {
    #[serde(default)]
    tool: Tool,
}

#[derive(Debug, Default, Deserialize)]
struct Tool {
    #[serde(default, rename = "ckpt-lint")]
    settings: Settings,
}

/// Whether a file of this name and text holds settings of ours.
pub fn wanted(name: &str, text: &str) -> bool {
    name != "pyproject.toml" || text.contains("[tool.ckpt-lint")
}

/// Reads a settings file.
///
/// # Errors
/// What is wrong and where: unknown keys come with the nearest one, an ignore without a reason is none.
pub fn parse(name: &str, text: &str) -> Result<Settings, String> {
    let table: toml::Table = text.parse().map_err(|e| format!("{name}: {e}"))?;
    let own = if name.ends_with("pyproject.toml") {
        let tool = table.get("tool").and_then(|t| t.get("ckpt-lint"));
        tool.cloned().unwrap_or(toml::Value::Table(toml::Table::new()))
    } else {
        toml::Value::Table(table)
    };
    let known = ["select", "fail-on", "require-weights", "vllm", "trust-remote-code", "baseline", "ignore"];
    for key in own.as_table().into_iter().flat_map(|t| t.keys()) {
        if !known.contains(&key.as_str()) {
            return Err(match nearest_name(known, key) {
                Some(near) => format!("{name}: unknown key `{key}`; did you mean `{near}`?"),
                None => format!("{name}: unknown key `{key}`; there are {}", known.join(", ")),
            });
        }
    }
    // Once more from the text, since only then errors have a line.
    let read = if name.ends_with("pyproject.toml") {
        toml::from_str::<Project>(text).map(|p| p.tool.settings)
    } else {
        toml::from_str::<Settings>(text)
    };
    let settings = read.map_err(|e| format!("{name}: {}", e.to_string().trim_end()))?;
    for (i, ignore) in settings.ignore.iter().enumerate() {
        let at = format!("{name}: [[ignore]] {} (`{}`)", i + 1, ignore.rule);
        if ignore.reason.trim().is_empty() {
            return Err(format!("{at} gives no reason"));
        }
        for glob in [&ignore.path, &ignore.tensor].into_iter().flatten() {
            Pattern::new(glob).map_err(|e| format!("{at}: `{glob}` is no glob: {e}"))?;
        }
    }
    Ok(settings)
}

/// The ignores at work: which of them matched anything.
#[derive(Debug)]
pub struct Ignores {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    ignore: Ignore,
    /// Names of the rules that it means.
    rules: Vec<&'static str>,
    path: Option<Pattern>,
    tensor: Option<Pattern>,
    used: bool,
    /// A checkpoint that its path means was linted.
    reached: bool,
}

impl Ignores {
    /// From settings that [`parse`] took.
    ///
    /// # Errors
    /// On a name that is neither a rule, nor a rule's earlier name, nor a family.
    pub fn new(all: &[&'static Rule], ignores: &[Ignore]) -> Result<Ignores, UnknownRule> {
        let glob = |g: &Option<String>| g.as_ref().and_then(|g| Pattern::new(g).ok());
        let row = |i: &Ignore| {
            let rules: Vec<_> = all.iter().filter(|r| matches(r, &i.rule)).map(|r| r.name).collect();
            if rules.is_empty() {
                return Err(unknown(all, &i.rule));
            }
            Ok(Row {
                path: glob(&i.path),
                tensor: glob(&i.tensor),
                ignore: i.clone(),
                rules,
                used: false,
                reached: false,
            })
        };
        Ok(Ignores { rows: ignores.iter().map(row).collect::<Result<_, _>>()? })
    }

    /// Notes that a checkpoint was linted, by any of its names, whatever was found in it.
    pub fn reach(&mut self, names: &[String]) {
        for row in &mut self.rows {
            row.reached |= row.path.as_ref().is_some_and(|p| names.iter().any(|n| p.matches(n)));
        }
    }

    /// Why a finding is ignored, if it is: with a `tensor` glob, only when all of its subjects match.
    pub fn reason(&mut self, checkpoint: &[String], finding: &Finding) -> Option<&str> {
        let names = &finding.subjects.names;
        let row = self.rows.iter_mut().find(|row| {
            row.rules.contains(&finding.rule)
                && row.path.as_ref().is_none_or(|p| checkpoint.iter().any(|c| p.matches(c)))
                && row.tensor.as_ref().is_none_or(|t| !names.is_empty() && names.iter().all(|n| t.matches(n)))
        })?;
        row.used = true;
        Some(&row.ignore.reason)
    }

    /// Ignores that matched nothing, by number from one: what they were for is gone. One with a path counts only when a
    /// checkpoint there was linted; one without only when whole folders were (`all`): else it may be for what this run did not
    /// look at. So it may when none of its rules ran.
    pub fn unused(&self, all: bool, ran: impl Fn(&str) -> bool) -> impl Iterator<Item = (usize, &Ignore)> {
        let looked = move |r: &Row| if r.path.is_some() { r.reached } else { all };
        let rows = self.rows.iter().enumerate();
        rows.filter(move |(_, r)| !r.used && looked(r) && r.rules.iter().any(|n| ran(n)))
            .map(|(i, r)| (i + 1, &r.ignore))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_what_is_wrong_with_them() {
        let text = "fail-on = \"warning\"\n[[ignore]]\nrule = \"tie\"\npath = \"models/*\"\nreason = \"known\"\n";
        let s = parse("ckpt-lint.toml", text).unwrap();
        assert_eq!((s.fail_on, s.ignore.len()), (Some(Fail::Warning), 1));
        let project = "[tool.other]\nx = 1\n[tool.ckpt-lint]\nvllm = \"0.32\"\n";
        assert_eq!(parse("pyproject.toml", project).unwrap().vllm.as_deref(), Some("0.32"));
        assert!(wanted("pyproject.toml", project) && !wanted("pyproject.toml", "[tool.other]"));
        for (text, said) in [
            ("fail_on = \"error\"", "unknown key `fail_on`; did you mean `fail-on`?"),
            ("fail-on = \"sometimes\"", "unknown variant `sometimes`"),
            ("[[ignore]]\nrule = \"tie\"", "missing field `reason`"),
            ("[[ignore]]\nrule = \"tie\"\nreason = \" \"", "gives no reason"),
            ("[[ignore]]\nrule = \"tie\"\nreason = \"x\"\npath = \"a**b\"", "is no glob"),
            ("[[ignore]]\nrule = \"tie\"\nreason = \"x\"\npaths = \"a\"", "unknown field `paths`"),
            ("select = ", "ckpt-lint.toml: TOML parse error"),
        ] {
            let e = parse("ckpt-lint.toml", text).unwrap_err();
            assert!(e.contains(said), "{text}: {e}");
        }
    }
}
