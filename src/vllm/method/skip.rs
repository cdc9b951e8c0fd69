//! Lists of modules that stay in 16 bit, for methods other than compressed-tensors
//! (`is_layer_skipped`, vllm/model_executor/layers/quantization/utils/quant_utils.py).

use super::{DeadEntry, List, Matching, py};
use crate::vllm::trace::Raised;
use aho_corasick::AhoCorasick;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

/// One entry.
#[derive(Debug, Clone)]
struct Entry {
    /// As written.
    written: String,
    /// Under vLLM's names.
    mapped: String,
    /// Its place in the list of the file; none when vLLM read it off the headers.
    index: Option<usize>,
    /// Whether it matched a module.
    used: bool,
}

/// Whether a module is matched, and by which entry of the file, if it is one of the file.
pub(super) type Skipped = Option<Option<usize>>;

/// A list, how it matches, and the fused layers that it is compared through.
#[derive(Debug)]
pub(super) struct SkipList {
    pointer: String,
    matching: Matching,
    entries: Vec<Entry>,
    exact: FxHashMap<String, Vec<usize>>,
    /// All entries at once, for substrings: there are tens of thousands when they come from the headers.
    inside: Option<AhoCorasick>,
    packed: Vec<(String, Vec<String>)>,
}

impl SkipList {
    /// The first of `keys` that holds something (as `get_from_keys_or` and Python's `or` find it).
    ///
    /// # Errors
    /// What Python raises on a value that it cannot iterate over, with its pointer.
    pub(super) fn parse(config: &Value, keys: &[&str], matching: Matching) -> Result<SkipList, (String, Raised)> {
        let key = keys.iter().find(|k| config.get(**k).is_some_and(py::truthy)).or(keys.first()).unwrap_or(&"ignore");
        let pointer = format!("/{key}");
        let texts: Vec<String> = match config.get(*key) {
            Some(Value::Array(items)) => {
                items.iter().map(|v| v.as_str().map_or_else(String::new, str::to_owned)).collect()
            }
            Some(Value::Object(map)) => map.keys().cloned().collect(),
            // A string is a list of its characters.
            Some(Value::String(text)) => text.chars().map(String::from).collect(),
            None | Some(Value::Null) => Vec::new(),
            Some(other) if !py::truthy(other) => Vec::new(),
            Some(other) => {
                let text = format!("'{}' object is not iterable", py::type_name(other));
                return Err((pointer, py::raised("TypeError", text)));
            }
        };
        Ok(SkipList::of(pointer, texts, matching))
    }

    /// A list that stands at `pointer`.
    pub(super) fn of(pointer: String, texts: Vec<String>, matching: Matching) -> SkipList {
        let mut list = SkipList {
            pointer,
            matching,
            entries: Vec::new(),
            exact: FxHashMap::default(),
            inside: None,
            packed: Vec::new(),
        };
        for (index, text) in texts.into_iter().enumerate() {
            list.entries.push(Entry { written: text.clone(), mapped: text, index: Some(index), used: false });
        }
        list.hash();
        list
    }

    /// Where it stands and how it matches.
    pub(super) fn list(&self) -> List {
        List { pointer: self.pointer.clone(), matching: self.matching }
    }

    /// `WeightsMapper.apply_list`: all entries, dotless ones too.
    pub(super) fn rename(&mut self, rename: &dyn Fn(&str) -> String) {
        for entry in &mut self.entries {
            entry.mapped = rename(&entry.mapped);
        }
        self.hash();
    }

    /// Whether it has no entry.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Entries that vLLM reads off the headers when the config has none.
    pub(super) fn derive(&mut self, names: impl IntoIterator<Item = String>) {
        let entry = |name: String| Entry { written: name.clone(), mapped: name, index: None, used: true };
        self.entries = names.into_iter().map(entry).collect();
        self.hash();
    }

    fn hash(&mut self) {
        self.exact.clear();
        if self.matching == Matching::Substring {
            // Building fails for more patterns than 32 bits can count.
            self.inside = AhoCorasick::new(self.entries.iter().map(|e| e.mapped.as_str())).ok();
            return;
        }
        for (at, entry) in self.entries.iter().enumerate() {
            self.exact.entry(entry.mapped.clone()).or_default().push(at);
        }
    }

