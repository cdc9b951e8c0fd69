//! `RoutedExperts.load_weights` (vllm/model_executor/layers/fused_moe/routed_experts.py; spec E.5).

use super::method::Load;
use super::place::{self, Placed};
use super::stream::{Stored, Stream};
use super::trace::{Effect, Kind, Raised};
use super::tree::{Module, Quant};
use super::words;
use crate::checkpoint::Dtype;
use std::fmt;

/// The name of a parameter: `w13_` or `w2_`, and what follows. Put together only where it is to be read: there are tens
/// of thousands of tensors, and a few parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Param<'n>(pub(super) &'static str, pub(super) &'n str);

impl Param<'_> {
    /// Its place among the parameters of the container.
    pub(super) fn slot(self, m: &Module) -> Option<usize> {
        m.slots.iter().position(|s| s.name.strip_prefix(self.0) == Some(self.1))
    }
}

impl fmt::Display for Param<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0, self.1)
    }
}

/// The tensors that came last below one container of experts, by what follows the number of the expert. Those of all
/// experts go the same way, tens of thousands in large models, so only the first is led there.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// Names up to the number of the expert.
    head: String,
    ways: Vec<Way>,
    /// The one that comes next, if the tensors of all experts come in the same order.
    next: usize,
}

/// No method has as many parameters; a shape that nobody looks at must not make more of them.
const MAX_WAYS: usize = 32;

/// Where a tensor of any expert goes, without a word.
#[derive(Debug)]
struct Way {
    /// What follows the number.
    tail: String,
    dtype: Option<Dtype>,
    shape: Option<Vec<u64>>,
    at: usize,
    slot: usize,
    /// Parts an expert, and which of them this is.
    part: (usize, usize),
}

impl Stream<'_> {
    /// Whether a tensor goes the way of one of another expert. Then it is there.
    pub(super) fn follows(&mut self, t: &Stored) -> bool {
        let rest = t.name.strip_prefix(self.ways.head.as_str());
        let Some((expert, tail)) = rest.and_then(numbered) else { return false };
        let Ways { ways, next, .. } = &mut self.ways;
        let same = |w: &Way| w.tail == tail && w.dtype == t.dtype && w.shape.as_deref() == t.shape;
        let likely = ways.get(*next).is_some_and(same).then_some(*next);
        let Some(found) = likely.or_else(|| ways.iter().position(same)) else { return false };
        *next = if found + 1 < ways.len() { found + 1 } else { 0 };
        let Some(Way { at, slot, part, .. }) = ways.get(found) else { return false };
        let m = &mut self.tree.modules[*at];
        if expert >= m.experts {
            return false;
        }
        m.slots[*slot].mark(usize::try_from(expert).unwrap_or(usize::MAX).saturating_mul(part.0) + part.1);
        self.placed += 1;
        true
    }

    /// For [`Stream::follows`]; `name` is relative to the container.
    fn lead(&mut self, at: usize, slot: usize, name: &str, part: (usize, usize), t: &Stored) {
        let head = t.name.strip_suffix(name).filter(|h| h.ends_with(".experts."));
        let (Some(head), Some((_, tail))) = (head, name.split_once('.')) else { return };
        if self.ways.head != head {
            self.ways = Ways { head: head.to_owned(), ..Ways::default() };
        }
        if self.ways.ways.len() == MAX_WAYS {
            return;
        }
        let shape = t.shape.map(<[u64]>::to_vec);
        self.ways.ways.push(Way { tail: tail.to_owned(), dtype: t.dtype, shape, at, slot, part });
    }
}

/// The number of an expert as vLLM writes it, and what follows the dot.
fn numbered(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().position(|b| !b.is_ascii_digit())?;
    let (number, rest) = text.split_at_checked(digits)?;
    let plain = number == "0" || !number.starts_with('0');
    Some((number.parse().ok().filter(|_| plain)?, rest.strip_prefix('.')?))
}

