//! The pipeline, top to bottom: argument → source → checkpoint → plan → rules → policy → locate → report → exit code.

mod accepted;
mod compare;
mod show;
mod terminal;

use crate::checkpoint::Checkpoint;
use crate::cli::{Check, Cli, Command, ListKind};
use crate::facts;
use crate::finding::Level;
use crate::policy::{self, FailOn, Policy, Settings, Wishes};
use crate::report::{Report, RunError, Section};
use crate::rule;
use crate::rules;
use crate::source::{self, Found, LocalSource, SourceError, discover};
use crate::vllm::{Plan, Target};
use accepted::Accepted;
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

/// Runs a command line. Standard error goes in as `err` without a lock: a thread that panics writes there, and would wait
/// for ever.
///
/// # Errors
/// When there is no report to be had or to be written.
pub fn run(cli: Cli, out: &mut dyn Write, err: &mut dyn Write) -> Result<Done, Failure> {
    match (cli.command, cli.check) {
        (Some(Command::Explain { rule }), _) => explain(&rule, out).map(Done::from),
        (Some(Command::Diff(args)), _) => compare::run(&args, out).map(Done::from),
        (Some(Command::Rules { format }), _) => show::rules(format == ListKind::Json, out).map(Done::from),
        (Some(Command::Completions { shell }), _) => {
            out.write_all(&Cli::completions(shell))?;
            Ok(Exit::Clean.into())
        }
        (Some(Command::Man), _) => {
            out.write_all(&Cli::man()?)?;
            Ok(Exit::Clean.into())
        }
        (Some(Command::Check(check)), _) | (None, Some(check)) => lint(&check, out, err),
        (None, None) => Err(Failure::Usage("no path given".into())),
    }
}

fn lint(args: &Check, out: &mut dyn Write, err: &mut dyn Write) -> Result<Done, Failure> {
    let started = Instant::now();
    let (from, settings) = settings(args)?;
    if args.show_settings {
        show::settings(from.as_deref(), &settings, out)?;
        return Ok(Exit::Clean.into());
    }
    let target = target(args, &settings)?;
    let select = if args.select.is_empty() { settings.select.clone() } else { args.select.clone() };
    let require_weights = args.require_weights || settings.require_weights == Some(true);
    let wishes = Wishes { select, ignore: args.ignore.clone(), require_weights };
    let fail_on = args.fail_on.map(FailOn::from).or(settings.fail_on.map(FailOn::from));
    let policy = Policy::new(rules::all(), &wishes, fail_on.unwrap_or(FailOn::At(Level::Error)))
        .map_err(|e| Failure::Usage(e.to_string()))?;
    let all: Vec<_> = rules::all().collect();
    let mut accepted = Accepted::new(&all, args, from.as_deref(), &settings)?;

    let mut checkpoints = Vec::new();
    let mut errors = Vec::new();
    let mut last = None;
    let (found, failed) = found(args)?;
    errors.extend(failed.iter().map(|e| RunError { path: None, message: show::error(e) }));
    for folder in &found {
        match one(folder, args, &target, &policy, &mut accepted) {
            Ok((section, read)) => {
                checkpoints.push(section);
                last = Some(read);
            }
            Err(e) => errors.push(RunError { path: Some(folder.display.clone()), message: e.to_string() }),
        }
    }

    let report = Report {
        tool: env!("CARGO_PKG_VERSION"),
        facts: facts::versions(),
        rules: rules::all().collect(),
        target: show::target(&target),
        scope: show::scope(args),
        checkpoints,
        errors,
        elapsed: started.elapsed(),
    };
    show::errors(&report, err)?;
    accepted.finish(&policy, !report.errors.is_empty(), err)?;
    show::write(&report, args, out)?;
    let fails = [Level::Error, Level::Warning, Level::Note].into_iter().any(|l| policy.fails(l) && report.count(l) > 0);
    let exit = match () {
        () if !report.errors.is_empty() => Exit::Error,
        () if fails => Exit::Findings,
        () => Exit::Clean,
    };
    Ok(Done { exit, last })
}

/// What to look at, and what cannot be. Standard input is one config, and nothing beside it.
fn found(args: &Check) -> Result<(Vec<Found>, Vec<SourceError>), Failure> {
    if !args.paths.iter().any(|p| p.as_os_str() == "-") {
        return Ok(discover(&args.paths));
    }
    if args.paths.len() > 1 {
        let text = "`-` reads one config.json from standard input, and stands alone; a folder of that name is `./-`";
        return Err(Failure::Usage(text.into()));
    }
    if args.require_weights {
        return Err(Failure::Usage("--require-weights asks for weights, and `-` reads none".into()));
    }
    Ok((vec![Found::stdin()], Vec::new()))
}

/// One checkpoint, from its folder to its section of the report.
fn one(
    found: &Found,
    args: &Check,
    target: &Target,
    policy: &Policy,
    accepted: &mut Accepted,
) -> Result<(Section, (Checkpoint, Plan)), SourceError> {
    let checkpoint = if found.is_stdin() {
        let read = Checkpoint::read(&source::stdin("config.json")?, &found.display)?;
        Checkpoint { config_only: true, ..read }
    } else {
        Checkpoint::read(&LocalSource::open(&found.folder)?, &found.display)?
    };
    let plan = Plan::of(&checkpoint, target);
    let findings = rule::check(policy.rules(), &checkpoint, &plan);
    let findings = accepted.sort(found, policy.apply(findings));
    let base = if found.is_stdin() { found.display.clone() } else { show::base(&found.folder, args.root.as_deref()) };
    Ok((show::section(&checkpoint, base, &plan, findings), (checkpoint, plan)))
}

/// The settings, and the file that they come from. They belong to where one works, never to the checkpoint: a download
/// must not bring its own judge.
fn settings(args: &Check) -> Result<(Option<String>, Settings), Failure> {
    let usage = |e: SourceError| Failure::Usage(e.to_string());
    let found = match &args.config {
        _ if args.no_config => None,
        Some(path) => Some((path.clone(), source::text(path, source::MAX_SETTINGS).map_err(usage)?)),
        None => source::nearest(&policy::NAMES, &policy::wanted).map_err(usage)?,
    };
    let Some((path, text)) = found else { return Ok((None, Settings::default())) };
    let name = path.display().to_string();
    let settings = policy::parse(&name, &text).map_err(Failure::Usage)?;
    Ok((Some(name), settings))
}

fn target(args: &Check, settings: &Settings) -> Result<Target, Failure> {
    let wanted = args.vllm.as_deref().or(settings.vllm.as_deref()).unwrap_or(facts::newest());
    let Some(vllm) = facts::version(wanted) else {
        let text = format!("there are no facts for vLLM {wanted}; there are for {}", facts::versions().join(", "));
        return Err(Failure::Usage(text));
    };
    Ok(Target {
        vllm: vllm.into(),
        quantization: args.quantization.clone(),
        load_format: args.load_format.clone(),
        language_model_only: args.language_model_only,
        trust_remote_code: args.trust_remote_code || settings.trust_remote_code.unwrap_or(false),
    })
}

fn explain(name: &str, out: &mut dyn Write) -> Result<Exit, Failure> {
    if let Some(rule) = rules::find(name) {
        terminal::page(rule.page, out)?;
        return Ok(Exit::Clean);
    }
    let family: Vec<_> = rules::all().filter(|r| r.family() == name).collect();
    if family.is_empty() {
        let all: Vec<_> = rules::all().collect();
        return Err(Failure::Usage(policy::unknown(&all, name).to_string()));
    }
    show::list(&family, out)?;
    Ok(Exit::Clean)
}
