//! Fact rows of loaders and of name mappers.

use super::{Expr, Scope};
use serde::Deserialize;
use serde_json::Value;

/// How a module with its own `load_weights` goes about it.
#[derive(Debug, Deserialize)]
pub struct Loader {
    /// `auto` (AutoWeightsLoader), `keyed`, `routed`, or the name of a loop that is not known.
    pub kind: String,
    /// Mapper passed to it; of `keyed` the renames before anything else.
    #[serde(default)]
    pub mapper: Option<MapperFile>,
    /// Names it may ignore, by prefix.
    #[serde(default)]
    pub ignore_prefixes: Vec<String>,
    /// Names it may ignore under a condition, by prefix.
    #[serde(default)]
    pub ignore_prefixes_if: Vec<(Expr, Vec<String>)>,
    /// Layers whose names it may ignore: prefix, first index, how many (`Base.ignore_unexpected_prefixes` of the
    /// Transformers backend, for the layers of a drafter).
    #[serde(default)]
    pub ignore_layers: Option<(String, Expr, Expr)>,
    /// Names it may ignore, by suffix.
    #[serde(default)]
    pub ignore_suffixes: Vec<String>,
    /// `keyed`: which loop.
    #[serde(default)]
    pub dialect: Dialect,
    /// `auto`: rows of query and key weights are put in another order for the rotary embedding; numbers of query and
    /// of key heads (`Llama4ForCausalLM.permute_qk_weight_for_rotary`).
    #[serde(default)]
    pub permute: Option<(Expr, Expr)>,
    /// `auto`: segments of names that are replaced before anything else (`MistralForCausalLM.maybe_remap_mistral`).
    #[serde(default)]
    pub segments: Vec<(String, String)>,
    /// List elements that are left out: prefix, first index (null: as many as are built), how many (null: all).
    #[serde(default)]
    pub skip: Option<(String, Expr, Expr)>,
    /// `auto`: a prefix for names that begin with none of the others (`_add_transformer_prefix`).
    #[serde(default)]
    pub prefix: Option<(String, Vec<String>)>,
    /// `auto`: two-dimensional weights with one of these in their names are stored the other way round
    /// (`GPT2Model._transpose_conv1d`).
    #[serde(default)]
    pub turned: Vec<String>,
    /// `auto`: a tensor of one dimension with this in its name is a matrix of one row.
    #[serde(default)]
    pub one_row: Option<String>,
    /// `auto`: tensors with this in their names lose a first dimension of 1.
    #[serde(default)]
    pub squeezed: Option<String>,
    /// `auto`: tensors of two projections whose heads take turns: part of the name, what it becomes, number of heads and
    /// rows of one (`TeleChat2Model._split_key_value`).
    #[serde(default)]
    pub halves: Option<(String, [String; 2], Expr, Expr)>,
    /// `auto`: weights with these endings bring a bias of zeros along (`_create_fake_bias_for_k_proj`).
    #[serde(default)]
    pub zero_bias: Vec<String>,
    /// `auto`: two tensors that are one after the other in a parameter, which gets them when all have come
    /// (`_get_weights_with_merged_embedding`).
    #[serde(default)]
    pub joined: Option<Joined>,
    /// `auto`: matrices with this in their names hold the pixels of a patch, which become a kernel: channels and size
    /// (`BagelForConditionalGeneration.load_weights`).
    #[serde(default)]
    pub patches: Option<(String, Expr, Expr)>,
    /// `routed`: which part of the model takes which names; what none takes is passed over.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// `routed`: it does not say what it has loaded, so nothing is missed.
    #[serde(default)]
    pub untracked: bool,
    /// `auto`: a head that gets a bias when the checkpoint has one (`CausalMixin.load_weights`).
    #[serde(default)]
    pub head_bias: Option<String>,
    /// `auto`: tensors that go past AutoWeightsLoader, to one module.
    #[serde(default)]
    pub aside: Option<Aside>,
    /// `auto`: a prefix for all names of a checkpoint.
    #[serde(default)]
    pub outer: Option<Outer>,
    /// `auto`: a parameter that takes the values of another when nothing came for it (`BertForMaskedLM.load_weights`).
    #[serde(default)]
    pub filled: Option<String>,
    /// `auto`: a loop that says nothing of names it has no place for (`Gemma4Model.load_weights` of vLLM 0.30).
    #[serde(default)]
    pub lenient: bool,
    /// `keyed`: rows of `stacked_params_mapping`: parameter, name in the checkpoint, shard.
    #[serde(default)]
    pub stacked: Vec<(String, String, Value)>,
    /// `keyed`: stacked parameters that fall back to the plain name when the module is not there.
    #[serde(default)]
    pub optional: Vec<String>,
    /// `keyed`: names that are no parameter and begin with one of these raise where others are passed over.
    #[serde(default)]
    pub strict: Vec<String>,
    /// `keyed`: a row of `stacked` that leads to no parameter raises where other names are passed over.
    #[serde(default)]
    pub strict_rows: bool,
    /// `keyed`: persistent buffers are found, too.
    #[serde(default)]
    pub buffers: bool,
    /// `keyed`: the text of the `ValueError` for a name that is no parameter, `{}` being the name in the file.
    #[serde(default)]
    pub stranger: Option<String>,
    /// `keyed`: number of attention sinks that are read.
    #[serde(default)]
    pub sinks: Option<Expr>,
    /// `keyed`: experts may come in one piece (`lenient`: as `HYV4Model` has it, else as `RoutedExperts` has).
    #[serde(default)]
    pub banks: bool,
    /// `keyed`: what an expert's gate, down and up projections are called, where its module knows other names.
    #[serde(default)]
    pub expert_names: Option<[String; 3]>,
    /// `keyed`: an expert's tensor without a parameter raises where others are passed over.
    #[serde(default)]
    pub strict_experts: bool,
    /// `keyed`: names of tensors with all experts of a layer: part of the name, what it becomes, and 0, 1, 2 for gate,
    /// up, down.
    #[serde(default)]
    pub banked: Vec<(String, String, usize)>,
    /// `keyed`: a linear that is not fused takes rows of queries, keys and values: numbers of query and of key rows.
    #[serde(default)]
    pub slices: Option<(Expr, Expr)>,
    /// `keyed`: tables that lie one after the other in one embedding: rows of all before what their index adds.
    #[serde(default)]
    pub tables: Option<Expr>,
    /// `keyed`: rows of queries and keys change places within heads of this size, where they are not quantized.
    #[serde(default)]
    pub heads: Option<Expr>,
    /// `keyed`: names with one of these in them are copied as a whole, whatever their module is.
    #[serde(default)]
    pub exact: Vec<String>,
    /// `keyed`: other names of tensors with so many dimensions: their number, part of the name, what it becomes.
    #[serde(default)]
    pub ranked: Vec<(usize, String, String)>,
    /// `keyed`: parameters below are loaded as `KimiGatedDeltaNetAttention` has it: convolutions without their middle
    /// dimension, `A_log` of four dimensions.
    #[serde(default)]
    pub kda: bool,
    /// `keyed`: number of experts for text, before those for pictures.
    #[serde(default)]
    pub text_experts: Option<Expr>,
    /// `keyed`: scales of the key-value cache have other names, and none is missed (`maybe_remap_kv_scale_name`).
    #[serde(default)]
    pub cache_scales: bool,
    /// `keyed`: it was read for models without quantization only.
    #[serde(default)]
    pub unquantized: bool,
    /// `keyed`: first index and number of layers that belong to a drafter and are skipped.
    #[serde(default)]
    pub skip_layers: Option<(Expr, Expr)>,
    /// Parameters and buffers below that the constructor gives their values, and this leaves alone: ends of their paths.
    #[serde(default)]
    pub own: Vec<String>,
    /// It or a direct child holds a `quant_config`, so KV-scale renames apply.
    #[serde(default)]
    pub quant_aware: bool,
}

