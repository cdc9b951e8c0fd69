//! Reads `rules/facts`: what the real vLLM told about its classes, configs and registry, as tables with expressions.
//!
//! The files are made by `tools/facts/extract.py`; `rules/facts/README.md` says what every field means. They are embedded,
//! and a run parses only those of the class at hand.

pub mod embedded;
pub mod expr;
mod loader;
mod refusal;

pub use embedded::{class, config, names, newest, registry, text, version, versions};
pub use expr::{Absent, Expr, Scope};
pub use loader::{Aside, Dialect, Joined, Loader, MapperFile, Outer, Route, Row, Stacked, Substr};
pub use refusal::{Foreign, Refusal};
use serde::Deserialize;
use serde_json::Value;

/// One class file: `classes/<Class>.json`.
#[derive(Debug, Deserialize)]
pub struct ClassFile {
    /// vLLM class name.
    pub class: String,
    /// Derives from `SupportsQuant` (the quantization config is renamed and merged on construction).
    #[serde(default)]
    pub supports_quant: bool,
    /// `packed_modules_mapping`.
    #[serde(default)]
    pub packed: serde_json::Map<String, Value>,
    /// `hf_to_vllm_mapper` of the class.
    #[serde(default)]
    pub mapper: Option<MapperFile>,
    /// How the head stands to the embedding; absent when the class builds no head.
    #[serde(default)]
    pub tie: Option<Tie>,
    /// Whose `tie_word_embeddings` goes into which sub-config (`VllmConfig.with_hf_config`), by dotted name, in order.
    #[serde(default = "text_config")]
    pub tie_into: Vec<(String, String)>,
    /// Configs that the constructor refuses.
    #[serde(default)]
    pub refuses: Vec<Refusal>,
    /// What it says of a config of another class.
    #[serde(default)]
    pub foreign: Option<Foreign>,
    /// A pooling model of vLLM's own, which no adapter changes.
    #[serde(default)]
    pub pooling: bool,
    /// Neither that nor one that generates text.
    #[serde(default)]
    pub base: bool,
    /// Its loader makes a list of all tensors first.
    #[serde(default)]
    pub listed: bool,
    /// It is given the whole config, text config and all, as wrappers are (build.rs sees it in the tree).
    #[serde(default)]
    pub nested: bool,
    /// Files of weights that it reads besides the shards (`secondary_weights`).
    #[serde(default)]
    pub beside: Vec<String>,
    /// What has to hold of the config for the file to say anything of it.
    #[serde(default)]
    pub only: Vec<Expr>,
    /// What could not be expressed: a plan of this class is `unknown` for these reasons.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// The module tree in construction order.
    pub tree: Node,
}

fn text_config() -> Vec<(String, String)> {
    vec![(String::new(), "text_config".into())]
}

/// Tie behaviour of a class.
#[derive(Debug, Deserialize)]
pub struct Tie {
    /// Path of the head, relative to the class root.
    pub head: String,
    /// Path of the embedding, relative to the class root.
    pub embed: String,
    /// Condition under which the head shares the embedding's weight.
    #[serde(rename = "if")]
    pub when: Expr,
}

/// Kinds of modules that need their own treatment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// `ReplicatedLinear`.
    Replicated,
    /// `ColumnParallelLinear`.
    Column,
    /// `RowParallelLinear`.
    Row,
    /// `MergedColumnParallelLinear`.
    Merged,
    /// `QKVParallelLinear`.
    Qkv,
    /// `GateLinear` (a replicated router).
    Gate,
    /// `VocabParallelEmbedding`.
    Embedding,
    /// `ParallelLMHead`.
    LmHead,
    /// `RoutedExperts`.
    Experts,
    /// `Attention` and relatives: own KV-cache scales.
    Attention,
    /// Normalisation layers.
    Norm,
    /// Convolutions.
    Conv,
    /// `torch.nn.Linear`.
    TorchLinear,
    /// `StageMissingLayer` / `PPMissingLayer`: swallows everything below it.
    Placeholder,
    /// Anything else.
    #[default]
    Plain,
}

