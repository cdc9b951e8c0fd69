//! Streaming the tensors: mapper chain, traversal, loaders (`AutoWeightsLoader`, fused linears, experts), spec E.

mod before;
mod homeless;
mod landing;
mod parts;
mod shards;

use super::mapper::{Mapped, Shard};
use super::pooling::Ahead;
use super::trace::{Effect, Event, Kind, Raised, Stage, Trace};
use super::tree::{Loader, Module, Quant, Tree, join};
use super::{experts, keyed, words};
use crate::checkpoint::Dtype;
use crate::facts::NodeKind;
use homeless::{ignorable, value_error};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// A tensor on its way in. Shape and dtype are missing when only names are known.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a> {
    /// Name in the file.
    pub name: &'a str,
    /// Shard.
    pub file: &'a str,
    /// Element type.
    pub dtype: Option<Dtype>,
    /// Dimensions.
    pub shape: Option<&'a [u64]>,
    /// Bytes.
    pub bytes: u64,
}

/// The stream: a tree that fills, a trace that grows.
pub struct Stream<'a> {
    /// The model.
    pub tree: &'a mut Tree,
    /// Events.
    pub trace: &'a mut Trace,
    /// Renames an HF module name to the vLLM one, for the entries to suggest.
    pub rename: &'a dyn Fn(&str) -> String,
    /// Packed parts of a fused component (for the entries to suggest).
    pub quantized: bool,
    /// Tensors that were streamed.
    pub streamed: usize,
    /// Their bytes, where known.
    pub bytes: u64,
    /// Tensors that landed in a parameter.
    pub placed: usize,
    aliases: FxHashMap<String, String>,
    /// Where tensors of experts go.
    pub(super) ways: experts::Ways,
    /// So far, the tensor at hand goes where those of other experts would go.
    pub(super) even: bool,
    /// Skipped aliases: name → canonical, with the loader root's class.
    pub skipped: Vec<(String, String, String)>,
    told: FxHashSet<String>,
    /// Towers that are built: what the class drops below them it drops for every checkpoint.
    towers: FxHashSet<&'static str>,
    full_text_given: bool,
    /// The loader at work drops names without a place.
    lenient: bool,
    /// A tensor for all experts of a layer has come by (`fused_experts_params` of `Llama4Model.load_weights`).
    pub(super) banked: bool,
    /// How far the loader reads before it loads anything.
    pub(super) ahead: Ahead,
    /// The names have the prefix that the root's loader adds to those of some checkpoints.
    outer: bool,
    /// The loop at work finds buffers, too.
    pub(super) buffers: bool,
    /// Tensors that wait for each other.
    joined: [Option<parts::Held>; 2],
    /// Events of tensors that the loader keeps for the end.
    pub(super) late: Vec<Event>,
    /// 8-bit weights and scales of `indexer.wk` that wait for each other, by module: which of them, and the weight's shape.
    pub(super) waiting: FxHashMap<String, (bool, Option<Vec<u64>>)>,
}

impl<'a> Stream<'a> {
    /// A stream into a fresh tree.
    pub fn new(tree: &'a mut Tree, trace: &'a mut Trace, rename: &'a dyn Fn(&str) -> String, quantized: bool) -> Self {
        let aliases = tree.aliases.iter().cloned().collect();
        let built = tree.modules.iter().filter(|m| m.kind != NodeKind::Placeholder && !m.children.is_empty());
        let towers = built.filter_map(|m| words::tower_of(&m.path)).collect();
        Stream {
            towers,
            tree,
            trace,
            rename,
            quantized,
            streamed: 0,
            bytes: 0,
            placed: 0,
            aliases,
            ways: experts::Ways::default(),
            even: true,
            skipped: Vec::new(),
            told: FxHashSet::default(),
            full_text_given: false,
            lenient: false,
            banked: false,
            ahead: Ahead::default(),
            outer: false,
            buffers: false,
            joined: [None, None],
            late: Vec::new(),
            waiting: FxHashMap::default(),
        }
    }