/// Tensors that a module takes by the last word of their names: what it has no parameter for is passed over.
#[derive(Debug, Clone, Deserialize)]
pub struct Aside {
    /// The module.
    pub module: String,
    /// They have one of these in their names (`ColQwen3Model._is_proj_weight`).
    #[serde(default)]
    pub within: Vec<String>,
    /// Their names end in this, and they are copied with broadcasting (`ColBERTMixin._load_colbert_weights`).
    #[serde(default)]
    pub ending: Option<String>,
    /// Width of a projection that is made when it comes.
    pub width: Expr,
}

/// A prefix for the names of a checkpoint that has some with one of these beginnings, and none with one of those
/// (`ColQwen3Model.load_weights`).
#[derive(Debug, Clone, Deserialize)]
pub struct Outer {
    /// The prefix.
    pub add: String,
    /// There is a name that begins so.
    pub any: Vec<String>,
    /// There is none that begins so.
    pub none: Vec<String>,
}

impl Outer {
    /// Whether it is for a checkpoint with these names.
    pub fn is_for<'n>(&self, names: impl Iterator<Item = &'n str>) -> bool {
        let mut found = false;
        for name in names {
            if self.none.iter().any(|p| name.starts_with(p.as_str())) {
                return false;
            }
            found |= self.any.iter().any(|p| name.starts_with(p.as_str()));
        }
        found
    }
}

