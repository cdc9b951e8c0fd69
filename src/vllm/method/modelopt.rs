//! The ModelOpt family (vllm/model_executor/layers/quantization/modelopt.py; spec D.4): FP8 per tensor, per channel and in
//! blocks, NVFP4, MXFP8, and a mixture of them by layer.

mod exclude;
mod mixed;
mod params;

use super::{Built, DeadEntry, Element, Layer, List, Load, Offered, Quantizer, kv_cache, params::unread, py};
use crate::vllm::trace::{Kind, Raised};
use exclude::Exclude;
use mixed::Mixed;
use params::Algo;
use serde_json::Value;

/// What the layers become.
#[derive(Debug)]
enum What {
    /// All the same.
    One(Algo),
    /// By layer.
    Mixed(Mixed),
}

/// `ModelOptQuantConfigBase` and its four subclasses.
#[derive(Debug)]
pub struct ModelOpt {
    name: &'static str,
    exclude: Exclude,
    what: What,
    /// An entry that is no text: raised before anything is built.
    entry: Option<Raised>,
}

/// What raises, and where: a JSON pointer relative to the quantization config.
type Failure = (String, Raised);

fn failure<T>(at: &str, error: &str, text: impl Into<String>) -> Result<T, Failure> {
    Err((at.to_owned(), py::raised(error, text)))
}

/// `'int' object has no attribute 'lower'`.
fn attribute<T>(at: &str, value: &Value, name: &str) -> Result<T, Failure> {
    failure(at, "AttributeError", format!("'{}' object has no attribute '{name}'", py::type_name(value)))
}

/// `_normalize_quantization_config` (vllm/transformers_utils/model_arch_config_convertor.py): the method that files of
/// ModelOpt name by their algorithm. None leaves `quant_method` as it is.
///
/// # Errors
/// For an algorithm that this place does not know, though [`ModelOpt::parse`] may.
pub fn named(config: &Value) -> Result<Option<&'static str>, Failure> {
    let producer = match config.get("producer") {
        None => None,
        Some(Value::Object(producer)) => producer.get("name").and_then(Value::as_str),
        Some(other) => return attribute("/producer", other, "get"),
    };
    let inner = config.get("quantization");
    if producer != Some("modelopt") && inner.is_none_or(|q| q.get("modelopt_quant_config").is_none()) {
        return Ok(None);
    }
    let algo = match inner {
        None => None,
        Some(Value::Object(inner)) => inner.get("quant_algo").filter(|v| !v.is_null()),
        Some(other) => return attribute("/quantization", other, "get"),
    };
    let Some(algo) = algo else { return Ok(None) };
    let word = py::display(algo);
    match word.to_uppercase().as_str() {
        "FP8" | "FP8_PER_CHANNEL_PER_TOKEN" | "FP8_PB_WO" => Ok(Some("modelopt")),
        "NVFP4" => Ok(Some("modelopt_fp4")),
        _ => failure("/quantization/quant_algo", "ValueError", format!("Unknown ModelOpt quant algo: {word}")),
    }
}

/// `override_quantization_method` of the four: the algorithm counts, whatever `modelopt…` the method is called.
pub fn overridden(method: &str, config: &Value) -> Option<&'static str> {
    if !method.starts_with("modelopt") {
        return None;
    }
    let of = config.get("quantization").map_or(Some(config), |q| q.is_object().then_some(q))?;
    let algo = of.get("quant_algo").map(py::display).unwrap_or_default().to_uppercase();
    match algo.as_str() {
        "FP8" => Some("modelopt"),
        a if a.contains("FP4") => Some("modelopt_fp4"),
        a if a.contains("MXFP8") => Some("modelopt_mxfp8"),
        "MIXED_PRECISION" => Some("modelopt_mixed"),
        _ => None,
    }
}

/// The names under which this family answers.
pub fn names(method: &str) -> Option<&'static str> {
    ["modelopt", "modelopt_fp4", "modelopt_mxfp8", "modelopt_mixed", "mxfp8"].into_iter().find(|n| *n == method)
}

