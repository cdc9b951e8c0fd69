//! Construction: the module tree of a class for one config, and what the quantization method makes of every module.

use super::mapper::MAX_INDEX;
use super::method::{Built, Element, Layer, Load, Method, Offered, Param};
use super::trace::{Effect, Event, Kind, Stage, Trace};
use super::tree::{Loader, Module, Quant, Slot, Tree, join};
use super::{config, python, registry};
use crate::facts::{self, BoolOr, ClassFile, Expr, Node, NodeKind, ParamFile, Scope};
use read::{element, template};
use serde_json::Value;
use std::rc::Rc;

mod read;
mod tie;

/// Vocabulary rows are padded to a multiple of this (`DEFAULT_VOCAB_PADDING_SIZE`).
const VOCAB_PADDING: u64 = 64;
/// A tree larger than this is no model: the config is not believed.
const MAX_MODULES: usize = 20_000;

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
    files: Vec<(String, Rc<ClassFile>)>,
    /// A path, and what stands for it in quantization prefixes.
    based: Option<(String, String)>,
    /// Modules by path: parents learn of their children only once those are built.
    paths: rustc_hash::FxHashMap<String, usize>,
}

impl<'a> Builder<'a> {
    /// Construct `class` for a resolved config, with what an adapter adds.
    pub fn build(
        version: &'a str,
        class: &Rc<ClassFile>,
        added: Option<&Node>,
        scope: &Scope,
        method: &'a mut Method,
        trace: &'a mut Trace,
    ) -> Tree {
        let mut b = Builder {
            version,
            method,
            trace,
            tree: Tree::default(),
            files: Vec::new(),
            based: None,
            paths: rustc_hash::FxHashMap::default(),
        };
        let root = b.class(class, 0, "", scope);
        if let Some(node) = added {
            b.child(node, root, &node.name, "", scope);
        }
        b.tree
    }

    /// A class root at `path`.
    fn class(&mut self, file: &Rc<ClassFile>, parent: usize, path: &str, scope: &Scope) -> usize {
        self.tree.unknown.extend(file.unknown.iter().map(|u| format!("{}: {u}", file.class)));
        if file.only.iter().any(|e| !e.truth(scope)) {
            self.tree.unknown.push(format!("{}: the config is of a kind that the facts do not cover", file.class));
        }
        // The loader renames the lists once for the outer class and once for an inner one (spec B.5).
        self.method.enter_class(file, scope);
        let holds = |r: &&facts::Refusal| r.when.truth(&Scope { config: r.of(scope.config), ..*scope });
        if let Some(r) = file.refuses.iter().find(holds) {
            let tower = r.pointer.ends_with("_config");
            let kind = if tower { Kind::TowerConfigMissing } else { Kind::ConfigField };
            let stage = if r.early { Stage::Config } else { Stage::Init };
            let mut e = Event::new(stage, Effect::Refuses, kind);
            e.file = Some("config.json".into());
            e.pointer = Some(r.config.iter().map(|c| format!("/{c}")).chain([r.pointer.clone()]).collect());
            e.error = Some(super::trace::Raised {
                error_type: r.error.clone(),
                text: python::fill(&r.message, r.of(scope.config)),
            });
            self.trace.events.push(e);
        }
        let root = if path.is_empty() { String::new() } else { format!("{path}.") };
        let at = self.node(&file.tree, parent, path, &root, scope).unwrap_or(parent);
        self.tie(file, at, scope);
        at
    }

