//! From facts, plan and findings to the plain report, and from there to the streams.

use super::{Exit, Failure, terminal};
use crate::checkpoint::{Checkpoint, Part, ShardState};
use crate::cli::{Check, Color, Kind, Output};
use crate::finding::{Finding, Level, fingerprints};
use crate::locate::{Locator, clean};
use crate::policy::{Settings, nearest_name};
use crate::report::{
    self, Class, FileState, Ignored, Read, Report, Section, Shown, Stage, Verdict, github, gitlab, json, junit,
    markdown, sarif, text,
};
use crate::rule::Rule;
use crate::rules;
use crate::source::{self, SourceError};
use crate::vllm::trace::{self, Kind as Event};
use crate::vllm::{Plan, Target};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};

/// The target for the report.
pub(super) fn target(t: &Target) -> report::Target {
    report::Target {
        vllm: t.vllm.clone(),
        quantization: t.quantization.clone(),
        load_format: t.load_format.clone(),
        language_model_only: t.language_model_only,
        trust_remote_code: t.trust_remote_code,
    }
}

/// One section of the report, from findings and the reasons why they are ignored. The finding with vLLM's first message leads.
pub(super) fn section(
    cp: &Checkpoint,
    base: String,
    plan: &Plan,
    mut findings: Vec<(Finding, Option<String>)>,
) -> Section {
    let verdict = verdict(plan);
    let is_first = |f: &Finding| {
        f.vllm.as_ref().is_some_and(|v| {
            Some(&v.text) == verdict.message.as_ref() && Some(&v.error_type) == verdict.error_type.as_ref()
        })
    };
    findings.sort_by_key(|f| !is_first(&f.0));
    let prints = fingerprints(&base, findings.iter().map(|f| &f.0));
    let mut locator = Locator::new(cp);
    let mut shown = Vec::new();
    let mut ignored = Vec::new();
    for ((finding, reason), print) in findings.into_iter().zip(prints) {
        let url = rules::find(finding.rule).map(|r| r.url()).unwrap_or_default();
        let mut spot = locator.locate(&finding.place);
        if let Some(spot) = spot.as_mut().filter(|_| cp.config_only) {
            spot.file.clone_from(&cp.path);
        }
        let one = Shown { url, spot, finding, print };
        match reason {
            None => shown.push(one),
            Some(reason) => ignored.push(Ignored { shown: one, reason }),
        }
    }
    Section {
        path: cp.path.clone(),
        base,
        findings: shown,
        ignored,
        unknown: plan
            .trace
            .of(Event::Unknown)
            .chain(plan.trace.of(Event::DraftModel))
            .map(|e| e.detail.clone())
            .collect(),
        read: read(cp, plan),
        verdict,
    }
}

/// A folder as seen from the root of a repository. Links inside the repository are kept, since their names are the
/// ones that are checked in.
pub(super) fn base(folder: &Path, root: Option<&Path>) -> String {
    let folder = whole(folder);
    // A root that is not there, or not above the folder, is no help; the current folder may be.
    let here = Path::new(".");
    let roots = [root.filter(|r| !r.as_os_str().is_empty()).unwrap_or(here), here];
    let inside = roots.iter().find_map(|r| folder.strip_prefix(whole(r)).ok());
    inside.unwrap_or(&folder).display().to_string().replace('\\', "/")
}

/// An error with what somebody may have meant instead.
pub(super) fn error(e: &SourceError) -> String {
    let near = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let names = source::siblings(path);
        let near = nearest_name(names.iter().map(String::as_str), name).filter(|n| *n != name)?;
        Some(path.with_file_name(near).display().to_string())
    };
    match e {
        SourceError::Missing(path) => match near(path) {
            Some(near) => format!("{e}; did you mean `{near}`?"),
            None => e.to_string(),
        },
        _ => e.to_string(),
    }
}

/// What one run is about, from the root; nothing when it has several arguments.
pub(super) fn scope(args: &Check) -> String {
    match args.paths.as_slice() {
        [only] if only.is_dir() => base(only, args.root.as_deref()),
        [file] => file.parent().map_or_else(String::new, |f| base(&Path::new(".").join(f), args.root.as_deref())),
        _ => String::new(),
    }
}