    /// Merged or replaced.
    pub(super) fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool) {
        super::set_packed(&mut self.packed, mapping, merge);
    }

    /// The names of the parts of a fused layer, when its last component is one.
    pub(super) fn shards(&self, prefix: &str) -> Option<Vec<String>> {
        let last = prefix.rsplit('.').next().unwrap_or(prefix);
        let (_, shards) = self.packed.iter().find(|(key, _)| key == last)?;
        Some(shards.iter().map(|shard| prefix.replace(last, shard)).collect())
    }

    /// The parts of a fused layer, by its last component.
    pub(super) fn packed(&self, leaf: &str) -> Option<&[String]> {
        self.packed.iter().find(|(key, _)| key == leaf).map(|(_, parts)| parts.as_slice())
    }

    /// Entries under vLLM's names.
    pub(super) fn mapped(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|e| e.mapped.as_str())
    }

    /// Entries that become several, which stand at one place in the file.
    pub(super) fn split(&mut self, of: impl Fn(&str) -> Option<[String; 2]>) {
        let old = std::mem::take(&mut self.entries);
        for entry in old {
            match of(&entry.mapped) {
                Some(both) => self.entries.extend(both.map(|mapped| Entry { mapped, ..entry.clone() })),
                None => self.entries.push(entry),
            }
        }
        self.hash();
    }

    /// An entry matched in a way of its method's own; its place in the list of the file.
    pub(super) fn mark(&mut self, at: usize) -> Option<usize> {
        let entry = self.entries.get_mut(at)?;
        entry.used = true;
        entry.index
    }

    /// Places of the entries that are a name, to look up its substrings when there are many entries.
    pub(super) fn same(&self, name: &str) -> &[usize] {
        self.exact.get(name).map_or(&[], Vec::as_slice)
    }

    /// The first entry that matches a name; all that do count as used.
    pub(super) fn hit(&mut self, name: &str) -> Skipped {
        let mut first: Option<usize> = None;
        let entries = &mut self.entries;
        let mut note = |at: usize| {
            entries[at].used = true;
            first = Some(first.map_or(at, |f| f.min(at)));
        };
        match (self.matching, &self.inside) {
            (Matching::Substring, Some(all)) => {
                all.find_overlapping_iter(name).for_each(|m| note(m.pattern().as_usize()));
            }
            _ => self.exact.get(name).into_iter().flatten().for_each(|at| note(*at)),
        }
        first.map(|at| entries[at].index)
    }

    /// `is_layer_skipped`.
    ///
    /// # Errors
    /// When some shards of a fused layer are in the list and others are not.
    pub(super) fn skipped(&mut self, prefix: &str) -> Result<Skipped, Raised> {
        let Some(shards) = self.shards(prefix) else {
            if matches!(self.matching, Matching::Exact | Matching::Wildcards) && prefix.contains("experts") {
                return Ok(self.within(prefix));
            }
            return Ok(self.hit(prefix));
        };
        if let Some(entry) = self.hit(prefix) {
            return Ok(Some(entry));
        }
        self.agreed(prefix, &shards)
    }

    /// What all shards of a fused layer say.
    ///
    /// # Errors
    /// When they disagree.
    pub(super) fn agreed(&mut self, prefix: &str, shards: &[String]) -> Result<Skipped, Raised> {
        let hits: Vec<Skipped> = shards.iter().map(|shard| self.hit(shard)).collect();
        // Stops at the first that differs; which entries count as used is no matter then.
        if hits.iter().any(|h| h.is_some() != hits[0].is_some()) {
            let text = format!(
                "Detected some but not all shards of {prefix} are quantized. All shards of fused layers to have the same \
                 precision."
            );
            return Err(py::raised("ValueError", text));
        }
        hits.first().copied().ok_or_else(|| py::raised("AssertionError", ""))
    }

    /// Experts: an entry with `experts` in it that begins with, or holds, the container's name.
    fn within(&mut self, prefix: &str) -> Skipped {
        let mut first = None;
        for entry in &mut self.entries {
            if entry.mapped.contains("experts") && entry.mapped.contains(prefix) {
                entry.used = true;
                first = first.or(Some(entry.index));
            }
        }
        first
    }

    /// Entries that matched nothing.
    pub(super) fn dead(&self) -> Vec<DeadEntry> {
        let entry = |e: &Entry| {
            Some(DeadEntry {
                pointer: format!("{}/{}", self.pointer, e.index?),
                entry: e.written.clone(),
                name: e.mapped.clone(),
                ignore: true,
            })
        };
        let used: FxHashSet<usize> = self.entries.iter().filter(|e| e.used).filter_map(|e| e.index).collect();
        let gone = |e: &&Entry| e.index.is_some_and(|i| !used.contains(&i));
        let mut dead: Vec<DeadEntry> = self.entries.iter().filter(gone).filter_map(entry).collect();
        dead.dedup_by(|a, b| a.pointer == b.pointer);
        dead
    }
}
