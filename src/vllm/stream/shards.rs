//! What is streamed, shard by shard.

use super::super::files::Selection;
use super::super::trace::{Effect, Event, Kind, Raised, Stage};
use super::{Stored, Stream};
use crate::checkpoint::{Checkpoint, Name, ShardState};

impl Stream<'_> {
    /// Everything that is to be streamed: the shards, then the names of tensors that are somewhere else.
    pub fn all(&mut self, cp: &Checkpoint, selection: &Selection) {
        if let Some(outer) = self.outer() {
            let headers = selection.shards.iter().filter_map(|i| match &cp.shards[*i].state {
                ShardState::Good(h) | ShardState::Broken(_, h) => Some(h),
                ShardState::Pointer { .. } => None,
            });
            let stored = headers.flat_map(|h| &h.tensors).map(|t| &*t.name);
            self.outer = outer.is_for(stored.chain(selection.names.iter().map(|n| &*n.0)));
        }
        let elsewhere = self.shards(cp, selection);
        let mut names: Vec<&(Name, Name)> = selection.names.iter().chain(elsewhere).collect();
        names.sort_by(|a, b| (&a.1, &a.0).cmp(&(&b.1, &b.0)));
        let last = selection.shards.last().and_then(|i| match &cp.shards[*i].state {
            ShardState::Good(h) => h.tensors.last().map(|t| t.name.to_string()),
            _ => None,
        });
        self.end(last.as_deref());
        let before = self.trace.events.len();
        for (name, file) in names {
            self.tensor(&Stored { name, file, dtype: None, shape: None, bytes: 0 });
        }
        self.end(last.as_deref());
        if !selection.absent {
            // Tensors of a missing shard are only marked as somewhere: what is wrong with them is not known.
            self.trace.events.truncate(before);
        }
        let before = self.trace.events.len();
        self.join();
        self.blame(before, last.as_deref());
    }

    /// Nothing more will come.
    fn end(&mut self, last: Option<&str>) {
        let before = self.trace.events.len();
        self.trace.events.append(&mut self.late);
        self.fill();
        self.blame(before, last);
    }

    /// What vLLM has in hand once everything has been streamed.
    pub(super) fn blame(&mut self, from: usize, last: Option<&str>) {
        for e in self.trace.events[from..].iter_mut().filter(|e| e.effect == Effect::Refuses) {
            e.in_hand = last.map(str::to_owned);
        }
    }

    /// Every tensor of the chosen shards, and what is wrong with their headers.
    ///
    /// Returns the index's names of shards that are pointers: they are somewhere, as those of missing shards are.
    fn shards<'c>(&mut self, cp: &'c Checkpoint, selection: &Selection) -> Vec<&'c (Name, Name)> {
        let mut elsewhere = Vec::new();
        for shard in selection.shards.iter().map(|i| &cp.shards[*i]) {
            let refused = |kind| {
                let mut e = Event::new(Stage::Load, Effect::Refuses, kind);
                e.file = Some(shard.file.clone());
                let text = shard.refusal().unwrap_or_default();
                e.error = Some(Raised { error_type: "SafetensorError".into(), text });
                e
            };
            let (header, broken) = match &shard.state {
                ShardState::Good(h) => (h, false),
                ShardState::Broken(defects, h) => {
                    for d in defects {
                        let mut e = refused(Kind::HeaderBroken);
                        e.tensor.clone_from(&d.tensor);
                        e.detail.clone_from(&d.text);
                        self.trace.events.push(e);
                    }
                    (h, true)
                }
                ShardState::Pointer { size } => {
                    let map = cp.index.get().and_then(|i| i.weight_map.as_ref());
                    elsewhere.extend(map.into_iter().flatten().filter(|n| n.1 == shard.file));
                    let mut e = refused(Kind::PointerAmongShards);
                    e.bytes = *size;
                    self.trace.events.push(e);
                    continue;
                }
            };
            for t in &header.tensors {
                let bytes = t.span.1.saturating_sub(t.span.0);
                // Of a broken header only the names are believed, and only to say what else is missing.
                let (dtype, shape) = if broken { (None, None) } else { (Some(t.dtype), Some(&*t.shape)) };
                self.tensor(&Stored { name: &t.name, file: &shard.file, dtype, shape, bytes });
            }
        }
        elsewhere
    }
}
