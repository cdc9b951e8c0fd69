//! After the stream: what stayed unwritten, what vLLM's tracking would say of it, what holds garbage (spec E.7, B.7).

use super::trace::{Effect, Event, Kind, Raised, Stage, Trace};
use super::tree::{Module, Slot, Tree};
use super::words;
use crate::facts::NodeKind;
use rustc_hash::FxHashSet;

/// What the outcome depends on besides the tree.
#[derive(Debug, Default)]
pub struct Facts {
    /// The model counts as quantized, or its loader does not say what it has loaded: vLLM tracks nothing.
    pub untracked: bool,
    /// A stored name that untied the head, when the config said tied.
    pub untied_by: Option<String>,
}

struct Unwritten {
    module: usize,
    slot: usize,
    tracked: bool,
}

/// Look at every parameter and buffer; returns how many hold garbage.
pub fn judge(tree: &Tree, facts: &Facts, trace: &mut Trace) -> usize {
    let mut whole: Vec<Unwritten> = Vec::new();
    let mut garbage = 0;
    for (i, m) in tree.modules.iter().enumerate() {
        if m.blamed || m.kind == NodeKind::Placeholder {
            continue;
        }
        for (j, s) in m.slots.iter().enumerate() {
            let n = s.count();
            if s.optional || n == s.parts {
                continue;
            }
            if n > 0 {
                garbage += 1;
                let mut e = event(Stage::Load, Effect::Damages, Kind::HalfWritten, &m.slot_path(s));
                e.detail = parts(m, s);
                trace.events.push(e);
            } else {
                whole.push(Unwritten {
                    module: i,
                    slot: j,
                    tracked: !facts.untracked && !s.buffer && tracked(tree, i),
                });
            }
        }
    }
    garbage += whole.len();
    report(tree, facts, &whole, trace);
    garbage
}

fn event(stage: Stage, effect: Effect, kind: Kind, module: &str) -> Event {
    let mut e = Event::new(stage, effect, kind);
    e.module = Some(module.to_owned());
    e
}

/// Parameters below a module with a quantization method of its own are exempt from tracking.
fn tracked(tree: &Tree, mut at: usize) -> bool {
    loop {
        let m = &tree.modules[at];
        // Attention layers have none without a quantization config, and with one nothing is tracked.
        if m.kind.is_linear() || matches!(m.kind, NodeKind::Embedding | NodeKind::LmHead | NodeKind::Experts) {
            return false;
        }
        if at == m.parent {
            return true;
        }
        at = m.parent;
    }
}

fn report(tree: &Tree, facts: &Facts, whole: &[Unwritten], trace: &mut Trace) {
    let missing: Vec<String> = {
        let mut v: Vec<String> = whole.iter().filter(|u| u.tracked).map(|u| path(tree, u)).collect();
        v.sort_unstable();
        v
    };
    let raised = (!missing.is_empty()).then(|| Raised {
        error_type: "ValueError".into(),
        text: format!(
            "Following weights were not initialized from checkpoint: {{{}}}",
            missing.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", ")
        ),
    });
    let put = |trace: &mut Trace, kind: Kind, name: &str, tracked: bool, detail: String| {
        let (stage, effect) = if tracked { (Stage::Track, Effect::Refuses) } else { (Stage::Load, Effect::Damages) };
        let mut e = event(stage, effect, kind, name);
        e.detail = detail;
        e.error = if tracked { raised.clone() } else { None };
        trace.events.push(e);
    };
    let missing_at: FxHashSet<(usize, usize)> = whole.iter().map(|u| (u.module, u.slot)).collect();
    // A tower or a layer that is missing as a whole is one cause.
    let mut covered = vec![false; tree.modules.len()];
    for (i, m) in tree.modules.iter().enumerate() {
        if covered[m.parent] && i != m.parent {
            covered[i] = true;
            continue;
        }
        let is_tower = words::is_tower_name(&m.path) && !words::is_tower_name(&tree.modules[m.parent].path);
        let is_layer = tree.modules[m.parent].list && i != m.parent;
        if !(is_tower || is_layer) || !all_missing(tree, i, &missing_at) {
            continue;
        }
        covered[i] = true;
        let below: Vec<&Unwritten> = whole.iter().filter(|u| below(tree, u.module, i)).collect();
        let any = below.iter().any(|u| u.tracked);
        put(
            trace,
            if is_tower { Kind::TowerMissing } else { Kind::LayerMissing },
            &m.path,
            any,
            below.len().to_string(),
        );
    }
    for u in whole {
        if covered[u.module] {
            continue;
        }
        let m = &tree.modules[u.module];
        let s = &m.slots[u.slot];
        let name = path(tree, u);
        let kind = match m.kind {
            _ if u.tracked => Kind::NotInitialized,
            _ if s.buffer => Kind::BufferDefault,
            NodeKind::LmHead if facts.untied_by.is_some() => Kind::StrayHeadUnties,
            NodeKind::LmHead => Kind::HeadMissing,
            NodeKind::Embedding if tree.heads.iter().any(|h| h.1 == u.module) => Kind::EmbeddingMissing,
            _ => Kind::Unwritten,
        };
        put(trace, kind, &name, u.tracked, String::new());
        if kind == Kind::StrayHeadUnties
            && let Some(e) = trace.events.last_mut()
        {
            e.tensor.clone_from(&facts.untied_by);
        }
    }
}

fn path(tree: &Tree, u: &Unwritten) -> String {
    let m = &tree.modules[u.module];
    m.slot_path(&m.slots[u.slot])
}

fn below(tree: &Tree, mut at: usize, top: usize) -> bool {
    loop {
        if at == top {
            return true;
        }
        let p = tree.modules[at].parent;
        if p == at {
            return false;
        }
        at = p;
    }
}

/// Whether a module has required parameters below it and none of them was written.
fn all_missing(tree: &Tree, top: usize, missing: &FxHashSet<(usize, usize)>) -> bool {
    let mut stack = vec![top];
    let mut any = false;
    while let Some(i) = stack.pop() {
        let m = &tree.modules[i];
        if m.blamed {
            return false;
        }
        for (j, s) in m.slots.iter().enumerate() {
            if !s.optional {
                any = true;
                if !missing.contains(&(i, j)) {
                    return false;
                }
            }
        }
        stack.extend(m.children.iter().filter(|c| tree.modules[c.1].parent == i).map(|c| c.1));
    }
    any
}

/// Which parts of a fused or expert parameter are unwritten.
fn parts(m: &Module, s: &Slot) -> String {
    if m.kind == NodeKind::Experts {
        let per = if s.name.starts_with("w13") { 2 } else { 1 };
        let [gate, down, up] = &m.expert_names;
        let mut out: Vec<String> = Vec::new();
        for p in (0..s.parts).filter(|p| !s.has(*p)) {
            let proj = if per == 1 {
                down
            } else if p % 2 == 0 {
                gate
            } else {
                up
            };
            out.push(format!("{}.{proj}", p / per));
        }
        let n = out.len();
        out.truncate(8);
        return if n > 8 { format!("{}, … ({n} in all)", out.join(", ")) } else { out.join(", ") };
    }
    let names: Vec<&str> =
        (0..s.parts).filter(|p| !s.has(*p)).filter_map(|p| m.parts.get(p)).map(|p| p.0.as_str()).collect();
    names.join(", ")
}
