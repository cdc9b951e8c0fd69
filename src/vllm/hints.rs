//! Entries of an ignore or target list that match nothing, with the near miss that explains most of them.

use super::method::{HOPPER_ONLY, Matching, Method};
use super::quantization::Place;
use super::trace::{Effect, Event, Kind, Stage, Trace};
use super::tree::{Quant, Tree};
use super::words;
use crate::facts::NodeKind;
use crate::pattern::Pattern;

/// Events for every dead entry. `detail` is `entry TAB hint TAB suggestion`.
pub fn dead_entries(method: &Method, place: Option<&Place>, tree: &Tree, trace: &mut Trace) {
    let (Method::Known(quantizer), Some(place)) = (method, place) else { return };
    let dead = quantizer.dead_entries();
    if dead.is_empty() {
        return;
    }
    let mut modules: Vec<&str> = Vec::new();
    let mut classes: Vec<&str> = Vec::new();
    let mut shards: Vec<String> = Vec::new();
    for m in &tree.modules {
        if m.quant == Quant::NotOffered && !m.kind.is_linear() {
            continue;
        }
        // Some classes offer their embedding under no name at all: only class targets reach it.
        let name = if m.quant == Quant::NotOffered { m.path.as_str() } else { m.prefix.as_str() };
        modules.push(name);
        let parent = name.rsplit_once('.').map_or("", |p| p.0);
        shards.extend(m.parts.iter().map(|p| format!("{parent}.{}", p.0)));
        if !classes.contains(&&*m.cls) {
            classes.push(&m.cls);
        }
    }
    let names: Vec<&str> = modules.iter().copied().chain(shards.iter().map(String::as_str)).collect();
    for d in dead {
        if quantizer.broken().iter().any(|(_, entry)| *entry == d.entry) {
            continue;
        }
        // `lm_head` stands in every list; a head is no target of `Linear` anyway, so its absence is no fault.
        if d.ignore && matches!(d.entry.as_str(), "lm_head" | "re:.*lm_head" | "re:.*lm_head.*") {
            continue;
        }
        // A module by this name exists and is never quantized (a norm, a projector built without a config): the entry is needless,
        // and right.
        if tree.find(&d.name).is_some_and(|m| tree.modules[m].children.is_empty()) || d.ignore && plain(&d.name, tree) {
            continue;
        }
        let (hint, suggestion) = match quantizer.list().matching {
            Matching::Patterns => near_miss(&d.entry, d.ignore, &names, &classes, tree),
            Matching::Exact if d.entry.starts_with("re:") || d.entry.contains('*') => ("pattern", String::new()),
            _ => tower(&d.entry, tree).unwrap_or(("nothing", String::new())),
        };
        let (hint, suggestion) = match hint {
            _ if d.ignore && covered(&suggestion, tree) => ("covered", String::new()),
            _ => (hint, suggestion),
        };
        let mut e = Event::new(Stage::Init, Effect::Keeps, if d.ignore { Kind::IgnoreDead } else { Kind::TargetDead });
        e.file = Some(place.file.clone());
        e.pointer = Some(format!("{}{}", place.pointer, d.pointer));
        e.detail = format!("{}\t{hint}\t{suggestion}", d.entry);
        trace.events.push(e);
    }
}

/// Whether everything that the entry was to match is left alone without it: recipes list a tower under several names, and one of
/// them is right.
fn covered(meant: &str, tree: &Tree) -> bool {
    let Ok(pattern) = Pattern::new(meant) else { return false };
    let mut hits = tree.modules.iter().filter(|m| pattern.is_match(&m.prefix).unwrap_or(false)).peekable();
    !meant.is_empty() && hits.peek().is_some() && hits.all(|m| matches!(m.quant, Quant::Plain(_) | Quant::NotOffered))
}

/// Modules of a scheme that one kind of GPU has: what vLLM says elsewhere is no verdict on the checkpoint.
pub fn devices(place: Option<&Place>, tree: &Tree, trace: &mut Trace) {
    let Some(place) = place else { return };
    let linears = tree.modules.iter().filter(|m| m.kind != NodeKind::Experts);
    for m in linears.filter(|m| matches!(&m.quant, Quant::Scheme(s) if s == HOPPER_ONLY)) {
        let mut e = Event::new(Stage::Init, Effect::Keeps, Kind::DeviceOnly);
        e.file = Some(place.file.clone());
        e.pointer = Some(place.pointer.clone());
        e.module = Some(m.path.clone());
        trace.events.push(e);
    }
}

