//! The command line, as types. Nothing here decides anything.

use crate::facts;
use crate::finding::Level;
use crate::policy::FailOn;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::PathBuf;

/// Says, before you deploy, whether vLLM will load a checkpoint, what it would refuse, and what it would silently get
/// wrong. Reads config, index and safetensors headers; never weights, never a GPU.
///
/// Exit code 0: nothing at or above --fail-on; 1: findings; 2: the run itself failed.
#[derive(Debug, Parser)]
#[command(name = "ckpt-lint", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Cli {
    /// What to do; `check` when only paths are given.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Arguments of `check`.
    #[command(flatten)]
    pub check: Option<Check>,
}

/// What to do.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one of it in a run")]
pub enum Command {
    /// Lint checkpoints (the default)
    Check(Check),
    /// Compare a source checkpoint with a quantized or repacked one
    Diff(Diff),
    /// Print the page of a rule, or the rules of a family
    Explain {
        /// Name of the rule, e.g. `quant-unlisted-linear`, or of a family, e.g. `quant`
        rule: String,
    },
    /// List all rules
    Rules {
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListKind,
    },
    /// Print the completions of a shell: bash, zsh, fish, powershell, elvish
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Print the man page
    Man,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Checkpoint folders, files in them, or trees of many; `-` reads one config.json from standard input
    #[arg(required_unless_present = "show_settings", value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Only these rules or families
    #[arg(long, value_name = "RULE", value_delimiter = ',', help_heading = "Rules")]
    pub select: Vec<String>,
    /// Not these rules or families
    #[arg(long, value_name = "RULE", value_delimiter = ',', help_heading = "Rules")]
    pub ignore: Vec<String>,
    /// Lowest level that makes the exit code 1 [default: error]
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = "Rules")]
    pub fail_on: Option<FailLevel>,
    /// Missing weights are an error, not a note
    #[arg(long, help_heading = "Rules")]
    pub require_weights: bool,
    /// Findings that are known and accepted: not counted unless they get worse
    #[arg(long, value_name = "FILE", help_heading = "Rules")]
    pub baseline: Option<PathBuf>,
    /// Write what is found now to the baseline, and accept it
    #[arg(long, help_heading = "Rules")]
    pub write_baseline: bool,
    /// Settings to use instead of the nearest ckpt-lint.toml, .ckpt-lint.toml or pyproject.toml
    #[arg(long, value_name = "FILE", help_heading = "Rules")]
    pub config: Option<PathBuf>,
    /// No settings file at all
    #[arg(long, conflicts_with = "config", help_heading = "Rules")]
    pub no_config: bool,
    /// Print the settings in effect, and where they come from, and do nothing else
    #[arg(long, help_heading = "Rules")]
    pub show_settings: bool,
    /// vLLM version
    #[arg(long, value_name = "VERSION", help_heading = "Target",
          help = format!("vLLM version: {} [default: {}]", facts::versions().join(", "), facts::newest()))]
    pub vllm: Option<String>,
    /// As given to vLLM
    #[arg(long, value_name = "METHOD", help_heading = "Target")]
    pub quantization: Option<String>,
    /// As given to vLLM
    #[arg(long, default_value = "auto", value_name = "FORMAT", help_heading = "Target")]
    pub load_format: String,
    /// As given to vLLM: towers are not built
    #[arg(long, help_heading = "Target")]
    pub language_model_only: bool,
    /// As given to vLLM: config classes of the folder are run
    #[arg(long, help_heading = "Target")]
    pub trust_remote_code: bool,
    /// `text`, `json`, `github`, `markdown`, `sarif`, `gitlab`, `junit`; `json=FILE` writes a file; may be repeated
    #[arg(long, value_name = "FORMAT[=FILE]", value_parser = Output::parse, help_heading = "Output")]
    pub format: Vec<Output>,
    /// What paths count from in formats for other programs [default: the current folder]
    #[arg(long, value_name = "DIR", env = "GITHUB_WORKSPACE", hide_env_values = true, help_heading = "Output",
          value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub root: Option<PathBuf>,
    /// Colours (NO_COLOR counts, too)
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN", help_heading = "Output")]
    pub color: Color,
    /// No notes, and not what was read
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    pub quiet: bool,
    /// All subjects, whole messages, and the time it took
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
}

