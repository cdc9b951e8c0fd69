//! Words that many rules need, and the line that shows a stored tensor.

use crate::checkpoint::{Checkpoint, Shard, escape_pointer};
pub use crate::finding::words::*;
use crate::vllm::Plan;
use crate::vllm::trace::Event;
use serde_json::Value;

/// Messages stay under this width.
const MESSAGE_WIDTH: usize = 118;

/// A message that would be too wide loses its middle argument: `whole` when it fits, else `short`.
pub fn fit(whole: String, short: impl FnOnce() -> String) -> String {
    if whole.chars().count() <= MESSAGE_WIDTH { whole } else { short() }
}

/// JSON to paste: a line an entry while they are few, else as many as a line takes.
pub fn paste(entries: &[String]) -> String {
    let wide = entries.len() > 12;
    let mut out = String::new();
    let mut line = 0;
    for (i, entry) in entries.iter().enumerate() {
        let quoted = serde_json::Value::from(entry.as_str()).to_string();
        if i > 0 {
            let stay = wide && line + quoted.len() < 110;
            out.push_str(if stay { ", " } else { ",\n" });
            line = if stay { line + 2 } else { 0 };
        }
        line += quoted.len();
        out.push_str(&quoted);
    }
    out
}

/// `name   BF16 [3840, 6912]   model-rest-000.safetensors`, for each event with a tensor, in columns.
pub fn tensor_lines(cp: &Checkpoint, events: &[&Event]) -> Vec<String> {
    // Those of a shard come in a row.
    let mut shard: Option<&Shard> = None;
    let rows: Vec<(&str, String, &str)> = events
        .iter()
        .filter_map(|e| {
            let name = e.tensor.as_deref()?;
            let file = e.file.as_deref().unwrap_or_default();
            if shard.is_none_or(|s| s.file != file) {
                shard = cp.shard(file);
            }
            Some((name, type_in(shard, name), file))
        })
        .collect();
    let width = |of: fn(&(&str, String, &str)) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let (names, types) = (width(|r| r.0.len()), width(|r| r.1.len()));
    // Wide names are not worth columns.
    let (names, types) = if names > 90 { (0, 0) } else { (names, types) };
    rows.iter()
        .map(|(name, kind, file)| format!("{name:names$}   {kind:types$}   {file}").trim_end().to_owned())
        .collect()
}

/// Evidence lines `name   detail`: for events whose detail says the shapes or dtypes.
pub fn detail_lines(events: &[&Event]) -> Vec<String> {
    events.iter().map(|e| format!("{}   {}", e.tensor.as_deref().unwrap_or_default(), e.detail)).collect()
}

/// `BF16 [3840, 6912]`, or nothing when the header is not here.
pub fn tensor_type(cp: &Checkpoint, file: &str, name: &str) -> String {
    type_in(cp.shard(file), name)
}

fn type_in(shard: Option<&Shard>, name: &str) -> String {
    let tensor = shard.and_then(Shard::header).and_then(|h| h.get(name));
    tensor.map_or_else(String::new, |t| format!("{} {:?}", t.dtype.tag(), t.shape))
}

/// Total bytes of events.
pub fn total(events: &[&Event]) -> u64 {
    events.iter().fold(0, |sum, e| sum.saturating_add(e.bytes))
}

/// Stored tensor names of events, else their modules.
pub fn names<'e>(events: &[&'e Event]) -> Vec<&'e str> {
    events.iter().filter_map(|e| e.tensor.as_deref().or(e.module.as_deref())).collect()
}

/// Modules of events, else their tensors.
pub fn modules<'e>(events: &[&'e Event]) -> Vec<&'e str> {
    let mut seen = rustc_hash::FxHashSet::default();
    events.iter().filter_map(|e| e.module.as_deref().or(e.tensor.as_deref())).filter(|m| seen.insert(*m)).collect()
}

/// A JSON file of the checkpoint, when it could be read.
pub fn json<'c>(cp: &'c Checkpoint, file: &str) -> Option<&'c Value> {
    let part = match file {
        "config.json" => &cp.config,
        "generation_config.json" => &cp.generation_config,
        _ => &cp.quant_files.iter().find(|f| f.0 == file)?.1,
    };
    part.get().map(|j| &j.value)
}

/// File and pointer of a key of the quantization config in effect, whether it is there or not.
pub fn quant_key(plan: &Plan, key: &str) -> (String, String) {
    match &plan.quant_place {
        Some((file, pointer)) => (file.clone(), format!("{pointer}{key}")),
        None => ("config.json".into(), format!("/quantization_config{key}")),
    }
}

/// File and pointer of the list of modules that stay in 16 bit, and its key for sentences.
pub fn skip_list(plan: &Plan) -> (String, String, String) {
    let (pointer, key) = plan.list.as_ref().map_or(("/ignore", "ignore"), |l| (l.pointer.as_str(), l.key()));
    let (file, pointer) = quant_key(plan, pointer);
    (file, pointer, key.to_owned())
}

/// File and pointer of what says how modules are quantized: the groups of compressed-tensors, else the whole config.
pub fn scheme_key(plan: &Plan) -> (String, String) {
    let key = match plan.method.as_deref() {
        None | Some("compressed-tensors") => "/config_groups",
        Some("quark") => "/global_quant_config",
        Some(_) => "",
    };
    quant_key(plan, key)
}

/// Whether a JSON file has this key.
pub fn has(cp: &Checkpoint, file: &str, pointer: &str) -> bool {
    json(cp, file).is_some_and(|j| j.pointer(pointer).is_some())
}

/// A string of a JSON file.
pub fn text<'c>(cp: &'c Checkpoint, file: &str, pointer: &str) -> Option<&'c str> {
    json(cp, file)?.pointer(pointer)?.as_str()
}

/// Key of a tensor in the index, when the index names it.
pub fn index_key(cp: &Checkpoint, tensor: &str) -> Option<String> {
    let map = cp.index.get()?.weight_map.as_ref()?;
    map.iter().any(|m| m.0 == tensor).then(|| format!("/weight_map/{}", escape_pointer(tensor)))
}

/// The index of the shards.
pub const INDEX: &str = "model.safetensors.index.json";

/// Events in groups that share a key, groups in order of appearance.
pub fn groups<'e, K: PartialEq>(events: &[&'e Event], key: impl Fn(&'e Event) -> K) -> Vec<(K, Vec<&'e Event>)> {
    let mut out: Vec<(K, Vec<&Event>)> = Vec::new();
    for e in events {
        let k = key(e);
        match out.iter_mut().find(|g| g.0 == k) {
            Some(group) => group.1.push(e),
            None => out.push((k, vec![e])),
        }
    }
    out
}
