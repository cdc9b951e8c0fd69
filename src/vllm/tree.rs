//! The module tree of a class for one config: what vLLM constructs, and which parameters every module has.

use super::mapper::{MAX_INDEX, Mapper};
use super::method::{Built, Element, Layer, Load, Method, Offered, Param};
use super::trace::{Effect, Event, Kind, Stage, Trace};
use crate::facts::{self, BoolOr, ClassFile, Expr, Node, NodeKind, ParamFile, Scope};
use serde_json::Value;
use std::rc::Rc;

/// Vocabulary rows are padded to a multiple of this (`DEFAULT_VOCAB_PADDING_SIZE`).
const VOCAB_PADDING: u64 = 64;
/// A tree larger than this is no model: the config is not believed.
const MAX_MODULES: usize = 2_000_000;

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
    fn new(name: &str, shape: Vec<u64>, element: Element, load: Load, parts: usize) -> Slot {
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
pub enum Loader {
    /// `AutoWeightsLoader`.
    Auto {
        /// With the loader's own rules added.
        mapper: Mapper,
        /// Ignorable prefixes of unexpected names.
        ignore_prefixes: Vec<String>,
        /// Ignorable suffixes of unexpected names.
        ignore_suffixes: Vec<String>,
    },
    /// A hand-written loop over `dict(named_parameters())`, with `KeyError` for what is not there.
    Keyed(Keyed),
    /// A hand-written loop that has no Rust twin.
    Unknown(String),
}

/// Tables of a hand-written loop (`DeepseekV2Model.load_weights` and relatives; spec E.6).
#[derive(Debug, Default)]
pub struct Keyed {
    /// Parameter, name in the checkpoint, shard.
    pub stacked: Vec<(String, String, u16)>,
    /// Parameters that fall back to the plain name.
    pub optional: Vec<String>,
    /// Layers from the first to before the second index belong to a drafter.
    pub skip_layers: (u64, u64),
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
}

/// What a build needs.
pub struct Builder<'a> {
    /// vLLM version, for inner classes.
    pub version: &'a str,
    /// Quantization method.
    pub method: &'a mut Method,
    /// Events go here.
    pub trace: &'a mut Trace,
    /// The tree under construction.
    pub tree: Tree,
    default_element: Element,
    files: Vec<(String, Rc<ClassFile>)>,
    /// Modules by path: parents learn of their children only once those are built.
    paths: rustc_hash::FxHashMap<String, usize>,
}

impl<'a> Builder<'a> {
    /// Construct `class` for a resolved config.
    pub fn build(
        version: &'a str,
        class: &Rc<ClassFile>,
        config: &'a Value,
        method: &'a mut Method,
        trace: &'a mut Trace,
        extra: &[(&str, Value)],
    ) -> Tree {
        let mut b = Builder {
            version,
            method,
            trace,
            tree: Tree::default(),
            default_element: Element::Model,
            files: Vec::new(),
            paths: rustc_hash::FxHashMap::default(),
        };
        let scope = Scope { config, root: config, vars: extra };
        b.class(class, 0, "", &scope, None);
        b.tree
    }

    /// A class root at `path`; `as_node` is the node of the using class.
    fn class(
        &mut self,
        file: &Rc<ClassFile>,
        parent: usize,
        path: &str,
        scope: &Scope,
        as_node: Option<&Node>,
    ) -> usize {
        self.tree.unknown.extend(file.unknown.iter().map(|u| format!("{}: {u}", file.class)));
        // The loader renames the lists once for the outer class and once for an inner one (spec B.5).
        self.method.enter_class(file, scope);
        if let Some(r) = file.refuses.iter().find(|r| r.when.truth(scope)) {
            let mut e = Event::new(Stage::Init, Effect::Refuses, Kind::TowerConfigMissing);
            e.file = Some("config.json".into());
            e.pointer = Some(r.pointer.clone());
            e.error = Some(super::trace::Raised { error_type: r.error.clone(), text: r.message.clone() });
            self.trace.events.push(e);
        }
        let root = if path.is_empty() { String::new() } else { format!("{path}.") };
        let at = self.node(&file.tree, parent, path, &root, scope);
        if let (Some(node), Some(at)) = (as_node, at) {
            debug_assert!(node.uses.is_some());
            let _ = at;
        }
        let at = at.unwrap_or(parent);
        self.tie(file, at, scope);
        at
    }

