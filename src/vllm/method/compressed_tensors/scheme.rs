//! Which scheme a layer gets (`_get_scheme_from_parts`, spec C.7), and the parameters that scheme creates (spec C.8).

use super::args::{Args, Dynamic, Numbers, Strategy};
use crate::vllm::method::{Built, Element, Layer, Load, Offered, Param};
use crate::vllm::trace::{Kind, Raised};

/// What a target carries.
#[derive(Debug, Clone)]
pub struct Scheme {
    /// Weights.
    pub weights: Args,
    /// Input activations, when the format takes them.
    pub input: Option<Args>,
    /// Output activations.
    pub output: Option<Args>,
    /// Format of the group, else the global one.
    pub format: Option<String>,
}

/// The schemes of the decision table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Nvfp4 { activations: bool },
    Mxfp4,
    Mxfp8,
    Wna8o8,
    Wna16,
    Fp8 { static_input: bool },
    Int8 { static_input: bool, symmetric_input: bool },
    W4A8Int,
}

pub(super) fn refused(why: Kind, error_type: &str, text: String) -> Built {
    Built::Refused { why, raised: Raised { error_type: error_type.into(), text } }
}

/// Formats in which activations are quantized.
pub(super) fn is_activation_format(format: Option<&str>) -> bool {
    matches!(format, Some("naive-quantized" | "int-quantized" | "float-quantized" | "nvfp4-pack-quantized"))
}

fn group_float(a: &Args, bits: i64, strategy: Strategy, group: i64) -> bool {
    a.numbers == Numbers::Float && a.bits == bits && a.strategy == strategy && a.group == Some(group) && a.symmetric
}

impl Scheme {
    pub(super) fn choose(&self, layer_name: &str) -> Result<Choice, Built> {
        let w = &self.weights;
        let format = self.format.as_deref();
        let act = is_activation_format(format);
        let static_weights = w.dynamic == Dynamic::No;
        let channelish = matches!(w.strategy, Strategy::Channel | Strategy::Group) && static_weights;
        if group_float(w, 4, Strategy::TensorGroup, 16) {
            return match &self.input {
                None => Ok(Choice::Nvfp4 { activations: false }),
                Some(i) if group_float(i, 4, Strategy::TensorGroup, 16) => Ok(Choice::Nvfp4 { activations: true }),
                Some(i) => Err(refused(
                    Kind::SchemeUnsupported,
                    "ValueError",
                    format!(
                        "For NVFP4 weights, input quantization must also be NVFP4 format, None for NVFP4A16, found {i}"
                    ),
                )),
            };
        }
        if group_float(w, 4, Strategy::Group, 32) {
            return Ok(Choice::Mxfp4);
        }
        if group_float(w, 8, Strategy::Group, 32) && w.scale_dtype.as_deref() == Some("uint8") {
            return Ok(Choice::Mxfp8);
        }
        let int = w.numbers == Numbers::Int;
        let input = self.input.as_ref();
        let dynamic_int8 =
            |i: &Args| i.numbers == Numbers::Int && i.bits == 8 && i.dynamic == Dynamic::Yes && i.symmetric;
        if let (Some(i), Some(o)) = (input, &self.output)
            && int
            && channelish
            && matches!(format, Some("pack-quantized" | "int-quantized"))
            && [i, o].iter().all(|a| {
                a.numbers == Numbers::Int && a.bits == 8 && a.strategy == Strategy::Tensor && a.dynamic == Dynamic::No
            })
        {
            return Ok(Choice::Wna8o8);
        }
        if let Some(i) = input
            && int
            && channelish
            && matches!(w.bits, 4 | 8)
            && format == Some("pack-quantized")
            && dynamic_int8(i)
            && matches!(i.strategy, Strategy::Token | Strategy::Group)
        {
            return Ok(Choice::Wna16);
        }
        if channelish && input.is_none() && format == Some("pack-quantized") {
            return Ok(Choice::Wna16);
        }
        if act {
            let fp8_weights = w.numbers == Numbers::Float
                && w.symmetric
                && static_weights
                && matches!(w.strategy, Strategy::Tensor | Strategy::Channel | Strategy::Block);
            if fp8_weights {
                let static_input = input.is_some_and(|i| {
                    i.numbers == Numbers::Float
                        && i.dynamic == Dynamic::No
                        && i.symmetric
                        && i.strategy == Strategy::Tensor
                });
                return Ok(Choice::Fp8 { static_input });
            }
            if let Some(i) = input.filter(|i| i.numbers == Numbers::Int) {
                let int8 = int
                    && w.bits == 8
                    && w.symmetric
                    && static_weights
                    && matches!(w.strategy, Strategy::Tensor | Strategy::Channel);
                if int8 && i.bits == 8 && i.dynamic == Dynamic::No && i.strategy == Strategy::Tensor {
                    return Ok(Choice::Int8 { static_input: true, symmetric_input: i.symmetric });
                }
                if int8 && dynamic_int8(i) && i.strategy == Strategy::Token {
                    return Ok(Choice::Int8 { static_input: false, symmetric_input: true });
                }
                if int && w.bits == 4 && w.symmetric && channelish && dynamic_int8(i) && i.strategy == Strategy::Token {
                    return Ok(Choice::W4A8Int);
                }
            }
            if w.numbers == Numbers::Float && input.is_none() {
                return Err(refused(
                    Kind::SchemeUnsupported,
                    "AttributeError",
                    "'NoneType' object has no attribute 'num_bits'".into(),
                ));
            }
        }
        let show = |a: &Option<Args>| a.as_ref().map_or("None".to_owned(), Args::to_string);
        let format = format.map_or("None".to_owned(), |f| format!("'{f}'"));
        Err(refused(
            Kind::SchemeUnsupported,
            "NotImplementedError",
            format!(
                "No compressed-tensors compatible scheme was found for layer_name='{layer_name}', weight_quant={w}, input_quant={}, output_quant={}, format={format}",
                show(&self.input),
                show(&self.output)
            ),
        ))
    }