    /// One tensor, from the root.
    pub fn tensor(&mut self, t: &Stored) {
        self.streamed += 1;
        self.lenient = false;
        self.bytes = self.bytes.saturating_add(t.bytes);
        if self.ahead.score_bias && t.name == "score.bias" {
            self.placed += 1;
            return;
        }
        let before = self.trace.events.len();
        if !self.ahead.prefix.is_empty() {
            // Experts that follow others do so under their own names.
            self.even = false;
            self.load(0, &format!("{}{}", self.ahead.prefix, t.name), None, t);
        } else if !self.tree.modules.is_empty() && !self.follows(t) {
            self.even = true;
            self.load(0, t.name, None, t);
        }
        if self.streamed <= self.ahead.read && self.trace.events.len() > before {
            let last = self.ahead.in_hand.clone();
            self.blame(before, last.as_deref());
        }
    }

    /// `load_weights` of a module that has one.
    fn load(&mut self, at: usize, name: &str, shard: Option<&Shard>, t: &Stored) {
        let Some(loader) = self.tree.modules[at].loader.clone() else {
            return self.walk(at, at, name, shard, t, None);
        };
        self.load_by(&loader, at, name, shard, t);
    }

    /// The same in a given way.
    fn load_by(&mut self, loader: &Rc<Loader>, at: usize, name: &str, shard: Option<&Shard>, t: &Stored) {
        match loader.as_ref() {
            Loader::Unknown(kind) => {
                if self.told.insert(kind.clone()) {
                    let mut e = Event::new(Stage::Load, Effect::Keeps, Kind::Unknown);
                    e.detail = format!(
                        "{} loads its tensors in a way of its own ({kind}) that is not simulated yet",
                        self.tree.modules[at].cls
                    );
                    self.trace.events.push(e);
                }
                // Whatever it does, what lies below is not ours to call unwritten.
                self.fill_below(at);
            }
            Loader::Keyed(tables) => keyed::load(self, at, name, shard, tables, t),
            Loader::Routed { mapper, before, routes, .. } => self.routed(at, name, mapper, before, routes, t),
            Loader::Auto { mapper, permute, before, lenient, even, .. } => {
                self.lenient = *lenient;
                self.even &= even;
                if before.skip.as_ref().is_some_and(|skip| skip.hits(name)) {
                    return self.dropped(
                        at,
                        "a layer of the drafter (multi-token prediction), or beyond the last one built",
                        t,
                    );
                }
                if let Some(head) = before.head_bias.as_ref().filter(|h| name.ends_with(&format!("{h}.bias"))) {
                    return self.late_bias(at, head, t);
                }
                if before.aside.as_ref().is_some_and(|aside| self.aside(at, aside, before.width, name, t))
                    || self.held(name, before, t)
                {
                    return;
                }
                if let Some(halves) = before.halves.as_ref().filter(|h| name.contains(h.from.as_str())) {
                    return self.halved(at, name, halves, t);
                }
                let shape = t.shape.and_then(|shape| before.shape(name, shape));
                let t = &Stored { shape: shape.as_deref().or(t.shape), ..*t };
                if let Some(bias) = before.zeros(name) {
                    let zeros = Stored { shape: None, dtype: None, bytes: 0, ..*t };
                    self.load(at, &bias, shard, &zeros);
                }
                let mut name = before.rename(name);
                if let Some(outer) = before.outer.as_ref().filter(|_| self.outer) {
                    name = format!("{}{name}", outer.add).into();
                }
                if permute.is_some_and(|heads| keyed::llama4::permuted(self, at, &name, heads, t).is_none()) {
                    return;
                }
                match mapper.map(&name) {
                    Mapped::Dropped(by) => self.dropped(at, &by, t),
                    Mapped::Kept(mapped, shards) => {
                        if self.alias(at, &mapped) {
                            return;
                        }
                        if shards.is_empty() {
                            self.walk(at, at, &mapped, shard, t, Some(loader));
                        }
                        self.even &= shards.is_empty();
                        for s in &shards {
                            self.walk(at, at, &mapped, Some(s), t, Some(loader));
                        }
                    }
                }
            }
        }
    }