/// One tensor below an expert container; `name` is relative to it.
pub fn load(s: &mut Stream, at: usize, name: &str, t: &Stored) {
    let m = &s.tree.modules[at];
    let [gate, down, up] = &m.expert_names;
    let (first, rest) = name.split_once('.').unwrap_or((name, ""));
    if let Ok(index) = first.parse::<u64>() {
        let experts = m.experts;
        if index >= experts || first.len() > 1 && first.starts_with('0') {
            return dropped(s, at, t, &format!("expert {first} of {experts}"));
        }
        let (proj, suffix) = rest.split_once('.').unwrap_or((rest, ""));
        // `TransformersRoutedExperts.get_expert_mapping` takes Mixtral's names, too.
        let backend = s.tree.modules.first().is_some_and(|root| root.cls.starts_with("Transformers"));
        let proj = match proj {
            "w1" if backend => gate,
            "w2" if backend => down,
            "w3" if backend => up,
            proj => proj,
        };
        let fused = gate_up(gate, up);
        let slots: &[(&'static str, usize)] = if proj == gate {
            &[("w13_", 0)]
        } else if proj == up && !up.is_empty() {
            &[("w13_", 1)]
        } else if proj == down {
            &[("w2_", 2)]
        } else if fused == Some(proj) {
            &[("w13_", 0), ("w13_", 1)]
        } else {
            return dropped(s, at, t, "no projection of this name");
        };
        let both = slots.len() == 2;
        for (prefix, part) in slots {
            one(s, at, name, Param(prefix, suffix), index, *part, both, t);
        }
        return;
    }
    // Three-dimensional, fused over experts: `gate_up_proj`, `gate_up_proj_scale`, `down_proj`, …
    let fused = gate_up(gate, up);
    let hit = fused
        .filter(|f| first.starts_with(f))
        .map(|f| ("w13_", f))
        .or_else(|| first.starts_with(down.as_str()).then_some(("w2_", down.as_str())));
    let Some((prefix, stem)) = hit else { return dropped(s, at, t, "no projection of this name") };
    let suffix = match first[stem.len()..].trim_start_matches('_') {
        "" if rest.is_empty() => "weight".to_owned(),
        "" => rest.to_owned(),
        x => format!("weight_{}", x.trim_start_matches("weight_")),
    };
    // Scales of blocks lie as the weight does; others have a layout of their own.
    let param = Param(prefix, &suffix);
    let m = &s.tree.modules[at];
    let weight_like = |slot: usize| !suffix.contains("scale") || matches!(m.slots[slot].load, Load::Block { .. });
    let turned = m.turned && param.slot(m).is_some_and(weight_like);
    bank(s, at, name, param, turned, t);
}

fn gate_up(gate: &str, up: &str) -> Option<&'static str> {
    match (gate, up) {
        ("gate_proj", "up_proj") => Some("gate_up_proj"),
        ("w1", "w3") => Some("w13"),
        _ => None,
    }
}

fn dropped(s: &mut Stream, at: usize, t: &Stored, why: &str) {
    let mut e = s.event(Kind::Dropped, Effect::Keeps, at, t);
    e.detail = why.to_owned();
    s.trace.events.push(e);
}

fn without(s: &mut Stream, at: usize, name: &str, param: Param, t: &Stored) {
    let param = &param.to_string();
    if param.ends_with("_bias") {
        return dropped(s, at, t, "expert bias without a parameter");
    }
    let layer = &s.tree.modules[at].path;
    let text = format!("Layer {layer} has no parameter '{param}' for checkpoint weight '{layer}.{name}'");
    missing(s, at, param, Raised { error_type: "AttributeError".into(), text }, name, t);
}

/// The container has no such parameter, and vLLM says so; `name` is relative to the container.
pub(super) fn missing(s: &mut Stream, at: usize, param: &str, raised: Raised, name: &str, t: &Stored) {
    let m = &s.tree.modules[at];
    let stem = param.trim_start_matches("w13_").trim_start_matches("w2_");
    let kind = match &m.quant {
        Quant::Scheme(_) if stem == "weight" => Kind::UnlistedLinear,
        Quant::Scheme(_) => Kind::SchemeSurplus,
        Quant::Plain(Some(_)) if words::is_quant_parameter(stem) => Kind::IgnoredButPacked,
        _ if words::is_quant_parameter(stem) => Kind::PackedUnexpected,
        _ => Kind::NoHome,
    };
    let detail = match kind {
        // Only expert 0 is looked at, by its three projections.
        Kind::UnlistedLinear => {
            let base = t.name.strip_suffix(name).unwrap_or(t.name).trim_end_matches('.');
            let names = &m.expert_names;
            [&names[0], &names[2], &names[1]].map(|p| format!("{base}.0.{p}")).join("\n")
        }
        Kind::IgnoredButPacked => match m.quant {
            Quant::Plain(Some(i)) => i.to_string(),
            _ => String::new(),
        },
        _ => stem.to_owned(),
    };
    s.stray(kind, at, raised, t, &detail);
}

/// One expert's tensor: part 0 and 1 are the halves of `w13`, 2 is `w2`.
#[allow(clippy::too_many_arguments, reason = "one expert's coordinates")]
pub(super) fn one(
    s: &mut Stream,
    at: usize,
    name: &str,
    param: Param,
    expert: u64,
    part: usize,
    both: bool,
    t: &Stored,
) {
    let m = &s.tree.modules[at];
    let Some(slot) = param.slot(m) else { return without(s, at, name, param, t) };
    let sl = &m.slots[slot];
    let w2 = part == 2;
    let (per, part) = if w2 || m.ungated() { (1, 0) } else { (2, part) };
    let result = match t.shape {
        None => Ok(Placed::Whole),
        // `weight_shape` is stored for every projection and never read.
        Some(_) if sl.optional => Ok(Placed::Whole),
        Some(shape) if both => {
            let mut half = shape.to_vec();
            if let Some(d) = half.first_mut() {
                *d /= 2;
            }
            place::expert(sl, &half, true)
        }
        Some(shape) => place::expert(sl, shape, !w2 && !m.ungated()),
    };
    if result.is_ok() {
        let e = usize::try_from(expert).unwrap_or(usize::MAX);
        s.tree.modules[at].slots[slot].mark(e.saturating_mul(per) + part);
    }
    let silent = s.trace.events.len();
    s.finish(at, slot, result, t, false);
    if s.even && !both && s.trace.events.len() == silent {
        s.lead(at, slot, name, (per, part), t);
    }
}

