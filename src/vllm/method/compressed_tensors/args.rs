//! `QuantizationArgs` of the compressed-tensors library 0.17 (quantization/quant_args.py): validation in its order and words.

use crate::vllm::trace::Raised;
use serde_json::{Map, Value};
use std::fmt;

/// Integer or float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// `int`
    Int,
    /// `float`
    Float,
}

/// Scope of one scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the library's own words")]
pub enum Strategy {
    Tensor,
    Channel,
    Group,
    Block,
    Token,
    TensorGroup,
    AttnHead,
}

impl Strategy {
    fn read(s: &str) -> Option<Strategy> {
        Some(match s {
            "tensor" => Strategy::Tensor,
            "channel" => Strategy::Channel,
            "group" => Strategy::Group,
            "block" => Strategy::Block,
            "token" => Strategy::Token,
            "tensor_group" => Strategy::TensorGroup,
            "attn_head" => Strategy::AttnHead,
            _ => return None,
        })
    }

    /// The library's word.
    pub fn word(self) -> &'static str {
        match self {
            Strategy::Tensor => "tensor",
            Strategy::Channel => "channel",
            Strategy::Group => "group",
            Strategy::Block => "block",
            Strategy::Token => "token",
            Strategy::TensorGroup => "tensor_group",
            Strategy::AttnHead => "attn_head",
        }
    }
}

/// Static, dynamic, or `local`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the library's own words")]
pub enum Dynamic {
    No,
    Yes,
    Local,
}

/// One validated set of arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Args {
    /// Bits of a value.
    pub bits: i64,
    /// `type`.
    pub numbers: Numbers,
    /// `symmetric`.
    pub symmetric: bool,
    /// `group_size`.
    pub group: Option<i64>,
    /// `strategy`.
    pub strategy: Strategy,
    /// Rows and columns of a block.
    pub block: Option<(u64, u64)>,
    /// `dynamic`.
    pub dynamic: Dynamic,
    /// `actorder`, normalised.
    pub actorder: Option<String>,
    /// `scale_dtype`.
    pub scale_dtype: Option<String>,
    zp_dtype: String,
    observer: Option<String>,
    observer_kwargs: Value,
    strategy_given: bool,
    type_given: bool,
}

fn invalid(field: &str, text: &str) -> Raised {
    let at = if field.is_empty() { String::new() } else { format!("{field}\n") };
    Raised {
        error_type: "ValidationError".into(),
        text: format!("1 validation error for QuantizationArgs\n{at}  {text}"),
    }
}

const FIELDS: [&str; 12] = [
    "num_bits",
    "type",
    "symmetric",
    "group_size",
    "strategy",
    "block_structure",
    "dynamic",
    "actorder",
    "scale_dtype",
    "zp_dtype",
    "observer",
    "observer_kwargs",
];

