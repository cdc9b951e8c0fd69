//! Wrappers that hand tensors to the parts of a model, and tensors that are parts of one parameter.

use super::super::mapper::{Mapped, Mapper};
use super::super::place;
use super::super::trace::{Effect, Event, Kind, Raised, Stage};
use super::super::tree::{Before, Loader, Route};
use super::{Stored, Stream};
use crate::checkpoint::Dtype;
use crate::facts::NodeKind;
use std::rc::Rc;

/// A tensor that waits for another.
pub(super) struct Held {
    name: String,
    file: String,
    dtype: Option<Dtype>,
    shape: Option<Vec<u64>>,
    bytes: u64,
}

impl Held {
    fn stored<'a>(&'a self, shape: Option<&'a [u64]>) -> Stored<'a> {
        Stored { name: &self.name, file: &self.file, dtype: self.dtype, shape, bytes: self.bytes }
    }
}

impl Stream<'_> {
    /// A tensor for the part of the model that takes names like this one.
    pub(super) fn routed(
        &mut self,
        at: usize,
        name: &str,
        mapper: &Mapper,
        before: &Before,
        routes: &[Route],
        t: &Stored,
    ) {
        self.even &= mapper.even() && before.even();
        let zeros = before.zeros(name);
        for (name, t) in [(name, *t)].into_iter().chain(zeros.as_deref().map(|name| {
            // What vLLM makes up has the right shape.
            (name, Stored { shape: None, dtype: None, bytes: 0, ..*t })
        })) {
            match mapper.map(name) {
                Mapped::Dropped(by) => self.dropped(at, &by, &t),
                Mapped::Kept(name, _) => self.route(at, &name, routes, &t),
            }
        }
    }

    fn route(&mut self, at: usize, name: &str, routes: &[Route], t: &Stored) {
        let Some((route, rest)) = routes.iter().find_map(|r| Some((r, r.takes(name)?))) else {
            return self.dropped(at, "a name that the model has no place for", t);
        };
        let part = match self.tree.find_below(at, &route.to) {
            None if route.asserted => return self.homeless_key(at, name, place::assertion(""), t),
            None => return self.dropped(at, "a part that is not built", t),
            Some(part) if self.tree.modules[part].kind == NodeKind::Placeholder => return self.swallowed(part, t),
            Some(part) => part,
        };
        let mark = self.trace.events.len();
        match &route.by {
            Some(by) => self.load_by(by, part, rest, None, t),
            None => self.below(part, rest, t),
        }
        if route.late {
            let late = self.trace.events.split_off(mark);
            self.late.extend(late);
        }
    }

    /// Whether the tensor has to wait for another (`_get_weights_with_merged_embedding`).
    pub(super) fn held(&mut self, name: &str, before: &Before, t: &Stored) -> bool {
        let part = before.joined.as_ref().and_then(|j| j.from.iter().position(|p| name.contains(p.as_str())));
        let Some(part) = part else { return false };
        self.joined[part] = Some(Held {
            name: t.name.to_owned(),
            file: t.file.to_owned(),
            dtype: t.dtype,
            shape: t.shape.map(<[u64]>::to_vec),
            bytes: t.bytes,
        });
        true
    }

    /// Both tensors as one, or what vLLM says where one has not come.
    pub(super) fn join(&mut self) {
        let Some(loader) = self.tree.modules.first().and_then(|m| m.loader.as_ref()).map(Rc::clone) else { return };
        let Loader::Auto { before: Before { joined: Some(joined), .. }, .. } = loader.as_ref() else { return };
        let (first, second) = match std::mem::take(&mut self.joined) {
            [Some(first), Some(second)] => (first, second),
            [first, _] => {
                let (error, text) = &joined.without[usize::from(first.is_some())];
                let mut e = Event::new(Stage::Load, Effect::Refuses, Kind::EmbeddingMissing);
                e.module = Some(joined.to.clone());
                e.error = Some(Raised::new(error, text.as_str()));
                self.trace.events.push(e);
                let module = joined.to.rsplit_once('.').and_then(|(path, _)| self.tree.find(path));
                module.into_iter().for_each(|m| self.tree.modules[m].blamed = true);
                return;
            }
        };
        let shape = match (&first.shape, &second.shape) {
            (Some(a), Some(b)) => match place::concatenated(a, b) {
                Ok(shape) => Some(shape),
                Err(raised) => {
                    let detail = format!("stored {b:?}, before it {a:?}");
                    return self.refuse(Kind::ShapeMismatch, 0, raised, &second.stored(None), &detail);
                }
            },
            _ => None,
        };
        self.load(0, &joined.to, None, &second.stored(shape.as_deref()));
    }
}