    /// Builds one node and everything below; none when its condition does not hold.
    fn node(&mut self, node: &Node, parent: usize, path: &str, root: &str, outer: &Scope) -> Option<usize> {
        if self.tree.modules.len() > MAX_MODULES {
            self.tree.unknown.push("the config asks for more modules than any model has".into());
            return None;
        }
        let null = Value::Null;
        let config = node.config.as_ref().map_or(outer.config, |c| outer.config.get(c).unwrap_or(&null));
        let scope = Scope { config, ..*outer };
        if let Some(inner) = &node.uses {
            let file = self.file(inner)?;
            return Some(self.class(&file, parent, path, &scope, Some(node)));
        }
        let at = self.tree.modules.len();
        self.tree.modules.push(Module {
            path: path.to_owned(),
            cls: Rc::from(node.cls.as_str()),
            kind: node.kind,
            parent,
            ..Module::default()
        });
        self.paths.insert(path.to_owned(), at);
        if node.kind != NodeKind::Placeholder {
            self.fill(node, at, root, &scope);
            if let Some((var, count)) = &node.each {
                self.elements(node, at, var, count, root, &scope);
            } else {
                for child in &node.nodes {
                    self.child(child, at, &child.name, root, &scope);
                }
            }
        }
        if let Some(l) = &node.loader {
            self.tree.modules[at].loader = Some(Rc::new(self.loader(l, &scope)));
        }
        Some(at)
    }

    fn child(&mut self, child: &Node, at: usize, name: &str, root: &str, scope: &Scope) {
        if child.when.as_ref().is_some_and(|w| !w.truth(scope)) {
            return;
        }
        let index = if let Some(same) = &child.same {
            self.find(&format!("{root}{same}"))
        } else {
            let path = join(&self.tree.modules[at].path, name);
            self.node(child, at, &path, root, scope)
        };
        if let Some(index) = index {
            if child.same.is_some() {
                let alias = join(&self.tree.modules[at].path, name);
                let m = &self.tree.modules[index];
                if matches!(m.kind, NodeKind::Embedding | NodeKind::LmHead) {
                    let pairs: Vec<_> = m.slots.iter().map(|s| (join(&alias, &s.name), m.slot_path(s))).collect();
                    self.tree.aliases.extend(pairs);
                }
            }
            self.tree.modules[at].children.push((name.to_owned(), index));
        }
    }

    fn elements(&mut self, node: &Node, at: usize, var: &str, count: &Expr, root: &str, scope: &Scope) {
        self.tree.modules[at].list = true;
        let Some(n) = count.size(scope) else {
            self.tree
                .unknown
                .push(format!("{}: the config does not say how many there are", self.tree.modules[at].path));
            return;
        };
        for i in 0..n.min(MAX_INDEX) {
            let vars: Vec<(&str, Value)> = scope.vars.iter().cloned().chain([(var, Value::from(i))]).collect();
            let scope = Scope { vars: &vars, ..*scope };
            if let Some(alt) = node.nodes.iter().find(|n| n.when.as_ref().is_none_or(|w| w.truth(&scope))) {
                self.child(alt, at, &i.to_string(), root, &scope);
            }
            if self.tree.modules.len() > MAX_MODULES {
                return;
            }
        }
    }