/// Whether an entry matches a module, or a part of a fused one, that is built without a quantization config anyway.
fn plain(entry: &str, tree: &Tree) -> bool {
    let Ok(pattern) = Pattern::new(entry) else { return false };
    let hit = |name: &str| pattern.is_match(name).unwrap_or(false);
    tree.modules.iter().filter(|m| m.quant == Quant::NotOffered && m.children.is_empty()).any(|m| {
        let parent = m.path.rsplit_once('.').map_or("", |p| p.0);
        hit(&m.path) || m.parts.iter().any(|p| hit(&format!("{parent}.{}", p.0)))
    })
}

/// Patterns that do not compile. Python raises where it first tries one: then that event learns which one it was.
pub fn broken_patterns(method: &Method, place: Option<&Place>, trace: &mut Trace) {
    let (Method::Known(quantizer), Some(place)) = (method, place) else { return };
    for (pointer, entry) in quantizer.broken() {
        let raised = trace.events.iter_mut().find(|e| e.kind == Kind::PatternBroken && e.pointer.is_none());
        if let Some(e) = raised {
            e.file = Some(place.file.clone());
            e.pointer = Some(format!("{}{pointer}", place.pointer));
            e.detail.clone_from(entry);
            continue;
        }
        let mut e = Event::new(Stage::Init, Effect::Keeps, Kind::PatternBroken);
        e.file = Some(place.file.clone());
        e.pointer = Some(format!("{}{pointer}", place.pointer));
        e.detail.clone_from(entry);
        trace.events.push(e);
    }
}

fn near_miss(entry: &str, ignore: bool, names: &[&str], classes: &[&str], tree: &Tree) -> (&'static str, String) {
    let is = |e: &str| names.contains(&e);
    if entry != entry.trim() {
        let t = entry.trim();
        let exact = t.starts_with("re:")
            || names.iter().any(|n| *n == t || n.ends_with(&format!(".{t}")) || t.ends_with(&format!(".{n}")));
        if exact {
            return ("space", t.to_owned());
        }
    }
    if let Some(pattern) = entry.strip_prefix("re:") {
        // Patterns are a stranger's: `Pattern` knows when one costs too much.
        let Ok(whole) = Pattern::new(entry) else { return ("broken", String::new()) };
        if whole.would_match_any_unanchored(names.iter().copied()) {
            return ("unanchored", format!("re:.*{}", pattern.trim_start_matches('^').trim_start_matches(".*")));
        }
        let rests = ["model\\.", "model.", "language_model\\.", "language_model."];
        if let Some(rest) = rests.iter().find_map(|p| pattern.strip_prefix(p))
            && Pattern::new(&format!("re:{rest}")).is_ok_and(|p| p.would_match_any_unanchored(names.iter().copied()))
        {
            return ("hf-name", format!("re:.*{rest}"));
        }
        return tower(entry, tree).unwrap_or(("nothing", String::new()));
    }
    for suffix in [".weight", ".bias"] {
        if let Some(stem) = entry.strip_suffix(suffix)
            && names.iter().any(|n| *n == stem || stem.ends_with(&format!(".{n}")) || n.ends_with(&format!(".{stem}")))
        {
            return ("weight-suffix", stem.to_owned());
        }
    }
    if ignore
        && (classes.contains(&entry)
            || matches!(entry, "Linear" | "Embedding" | "LayerNorm")
            || !entry.contains('.') && entry.starts_with(char::is_uppercase))
    {
        return ("class-name", String::new());
    }
    if entry.contains('*') {
        return ("glob", format!("re:{}", entry.replace('.', "\\.").replace('*', ".*")));
    }
    let ending = format!(".{entry}");
    let mut full = names.iter().filter(|n| n.ends_with(&ending));
    if let Some(first) = full.next() {
        let one = full.next().is_none();
        return (
            "wrong-prefix",
            if one { (*first).to_owned() } else { format!("re:.*\\.{}$", entry.replace('.', "\\.")) },
        );
    }
    let mut rest = entry;
    while let Some((_, tail)) = rest.split_once('.') {
        if is(tail) && tail.contains('.') {
            return ("wrong-prefix", tail.to_owned());
        }
        rest = tail;
    }
    let prefix = format!("{entry}.");
    if names.iter().any(|n| n.starts_with(&prefix) || n.contains(&format!(".{prefix}"))) {
        return ("parent", format!("re:.*{}\\..*", entry.replace('.', "\\.")));
    }
    tower(entry, tree).unwrap_or(("nothing", String::new()))
}

/// An entry of a tower that the model does not have.
fn tower(entry: &str, tree: &Tree) -> Option<(&'static str, String)> {
    let name = entry.trim_start_matches("re:").trim_start_matches(".*").replace('\\', "");
    let tower = words::tower_of(&name)?;
    let here = tree
        .modules
        .iter()
        .any(|m| words::tower_of(&m.path) == Some(tower) && m.kind != crate::facts::NodeKind::Placeholder);
    (!here).then(|| ("cut-tower", tower.to_owned()))
}
