//! compressed-tensors, as vLLM's `CompressedTensorsConfig` reads it: which module gets which scheme, with which
//! parameters, and what is raised on the way.
//!
//! The order of use is vLLM's: [`CompressedTensors::parse`] at stage *config*; then, when the model is built,
//! [`Quantizer::map_names`] and [`Quantizer::set_packed`] for each class that has a mapper or a
//! mapping, and [`Quantizer::build`] for each module in construction order; at last
//! [`Quantizer::dead_entries`].

mod args;
mod entries;
mod experts;
mod extras;
mod fields;
mod kv_cache;
mod lookup;
mod params;
mod parse;
mod scheme;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::{Built, DeadEntry, Layer, List, Matching, Offered, Param, Quantizer, py};
use crate::vllm::trace::{Kind, Raised};
use args::Args;
use entries::Entries;
use lookup::Found;

/// A quantization config of this method, and what became of it while a model is built.
#[derive(Debug, Default)]
pub struct CompressedTensors {
    /// Targets; their payload is the index of a group.
    targets: Entries,
    groups: Vec<Group>,
    ignore: Entries,
    /// What renaming raised.
    unmapped: Option<parse::Refused>,
    /// Whether a fault of the lists as a whole came out. vLLM stops there; the modules after it need not say it again.
    told: bool,
    format: Value,
    kv_cache_scheme: Value,
    transforms: bool,
    packed: Vec<(String, Vec<String>)>,
    /// The target that a class name matches.
    classes: FxHashMap<String, Option<usize>>,
    /// Whether vLLM added the target `RoutedExperts`, which then stands for `Linear`.
    aliased: bool,
    /// What the projections of an expert are called, when not as in the checkpoint: gate, down, up.
    expert_names: Option<[&'static str; 3]>,
    experts: Vec<ExpertNames>,
    /// Patterns that do not compile: JSON pointer, relative to the quantization config, and entry. Python raises where it
    /// first reaches them, and so does [`Quantizer::build`].
    pub broken: Vec<(String, String)>,
}

/// One entry of `config_groups`.
#[derive(Debug)]
struct Group {
    weights: Args,
    input: Option<Args>,
    output: Option<Args>,
    /// The group's own format.
    format: Value,
    pointer: String,
}

/// Names under which experts may stand in the ignore list.
#[derive(Debug)]
struct ExpertNames {
    prefix: String,
    count: u64,
    names: [String; 3],
}

/// How a target reached a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// By the module's name.
    Name,
    /// By the names of all its shards.
    Shards,
    /// By the name of its class.
    Class,
}

/// Which target reached a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// JSON pointer of the target, relative to the quantization config.
    pub pointer: String,
    /// The target as written.
    pub target: String,
    /// JSON pointer of the group whose arguments apply, relative to the quantization config.
    pub group: String,
    /// How.
    pub by: By,
}

type Failure = (Kind, Raised);

impl CompressedTensors {
    /// Reads a `quantization_config`.
    ///
    /// # Errors
    /// What `from_config` raises, with the JSON pointer (relative to the quantization config) of what it raises at. The
    /// text is the root cause: pydantic's wrapper around `VllmConfig` comes on top.
    ///
    /// An `ignore` that Python cannot iterate over is refused here, too, though vLLM finds out a moment later, when it
    /// renames the list: nothing can come between.
    pub fn parse(config: &Value) -> Result<Self, (String, Raised)> {
        parse::parse(config)
    }

