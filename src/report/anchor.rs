//! Where machine formats put a finding in a repository, and how they know it again.

use super::{FileState, Report, Section, Shown};
use crate::finding::Place;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

const CONFIG: &str = "config.json";
const INDEX: &str = "model.safetensors.index.json";

/// All findings of all checkpoints with their fingerprints, errors first: where there is room for some, it is for these.
pub(super) fn findings(report: &Report) -> Vec<(&Section, &Shown, String)> {
    let of = |s| fingerprints(s).into_iter().zip(&s.findings).map(move |(print, shown)| (s, shown, print));
    let mut all: Vec<_> = report.checkpoints.iter().flat_map(of).collect();
    all.sort_by_key(|f| Reverse(f.1.finding.level));
    all
}

/// The file that a finding is shown at, by its path from the root. What has no file of its own is shown at the config,
/// else at the index, else at the folder.
pub(super) fn path(section: &Section, shown: &Shown) -> String {
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

/// A name for each finding of a section, the same for as long as the cause is: it says the rule and the place by key or
/// tensor, never by line, and counts no entries of lists, since these move. Findings that share a place add what they
/// are about.
pub(super) fn fingerprints(section: &Section) -> Vec<String> {
    let places: Vec<String> = section.findings.iter().map(|s| identity(section, s)).collect();
    let mut times: HashMap<&str, usize> = HashMap::new();
    for place in &places {
        *times.entry(place).or_default() += 1;
    }
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for (place, shown) in places.iter().zip(&section.findings) {
        let mut text = place.clone();
        if times.get(place.as_str()).is_some_and(|n| *n > 1) {
            text.push('\0');
            text.push_str(shown.finding.subjects.names.first().unwrap_or(&shown.finding.message));
        }
        let mut again = 1;
        while !seen.insert(format!("{:016x}:{again}", fnv(&text))) {
            again += 1;
        }
        out.push(format!("{:016x}:{again}", fnv(&text)));
    }
    out
}

fn identity(section: &Section, shown: &Shown) -> String {
    let (file, what) = match &shown.finding.place {
        Place::Folder => ("", String::new()),
        Place::File { file } => (file.as_str(), String::new()),
        Place::Tensor { file, name } => (file.as_str(), name.clone()),
        Place::Key { file, pointer } => {
            let steps = pointer.split('/').filter(|s| s.is_empty() || s.parse::<u64>().is_err());
            (file.as_str(), steps.collect::<Vec<_>>().join("/"))
        }
    };
    [shown.finding.rule, &section.base, file, &what].join("\0")
}

/// FNV-1a. Fingerprints outlive versions of ours, so they need a hash that no library may change.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
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

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv("foobar"), 0x8594_4171_f739_67e8);
    }
}