/// Arguments of `diff`.
///
/// Exit code 0: nothing is lost and no field changed that must not; 1: otherwise; 2: the run itself failed.
#[derive(Debug, Args)]
pub struct Diff {
    /// Source checkpoint
    #[arg(value_name = "SOURCE")]
    pub before: PathBuf,
    /// What was made of it
    #[arg(value_name = "RESULT")]
    pub after: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: ListKind,
    /// Colours (NO_COLOR counts, too)
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: Color,
}

/// Formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// Annotations of GitHub Actions.
    Github,
    /// For summaries and discussions.
    Markdown,
    /// For code scanning.
    Sarif,
    /// Code Quality of GitLab.
    Gitlab,
    /// For what shows test results.
    Junit,
}

/// Formats of the list of rules and of comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListKind {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// A format, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Format.
    pub kind: Kind,
    /// A file; standard output when none.
    pub file: Option<PathBuf>,
}

impl Output {
    fn parse(text: &str) -> Result<Output, String> {
        let (name, file) = text.split_once('=').map_or((text, None), |(n, f)| (n, Some(f)));
        let kind = Kind::from_str(name, false).map_err(|_| {
            let all = Kind::value_variants().iter().filter_map(Kind::to_possible_value);
            let all: Vec<String> = all.map(|v| format!("`{}`", v.get_name())).collect();
            format!("`{name}` is no format; there are {}", all.join(", "))
        })?;
        if file == Some("") {
            return Err(format!("`{text}` names no file"));
        }
        Ok(Output { kind, file: file.map(PathBuf::from) })
    }
}

/// `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailLevel {
    /// Refuses or damages.
    Error,
    /// Not as meant.
    Warning,
    /// Anything.
    Note,
    /// Nothing.
    Never,
}

impl From<FailLevel> for FailOn {
    fn from(level: FailLevel) -> FailOn {
        match level {
            FailLevel::Error => FailOn::At(Level::Error),
            FailLevel::Warning => FailOn::At(Level::Warning),
            FailLevel::Note => FailOn::At(Level::Note),
            FailLevel::Never => FailOn::Never,
        }
    }
}

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A command line that is none, or one that only asks for help or the version.
#[derive(Debug)]
pub struct Usage(clap::Error);

impl Usage {
    /// Prints the message where it belongs; returns the exit code.
    pub fn print(&self) -> u8 {
        // A closed stream is nothing that one could report on it.
        let _ = self.0.print();
        u8::try_from(self.0.exit_code()).unwrap_or(2)
    }
}

impl Cli {
    /// Completions of a shell, as a script for it.
    pub fn completions(shell: Shell) -> Vec<u8> {
        let mut out = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "ckpt-lint", &mut out);
        out
    }

    /// The man page, as roff.
    ///
    /// # Errors
    /// None in practice: it is written to memory.
    pub fn man() -> std::io::Result<Vec<u8>> {
        let mut out = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut out)?;
        Ok(out)
    }

    /// Parses arguments, the program's name first.
    ///
    /// # Errors
    /// On bad usage, and on `--help` and `--version`.
    pub fn from_args(args: impl IntoIterator<Item = OsString>) -> Result<Cli, Usage> {
        Cli::try_parse_from(args).map_err(Usage)
    }

    /// The help of `ckpt-lint --help`, for the README.
    pub fn help() -> String {
        use clap::CommandFactory;
        Cli::command().term_width(100).render_help().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Cli, Usage> {
        Cli::from_args(std::iter::once("ckpt-lint").chain(args.iter().copied()).map(OsString::from))
    }

    #[test]
    fn paths_alone_mean_check() {
        let cli = parse(&["a", "b", "--ignore", "tie,quant"]).unwrap();
        let check = cli.check.unwrap();
        assert_eq!((check.paths.len(), check.ignore.len()), (2, 2));
        assert!(matches!(parse(&["check", "a"]).unwrap().command, Some(Command::Check(_))));
        assert!(matches!(parse(&["rules", "--format", "json"]).unwrap().command, Some(Command::Rules { .. })));
    }

    #[test]
    fn no_path_is_bad_usage() {
        for args in [&[][..], &["check"], &["a", "--format", "xml"], &["a", "--format", "json="], &["a", "-q", "-v"]] {
            assert_eq!(parse(args).unwrap_err().0.exit_code(), 2, "{args:?}");
        }
    }

    #[test]
    fn formats_repeat() {
        let check = parse(&["a", "--format", "text", "--format", "json=out.json"]).unwrap().check.unwrap();
        assert_eq!(check.format[1], Output { kind: Kind::Json, file: Some("out.json".into()) });
    }
}