    /// `create_weights` of a linear (or head).
    pub(super) fn linear(&self, layer: &Layer) -> Built {
        let choice = match self.choose(layer.prefix) {
            Ok(c) => c,
            Err(built) => return built,
        };
        let n: u64 = layer.outputs.iter().fold(0, |a, b| a.saturating_add(*b));
        let rows = if layer.offered == Offered::Head { n.div_ceil(64).saturating_mul(64) } else { n };
        let k = layer.input;
        let parts = layer.outputs.len() as u64;
        let p = |name, shape: Vec<u64>, element, load| Param { name, shape, element, load, unread: false };
        let group = self.weights.group_size();
        let groups = |g: u64| k / g.max(1);
        let mut nones = Vec::new();
        let params = match choice {
            Choice::Wna16 | Choice::Wna8o8 => return self.packed(layer, rows, choice),
            Choice::Nvfp4 { activations } => {
                let mut v = vec![
                    p("weight_packed", vec![rows, k / 2], Element::U8, Load::Both),
                    p("weight_scale", vec![rows, k / 16], Element::F8E4M3, Load::Both),
                    p("weight_global_scale", vec![parts], Element::F32, Load::PerTensor),
                ];
                if activations {
                    v.push(p("input_global_scale", vec![parts], Element::F32, Load::PerTensor));
                }
                v
            }
            Choice::Mxfp4 => vec![
                p("weight_packed", vec![rows, k / 2], Element::U8, Load::Both),
                p("weight_scale", vec![rows, k / 32], Element::U8, Load::Both),
            ],
            Choice::Mxfp8 => vec![
                p("weight", vec![rows, k], Element::F8E4M3, Load::Both),
                p("weight_scale", vec![rows, k / 32], Element::U8, Load::Both),
            ],
            Choice::Fp8 { static_input } => {
                let scale = match self.weights.strategy {
                    Strategy::Tensor => p("weight_scale", vec![parts], Element::F32, Load::PerTensor),
                    Strategy::Block => {
                        let (bn, bk) = self.weights.block.unwrap_or((128, 128));
                        if let Err(built) = block_fits(layer, bn, bk) {
                            return built;
                        }
                        p(
                            "weight_scale",
                            vec![rows.div_ceil(bn.max(1)), k.div_ceil(bk.max(1))],
                            Element::F32,
                            Load::Block { rows: bn },
                        )
                    }
                    _ => p("weight_scale", vec![rows, 1], Element::F32, Load::Output),
                };
                let mut v = vec![p("weight", vec![rows, k], Element::F8E4M3, Load::Both), scale];
                if static_input {
                    v.push(p("input_scale", vec![parts], Element::F32, Load::PerTensor));
                }
                v
            }
            Choice::Int8 { static_input, symmetric_input } => {
                let scale = if self.weights.strategy == Strategy::Channel {
                    p("weight_scale", vec![rows, 1], Element::F32, Load::Output)
                } else {
                    p("weight_scale", vec![parts], Element::F32, Load::PerTensor)
                };
                let mut v = vec![p("weight", vec![rows, k], Element::I8, Load::Both), scale];
                if static_input {
                    v.push(p("input_scale", vec![1], Element::F32, Load::Whole));
                } else {
                    nones.push("input_scale");
                }
                if static_input && !symmetric_input {
                    v.push(p("input_zero_point", vec![1], Element::I8, Load::Whole));
                } else {
                    nones.push("input_zero_point");
                }
                nones.push("azp_adj");
                v
            }
            Choice::W4A8Int => vec![
                p("weight", vec![rows, k], Element::I8, Load::Both),
                match group {
                    Some(g) => p("weight_scale", vec![rows, groups(g)], Element::F32, Load::Both),
                    None => p("weight_scale", vec![rows, 1], Element::F32, Load::Output),
                },
            ],
        };
        Built::Quantized { scheme: self.words(), params, nones }
    }

