//! What is known and accepted: ignored by the settings, or in the baseline.

use super::{Failure, show};
use crate::cli::Check;
use crate::finding::{Finding, fingerprints};
use crate::locate::clean;
use crate::policy::{Baseline, Ignores, Known, Policy, Settings};
use crate::rule::Rule;
use crate::source::{self, Found};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The reason of what a baseline covers.
const REASON: &str = "baseline";
/// Findings of a baseline that are gone and told of one by one.
const TOLD: usize = 10;

/// Ignores and baseline at work.
#[derive(Debug)]
pub(super) struct Accepted {
    ignores: Ignores,
    /// Settings file, for messages.
    from: String,
    file: Option<PathBuf>,
    baseline: Baseline,
    /// Whole folders are linted, not single files of them as a hook names them.
    all: bool,
    /// The findings of a new baseline, when one is to be written.
    new: Option<Vec<Known>>,
}

impl Accepted {
    /// From settings, the file that they come from, and the command line, which wins.
    ///
    /// # Errors
    /// A baseline that is missing or malformed, and names of rules that there are none of.
    pub(super) fn new(
        all: &[&'static Rule],
        args: &Check,
        from: Option<&str>,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        let from = from.unwrap_or_default().to_owned();
        let ignores = Ignores::new(all, &settings.ignore).map_err(|e| Failure::Usage(format!("{from}: {e}")))?;
        let beside = |file: &String| Path::new(&from).parent().unwrap_or(Path::new("")).join(file);
        let file = args.baseline.clone().or_else(|| settings.baseline.as_ref().map(beside));
        if file.is_none() && args.write_baseline {
            return Err(Failure::Usage("--write-baseline needs a file: `--baseline FILE`".into()));
        }
        let mut baseline = Baseline::default();
        if let Some(file) = file.as_ref().filter(|f| !args.write_baseline || f.exists()) {
            let text = source::text(file, source::MAX_BASELINE).map_err(|e| Failure::Usage(e.to_string()))?;
            baseline = Baseline::parse(&file.display().to_string(), &text).map_err(Failure::Usage)?;
        }
        let all = args.paths.iter().all(|p| p.is_dir());
        Ok(Accepted { ignores, all, from, file, baseline, new: args.write_baseline.then(Vec::new) })
    }

    /// Findings of a checkpoint, each with the reason why it is ignored, if it is.
    pub(super) fn sort(&mut self, found: &Found, findings: Vec<Finding>) -> Vec<(Finding, Option<String>)> {
        // The same from wherever one runs: a baseline is checked in.
        let checkpoint = self.file.as_deref().map(|f| match found.is_stdin() {
            true => found.display.clone(),
            false => show::relative(&found.folder, f.parent().unwrap_or(Path::new(""))),
        });
        // As it is shown, and from the settings' folder: an ignore means the same from wherever one runs.
        let beside = Path::new(&self.from).parent().unwrap_or(Path::new(""));
        let names = match found.is_stdin() {
            true => vec![found.display.clone()],
            false => vec![found.display.clone(), show::relative(&found.folder, beside)],
        };
        self.ignores.reach(&names);
        let prints = checkpoint.as_ref().map_or_else(Vec::new, |_| fingerprints("", &findings));
        let mut prints = prints.into_iter();
        if let Some(checkpoint) = &checkpoint {
            self.baseline.looked_at(checkpoint);
        }
        let mut out = Vec::with_capacity(findings.len());
        for finding in findings {
            let print = prints.next();
            let mut reason = self.ignores.reason(&names, &finding).map(str::to_owned);
            if let (None, Some(print), Some(checkpoint)) = (&reason, print, &checkpoint) {
                let known = match &mut self.new {
                    Some(new) => {
                        new.push(Known::new(checkpoint, &finding, &print));
                        true
                    }
                    None => self.baseline.covers(checkpoint, &finding, &print),
                };
                reason = known.then(|| REASON.to_owned());
            }
            out.push((finding, reason));
        }
        out
    }

    /// Writes the new baseline, or tells what is in vain. Nothing is written when something could not be looked at:
    /// what was not seen would be accepted unseen.
    pub(super) fn finish(self, policy: &Policy, failed: bool, err: &mut dyn Write) -> Result<(), Failure> {
        let ran = |rule: &str| policy.rules().iter().any(|r| r.name == rule);
        for (number, ignore) in self.ignores.unused(self.all, ran) {
            let (file, rule) = (clean(&self.from), clean(&ignore.rule));
            writeln!(err, "ckpt-lint: {file}: [[ignore]] {number} (`{rule}`) matches nothing any more; remove it")?;
        }
        let Some(file) = &self.file else { return Ok(()) };
        let name = clean(&file.display().to_string());
        let ran = |rule: &str| policy.rules().iter().any(|r| r.name == rule || r.aliases.contains(&rule));
        if let Some(new) = self.new {
            if failed {
                writeln!(err, "ckpt-lint: {name}: not written, since not all could be looked at")?;
                return Ok(());
            }
            let n = crate::finding::words::count(new.len(), "finding");
            let text = self.baseline.updated(new, ran).map_err(|e| Failure::Usage(e.to_string()))?;
            fs::write(file, text).map_err(|e| Failure::Usage(format!("{}: {e}", file.display())))?;
            writeln!(err, "ckpt-lint: {name}: {n} written")?;
            return Ok(());
        }
        let gone = self.baseline.gone(ran);
        for known in gone.iter().take(TOLD) {
            let (at, rule) = (clean(&known.checkpoint), clean(&known.rule));
            writeln!(err, "ckpt-lint: {name}: `{rule}` of {at} matches nothing any more; remove it")?;
        }
        if gone.len() > TOLD {
            let more = gone.len() - TOLD;
            writeln!(err, "ckpt-lint: {name}: {more} more match nothing; `--write-baseline` removes them")?;
        }
        Ok(())
    }
}