/// Keys of a config, wherever its layout has them.
struct Keys<'c> {
    algo: String,
    kv: Option<String>,
    entries: &'c [Value],
    pointer: &'static str,
    group: Option<i64>,
    /// The object under `quantization`, when there is one.
    inner: Option<&'c Value>,
}

const NONE: &[Value] = &[];

impl<'c> Keys<'c> {
    /// `ModelOptQuantConfigBase.from_config`, and what `ModelOptMxFp8Config` does before it.
    fn read(name: &str, config: &'c Value) -> Result<Keys<'c>, Failure> {
        let inner = config.get("quantization");
        let short = matches!(name, "modelopt_mxfp8" | "mxfp8")
            && inner.is_none()
            && !config.get("quant_algo").is_some_and(py::truthy);
        let (from, at, list) = match inner {
            Some(Value::Object(_)) => (inner.unwrap_or(config), "/quantization", "exclude_modules"),
            Some(_) => {
                return failure("/quantization", "ValueError", "Expected 'quantization' to be a dictionary in config");
            }
            None if short => (config, "", "ignored_layers"),
            None => (config, "", "ignore"),
        };
        let pointer = match list {
            "exclude_modules" => "/quantization/exclude_modules",
            "ignored_layers" => "/ignored_layers",
            _ => "/ignore",
        };
        let algo = match from.get("quant_algo") {
            _ if short => "MXFP8".to_owned(),
            Some(v) if py::truthy(v) => py::display(v).to_uppercase(),
            _ => return failure(at, "ValueError", "Missing 'quant_algo' in quantization config"),
        };
        let kv = match from.get("kv_cache_quant_algo") {
            _ if inner.is_none() && !short => scheme(config.get("kv_cache_scheme")).then(|| "FP8".to_owned()),
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.to_uppercase()),
            Some(other) => {
                let text = format!("kv_cache_quant_algo must be a string, got <class '{}'>", py::type_name(other));
                return failure(&format!("{at}/kv_cache_quant_algo"), "ValueError", text);
            }
        };
        let entries = match from.get(list) {
            None => NONE,
            Some(Value::Array(entries)) => entries,
            Some(other) if short && !py::truthy(other) => NONE,
            Some(other) => {
                let text = format!("exclude_modules must be a list, got <class '{}'>", py::type_name(other));
                return failure(pointer, "ValueError", text);
            }
        };
        // The short form has no group size, whatever its file says.
        let group = match from.get("group_size").filter(|_| !short) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(b)) => Some(i64::from(*b)),
            Some(value) => {
                let number = value.as_i64().or_else(|| value.as_f64().map(|f| f as i64));
                let number = number.or_else(|| value.as_str().and_then(py::int_of_str));
                let Some(number) = number else {
                    let text = format!("group_size must be an integer, got <class '{}'>", py::type_name(value));
                    return failure(&format!("{at}/group_size"), "ValueError", text);
                };
                Some(number)
            }
        };
        const ALGOS: [&str; 7] =
            ["FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4", "W4A16_NVFP4", "MXFP8", "MIXED_PRECISION"];
        if !ALGOS.contains(&algo.as_str()) {
            let list = ALGOS.map(py::repr_str).join(", ");
            let text = format!(
                "ModelOpt currently only supports: [{list}] quantizations in vLLM. Please check the \
                 `hf_quant_config.json` file for your model's quant configuration."
            );
            return failure(&format!("{at}/quant_algo"), "ValueError", text);
        }
        Ok(Keys { algo, kv, entries, pointer, group, inner })
    }

    /// Keys that `hf_quant_config.json` must have.
    fn require(&self, name: &str, keys: &[&str]) -> Result<(), Failure> {
        let Some(inner) = self.inner else { return Ok(()) };
        let missing: Vec<String> = keys.iter().filter(|k| inner.get(**k).is_none()).map(|k| py::repr_str(k)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let text = format!(
            "{name} quantization requires the following fields in hf_quant_config.json: [{}]",
            missing.join(", ")
        );
        failure("/quantization", "ValueError", text)
    }
}

