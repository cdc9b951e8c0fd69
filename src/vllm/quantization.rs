//! Where vLLM finds the quantization config, and which method it makes of it (spec B.3, B.4).

use super::Target;
use super::method::awq::Awq;
use super::method::compressed_tensors::CompressedTensors;
use super::method::deepseek_v4::DeepseekV4Fp8;
use super::method::fp8::Fp8;
use super::method::gptq::Gptq;
use super::method::inc::Inc;
use super::method::modelopt::{self, ModelOpt};
use super::method::mxfp4::Mxfp4;
use super::method::online::{Online, WORDS};
use super::method::quark::Quark;
use super::method::{Method, Quantizer};
use super::semantics::Semantics;
use super::trace::{Effect, Event, Kind, Raised, Stage, Trace};
use crate::checkpoint::Checkpoint;
use crate::facts::Registry;
use serde_json::Value;

/// A quantization config and where it stands.
#[derive(Debug, Clone)]
pub struct Place {
    /// File.
    pub file: String,
    /// JSON pointer in it.
    pub pointer: String,
    /// The dict.
    pub value: Value,
}

/// The first place that vLLM looks at and that holds something (spec B.3).
pub fn find(cp: &Checkpoint, raw: &Value) -> Option<Place> {
    let here = |pointer: &str| {
        raw.pointer(pointer).filter(|v| v.as_object().is_some_and(|o| !o.is_empty())).map(|v| Place {
            file: "config.json".into(),
            pointer: pointer.into(),
            value: v.clone(),
        })
    };
    if let Some(p) = here("/quantization_config") {
        return Some(p);
    }
    if raw.get("quantization_config").is_none_or(Value::is_null)
        && let Some((file, part)) = cp.quant_files.iter().find(|f| f.0 == "hf_quant_config.json")
        && let Some(json) = part.get()
    {
        return Some(Place { file: file.clone(), pointer: String::new(), value: json.value.clone() });
    }
    here("/text_config/quantization_config").or_else(|| here("/compression_config"))
}

fn push(trace: &mut Trace, kind: Kind, effect: Effect, place: &Place, pointer: &str, raised: Option<Raised>) {
    let mut e = Event::new(Stage::Config, effect, kind);
    e.file = Some(place.file.clone());
    e.pointer = Some(format!("{}{pointer}", place.pointer));
    e.error = raised;
    trace.events.push(e);
}

fn value_error(text: String) -> Raised {
    Raised { error_type: "ValidationError".into(), text }
}

/// The method in effect. Refusals and oddities go to the trace.
pub fn method(
    cp: &Checkpoint,
    target: &Target,
    registry: Option<&Registry>,
    (raw, model_type): (&Value, &str),
    found: &mut Option<Place>,
    trace: &mut Trace,
) -> Method {
    let Some(place) = found.as_ref() else {
        return match &target.quantization {
            Some(q) => {
                if !check_name(registry, q, None, trace) {
                    return Method::Unknown(q.clone());
                }
                let deprecated = DEPRECATED.contains(&q.as_str()).then(|| deprecated(q));
                if let Some(raised) = deprecated.or_else(|| Online::without_config(q)) {
                    argument(trace, raised);
                }
                Method::Unknown(q.clone())
            }
            None => Method::None,
        };
    };
    // Only `compression_config` is not looked at.
    let normalized = if place.pointer == "/compression_config" { Ok(None) } else { modelopt::named(&place.value) };
    let named = match (normalized, place.value.get("quant_method")) {
        (Err(failure), _) => {
            rejected(trace, place, failure);
            return Method::Unknown("modelopt".into());
        }
        (Ok(Some(name)), _) => name.to_owned(),
        (Ok(None), method) => method.and_then(Value::as_str).unwrap_or_default().to_lowercase(),
    };
    if named.is_empty() {
        push(trace, Kind::QuantMethodMissing, Effect::Keeps, place, "", None);
        return Method::None;
    }
    let name = match named.as_str() {
        "compressed_tensors" => "compressed-tensors".to_owned(),
        // `GptOssMxfp4Config.override_quantization_method`: whatever the argument says.
        "mxfp4" if model_type == "gpt_oss" => "gpt_oss_mxfp4".to_owned(),
        // `DeepseekV4ForCausalLMConfig.verify_and_update_model_config`.
        "fp8" if model_type == "deepseek_v4" => "deepseek_v4_fp8".to_owned(),
        n => n.to_owned(),
    };
    let overridden = modelopt::overridden(&name, &place.value);
    let name = overridden.map_or(name, str::to_owned);
    if let Some(q) = &target.quantization
        && overridden.is_none()
        && *q != name
        && !(name == "gpt_oss_mxfp4" && model_type == "gpt_oss")
        && !(q == "gptq" && name == "auto_gptq" || q == "awq" && name == "auto_awq")
    {
        let text = format!(
            "Quantization method specified in the model config ({name}) does not match the quantization method specified in the \
             `quantization` argument ({q})."
        );
        push(trace, Kind::ArgumentRefused, Effect::Refuses, place, "/quant_method", Some(value_error(text)));
        return Method::Unknown(name);
    }
    if !check_name(registry, &name, Some(place), trace) {
        return Method::Unknown(name);
    }
    if DEPRECATED.contains(&name.as_str()) {
        push(trace, Kind::QuantConfigRejected, Effect::Refuses, place, "/quant_method", Some(deprecated(&name)));
        return Method::Unknown(name);
    }
    let beside = match beside(cp, &name, place) {
        Ok(beside) => beside,
        Err(failure) => {
            rejected(trace, place, failure);
            return Method::Unknown(name);
        }
    };
    if beside.is_some() {
        *found = beside;
    }
    let Some(place) = found.as_ref() else { return Method::None };
    if name == "quark" && model_type == "gpt_oss" && Quark::unbiased(&place.value) {
        // Its experts have biases, which these schemes have no place for.
        return Method::Unknown(name);
    }
    let semantics = Semantics::of(&target.vllm);
    let parsed = match name.as_str() {
        "deepseek_v4_fp8" if model_type == "deepseek_v4" => {
            let parsed = DeepseekV4Fp8::parse(&place.value, raw.get("expert_dtype"));
            Some(boxed(parsed.map(|q| q.ignoring(semantics.nvfp4_ignore))))
        }
        _ => parse(&name, &place.value, &semantics),
    };
    match parsed {
        None => Method::Unknown(name),
        Some(Ok(quantizer)) => Method::Known(quantizer),
        Some(Err(failure)) => {
            rejected(trace, place, failure);
            Method::Unknown(name)
        }
    }
}

