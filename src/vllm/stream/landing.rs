//! Where a tensor lands: in a parameter of its own, or in a part of a fused one.

use super::super::mapper::Shard;
use super::super::method::{Element, Load};
use super::super::place::{self, Placed};
use super::super::trace::{Effect, Kind, Raised};
use super::super::tree::{Quant, Slot};
use super::{Stored, Stream};
use crate::checkpoint::Dtype;
use crate::facts::NodeKind;

impl Stream<'_> {
    /// Into a module that is not fused.
    pub(in crate::vllm) fn plain(&mut self, at: usize, slot: usize, t: &Stored) {
        let m = &self.tree.modules[at];
        let s = &m.slots[slot];
        let result = match t.shape {
            None => Ok(Placed::Whole),
            Some(shape) => match m.kind {
                NodeKind::Embedding | NodeKind::LmHead => place::vocabulary(m, s, shape),
                // A gate's corrections and its bias have no loader of their own.
                NodeKind::Gate if s.name.ends_with("bias") => place::default(&s.shape, shape),
                k if k.is_linear() => place::linear(k, s, shape),
                NodeKind::Attention if s.load == Load::Scalar => place::scalar(shape),
                _ => place::default(&s.shape, shape),
            },
        };
        self.finish(at, slot, result, t, true);
    }

    /// `load_weights` of a fused linear.
    pub(in crate::vllm) fn fused(&mut self, at: usize, name: &str, shard: Option<&Shard>, t: &Stored) {
        let m = &self.tree.modules[at];
        let Some(slot) = m.slots.iter().position(|s| s.name == name) else {
            let text = if m.nones.contains(&name) {
                if name == "bias" {
                    return;
                }
                "'NoneType' object has no attribute 'weight_loader'".to_owned()
            } else if let Some((sub, _)) = name.rsplit_once('.') {
                let first = sub.split('.').next().unwrap_or(sub);
                format!("{} has no attribute `{first}`", m.cls)
            } else {
                format!("'{}' object has no attribute 'data'", m.cls)
            };
            let raised = Raised { error_type: "AttributeError".into(), text };
            return self.without_parameter(at, name, raised, t);
        };
        let Some(shape) = t.shape else {
            let s = &mut self.tree.modules[at].slots[slot];
            match shard {
                Some(Shard::Part(p)) if s.parts > 1 => s.mark(usize::from(*p)),
                _ => s.mark_all(),
            }
            self.placed += 1;
            return;
        };
        let mut s = self.tree.modules[at].slots[slot].clone();
        let result = place::fused(&self.tree.modules[at], &mut s, shape, shard);
        self.tree.modules[at].slots[slot] = s;
        self.finish(at, slot, result, t, false);
    }

    /// Books what placing did.
    pub(in crate::vllm) fn finish(
        &mut self,
        at: usize,
        slot: usize,
        result: Result<Placed, Raised>,
        t: &Stored,
        mark: bool,
    ) {
        let m = &self.tree.modules[at];
        let scheme = matches!(m.quant, Quant::Scheme(_));
        let Slot { element, ref name, .. } = m.slots[slot];
        // A 16-bit weight on its way into a parameter that has its name: what vLLM makes of it depends on its shape.
        let unlisted = scheme
            && matches!(name.as_str(), "weight" | "w13_weight" | "w2_weight")
            && matches!(element, Element::F8E4M3 | Element::I8 | Element::U8)
            && matches!(t.dtype, Some(Dtype::BF16 | Dtype::F16 | Dtype::F32));
        match result {
            Err(raised) if unlisted => {
                let detail = self.plain_entries(at, t);
                self.refuse(Kind::UnlistedLinear, at, raised, t, &detail);
            }
            Err(raised) => {
                let kind = if scheme { Kind::SchemeMisfit } else { Kind::ShapeMismatch };
                let detail = self.shapes(at, slot, t);
                self.refuse(kind, at, raised, t, &detail);
            }
            Ok(placed) => {
                self.placed += 1;
                let detail = (placed != Placed::Whole).then(|| self.shapes(at, slot, t));
                let m = &mut self.tree.modules[at];
                let s = &mut m.slots[slot];
                if mark {
                    s.mark_all();
                }
                if let (Placed::Short(dim, had, want), Some(detail)) = (&placed, &detail) {
                    let mut e = self.event(Kind::HalfWritten, Effect::Damages, at, t);
                    e.detail = format!("{detail}; it fills {had} of {want} along dimension {dim}");
                    self.trace.events.push(e);
                }
                if let (Placed::Cut(dim, took, had), Some(detail), false) = (&placed, detail, unlisted) {
                    let mut e = self.event(Kind::Cut, Effect::Damages, at, t);
                    e.detail = format!("{detail}; vLLM takes the first {took} of {had} along dimension {dim}");
                    self.trace.events.push(e);
                }
                let Some(dtype) = t.dtype else { return };
                if place::keeps_meaning(dtype, element) {
                    return;
                }
                let kind = if unlisted { Kind::UnlistedLinear } else { Kind::Cast };
                let mut e = self.event(kind, Effect::Damages, at, t);
                e.detail = if unlisted { self.plain_entries(at, t) } else { format!("{dtype:?} into {element:?}") };
                self.tree.modules[at].blamed = true;
                self.trace.events.push(e);
            }
        }
    }

    pub(super) fn shapes(&self, at: usize, slot: usize, t: &Stored) -> String {
        let s = &self.tree.modules[at].slots[slot];
        format!("stored {:?}, parameter {:?}", t.shape.unwrap_or(&[]), s.shape)
    }
}
