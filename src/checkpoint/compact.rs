//! Names and shapes that take little memory.
//!
//! The largest checkpoints have 92,000 tensors, and fresh memory is what reading them costs: a page fault takes longer
//! than parsing the 4 kB that it is for. So names of one file share one allocation, and short shapes need none.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A string that shares its memory with others. Use it as a `&str`.
#[derive(Clone)]
pub struct Name {
    /// What it is a part of; thin, so that a name takes 16 bytes.
    text: Arc<String>,
    start: u32,
    len: u32,
}

impl Name {
    /// Bytes `start .. start + len` of a text; empty when they are none of its.
    pub(super) fn part(text: &Arc<String>, (start, len): (u32, u32)) -> Self {
        Name { text: Arc::clone(text), start, len }
    }

    /// Where in `text` it is, if it is a part of that one.
    pub fn place_in(&self, text: &Arc<String>) -> Option<Range<usize>> {
        let start = self.start as usize;
        Arc::ptr_eq(&self.text, text).then_some(start..start + self.len as usize)
    }

    /// The string.
    pub fn as_str(&self) -> &str {
        let start = self.start as usize;
        self.text.get(start..start + self.len as usize).unwrap_or_default()
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        // Nothing as long as 4 GB gets here: files that names come from are read up to 100 MB.
        let len = u32::try_from(text.len()).unwrap_or(0);
        Name { text: Arc::new(text), start: 0, len }
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.as_str().to_owned()
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        let same = (self.start, self.len) == (other.start, other.len) && Arc::ptr_eq(&self.text, &other.text);
        same || **self == **other
    }
}

impl Eq for Name {}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl PartialEq<String> for Name {
    fn eq(&self, other: &String) -> bool {
        **self == **other
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

/// As `str`, which [`Borrow`] promises.
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

/// Dimensions of a tensor. Use it as a `&[u64]`.
#[derive(Clone)]
pub struct Shape(Dims);

#[derive(Clone)]
enum Dims {
    /// Nearly all tensors of language models.
    Short(u8, [u64; 2]),
    Long(Box<[u64]>),
}

impl Deref for Shape {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match &self.0 {
            Dims::Short(len, dims) => dims.get(..usize::from(*len)).unwrap_or_default(),
            Dims::Long(dims) => dims,
        }
    }
}

impl From<&[u64]> for Shape {
    fn from(dims: &[u64]) -> Self {
        Shape(match *dims {
            [] => Dims::Short(0, [0; 2]),
            [a] => Dims::Short(1, [a, 0]),
            [a, b] => Dims::Short(2, [a, b]),
            _ => Dims::Long(dims.into()),
        })
    }
}

impl From<Vec<u64>> for Shape {
    fn from(dims: Vec<u64>) -> Self {
        dims.as_slice().into()
    }
}

impl<const N: usize> From<[u64; N]> for Shape {
    fn from(dims: [u64; N]) -> Self {
        dims.as_slice().into()
    }
}

impl FromIterator<u64> for Shape {
    fn from_iter<I: IntoIterator<Item = u64>>(dims: I) -> Self {
        dims.into_iter().collect::<Vec<_>>().into()
    }
}

impl Default for Shape {
    fn default() -> Self {
        [].into()
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Shape {}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_stay_small() {
        assert_eq!(size_of::<Name>(), 16);
        assert_eq!(size_of::<Shape>(), 24);
        assert!(size_of::<crate::checkpoint::Tensor>() <= 64);
    }

    #[test]
    fn names_are_strings() {
        let text = Arc::new("layers.é.w".to_owned());
        let name = Name::part(&text, (7, 2));
        assert_eq!(name, "é");
        assert_eq!(name.to_string(), "é");
        assert!(Name::from("a").cmp(&name).is_lt());
        let set: std::collections::HashSet<Name> = [name].into();
        assert!(set.contains("é"));
        // Never a panic, whatever the numbers.
        assert_eq!(Name::part(&text, (8, 1)), "");
        assert_eq!(Name::part(&text, (u32::MAX, u32::MAX)), "");
    }

    #[test]
    fn shapes_are_slices() {
        for dims in [&[][..], &[1], &[1, 2], &[1, 2, 3], &[0, 0]] {
            let shape = Shape::from(dims);
            assert_eq!(&*shape, dims);
            assert_eq!(format!("{shape:?}"), format!("{dims:?}"));
        }
        assert_ne!(Shape::from([1]), Shape::from([1, 0]));
    }
}
