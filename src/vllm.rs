//! The heart: what one version of vLLM would do with a checkpoint, as a trace.
//!
//! [`Plan::of`] goes through the stages of a load in vLLM's order: config ([`config`], [`registry`], [`quantization`]),
//! construction ([`build`], [`tree`], [`method`]), streaming ([`files`], [`stream`], [`mapper`], [`place`], [`experts`], [`keyed`]), tracking
//! ([`outcome`]).

pub mod build;
pub mod config;
pub mod experts;
pub mod files;
mod foreign;
pub mod hints;
pub mod keyed;
pub mod mapper;
pub mod method;
pub mod outcome;
pub mod place;
mod pooling;
pub mod python;
pub mod quantization;
pub mod registry;
pub mod remote;
pub mod rope;
pub mod semantics;
pub mod stream;
pub mod tie;
pub mod trace;
pub mod tree;
pub mod words;

use crate::checkpoint::{Checkpoint, FolderKind, Part};
use crate::facts;
use build::Builder;
use mapper::Mapper;
use method::Method;
use pooling::Ahead;
use serde_json::Value;
use std::rc::Rc;
use stream::Stream;
use trace::{Effect, Event, Kind, Raised, Stage, Trace};

/// What changes the verdict besides the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// vLLM version, e.g. `0.32`.
    pub vllm: String,
    /// `--quantization`.
    pub quantization: Option<String>,
    /// `--load-format`, `auto` by default.
    pub load_format: String,
    /// `--language-model-only`.
    pub language_model_only: bool,
    /// `--trust-remote-code`.
    pub trust_remote_code: bool,
}

impl Default for Target {
    fn default() -> Self {
        Target {
            vllm: facts::newest().into(),
            quantization: None,
            load_format: "auto".into(),
            language_model_only: false,
            trust_remote_code: false,
        }
    }
}

/// One simulated load: the trace, and what rules and reports want to know of the way there.
#[derive(Debug, Default)]
pub struct Plan {
    /// Ordered events.
    pub trace: Trace,
    /// The vLLM class that was chosen.
    pub class: Option<String>,
    /// The quantization method in effect, e.g. `compressed-tensors`.
    pub method: Option<String>,
    /// The file of the quantization config in effect and its JSON pointer there.
    pub quant_place: Option<(String, String)>,
    /// Where the method keeps the modules that stay in 16 bit.
    pub list: Option<method::List>,
    /// Parameters that would hold garbage (for the verdict line of `damages`).
    pub garbage: usize,
    /// Tensors that were streamed.
    pub tensors: usize,
    /// Bytes of the tensors that were streamed.
    pub bytes: u64,
    /// More than one plain embedding: vLLM keeps a duplicate head apart and compares nothing (spec B.7.2).
    pub no_retie: bool,
    /// The class takes pictures or sound, and the run leaves that on.
    pub multimodal: bool,
    /// Names only were judged: the weights are not in the folder.
    pub names_only: bool,
}

const LOAD_FORMATS: [&str; 16] = [
    "auto",
    "hf",
    "safetensors",
    "fastsafetensors",
    "instanttensor",
    "mistral",
    "pt",
    "npcache",
    "dummy",
    "ipc_cache",
    "modelexpress",
    "runai_streamer",
    "runai_streamer_sharded",
    "sharded_state",
    "tensorizer",
    "bitsandbytes",
];

impl Plan {
    /// Simulate the load of `checkpoint` by `target`.
    pub fn of(checkpoint: &Checkpoint, target: &Target) -> Plan {
        let mut plan = Plan::default();
        if let Err(event) = plan.simulate(checkpoint, target) {
            plan.trace.events.push(*event);
        }
        plan
    }

