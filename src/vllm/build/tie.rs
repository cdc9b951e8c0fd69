//! Heads that share the weight of an embedding.

use super::super::trace::{Effect, Event, Kind, Raised, Stage};
use super::super::tree::join;
use super::Builder;
use crate::facts::{ClassFile, Scope};

impl Builder<'_> {
    /// Whether the head of a class shares the embedding's weight (`ParallelLMHead.tie_weights`).
    pub(super) fn tie(&mut self, file: &ClassFile, at: usize, scope: &Scope) {
        let Some(tie) = &file.tie else { return };
        let base = self.tree.modules[at].path.clone();
        let (Some(head), Some(embed)) = (self.find(&join(&base, &tie.head)), self.find(&join(&base, &tie.embed)))
        else {
            return;
        };
        self.tree.heads.push((head, embed));
        if !tie.when.truth(scope) {
            return;
        }
        let e = &self.tree.modules[embed];
        if !e.slots.iter().any(|s| s.name == "weight") {
            let mut event = Event::new(Stage::Init, Effect::Refuses, Kind::TiedToPacked);
            event.module = Some(e.path.clone());
            event.error = Some(Raised {
                error_type: "AttributeError".into(),
                text: format!("'{}' object has no attribute 'weight'", e.cls),
            });
            self.trace.events.push(event);
            self.tree.modules[head].blamed = true;
            return;
        }
        let canonical = join(&e.path, "weight");
        let alias = join(&self.tree.modules[head].path, "weight");
        self.tree.modules[head].slots.retain(|s| s.name != "weight");
        self.tree.aliases.push((alias, canonical));
        self.tree.tied_head = Some(head);
    }
}
