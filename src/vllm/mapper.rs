//! `WeightsMapper` (vllm/model_executor/models/utils.py): six passes, each entry tried on the current name, no stop at
//! the first match.

mod needle;

use super::method::CacheScales;
use crate::facts::{Expr, MapperFile, Row, Scope, Substr, facts_shard};
use needle::{Expression, Needle};
use serde_json::Value;
use std::borrow::Cow;

/// Which shards of a stacked parameter a tensor goes to. Parts are numbered in the fused order (q, k, v = 0, 1, 2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shard {
    /// One part.
    Part(u16),
    /// A contiguous span of parts, stored as one tensor.
    Span(Vec<u16>),
}

impl Shard {
    /// Reads a shard id of a fact file: `"q"`, `0`, `[0, 1, 2]` nested in a list of ids.
    fn read(v: &Value) -> Vec<Shard> {
        let one = |v: &Value| match v {
            Value::String(s) => facts_shard(s).map(Shard::Part),
            Value::Number(n) => n.as_u64().and_then(|n| u16::try_from(n).ok()).map(Shard::Part),
            Value::Array(a) => {
                Some(Shard::Span(a.iter().filter_map(Value::as_u64).filter_map(|n| u16::try_from(n).ok()).collect()))
            }
            Value::Object(o) => o.get("span").and_then(Value::as_array).map(|a| {
                Shard::Span(a.iter().filter_map(Value::as_u64).filter_map(|n| u16::try_from(n).ok()).collect())
            }),
            _ => None,
        };
        match v {
            Value::Array(a) => a.iter().filter_map(one).collect(),
            v => one(v).into_iter().collect(),
        }
    }
}

/// A mapper ready to run.
#[derive(Debug, Default)]
pub struct Mapper {
    regex: Vec<(Expression, Option<String>)>,
    substr: Vec<(Needle, Option<String>)>,
    stacked: Vec<(Needle, String, Vec<Shard>)>,
    /// Stacked rows of one layer each, by layer index: looked up, not scanned.
    indexed: Indexed,
    prefix: Vec<(String, Option<String>)>,
    suffix: Vec<(String, Option<String>)>,
    /// KV-scale renames and `.g_idx`, which AutoWeightsLoader adds for quantized models.
    cache_scales: Option<CacheScales>,
    /// Rotary tables that AutoWeightsLoader always drops.
    rotary: bool,
}

/// Per-layer rows `layers.{layer}.x. → layers.{layer}.y.`: prefix up to the index, then rows by index.
#[derive(Debug, Default)]
struct Indexed {
    before: String,
    rows: Vec<Vec<(Needle, String, Vec<Shard>)>>,
}