    /// WNA16 and relatives.
    fn packed(&self, layer: &Layer, rows: u64, choice: Choice) -> Built {
        let bits = u64::try_from(self.weights.bits).unwrap_or(0);
        if !(2..=8).contains(&bits) {
            return refused(
                Kind::SchemeUnsupported,
                "ValueError",
                format!("Unsupported num_bits = {}. Supported num_bits = [2, 3, 4, 5, 6, 7, 8]", self.weights.bits),
            );
        }
        let k = layer.input;
        let group = self.weights.group_size();
        if let Some(g) = group.filter(|g| !k.is_multiple_of(*g)) {
            return refused(
                Kind::SchemeShape,
                "ValueError",
                format!(
                    "Weight input_size_per_partition={k} for layer '{}' is not divisible by group_size={g}. This happens when \
                     tensor_parallel_size splits the layer input into shards that are not a whole number of quant groups. Consider \
                     reducing tensor_parallel_size.",
                    layer.prefix
                ),
            );
        }
        let scales = group.map_or(1, |g| k / g);
        let both = group.is_some();
        let load = if both { Load::Both } else { Load::Output };
        let words = k.saturating_mul(bits).div_ceil(32);
        let mut params = vec![
            Param {
                name: "weight_packed",
                shape: vec![rows, words],
                element: Element::I32,
                load: Load::PackedInput,
                unread: false,
            },
            Param { name: "weight_scale", shape: vec![rows, scales], element: Element::Model, load, unread: false },
            Param { name: "weight_shape", shape: vec![2], element: Element::I64, load: Load::Whole, unread: true },
        ];
        if !self.weights.symmetric {
            let den = u32::try_from(bits).unwrap_or(4);
            params.push(Param {
                name: "weight_zero_point",
                shape: vec![rows.saturating_mul(bits).div_ceil(32), scales],
                element: Element::I32,
                load: Load::PackedOutput { both, num: 32, den },
                unread: false,
            });
        }
        if choice == Choice::Wna8o8 {
            if self.format.as_deref() == Some("int-quantized") {
                params[0] = Param {
                    name: "weight",
                    shape: vec![rows, k],
                    element: Element::I8,
                    load: Load::Both,
                    unread: false,
                };
                params.remove(2);
            }
            for name in ["input_scale", "output_scale"] {
                params.push(Param { name, shape: vec![1], element: Element::F32, load: Load::Whole, unread: false });
            }
        }
        Built::Quantized { scheme: self.words(), params, nones: Vec::new() }
    }