    fn simulate(&mut self, cp: &Checkpoint, target: &Target) -> Result<(), Box<Event>> {
        let strange = match cp.kind {
            FolderKind::Model => None,
            FolderKind::LoraAdapter => Some(
                "this is a LoRA adapter, not a model: vLLM takes it with `--lora-modules`, next to its base model"
                    .into(),
            ),
            FolderKind::Gguf => Some(format!(
                "this is a GGUF model: vLLM {} needs the `vllm-gguf-plugin` for it, and its tensors are not safetensors",
                target.vllm
            )),
            FolderKind::Diffusers => Some("this is a diffusers pipeline: `vllm serve` does not take it".into()),
        };
        if let Some(what) = strange {
            return Err(unknown(&what));
        }
        if !LOAD_FORMATS.contains(&target.load_format.as_str()) {
            let mut e = Event::new(Stage::Config, Effect::Refuses, Kind::ArgumentRefused);
            e.error = Some(Raised {
                error_type: "ValueError".into(),
                text: format!("Load format `{}` is not supported", target.load_format),
            });
            return Err(Box::new(e));
        }
        let raw = read_config(cp)?;
        if let Some(speculators) = raw.get("speculators_config").filter(|c| c.is_object()) {
            let target = speculators.pointer("/verifier/name_or_path").and_then(Value::as_str);
            return Err(unknown(&format!(
                "this is a draft model in the `speculators` format: `vllm serve` loads its target {} and this next to it",
                target.unwrap_or("(its config names none)")
            )));
        }
        let mut resolved = if remote::trusted(cp, target, raw)? {
            remote::resolve(&target.vllm, raw, cp.config_code.as_deref())?
        } else {
            config::resolve(&target.vllm, raw)?
        };
        let registry = facts::registry(&target.vllm);
        let found = registry::resolve(&target.vllm, registry, raw, &resolved.model_type)?;
        if found.drafter.is_none() {
            self.class = Some(found.class.clone());
        }
        if let Some(generates) = &found.stand_in {
            let mut e = Event::new(Stage::Config, Effect::Keeps, Kind::BaseClass);
            e.file = Some("config.json".into());
            e.pointer = Some("/architectures".into());
            e.detail.clone_from(&found.architecture);
            e.module.clone_from(generates);
            self.trace.events.push(e);
        }
        let mut place = quantization::find(cp, raw);
        let mut method =
            quantization::method(cp, target, registry, (raw, &resolved.model_type), &mut place, &mut self.trace);
        quantization::activations(&method, raw, &mut self.trace);
        self.method = method.name().map(str::to_owned);
        self.quant_place = place.as_ref().map(|p| (p.file.clone(), p.pointer.clone()));
        if self.trace.first_refusal().is_some() {
            return Ok(());
        }
        if let Some((method, raises)) = &found.drafter {
            return Err(draft(&found.architecture, method, raises.as_deref()));
        }
        // What the Transformers backend builds is the architecture's own module tree.
        let file = if found.class.starts_with("Transformers") { &found.listed } else { &found.class };
        let Some(class) = facts::class(&target.vllm, file).map(Rc::new) else {
            return Err(unknown(&if found.listed == found.class && found.group == "transformers" {
                format!(
                    "{} is vLLM's Transformers backend itself, which builds what transformers has for model type {}; the facts \
                     have such trees by the name of an architecture",
                    found.class, resolved.model_type
                )
            } else {
                format!("no facts yet for {} (class {})", found.architecture, found.class)
            }));
        };
        if let Method::Unknown(name) = &method {
            return Err(unknown(&quantization::unsimulated(name, place.is_none())));
        }
        if let Method::Known(quantizer) = &mut method {
            quantizer.see(cp);
            self.list = Some(quantizer.list());
        }
        if let Some(event) = foreign::refusal(&target.vllm, &class, &found.architecture, &resolved) {
            return Err(Box::new(event));
        }
        let untied_by = tie::untie(cp, target, &mut resolved, raw, &found, &class.tie_into, &mut self.trace);

        let multimodal = found.group == "multimodal";
        self.multimodal = multimodal && !target.language_model_only;
        let scope_config = if multimodal || class.nested { &resolved.value } else { resolved.text() };
        let extra = [
            ("quant", self.method.as_deref().map_or(Value::Null, Value::from)),
            ("lm_only", Value::Bool(target.language_model_only)),
            ("architecture", found.architecture.as_str().into()),
        ];
        let absent = facts::Absent::default();
        let scope =
            facts::Scope { absent: resolved.remote.then_some(&absent), ..facts::Scope::new(scope_config, &extra) };
        let before = self.trace.events.len();
        let adapted = pooling::adapts(cp, &found, &class);
        let score = (adapted && found.classifies()).then(|| pooling::score(&resolved)).transpose().map_err(unknown)?;
        let mut tree = Builder::build(&target.vllm, &class, score.as_ref(), &scope, &mut method, &mut self.trace);
        if tree.oversized {
            return Err(unknown("the config asks for more modules than any model has"));
        }
        let outer = Mapper::new(class.mapper.as_ref(), &scope).rename_only();
        if let Some(event) = remote::undecided(&target.vllm, cp.config_code.as_deref(), absent.fields()) {
            // What was built stands on nothing.
            self.trace.events.truncate(before);
            return Err(event);
        }
        if adapted {
            pooling::take_heads(&mut tree, &found);
        }
        let at = config::pointer(resolved.text_path());
        let at = if resolved.value.pointer(&at).is_some_and(Value::is_object) { at.as_str() } else { "" };
        if !found.class.starts_with("Transformers") {
            rope::construct(&resolved.model_type, resolved.text(), at, &mut self.trace);
        } else if tree.find("model.rotary_emb").is_some() {
            rope::construct_by_transformers(resolved.text(), at, &mut self.trace);
        }
        for why in std::mem::take(&mut tree.unknown) {
            let mut e = Event::new(Stage::Init, Effect::Keeps, Kind::Unknown);
            e.detail = why;
            self.trace.events.push(e);
        }
        hints::broken_patterns(&method, place.as_ref(), &mut self.trace);
        hints::dead_entries(&method, place.as_ref(), &tree, &mut self.trace);
        hints::devices(place.as_ref(), &tree, &mut self.trace);

        let unbuilt = |e: &Event| {
            e.effect == Effect::Refuses
                && matches!(e.kind, Kind::TowerConfigMissing | Kind::ConfigField | Kind::PatternBroken)
        };
        if tree.sizeless || self.trace.events.iter().any(unbuilt) {
            // Nothing is built, so nothing can be said of where tensors would land.
            return Ok(());
        }
        if cp.config_only {
            return Err(unknown("only the config was given, so weights, index and other files were not looked at"));
        }
        let selection = files::select(cp, target, &mut self.trace);
        if selection.pickles {
            return Err(unknown("the weights are pickles (.bin, .pt), which are not read"));
        }
        self.names_only = selection.absent;
        if !selection.absent && files::lacks(cp, &class.beside, &mut self.trace) {
            return Ok(());
        }
        let rename = |name: &str| outer.rename(name).into_owned();
        let ahead = match () {
            () if adapted => Some(Ahead::of_adapter(cp, &selection, &tree, &rename, &found)),
            () => class.listed.then(|| Ahead::all(cp, &selection)),
        };
        let mut stream = Stream::new(&mut tree, &mut self.trace, &rename, method.is_some());
        stream.ahead = ahead.unwrap_or_default();
        stream.all(cp, &selection);
        (self.tensors, self.bytes) = (stream.streamed, stream.bytes);
        let (placed, skipped) = (stream.placed, std::mem::take(&mut stream.skipped));
        self.trace.events.extend(files::compare(cp, &selection));
        if selection.absent {
            let mut e = Event::new(Stage::Load, Effect::Keeps, Kind::WeightsAbsent);
            e.detail = selection.names.len().to_string();
            self.trace.events.push(e);
            if selection.names.is_empty() {
                let mut e = Event::new(Stage::Load, Effect::Keeps, Kind::Unknown);
                e.detail = "the weights are not here, and no index names their tensors".into();
                self.trace.events.push(e);
            }
        }
        tie::check_skipped(&tree, &skipped, &mut self.trace);
        if placed > 0
            || self.trace.first_refusal().is_none()
                && target.load_format != "dummy"
                && !(selection.absent && selection.names.is_empty())
        {
            let facts = outcome::Facts { untracked: method.is_some() || tree.untracked(), untied_by };
            self.garbage = outcome::judge(&tree, &facts, &mut self.trace);
        }
        let plain = tree
            .modules
            .iter()
            .filter(|m| m.kind == facts::NodeKind::Embedding && m.slots.iter().any(|s| s.name == "weight"));
        self.no_retie = plain.count() > 1;
        self.garbage += self
            .trace
            .events
            .iter()
            .filter(|e| e.effect == Effect::Damages && matches!(e.kind, Kind::Cut | Kind::Cast | Kind::UnlistedLinear))
            .count();
        self.trace.events.sort_by_key(|e| e.stage);
        Ok(())
    }
}