/// What became of a name.
#[derive(Debug, PartialEq)]
pub enum Mapped<'a> {
    /// Dropped by a rule with this key.
    Dropped(Cow<'a, str>),
    /// Kept under this name; shards when a stacked row hit.
    Kept(Cow<'a, str>, Vec<Shard>),
}

impl Mapper {
    /// From the facts, with indices expanded for a config.
    pub fn new(file: Option<&MapperFile>, scope: &Scope) -> Mapper {
        let mut m = Mapper::default();
        let Some(file) = file else { return m };
        let owned = |row: &Row| row.get(scope).map(|(from, to)| (from.to_owned(), to.map(str::to_owned)));
        let rows = file.regex.iter().filter_map(|row| row.get(scope));
        m.regex = rows.map(|(p, n)| (p.into(), n.map(python_groups))).collect();
        for row in &file.substr {
            match row {
                Substr::Row(row) => m.substr.extend(owned(row).map(|(from, to)| (from.into(), to))),
                Substr::Each { each: (var, count), when, from } => {
                    let hole = format!("{{{var}}}");
                    for i in 0..count.size(scope).unwrap_or(0).min(MAX_INDEX) {
                        let vars: Vec<(&str, Value)> =
                            scope.vars.iter().cloned().chain([(var.as_str(), Value::from(i))]).collect();
                        if when.as_ref().is_none_or(|w| w.truth(&Scope { vars: &vars, ..*scope })) {
                            m.substr.push((from.replace(&hole, &i.to_string()).into(), None));
                        }
                    }
                }
            }
        }
        m.prefix = file.prefix.iter().filter_map(owned).collect();
        m.suffix = file.suffix.iter().filter_map(owned).collect();
        for row in &file.stacked {
            match row {
                crate::facts::Stacked::Fixed(from, (to, shard)) => {
                    m.stacked.push((from.clone().into(), to.clone(), Shard::read(shard)));
                }
                crate::facts::Stacked::When { when, from, to, shard } if when.truth(scope) => {
                    m.stacked.push((from.clone().into(), to.clone(), Shard::read(shard)));
                }
                crate::facts::Stacked::When { .. } => {}
                crate::facts::Stacked::Each { each: (var, count), when, from, to, shard } => {
                    m.expand(scope, var, count, when.as_ref(), from, to, shard);
                }
            }
        }
        m
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of one fact row")]
    fn expand(
        &mut self,
        scope: &Scope,
        var: &str,
        count: &Expr,
        when: Option<&Expr>,
        from: &str,
        to: &str,
        shard: &Value,
    ) {
        let hole = format!("{{{var}}}");
        let n = count.size(scope).unwrap_or(0).min(MAX_INDEX);
        let shards = Shard::read(shard);
        let before = from.split(&hole).next().unwrap_or("").to_owned();
        let indexed =
            from.matches(&hole).count() == 1 && (self.indexed.rows.is_empty() || self.indexed.before == before);
        for i in 0..n {
            let vars: Vec<(&str, Value)> = scope.vars.iter().cloned().chain([(var, Value::from(i))]).collect();
            if when.is_some_and(|w| !w.truth(&Scope { vars: &vars, ..*scope })) {
                continue;
            }
            let at = i.to_string();
            let row = (from.replace(&hole, &at).into(), to.replace(&hole, &at), shards.clone());
            if indexed {
                self.indexed.before.clone_from(&before);
                let i = usize::try_from(i).unwrap_or(usize::MAX);
                if self.indexed.rows.len() <= i {
                    self.indexed.rows.resize_with(i + 1, Vec::new);
                }
                self.indexed.rows[i].push(row);
            } else {
                self.stacked.push(row);
            }
        }
    }

    /// Adds what `AutoWeightsLoader.load_weights` adds to every mapper.
    pub fn with_loader_rules(mut self, scales: Option<CacheScales>) -> Mapper {
        self.cache_scales = scales;
        self.rotary = true;
        self
    }

    /// The variant for lists of module names: renames only (`get_rename_mapper`).
    pub fn rename_only(mut self) -> Mapper {
        self.regex.retain(|(_, n)| n.is_some());
        self.substr.retain(|(_, n)| n.is_some());
        self.prefix.retain(|(_, n)| n.is_some());
        self.suffix.retain(|(_, n)| n.is_some());
        self.stacked.clear();
        self.indexed = Indexed::default();
        self
    }

    /// Whether names that differ in the number of an expert alone come out differing in that alone: nothing that is looked
    /// for has a number in it.
    pub fn even(&self) -> bool {
        let plain = |text: &str| !numbered(text);
        self.regex.is_empty()
            && self.indexed.rows.is_empty()
            && self.substr.iter().all(|row| plain(&row.0.text))
            && self.stacked.iter().all(|row| plain(&row.0.text))
            && self.prefix.iter().chain(&self.suffix).all(|row| plain(&row.0))
    }

    /// Map a name known to keep (rename-only mappers never drop).
    pub fn rename<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match self.map(name) {
            Mapped::Kept(n, _) => n,
            Mapped::Dropped(_) => name.into(),
        }
    }

    /// Map one name.
    pub fn map<'a>(&self, name: &'a str) -> Mapped<'a> {
        let mut key = Cow::Borrowed(name);
        for (re, new) in self.regex.iter().filter_map(|(re, new)| Some((re.get()?, new))) {
            if re.is_match(&key).unwrap_or(false) {
                let Some(new) = new else { return Mapped::Dropped(re.as_str().to_owned().into()) };
                key = Cow::Owned(re.replace_all(&key, new.as_str()).into_owned());
            }
        }
        if self.cache_scales.is_some() {
            key = cache_scale(key);
        }
        for (from, new) in &self.substr {
            if let Some(at) = from.find(&key) {
                let Some(new) = new else { return Mapped::Dropped(from.text.clone().into()) };
                key = splice(&key, at, from.text.len(), new);
            }
        }
        if self.rotary && key.contains("rotary_") {
            for part in
                ["rotary_pos_emb.inv_freq", "rotary_emb.inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached"]
            {
                if key.contains(part) {
                    return Mapped::Dropped(part.into());
                }
            }
        }
        let mut shards: &[Shard] = &[];
        let indexed = self.indexed.rows_of(&key);
        for (from, to, shard) in self.stacked.iter().chain(indexed) {
            if let Some(at) = from.find(&key) {
                key = splice(&key, at, from.text.len(), to);
                shards = shard;
            }
        }
        for (from, new) in &self.prefix {
            if key.starts_with(from.as_str()) {
                let Some(new) = new else { return Mapped::Dropped(from.clone().into()) };
                key = splice(&key, 0, from.len(), new);
            }
        }
        for (from, new) in &self.suffix {
            if key.ends_with(from.as_str()) {
                let Some(new) = new else { return Mapped::Dropped(from.clone().into()) };
                let at = key.len() - from.len();
                key = splice(&key, at, from.len(), new);
            }
        }
        if self.cache_scales == Some(CacheScales::OutputScales) {
            key = output_scale(key);
        }
        if self.cache_scales.is_some() && key.ends_with(".g_idx") {
            return Mapped::Dropped(".g_idx".into());
        }
        Mapped::Kept(key, shards.to_vec())
    }
}

