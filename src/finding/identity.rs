//! How a finding is known again: by code scanning, by the widget of a merge request, and by a baseline.

use super::{Finding, Place};
use std::collections::{HashMap, HashSet};

/// A name for each finding of a checkpoint at `base`, the same for as long as the cause is: it says the rule and the
/// place by key or tensor, never by line, and counts no entries of lists, since these move. Entries of lists, and
/// findings that share a place, add what they are about.
///
/// All findings of the checkpoint, whether they are ignored or not: none may be renamed because another one is.
pub fn fingerprints<'f>(base: &str, findings: impl IntoIterator<Item = &'f Finding>) -> Vec<String> {
    let findings: Vec<&Finding> = findings.into_iter().collect();
    let places: Vec<String> = findings.iter().map(|f| identity(base, f)).collect();
    let mut times: HashMap<&str, usize> = HashMap::new();
    for place in &places {
        *times.entry(place).or_default() += 1;
    }
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for (place, finding) in places.iter().zip(findings) {
        let mut text = place.clone();
        if times.get(place.as_str()).is_some_and(|n| *n > 1) || of_a_list(&finding.place) {
            text.push('\0');
            text.push_str(finding.subjects.names.first().unwrap_or(&finding.message));
        }
        let hash = fnv(&text);
        let mut again = 1;
        while !seen.insert((hash, again)) {
            again += 1;
        }
        out.push(format!("{hash:016x}:{again}"));
    }
    out
}

fn identity(base: &str, finding: &Finding) -> String {
    let (file, what) = match &finding.place {
        Place::Folder => ("", String::new()),
        Place::File { file } => (file.as_str(), String::new()),
        Place::Tensor { file, name } => (file.as_str(), name.clone()),
        Place::Key { file, pointer } => {
            let steps = pointer.split('/').filter(|s| s.is_empty() || !is_number(s));
            (file.as_str(), steps.collect::<Vec<_>>().join("/"))
        }
    };
    [finding.rule, base, file, &what].join("\0")
}

fn of_a_list(place: &Place) -> bool {
    matches!(place, Place::Key { pointer, .. } if pointer.rsplit('/').next().is_some_and(is_number))
}

fn is_number(step: &str) -> bool {
    step.parse::<u64>().is_ok()
}

/// FNV-1a. Fingerprints outlive versions of ours, so they need a hash that no library may change.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv("foobar"), 0x8594_4171_f739_67e8);
    }
}
