//! `ckpt-lint diff`: two arguments, two checkpoints, one comparison.

use super::{Exit, Failure, show, terminal};
use crate::checkpoint::Checkpoint;
use crate::cli::{self, ListKind};
use crate::diff::{self, Diff};
use crate::locate::clean;
use crate::source::{LocalSource, SourceError, discover};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Compares, writes, and says how to end.
pub(super) fn run(args: &cli::Diff, out: &mut dyn Write) -> Result<Exit, Failure> {
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let diff = Diff::of(&before, &after);
    match args.format {
        ListKind::Json => diff::json::render(&diff, out)?,
        ListKind::Text => {
            let mut styled = Vec::new();
            diff::text::render(&diff, terminal::width(io::stdout().is_terminal()), &mut styled)?;
            show::painted(&styled, args.color, out)?;
        }
    }
    Ok(if diff.intact { Exit::Clean } else { Exit::Findings })
}

/// The one checkpoint that an argument stands for.
fn read(path: &Path) -> Result<Checkpoint, Failure> {
    let usage = |e: SourceError| Failure::Usage(clean(&e.to_string()));
    let (found, mut errors) = discover(&[path]);
    if !errors.is_empty() {
        return Err(usage(errors.swap_remove(0)));
    }
    match &found[..] {
        [one] => {
            let source = LocalSource::open(&one.folder).map_err(usage)?;
            let mut checkpoint = Checkpoint::read(&source, &one.display).map_err(usage)?;
            checkpoint.read_special_tokens(&source).map_err(usage)?;
            Ok(checkpoint)
        }
        many => {
            let text = format!("{}: {} checkpoints are here; name one of them", path.display(), many.len());
            Err(Failure::Usage(clean(&text)))
        }
    }
}
