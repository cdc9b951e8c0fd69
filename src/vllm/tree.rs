//! The module tree of a class for one config: what vLLM constructs, and which parameters every module has.

mod before;

pub use before::{Before, Halves, Patches, Route, Skip};

use super::keyed::Keyed;
use super::mapper::{MAX_INDEX, Mapper};
use super::method::{CacheScales, Element, Load};
use crate::facts::{self, NodeKind, Scope};
use std::rc::Rc;

/// What became of a module when it was offered to the quantization method.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Quant {
    /// Built without a quantization config.
    #[default]
    NotOffered,
    /// Offered, and built plain; the index of the ignore entry that matched.
    Plain(Option<usize>),
    /// Built by this scheme.
    Scheme(String),
    /// vLLM raised here.
    Refused,
}

/// One parameter or persistent buffer.
#[derive(Debug, Clone)]
pub struct Slot {
    /// Attribute name.
    pub name: String,
    /// Full shape (embeddings: padded rows).
    pub shape: Vec<u64>,
    /// Element type.
    pub element: Element,
    /// How tensors are put into it.
    pub load: Load,
    /// A persistent buffer.
    pub buffer: bool,
    /// vLLM never reads it, or has a good default.
    pub optional: bool,
    /// Written parts, one bit each.
    pub written: Vec<u64>,
    /// Number of parts.
    pub parts: usize,
}

impl Slot {
    /// Nothing written yet.
    pub(super) fn new(name: &str, shape: Vec<u64>, element: Element, load: Load, parts: usize) -> Slot {
        let parts = parts.max(1);
        Slot {
            name: name.to_owned(),
            shape,
            element,
            load,
            buffer: false,
            optional: false,
            written: vec![0; parts.div_ceil(64)],
            parts,
        }
    }

    /// Parts of what is one piece for everything but the loader.
    pub fn divide(&mut self, parts: usize) {
        if self.parts != parts {
            self.parts = parts.max(1);
            self.written = vec![0; self.parts.div_ceil(64)];
        }
    }

    /// Mark a part as written.
    pub fn mark(&mut self, part: usize) {
        if let Some(w) = self.written.get_mut(part / 64) {
            *w |= 1 << (part % 64);
        }
    }

    /// Mark all parts.
    pub fn mark_all(&mut self) {
        (0..self.parts).for_each(|p| self.mark(p));
    }

    /// Whether a part is written.
    pub fn has(&self, part: usize) -> bool {
        self.written.get(part / 64).is_some_and(|w| w >> (part % 64) & 1 == 1)
    }

    /// How many parts are written.
    pub fn count(&self) -> usize {
        self.written.iter().map(|w| w.count_ones() as usize).sum()
    }
}

/// How a module loads the names below it.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a handful a model, each behind an Rc")]
pub enum Loader {
    /// `AutoWeightsLoader`.
    Auto {
        /// With the loader's own rules added.
        mapper: Mapper,
        /// Ignorable prefixes of unexpected names.
        ignore_prefixes: Vec<String>,
        /// Ignorable suffixes of unexpected names.
        ignore_suffixes: Vec<String>,
        /// Rows of query and key weights change places: numbers of query and of key heads.
        permute: Option<(u64, u64)>,
        /// What happens to names before the mapper.
        before: Before,
        /// Names without a place are dropped.
        lenient: bool,
        /// Names that differ in the number of the expert alone go the same way.
        even: bool,
    },
    /// A hand-written loop over `dict(named_parameters())`, with `KeyError` for what is not there.
    Keyed(Keyed),
    /// A wrapper that hands every tensor to the part of the model that takes such names.
    Routed {
        /// What happens to names before that.
        mapper: Mapper,
        /// Biases of zeros.
        before: Before,
        /// In this order.
        routes: Vec<Route>,
        /// It does not say what it has loaded.
        untracked: bool,
    },
    /// A hand-written loop that has no Rust twin.
    Unknown(String),
}