/// `kv_cache_scheme` of `{"type": "float", "num_bits": 8}`.
fn scheme(value: Option<&Value>) -> bool {
    value.is_some_and(|v| {
        v.get("type").and_then(Value::as_str) == Some("float") && v.get("num_bits").and_then(Value::as_f64) == Some(8.0)
    })
}

impl ModelOpt {
    /// `from_config` of the class behind `name`.
    ///
    /// # Errors
    /// What it raises, with the JSON pointer relative to the quantization config.
    pub fn parse(name: &'static str, config: &Value) -> Result<ModelOpt, Failure> {
        let keys = Keys::read(name, config)?;
        let at = |key: &str| if keys.inner.is_some() { format!("/quantization{key}") } else { key.to_owned() };
        let unsupported = |family: &str, list: &str| {
            let colon = if family.contains("FP8") { " for vLLM" } else { "" };
            let text = format!("Unsupported ModelOpt {family} quant_algo{colon}: {}. Supported: {list}.", keys.algo);
            failure(&at("/quant_algo"), "ValueError", text)
        };
        let what = match name {
            "modelopt" => What::One(match keys.algo.as_str() {
                "FP8" => Algo::Tensor,
                "FP8_PER_CHANNEL_PER_TOKEN" => Algo::Channel,
                "FP8_PB_WO" => Algo::Block,
                _ => return unsupported("FP8", "FP8 / FP8_PER_CHANNEL_PER_TOKEN / FP8_PB_WO"),
            }),
            "modelopt_fp4" => {
                let a16 = keys.algo == "W4A16_NVFP4" || weights_only(config);
                if !keys.algo.contains("NVFP4") {
                    return unsupported("NVFP4", "NVFP4 / W4A16_NVFP4");
                }
                keys.require("NVFP4", &["group_size", "kv_cache_quant_algo", "exclude_modules"])?;
                What::One(Algo::Nvfp4 { group: keys.group.unwrap_or(16), a16 })
            }
            "modelopt_mixed" => {
                let layers = keys.inner.unwrap_or(config).get("quantized_layers");
                let kv = keys.kv.as_deref().is_some_and(|kv| !kv.is_empty());
                What::Mixed(Mixed::parse(layers, keys.group, kv).map_err(|raised| (at("/quantized_layers"), raised))?)
            }
            _ => {
                if !keys.algo.contains("MXFP8") {
                    let text =
                        "MXFP8 quantization requires a serialized checkpoint. Dynamic quantization is not supported.";
                    return failure(&at("/quant_algo"), "ValueError", text);
                }
                keys.require("MXFP8", &["kv_cache_quant_algo", "exclude_modules"])?;
                What::One(Algo::Mxfp8)
            }
        };
        let odd = keys.entries.iter().find(|e| !e.is_string());
        let entry = odd.map(|e| py::raised("TypeError", format!("object of type '{}' has no len()", py::type_name(e))));
        let texts = keys.entries.iter().map(|e| e.as_str().unwrap_or("\0").to_owned()).collect();
        Ok(ModelOpt { name, exclude: Exclude::new(keys.pointer.into(), texts), what, entry })
    }
}

/// NVFP4 whose groups all leave the activations alone is W4A16.
fn weights_only(config: &Value) -> bool {
    config.get("config_groups").and_then(Value::as_object).is_some_and(|groups| {
        !groups.is_empty()
            && groups
                .values()
                .all(|g| g.as_object().is_some_and(|g| g.get("input_activations").is_none_or(Value::is_null)))
    })
}

/// `ModelOptKVCacheMethod`: on latent attention too, unlike the other methods.
fn cache(layer: &Layer<'_>) -> Built {
    if !layer.class.starts_with("MLA") {
        return kv_cache::build(layer);
    }
    let scale = |name| unread(name, &[], Element::F32, Load::Scalar);
    let params = ["q_scale", "k_scale", "v_scale", "prob_scale"].map(scale).to_vec();
    Built::Quantized { scheme: "KV cache".into(), params, nones: Vec::new() }
}

fn made(built: Result<Built, Raised>) -> Built {
    built.unwrap_or_else(params::misfit)
}