impl Indexed {
    /// Rows of the index in `name`. A row of another index cannot occur in it, since the index is followed by a dot.
    fn rows_of(&self, name: &str) -> &[(Needle, String, Vec<Shard>)] {
        if self.rows.is_empty() {
            return &[];
        }
        name.find(&self.before)
            .and_then(|at| name[at + self.before.len()..].split('.').next())
            .and_then(|i| i.parse::<usize>().ok())
            .and_then(|i| self.rows.get(i))
            .map_or(&[], Vec::as_slice)
    }
}

/// No model has more layers or experts than this; a config that says so is not believed.
pub const MAX_INDEX: u64 = 10_000;

/// Whether a text has a digit in it.
pub fn numbered(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}

fn splice<'a>(key: &str, at: usize, len: usize, new: &str) -> Cow<'a, str> {
    let mut s = String::with_capacity(key.len() + new.len());
    s.push_str(&key[..at]);
    s.push_str(new);
    s.push_str(&key[at + len..]);
    Cow::Owned(s)
}

/// Python's `\1` as `${1}`.
fn python_groups(new: &str) -> String {
    let mut out = String::new();
    let mut chars = new.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(d) if d.is_ascii_digit() => out.push_str(&format!("${{{d}}}")),
                Some(c) => out.push(c),
                None => out.push('\\'),
            },
            '$' => out.push_str("$$"),
            c => out.push(c),
        }
    }
    out
}

/// Names that `maybe_remap_kv_scale_name` takes for a scale of the key-value cache.
pub(super) fn is_cache_scale(name: &str) -> bool {
    let (head, last) = name.rsplit_once('.').unwrap_or(("", name));
    match last {
        "kv_scale" | "k_scale" | "v_scale" | "q_scale" | "k_zero_point" | "v_zero_point" | "q_zero_point" => true,
        "scale" => [".q", ".k_cache", ".v_cache"].iter().any(|part| head.ends_with(part)),
        _ => false,
    }
}