impl Loader {
    /// From the facts; `scales` is what the quantization config renames, none without one, and `built` the number of
    /// elements of a list below the module.
    pub(super) fn read(
        l: &facts::Loader,
        scope: &Scope,
        scales: Option<CacheScales>,
        built: &dyn Fn(&str) -> Option<u64>,
    ) -> Loader {
        let skip = l.skip.as_ref().and_then(|(prefix, from, n)| {
            let from = from.size(scope).or_else(|| built(prefix.trim_end_matches('.')))?;
            let to = from.saturating_add(n.size(scope).unwrap_or(u64::MAX));
            Some(Skip { prefix: prefix.clone(), from, to })
        });
        if l.kind == "keyed" {
            if l.unquantized && scope.root.get("quantization_config").is_some_and(|q| !q.is_null()) {
                return Loader::Unknown("quantized".into());
            }
            return Loader::Keyed(Keyed::read(l, scope, skip));
        }
        if l.kind == "routed" {
            let by = |r: &facts::Route| r.by.as_ref().map(|by| Rc::new(Loader::read(by, scope, scales, built)));
            let there = |r: &facts::Route| r.when.as_ref().is_none_or(|w| w.truth(scope));
            return Loader::Routed {
                mapper: Mapper::new(l.mapper.as_ref(), scope),
                before: Before { zero_bias: l.zero_bias.clone(), ..Before::default() },
                routes: l.routes.iter().filter(|r| there(r)).map(|r| Route::read(r, by(r), scope)).collect(),
                untracked: l.untracked,
            };
        }
        if l.kind != "auto" {
            return Loader::Unknown(l.kind.clone());
        }
        let scales = scales.filter(|_| l.quant_aware);
        let mut ignore_suffixes = l.ignore_suffixes.clone();
        ignore_suffixes.push(".bias".into());
        if scales.is_some() {
            ignore_suffixes.extend(
                [".q_scale", ".k_scale", ".v_scale", ".q_zero_point", ".k_zero_point", ".v_zero_point"]
                    .map(String::from),
            );
        }
        let mapper = Mapper::new(l.mapper.as_ref(), scope).with_loader_rules(scales);
        let before = Before {
            segments: l.segments.clone(),
            skip,
            prefix: l.prefix.clone(),
            turned: l.turned.clone(),
            one_row: l.one_row.clone(),
            squeezed: l.squeezed.clone(),
            halves: l.halves.as_ref().and_then(|(from, to, heads, rows)| {
                Some(Halves { from: from.clone(), to: to.clone(), heads: heads.size(scope)?, rows: rows.size(scope)? })
            }),
            zero_bias: l.zero_bias.clone(),
            joined: l.joined.clone(),
            patches: l.patches.as_ref().and_then(|(part, channels, size)| {
                Some(Patches { part: part.clone(), channels: channels.size(scope)?, size: size.size(scope)? })
            }),
            head_bias: l.head_bias.clone(),
            width: l.aside.as_ref().and_then(|aside| aside.width.size(scope)),
            aside: l.aside.clone(),
            outer: l.outer.clone(),
            filled: l.filled.clone(),
        };
        Loader::Auto {
            even: mapper.even() && before.even() && l.permute.is_none(),
            mapper,
            ignore_prefixes: l
                .ignore_prefixes
                .iter()
                .chain(l.ignore_prefixes_if.iter().filter(|(w, _)| w.truth(scope)).flat_map(|(_, p)| p))
                .cloned()
                .chain(l.ignore_layers.iter().flat_map(|(prefix, first, n)| {
                    let (first, n) = (first.size(scope).unwrap_or(0), n.size(scope).unwrap_or(0).min(MAX_INDEX));
                    (first..first.saturating_add(n)).map(move |i| format!("{prefix}{i}."))
                }))
                .collect(),
            ignore_suffixes,
            before,
            lenient: l.lenient,
            permute: l.permute.as_ref().and_then(|(q, k)| Some((q.size(scope)?, k.size(scope)?))),
        }
    }
}

/// One module.
#[derive(Debug, Default)]
pub struct Module {
    /// Full vLLM path, empty at the root.
    pub path: String,
    /// Python class.
    pub cls: Rc<str>,
    /// Kind.
    pub kind: NodeKind,
    /// Parent index (the root is its own parent).
    pub parent: usize,
    /// Children by name, in registration order; a second name of a module points to the same index.
    pub children: Vec<(String, usize)>,
    /// A `ModuleList`: child `i` is element `i`.
    pub list: bool,
    /// Parameters and buffers.
    pub slots: Vec<Slot>,
    /// Attributes registered as `None`.
    pub nones: Vec<&'static str>,
    /// `load_weights` of its own.
    pub loader: Option<Rc<Loader>>,
    /// What the quantization method made of it.
    pub quant: Quant,
    /// Prefix under which it was offered.
    pub prefix: String,
    /// Fused parts: checkpoint name and rows.
    pub parts: Vec<(String, u64)>,
    /// Experts: number, and checkpoint names of gate, down, up.
    pub experts: u64,
    /// See `experts`.
    pub expert_names: [String; 3],
    /// Tensors of all experts are stored `[experts, in, out]` (`is_fused_checkpoint_transposed`).
    pub turned: bool,
    /// Vocabulary rows before padding.
    pub rows: u64,
    /// Events have already said what is wrong here: what stays unwritten below follows from that.
    pub blamed: bool,
}

