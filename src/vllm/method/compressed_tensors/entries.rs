//! The ignore list and the targets: entries in order, exact ones by hash, patterns compiled once; which of them ever
//! matched a module.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::parse::Refused;
use crate::pattern::Pattern;
use crate::vllm::method::py::{self, raised};
use crate::vllm::trace::Raised;

/// One entry.
#[derive(Debug)]
pub(super) struct Entry {
    /// As written.
    pub(super) written: String,
    /// Under vLLM's names.
    pub(super) mapped: String,
    /// Where it stands, relative to the quantization config.
    pub(super) pointer: String,
    /// Its place in the ignore list, or the group of a target.
    pub(super) payload: usize,
    /// Whether it matched a module.
    pub(super) used: bool,
    what: What,
}

#[derive(Debug)]
enum What {
    Exact,
    Pattern(Pattern),
    /// A pattern that does not compile.
    Broken(Raised),
    /// Not a string: its Python type.
    Odd(&'static str),
}

/// Entries in order.
#[derive(Debug, Default)]
pub(super) struct Entries {
    list: Vec<Entry>,
    exact: FxHashMap<String, Vec<usize>>,
    patterns: Vec<usize>,
    /// The first entry that makes Python raise when it is reached.
    trouble: Option<usize>,
    unused: usize,
}

impl Entries {
    /// Appends an entry of a list.
    pub(super) fn push(&mut self, text: String, pointer: String, payload: usize) {
        let what = match text.starts_with("re:").then(|| Pattern::new(&text)) {
            None => What::Exact,
            Some(Ok(pattern)) => What::Pattern(pattern),
            Some(Err(e)) => What::Broken(raised("error", e.to_string())),
        };
        self.add(Entry { written: text.clone(), mapped: text, pointer, payload, used: false, what });
    }

    /// Appends an entry that is not a string.
    pub(super) fn push_odd(&mut self, value: &Value, pointer: String, payload: usize) {
        let text = py::repr(value);
        let what = What::Odd(py::type_name(value));
        self.add(Entry { written: text, mapped: String::new(), pointer, payload, used: false, what });
    }

    /// Sets a key of a Python dict: a later value keeps the place of the first.
    pub(super) fn put(&mut self, text: String, pointer: String, payload: usize) {
        match self.list.iter_mut().find(|e| e.mapped == text && !matches!(e.what, What::Odd(_))) {
            Some(entry) => (entry.pointer, entry.payload) = (pointer, payload),
            None => self.push(text, pointer, payload),
        }
    }

    /// The same with a key that is not a string.
    pub(super) fn put_odd(&mut self, value: &Value, pointer: String, payload: usize) {
        let text = py::repr(value);
        match self.list.iter_mut().find(|e| e.written == text && matches!(e.what, What::Odd(_))) {
            Some(entry) => (entry.pointer, entry.payload) = (pointer, payload),
            None => self.push_odd(value, pointer, payload),
        }
    }

    fn add(&mut self, entry: Entry) {
        let at = self.list.len();
        self.unused += usize::from(!entry.used);
        match &entry.what {
            What::Exact => self.exact.entry(entry.mapped.clone()).or_default().push(at),
            What::Pattern(_) => self.patterns.push(at),
            What::Broken(_) | What::Odd(_) => self.trouble = self.trouble.or(Some(at)),
        }
        self.list.push(entry);
    }