/// Why nothing is said of a checkpoint of this method.
pub fn unsimulated(name: &str, given: bool) -> String {
    match name {
        _ if given && WORDS.contains(&name) => {
            format!("`{name}` quantizes a 16-bit checkpoint while it loads: check it without `--quantization`")
        }
        "torchao" | "humming" => format!(
            "what vLLM does with the quantization method `{name}` depends on the package `{name}` installed beside it"
        ),
        "nvfp4_per_token" => format!("whether vLLM takes `{name}` depends on the GPU"),
        _ => format!("the quantization method `{name}` is not simulated yet"),
    }
}

/// Raised while pydantic validates the engine's config, which wraps three types of errors.
fn rejected(trace: &mut Trace, place: &Place, (pointer, mut raised): (String, Raised)) {
    if matches!(raised.error_type.as_str(), "ValueError" | "AssertionError" | "ValidationError") {
        raised = Raised { error_type: "ValidationError".into(), text: inner(&raised.text) };
    }
    push(trace, Kind::QuantConfigRejected, Effect::Refuses, place, &pointer, Some(raised));
}

/// `get_supported_act_dtypes`, where it leaves float16 out (spec B.4.8): what `dtype` says, vLLM takes for the activations.
pub fn activations(method: &Method, raw: &Value, trace: &mut Trace) {
    let Method::Known(quantizer) = method else { return };
    let name @ ("mxfp4" | "gpt_oss_mxfp4" | "modelopt_mxfp8" | "mxfp8") = quantizer.name() else { return };
    let keys = ["/dtype", "/torch_dtype", "/text_config/dtype", "/text_config/torch_dtype"];
    let stored = |p: &&str| raw.pointer(p).is_some_and(|v| !v.is_null());
    let Some(pointer) = keys.into_iter().find(stored) else { return };
    let word = raw.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if !matches!(word.trim_start_matches("torch."), "float16" | "half") {
        return;
    }
    let mut e = Event::new(Stage::Config, Effect::Refuses, Kind::ConfigField);
    e.file = Some("config.json".into());
    e.pointer = Some(pointer.into());
    e.error = Some(value_error(format!(
        "torch.float16 is not supported for quantization method {name}. Supported dtypes: [torch.bfloat16]"
    )));
    trace.events.push(e);
}

/// `DEPRECATED_QUANTIZATION_METHODS`: refused without `--allow-deprecated-quantization`.
const DEPRECATED: [&str; 2] = ["fbgemm_fp8", "fp_quant"];

