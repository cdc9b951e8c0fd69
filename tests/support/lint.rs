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

/// What the case asks of the target.
pub fn target(case: &Case) -> Target {
    let text = |key: &str| case.json.pointer(&format!("/args/{key}")).and_then(Value::as_str).map(str::to_owned);
    let default = Target::default();
    Target {
        quantization: text("quantization"),
        load_format: text("load_format").unwrap_or(default.load_format),
        language_model_only: case.json.pointer("/args/language_model_only") == Some(&Value::Bool(true)),
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
    let folder = dir.path().join("case");
    std::fs::create_dir(&folder).unwrap();
    case.materialize(&folder);
    let target = target(case);
    let mut line: Vec<OsString> = vec!["ckpt-lint".into(), folder.clone().into()];
    line.extend(["--color", "never", "--load-format", &target.load_format].map(OsString::from));
    if let Some(q) = &target.quantization {
        line.extend(["--quantization", q].map(OsString::from));
    }
    if target.language_model_only {
        line.push("--language-model-only".into());
    }
    line.extend(args.iter().map(OsString::from));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = run(Cli::from_args(line).unwrap(), &mut out, &mut err).unwrap();
    (String::from_utf8(out).unwrap().replace(&folder.display().to_string(), "<case>"), exit)
}
