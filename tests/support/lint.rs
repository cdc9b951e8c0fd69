//! A case, linted.

#![allow(unreachable_pub, reason = "shared between test binaries")]

use super::case::Case;
use ckpt_lint::checkpoint::Checkpoint;
use ckpt_lint::cli::Cli;
use ckpt_lint::finding::Finding;
use ckpt_lint::run::{Exit, run};
use ckpt_lint::source::LocalSource;
use ckpt_lint::vllm::{Plan, Target};
use ckpt_lint::{rule, rules};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;

/// What the case asks of the target.
pub fn target(case: &Case) -> Target {
    let text = |key: &str| case.json.pointer(&format!("/args/{key}")).and_then(Value::as_str).map(str::to_owned);
    let default = Target::default();
    Target {
        quantization: text("quantization"),
        load_format: text("load_format").unwrap_or(default.load_format),
        language_model_only: case.json.pointer("/args/language_model_only") == Some(&Value::Bool(true)),
        trust_remote_code: case.json.pointer("/args/trust_remote_code") == Some(&Value::Bool(true)),
        ..Target::default()
    }
}

/// Plan and findings of all rules.
pub fn lint(case: &Case) -> (Plan, Vec<Finding>) {
    let dir = tempfile::tempdir().unwrap();
    case.materialize(dir.path());
    let source = LocalSource::open(dir.path()).unwrap();
    let checkpoint = Checkpoint::read(&source, "case").unwrap();
    let plan = Plan::of(&checkpoint, &target(case));
    let all: Vec<_> = rules::all().collect();
    let findings = rule::check(&all, &checkpoint, &plan);
    (plan, findings)
}

/// What the command line prints for a case, the folder written as `<case>`, and how it ends.
pub fn report(case: &Case, args: &[&str]) -> (String, Exit) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("case");
    std::fs::create_dir(&path).unwrap();
    case.materialize(&path);
    let target = target(case);
    let mut all = vec!["--load-format", target.load_format.as_str()];
    if let Some(q) = &target.quantization {
        all.extend(["--quantization", q]);
    }
    if target.language_model_only {
        all.push("--language-model-only");
    }
    if target.trust_remote_code {
        all.push("--trust-remote-code");
    }
    all.extend(args);
    let (text, exit) = folder(&path, &all);
    (text.replace(&path.display().to_string(), "<case>"), exit)
}

/// What the command line prints for a folder, and how it ends.
pub fn folder(path: &Path, args: &[&str]) -> (String, Exit) {
    let mut line: Vec<OsString> = vec!["ckpt-lint".into(), path.into()];
    // A log of GitHub Actions gets annotations, too, when no format is asked for.
    if !args.contains(&"--format") {
        line.extend(["--format", "text"].map(OsString::from));
    }
    line.extend(["--color", "never"].iter().chain(args).map(OsString::from));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let done = run(Cli::from_args(line).unwrap(), &mut out, &mut err).unwrap();
    (String::from_utf8(out).unwrap(), done.exit)
}
