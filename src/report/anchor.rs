//! Where machine formats put a finding in a repository.

use super::{FileState, Report, Section, Shown};
use std::cmp::Reverse;

const CONFIG: &str = "config.json";
const INDEX: &str = "model.safetensors.index.json";

/// All findings of all checkpoints, errors first: where there is room for some, it is for these.
pub(super) fn findings(report: &Report) -> Vec<(&Section, &Shown)> {
    let mut all: Vec<_> = report.checkpoints.iter().flat_map(|s| s.findings.iter().map(move |f| (s, f))).collect();
    all.sort_by_key(|f| Reverse(f.1.finding.level));
    all
}

/// The file that a finding is shown at, by its path from the root. What has no file of its own is shown at the config,
/// else at the index, else at the folder.
pub(super) fn path(section: &Section, shown: &Shown) -> String {
    if section.read.config_only {
        return section.base.clone();
    }
    let place = shown.finding.place.file().filter(|f| is_inside(f));
    let spot = shown.spot.as_ref().map(|s| s.file.as_str());
    let there = |name, state| (state != FileState::Absent).then_some(name);
    let any = || there(CONFIG, section.read.config).or_else(|| there(INDEX, section.read.index));
    join(&section.base, spot.or(place).or_else(any).unwrap_or_default())
}

/// First line and column, last line and the column after; of a file without a known place, its first line.
pub(super) fn lines(shown: &Shown) -> Option<[usize; 4]> {
    let region = shown.spot.as_ref()?.region.as_ref()?;
    Some([region.line, region.column, region.end_line, region.end_column])
}

/// The path of a file that a checkpoint names, when that is one in its folder.
pub(super) fn inside(section: &Section, file: &str) -> Option<String> {
    is_inside(file).then(|| join(&section.base, file))
}

/// A path from the root, of a file in the folder; of the folder itself when the name is empty.
fn join(base: &str, file: &str) -> String {
    match (base, file) {
        ("", "") => ".".to_owned(),
        ("", file) => file.to_owned(),
        (base, "") => base.to_owned(),
        (base, file) => format!("{}/{file}", base.trim_end_matches('/')),
    }
}

/// Whether a name that a checkpoint gives stays in its folder: an index may name what it likes.
fn is_inside(file: &str) -> bool {
    !file.contains(['\\', ':']) && file.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_strangers_stay_in_the_folder() {
        assert!(is_inside("config.json") && is_inside("a/b.safetensors") && is_inside("..a"));
        for out in ["../x", "/etc/passwd", "a/../b", "", "a//b", "c:/x", "a\\..\\b", "."] {
            assert!(!is_inside(out), "{out}");
        }
    }
}