    fn alias(&mut self, root: usize, name: &str) -> bool {
        if self.aliases.is_empty() {
            return false;
        }
        let m = &self.tree.modules[root];
        let Some(canonical) = self.aliases.get(&join(&m.path, name)) else { return false };
        let relative = canonical.strip_prefix(&format!("{}.", m.path)).unwrap_or(canonical).to_owned();
        if !self.skipped.iter().any(|s| s.0 == name) {
            let cls = m.cls.to_string();
            self.skipped.push((name.to_owned(), relative, cls));
        }
        true
    }

    /// A name below a module, as `AutoWeightsLoader` would go on with it.
    pub(super) fn below(&mut self, at: usize, name: &str, t: &Stored) {
        if self.tree.modules[at].loader.is_some() {
            return self.load(at, name, None, t);
        }
        self.walk(at, at, name, None, t, None);
    }

    /// Component by component from `at`; `root` is the innermost loader's module.
    fn walk(
        &mut self,
        root: usize,
        start: usize,
        name: &str,
        shard: Option<&Shard>,
        t: &Stored,
        loader: Option<&Rc<Loader>>,
    ) {
        let mut at = start;
        let mut rest = name;
        loop {
            let (first, tail) = rest.split_once('.').unwrap_or((rest, ""));
            if let Some(child) = self.tree.modules[at].child(first) {
                let m = &self.tree.modules[child];
                if m.kind == NodeKind::Placeholder {
                    return self.swallowed(child, t);
                }
                if m.quant == Quant::Refused {
                    return;
                }
                if m.loader.is_some() && child != root {
                    return self.load(child, tail, shard, t);
                }
                if m.kind.is_fused() {
                    return self.fused(child, tail, shard, t);
                }
                if m.kind == NodeKind::Experts {
                    return experts::load(self, child, tail, t);
                }
                at = child;
                rest = tail;
                continue;
            }
            let slot = self.tree.modules[at].slots.iter().position(|s| s.name == first);
            let Some(slot) = slot else { return self.homeless(root, at, name, rest, t, loader) };
            if !tail.is_empty() {
                if ignorable(loader, name) {
                    return;
                }
                let base = &name[..name.len() - tail.len() - 1];
                let raised =
                    value_error(format!("Attempted to load nested weight '{name}' into a single parameter '{base}'"));
                return self.refuse(Kind::NoHome, at, raised, t, "a name below a parameter");
            }
            return self.plain(at, slot, t);
        }
    }

    pub(super) fn event(&self, kind: Kind, effect: Effect, at: usize, t: &Stored) -> Event {
        let mut e = Event::new(Stage::Load, effect, kind);
        let m: &Module = &self.tree.modules[at];
        e.file = Some(t.file.to_owned());
        e.tensor = Some(t.name.to_owned());
        e.module = Some(m.path.clone());
        e.bytes = t.bytes;
        e
    }

    pub(super) fn refuse(&mut self, kind: Kind, at: usize, raised: Raised, t: &Stored, detail: &str) {
        let mut e = self.event(kind, Effect::Refuses, at, t);
        e.error = Some(raised);
        e.detail = detail.to_owned();
        self.tree.modules[at].blamed = true;
        self.trace.events.push(e);
    }

    fn fill_below(&mut self, at: usize) {
        let mut stack = vec![at];
        while let Some(i) = stack.pop() {
            if self.tree.modules[i].blamed {
                continue;
            }
            self.tree.modules[i].blamed = true;
            stack.extend(self.tree.modules[i].children.iter().map(|c| c.1));
        }
    }
}