/// A path without a beginning that depends on where one works.
fn whole(path: &Path) -> PathBuf {
    match std::path::absolute(path) {
        Ok(absolute) if !absolute.components().any(|c| c == Component::ParentDir) => absolute,
        _ => path.canonicalize().unwrap_or_else(|_| path.to_path_buf()),
    }
}

/// A folder as seen from another one, `/` as separator; absolute when they share nothing but the root.
pub(super) fn relative(folder: &Path, from: &Path) -> String {
    let here = if from.as_os_str().is_empty() { Path::new(".") } else { from };
    let (folder, from) = (whole(folder), whole(here));
    let named = |path: &Path| path.components().filter(|c| matches!(c, Component::Normal(_))).count();
    let shared: PathBuf = folder.components().zip(from.components()).take_while(|(a, b)| a == b).map(|c| c.0).collect();
    let (Ok(down), Ok(up)) = (folder.strip_prefix(&shared), from.strip_prefix(&shared)) else {
        return folder.display().to_string().replace('\\', "/");
    };
    let path = match named(&shared) {
        0 => folder.clone(),
        _ => up.components().map(|_| Path::new("..")).chain([down]).collect(),
    };
    let text = path.display().to_string().replace('\\', "/");
    if text.is_empty() { ".".to_owned() } else { text }
}

fn verdict(plan: &Plan) -> Verdict {
    let first = plan.trace.first_refusal();
    let raised = first.and_then(|e| e.error.as_ref());
    Verdict {
        class: match plan.trace.class() {
            trace::Class::Loads => Class::Loads,
            trace::Class::Refuses => Class::Refuses,
            trace::Class::Damages => Class::Damages,
            trace::Class::Unknown => Class::Unknown,
        },
        message: raised.map(|r| r.text.clone()),
        error_type: raised.map(|r| r.error_type.clone()),
        stage: first.map(|e| match e.stage {
            trace::Stage::Config => Stage::Config,
            trace::Stage::Init => Stage::Init,
            trace::Stage::Load => Stage::Load,
            trace::Stage::Track => Stage::Track,
            trace::Stage::Post => Stage::Post,
        }),
        garbage: plan.garbage,
    }
}

fn read(cp: &Checkpoint, plan: &Plan) -> Read {
    let pointers = cp.shards.iter().filter(|s| s.is_pointer()).count();
    let good = cp.shards.iter().filter(|s| matches!(s.state, ShardState::Good(_))).count();
    let (tensors, bytes) = cp.tensors().fold((0, 0u64), |(n, b), (_, t)| (n + 1, b.saturating_add(t.bytes())));
    Read {
        config: state(&cp.config),
        index: state(&cp.index),
        shards: cp.shards.len(),
        headers: good,
        pointers,
        tensors: if plan.names_only { plan.tensors } else { tensors },
        bytes,
        names_only: plan.names_only,
        config_only: cp.config_only,
    }
}

fn state<T>(part: &Part<T>) -> FileState {
    match part {
        Part::Absent => FileState::Absent,
        Part::Broken(_) => FileState::Broken,
        Part::Present(_) => FileState::Read,
    }
}

/// Errors of the run go to standard error, whatever the format.
pub(super) fn errors(report: &Report, err: &mut dyn Write) -> io::Result<()> {
    for e in &report.errors {
        // The message of most errors names the path already.
        writeln!(err, "ckpt-lint: {}", clean(&e.message))?;
    }
    Ok(())
}