/// Names that begin alike and go to one part of the model.
#[derive(Debug, Deserialize)]
pub struct Route {
    /// What they begin with.
    pub from: Vec<String>,
    /// Only where this holds.
    #[serde(default, rename = "if")]
    pub when: Option<Expr>,
    /// How many components are taken off.
    #[serde(default)]
    pub cut: usize,
    /// Path of the part; the module itself when empty.
    pub to: String,
    /// How the names are loaded there, where the part has no `load_weights` or another is called.
    #[serde(default)]
    pub by: Option<Loader>,
    /// They wait until everything else has been loaded.
    #[serde(default)]
    pub late: bool,
    /// Where this holds, an assertion fails if there is no such part.
    #[serde(default)]
    pub asserted: Option<Expr>,
}

/// Two tensors for one parameter.
#[derive(Debug, Clone, Deserialize)]
pub struct Joined {
    /// Parts of their names.
    pub from: [String; 2],
    /// Name that both together get.
    pub to: String,
    /// What vLLM raises where one is missing: error type and text, for either.
    pub without: [(String, String); 2],
}

/// A hand-written loop over `dict(named_parameters())`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `DeepseekV2Model`.
    #[default]
    Deepseek,
    /// `Llama4Model`.
    Llama4,
    /// `Llama4ForConditionalGeneration`: language model first, then everything else by key.
    Llama4Wrapper,
    /// `GptOssModel._load_weights_other`.
    GptOss,
    /// `FalconModel`: the rows of `stacked`, then every parameter by its name, fused ones as a whole, biases without a
    /// place left out.
    Whole,
    /// `MiMoV2Model`, `ModernBertModel`, `HYV4Model`, `VariableResolutionResamplerModel`: what is no parameter is passed over.
    Lenient,
    /// `PixtralHFVisionModel`: the rows of `stacked`, then the name as it is.
    Rows,
    /// `Ernie4_5_VLMoeForCausalLM`: experts of text and of pictures.
    Ernie45Vl,
    /// `DeepseekV4Model`: experts by their own rows, sinks as many as there are, everything else by its name.
    DeepseekV4,
}

/// A `WeightsMapper`, pass by pass, in vLLM's order.
#[derive(Debug, Default, Deserialize, Clone)]
pub struct MapperFile {
    /// Regular expressions; `None` drops.
    #[serde(default)]
    pub regex: Vec<Row>,
    /// Substrings; `None` drops.
    #[serde(default)]
    pub substr: Vec<Substr>,
    /// Stacked rows.
    #[serde(default)]
    pub stacked: Vec<Stacked>,
    /// Prefixes; `None` drops.
    #[serde(default)]
    pub prefix: Vec<Row>,
    /// Suffixes; `None` drops.
    #[serde(default)]
    pub suffix: Vec<Row>,
}

/// A row of a pass: fixed, or for some configs only.
#[derive(Debug, Deserialize, Clone)]
#[serde(untagged)]
pub enum Row {
    /// `[from, to]`; null drops.
    Fixed(String, Option<String>),
    /// `{"if": EXPR, "from", "to"}`.
    When {
        /// Only where this holds.
        #[serde(rename = "if")]
        when: Expr,
        /// What it looks for.
        from: String,
        /// What it becomes; null drops.
        #[serde(default)]
        to: Option<String>,
    },
}

impl Row {
    /// What it looks for, and what that becomes, where the row is there.
    pub fn get(&self, scope: &Scope) -> Option<(&str, Option<&str>)> {
        match self {
            Row::Fixed(from, to) => Some((from, to.as_deref())),
            Row::When { when, from, to } => when.truth(scope).then_some((from.as_str(), to.as_deref())),
        }
    }
}

/// A row of the substring pass: as the others have it, or one that drops for each index.
#[derive(Debug, Deserialize, Clone)]
#[serde(untagged)]
pub enum Substr {
    /// `{"each": [var, count], "if": EXPR, "from"}`: drops.
    Each {
        /// Index variable and count.
        each: (String, Expr),
        /// Only for indices where this holds.
        #[serde(default, rename = "if")]
        when: Option<Expr>,
        /// Template of the substring.
        from: String,
    },
    /// As in the other passes.
    Row(Row),
}

/// A row of the stacked pass: fixed, or one for each index.
#[derive(Debug, Deserialize, Clone)]
#[serde(untagged)]
pub enum Stacked {
    /// `[from, [to, shard]]`.
    Fixed(String, (String, Value)),
    /// `{"each": [var, count], "if": EXPR, "from", "to", "shard"}`.
    Each {
        /// Index variable and count.
        each: (String, Expr),
        /// Only for indices where this holds.
        #[serde(default, rename = "if")]
        when: Option<Expr>,
        /// Template of the substring.
        from: String,
        /// Template of its replacement.
        to: String,
        /// Shard id, or list of shard ids.
        shard: Value,
    },
    /// `{"if": EXPR, "from", "to", "shard"}`.
    When {
        /// Only where this holds.
        #[serde(rename = "if")]
        when: Expr,
        /// Substring.
        from: String,
        /// What it becomes.
        to: String,
        /// The part.
        shard: Value,
    },
}
