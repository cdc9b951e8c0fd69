//! Where each key and value of a JSON text is: one scan, then any number of look-ups.

use std::ops::Range;

use serde_json::from_str;

/// As deep as [`crate::checkpoint`] reads.
const MAX_DEPTH: usize = 130;
const NONE: u32 = u32::MAX;

/// A key, if it has one, and its value, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// With its quotes.
    pub(super) key: Option<Range<usize>>,
    pub(super) value: Range<usize>,
    /// Neither list nor object.
    pub(super) scalar: bool,
}

/// Every value of a text, in file order. A text that is not JSON has the values before its fault.
#[derive(Debug)]
pub(super) struct Spans<'a> {
    text: &'a str,
    nodes: Vec<Node>,
}

/// 28 bytes, so 92,000 entries cost 2.5 MB, and only when something is found in them.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// Zero length for none.
    key: (u32, u32),
    value: (u32, u32),
    kind: Kind,
    /// The key is written with escapes.
    escaped: bool,
    first: u32,
    next: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Scalar,
    List,
    Object,
}

impl<'a> Spans<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let mut spans = Spans { text, nodes: Vec::new() };
        if u32::try_from(text.len()).is_ok() {
            let start = spans.skip(0);
            spans.value((0, 0), start, 0);
        }
        spans
    }

    /// The value at a JSON pointer, or the nearest one above it that exists. `None` for the whole document.
    pub(super) fn find(&self, pointer: &str) -> Option<Found> {
        let mut at = 0;
        for step in pointer.split('/').skip(1) {
            match self.step(at, &step.replace("~1", "/").replace("~0", "~")) {
                Some(next) => at = next,
                None => break,
            }
        }
        if at == 0 { None } else { self.found(at) }
    }

    /// The child `key` of the object at exactly `pointer`.
    pub(super) fn child(&self, pointer: &str, key: &str) -> Option<Found> {
        let at = pointer.split('/').skip(1).try_fold(0, |at, step| self.step(at, step))?;
        self.found(self.step(at, key)?)
    }

    fn found(&self, at: u32) -> Option<Found> {
        let node = self.nodes.get(at as usize)?;
        let range = |(start, end): (u32, u32)| start as usize..end as usize;
        let key = Some(range(node.key)).filter(|r| !r.is_empty());
        Some(Found { key, value: range(node.value), scalar: node.kind == Kind::Scalar })
    }

    /// One step down. Of equal keys the last one, which is the one that counts.
    fn step(&self, at: u32, step: &str) -> Option<u32> {
        let node = self.nodes.get(at as usize)?;
        let mut children = std::iter::successors(Some(node.first), |at| self.nodes.get(*at as usize).map(|n| n.next))
            .take_while(|at| *at != NONE);
        match node.kind {
            Kind::Scalar => None,
            Kind::List => children.nth(step.parse().ok()?),
            Kind::Object => children.filter(|at| self.has_key(*at, step)).last(),
        }
    }

    fn has_key(&self, at: u32, key: &str) -> bool {
        let Some(node) = self.nodes.get(at as usize) else { return false };
        let quoted = self.text.get(node.key.0 as usize..node.key.1 as usize).unwrap_or_default();
        let raw = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
        raw == key || (node.escaped && from_str::<String>(quoted).is_ok_and(|decoded| decoded == key))
    }

    fn byte(&self, i: usize) -> Option<u8> {
        self.text.as_bytes().get(i).copied()
    }

    fn skip(&self, mut i: usize) -> usize {
        while matches!(self.byte(i), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            i += 1;
        }
        i
    }

    /// The end of the string whose quote is at `i`.
    fn string(&self, i: usize) -> Option<usize> {
        let mut i = i + 1;
        loop {
            i += memchr::memchr2(b'"', b'\\', self.text.as_bytes().get(i..)?)?;
            if self.byte(i)? == b'"' {
                return Some(i + 1);
            }
            i += 2;
        }
    }

    /// Records the value at `i` and what is in it. Its end, or `None` where the text makes no sense any more.
    fn value(&mut self, key: (u32, u32), i: usize, depth: usize) -> Option<usize> {
        let me = self.nodes.len();
        let kind = match self.byte(i)? {
            b'{' => Kind::Object,
            b'[' => Kind::List,
            _ => Kind::Scalar,
        };
        let escaped = self.text.as_bytes().get(key.0 as usize..key.1 as usize).is_some_and(|k| k.contains(&b'\\'));
        self.nodes.push(Node { key, value: (i as u32, i as u32), kind, escaped, first: NONE, next: NONE });
        let end = match kind {
            Kind::Scalar if self.byte(i) == Some(b'"') => self.string(i),
            Kind::Scalar => {
                let word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'+' | b'.');
                let len = self.text.as_bytes().get(i..)?.iter().take_while(|b| word(b)).count();
                (len > 0).then_some(i + len)
            }
            _ if depth >= MAX_DEPTH => None,
            _ => self.children(me, kind, i + 1, depth),
        };
        let node = self.nodes.get_mut(me)?;
        node.value.1 = end.unwrap_or(i + 1) as u32;
        end
    }

    fn children(&mut self, me: usize, kind: Kind, i: usize, depth: usize) -> Option<usize> {
        let close = if kind == Kind::Object { b'}' } else { b']' };
        let mut i = self.skip(i);
        if self.byte(i)? == close {
            return Some(i + 1);
        }
        let mut last: Option<usize> = None;
        loop {
            let mut key = (0, 0);
            if kind == Kind::Object {
                let end = if self.byte(i)? == b'"' { self.string(i)? } else { return None };
                key = (i as u32, end as u32);
                i = self.skip(end);
                if self.byte(i)? != b':' {
                    return None;
                }
                i = self.skip(i + 1);
            }
            let child = self.nodes.len();
            let end = self.value(key, i, depth + 1);
            if child < self.nodes.len() {
                match last {
                    None => self.nodes.get_mut(me)?.first = child as u32,
                    Some(last) => self.nodes.get_mut(last)?.next = child as u32,
                }
                last = Some(child);
            }
            i = self.skip(end?);
            match self.byte(i)? {
                b',' => i = self.skip(i + 1),
                b if b == close => return Some(i + 1),
                _ => return None,
            }
        }
    }
}