/// `QuantizationConfig.get_cache_scale_mapper`: eight expressions, written out since they run on every tensor.
pub(super) fn cache_scale(key: Cow<'_, str>) -> Cow<'_, str> {
    let Some(dot) = key.rfind('.') else { return key };
    let (head, last) = (&key[..dot], &key[dot + 1..]);
    match last {
        "kv_scale" => Cow::Owned(format!("{head}.attn.k_scale")),
        "scale" => {
            if let Some(h) = head.strip_suffix(".self_attn.q") {
                return Cow::Owned(format!("{h}.self_attn.attn.q_scale"));
            }
            for c in ["k", "v"] {
                if let Some(h) = head.strip_suffix(&format!(".self_attn.{c}_cache")) {
                    return Cow::Owned(format!("{h}.self_attn.attn.{c}_scale"));
                }
            }
            key
        }
        "k_scale" | "v_scale" | "q_scale" | "q_zero_point" | "k_zero_point" | "v_zero_point" => {
            if head.ends_with(".attn") {
                return key;
            }
            if matches!(last, "k_scale" | "v_scale") {
                for part in [".self_attn.k_proj", ".self_attn.v_proj", ".self_attn.qkv_proj", ".self_attn.qkqkv_proj"] {
                    if let Some(h) = head.strip_suffix(part) {
                        return Cow::Owned(format!("{h}.self_attn.attn.{last}"));
                    }
                }
                for part in [".mixer.k_proj", ".mixer.v_proj"] {
                    if let Some(h) = head.strip_suffix(part) {
                        return Cow::Owned(format!("{h}.mixer.attn.{last}"));
                    }
                }
            }
            Cow::Owned(format!("{head}.attn.{last}"))
        }
        _ => key,
    }
}

/// `Fp8Config.get_cache_scale_mapper`, `QuarkConfig.get_cache_scale_mapper`: suffixes that they rename besides.
fn output_scale(key: Cow<'_, str>) -> Cow<'_, str> {
    for (from, to) in [
        (".k_proj.output_scale", ".attn.k_scale"),
        (".v_proj.output_scale", ".attn.v_scale"),
        (".q_proj.output_scale", ".attn.q_scale"),
        (".self_attn.prob_output_scale", ".self_attn.attn.prob_scale"),
    ] {
        if let Some(head) = key.strip_suffix(from) {
            return Cow::Owned(format!("{head}{to}"));
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mapper(v: Value, config: &Value) -> Mapper {
        let file: MapperFile = serde_json::from_value(v).unwrap();
        Mapper::new(Some(&file), &Scope::new(config, &[]))
    }

    fn kept(m: &Mapper, name: &str) -> (String, Vec<Shard>) {
        match m.map(name) {
            Mapped::Kept(n, s) => (n.into_owned(), s),
            Mapped::Dropped(k) => (format!("dropped by {k}"), vec![]),
        }
    }

    #[test]
    fn tries_every_entry_on_the_current_name() {
        let m = mapper(
            json!({"prefix": [["model.language_model.", "language_model.model."], ["lm_head.", "language_model.lm_head."], ["model", "language_model.model"]],
                   "substr": [["vision_tower.", null]], "stacked": [[".q_proj", [".qkv_proj", "q"]]]}),
            &json!({}),
        );
        assert_eq!(
            kept(&m, "model.language_model.layers.0.q_proj.weight"),
            ("language_model.model.layers.0.qkv_proj.weight".into(), vec![Shard::Part(0)])
        );
        assert_eq!(kept(&m, "model.layers.0.x").0, "language_model.model.layers.0.x");
        assert_eq!(kept(&m, "a.vision_tower.b").0, "dropped by vision_tower.");
    }

    #[test]
    fn expands_rows_of_layers() {
        let m = mapper(
            json!({"stacked": [{"each": ["layer", "n"], "if": "layer != 1", "from": "layers.{layer}.k_proj.", "to": "layers.{layer}.qkv_proj.", "shard": ["k", "v"]}]}),
            &json!({"n": 3}),
        );
        assert_eq!(
            kept(&m, "layers.2.k_proj.weight"),
            ("layers.2.qkv_proj.weight".into(), vec![Shard::Part(1), Shard::Part(2)])
        );
        assert_eq!(kept(&m, "layers.1.k_proj.weight").0, "layers.1.k_proj.weight");
        assert_eq!(kept(&m, "layers.12.k_proj.weight").0, "layers.12.k_proj.weight");
        let m = mapper(
            json!({"regex": [["^(?!model\\.)(layers.*)", "model.\\1"]],
                   "stacked": [{"each": ["layer", "n"], "from": "model.layers.{layer}.k_proj", "to": "model.layers.{layer}.qkv_proj", "shard": "k"}]}),
            &json!({"n": 3}),
        );
        assert_eq!(
            kept(&m, "layers.2.k_proj.weight"),
            ("model.layers.2.qkv_proj.weight".into(), vec![Shard::Part(1)]),
            "rows are looked up by the name as the passes before have made it"
        );
    }

    #[test]
    fn knows_whether_numbers_matter() {
        let even = |v| mapper(v, &json!({"n": 2})).with_loader_rules(Some(CacheScales::Common)).even();
        assert!(even(json!({"prefix": [["model.", "language_model."]], "stacked": [[".q_proj", [".qkv_proj", "q"]]]})));
        for v in [
            json!({"regex": [["experts.(.*)", "x.\\1"]]}),
            json!({"substr": [["experts.1.", null]]}),
            json!({"suffix": [["1.weight", "2.weight"]]}),
            json!({"stacked": [{"each": ["i", "n"], "from": "experts.{i}.", "to": "x.{i}.", "shard": 0}]}),
        ] {
            assert!(!even(v.clone()), "{v}");
        }
    }

    #[test]
    fn adds_the_loaders_rules() {
        let m = Mapper::default().with_loader_rules(Some(CacheScales::Common));
        for (from, to) in [
            ("l.self_attn.k_proj.k_scale", "l.self_attn.attn.k_scale"),
            ("l.self_attn.k_scale", "l.self_attn.attn.k_scale"),
            ("l.attn.k_scale", "l.attn.k_scale"),
            ("l.self_attn.kv_scale", "l.self_attn.attn.k_scale"),
            ("l.q_proj.weight_scale", "l.q_proj.weight_scale"),
            ("l.q_proj.g_idx", "dropped by .g_idx"),
            ("l.rotary_emb.inv_freq", "dropped by rotary_emb.inv_freq"),
        ] {
            assert_eq!(kept(&m, from).0, to);
        }
    }
}