    /// Parameters and the quantization decision of one module.
    fn fill(&mut self, node: &Node, at: usize, root: &str, scope: &Scope) {
        let size = |e: &Option<Expr>| e.as_ref().and_then(|e| e.size(scope));
        let offered = match node.kind {
            k if k.is_linear() => Some(Offered::Linear),
            NodeKind::LmHead => Some(Offered::Head),
            NodeKind::Embedding => Some(Offered::Embedding),
            NodeKind::Attention => Some(Offered::Attention),
            NodeKind::Experts => Some(Offered::Experts),
            _ => None,
        };
        for (buffer, list) in [(false, &node.params), (true, &node.buffers)] {
            for (name, p) in list {
                let (shape, dtype, when) = match p {
                    ParamFile::Shape(s) => (s, None, None),
                    ParamFile::Full { shape, dtype, when } => (shape, dtype.as_deref(), when.as_ref()),
                };
                if when.is_some_and(|w| !w.truth(scope)) {
                    continue;
                }
                let Some(shape) = shape.iter().map(|e| e.size(scope)).collect::<Option<Vec<u64>>>() else {
                    let path = join(&self.tree.modules[at].path, name);
                    self.tree.unknown.push(format!("{path}: the config gives no size for it"));
                    continue;
                };
                let element = dtype.map_or(self.default_element, element);
                let mut slot = Slot::new(name, shape, element, Load::Whole, 1);
                slot.buffer = buffer;
                self.tree.modules[at].slots.push(slot);
            }
        }
        let Some(offered) = offered else { return };
        let (input, output) = (size(&node.input), size(&node.output));
        let parts: Vec<(String, u64)> =
            node.parts.iter().map(|(n, e)| (n.clone(), e.size(scope).unwrap_or(0))).collect();
        let outputs: Vec<u64> =
            if parts.is_empty() { vec![output.unwrap_or(0)] } else { parts.iter().map(|p| p.1).collect() };
        if offered != Offered::Attention && (input.is_none() || outputs.contains(&0)) {
            let path = self.tree.modules[at].path.clone();
            self.tree.unknown.push(format!("{path}: the config gives no size for it"));
        }
        let bias = match &node.bias {
            None => false,
            Some(BoolOr::Flag(b)) => *b,
            Some(BoolOr::When(e)) => e.truth(scope),
        };
        let prefix = node.quant.as_ref().map(|q| template(q, &self.tree.modules[at].path, root, scope));
        let names: [String; 3] = std::array::from_fn(|i| node.names.get(i).cloned().unwrap_or_default());
        let built = match &prefix {
            None => None,
            Some(prefix) => Some(self.method.build(&Layer {
                offered,
                prefix,
                class: &node.cls,
                row: node.kind == NodeKind::Row,
                input: input.unwrap_or(0),
                outputs: &outputs,
                experts: size(&node.count).unwrap_or(0),
                expert_names: [&names[0], &names[1], &names[2]],
                kv_heads: 0,
            })),
        };
        let m = &mut self.tree.modules[at];
        m.experts = size(&node.count).unwrap_or(0);
        m.rows = outputs[0];
        m.prefix = prefix.unwrap_or_default();
        m.expert_names = names;
        let n = outputs.len();
        m.parts = parts;
        let parts_of = |load: Load, name: &str, experts: u64| match (offered, load) {
            (Offered::Experts, _) => {
                usize::try_from(experts).unwrap_or(0) * if name.starts_with("w13") { 2 } else { 1 }
            }
            (_, Load::Whole) => 1,
            _ => n,
        };
        let mut slots: Vec<Slot> = Vec::new();
        let (quant, plain) = match built {
            None => (Quant::NotOffered, true),
            Some(Built::Plain { entry }) => (Quant::Plain(entry), true),
            Some(Built::Quantized { scheme, params, nones }) => {
                m.nones = nones;
                for Param { name, shape, element, load, unread } in params {
                    let mut s = Slot::new(name, shape, element, load, parts_of(load, name, m.experts));
                    s.optional = unread;
                    slots.push(s);
                }
                (Quant::Scheme(scheme), false)
            }
            Some(Built::Refused { why, raised }) => {
                let mut e = Event::new(Stage::Init, Effect::Refuses, why);
                e.module = Some(m.prefix.clone());
                e.error = Some(raised);
                self.trace.events.push(e);
                m.blamed = true;
                (Quant::Refused, true)
            }
        };
        m.quant = quant;
        if plain && offered != Offered::Attention {
            let k = input.unwrap_or(0);
            let total: u64 = outputs.iter().fold(0, |a, b| a.saturating_add(*b));
            match offered {
                Offered::Experts => {
                    let e = m.experts;
                    slots.push(Slot::new(
                        "w13_weight",
                        vec![e, total.saturating_mul(2), k],
                        Element::Model,
                        Load::Both,
                        parts_of(Load::Both, "w13", e),
                    ));
                    slots.push(Slot::new(
                        "w2_weight",
                        vec![e, k, total],
                        Element::Model,
                        Load::Both,
                        parts_of(Load::Both, "w2", e),
                    ));
                }
                Offered::Linear => slots.push(Slot::new("weight", vec![total, k], Element::Model, Load::Both, n)),
                _ => {
                    let padded = total.div_ceil(VOCAB_PADDING).saturating_mul(VOCAB_PADDING);
                    slots.push(Slot::new("weight", vec![padded, k], Element::Model, Load::Both, 1));
                }
            }
        }
        if bias {
            let total: u64 = outputs.iter().fold(0, |a, b| a.saturating_add(*b));
            slots.push(Slot::new("bias", vec![total], Element::Model, Load::Output, n));
        } else if offered == Offered::Linear {
            m.nones.push("bias");
        }
        m.slots.extend(slots);
    }