    /// Builds one node and everything below; none when its condition does not hold.
    fn node(&mut self, node: &Node, parent: usize, path: &str, root: &str, outer: &Scope) -> Option<usize> {
        if self.tree.modules.len() > MAX_MODULES {
            self.too_large();
            return None;
        }
        let null = Value::Null;
        let config =
            node.config.as_ref().map_or(outer.config, |c| outer.config.pointer(&config::pointer(c)).unwrap_or(&null));
        let scope = Scope { config, ..*outer };
        if let Some(inner) = &node.uses {
            let file = if inner == "auto" { self.named(config, path)? } else { self.file(inner)? };
            let outer = self.based.clone();
            if let Some(base) = &node.quant_base {
                self.based = Some((path.to_owned(), base.clone()));
            }
            let at = self.class(&file, parent, path, &scope);
            self.based = outer;
            return Some(at);
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
            let built = |list: &str| {
                let list = self.tree.find_below(at, list)?;
                u64::try_from(self.tree.modules[list].children.len()).ok()
            };
            let loader = Loader::read(l, &scope, self.method.cache_scales(), &built);
            self.tree.leave_alone(at, &l.own);
            self.tree.modules[at].loader = Some(Rc::new(loader));
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

    fn sizeless(&mut self, why: String) {
        self.tree.unknown.push(why);
        self.tree.sizeless = true;
    }

    fn elements(&mut self, node: &Node, at: usize, var: &str, count: &Expr, root: &str, scope: &Scope) {
        self.tree.modules[at].list = true;
        let Some(n) = count.size(scope) else {
            return self
                .sizeless(format!("{}: the config does not say how many there are", self.tree.modules[at].path));
        };
        if n > MAX_INDEX {
            return self.too_large();
        }
        for i in 0..n {
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

    fn too_large(&mut self) {
        self.tree.oversized = true;
    }

    /// Parameters and the quantization decision of one module.
    fn fill(&mut self, node: &Node, at: usize, root: &str, scope: &Scope) {
        let size = |e: &Option<Expr>| e.as_ref().and_then(|e| e.size(scope));
        let experts = size(&node.count).unwrap_or(0);
        if experts > MAX_INDEX {
            return self.too_large();
        }
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
                    self.sizeless(format!("{path}: the config gives no size for it"));
                    continue;
                };
                let element = dtype.map_or(Element::Model, element);
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
        // Cross attention may have no queries among its parts, whatever the config says.
        let never = |e: &Expr| e.size(&Scope::new(&Value::Null, &[])) == Some(0);
        let empty: Vec<usize> = (0..parts.len()).filter(|i| never(&node.parts[*i].1)).collect();
        if offered != Offered::Attention
            && (input.is_none() || outputs.iter().filter(|n| **n == 0).count() > empty.len())
        {
            let path = self.tree.modules[at].path.clone();
            self.sizeless(format!("{path}: the config gives no size for it"));
        }
        let bias = match &node.bias {
            None => false,
            Some(BoolOr::Flag(b)) => *b,
            Some(BoolOr::When(e)) => e.truth(scope),
        };
        let quant = node.quant.as_ref().filter(|_| node.quant_if.as_ref().is_none_or(|e| e.truth(scope)));
        let prefix = quant.map(|q| template(q, &self.tree.modules[at].path, root, scope));
        let prefix = prefix.map(|p| match &self.based {
            Some((path, base)) if p.starts_with(path.as_str()) => format!("{base}{}", &p[path.len()..]),
            _ => p,
        });
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
                experts,
                expert_names: [&names[0], &names[1], &names[2]],
                bias,
                kv_heads: 0,
            })),
        };
        let m = &mut self.tree.modules[at];
        m.experts = experts;
        m.rows = outputs[0];
        m.prefix = prefix.unwrap_or_default();
        m.expert_names = names;
        m.turned = node.turned;
        let n = outputs.len();
        m.parts = parts;
        // Experts without a gate have one projection where the others have two.
        let halves: usize = if m.ungated() { 1 } else { 2 };
        let parts_of = |load: Load, name: &str, experts: u64| match (offered, load) {
            (Offered::Experts, _) => {
                usize::try_from(experts).unwrap_or(0) * if name.starts_with("w13") { halves } else { 1 }
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
                        vec![e, total.saturating_mul(halves as u64), k],
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
                Offered::Linear if node.unsqueezed => {
                    let load = if node.numbered { Load::Numbered } else { Load::Both };
                    slots.push(Slot::new("weight", vec![total, 1, k], Element::Model, load, n));
                }
                Offered::Linear => slots.push(Slot::new("weight", vec![total, k], Element::Model, Load::Both, n)),
                _ => {
                    let padded = total.div_ceil(VOCAB_PADDING).saturating_mul(VOCAB_PADDING);
                    slots.push(Slot::new("weight", vec![padded, k], Element::Model, Load::Both, 1));
                }
            }
        }
        if bias && offered == Offered::Experts {
            let (e, k) = (m.experts, input.unwrap_or(0));
            let total: u64 = outputs.iter().fold(0, |a, b| a.saturating_add(*b));
            for (name, rows) in [("w13_bias", total.saturating_mul(halves as u64)), ("w2_bias", k)] {
                slots.push(Slot::new(name, vec![e, rows], Element::Model, Load::Whole, parts_of(Load::Whole, name, e)));
            }
        } else if bias {
            let total: u64 = outputs.iter().fold(0, |a, b| a.saturating_add(*b));
            slots.push(Slot::new("bias", vec![total], Element::Model, Load::Output, n));
        } else if offered == Offered::Linear {
            m.nones.push("bias");
        }
        slots.iter_mut().filter(|s| s.parts == n).for_each(|s| empty.iter().for_each(|i| s.mark(*i)));
        m.slots.extend(slots);
    }

    /// A module by full path.
    fn find(&self, path: &str) -> Option<usize> {
        self.paths.get(path).copied()
    }

    /// The class of a language model whose config names it.
    fn named(&mut self, config: &Value, path: &str) -> Option<Rc<ClassFile>> {
        match registry::inner(self.version, config) {
            Ok(class) => self.file(&class),
            Err(why) => {
                self.tree.unknown.push(format!("{path}: {why}"));
                None
            }
        }
    }
}