type Result<T> = std::result::Result<T, (&'static str, Raised)>;

fn integer(o: &Map<String, Value>, field: &'static str) -> Result<Option<i64>> {
    let fail = |text: &str| Err((field, invalid(field, text)));
    match o.get(field) {
        None => Ok(None),
        Some(Value::Number(n)) => {
            match n.as_i64().or_else(|| n.as_f64().filter(|f| f.fract() == 0.0).map(|f| f as i64)) {
                Some(i) => Ok(Some(i)),
                None => fail("Input should be a valid integer, got a number with a fractional part"),
            }
        }
        Some(Value::String(s)) => match s.trim().parse() {
            Ok(i) => Ok(Some(i)),
            Err(_) => fail("Input should be a valid integer, unable to parse string as an integer"),
        },
        Some(Value::Bool(b)) => Ok(Some(i64::from(*b))),
        Some(_) => fail("Input should be a valid integer"),
    }
}

fn word(o: &Map<String, Value>, field: &'static str) -> Option<String> {
    o.get(field).and_then(Value::as_str).map(str::to_lowercase)
}

fn boolean(o: &Map<String, Value>, field: &'static str, default: bool) -> Result<bool> {
    match o.get(field) {
        None => Ok(default),
        Some(Value::Bool(b)) => Ok(*b),
        Some(Value::Number(n)) if n.as_i64() == Some(0) => Ok(false),
        Some(Value::Number(n)) if n.as_i64() == Some(1) => Ok(true),
        Some(Value::String(s)) if matches!(s.to_lowercase().as_str(), "true" | "1" | "yes" | "on" | "y" | "t") => {
            Ok(true)
        }
        Some(Value::String(s)) if matches!(s.to_lowercase().as_str(), "false" | "0" | "no" | "off" | "n" | "f") => {
            Ok(false)
        }
        Some(Value::String(_) | Value::Number(_)) => {
            Err((field, invalid(field, "Input should be a valid boolean, unable to interpret input")))
        }
        Some(_) => Err((field, invalid(field, "Input should be a valid boolean"))),
    }
}

impl Args {
    /// Validate; the error names the field.
    pub fn read(v: Option<&Value>) -> Result<Args> {
        let Some(Value::Object(o)) = v else {
            return Err(("", invalid("", "Input should be a valid dictionary or instance of QuantizationArgs")));
        };
        let bits = integer(o, "num_bits")?.unwrap_or(8);
        let numbers = match word(o, "type").as_deref() {
            None | Some("int") => Numbers::Int,
            Some("float") => Numbers::Float,
            Some(w) => {
                return Err(("type", invalid("type", &format!("Value error, '{w}' is not a valid QuantizationType"))));
            }
        };
        let symmetric = boolean(o, "symmetric", true)?;
        let group = match o.get("group_size") {
            Some(Value::Null) | None => None,
            _ => integer(o, "group_size")?,
        };
        let bad_group = |g: i64| {
            format!(
                "Value error, Invalid group size {g}. Use group_size > 0 for strategy='group' and group_size = -1 for 'channel'"
            )
        };
        if let Some(g) = group.filter(|g| *g < -1) {
            return Err(("group_size", invalid("group_size", &bad_group(g))));
        }
        let given = match word(o, "strategy") {
            None => None,
            Some(w) => match Strategy::read(&w) {
                Some(s) => Some(s),
                None => {
                    return Err((
                        "strategy",
                        invalid("strategy", &format!("Value error, '{w}' is not a valid QuantizationStrategy")),
                    ));
                }
            },
        };
        let block = Self::block(o)?;
        let dynamic = match o.get("dynamic") {
            Some(Value::String(s)) if s.eq_ignore_ascii_case("local") => Dynamic::Local,
            Some(Value::String(s)) => {
                return Err((
                    "dynamic",
                    invalid("dynamic", &format!("Value error, '{}' is not a valid DynamicType", s.to_lowercase())),
                ));
            }
            _ => {
                if boolean(o, "dynamic", false)? {
                    Dynamic::Yes
                } else {
                    Dynamic::No
                }
            }
        };
        let actorder = match o.get("actorder") {
            Some(Value::Bool(true)) => Some("group".to_owned()),
            Some(Value::String(s)) => {
                let w = s.to_lowercase();
                match w.as_str() {
                    "group" | "weight" => Some(w),
                    "static" => Some("weight".to_owned()),
                    "dynamic" => Some("group".to_owned()),
                    _ => {
                        return Err((
                            "actorder",
                            invalid("actorder", &format!("Value error, '{w}' is not a valid ActivationOrdering")),
                        ));
                    }
                }
            }
            _ => None,
        };
        if o.get("observer").is_some_and(|v| !v.is_string() && !v.is_null()) {
            return Err(("observer", invalid("observer", "Input should be a valid string")));
        }
        if o.get("observer_kwargs").is_some_and(|v| !v.is_object()) {
            return Err(("observer_kwargs", invalid("observer_kwargs", "Input should be a valid dictionary")));
        }
        if let Some(k) = o.keys().find(|k| !FIELDS.contains(&k.as_str())) {
            return Err(("", invalid(k, "Extra inputs are not permitted")));
        }
        let strategy = match (given, group) {
            (Some(s), _) => s,
            (None, None) => Strategy::Tensor,
            (None, Some(g)) if g > 0 => Strategy::Group,
            (None, Some(-1)) => Strategy::Channel,
            (None, Some(g)) => return Err(("group_size", invalid("", &bad_group(g)))),
        };
        Self::consistent(strategy, group, block, dynamic, actorder.as_deref())?;
        if numbers == Numbers::Float && !matches!(bits, 4 | 8) {
            return Err((
                "num_bits",
                Raised { error_type: "NotImplementedError".into(), text: "Only num_bits in (8) are supported".into() },
            ));
        }
        let observer = match (dynamic, o.get("observer").and_then(Value::as_str)) {
            (Dynamic::Yes, _) => None,
            (Dynamic::Local, x) => Some(x.unwrap_or("minmax").to_owned()),
            (Dynamic::No, x) => Some(x.unwrap_or("memoryless_minmax").to_owned()),
        };
        let dtype =
            |f: &str| o.get(f).and_then(Value::as_str).map(|s| s.strip_prefix("torch.").unwrap_or(s).to_owned());
        let zp_dtype = dtype("zp_dtype").unwrap_or_else(|| match (numbers, bits) {
            (Numbers::Float, _) => "float8_e4m3fn".into(),
            (_, b) if b <= 8 => "int8".into(),
            (_, b) if b <= 16 => "int16".into(),
            _ => "int32".into(),
        });
        Ok(Args {
            bits,
            numbers,
            symmetric,
            group,
            strategy,
            block,
            dynamic,
            actorder,
            scale_dtype: dtype("scale_dtype"),
            zp_dtype,
            observer,
            observer_kwargs: o.get("observer_kwargs").cloned().unwrap_or_else(|| Value::Object(Map::new())),
            strategy_given: given.is_some(),
            type_given: o.contains_key("type"),
        })
    }

    fn block(o: &Map<String, Value>) -> Result<Option<(u64, u64)>> {
        let list: Vec<Option<u64>> = match o.get("block_structure") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(s)) => s.split('x').map(|p| p.trim().parse().ok()).collect(),
            Some(Value::Array(a)) => a.iter().map(Value::as_u64).collect(),
            Some(_) => vec![],
        };
        match list.as_slice() {
            [Some(a), Some(b)] => Ok(Some((*a, *b))),
            _ => {
                let shown = o.get("block_structure").map(crate::vllm::config::python_repr).unwrap_or_default();
                let shown = shown.trim_matches('\'');
                Err((
                    "block_structure",
                    invalid(
                        "block_structure",
                        &format!(
                            "Value error, Invalid block_structure '{shown}'. Must be a list of ints [rows, cols]."
                        ),
                    ),
                ))
            }
        }
    }

    fn consistent(
        strategy: Strategy,
        group: Option<i64>,
        block: Option<(u64, u64)>,
        dynamic: Dynamic,
        actorder: Option<&str>,
    ) -> Result<()> {
        let grouped = matches!(strategy, Strategy::Group | Strategy::TensorGroup);
        let fail = |field, text: &str| Err((field, invalid("", &format!("Value error, {text}"))));
        if strategy == Strategy::Token && dynamic == Dynamic::No {
            return fail("strategy", "Cannot perform static token quantization, please use `dynamic=True`");
        }
        if grouped && group.is_none_or(|g| g <= 0) {
            return fail(
                "group_size",
                &format!("strategy {} requires group_size to be set to a positive value", strategy.word()),
            );
        }
        if group.is_some_and(|g| g > 0) && !grouped {
            return fail("group_size", "group_size requires strategy to be set to 'group'");
        }
        match (strategy == Strategy::Block, block.is_some()) {
            (true, false) => return fail("block_structure", "Block strategy requires block structure"),
            (false, true) => return fail("block_structure", "Block structure requires block strategy"),
            _ => {}
        }
        if actorder == Some("group") && !grouped {
            return fail(
                "actorder",
                "Must use group or tensor_group quantization strategy in order to apply group activation ordering",
            );
        }
        if dynamic != Dynamic::No {
            if !matches!(strategy, Strategy::Token | Strategy::Tensor | Strategy::TensorGroup | Strategy::Group) {
                return fail(
                    "dynamic",
                    "One of (<QuantizationStrategy.TOKEN: 'token'>, <QuantizationStrategy.TENSOR: 'tensor'>, <QuantizationStrategy.TENSOR_GROUP: 'tensor_group'>, <QuantizationStrategy.GROUP: 'group'>) must be used for dynamic quant.",
                );
            }
            if dynamic == Dynamic::Local && strategy != Strategy::TensorGroup {
                return fail("dynamic", "local is only supported for strategy tensor_group");
            }
        }
        Ok(())
    }

    /// A positive group size.
    pub fn group_size(&self) -> Option<u64> {
        self.group.and_then(|g| u64::try_from(g).ok()).filter(|g| *g > 0)
    }
}

