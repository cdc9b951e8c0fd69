//! As much of JSON Schema as our own schema uses: enough to say that a report has the documented shape.

#![allow(unreachable_pub, reason = "shared between test binaries")]

use serde_json::Value;

/// Panics where `value` is not what `schema` says; `root` resolves `$ref`.
pub fn check(root: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference}"));
        check(root, target, value, at);
    }
    if let Some(constant) = schema.get("const") {
        assert_eq!(value, constant, "{at}");
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
        assert!(allowed.contains(value), "{at}: {value} is none of {allowed:?}");
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(options) = schema.get(key).and_then(Value::as_array) {
            let fits = options.iter().any(|o| std::panic::catch_unwind(|| check(root, o, value, at)).is_ok());
            assert!(fits, "{at}: {value} fits no option");
        }
    }
    match schema.get("type") {
        Some(Value::String(t)) => assert!(is(t, value), "{at}: {value} is no {t}"),
        Some(Value::Array(ts)) => {
            assert!(ts.iter().any(|t| is(t.as_str().unwrap(), value)), "{at}: {value} is none of {ts:?}");
        }
        _ => {}
    }
    if let (Some(object), Some(properties)) = (value.as_object(), schema.get("properties").and_then(Value::as_object)) {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            assert!(object.contains_key(name.as_str().unwrap()), "{at}: {name} is missing");
        }
        for (name, v) in object {
            // Tagged enums keep their tag in the option; everything else is documented.
            let property = properties.get(name).unwrap_or_else(|| panic!("{at}/{name} is not documented"));
            check(root, property, v, &format!("{at}/{name}"));
        }
    }
    if let (Some(list), Some(items)) = (value.as_array(), schema.get("items")) {
        for (i, v) in list.iter().enumerate() {
            check(root, items, v, &format!("{at}/{i}"));
        }
    }
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    }
}
