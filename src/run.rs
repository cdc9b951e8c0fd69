//! The pipeline, top to bottom: argument → source → checkpoint → plan → rules → policy → locate → report → exit code.

mod show;

use crate::checkpoint::Checkpoint;
use crate::cli::{Check, Cli, Command, ListKind};
use crate::facts;
use crate::finding::Level;
use crate::policy::{self, Policy, Wishes};
use crate::report::{Report, RunError, Section};
use crate::rule;
use crate::rules;
use crate::source::{Found, LocalSource, SourceError, discover};
use crate::vllm::{Plan, Target};
use std::io::{self, Write};
use std::time::Instant;

/// What a run ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Nothing at or above `--fail-on`.
    Clean = 0,
    /// Findings at or above it.
    Findings = 1,
    /// The run itself failed, in whole or in part.
    Error = 2,
}

/// Why a run ended before its report.
#[derive(Debug)]
pub enum Failure {
    /// Bad arguments: what to say.
    Usage(String),
    /// The report could not be written.
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Failure::Io(e)
    }
}

/// What a run leaves behind.
#[derive(Debug)]
pub struct Done {
    /// The exit code.
    pub exit: Exit,
    /// The last checkpoint, not freed yet: that takes a tenth of the time of a large one, and a process that is about
    /// to end can forget it instead.
    pub last: Option<(Checkpoint, Plan)>,
}

impl From<Exit> for Done {
    fn from(exit: Exit) -> Self {
        Done { exit, last: None }
    }
}

/// Runs a command line.
///
/// # Errors
/// When there is no report to be had or to be written.
pub fn run(cli: Cli, out: &mut dyn Write, err: &mut dyn Write) -> Result<Done, Failure> {
    match (cli.command, cli.check) {
        (Some(Command::Explain { rule }), _) => explain(&rule, out).map(Done::from),
        (Some(Command::Rules { format }), _) => show::rules(format == ListKind::Json, out).map(Done::from),
        (Some(Command::Check(check)), _) | (None, Some(check)) => lint(&check, out, err),
        (None, None) => Err(Failure::Usage("no path given".into())),
    }
}

fn lint(args: &Check, out: &mut dyn Write, err: &mut dyn Write) -> Result<Done, Failure> {
    let started = Instant::now();
    let target = target(args)?;
    let wishes =
        Wishes { select: args.select.clone(), ignore: args.ignore.clone(), require_weights: args.require_weights };
    let policy = Policy::new(rules::all(), &wishes, args.fail_on.into()).map_err(|e| Failure::Usage(e.to_string()))?;

    let mut checkpoints = Vec::new();
    let mut errors = Vec::new();
    let mut last = None;
    match discover(&args.paths) {
        Err(e) => errors.push(RunError { path: None, message: e.to_string() }),
        Ok(found) => {
            for folder in &found {
                match one(folder, args, &target, &policy) {
                    Ok((section, read)) => {
                        checkpoints.push(section);
                        last = Some(read);
                    }
                    Err(e) => errors.push(RunError { path: Some(folder.display.clone()), message: e.to_string() }),
                }
            }
        }
    }

    let report = Report {
        tool: env!("CARGO_PKG_VERSION"),
        facts: facts::versions(),
        rules: rules::all().collect(),
        target: show::target(&target),
        checkpoints,
        errors,
        elapsed: started.elapsed(),
    };
    show::errors(&report, err)?;
    show::write(&report, args, out)?;
    let fails = [Level::Error, Level::Warning, Level::Note].into_iter().any(|l| policy.fails(l) && report.count(l) > 0);
    let exit = match () {
        () if !report.errors.is_empty() => Exit::Error,
        () if fails => Exit::Findings,
        () => Exit::Clean,
    };
    Ok(Done { exit, last })
}

/// One checkpoint, from its folder to its section of the report.
fn one(
    found: &Found,
    args: &Check,
    target: &Target,
    policy: &Policy,
) -> Result<(Section, (Checkpoint, Plan)), SourceError> {
    let source = LocalSource::open(&found.folder)?;
    let checkpoint = Checkpoint::read(&source, &found.display)?;
    let plan = Plan::of(&checkpoint, target);
    let findings = rule::check(policy.rules(), &checkpoint, &plan);
    let findings = policy.apply(findings);
    let base = show::base(&found.folder, args.root.as_deref());
    Ok((show::section(&checkpoint, base, &plan, findings), (checkpoint, plan)))
}

fn target(args: &Check) -> Result<Target, Failure> {
    let known = facts::versions();
    if !known.contains(&args.vllm.as_str()) {
        let text = format!("there are no facts for vLLM {}; there are for {}", args.vllm, known.join(", "));
        return Err(Failure::Usage(text));
    }
    Ok(Target {
        vllm: args.vllm.clone(),
        quantization: args.quantization.clone(),
        load_format: args.load_format.clone(),
        language_model_only: args.language_model_only,
    })
}

fn explain(name: &str, out: &mut dyn Write) -> Result<Exit, Failure> {
    let Some(rule) = rules::find(name) else {
        let all: Vec<_> = rules::all().collect();
        return Err(Failure::Usage(policy::unknown(&all, name).to_string()));
    };
    out.write_all(rule.page.as_bytes())?;
    Ok(Exit::Clean)
}
