//! `exclude`: names and `re:` patterns, all of them under vLLM's names (quark/utils.py `should_ignore_layer`).

use super::super::py::{self, raised};
use super::super::{DeadEntry, set_packed};
use crate::pattern::Pattern;
use crate::vllm::trace::{Kind, Raised};
use rustc_hash::FxHashMap;
use serde_json::Value;

/// One entry.
#[derive(Debug)]
struct Entry {
    written: String,
    mapped: String,
    used: bool,
    pattern: Option<Pattern>,
}

/// The list, and the fused layers that it is compared through.
#[derive(Debug, Default)]
pub(super) struct Exclude {
    entries: Vec<Entry>,
    exact: FxHashMap<String, Vec<usize>>,
    patterns: Vec<usize>,
    /// What Python raises when it walks the list.
    trouble: Option<(Kind, Raised)>,
    /// Patterns that do not compile.
    pub(super) broken: Vec<(String, String)>,
    pub(super) packed: Vec<(String, Vec<String>)>,
}

impl Exclude {
    /// From the value of `exclude`.
    pub(super) fn of(value: Option<&Value>) -> Exclude {
        let mut list = Exclude::default();
        let odd = |text: String, kind: &str| Some((Kind::QuantConfigRejected, raised(kind, text)));
        let mut texts = Vec::new();
        match value {
            Some(Value::Array(items)) => {
                for item in items {
                    if item.as_str().is_none() && list.trouble.is_none() {
                        let text = format!("'{}' object has no attribute 'startswith'", py::type_name(item));
                        list.trouble = odd(text, "AttributeError");
                    }
                    texts.push(item.as_str().unwrap_or_default().to_owned());
                }
            }
            Some(Value::Object(map)) => texts.extend(map.keys().cloned()),
            // A string is a list of its characters.
            Some(Value::String(text)) => texts.extend(text.chars().map(String::from)),
            other => {
                let name = py::type_name(other.unwrap_or(&Value::Null));
                list.trouble = odd(format!("'{name}' object is not iterable"), "TypeError");
            }
        }
        let entry = |t: String| Entry { written: t.clone(), mapped: t, used: false, pattern: None };
        list.entries = texts.into_iter().map(entry).collect();
        list.index();
        list
    }

    /// `WeightsMapper.apply_list`: every entry, patterns too.
    pub(super) fn rename(&mut self, rename: &dyn Fn(&str) -> String) {
        for entry in &mut self.entries {
            entry.mapped = rename(&entry.mapped);
        }
        self.index();
    }

    fn index(&mut self) {
        self.exact.clear();
        self.patterns.clear();
        self.broken.clear();
        for (at, entry) in self.entries.iter_mut().enumerate() {
            if !entry.mapped.starts_with("re:") {
                self.exact.entry(entry.mapped.clone()).or_default().push(at);
                continue;
            }
            if entry.pattern.as_ref().is_none_or(|p| p.entry() != entry.mapped) {
                entry.pattern = match Pattern::new(&entry.mapped) {
                    Ok(pattern) => Some(pattern),
                    Err(e) => {
                        self.broken.push((format!("/exclude/{at}"), entry.written.clone()));
                        self.trouble.get_or_insert((Kind::PatternBroken, raised("error", e.to_string())));
                        None
                    }
                };
            }
            self.patterns.push(at);
        }
    }

    pub(super) fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool) {
        set_packed(&mut self.packed, mapping, merge);
    }

    /// The first entry that matches; all that match count as used.
    fn scan(&mut self, name: &str) -> Option<usize> {
        let mut hits: Vec<usize> = self.exact.get(name).cloned().unwrap_or_default();
        let fits = |at: &usize| self.entries[*at].pattern.as_ref().is_some_and(|p| p.is_match(name).unwrap_or(false));
        hits.extend(self.patterns.iter().copied().filter(fits));
        for at in &hits {
            self.entries[*at].used = true;
        }
        hits.into_iter().min()
    }

    /// The entry of something below experts, which takes all of them.
    fn child(&mut self, name: &str) -> Option<usize> {
        let mut first = None;
        for (at, entry) in self.entries.iter_mut().enumerate() {
            let rest = entry.mapped.strip_prefix(name).filter(|_| !entry.mapped.starts_with("re:"));
            if rest.is_some_and(|r| r.is_empty() || r.starts_with('.')) {
                entry.used = true;
                first = first.or(Some(at));
            }
        }
        first
    }

    /// `should_ignore_layer`: whether a module is left alone, and by which entry.
    pub(super) fn ignored(&mut self, name: &str, experts: bool) -> Result<Option<Option<usize>>, (Kind, Raised)> {
        if let Some(trouble) = &self.trouble {
            return Err(trouble.clone());
        }
        if experts && let Some(at) = self.child(name) {
            return Ok(Some(Some(at)));
        }
        if let Some(at) = self.scan(name) {
            return Ok(Some(Some(at)));
        }
        let last = name.rsplit('.').next().unwrap_or(name);
        let Some((_, shards)) = self.packed.iter().find(|(key, _)| key == last) else { return Ok(None) };
        let names: Vec<String> = shards.iter().map(|shard| name.replace(last, shard)).collect();
        let hits: Vec<Option<usize>> = names.iter().map(|n| self.scan(n)).collect();
        match (hits.iter().any(Option::is_some), hits.iter().all(Option::is_some)) {
            (true, false) => {
                let text = format!(
                    "Found different quantization schemes for the shards of {name}. vLLM requires all to use the same \
                     scheme."
                );
                Err((Kind::FusedMixture, raised("ValueError", text)))
            }
            (_, true) => Ok(Some(hits.first().copied().flatten())),
            _ => Ok(None),
        }
    }

    /// Entries that matched nothing.
    pub(super) fn dead(&self) -> Vec<DeadEntry> {
        let unused = self.entries.iter().enumerate().filter(|(_, e)| !e.used);
        let entry = |(at, e): (usize, &Entry)| DeadEntry {
            pointer: format!("/exclude/{at}"),
            entry: e.written.clone(),
            name: e.mapped.clone(),
            ignore: true,
        };
        unused.map(entry).collect()
    }
}