    fn loader(&self, l: &facts::Loader, scope: &Scope) -> Loader {
        if l.kind == "keyed" {
            let skip = l.skip_layers.as_ref().map(|(a, n)| (a.size(scope).unwrap_or(0), n.size(scope).unwrap_or(0)));
            let (first, n) = skip.unwrap_or((0, 0));
            let shard = |v: &Value| {
                v.as_u64().and_then(|n| u16::try_from(n).ok()).or_else(|| v.as_str().and_then(facts::facts_shard))
            };
            return Loader::Keyed(Keyed {
                stacked: l.stacked.iter().filter_map(|(p, w, s)| Some((p.clone(), w.clone(), shard(s)?))).collect(),
                optional: l.optional.clone(),
                skip_layers: (first, first.saturating_add(n)),
            });
        }
        if l.kind != "auto" {
            return Loader::Unknown(l.kind.clone());
        }
        let quantized = l.quant_aware && self.method.is_some();
        let mut ignore_suffixes = l.ignore_suffixes.clone();
        ignore_suffixes.push(".bias".into());
        if quantized {
            ignore_suffixes.extend(
                [".q_scale", ".k_scale", ".v_scale", ".q_zero_point", ".k_zero_point", ".v_zero_point"]
                    .map(String::from),
            );
        }
        Loader::Auto {
            mapper: Mapper::new(l.mapper.as_ref(), scope).with_loader_rules(quantized),
            ignore_prefixes: l
                .ignore_prefixes
                .iter()
                .chain(l.ignore_prefixes_if.iter().filter(|(w, _)| w.truth(scope)).flat_map(|(_, p)| p))
                .cloned()
                .collect(),
            ignore_suffixes,
        }
    }

    /// Whether the head of a class shares the embedding's weight (`ParallelLMHead.tie_weights`).
    fn tie(&mut self, file: &ClassFile, at: usize, scope: &Scope) {
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
            event.error = Some(super::trace::Raised {
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

    /// A module by full path.
    fn find(&self, path: &str) -> Option<usize> {
        self.paths.get(path).copied()
    }

    fn file(&mut self, class: &str) -> Option<Rc<ClassFile>> {
        if let Some((_, f)) = self.files.iter().find(|(n, _)| n == class) {
            return Some(Rc::clone(f));
        }
        let Some(f) = facts::class(self.version, class) else {
            self.tree.unknown.push(format!("no facts for the inner class {class}"));
            return None;
        };
        let f = Rc::new(f);
        self.files.push((class.to_owned(), Rc::clone(&f)));
        Some(f)
    }
}

impl Tree {
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

fn element(dtype: &str) -> Element {
    match dtype {
        "float32" => Element::F32,
        "int64" => Element::I64,
        "int32" => Element::I32,
        "uint8" => Element::U8,
        "int8" => Element::I8,
        "float8_e4m3fn" => Element::F8E4M3,
        _ => Element::Model,
    }
}

/// A quantization prefix: `=`, or a template with `{root}` and index variables.
fn template(q: &str, path: &str, root: &str, scope: &Scope) -> String {
    if q == "=" {
        return path.to_owned();
    }
    let mut s = q.replace("{root}", root);
    for (k, v) in scope.vars {
        if s.contains('{') {
            s = s.replace(&format!("{{{k}}}"), &v.to_string());
        }
    }
    s
}