    /// Looks for experts under these names of their projections.
    pub fn asking(self, expert_names: Option<[&'static str; 3]>) -> Self {
        CompressedTensors { expert_names, ..self }
    }

    fn try_map(&mut self, rename: &dyn Fn(&str) -> String) -> Result<(), parse::Refused> {
        self.targets.rename(rename, true)?;
        self.ignore.rename(rename, false)?;
        if self.kv_cache_scheme.is_null() || self.kv_cache_scheme.is_object() {
            return Ok(());
        }
        let text = format!("'{}' object has no attribute 'items'", py::type_name(&self.kv_cache_scheme));
        Err(("/kv_cache_scheme".into(), py::raised("AttributeError", text)))
    }

    /// Whether there are transforms (`transform_config`). They create further parameters, which are not modelled.
    pub fn has_transforms(&self) -> bool {
        self.transforms
    }

    /// The raw `kv_cache_scheme`, null if there is none.
    pub fn kv_cache_scheme(&self) -> &Value {
        &self.kv_cache_scheme
    }

    /// Whether some group quantizes weights at all.
    pub fn quantizes(&self) -> bool {
        !self.targets.list().is_empty()
    }

    /// Counts entries that match a module which vLLM builds without asking this method, so that they are not dead.
    pub fn touch(&mut self, name: &str) {
        self.ignore.scan(name);
    }

    fn linear(&mut self, layer: &Layer<'_>) -> Result<Built, Failure> {
        match self.find(layer.prefix, layer.class)? {
            Found::Ignored(at) => Ok(self.plain(Some(at))),
            Found::Nothing => Ok(self.plain(None)),
            Found::Target(at) => {
                let scheme = self.scheme(at, layer.prefix)?;
                quantized(&scheme, layer)
            }
        }
    }

    /// vLLM swallows a `ValueError` of the look-up, and then offers the head once more, as the embedding that its class
    /// derives from: there the same error, or another one, or a method for embeddings comes out.
    fn head(&mut self, layer: &Layer<'_>) -> Result<Built, Failure> {
        match self.find(layer.prefix, layer.class)? {
            Found::Ignored(at) => Ok(self.plain(Some(at))),
            Found::Nothing => Ok(self.plain(None)),
            Found::Target(at) => match self.scheme(at, layer.prefix) {
                Ok(scheme) => quantized(&scheme, layer),
                Err((_, raised)) if raised.error_type == "ValueError" => self.embed(at, layer),
                Err(failure) => Err(failure),
            },
        }
    }

    fn embedding(&mut self, layer: &Layer<'_>) -> Result<Built, Failure> {
        match self.find(layer.prefix, layer.class)? {
            Found::Ignored(at) => Ok(self.plain(Some(at))),
            Found::Nothing => Ok(self.plain(None)),
            Found::Target(at) => self.embed(at, layer),
        }
    }

    fn embed(&self, at: usize, layer: &Layer<'_>) -> Result<Built, Failure> {
        // Activations and format are not looked at.
        let weights = &self.group(at).weights;
        if weights.float || !scheme::is_wna16(weights, None) {
            let text = format!(
                "compressed-tensors embeddings only support weight-only INT group/channel (WNA16) quantization, got: {}",
                weights.words()
            );
            return Err((Kind::EmbeddingScheme, py::raised("ValueError", text)));
        }
        let params = params::embedding(weights, layer).map_err(|raised| (Kind::SchemeShape, raised))?;
        let per = match weights.group_size {
            Some(size) if size > 0 => format!("group {size}"),
            _ => "channel".to_owned(),
        };
        let scheme = format!("W{}A16 embedding ({per})", weights.num_bits);
        Ok(Built::Quantized { scheme, params, nones: Vec::new() })
    }

    fn experts(&mut self, layer: &Layer<'_>) -> Result<Built, Failure> {
        if self.targets.named("RoutedExperts").is_none()
            && let Some(linear) = self.targets.named("Linear")
        {
            let (pointer, group) = (self.targets.get(linear).pointer.clone(), self.targets.get(linear).payload);
            self.targets.push("RoutedExperts".into(), pointer, group);
            let alias = self.targets.list().len() - 1;
            self.targets.mark(alias);
            self.aliased = true;
            self.classes.clear();
        }
        let [gate, down, up] = self.expert_names.unwrap_or(layer.expert_names);
        let names = [gate, up, down].map(|n| if n.is_empty() { "None" } else { n });
        let mut found = [const { Found::Nothing }; 3];
        for (slot, name) in found.iter_mut().zip(names) {
            *slot = self.find(&format!("{}.0.{name}", layer.prefix), class_of(layer))?;
        }
        self.experts.push(ExpertNames {
            prefix: layer.prefix.to_owned(),
            count: layer.experts,
            names: names.map(str::to_owned),
        });
        let [first, up, down] = found;
        let same = |a: &Found| match (a, &down) {
            (Found::Target(a), Found::Target(b)) => self.same_scheme(*a, *b),
            (Found::Target(_), _) | (_, Found::Target(_)) => false,
            _ => true,
        };
        if !same(&first) || !same(&up) {
            let text = "All MoE projections need to have same quantization scheme but found multiple";
            return Err((Kind::FusedMixture, py::raised("ValueError", text)));
        }
        match first {
            Found::Ignored(at) => Ok(self.plain(Some(at))),
            Found::Nothing => Ok(match down {
                Found::Ignored(at) => self.plain(Some(at)),
                _ => self.plain(None),
            }),
            Found::Target(at) => {
                let (scheme, params) = experts::build(self.group(at), self.format_of(at), layer)?;
                Ok(Built::Quantized { scheme, params, nones: Vec::new() })
            }
        }
    }

    fn plain(&self, entry: Option<usize>) -> Built {
        Built::Plain { entry: entry.map(|at| self.ignore.get(at).payload) }
    }

    fn group(&self, target: usize) -> &Group {
        &self.groups[self.targets.get(target).payload]
    }

    /// The group's format, else the global one.
    fn format_of(&self, target: usize) -> &Value {
        let own = &self.group(target).format;
        if own.is_null() { &self.format } else { own }
    }

    fn scheme(&self, target: usize, name: &str) -> Result<scheme::Scheme, Failure> {
        scheme::linear(self.group(target), self.format_of(target), name).map_err(|r| (Kind::SchemeUnsupported, r))
    }

    /// Equality of two scheme dicts.
    fn same_scheme(&self, a: usize, b: usize) -> bool {
        let (x, y) = (self.group(a), self.group(b));
        let same = |x: &Option<Args>, y: &Option<Args>| match (x, y) {
            (Some(x), Some(y)) => x.same(y),
            (None, None) => true,
            _ => false,
        };
        x.weights.same(&y.weights)
            && same(&x.input, &y.input)
            && same(&x.output, &y.output)
            && self.format_of(a) == self.format_of(b)
    }

    /// Which target reaches a module, as written in the file. Leaves no trace.
    pub fn why(&self, layer: &Layer<'_>) -> Option<Reached> {
        let name = match layer.offered {
            Offered::Experts => format!("{}.0.{}", layer.prefix, self.expert_names.unwrap_or(layer.expert_names)[0]),
            _ => layer.prefix.to_owned(),
        };
        let (at, by) = self.reached(&name, class_of(layer))?;
        let at = self.alias_of(at).unwrap_or(at);
        let entry = self.targets.get(at);
        Some(Reached {
            pointer: entry.pointer.clone(),
            target: entry.written.clone(),
            group: self.group(at).pointer.clone(),
            by,
        })
    }

    fn names_expert(&self, name: &str) -> bool {
        let mut steps = name.rsplitn(3, '.');
        let (Some(projection), Some(number), Some(prefix)) = (steps.next(), steps.next(), steps.next()) else {
            return false;
        };
        number.parse::<u64>().is_ok_and(|n| {
            let holds =
                |x: &ExpertNames| x.prefix == prefix && n < x.count && x.names.iter().any(|own| own == projection);
            self.experts.iter().any(holds)
        })
    }
}

impl Quantizer for CompressedTensors {
    fn name(&self) -> &'static str {
        "compressed-tensors"
    }

