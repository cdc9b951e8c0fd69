//! Where vLLM finds the quantization config, and which method it makes of it (spec B.3, B.4).

use super::Target;
use super::method::compressed_tensors::CompressedTensors;
use super::method::fp8::Fp8;
use super::method::{Method, Quantizer};
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
    if raw.get("quantization_config").is_none()
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
pub fn method(target: &Target, registry: Option<&Registry>, place: Option<&Place>, trace: &mut Trace) -> Method {
    let Some(place) = place else {
        return match &target.quantization {
            Some(q) => {
                check_name(registry, q, None, trace);
                Method::Unknown(q.clone())
            }
            None => Method::None,
        };
    };
    let named = place.value.get("quant_method").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    if named.is_empty() && place.value.get("producer").is_some() {
        return Method::Unknown("modelopt".into());
    }
    if named.is_empty() {
        push(trace, Kind::QuantMethodMissing, Effect::Keeps, place, "", None);
        return Method::None;
    }
    let name = match named.as_str() {
        "compressed_tensors" => "compressed-tensors".to_owned(),
        n => n.to_owned(),
    };
    if let Some(q) = &target.quantization
        && *q != name
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
    match parse(&name, &place.value) {
        None => Method::Unknown(name),
        Some(Ok(quantizer)) => Method::Known(quantizer),
        Some(Err((pointer, mut raised))) => {
            // Raised while pydantic validates the engine's config, which wraps these three.
            if matches!(raised.error_type.as_str(), "ValueError" | "AssertionError" | "ValidationError") {
                raised = Raised { error_type: "ValidationError".into(), text: inner(&raised.text) };
            }
            push(trace, Kind::QuantConfigRejected, Effect::Refuses, place, &pointer, Some(raised));
            Method::Unknown(name)
        }
    }
}

/// A method, or the JSON pointer of what it raises at, and what.
type Parsed = Result<Box<dyn Quantizer>, (String, Raised)>;

/// `from_config` of the methods that are simulated.
fn parse(name: &str, config: &Value) -> Option<Parsed> {
    fn boxed<Q: Quantizer + 'static>(parsed: Result<Q, (String, Raised)>) -> Parsed {
        parsed.map(|q| Box::new(q) as Box<dyn Quantizer>)
    }
    Some(match name {
        "compressed-tensors" => boxed(CompressedTensors::parse(config)),
        "fp8" => boxed(Fp8::parse(config)),
        _ => return None,
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
    if known.is_empty()
        || known.iter().any(|k| k == name)
        || matches!(name, "auto-round" | "autoround" | "intel/auto-round")
    {
        return true;
    }
    let list = known.iter().map(|k| format!("'{k}'")).collect::<Vec<_>>().join(", ");
    let raised = value_error(format!("Unknown quantization method: {name}. Must be one of [{list}]."));
    match place {
        Some(p) => push(trace, Kind::QuantMethodUnknown, Effect::Refuses, p, "/quant_method", Some(raised)),
        None => {
            let mut e = Event::new(Stage::Config, Effect::Refuses, Kind::ArgumentRefused);
            e.error = Some(raised);
            trace.events.push(e);
        }
    }
    false
}
