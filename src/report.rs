//! A report as plain data: everything that a renderer needs, and nothing that it would have to decide.

mod anchor;
pub mod github;
pub mod gitlab;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod sarif;
pub mod text;
mod words;

pub use words::wrap;

use crate::finding::{Finding, Level};
use crate::locate::Spot;
use crate::rule::Rule;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// What one run found.
#[derive(Debug)]
pub struct Report {
    /// Version of ckpt-lint.
    pub tool: &'static str,
    /// vLLM versions that there are facts for.
    pub facts: Vec<&'static str>,
    /// All rules that there are, whether they ran or not.
    pub rules: Vec<&'static Rule>,
    /// What was asked for.
    pub target: Target,
    /// What the run was asked to look at, from the root that machine formats count from; empty for more than one.
    pub scope: String,
    /// One section a checkpoint, in the order of the arguments.
    pub checkpoints: Vec<Section>,
    /// What could not be looked at: errors of the run, not of a checkpoint.
    pub errors: Vec<RunError>,
    /// How long it took; never part of a report that others compare.
    pub elapsed: Duration,
}

/// What the verdict is about.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Target {
    /// vLLM version.
    pub vllm: String,
    /// `--quantization`, when given.
    pub quantization: Option<String>,
    /// `--load-format`.
    pub load_format: String,
    /// `--language-model-only`.
    pub language_model_only: bool,
    /// `--trust-remote-code`.
    pub trust_remote_code: bool,
}

/// An error of the run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RunError {
    /// The checkpoint it belongs to, when it is one's.
    pub path: Option<String>,
    /// What happened.
    pub message: String,
}

/// One checkpoint.
#[derive(Debug)]
pub struct Section {
    /// As given or found.
    pub path: String,
    /// The same from the root that machine formats count from, `/` as separator: empty for the root itself, absolute
    /// when it lies elsewhere.
    pub base: String,
    /// What vLLM would do.
    pub verdict: Verdict,
    /// Findings, in order.
    pub findings: Vec<Shown>,
    /// What the settings or the baseline ignore.
    pub ignored: Vec<Ignored>,
    /// Why the verdict is not complete.
    pub unknown: Vec<String>,
    /// What was read and what was not.
    pub read: Read,
}

/// A finding with what it takes to show it.
#[derive(Debug)]
pub struct Shown {
    /// The finding.
    pub finding: Finding,
    /// Page of its rule.
    pub url: String,
    /// Where it is, with the lines around.
    pub spot: Option<Spot>,
    /// What it is known by, from one run to the next.
    pub print: String,
}

/// A finding that is known and accepted.
#[derive(Debug)]
pub struct Ignored {
    /// It would be shown so.
    pub shown: Shown,
    /// Why it is ignored.
    pub reason: String,
}

/// What vLLM would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// It raises nothing, and everything holds what its author stored.
    Loads,
    /// It raises.
    Refuses,
    /// It raises nothing, and something holds garbage.
    Damages,
    /// The facts are missing.
    Unknown,
}

/// Where vLLM raises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// While reading the config.
    Config,
    /// While building the model.
    Init,
    /// While loading weights.
    Load,
    /// When checking that all weights have come.
    Track,
    /// While processing the weights after the load.
    Post,
}

/// The verdict.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// In one word.
    pub class: Class,
    /// What vLLM would print first.
    pub message: Option<String>,
    /// Its exception.
    pub error_type: Option<String>,
    /// Where.
    pub stage: Option<Stage>,
    /// Parameters that would hold garbage.
    pub garbage: usize,
}

/// State of a file that may be missing or broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileState {
    /// Not there.
    Absent,
    /// There, and not to be understood.
    Broken,
    /// Read.
    Read,
}

/// What was read and what was not. Weights never are.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Read {
    /// `config.json`.
    pub config: FileState,
    /// `model.safetensors.index.json`.
    pub index: FileState,
    /// Safetensors files at the top of the folder.
    pub shards: usize,
    /// Of these, headers that are valid.
    pub headers: usize,
    /// Of these, Git LFS pointers.
    pub pointers: usize,
    /// Tensors in the headers (names in the index, when the weights are not here).
    pub tensors: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Whether names were judged without the weights.
    pub names_only: bool,
    /// Whether there was nothing but a config to look at.
    pub config_only: bool,
}

impl Section {
    /// How many findings have this level.
    pub fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|f| f.finding.level == level).count()
    }
}

impl Report {
    /// How many findings of all checkpoints have this level.
    pub fn count(&self, level: Level) -> usize {
        self.checkpoints.iter().map(|c| c.count(level)).sum()
    }
}
