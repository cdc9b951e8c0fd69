//! Tensors without a home: what vLLM raises, which kind of mistake it is, and which entries would mend it (spec E.3, C.8).

use super::super::trace::{Effect, Kind, Raised};
use super::super::tree::{Loader, Quant, join};
use super::super::words;
use super::{Stored, Stream};
use crate::facts::NodeKind;
use std::rc::Rc;

impl Stream<'_> {
    /// Below a tower that is off.
    pub(in crate::vllm) fn swallowed(&mut self, at: usize, t: &Stored) {
        if self.tree.heads.iter().any(|(head, _)| *head == at) {
            // Of a pooling model: it was stored for the class that generates text, and nobody would miss it.
            self.placed += 1;
            return;
        }
        let mut e = self.event(Kind::TowerLeftover, Effect::Keeps, at, t);
        e.detail = "disabled".into();
        self.trace.events.push(e);
    }

    /// A name that the class drops by a rule.
    pub(in crate::vllm) fn dropped(&mut self, at: usize, by: &str, t: &Stored) {
        let tower = words::tower_of(t.name);
        // The separator of picture rows belongs to whatever tower is built (`LlavaNextVideoForConditionalGeneration`).
        let part = tower
            .is_some_and(|tower| self.towers.contains(tower) || tower == "image_newline" && !self.towers.is_empty());
        let tower = tower.is_some() && !part;
        let harmless = part || by.starts_with("rotary") || by == ".g_idx";
        let mut e = self.event(if tower { Kind::TowerLeftover } else { Kind::Dropped }, Effect::Keeps, at, t);
        e.detail = if tower {
            "no tower".into()
        } else if harmless {
            "unused".into()
        } else {
            by.to_owned()
        };
        self.trace.events.push(e);
    }

    /// `There is no module or parameter named …` (spec E.3), unless ignorable.
    pub(super) fn homeless(
        &mut self,
        root: usize,
        at: usize,
        name: &str,
        rest: &str,
        t: &Stored,
        loader: Option<&Rc<Loader>>,
    ) {
        let first = rest.split('.').next().unwrap_or(rest);
        let consumed = name.len() - rest.len();
        let reported = &name[..consumed + first.len()];
        if ignorable(loader, reported) || ignorable(loader, &format!("{reported}.")) {
            return self.dropped(at, reported, t);
        }
        let base = name[..consumed].trim_end_matches('.');
        let m = &self.tree.modules[at];
        let raised = if self.full_text_given {
            value_error(format!(
                "There is no module or parameter named '{reported}' in {}.",
                self.tree.modules[root].cls
            ))
        } else {
            self.full_text_given = true;
            let list = self.tree.parameters(at, &self.tree.modules[root].path);
            let set = if list.is_empty() {
                "set()".to_owned()
            } else {
                format!("{{{}}}", list.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", "))
            };
            value_error(format!(
                "There is no module or parameter named '{reported}' in {}. The available parameters belonging to {base} ({}) are: {set}",
                self.tree.modules[root].cls, m.cls
            ))
        };
        if m.kind.is_linear() || matches!(m.kind, NodeKind::Embedding | NodeKind::LmHead) {
            return self.without_parameter(at, first, raised, t);
        }
        self.homeless_at(at, reported, first, raised, t);
    }

    /// The same for a loop that looks names up in a dictionary.
    pub(in crate::vllm) fn homeless_key(&mut self, root: usize, name: &str, raised: Raised, t: &Stored) {
        let (mut at, mut rest) = (root, name);
        while let Some((first, tail)) = rest.split_once('.') {
            let Some(child) = self.tree.modules[at].child(first) else { break };
            at = child;
            rest = tail;
        }
        let first = rest.split('.').next().unwrap_or(rest).to_owned();
        self.homeless_at(at, name, &first, raised, t);
    }

    /// Which kind of stray a name is, from where its way ends.
    fn homeless_at(&mut self, at: usize, reported: &str, first: &str, raised: Raised, t: &Stored) {
        let m = &self.tree.modules[at];
        if words::is_tower_name(t.name) {
            return self.stray(Kind::TowerUnexpected, at, raised, t, reported);
        }
        if first.ends_with("lm_head") {
            return self.stray(Kind::HeadWithoutModule, at, raised, t, reported);
        }
        if m.list && first.parse::<u64>().is_ok() {
            let n = m.children.len();
            return self.stray(Kind::ExtraLayer, at, raised, t, &format!("{reported}\t{n}"));
        }
        if let Some(prefix) = words::wrapper_prefix(t.name) {
            return self.stray(Kind::WrapperPrefix, at, raised, t, prefix);
        }
        self.stray(Kind::NoHome, at, raised, t, reported);
    }

    /// The module exists, the parameter does not: almost always quantization.
    pub(in crate::vllm) fn without_parameter(&mut self, at: usize, parameter: &str, raised: Raised, t: &Stored) {
        let m = &self.tree.modules[at];
        let quantish = words::is_quant_parameter(parameter);
        let (kind, detail) = match &m.quant {
            Quant::Scheme(_) if parameter == "weight" => (Kind::UnlistedLinear, self.entries(at, t)),
            Quant::Scheme(s) if quantish => (Kind::SchemeSurplus, format!("{parameter}\t{s}")),
            Quant::Plain(Some(entry)) if quantish => (Kind::IgnoredButPacked, entry.to_string()),
            Quant::Plain(None) | Quant::NotOffered if quantish => {
                let why =
                    if m.quant == Quant::NotOffered && self.quantized { "never quantized" } else { "not reached" };
                (
                    if matches!(m.kind, NodeKind::Embedding | NodeKind::LmHead) && self.quantized {
                        Kind::EmbeddingScheme
                    } else {
                        Kind::PackedUnexpected
                    },
                    why.to_owned(),
                )
            }
            _ => (Kind::NoHome, m.slot_names()),
        };
        self.stray(kind, at, raised, t, &detail);
    }

    /// A refusal, unless the loader drops such names: then a weight that was to be packed is never written.
    pub(in crate::vllm) fn stray(&mut self, kind: Kind, at: usize, raised: Raised, t: &Stored, detail: &str) {
        if !self.lenient {
            return self.refuse(kind, at, raised, t, detail);
        }
        if kind != Kind::UnlistedLinear {
            return self.dropped(at, "a name that the model has no place for", t);
        }
        let mut e = self.event(kind, Effect::Damages, at, t);
        e.detail = detail.to_owned();
        self.tree.modules[at].blamed = true;
        self.trace.events.push(e);
    }

    /// The same for experts, of which only expert 0 is looked at, by its three projections.
    pub(in crate::vllm) fn plain_entries(&self, at: usize, t: &Stored) -> String {
        let m = &self.tree.modules[at];
        if m.kind != NodeKind::Experts {
            return self.entries(at, t);
        }
        let name = t.name.rsplit_once(".experts.").map_or(t.name, |p| p.0);
        [&m.expert_names[0], &m.expert_names[2], &m.expert_names[1]].map(|p| format!("{name}.experts.0.{p}")).join("\n")
    }

    /// Ignore entries that would make a module plain, in the file's own naming where vLLM maps that to the same module.
    pub(super) fn entries(&self, at: usize, t: &Stored) -> String {
        let m = &self.tree.modules[at];
        let stem = t.name.rsplit_once('.').map_or(t.name, |s| s.0);
        if m.parts.is_empty() {
            return if (self.rename)(stem) == m.prefix { stem.to_owned() } else { m.prefix.clone() };
        }
        let (parent, leaf) = m.prefix.rsplit_once('.').unwrap_or(("", &m.prefix));
        let stem_parent = stem.rsplit_once('.').map_or("", |s| s.0);
        let mut out: Vec<String> = Vec::new();
        for (part, _) in &m.parts {
            let vllm = join(parent, part);
            let hf = join(stem_parent, part);
            out.push(if (self.rename)(&hf) == vllm { hf } else { vllm });
        }
        if out.is_empty() {
            out.push(leaf.to_owned());
        }
        out.join("\n")
    }
}

/// Whether a loader may ignore an unexpected name.
pub(super) fn ignorable(loader: Option<&Rc<Loader>>, name: &str) -> bool {
    match loader.map(Rc::as_ref) {
        Some(Loader::Auto { ignore_prefixes, ignore_suffixes, .. }) => {
            ignore_prefixes.iter().any(|p| name.starts_with(p.as_str()))
                || ignore_suffixes.iter().any(|s| name.ends_with(s.as_str()))
        }
        _ => false,
    }
}

pub(super) fn value_error(text: String) -> Raised {
    Raised { error_type: "ValueError".into(), text }
}
