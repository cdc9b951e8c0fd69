//! Quantization methods: what is excluded and by which entry, what a module becomes, which parameters it gets.
//!
//! Every method answers the same questions, so that the diff of 16-bit tensors against an ignore list is one rule.

pub mod awq;
pub mod compressed_tensors;
pub mod deepseek_v4;
pub mod fp8;
pub mod gptq;
pub mod inc;
pub mod modelopt;
pub mod mxfp4;
pub mod online;
pub mod quark;

mod fnmatch;
mod kfirst;
mod kv_cache;
mod params;
mod py;
mod skip;

use super::mapper::Mapper;
use super::trace::Raised;
use crate::checkpoint::Checkpoint;
use crate::facts::{ClassFile, Expr, Scope};
use serde_json::Value;

/// What kind of vLLM module is offered to the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Offered {
    /// `LinearBase` and subclasses.
    Linear,
    /// `ParallelLMHead`.
    Head,
    /// `VocabParallelEmbedding`.
    Embedding,
    /// `Attention`: the KV-cache method.
    Attention,
    /// `RoutedExperts`.
    Experts,
}

/// A module under construction, as `get_quant_method` and `create_weights` see it.
#[derive(Debug, Clone)]
pub struct Layer<'a> {
    /// What it is.
    pub offered: Offered,
    /// The prefix under which it is offered (vLLM name; empty in some classes).
    pub prefix: &'a str,
    /// Python class name, e.g. `QKVParallelLinear`: class targets match against it.
    pub class: &'a str,
    /// Whether its loader cuts along the input dimension (`RowParallelLinear`).
    pub row: bool,
    /// Input features K; embedding dimension; hidden size of experts.
    pub input: u64,
    /// Output features of each fused part (one entry when not fused); vocabulary rows; intermediate size M of experts.
    pub outputs: &'a [u64],
    /// Number of experts (experts only).
    pub experts: u64,
    /// Checkpoint names of the expert projections: gate, down, up (experts only).
    pub expert_names: [&'a str; 3],
    /// Whether the class gives it a bias.
    pub bias: bool,
    /// Attention: KV heads, for `attn_head` KV-cache strategy.
    pub kv_heads: u64,
}

/// How a parameter takes a stored tensor (vllm/model_executor/parameter.py).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Load {
    /// `ModelWeightParameter`, `GroupQuantScaleParameter`: cut along output and input dimension.
    Both,
    /// `ChannelQuantScaleParameter`: cut along the output dimension only.
    Output,
    /// `PackedvLLMParameter` packed along the input dimension (WNA16 `weight_packed`): as `Both`.
    PackedInput,
    /// `PackedColumnParameter` / `PackedvLLMParameter` packed along the output dimension (zero points): `Output` or `Both`
    /// with sizes divided by the factor (values per stored element: `num / den`).
    PackedOutput {
        /// Whether the input dimension is cut too.
        both: bool,
        /// Numerator of the pack factor (32).
        num: u32,
        /// Denominator of the pack factor (bits).
        den: u32,
    },
    /// `ChannelQuantScaleParameter` of one column, which Quark stores as a vector.
    Column,
    /// `PerTensorScaleParameter`: one slot a fused part.
    PerTensor,
    /// `BlockQuantScaleParameter`: sizes divided by the block along the output dimension.
    Block {
        /// Rows of a block.
        rows: u64,
    },
    /// GPTQ's and AWQ's layout `[input, output]`: cut along both; a stored element holds `per` values of the output
    /// dimension.
    Turned {
        /// Values of the output dimension a stored element.
        per: u64,
    },
    /// Quark's scales of such integers: as `Turned`, one value an element, and too few columns are filled up with zeros.
    TurnedPadded,
    /// Quark's experts of such integers, as they are turned while they load.
    Repacked {
        /// Rows that one stored column becomes.
        rows: u64,
        /// Whether two stored rows become one column.
        halved: bool,
        /// Columns that a stored row becomes, where groups are made smaller.
        repeat: u64,
    },
    /// `KVCacheScaleParameter`: any tensor of one element.
    Scalar,
    /// Numbered parts only (`_make_fused_conv1d_weight_loader`), which `AutoWeightsLoader` never gives: every tensor raises.
    Numbered,
    /// `BasevLLMParameter`: whole, for every part (`weight_shape`, `input_scale` of one element).
    Whole,
}