/// A linear layer or experts in MXFP8, which other methods store the same way.
pub(super) fn mxfp8(layer: &Layer<'_>) -> Result<Built, Raised> {
    if layer.offered == Offered::Experts { Algo::Mxfp8.experts(layer) } else { Algo::Mxfp8.linear(layer) }
}

/// `ModelOptNvFp4FusedMoE`.
pub(super) fn nvfp4_experts(layer: &Layer<'_>) -> Built {
    made(Algo::Nvfp4 { group: 16, a16: false }.experts(layer))
}

impl ModelOpt {
    /// `ModelOptQuantConfigBase.get_quant_method` behind exclusion.
    fn one(algo: Algo, layer: &Layer<'_>) -> Built {
        if ["vision_tower", "vision_model", "vit_large_projector"].iter().any(|t| layer.prefix.contains(t)) {
            return Built::Plain { entry: None };
        }
        match layer.offered {
            Offered::Linear | Offered::Head => made(algo.linear(layer)),
            Offered::Experts => made(algo.experts(layer)),
            Offered::Embedding | Offered::Attention => Built::Plain { entry: None },
        }
    }

    /// `ModelOptMixedPrecisionConfig.get_quant_method` behind exclusion.
    fn mixed(mixed: &Mixed, packed: Option<&[String]>, layer: &Layer<'_>) -> Built {
        let plain = Built::Plain { entry: None };
        let algo = match mixed.resolve(layer.prefix, packed) {
            Ok(Some(algo)) => algo,
            Ok(None) => return plain,
            Err(raised) => return Built::Refused { why: Kind::SchemeUnsupported, raised },
        };
        if mixed::is_codec(algo) {
            let text = match layer.offered {
                Offered::Experts => "Block-quantized routed experts require b12x on SM12x".to_owned(),
                Offered::Attention => format!("{algo} requires a linear, embedding or routed experts"),
                _ => "Block-quantized dense weights require b12x on SM12x".to_owned(),
            };
            return Built::Refused { why: Kind::SchemeUnsupported, raised: py::raised("ValueError", text) };
        }
        match layer.offered {
            Offered::Linear | Offered::Head => mixed.linear(algo).map_or(plain, |a| made(a.linear(layer))),
            Offered::Experts => mixed.experts(algo).map_or(plain, |a| made(a.experts(layer))),
            Offered::Embedding | Offered::Attention => plain,
        }
    }
}

impl Quantizer for ModelOpt {
    fn name(&self) -> &'static str {
        self.name
    }

    fn list(&self) -> List {
        self.exclude.list()
    }

    fn map_names(&mut self, rename: &dyn Fn(&str) -> String) {
        self.exclude.rename(rename);
        if let What::Mixed(mixed) = &mut self.what {
            mixed.rename(rename);
        }
    }

    fn set_packed(&mut self, mapping: Vec<(String, Vec<String>)>, merge: bool) {
        self.exclude.set_packed(mapping, merge);
    }

    fn build(&mut self, layer: &Layer<'_>) -> Built {
        if let Some(raised) = self.entry.take() {
            return Built::Refused { why: Kind::QuantConfigRejected, raised };
        }
        if layer.offered == Offered::Attention {
            match &self.what {
                What::One(_) => return cache(layer),
                What::Mixed(mixed) if !layer.class.starts_with("MLA") => {
                    return if mixed.kv { cache(layer) } else { Built::Plain { entry: None } };
                }
                What::Mixed(_) => {}
            }
        }
        match self.exclude.excluded(layer.prefix) {
            Err(raised) => return Built::Refused { why: Kind::FusedMixture, raised },
            Ok(Some(entry)) => return Built::Plain { entry },
            Ok(None) => {}
        }
        match &self.what {
            What::One(algo) => ModelOpt::one(*algo, layer),
            What::Mixed(mixed) => {
                let leaf = layer.prefix.rsplit('.').next().unwrap_or(layer.prefix);
                ModelOpt::mixed(mixed, self.exclude.packed(leaf), layer)
            }
        }
    }

    fn dead_entries(&self) -> Vec<DeadEntry> {
        self.exclude.dead()
    }
}