impl Module {
    /// Index of a child by name.
    pub fn child(&self, name: &str) -> Option<usize> {
        if self.list {
            // Elements are named 0, 1, 2 …; `01` is not a name.
            let i: usize = name.parse().ok()?;
            return self.children.get(i).filter(|(n, _)| n == name).map(|(_, m)| *m);
        }
        self.children.iter().find(|(n, _)| n == name).map(|(_, m)| *m)
    }

    /// Experts of two projections: no gate, so the first is all of `w13`.
    pub fn ungated(&self) -> bool {
        self.kind == NodeKind::Experts && self.expert_names[2].is_empty()
    }

    /// Its parameters' names, for messages.
    pub fn slot_names(&self) -> String {
        self.slots.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Full name of one of its slots.
    pub fn slot_path(&self, slot: &Slot) -> String {
        if self.kind == NodeKind::Experts {
            // The container (`MoERunner`) holds its parameters in a child of this name.
            return format!("{}.routed_experts.{}", self.path, slot.name);
        }
        join(&self.path, &slot.name)
    }
}

/// `a.b`, or `b` at the root.
pub fn join(prefix: &str, name: &str) -> String {
    match (prefix, name) {
        ("", n) => n.to_owned(),
        (p, "") => p.to_owned(),
        (p, n) => format!("{p}.{n}"),
    }
}

/// The constructed model.
#[derive(Debug, Default)]
pub struct Tree {
    /// Modules; the root is 0.
    pub modules: Vec<Module>,
    /// Parameters that share another one's storage: alias path → module and slot name it aliases (tied heads).
    pub aliases: Vec<(String, String)>,
    /// Module index of a tied head, when there is one.
    pub tied_head: Option<usize>,
    /// Module indices of every head and of the embedding it would tie to.
    pub heads: Vec<(usize, usize)>,
    /// Why the tree is not to be trusted.
    pub unknown: Vec<String>,
    /// The config asks for more than any model has, and building was given up.
    pub oversized: bool,
    /// A size or a number of elements is not known, so nothing can be said of what lands where.
    pub sizeless: bool,
}

impl Tree {
    /// Whether the outermost `load_weights` returns nothing.
    pub fn untracked(&self) -> bool {
        let loader = self.modules.first().and_then(|m| m.loader.as_deref());
        matches!(loader, Some(Loader::Routed { untracked: true, .. }))
    }

    /// A module by full path.
    pub fn find(&self, path: &str) -> Option<usize> {
        if self.modules.is_empty() { None } else { self.find_below(0, path) }
    }

    /// A module by path relative to another.
    pub fn find_below(&self, top: usize, path: &str) -> Option<usize> {
        let mut at = top;
        for part in path.split('.').filter(|p| !p.is_empty()) {
            at = self.modules[at].child(part)?;
        }
        Some(at)
    }

    /// Nothing is missed where the values below come from constructors: `own` are ends of paths.
    pub fn leave_alone(&mut self, at: usize, own: &[String]) {
        if own.is_empty() {
            return;
        }
        let top = self.modules[at].path.clone();
        let below =
            |path: &str| path.strip_prefix(&top).is_some_and(|p| top.is_empty() || p.is_empty() || p.starts_with('.'));
        for m in self.modules[at..].iter_mut().filter(|m| below(&m.path)) {
            for i in 0..m.slots.len() {
                let path = m.slot_path(&m.slots[i]);
                let ends =
                    |end: &String| path.strip_suffix(end.as_str()).is_some_and(|p| p.is_empty() || p.ends_with('.'));
                m.slots[i].optional |= own.iter().any(ends);
            }
        }
    }

    /// Names of all parameters below a module, as `named_parameters` gives them, relative to `base`, sorted.
    pub fn parameters(&self, at: usize, base: &str) -> Vec<String> {
        let mut out = Vec::new();
        let mut stack = vec![at];
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(i) = stack.pop() {
            if !seen.insert(i) {
                continue;
            }
            let m = &self.modules[i];
            for s in m.slots.iter().filter(|s| !s.buffer) {
                let full = m.slot_path(s);
                out.push(
                    full.strip_prefix(base).map_or(full.as_str(), |r| r.strip_prefix('.').unwrap_or(r)).to_owned(),
                );
            }
            stack.extend(m.children.iter().map(|c| c.1));
        }
        out.sort_unstable();
        out
    }
}