/// Element type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// The model's dtype (bf16, fp16 or fp32).
    Model,
    /// 32-bit float.
    F32,
    /// float8_e4m3fn.
    F8E4M3,
    /// 8-bit signed.
    I8,
    /// 8-bit unsigned: copied from float8_e8m0fnu, it gets rounded values, not the exponents.
    U8,
    /// Exponents in 8 bit, which float8_e8m0fnu gives as they are.
    E8M0,
    /// 32-bit signed.
    I32,
    /// 64-bit signed.
    I64,
}

/// One parameter that a method creates on a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Attribute name, e.g. `weight_packed`; for experts with its `w13_` / `w2_` prefix.
    pub name: &'static str,
    /// Full shape at tensor-parallel size 1.
    pub shape: Vec<u64>,
    /// Element type.
    pub element: Element,
    /// How a stored tensor is put into it.
    pub load: Load,
    /// vLLM never reads it (`weight_shape`), so its absence harms nothing.
    pub unread: bool,
}

/// The scheme of `CompressedTensorsW4A8Fp8`, which vLLM takes on devices of compute capability 9.0 and no others.
pub const HOPPER_ONLY: &str = "W4A8 (FP8 activations, group 128)";

/// What a method makes of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Built {
    /// Not quantized: the class's own plain parameters. `entry` is the index of the ignore entry that did it, if one did.
    Plain {
        /// Index into the ignore list of the file.
        entry: Option<usize>,
    },
    /// Quantized: these parameters instead of `weight`, and names registered as `None` (asking for them fails differently).
    Quantized {
        /// A short name of the scheme for messages, e.g. `W4A16 (pack-quantized, group 32)`.
        scheme: String,
        /// Created parameters.
        params: Vec<Param>,
        /// Attributes registered as `None`.
        nones: Vec<&'static str>,
    },
    /// vLLM raises while building the module.
    Refused {
        /// Why, as a kind of event.
        why: super::trace::Kind,
        /// What it raises.
        raised: Raised,
    },
}

/// An entry of an ignore or target list that matched no module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadEntry {
    /// JSON pointer of the entry, relative to the quantization config.
    pub pointer: String,
    /// The entry as written.
    pub entry: String,
    /// The entry as vLLM compares it, after renaming.
    pub name: String,
    /// Whether it stands in the ignore list (else it is a target).
    pub ignore: bool,
}

/// How entries of a list of exclusions are compared with a module's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Matching {
    /// Equal, or a pattern after `re:` that matches from the start.
    Patterns,
    /// Equal.
    Exact,
    /// Somewhere inside.
    Substring,
    /// Keys of an object: `-:P` with P matched from the start.
    Rules,
    /// Keys of an object with a width each: equal, the end of the name, or a pattern that is found.
    Widths,
    /// Equal, inside, or by shell wildcards.
    Wildcards,
}

/// Where a method keeps the modules that stay in 16 bit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// JSON pointer of the list, relative to the quantization config.
    pub pointer: String,
    /// How its entries match.
    pub matching: Matching,
}

impl List {
    /// The list's key, for sentences.
    pub fn key(&self) -> &str {
        self.pointer.rsplit('/').next().unwrap_or_default()
    }
}

/// Which names of KV-cache scales `AutoWeightsLoader` renames (`QuantizationConfig.get_cache_scale_mapper`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheScales {
    /// Those that all methods know.
    Common,
    /// Those, and `.k_proj.output_scale` and its like (fp8, quark).
    OutputScales,
}

/// A method that is simulated: vLLM's `QuantizationConfig`, and the `create_weights` of what it chooses.
///
/// The order of use is vLLM's: parsed at stage *config*; then [`Quantizer::see`] once, then, for each class with a mapper or
/// a mapping, [`Quantizer::map_names`] and [`Quantizer::set_packed`], and [`Quantizer::build`] for each module in
/// construction order; at last [`Quantizer::dead_entries`].
pub trait Quantizer: std::fmt::Debug {
    /// vLLM's name of it, after overrides (`auto_gptq` for `gptq`).
    fn name(&self) -> &'static str;

