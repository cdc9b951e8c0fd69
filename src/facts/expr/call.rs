//! Functions of expressions: total, null for what has no meaning, no list longer than [`MAX_LIST`].

use super::{equal, integer, number};
use serde_json::Value;

pub(super) fn call(f: &str, args: &[Value]) -> Value {
    let items: &[Value] = match args {
        [Value::Array(a)] => a,
        _ => args,
    };
    match (f, args) {
        ("len", [Value::Array(a)]) => Value::from(a.len()),
        ("len", [Value::Object(o)]) => Value::from(o.len()),
        ("len", [Value::String(s)]) => Value::from(s.chars().count()),
        ("subset", [Value::Array(a), Value::Array(b)]) => Value::Bool(a.iter().all(|x| b.iter().any(|y| equal(x, y)))),
        ("count", [Value::Array(a), x]) => Value::from(a.iter().filter(|i| equal(i, x)).count()),
        ("min", _) => items
            .iter()
            .min_by(|a, b| number(a).partial_cmp(&number(b)).unwrap_or(std::cmp::Ordering::Equal))
            .cloned()
            .unwrap_or(Value::Null),
        ("max", _) => items
            .iter()
            .max_by(|a, b| number(a).partial_cmp(&number(b)).unwrap_or(std::cmp::Ordering::Equal))
            .cloned()
            .unwrap_or(Value::Null),
        ("int", [v]) => number(v).map_or(Value::Null, |x| Value::from(x.trunc() as i64)),
        ("ceil_div", [a, b]) => match (integer(a), integer(b)) {
            (Some(x), Some(y)) if y > 0 => Value::from(x.div_euclid(y) + i64::from(x.rem_euclid(y) != 0)),
            _ => Value::Null,
        },
        ("round_up", [a, b]) => match (integer(a), integer(b)) {
            (Some(x), Some(y)) if y > 0 => {
                (x.div_euclid(y) + i64::from(x.rem_euclid(y) != 0)).checked_mul(y).map_or(Value::Null, Value::from)
            }
            _ => Value::Null,
        },
        ("str", [v]) => match v {
            Value::String(s) => Value::from(s.as_str()),
            v => Value::from(v.to_string()),
        },
        // `[a, a, …, b, a, …]` of length n: b at every k-th place.
        ("cycle", [n, k, a, b]) => match (integer(n), integer(k)) {
            (Some(n), Some(k)) if (0..=MAX_LIST).contains(&n) && k > 0 => {
                Value::Array((1..=n).map(|i| if i % k == 0 { b.clone() } else { a.clone() }).collect())
            }
            _ => Value::Null,
        },
        // n times: a before the k-th place, b from there on.
        ("step", [n, k, a, b]) => match (integer(n), integer(k)) {
            (Some(n), Some(k)) if (0..=MAX_LIST).contains(&n) => {
                Value::Array((0..n).map(|i| if i < k { a.clone() } else { b.clone() }).collect())
            }
            _ => Value::Null,
        },
        // Items of a list, or letters of a string, with other words for some of them: pairs of old and new.
        ("words", [list, pairs @ ..]) => {
            let items: Vec<Value> = match list {
                Value::Array(a) => a.clone(),
                Value::String(s) => s.chars().map(|c| Value::from(c.to_string())).collect(),
                _ => return Value::Null,
            };
            let new =
                |x: Value| pairs.chunks(2).find_map(|p| (p.len() == 2 && p[0] == x).then(|| p[1].clone())).unwrap_or(x);
            Value::Array(items.into_iter().map(new).collect())
        }
        // n times a, but b at every k-th place counted from the first.
        ("from_cycle", [n, k, first, a, b]) => match (integer(n), integer(k), integer(first)) {
            (Some(n), Some(k), Some(first)) if (0..=MAX_LIST).contains(&n) && k > 0 => {
                Value::Array((0..n).map(|i| if i % k == first { b.clone() } else { a.clone() }).collect())
            }
            _ => Value::Null,
        },
        // n times a, but b at the places of the list.
        ("at_places", [n, places, a, b]) => match integer(n) {
            Some(n) if (0..=MAX_LIST).contains(&n) => {
                let hit = |i: i64| places.as_array().is_some_and(|p| p.iter().any(|x| equal(x, &Value::from(i))));
                Value::Array((0..n).map(|i| if hit(i) { b.clone() } else { a.clone() }).collect())
            }
            _ => Value::Null,
        },
        ("range", [from, to, by]) => match (integer(from), integer(to), integer(by)) {
            (Some(from), Some(to), Some(by)) if (0..=MAX_LIST).contains(&to) && from >= 0 => {
                match usize::try_from(by) {
                    Ok(by) if by > 0 => Value::Array((from..to).step_by(by).map(Value::from).collect()),
                    _ => Value::Null,
                }
            }
            _ => Value::Null,
        },
        // The places of a list that hold v; and the place of the first one.
        ("where", [Value::Array(a), v]) => (0..a.len()).filter(|&i| equal(&a[i], v)).collect(),
        ("place", [Value::Array(list), v]) => list.iter().position(|x| equal(x, v)).map_or(Value::Null, Value::from),
        // The numbers of a string: `1,2,3`.
        ("ints", [Value::String(s)]) => {
            let all: Option<Vec<i64>> = s.split(',').map(|x| x.trim().parse().ok()).collect();
            all.map_or(Value::Null, Value::from)
        }
        // One field of every entry of a list, `v` where there is none; and how many different values a list has.
        ("column", [Value::Array(l), Value::String(k), v]) => l.iter().map(|x| x.get(k).unwrap_or(v).clone()).collect(),
        ("distinct", [Value::Array(l)]) => {
            Value::from(l.iter().map(ToString::to_string).collect::<std::collections::HashSet<_>>().len())
        }
        ("with_last", [Value::Array(list), v]) => {
            let mut list = list.clone();
            if let Some(last) = list.last_mut() {
                *last = v.clone();
            }
            Value::Array(list)
        }
        // `{index: {key: value, …}}` for every place of the list that equals v; null values are left out.
        ("at_indices", [Value::Array(list), v, pairs @ ..]) => {
            let mut entry = serde_json::Map::new();
            for pair in pairs.chunks(2) {
                if let [Value::String(k), v] = pair
                    && !v.is_null()
                {
                    entry.insert(k.clone(), v.clone());
                }
            }
            let hits = list.iter().enumerate().filter(|(_, x)| equal(x, v));
            Value::Object(hits.map(|(i, _)| (i.to_string(), Value::Object(entry.clone()))).collect())
        }
        ("get", [m, k]) => binary_get(m, k).unwrap_or(Value::Null),
        ("get", [m, k, d]) => binary_get(m, k).unwrap_or_else(|| d.clone()),
        _ => Value::Null,
    }
}

/// No model has more layers; a config that says so is not believed.
const MAX_LIST: i64 = 10_000;

fn binary_get(m: &Value, k: &Value) -> Option<Value> {
    m.get(k.as_str().map_or_else(|| k.to_string(), str::to_owned)).cloned()
}
