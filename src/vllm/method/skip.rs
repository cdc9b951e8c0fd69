//! Lists of modules that stay in 16 bit, for methods other than compressed-tensors
//! (`is_layer_skipped`, vllm/model_executor/layers/quantization/utils/quant_utils.py).

use super::{DeadEntry, List, Matching, py};
use crate::vllm::trace::Raised;
use rustc_hash::FxHashMap;
use serde_json::Value;

/// One entry.
#[derive(Debug, Clone)]
struct Entry {
    /// As written.
    written: String,
    /// Under vLLM's names.
    mapped: String,
    /// Its place in the list of the file.
    index: usize,
    /// Whether it matched a module.
    used: bool,
}

/// Whether a module is skipped, and by which entry of the file.
pub(super) type Skipped = Option<Option<usize>>;

/// A list, how it matches, and the fused layers that it is compared through.
#[derive(Debug)]
pub(super) struct SkipList {
    pointer: String,
    matching: Matching,
    entries: Vec<Entry>,
    exact: FxHashMap<String, Vec<usize>>,
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
        let mut list =
            SkipList { pointer, matching, entries: Vec::new(), exact: FxHashMap::default(), packed: Vec::new() };
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
                return Err((list.pointer, py::raised("TypeError", text)));
            }
        };
        for (index, text) in texts.into_iter().enumerate() {
            list.entries.push(Entry { written: text.clone(), mapped: text, index, used: false });
        }
        list.hash();
        Ok(list)
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

    fn hash(&mut self) {
        self.exact.clear();
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

    /// The first entry that matches a name; all that do count as used.
    pub(super) fn hit(&mut self, name: &str) -> Option<usize> {
        let mut first = None;
        let mut note = |entry: &mut Entry| {
            entry.used = true;
            first = first.or(Some(entry.index));
        };
        match self.matching {
            Matching::Exact | Matching::Patterns | Matching::Wildcards => {
                for at in self.exact.get(name).into_iter().flatten() {
                    note(&mut self.entries[*at]);
                }
            }
            Matching::Substring => {
                self.entries.iter_mut().filter(|e| name.contains(e.mapped.as_str())).for_each(note);
            }
        }
        first
    }

    /// `is_layer_skipped`.
    ///
    /// # Errors
    /// When some shards of a fused layer are in the list and others are not.
    pub(super) fn skipped(&mut self, prefix: &str) -> Result<Skipped, Raised> {
        let Some(shards) = self.shards(prefix) else {
            if self.matching == Matching::Exact && prefix.contains("experts") {
                return Ok(self.within(prefix).map(Some));
            }
            return Ok(self.hit(prefix).map(Some));
        };
        if let Some(entry) = self.hit(prefix) {
            return Ok(Some(Some(entry)));
        }
        let hits: Vec<Option<usize>> = shards.iter().map(|shard| self.hit(shard)).collect();
        // Stops at the first that differs; which entries count as used is no matter then.
        if hits.iter().any(|h| h.is_some() != hits[0].is_some()) {
            let text = format!(
                "Detected some but not all shards of {prefix} are quantized. All shards of fused layers to have the same \
                 precision."
            );
            return Err(py::raised("ValueError", text));
        }
        match hits.first() {
            None => Err(py::raised("AssertionError", "")),
            Some(None) => Ok(None),
            Some(hit) => Ok(Some(*hit)),
        }
    }

    /// Experts: an entry with `experts` in it that begins with, or holds, the container's name.
    fn within(&mut self, prefix: &str) -> Option<usize> {
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
        let entry = |e: &Entry| DeadEntry {
            pointer: format!("{}/{}", self.pointer, e.index),
            entry: e.written.clone(),
            name: e.mapped.clone(),
            ignore: true,
        };
        self.entries.iter().filter(|e| !e.used).map(entry).collect()
    }
}
