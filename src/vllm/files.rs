//! From folder to weight list: which shards vLLM reads, in which order, and what it refuses there (spec A).

use super::Target;
use super::trace::{Effect, Event, Kind, Raised, Stage, Trace};
use crate::checkpoint::{Checkpoint, Digest, Index, Name, Part, Shard, ShardState};
use rustc_hash::{FxHashMap, FxHashSet};

/// What will be streamed.
#[derive(Debug, Default)]
pub struct Selection {
    /// Indices into `Checkpoint::shards`, in vLLM's order.
    pub shards: Vec<usize>,
    /// Names known only from the index: name and shard.
    pub names: Vec<(Name, Name)>,
    /// The weights are somewhere else; only names can be judged.
    pub absent: bool,
    /// Weights that cannot be read without running code.
    pub pickles: bool,
}

fn event(kind: Kind, effect: Effect, file: Option<&str>, raised: Option<(&str, String)>) -> Event {
    let mut e = Event::new(Stage::Load, effect, kind);
    e.file = file.map(str::to_owned);
    e.error = raised.map(|(t, text)| Raised { error_type: t.into(), text });
    e
}

fn no_weights(trace: &mut Trace, kind: Kind, file: Option<&str>) {
    trace.events.push(event(
        kind,
        Effect::Refuses,
        file,
        Some(("RuntimeError", "Cannot find any model weights with `<dir>`".into())),
    ));
}

/// Files that the class reads besides the shards: vLLM looks for them when those are through. True when one is not there.
pub fn lacks(cp: &Checkpoint, beside: &[String], trace: &mut Trace) -> bool {
    let Some(file) = beside.iter().find(|file| !cp.files.iter().any(|f| f.name == **file)) else { return false };
    no_weights(trace, Kind::NoWeights, None);
    if let Some(e) = trace.events.last_mut() {
        e.detail.clone_from(file);
    }
    true
}

const INDEX: &str = "model.safetensors.index.json";

/// Choose the files (A.1 to A.5).
pub fn select(cp: &Checkpoint, target: &Target, trace: &mut Trace) -> Selection {
    let mut sel = Selection::default();
    let base = |n: &str| n.rsplit('/').next().unwrap_or(n).to_owned();
    let consolidated = |n: &str| base(n).starts_with("consolidated") && n.ends_with(".safetensors");
    let mut format = target.load_format.as_str();
    let culprit = cp.files.iter().find(|f| consolidated(&f.name));
    if format == "auto" {
        format = if culprit.is_some() { "mistral" } else { "hf" };
    }
    let wanted = |file: &str| match format {
        "mistral" => consolidated(file),
        "pt" | "npcache" | "dummy" => false,
        _ => true,
    };
    let all: Vec<usize> = (0..cp.shards.len()).filter(|i| wanted(&cp.shards[*i].file)).collect();
    let top = |suffix: &str| cp.files.iter().any(|f| !f.name.contains('/') && f.name.ends_with(suffix));
    if format == "dummy" {
        return sel;
    }
    if all.is_empty() {
        let index_names = cp.index.get().and_then(|i| i.weight_map.as_ref()).filter(|m| !m.is_empty());
        if matches!(format, "hf" | "safetensors") && cp.shards.is_empty() && index_names.is_some() {
            return names_only(cp, sel);
        }
        if format == "hf" && (top(".bin") || top(".pt")) || matches!(format, "pt" | "npcache") {
            sel.pickles = true;
            return sel;
        }
        let kind = if format == "mistral" { Kind::Consolidated } else { Kind::NoWeights };
        no_weights(trace, kind, culprit.map(|f| f.name.as_str()));
        return sel;
    }
    if format == "mistral" && target.load_format == "auto" && cp.shards.len() > all.len() {
        trace.events.push(event(Kind::Consolidated, Effect::Keeps, culprit.map(|f| f.name.as_str()), None));
    }
    sel.shards = all;
    let pointers = sel.shards.iter().filter(|i| matches!(cp.shards[**i].state, ShardState::Pointer { .. })).count();
    match if format == "mistral" { &Part::Absent } else { &cp.index } {
        Part::Absent => {}
        Part::Broken(defects) => {
            let text = defects.first().map(|d| d.text.clone()).unwrap_or_default();
            let said = defects.iter().find_map(|d| d.said.clone()).unwrap_or_else(|| text.clone());
            let mut e = event(Kind::IndexBroken, Effect::Refuses, Some(INDEX), Some(("JSONDecodeError", said)));
            e.detail = text;
            trace.events.push(e);
        }
        Part::Present(index) => match &index.weight_map {
            None => {
                let mut e =
                    event(Kind::IndexBroken, Effect::Refuses, Some(INDEX), Some(("KeyError", "'weight_map'".into())));
                e.detail = "it has no `weight_map` object".into();
                trace.events.push(e);
            }
            Some(map) => listed(cp, (index, map), &mut sel, trace, pointers),
        },
    }
    if !sel.shards.is_empty() && pointers == sel.shards.len() {
        return names_only(cp, sel);
    }
    sel
}