impl NodeKind {
    /// `LinearBase` and its subclasses.
    pub fn is_linear(self) -> bool {
        matches!(self, Self::Replicated | Self::Column | Self::Row | Self::Merged | Self::Qkv | Self::Gate)
    }

    /// Linears that pack several checkpoint modules and have a `load_weights` of their own.
    pub fn is_fused(self) -> bool {
        matches!(self, Self::Merged | Self::Qkv)
    }
}

/// One module of the tree. What is in a file and not here would be silently lost, so nothing may be.
#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Attribute name; none at the root and for the elements of a list.
    #[serde(default)]
    pub name: String,
    /// Python class name.
    #[serde(default)]
    pub cls: String,
    /// What kind of module it is.
    #[serde(default)]
    pub kind: NodeKind,
    /// Present only if.
    #[serde(default, rename = "if")]
    pub when: Option<Expr>,
    /// A `ModuleList`: index variable and count; `nodes` are the alternatives for an element.
    #[serde(default)]
    pub each: Option<(String, Expr)>,
    /// Children in construction order.
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// Prefix under which it is offered to the quantization config: `=` is its own path; none: built without one.
    #[serde(default)]
    pub quant: Option<String>,
    /// Offered only if.
    #[serde(default)]
    pub quant_if: Option<Expr>,
    /// Input features.
    #[serde(default, rename = "in")]
    pub input: Option<Expr>,
    /// Output features (rows of an embedding, intermediate size of experts).
    #[serde(default, rename = "out")]
    pub output: Option<Expr>,
    /// The weight has a dimension of one in the middle: a convolution along time.
    #[serde(default)]
    pub unsqueezed: bool,
    /// The weight takes numbered parts only.
    #[serde(default)]
    pub numbered: bool,
    /// Offered before the list that it lies in: of several refusals that decides the first, which is not followed here.
    #[serde(default)]
    pub ahead: bool,
    /// Number of experts.
    #[serde(default)]
    pub count: Option<Expr>,
    /// Checkpoint names of the expert projections: gate, down, up.
    #[serde(default)]
    pub names: Vec<String>,
    /// Tensors of all experts are stored `[experts, in, out]`.
    #[serde(default)]
    pub turned: bool,
    /// `false`: experts without a gate, whose `names` say so, too.
    #[serde(default)]
    pub gated: Option<bool>,
    /// Has a bias.
    #[serde(default)]
    pub bias: Option<BoolOr>,
    /// Fused parts: checkpoint name and size along the output dimension.
    #[serde(default)]
    pub parts: Vec<(String, Expr)>,
    /// Own parameters.
    #[serde(default, deserialize_with = "ordered")]
    pub params: Vec<(String, ParamFile)>,
    /// Own persistent buffers.
    #[serde(default, deserialize_with = "ordered")]
    pub buffers: Vec<(String, ParamFile)>,
    /// `load_weights` of its own.
    #[serde(default)]
    pub loader: Option<Loader>,
    /// Sub-config that expressions from here down are evaluated in, by dotted name.
    #[serde(default)]
    pub config: Option<String>,
    /// The subtree is another class's file; `auto`: that of the class that the sub-config names.
    #[serde(default, rename = "use")]
    pub uses: Option<String>,
    /// With `use`: what stands for the subtree's path in the prefixes under which it is offered.
    #[serde(default)]
    pub quant_base: Option<String>,
    /// A second name of another module, by path relative to the class root.
    #[serde(default)]
    pub same: Option<String>,
}

/// A parameter or buffer: its shape, and its dtype when that is not the model's.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum ParamFile {
    /// Shape only.
    Shape(Vec<Expr>),
    /// Shape, dtype, condition.
    Full {
        /// Dimensions.
        shape: Vec<Expr>,
        /// torch dtype name.
        #[serde(default)]
        dtype: Option<String>,
        /// Present only if.
        #[serde(default, rename = "if")]
        when: Option<Expr>,
    },
}

/// A JSON object in the file's order.
fn ordered<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Vec<(String, ParamFile)>, D::Error> {
    let map = serde_json::Map::<String, Value>::deserialize(d)?;
    map.into_iter().map(|(k, v)| Ok((k, serde_json::from_value(v).map_err(serde::de::Error::custom)?))).collect()
}