/// Writes every format that was asked for. No format changes the exit code.
pub(super) fn write(report: &Report, args: &Check, out: &mut dyn Write) -> Result<(), Failure> {
    let default = [Output { kind: Kind::Text, file: None }];
    let outputs = if args.format.is_empty() { &default[..] } else { &args.format };
    if outputs.iter().filter(|o| o.file.is_none()).count() > 1 {
        return Err(Failure::Usage(
            "two formats for standard output; give one of them a file: `--format json=FILE`".into(),
        ));
    }
    let watched = terminal::watched();
    for output in outputs {
        let fit = watched && output.file.is_none();
        let look = text::Look {
            width: terminal::width(fit),
            verbose: args.verbose,
            quiet: args.quiet,
            time: args.verbose || fit,
            fit,
            links: output.file.is_none() && terminal::links(),
        };
        if args.format.is_empty() && terminal::in_actions() {
            let mut text = Vec::new();
            styled(report, look, args.color, &mut text)?;
            return Ok(github::render_log(report, look, &String::from_utf8_lossy(&text), out)?);
        }
        match &output.file {
            None => one(report, output.kind, look, args.color, out)?,
            Some(path) => {
                let failed = |e: io::Error| Failure::Usage(format!("{}: {e}", path.display()));
                let mut file = BufWriter::new(File::create(path).map_err(failed)?);
                one(report, output.kind, look, Color::Never, &mut file).and_then(|()| file.flush()).map_err(failed)?;
            }
        }
    }
    Ok(())
}

fn one(report: &Report, kind: Kind, look: text::Look, color: Color, out: &mut dyn Write) -> io::Result<()> {
    match kind {
        Kind::Text => styled(report, look, color, out),
        Kind::Json => json::render(report, out),
        Kind::Github => github::render(report, look, out),
        Kind::Markdown => markdown::render(report, look, out),
        Kind::Sarif => sarif::render(report, out),
        Kind::Gitlab => gitlab::render(report, out),
        Kind::Junit => junit::render(report, out),
    }
}

fn styled(report: &Report, look: text::Look, color: Color, out: &mut dyn Write) -> io::Result<()> {
    let mut styled = Vec::new();
    text::render(report, look, &mut styled)?;
    painted(&styled, color, out)
}

/// Writes a text with its ANSI styles, or without.
pub(super) fn painted(styled: &[u8], color: Color, out: &mut dyn Write) -> io::Result<()> {
    let choice = match color {
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
        Color::Auto => anstream::AutoStream::choice(&io::stdout()),
    };
    if choice == anstream::ColorChoice::Never {
        return out.write_all(&stripped(styled)?);
    }
    out.write_all(styled)
}

fn stripped(styled: &[u8]) -> io::Result<Vec<u8>> {
    let mut plain = anstream::StripStream::new(Vec::new());
    plain.write_all(styled)?;
    Ok(plain.into_inner())
}

/// `ckpt-lint rules`.
pub(super) fn rules(as_json: bool, out: &mut dyn Write) -> Result<Exit, Failure> {
    if as_json {
        let list: Vec<_> = rules::all()
            .map(|r| {
                serde_json::json!({
                    "name": r.name, "family": r.family(), "level": r.level, "summary": r.summary,
                    "url": r.url(), "aliases": r.aliases,
                })
            })
            .collect();
        serde_json::to_writer_pretty(&mut *out, &list).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(Exit::Clean);
    }
    list(&rules::all().collect::<Vec<_>>(), out)?;
    Ok(Exit::Clean)
}

/// Rules with level and summary.
pub(super) fn list(rules: &[&Rule], out: &mut dyn Write) -> io::Result<()> {
    let wide = rules.iter().map(|r| r.name.len()).max().unwrap_or(0);
    for r in rules {
        let level = match r.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        };
        let lead = wide + 11;
        let room = if terminal::watched() { terminal::width(true).saturating_sub(lead) } else { usize::MAX };
        let lines = report::wrap(r.summary, room).join(&format!("\n{:lead$}", ""));
        writeln!(out, "{:wide$}  {level:7}  {lines}", r.name)?;
    }
    Ok(())
}

/// The settings in effect, as one would write them.
pub(super) fn settings(from: Option<&str>, settings: &Settings, out: &mut dyn Write) -> Result<(), Failure> {
    match from {
        Some(file) => writeln!(out, "# from {}", clean(file))?,
        None => writeln!(out, "# no settings file; these are the defaults")?,
    }
    let text = toml::to_string(settings).map_err(|e| Failure::Usage(e.to_string()))?;
    out.write_all(text.as_bytes())?;
    Ok(())
}
