//! The field validators of `QuantizationArgs`. Issues are collected as pydantic does, in the order of the fields.

use serde_json::{Map, Value};

use super::args::{Args, Dynamic, Refused, Strategy, invalid_group_size};
use crate::vllm::method::py::{self, Issue, raised, repr};

/// Issues so far.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) issues: Vec<Issue>,
}

const NAMES: [&str; 12] = [
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

impl Fields {
    /// All fields; a `TypeError` ends it at once.
    pub(super) fn all(&mut self, map: &Map<String, Value>) -> Result<Args, Refused> {
        let get = |name: &str| map.get(name);
        let num_bits = get("num_bits").map_or(8, |v| self.keep("num_bits", v, py::to_int(v), 8));
        let float = get("type").is_some_and(|v| self.kind(v));
        let symmetric = get("symmetric").is_none_or(|v| self.keep("symmetric", v, py::to_bool(v), true));
        let group_size = match get("group_size") {
            None | Some(Value::Null) => None,
            Some(v) => self.group_size(v)?,
        };
        let strategy = get("strategy").and_then(|v| self.strategy(v));
        let block = get("block_structure").and_then(|v| self.block(v));
        let dynamic = get("dynamic").map_or(Dynamic::No, |v| self.dynamic(v));
        let actorder = get("actorder").and_then(|v| self.actorder(v));
        let scale_dtype = get("scale_dtype").and_then(|v| self.dtype("scale_dtype", v));
        let zp_dtype = get("zp_dtype").and_then(|v| self.dtype("zp_dtype", v));
        let observer = match get("observer") {
            None | Some(Value::Null) => None,
            Some(Value::String(s)) => Some(s.clone()),
            Some(v) => {
                self.issues.push(Issue::new(&["observer"], "string_type", "Input should be a valid string", v));
                None
            }
        };
        let observer_kwargs = match get("observer_kwargs") {
            None => Map::new(),
            Some(Value::Object(o)) => o.clone(),
            Some(v) => {
                let text = "Input should be a valid dictionary";
                self.issues.push(Issue::new(&["observer_kwargs"], "dict_type", text, v));
                Map::new()
            }
        };
        for (key, value) in map.iter().filter(|(key, _)| !NAMES.contains(&key.as_str())) {
            let text = "Extra inputs are not permitted";
            self.issues.push(Issue::new(&[key], "extra_forbidden", text, value));
        }
        let (type_given, strategy_given) = (get("type").is_some(), strategy.is_some());
        Ok(Args {
            num_bits,
            float,
            symmetric,
            group_size,
            strategy,
            block,
            dynamic,
            actorder,
            scale_dtype,
            zp_dtype,
            observer,
            observer_kwargs,
            type_given,
            strategy_given,
        })
    }

    fn keep<T>(&mut self, field: &str, value: &Value, got: Result<T, py::Refusal>, default: T) -> T {
        got.unwrap_or_else(|(kind, text)| {
            self.issues.push(Issue::new(&[field], kind, text, value));
            default
        })
    }

    fn not_valid(&mut self, field: &str, value: &Value, lowered: &str, of: &str) {
        let text = format!("{} is not a valid {of}", py::repr_str(lowered));
        self.issues.push(Issue::value(&[field], &text, value));
    }

    fn kind(&mut self, value: &Value) -> bool {
        match value.as_str().map(str::to_lowercase).as_deref() {
            Some("int") => {}
            Some("float") => return true,
            Some(other) => self.not_valid("type", value, other, "QuantizationType"),
            None => self.issues.push(Issue::new(&["type"], "enum", "Input should be 'int' or 'float'", value)),
        }
        false
    }

    fn group_size(&mut self, value: &Value) -> Result<Option<i64>, Refused> {
        match value {
            Value::String(_) | Value::Array(_) | Value::Object(_) => {
                let name = py::type_name(value);
                let text = format!("'<' not supported between instances of '{name}' and 'int'");
                return Err(("group_size".into(), raised("TypeError", text)));
            }
            Value::Number(n) if n.as_f64().is_some_and(|f| f < -1.0) => {
                self.issues.push(Issue::value(&["group_size"], &invalid_group_size(&repr(value)), value));
                return Ok(None);
            }
            _ => {}
        }
        Ok(py::to_int(value).map(Some).unwrap_or_else(|(kind, text)| {
            self.issues.push(Issue::new(&["group_size"], kind, text, value));
            None
        }))
    }

    fn strategy(&mut self, value: &Value) -> Option<Strategy> {
        if value.is_null() {
            return None;
        }
        let Some(lowered) = value.as_str().map(str::to_lowercase) else {
            let text = "Input should be 'tensor', 'channel', 'group', 'block', 'token', 'tensor_group' or 'attn_head'";
            self.issues.push(Issue::new(&["strategy"], "enum", text, value));
            return None;
        };
        let found = Strategy::of(&lowered);
        if found.is_none() {
            self.not_valid("strategy", value, &lowered, "QuantizationStrategy");
        }
        found
    }

    fn block(&mut self, value: &Value) -> Option<Vec<i64>> {
        let sizes = match value {
            Value::Null => return None,
            Value::String(s) => s.split('x').map(py::int_of_str).collect(),
            Value::Array(items) if items.len() == 2 => {
                let int = |v: &Value| matches!(py::type_name(v), "int" | "bool").then(|| py::to_int(v).ok()).flatten();
                items.iter().map(int).collect()
            }
            _ => None,
        };
        if sizes.is_none() {
            let text =
                format!("Invalid block_structure '{}'. Must be a list of ints [rows, cols].", py::display(value));
            self.issues.push(Issue::value(&["block_structure"], &text, value));
        }
        sizes
    }

    fn dynamic(&mut self, value: &Value) -> Dynamic {
        match value.as_str().map(str::to_lowercase).as_deref() {
            Some("local") => return Dynamic::Local,
            Some(other) => self.not_valid("dynamic", value, other, "DynamicType"),
            None => match py::to_bool(value) {
                Ok(true) => return Dynamic::Yes,
                Ok(false) => {}
                Err(refusal) => self.union("dynamic", "DynamicType", "'local'", refusal, value),
            },
        }
        Dynamic::No
    }

    /// The `repr` of what becomes of `actorder`.
    fn actorder(&mut self, value: &Value) -> Option<&'static str> {
        match value {
            Value::Null | Value::Bool(false) => None,
            Value::Bool(true) => Some("'group'"),
            Value::String(s) => match s.to_lowercase().as_str() {
                "group" => Some("'group'"),
                "weight" => Some("'weight'"),
                "dynamic" => Some("'dynamic'"),
                "static" => Some("'static'"),
                other => {
                    self.not_valid("actorder", value, other, "ActivationOrdering");
                    None
                }
            },
            _ => match py::to_bool(value) {
                Ok(true) => Some("True"),
                Ok(false) => Some("False"),
                Err(refusal) => {
                    let names = "'group', 'weight', 'dynamic' or 'static'";
                    self.union("actorder", "ActivationOrdering", names, refusal, value);
                    None
                }
            },
        }
    }

    /// Neither member of `enum | bool` took the value.
    fn union(&mut self, field: &str, of: &str, names: &str, refusal: py::Refusal, value: &Value) {
        let step = format!("function-after[operator.attrgetter('value')(), str-enum[{of}]]");
        self.issues.push(Issue::new(&[field, &step], "enum", format!("Input should be {names}"), value));
        self.issues.push(Issue::new(&[field, "bool"], refusal.0, refusal.1, value));
    }

    fn dtype(&mut self, field: &str, value: &Value) -> Option<&'static str> {
        if value.is_null() {
            return None;
        }
        let found = value.as_str().and_then(py::torch_dtype);
        if found.is_none() {
            self.issues.extend(dtype_issues(&[field], value));
        }
        found
    }
}

/// What pydantic says of a value that is no `TorchDtype`.
pub(super) fn dtype_issues(loc: &[&str], value: &Value) -> [Issue; 2] {
    let at = |step: &'static str| loc.iter().copied().chain([step]).collect::<Vec<_>>();
    let chain = at("chain[str,function-plain[validate_from_str()]]");
    [
        Issue::new(&at("is-instance[dtype]"), "is_instance_of", "Input should be an instance of dtype", value),
        match value.as_str() {
            Some(name) => {
                let name = name.strip_prefix("torch.").unwrap_or(name);
                Issue::value(&chain, &format!("No such torch dtype `torch.{name}`"), value)
            }
            None => Issue::new(&chain, "string_type", "Input should be a valid string", value),
        },
    ]
}