/// A tensor `[E, …]` for all experts; `turned` when three dimensions are `[experts, in, out]`
/// (`RoutedExperts._orient_fused_weight`).
pub(super) fn bank(s: &mut Stream, at: usize, name: &str, param: Param, turned: bool, t: &Stored) {
    let m = &s.tree.modules[at];
    let Some(slot) = param.slot(m) else { return without(s, at, name, param, t) };
    let sl = &m.slots[slot];
    let result = match t.shape {
        None => Ok(Placed::Whole),
        Some(shape) => {
            let mut one: Vec<u64> = shape.iter().skip(1).copied().collect();
            if turned && shape.len() == 3 {
                one.reverse();
            }
            if shape.len() != sl.shape.len() { Err(place::assertion("")) } else { place::expert(sl, &one, false) }
        }
    };
    if result.is_ok() {
        let stored = t.shape.and_then(|x| x.first().copied()).unwrap_or(m.experts).min(m.experts);
        let per = if param.0 == "w13_" && !m.ungated() { 2 } else { 1 };
        let n = usize::try_from(stored).unwrap_or(0) * per;
        let sl = &mut s.tree.modules[at].slots[slot];
        (0..n).for_each(|i| sl.mark(i));
    }
    s.finish(at, slot, result, t, false);
}

#[cfg(test)]
mod tests {
    use super::super::method::{Element, Load};
    use super::super::trace::Trace;
    use super::super::tree::{Slot, Tree};
    use super::*;
    use crate::facts::NodeKind;

    fn tree() -> Tree {
        let module = |path: &str, kind, children: &[(&str, usize)]| Module {
            path: path.to_owned(),
            kind,
            children: children.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect(),
            ..Module::default()
        };
        let mut experts = module("mlp.experts", NodeKind::Experts, &[]);
        experts.experts = 3;
        experts.expert_names = ["gate_proj", "down_proj", "up_proj"].map(str::to_owned);
        experts.slots.push(Slot::new("w13_weight", vec![3, 8, 2], Element::Model, Load::Both, 6));
        let root = module("", NodeKind::Plain, &[("mlp", 1)]);
        Tree { modules: vec![root, module("mlp", NodeKind::Plain, &[("experts", 2)]), experts], ..Tree::default() }
    }

    #[test]
    fn an_expert_follows_another_only_where_it_is_the_same() {
        let (mut tree, mut trace) = (tree(), Trace::default());
        let rename = |name: &str| name.to_owned();
        let mut s = Stream::new(&mut tree, &mut trace, &rename, false);
        let mut put = |name: &str, shape: &[u64], dtype| {
            let before = (s.placed, s.trace.events.len());
            s.tensor(&Stored { name, file: "f", dtype: Some(dtype), shape: Some(shape), bytes: 0 });
            let kind = s.trace.events.get(before.1).map(|e| e.kind);
            (s.placed > before.0, kind)
        };
        for expert in 0..2 {
            assert_eq!(put(&format!("mlp.experts.{expert}.up_proj.weight"), &[4, 2], Dtype::BF16), (true, None));
        }
        for (name, shape, dtype, told) in [
            ("mlp.experts.2.up_proj.weight", [5, 2], Dtype::BF16, (false, Kind::ShapeMismatch)),
            ("mlp.experts.2.up_proj.weight", [4, 2], Dtype::F8_E4M3, (true, Kind::Cast)),
            ("mlp.experts.2.up_proj.bias", [4, 2], Dtype::BF16, (false, Kind::Dropped)),
            ("mlp.experts.3.up_proj.weight", [4, 2], Dtype::BF16, (false, Kind::Dropped)),
            ("mlp.experts.02.up_proj.weight", [4, 2], Dtype::BF16, (false, Kind::Dropped)),
        ] {
            let (placed, kind) = put(name, &shape, dtype);
            assert_eq!((placed, kind), (told.0, Some(told.1)), "{name} {shape:?} {dtype:?}");
        }
        let written: Vec<bool> = (0..6).map(|part| tree.modules[2].slots[0].has(part)).collect();
        assert_eq!(written, [false, true, false, true, false, true]);
    }
}
