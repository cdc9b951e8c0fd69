//! Whether two lists have the same names, without a set of them: for 92,000 names that is megabytes at random places, and
//! each of them a cache miss.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

/// How many names there are, and the sum of their hashes: the same for lists of the same names in any order, and for hardly
/// any others (one in 2^64).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digest {
    names: u64,
    sum: u64,
}

impl Digest {
    /// Adds a name, by its hash.
    pub(super) fn add(&mut self, hash: u64) {
        self.join(Digest { names: 1, sum: hash });
    }

    /// Adds all names of another list.
    pub fn join(&mut self, other: Digest) {
        self.names += other.names;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// The hash of a name.
pub(super) fn hash(name: &str) -> u64 {
    FxBuildHasher.hash_one(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(names: &[&str]) -> Digest {
        let mut digest = Digest::default();
        names.iter().for_each(|name| digest.add(hash(name)));
        digest
    }

    #[test]
    fn names_count_and_order_does_not() {
        assert_eq!(digest(&["a", "b.c"]), digest(&["b.c", "a"]));
        for other in [&["a"][..], &["a", "b"], &["a", "b.c", "b.c"], &["ab.c", ""], &[]] {
            assert_ne!(digest(&["a", "b.c"]), digest(other), "{other:?}");
        }
        let mut joined = digest(&["a"]);
        joined.join(digest(&["b.c"]));
        assert_eq!(joined, digest(&["a", "b.c"]));
    }
}