    /// The list of exclusions.
    fn list(&self) -> List;

    /// `maybe_update_config`: some methods look into the headers for what the config leaves out.
    fn see(&mut self, _checkpoint: &Checkpoint) {}

    /// `apply_vllm_mapper`. To be called with each mapper in turn.
    fn map_names(&mut self, rename: &dyn Fn(&str) -> String);

    /// The packed mapping of a class: merged as `SupportsQuant.__new__` does, or replaced as the loader does for the
    /// other classes.
    fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool);

    /// `get_quant_method` and `create_weights` for one module.
    fn build(&mut self, layer: &Layer<'_>) -> Built;

    /// Entries that matched no module that was built so far.
    fn dead_entries(&self) -> Vec<DeadEntry>;

    /// Patterns that do not compile: JSON pointer, relative to the quantization config, and entry.
    fn broken(&self) -> &[(String, String)] {
        &[]
    }

    /// Renames of KV-cache scales.
    fn cache_scales(&self) -> CacheScales {
        CacheScales::Common
    }
}

/// A packed mapping, merged (later parts win) or replaced.
fn set_packed(packed: &mut Vec<(String, Vec<String>)>, mapping: Vec<(String, Vec<String>)>, merge: bool) {
    if !merge {
        *packed = mapping;
        return;
    }
    for (fused, shards) in mapping {
        match packed.iter_mut().find(|(key, _)| *key == fused) {
            Some((_, old)) => *old = shards,
            None => packed.push((fused, shards)),
        }
    }
}

/// The method in effect.
#[derive(Debug, Default)]
pub enum Method {
    /// Unquantized.
    #[default]
    None,
    /// One that is simulated.
    Known(Box<dyn Quantizer>),
    /// A method that vLLM has and we do not simulate yet.
    Unknown(String),
}

impl Method {
    /// Whether the model counts as quantized.
    pub fn is_some(&self) -> bool {
        !matches!(self, Method::None)
    }

    /// vLLM's name of it.
    pub fn name(&self) -> Option<&str> {
        match self {
            Method::None => None,
            Method::Known(q) => Some(q.name()),
            Method::Unknown(name) => Some(name),
        }
    }

    /// Which KV-cache scales are renamed; none for an unquantized model.
    pub fn cache_scales(&self) -> Option<CacheScales> {
        match self {
            Method::None => None,
            Method::Known(q) => Some(q.cache_scales()),
            Method::Unknown(_) => Some(CacheScales::Common),
        }
    }

    /// A class takes the quantization config over: lists are renamed, the packed mapping merged or replaced
    /// (`SupportsQuant.__new__`, `configure_quant_config`; spec B.5).
    pub fn enter_class(&mut self, file: &ClassFile, scope: &Scope) {
        let Method::Known(quantizer) = self else { return };
        // Without a mapper nothing is done to the lists, and some methods do more to them than rename.
        if let Some(mapper) = &file.mapper {
            let mapper = Mapper::new(Some(mapper), scope).rename_only();
            quantizer.map_names(&|name| mapper.rename(name).into_owned());
        }
        let packed = file
            .packed
            .iter()
            .filter_map(|(k, v)| {
                let parts = match v {
                    Value::Object(o) => {
                        let when = o.get("if").and_then(Value::as_str).and_then(|e| Expr::parse(e).ok());
                        if when.is_some_and(|w| !w.truth(scope)) {
                            return None;
                        }
                        o.get("parts")?.as_array()?
                    }
                    v => v.as_array()?,
                };
                Some((k.clone(), parts.iter().filter_map(Value::as_str).map(str::to_owned).collect()))
            })
            .collect();
        quantizer.set_packed(packed, file.supports_quant);
    }

    /// What a module becomes.
    pub fn build(&mut self, layer: &Layer) -> Built {
        match self {
            Method::Known(quantizer) => quantizer.build(layer),
            Method::None | Method::Unknown(_) => Built::Plain { entry: None },
        }
    }
}