    /// `CompressedTensorsEmbeddingWNA16Int`.
    pub(super) fn embedding(&self, layer: &Layer) -> Built {
        let w = &self.weights;
        let fits = w.numbers == Numbers::Int
            && matches!(w.strategy, Strategy::Channel | Strategy::Group)
            && w.dynamic == Dynamic::No;
        if !fits {
            return refused(
                Kind::EmbeddingScheme,
                "ValueError",
                format!(
                    "compressed-tensors embeddings only support weight-only INT group/channel (WNA16) quantization, got: {}",
                    pydantic_str(w)
                ),
            );
        }
        let (rows, k) = (layer.outputs.first().copied().unwrap_or(0).div_ceil(64).saturating_mul(64), layer.input);
        let group = w.group_size();
        if group.is_some_and(|g| !k.is_multiple_of(g)) {
            return refused(Kind::SchemeShape, "AssertionError", String::new());
        }
        let bits = u64::try_from(w.bits).unwrap_or(0);
        Built::Quantized {
            scheme: self.words(),
            params: vec![
                Param {
                    name: "weight_packed",
                    shape: vec![rows, k.saturating_mul(bits).div_ceil(32)],
                    element: Element::I32,
                    load: Load::PackedInput,
                    unread: false,
                },
                Param {
                    name: "weight_scale",
                    shape: vec![rows, group.map_or(1, |g| k / g)],
                    element: Element::Model,
                    load: if group.is_some() { Load::Both } else { Load::Output },
                    unread: false,
                },
                Param { name: "weight_shape", shape: vec![2], element: Element::I64, load: Load::Whole, unread: true },
            ],
            nones: Vec::new(),
        }
    }

    /// For people: `W4A16 int, pack-quantized, group 32`.
    pub(super) fn words(&self) -> String {
        let w = &self.weights;
        let kind = if w.numbers == Numbers::Int { "int" } else { "float" };
        let scope = match w.group_size() {
            Some(g) => format!("group {g}"),
            None => format!("per {}", w.strategy.word()),
        };
        format!("{kind}{} {scope}, {}", w.bits, self.format.as_deref().unwrap_or("no format"))
    }
}

/// `str(args)`: pydantic's form without the class name.
fn pydantic_str(a: &Args) -> String {
    let r = a.to_string();
    r.trim_start_matches("QuantizationArgs(").trim_end_matches(')').replace(", ", " ")
}

fn block_fits(layer: &Layer, bn: u64, bk: u64) -> Result<(), Built> {
    let fail = |text: String| Err(refused(Kind::SchemeShape, "ValueError", text));
    if layer.row && !layer.input.is_multiple_of(bk.max(1)) {
        return fail(format!(
            "Weight input_size_per_partition = {} is not divisible by weight quantization block_k = {bk}.",
            layer.input
        ));
    }
    if layer.outputs.len() > 1 {
        let last = layer.outputs.len() - 1;
        for (i, n) in layer.outputs.iter().enumerate() {
            if !n.is_multiple_of(bn.max(1)) && i < last {
                return fail(format!(
                    "Weight output_partition_size = {n} is not divisible by weight quantization block_n = {bn}."
                ));
            }
        }
    }
    Ok(())
}