/// `true` or a condition.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum BoolOr {
    /// Always or never.
    Flag(bool),
    /// Depends on the config.
    When(Expr),
}

/// `registry.json`.
#[derive(Debug, Deserialize)]
pub struct Registry {
    /// Architecture name → class, in vLLM's order.
    pub architectures: serde_json::Map<String, Value>,
    /// Dropped architectures → last version that had them.
    #[serde(default)]
    pub removed: serde_json::Map<String, Value>,
    /// Architectures that a plugin serves → vLLM's hint.
    #[serde(default)]
    pub plugins: serde_json::Map<String, Value>,
    /// Names of the quantization methods, as vLLM prints them.
    #[serde(default)]
    pub quant_methods: Vec<String>,
}

/// `configs/<model_type>.json`: one small program.
#[derive(Debug, Deserialize)]
pub struct ConfigFile {
    /// `model_type`.
    pub model_type: String,
    /// Python class.
    pub class: String,
    /// Its module; empty where it is the checkpoint's own.
    #[serde(default)]
    pub module: String,
    /// Field → default and type.
    #[serde(default)]
    pub fields: serde_json::Map<String, Value>,
    /// Other spellings of a field (`attribute_map`).
    #[serde(default)]
    pub aliases: std::collections::BTreeMap<String, String>,
    /// A sub-config whose fields count as the config's own where it has none of that name (`ColPaliConfig`).
    #[serde(default)]
    pub flat: Option<String>,
    /// Sub-configs: field → model type and what stands there when absent.
    #[serde(default)]
    pub sub: serde_json::Map<String, Value>,
    /// Sub-configs of whatever class their own `model_type` names (`AutoConfig`).
    #[serde(default)]
    pub auto: std::collections::BTreeMap<String, AutoConfig>,
    /// Dotted name of what `get_text_config()` gives, where that is not `text_config`.
    #[serde(default)]
    pub text: Option<String>,
    /// Derived fields, in order, after defaults.
    #[serde(default)]
    pub derive: Vec<(String, Expr)>,
    /// Validators that raise.
    #[serde(default)]
    pub checks: Vec<Check>,
}

/// A sub-config of any class.
#[derive(Debug, Deserialize)]
pub struct AutoConfig {
    /// Model type of one that names none; null: it has to.
    pub model_type: Option<String>,
    /// What stands there when there is none at all, itself without its defaults.
    pub default: Option<Value>,
    /// What stands there alone is also below what is given.
    #[serde(default)]
    pub merge: bool,
    /// Key of `config.json`, where it is not the field's name.
    #[serde(default)]
    pub from: Option<String>,
}

/// A validator of a config class.
#[derive(Debug, Deserialize)]
pub struct Check {
    /// Must be true.
    pub ok: Expr,
    /// Exception type.
    pub error: String,
    /// Message with `{field}` placeholders.
    pub message: String,
}

/// `names.json`: names beyond vLLM's own registry.
#[derive(Debug, Deserialize)]
pub struct Names {
    /// Model types that transformers or vLLM can parse.
    pub model_types: Vec<String>,
    /// Model type → architecture that stands in when none is named.
    pub base: std::collections::BTreeMap<String, String>,
    /// The same for a language model inside a wrapper (`MODEL_FOR_CAUSAL_LM_MAPPING_NAMES`).
    #[serde(default)]
    pub causal: std::collections::BTreeMap<String, String>,
    /// Model classes of transformers.
    #[serde(default)]
    pub classes: Vec<String>,
    /// Those of them that the Transformers backend does not take.
    #[serde(default)]
    pub incompatible: Vec<String>,
    /// Model types whose config class is chosen by vLLM: remote code for them is not looked at.
    #[serde(default)]
    pub own: Vec<String>,
    /// Architecture → model type, where config.json may name none.
    #[serde(default)]
    pub by_architecture: std::collections::BTreeMap<String, String>,
}

/// Number of a named shard of `QKVParallelLinear` (`BasevLLMParameter._shard_id_as_int`).
pub fn facts_shard(id: &str) -> Option<u16> {
    ["q", "k", "v"].iter().position(|s| *s == id).and_then(|i| u16::try_from(i).ok())
}
