//! `ModelOptQuantConfigBase.is_layer_excluded`: exact with fused layers, substrings, shell wildcards.

use super::super::fnmatch::Glob;
use super::super::skip::{SkipList, Skipped};
use super::super::{DeadEntry, List, Matching};
use crate::vllm::trace::Raised;

/// With more entries than this, substrings are looked up instead of entries searched.
const MANY: usize = 256;
/// Wildcards are a stranger's: no more characters than this are compared, a second or two. Real lists of the largest
/// models need a tenth.
const MAX_STEPS: u64 = 500_000_000;

/// `exclude_modules`.
#[derive(Debug)]
pub(super) struct Exclude {
    skip: SkipList,
    /// Entries with wildcards.
    globs: Vec<(usize, Glob)>,
    /// Distinct lengths of entries, ascending.
    lengths: Vec<usize>,
    /// Characters compared so far.
    steps: u64,
}

impl Exclude {
    /// A list at `pointer`.
    pub(super) fn new(pointer: String, texts: Vec<String>) -> Exclude {
        let skip = SkipList::of(pointer, texts, Matching::Wildcards);
        let mut list = Exclude { skip, globs: Vec::new(), lengths: Vec::new(), steps: 0 };
        list.read();
        list
    }

    fn read(&mut self) {
        let globs = self.skip.mapped().enumerate().filter(|e| e.1.contains(['*', '?', '[']));
        self.globs = globs.map(|(at, text)| (at, Glob::new(text))).collect();
        self.lengths = self.skip.mapped().map(str::len).collect();
        self.lengths.sort_unstable();
        self.lengths.dedup();
    }

    /// Where it stands and how it matches.
    pub(super) fn list(&self) -> List {
        self.skip.list()
    }

    /// `apply_vllm_mapper`: `x*` becomes `x` and `x.*`, then all entries are renamed.
    pub(super) fn rename(&mut self, rename: &dyn Fn(&str) -> String) {
        self.skip.split(|entry| {
            let stem = entry.strip_suffix('*').filter(|stem| !stem.is_empty() && !stem.ends_with('.'))?;
            Some([stem.to_owned(), format!("{stem}.*")])
        });
        self.skip.rename(rename);
        self.read();
    }

    /// Merged or replaced.
    pub(super) fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool) {
        self.skip.set_packed(mapping, merge);
    }

    /// The parts of a fused layer, by its last component.
    pub(super) fn packed(&self, leaf: &str) -> Option<&[String]> {
        self.skip.packed(leaf)
    }

    /// `is_layer_excluded`.
    ///
    /// # Errors
    /// When some shards of a fused layer are in the list and others are not.
    pub(super) fn excluded(&mut self, prefix: &str) -> Result<Skipped, Raised> {
        if self.lengths.is_empty() {
            return Ok(None);
        }
        let exact = self.skip.skipped(prefix)?;
        // All are asked in any case, so that an entry counts as used whichever way a module was excluded first.
        let inside = self.inside(prefix);
        let glob = self.glob(prefix);
        Ok(exact.or(inside.map(Some)).or(glob.map(Some)))
    }

    /// The first entry that is a part of the name.
    fn inside(&mut self, prefix: &str) -> Option<usize> {
        let mut hits: Vec<usize> = Vec::new();
        if self.skip.mapped().nth(MANY).is_none() {
            hits.extend(self.skip.mapped().enumerate().filter(|(_, e)| prefix.contains(e)).map(|e| e.0));
        } else {
            for &length in self.lengths.iter().take_while(|n| **n <= prefix.len()) {
                for start in 0..=prefix.len() - length {
                    hits.extend(prefix.get(start..start + length).map_or(&[][..], |part| self.skip.same(part)));
                }
            }
            hits.sort_unstable();
        }
        let mut first = None;
        for at in hits {
            let index = self.skip.mark(at);
            first = first.or(index);
        }
        first
    }

    /// The first entry whose wildcards match (`fnmatch.fnmatch`).
    fn glob(&mut self, prefix: &str) -> Option<usize> {
        let name: Vec<char> = prefix.chars().collect();
        let mut first = None;
        for (at, glob) in &self.globs {
            if self.steps >= MAX_STEPS {
                break;
            }
            if glob.matches(prefix, &name, &mut self.steps) {
                let index = self.skip.mark(*at);
                first = first.or(index);
            }
        }
        first
    }

    /// Entries that matched nothing.
    pub(super) fn dead(&self) -> Vec<DeadEntry> {
        self.skip.dead()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_entries_are_found_inside_names_as_few_are() {
        let texts = |n: usize| (0..n).map(|i| format!("zz{i}")).chain(["v_proj".to_owned(), String::new()]).collect();
        for n in [3, 400] {
            let mut list = Exclude::new("/ignore".into(), texts(n));
            assert_eq!(list.excluded("a.qkv_proj").ok().flatten(), Some(Some(n)), "{n}");
            assert_eq!(list.excluded("a.zz2").ok().flatten(), Some(Some(2)), "{n}");
        }
    }
}