fn deprecated(name: &str) -> Raised {
    // The exception holds a template and its argument, and nobody fills it in.
    value_error(format!(
        "('The quantization method %s is deprecated and will be removed in future versions of vLLM. To bypass, set \
         `--allow-deprecated-quantization`.', '{name}')"
    ))
}

/// Older mixed checkpoints keep their table of layers in a file of its own, which is read in place of the config found
/// (`get_quant_config`, vllm/model_executor/model_loader/weight_utils.py).
fn beside(cp: &Checkpoint, name: &str, place: &Place) -> Result<Option<Place>, (String, Raised)> {
    if name != "modelopt_mixed" || place.value.get("quantized_layers").is_some() {
        return Ok(None);
    }
    let error = |text: String| (String::new(), Raised { error_type: "ValueError".into(), text });
    let file = cp.quant_files.iter().find(|f| f.0 == "hf_quant_config.json");
    let Some((file, part)) = file else {
        return Err(error(format!("Cannot find the config file for {name}")));
    };
    let Some(json) = part.get() else { return Ok(None) };
    if json.value.pointer("/producer/name").and_then(Value::as_str) != Some("modelopt") {
        let opened = format!("<_io.TextIOWrapper name='<dir>/{file}' mode='r' encoding='UTF-8'>");
        return Err(error(format!("Unsupported quantization config found for {name} in {opened}.")));
    }
    Ok(Some(Place { file: file.clone(), pointer: String::new(), value: json.value.clone() }))
}

/// A method, or the JSON pointer of what it raises at, and what.
type Parsed = Result<Box<dyn Quantizer>, (String, Raised)>;

fn boxed<Q: Quantizer + 'static>(parsed: Result<Q, (String, Raised)>) -> Parsed {
    parsed.map(|q| Box::new(q) as Box<dyn Quantizer>)
}

/// `from_config` of the methods that are simulated.
fn parse(name: &str, config: &Value, semantics: &Semantics) -> Option<Parsed> {
    Some(match name {
        "compressed-tensors" => boxed(CompressedTensors::parse(config).map(|q| q.asking(semantics.expert_names))),
        "fp8" => boxed(Fp8::parse(config)),
        "gptq" | "gptq_marlin" | "auto_gptq" => boxed(Gptq::parse(config)),
        "awq" | "awq_marlin" | "auto_awq" => boxed(Awq::parse(config)),
        "inc" | "auto-round" if Inc::knows(config) => boxed(Inc::parse(config)),
        "mxfp4" | "gpt_oss_mxfp4" => boxed(Ok(Mxfp4::new(name == "gpt_oss_mxfp4"))),
        "quark" => boxed(Quark::parse(config)?.map(|q| q.packing(semantics.quark_int4))),
        word => match modelopt::names(word) {
            Some(name) => boxed(ModelOpt::parse(name, config)),
            None => boxed(Online::parse(word)?),
        },
    })
}

/// What a validator said, without pydantic's frame: `1 validation error for X`, a field, `  Value error, … [type=…`.
fn inner(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if !lines.first().is_some_and(|l| l.contains(" validation error")) {
        return text.to_owned();
    }
    let Some(at) = lines.iter().position(|l| l.starts_with("  ")) else { return text.to_owned() };
    let said = lines[at].trim().split(" [type=").next().unwrap_or_default();
    match (said.strip_prefix("Value error, "), at) {
        (Some(said), _) => said.to_owned(),
        (None, 2) => format!("{}: {said}", lines[1].trim_matches('`')),
        (None, _) => said.to_owned(),
    }
}

/// Whether vLLM knows a method by this name, after the overrides have renamed it.
fn check_name(registry: Option<&Registry>, name: &str, place: Option<&Place>, trace: &mut Trace) -> bool {
    let Some(registry) = registry else { return true };
    let known = &registry.quant_methods;
    // Names that another class answers for (`override_quantization_method`).
    if known.is_empty() || known.iter().any(|k| k == name) || name == "auto-round" {
        return true;
    }
    let list = known.iter().map(|k| format!("'{k}'")).collect::<Vec<_>>().join(", ");
    let raised = value_error(format!("Unknown quantization method: {name}. Must be one of [{list}]."));
    match place {
        Some(p) => push(trace, Kind::QuantMethodUnknown, Effect::Refuses, p, "/quant_method", Some(raised)),
        None => argument(trace, raised),
    }
    false
}

/// `--quantization` is refused.
fn argument(trace: &mut Trace, raised: Raised) {
    let mut e = Event::new(Stage::Config, Effect::Refuses, Kind::ArgumentRefused);
    e.error = Some(raised);
    trace.events.push(e);
}