    /// `apply_vllm_mapper`: renames what contains a dot and is no pattern. As keys of a dict, entries that come to the
    /// same name become one: the place of the first, the value of the last.
    pub(super) fn rename(&mut self, rename: &dyn Fn(&str) -> String, keys: bool) -> Result<(), Refused> {
        let mut renamed = Entries::default();
        let mut failed = None;
        for mut entry in std::mem::take(&mut self.list) {
            match entry.what {
                What::Odd(name @ ("NoneType" | "bool" | "int" | "float")) if failed.is_none() => {
                    let text = format!("argument of type '{name}' is not iterable");
                    failed = Some((entry.pointer.clone(), raised("TypeError", text)));
                }
                What::Exact if entry.mapped.contains('.') => {
                    entry.mapped = rename(&entry.mapped);
                    if let Some(&first) = renamed.exact.get(&entry.mapped).filter(|_| keys).and_then(|at| at.first()) {
                        let place = &mut renamed.list[first];
                        entry.used |= place.used;
                        renamed.unused -= usize::from(!place.used);
                        renamed.unused += usize::from(!entry.used);
                        *place = entry;
                        continue;
                    }
                }
                _ => {}
            }
            renamed.add(entry);
        }
        *self = renamed;
        failed.map_or(Ok(()), Err)
    }

    /// The first entry that matches, with no trace left.
    pub(super) fn first(&self, name: &str) -> Option<usize> {
        let exact = self.exact.get(name).and_then(|at| at.first().copied());
        let before = |at: &usize| exact.is_none_or(|e| *at < e);
        let mut patterns = self.patterns.iter().copied().take_while(before);
        patterns.find(|at| self.pattern_matches(*at, name)).or(exact)
    }

    /// The first entry that matches; all that match count as used.
    pub(super) fn scan(&mut self, name: &str) -> Option<usize> {
        let mut first = None;
        if let Some(places) = self.exact.get(name) {
            first = places.first().copied();
            for &at in places {
                self.unused -= usize::from(!self.list[at].used);
                self.list[at].used = true;
            }
        }
        for i in 0..self.patterns.len() {
            let at = self.patterns[i];
            if first.is_some_and(|f| f < at) && self.list[at].used {
                continue;
            }
            if self.pattern_matches(at, name) {
                self.mark(at);
                first = Some(first.map_or(at, |f| f.min(at)));
            }
        }
        first
    }

    /// A pattern that takes too many steps counts as not matching: Python would seem to hang.
    fn pattern_matches(&self, at: usize, name: &str) -> bool {
        matches!(&self.list[at].what, What::Pattern(p) if p.is_match(name).unwrap_or(false))
    }

    /// Whether a target matches the name of a module's class: patterns, else containment without regard to case.
    pub(super) fn matches_class(&self, at: usize, class: &str, lowered: &str) -> bool {
        match &self.list[at].what {
            What::Exact => lowered.contains(&self.list[at].mapped.to_lowercase()),
            What::Pattern(p) => p.is_match(class).unwrap_or(false),
            What::Broken(_) | What::Odd(_) => false,
        }
    }

    /// What Python raises when it walks the list up to `end`, or to its end; whether a pattern is to blame.
    pub(super) fn trouble(&self, end: Option<usize>) -> Option<(bool, Raised)> {
        let entry = &self.list[self.trouble.filter(|at| end.is_none_or(|end| *at < end))?];
        match &entry.what {
            What::Broken(raised) => Some((true, raised.clone())),
            What::Odd(name) => {
                let text = format!("'{name}' object has no attribute 'startswith'");
                Some((false, raised("AttributeError", text)))
            }
            What::Exact | What::Pattern(_) => None,
        }
    }

    /// Patterns that do not compile: pointer and entry.
    pub(super) fn broken(&self) -> impl Iterator<Item = (String, String)> {
        let broken = self.list.iter().filter(|e| matches!(e.what, What::Broken(_)));
        broken.map(|e| (e.pointer.clone(), e.written.clone()))
    }

    /// Counts an entry as used.
    pub(super) fn mark(&mut self, at: usize) {
        self.unused -= usize::from(!self.list[at].used);
        self.list[at].used = true;
    }

    /// Whether some entry has not matched yet.
    pub(super) fn any_unused(&self) -> bool {
        self.unused > 0
    }

    /// Place of an exact entry by its name.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        self.exact.get(name).and_then(|at| at.first().copied())
    }

    /// An entry.
    pub(super) fn get(&self, at: usize) -> &Entry {
        &self.list[at]
    }

    /// All entries.
    pub(super) fn list(&self) -> &[Entry] {
        &self.list
    }
}