/// `repr(args)`, as in the message for an unsupported combination.
impl fmt::Display for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = |s: &Option<String>| s.as_ref().map_or("None".to_owned(), |s| format!("'{s}'"));
        let numbers = if self.numbers == Numbers::Int { "int" } else { "float" };
        // pydantic keeps the enum object where the default was taken, and the bare value where one was given.
        let numbers = if self.type_given { format!("'{numbers}'") } else { "<QuantizationType.INT: 'int'>".into() };
        let w = self.strategy.word();
        let strategy = if self.strategy_given {
            format!("'{w}'")
        } else {
            format!("<QuantizationStrategy.{}: '{w}'>", w.to_uppercase())
        };
        let py = |b: bool| if b { "True" } else { "False" };
        let dynamic = match self.dynamic {
            Dynamic::No => "False",
            Dynamic::Yes => "True",
            Dynamic::Local => "'local'",
        };
        write!(
            f,
            "QuantizationArgs(num_bits={}, type={numbers}, symmetric={}, group_size={}, strategy={strategy}, block_structure={}, dynamic={dynamic}, \
             actorder={}, scale_dtype={}, zp_dtype=torch.{}, observer={}, observer_kwargs={})",
            self.bits,
            py(self.symmetric),
            self.group.map_or("None".to_owned(), |g| g.to_string()),
            self.block.map_or("None".to_owned(), |(a, b)| format!("[{a}, {b}]")),
            none(&self.actorder),
            self.scale_dtype.as_ref().map_or("None".to_owned(), |s| format!("torch.{s}")),
            self.zp_dtype,
            none(&self.observer),
            crate::vllm::config::python_repr(&self.observer_kwargs),
        )
    }
}
