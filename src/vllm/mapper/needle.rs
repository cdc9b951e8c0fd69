//! What mappers look for in names.

use fancy_regex::Regex;
use memchr::memmem::Finder;
use std::cell::OnceCell;

/// A text to look for in every name, prepared once: models that share layers have hundreds of them.
#[derive(Debug)]
pub(super) struct Needle {
    pub(super) text: String,
    finder: Finder<'static>,
}

impl Needle {
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.finder.find(name.as_bytes())
    }
}

impl From<String> for Needle {
    fn from(text: String) -> Self {
        Needle { finder: Finder::new(&text).into_owned(), text }
    }
}

/// A regular expression, compiled when a name first comes by: that takes longer than a small checkpoint, and many mappers
/// never see one.
#[derive(Debug)]
pub(super) struct Expression {
    text: String,
    compiled: OnceCell<Option<Regex>>,
}

impl Expression {
    /// None for one that is no expression.
    pub(super) fn get(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| Regex::new(&self.text).ok()).as_ref()
    }
}

impl From<&str> for Expression {
    fn from(text: &str) -> Self {
        Expression { text: text.to_owned(), compiled: OnceCell::new() }
    }
}
