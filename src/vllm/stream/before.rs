//! Tensors that go past `AutoWeightsLoader`, or that code in front of it takes apart or makes room for.

use super::super::method::{Element, Load};
use super::super::place::{self, Placed};
use super::super::trace::{Effect, Kind, Raised};
use super::super::tree::{Halves, Loader, Slot};
use super::{Stored, Stream};
use crate::facts::{Aside, Outer};

impl Stream<'_> {
    /// Both projections of a tensor that has the heads of two (`TeleChat2Model._split_key_value`).
    pub(super) fn halved(&mut self, at: usize, name: &str, halves: &Halves, t: &Stored) {
        let parts = match t.shape {
            None => [None, None],
            Some([rows, columns @ ..]) if !columns.is_empty() => {
                halves.of(*rows).map(|n| Some([&[n], columns].concat()))
            }
            Some(shape) => {
                let text = format!("too many indices for tensor of dimension {}", shape.len());
                let raised = Raised::new("IndexError", text);
                return self.refuse(Kind::ShapeMismatch, at, raised, t, &format!("stored {shape:?}"));
            }
        };
        for (to, shape) in halves.to.iter().zip(&parts) {
            self.load(at, &name.replace(&halves.from, to), None, &Stored { shape: shape.as_deref(), ..*t });
        }
        let (had, took) = (t.shape.map_or(0, |x| x[0]), halves.heads.saturating_mul(halves.rows).saturating_mul(2));
        if had > took {
            let mut e = self.event(Kind::Cut, Effect::Damages, at, t);
            e.detail = format!("vLLM takes the first {took} of {had} along dimension 0");
            self.trace.events.push(e);
        }
    }

    /// A tensor that goes past AutoWeightsLoader; false when it does not.
    pub(super) fn aside(&mut self, at: usize, aside: &Aside, width: Option<u64>, name: &str, t: &Stored) -> bool {
        let copied = aside.ending.as_ref().is_some_and(|ending| name.ends_with(ending.as_str()));
        if !copied && !aside.within.iter().any(|part| name.contains(part.as_str())) {
            return false;
        }
        let leaf = name.rsplit('.').next().unwrap_or(name);
        let module = self.tree.find_below(at, &aside.module);
        let slot = module.and_then(|m| Some((m, self.tree.modules[m].slots.iter().position(|s| s.name == leaf)?)));
        match (slot, t.shape) {
            // `if weight.dim() == 2`
            (Some(_), Some(shape)) if copied && shape.len() != 2 => self.dropped(at, "a projection is a matrix", t),
            (Some((module, slot)), Some(shape)) if copied => {
                let result = place::copy(&self.tree.modules[module].slots[slot].shape, shape);
                // Tracking knows the parameter by its first name, and is told the one that the pooler has for it.
                let known = self.quantized;
                self.finish(module, slot, result.map(|()| Placed::Whole), t, known);
            }
            (Some((module, slot)), _) => self.plain(module, slot, t),
            (None, Some(shape @ [rows, ..])) if module.is_none() && leaf == "weight" => {
                let made = [*rows, width.unwrap_or(0)];
                let fits = if copied { place::copy(&made, shape) } else { place::default(&made, shape).map(|_| ()) };
                match fits.err().filter(|_| width.is_some()) {
                    Some(raised) => {
                        self.refuse(Kind::ShapeMismatch, at, raised, t, &format!("stored {shape:?}, made {made:?}"))
                    }
                    None => self.placed += 1,
                }
            }
            (None, _) => self.dropped(at, &aside.module, t),
        }
        true
    }

    /// The prefix that the root's loader may add to all names.
    pub(super) fn outer(&self) -> Option<Outer> {
        match self.tree.modules.first()?.loader.as_deref()? {
            Loader::Auto { before, .. } => before.outer.clone(),
            _ => None,
        }
    }

    /// Values of another parameter, where none came.
    pub(super) fn fill(&mut self) {
        let Some(loader) = self.tree.modules.first().and_then(|root| root.loader.clone()) else { return };
        let Loader::Auto { before, .. } = loader.as_ref() else { return };
        let Some((path, leaf)) = before.filled.as_ref().and_then(|name| name.rsplit_once('.')) else { return };
        let Some(module) = self.tree.find(path) else { return };
        for slot in self.tree.modules[module].slots.iter_mut().filter(|s| s.name == leaf && s.count() == 0) {
            slot.mark_all();
        }
    }

    /// A bias that the head gets when one comes, under whichever prefix.
    pub(super) fn late_bias(&mut self, at: usize, head: &str, t: &Stored) {
        let Some(head) = self.tree.find_below(at, head) else { return };
        let m = &mut self.tree.modules[head];
        let slot = m.slots.iter().position(|s| s.name == "bias").unwrap_or_else(|| {
            m.slots.push(Slot::new(
                "bias",
                vec![m.rows.checked_next_multiple_of(64).unwrap_or(m.rows)],
                Element::Model,
                Load::Both,
                1,
            ));
            m.slots.len() - 1
        });
        self.plain(head, slot, t);
    }
}