    fn list(&self) -> List {
        List { pointer: "/ignore".into(), matching: Matching::Patterns }
    }

    fn broken(&self) -> &[(String, String)] {
        &self.broken
    }

    /// `apply_vllm_mapper`: renames targets and ignored names that contain a dot and are no patterns. To be called with
    /// each mapper in turn. What Python raises on entries that are no strings, and on lists that are no lists, comes out
    /// with the next module.
    fn map_names(&mut self, rename: &dyn Fn(&str) -> String) {
        self.classes.clear();
        if let Err((pointer, raised)) = self.try_map(rename) {
            self.unmapped.get_or_insert((pointer, raised));
        }
    }

    /// The packed mapping of a class: merged as `SupportsQuant.__new__` does, or replaced as the loader does for the
    /// other classes.
    fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool) {
        super::set_packed(&mut self.packed, mapping, merge);
    }

    /// `get_quant_method` and `create_weights` for one module.
    fn build(&mut self, layer: &Layer<'_>) -> Built {
        if let Some((_, raised)) = self.unmapped.as_ref().filter(|_| !self.told) {
            self.told = true;
            return Built::Refused { why: Kind::QuantConfigRejected, raised: raised.clone() };
        }
        let built = match layer.offered {
            Offered::Linear => self.linear(layer),
            Offered::Head => self.head(layer),
            Offered::Embedding => self.embedding(layer),
            // `isinstance(layer, Attention)` does not hold for multi-head latent attention.
            Offered::Attention if layer.class.starts_with("MLA") => Ok(Built::Plain { entry: None }),
            Offered::Attention => kv_cache::build(&self.kv_cache_scheme, layer),
            Offered::Experts => self.experts(layer),
        };
        built.unwrap_or_else(|(why, raised)| Built::Refused { why, raised })
    }

    /// Entries that matched no module that was built so far. Names of experts other than the first, which vLLM never
    /// looks at, are not among them where the experts exist.
    fn dead_entries(&self) -> Vec<DeadEntry> {
        let dead = |list: &Entries, ignore: bool| -> Vec<DeadEntry> {
            let unused = list.list().iter().filter(|e| !(e.used || ignore && self.names_expert(&e.mapped)));
            let entry = |e: &entries::Entry| DeadEntry {
                pointer: e.pointer.clone(),
                entry: e.written.clone(),
                name: e.mapped.clone(),
                ignore,
            };
            unused.map(entry).collect()
        };
        [dead(&self.ignore, true), dead(&self.targets, false)].concat()
    }
}

/// The class that targets are matched with. Experts are offered by the `RoutedExperts` inside of a runner.
fn class_of<'a>(layer: &Layer<'a>) -> &'a str {
    if layer.offered == Offered::Experts && !layer.class.contains("RoutedExperts") {
        return "RoutedExperts";
    }
    layer.class
}

/// A module with the parameters of a scheme.
fn quantized(scheme: &scheme::Scheme, layer: &Layer<'_>) -> Result<Built, Failure> {
    let (params, nones): (Vec<Param>, _) = params::linear(scheme, layer).map_err(|r| (Kind::SchemeShape, r))?;
    Ok(Built::Quantized { scheme: scheme.label(), params, nones })
}
