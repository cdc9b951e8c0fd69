//! Tensors that a generator in front of `AutoWeightsLoader` takes apart or makes room for.

use super::super::method::{Element, Load};
use super::super::trace::{Effect, Kind, Raised};
use super::super::tree::{Halves, Slot};
use super::{Stored, Stream};

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