fn unknown(detail: &str) -> Box<Event> {
    let mut e = Event::new(Stage::Config, Effect::Keeps, Kind::Unknown);
    e.detail = detail.to_owned();
    Box::new(e)
}

/// A draft model served as the main one. Most assert first of all that there is a target; some layers of multi-token
/// prediction can be built without.
fn draft(architecture: &str, method: &str, raises: Option<&str>) -> Box<Event> {
    let mut e = Event::new(Stage::Config, Effect::Keeps, Kind::DraftModel);
    if let Some(error) = raises {
        (e.stage, e.effect) = (Stage::Init, Effect::Refuses);
        e.error = Some(Raised { error_type: error.into(), text: String::new() });
    }
    e.pointer = Some("/architectures".into());
    e.detail = format!(
        "{architecture} is a draft model for speculative decoding: vLLM takes it next to its target, with \
         `--speculative-config '{{\"model\": \"…\", \"method\": \"{method}\"}}'`"
    );
    Box::new(e)
}

/// `config.json` as an object, or vLLM's refusal.
fn read_config(cp: &Checkpoint) -> Result<&Value, Box<Event>> {
    let refuse = |kind, error_type: &str, text: &str, detail: &str| {
        let mut e = Event::new(Stage::Config, Effect::Refuses, kind);
        e.file = Some("config.json".into());
        e.detail = detail.to_owned();
        e.error = Some(Raised { error_type: error_type.into(), text: text.into() });
        Box::new(e)
    };
    // `get_config`: both together, and `config.json` only fills in what `params.json` lacks.
    let consolidated = |name: &str| name.starts_with("consolidated") && name.ends_with(".safetensors");
    let top = |named: &dyn Fn(&str) -> bool| cp.files.iter().any(|f| !f.name.contains('/') && named(&f.name));
    if top(&|name| name == "params.json") && top(&consolidated) {
        return Err(unknown(
            "params.json, Mistral's own config, is not simulated yet: beside consolidated weights it is the one that counts",
        ));
    }
    match &cp.config {
        Part::Absent => Err(refuse(
            Kind::ConfigMissing,
            "ValidationError",
            "Invalid repository ID or local directory specified: '<dir>'.\nPlease verify the following requirements:\n\
             1. Provide a valid Hugging Face repository ID.\n\
             2. Specify a local directory that contains a recognized configuration file.\n   \
             - For Hugging Face models: ensure the presence of a 'config.json'.\n   \
             - For Mistral models: ensure the presence of a 'params.json'.\n",
            "",
        )),
        Part::Broken(defects) => Err(refuse(
            Kind::ConfigBroken,
            "OSError",
            "It looks like the config file at '<dir>/config.json' is not a valid JSON file.",
            defects.first().map_or("", |d| d.text.as_str()),
        )),
        Part::Present(json) if !json.value.is_object() => Err(refuse(
            Kind::ConfigBroken,
            "OSError",
            "It looks like the config file at '<dir>/config.json' is not a valid JSON file.",
            "it is not a JSON object",
        )),
        Part::Present(json) => Ok(&json.value),
    }
}
