//! The general way: any JSON, judged by serde_json with the types of the safetensors crate, and read as far as
//! possible beside that.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::{Defect, DefectKind, Dtype, Entries, Raw};

/// The crate's own shape of a header, so that serde says exactly the same about it.
#[derive(serde::Deserialize)]
#[allow(dead_code, reason = "only whether it parses matters")]
struct HashMetadata {
    #[serde(rename = "__metadata__")]
    metadata: Option<HashMap<String, String>>,
    #[serde(flatten)]
    tensors: HashMap<String, TensorInfo>,
}

#[derive(serde::Deserialize)]
#[allow(dead_code, reason = "only whether it parses matters")]
struct TensorInfo {
    dtype: Dtype,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// Every entry that can be read, and the defects of the rest.
pub(super) fn read(text: &str) -> Entries<'static> {
    let mut out = Entries::default();
    let verdict = serde_json::from_str::<HashMetadata>(text).map(drop);
    let mut json = serde_json::Deserializer::from_str(text);
    // A syntax error ends it; what was read before stays.
    let read = Salvage(&mut out).deserialize(&mut json);
    out.partial = read.is_err();
    match verdict {
        Ok(()) => out.defects.clear(),
        Err(e) => {
            let said = format!("invalid JSON in header: {e}");
            if e.classify() != serde_json::error::Category::Data || out.defects.is_empty() {
                let at =
                    if e.line() > 0 { format!(" (line {}, column {})", e.line(), e.column()) } else { String::new() };
                let what = e.to_string();
                let what = what.split(" at line ").next().unwrap_or_default();
                let text = format!("the header does not parse: {what}{at}");
                out.defects.push(Defect::new(DefectKind::HeaderJson, text));
            }
            if let Some(first) = out.defects.first_mut() {
                first.said = Some(said);
            }
        }
    }
    out
}

struct Salvage<'a>(&'a mut Entries<'static>);

impl<'de> DeserializeSeed<'de> for Salvage<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Salvage<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            // One entry at a time: a whole tree of a 100 MB header would take gigabytes.
            let value = map.next_value_seed(AsValue)?;
            if key == "__metadata__" {
                self.0.metadata(&value);
            } else {
                self.0.tensor(key, &value);
            }
        }
        Ok(())
    }
}

struct AsValue;

impl<'de> DeserializeSeed<'de> for AsValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Value, D::Error> {
        Value::deserialize(d)
    }
}

impl Entries<'static> {
    fn metadata(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::Object(map) => {
                for (key, value) in map {
                    match value {
                        Value::String(s) => self.metadata.push((key.clone(), s.clone())),
                        _ => self.defect(format!("`__metadata__` holds `{key}`, which is not a string"), None),
                    }
                }
            }
            _ => self.defect("`__metadata__` is not an object".to_owned(), None),
        }
    }

    fn tensor(&mut self, name: String, value: &Value) {
        // serde also takes a struct as a list of its fields.
        let field = |key: &str, at: usize| match value {
            Value::Object(map) => map.get(key),
            Value::Array(list) if list.len() == 3 => list.get(at),
            _ => None,
        };
        let mut wrong = Vec::new();
        let dtype = field("dtype", 0).and_then(tag);
        let known = dtype.and_then(Dtype::from_tag);
        match (dtype, known) {
            (Some(tag), None) => {
                let text = format!("dtype `{tag}` of `{name}` is not one that safetensors knows");
                self.defects.push(Defect::new(DefectKind::UnknownDtype, text).of(&name));
            }
            (None, _) => wrong.push("`dtype`"),
            _ => {}
        }
        let shape = field("shape", 1).and_then(numbers);
        let span = field("data_offsets", 2).and_then(numbers).and_then(|n| match n[..] {
            [start, end] => Some((start, end)),
            _ => None,
        });
        if shape.is_none() {
            wrong.push("`shape`");
        }
        if span.is_none() {
            wrong.push("`data_offsets`");
        }
        if !wrong.is_empty() {
            let text = format!("`{name}` has no usable {}", wrong.join(" and "));
            self.defect(text, Some(&name));
        }
        self.tensors.push(Raw { name: name.into(), dtype: known, shape: shape.map(Into::into), span });
    }

    fn defect(&mut self, text: String, tensor: Option<&str>) {
        let defect = Defect::new(DefectKind::HeaderJson, text);
        self.defects.push(match tensor {
            Some(name) => defect.of(name),
            None => defect,
        });
    }
}

/// A unit variant: `"F32"`, which serde also takes as `{"F32": null}`.
fn tag(value: &Value) -> Option<&str> {
    match value {
        Value::String(s) => Some(s),
        Value::Object(map) if map.len() == 1 => {
            let (key, unit) = map.iter().next()?;
            let empty = unit.is_null() || unit.as_object().is_some_and(serde_json::Map::is_empty);
            empty.then_some(key.as_str())
        }
        _ => None,
    }
}

fn numbers(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Value::as_u64).collect()
}
