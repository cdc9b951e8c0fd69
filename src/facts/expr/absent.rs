//! What a config does not have, where that is not the same as null.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// Fields that a config does not have.
#[derive(Debug, Default)]
pub struct Absent(RefCell<BTreeSet<String>>);

impl Absent {
    pub(super) fn note(&self, field: &str) {
        self.0.borrow_mut().insert(field.to_owned());
    }

    /// Their names, sorted.
    pub fn fields(&self) -> Vec<String> {
        self.0.borrow().iter().cloned().collect()
    }
}