/// Keep what the index names, refuse what it names and is not there (A.2).
fn listed(
    cp: &Checkpoint,
    (index, map): (&Index, &[(Name, Name)]),
    sel: &mut Selection,
    trace: &mut Trace,
    pointers: usize,
) {
    let named: FxHashSet<&str> = index.runs.iter().map(|run| run.0.as_str()).collect();
    let mut files: Vec<&str> = named.iter().copied().collect();
    files.sort_unstable();
    let here: FxHashSet<&str> = sel.shards.iter().map(|i| cp.shards[*i].file.as_str()).collect();
    let missing: Vec<&str> = files.iter().copied().filter(|f| !here.contains(f)).collect();
    if !files.is_empty()
        && missing.len() == files.len()
        && pointers == 0
        && sel.shards.iter().all(|i| cp.shards[*i].size == 0)
    {
        sel.absent = true;
    }
    if !missing.is_empty() {
        let set = missing
            .iter()
            .map(|f| if f.starts_with('/') { format!("'{f}'") } else { format!("'<dir>/{f}'") })
            .collect::<Vec<_>>()
            .join(", ");
        let text = format!("Weight files referenced in index but missing: {{{set}}}");
        for file in &missing {
            let kind = if file.starts_with('/') || file.split('/').any(|c| c == "..") {
                Kind::IndexEscapes
            } else {
                Kind::ShardMissing
            };
            let mut e = event(kind, Effect::Refuses, Some(file), Some(("FileNotFoundError", text.clone())));
            e.detail = map.iter().filter(|m| m.1 == *file).count().to_string();
            trace.events.push(e);
        }
        sel.names = map.iter().filter(|m| !here.contains(m.1.as_str())).cloned().collect();
    }
    let unlisted: Vec<usize> =
        sel.shards.iter().copied().filter(|i| !named.contains(cp.shards[*i].file.as_str())).collect();
    sel.shards.retain(|i| named.contains(cp.shards[*i].file.as_str()));
    if map.is_empty() {
        let mut e = event(
            Kind::IndexBroken,
            Effect::Refuses,
            Some(INDEX),
            Some(("RuntimeError", "Cannot find any model weights with `<dir>`".into())),
        );
        e.detail = "its `weight_map` is empty, so vLLM filters every shard out".into();
        trace.events.push(e);
        return;
    }
    for i in unlisted {
        let mut e = event(Kind::ShardUnlisted, Effect::Keeps, Some(&cp.shards[i].file), None);
        e.bytes = cp.shards[i].size;
        trace.events.push(e);
    }
}

fn names_only(cp: &Checkpoint, mut sel: Selection) -> Selection {
    sel.absent = true;
    sel.shards.clear();
    if let Some(map) = cp.index.get().and_then(|i| i.weight_map.as_ref()) {
        sel.names = map.clone();
    }
    sel
}

/// Whether every shard holds exactly what the index says.
fn agree(cp: &Checkpoint, sel: &Selection, index: &Index) -> bool {
    let mut listed: FxHashMap<&str, Digest> = FxHashMap::default();
    for (file, names) in &index.runs {
        listed.entry(file).or_default().join(*names);
    }
    let holds = |shard: &Shard| shard.header().map(|h| h.names) == listed.get(shard.file.as_str()).copied();
    listed.len() == sel.shards.len() && sel.shards.iter().all(|i| holds(&cp.shards[*i]))
}

/// Compare index and headers by tensor, and find names that two shards hold (A.2, A.4).
pub fn compare(cp: &Checkpoint, sel: &Selection) -> Vec<Event> {
    let mut events = Vec::new();
    let listed = cp.index.get();
    let index = listed.and_then(|i| i.weight_map.as_ref());
    if sel.absent || index.is_none() && sel.shards.len() < 2 || listed.is_some_and(|i| agree(cp, sel, i)) {
        return events;
    }
    // Name → file of the index, shard where it was seen.
    let mut seen: FxHashMap<&str, (Option<&Name>, Option<&Shard>)> =
        FxHashMap::with_capacity_and_hasher(index.map_or(0, Vec::len), rustc_hash::FxBuildHasher);
    for (name, file) in index.into_iter().flatten() {
        seen.insert(name, (Some(file), None));
    }
    for i in &sel.shards {
        let shard = &cp.shards[*i];
        let header = match &shard.state {
            ShardState::Good(h) | ShardState::Broken(_, h) => h,
            ShardState::Pointer { .. } => continue,
        };
        for t in &header.tensors {
            let entry = seen.entry(&t.name).or_insert((None, None));
            let mut e = None;
            if let Some(first) = entry.1 {
                let mut d = event(Kind::DuplicateTensor, Effect::Keeps, Some(&shard.file), None);
                d.detail.clone_from(&first.file);
                e = Some(d);
            } else if index.is_some() && entry.0.is_none_or(|file| *file != shard.file) {
                let mut d = event(Kind::IndexStale, Effect::Keeps, Some(&shard.file), None);
                d.detail = entry.0.map_or_else(|| "not in the index".to_owned(), |f| format!("the index says {f}"));
                e = Some(d);
            }
            entry.1 = Some(shard);
            if let Some(mut e) = e {
                e.tensor = Some(t.name.to_string());
                e.bytes = t.span.1.saturating_sub(t.span.0);
                events.push(e);
            }
        }
    }
    let unread: FxHashSet<&str> = sel.names.iter().map(|n| n.1.as_str()).collect();
    let good: FxHashSet<&str> = sel
        .shards
        .iter()
        .filter(|i| matches!(cp.shards[**i].state, ShardState::Good(_)))
        .map(|i| cp.shards[*i].file.as_str())
        .collect();
    for (name, file) in index.into_iter().flatten() {
        if seen.get(name.as_str()).is_some_and(|s| s.1.is_none())
            && !unread.contains(file.as_str())
            && good.contains(file.as_str())
        {
            let mut e = event(Kind::IndexGhost, Effect::Keeps, Some(file), None);
            e.tensor = Some(name.to_string());
            events.push(e);
        }
    }
    events
}
