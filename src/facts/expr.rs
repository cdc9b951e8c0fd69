//! The small, total, loop-free expressions of the fact files: Python's meaning on JSON values.

mod absent;
mod call;
mod parse;

pub use absent::Absent;

use call::call;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A literal.
    Lit(Value),
    /// A field of the scope, or an index variable.
    Name(String),
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `a.b`.
    Attr(Box<Expr>, String),
    /// `a[i]`.
    Index(Box<Expr>, Box<Expr>),
    /// Unary `-` and `not`.
    Unary(&'static str, Box<Expr>),
    /// Arithmetic and comparison.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `a if c else b`: condition, then, else.
    If(Box<(Expr, Expr, Expr)>),
    /// `f(a, b)`.
    Call(String, Vec<Expr>),
}

/// What names mean: the current config, the top-level one, and index variables.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Config that bare names are looked up in.
    pub config: &'a Value,
    /// `root.x`.
    pub root: &'a Value,
    /// Index variables and other bound names, innermost last.
    pub vars: &'a [(&'a str, Value)],
    /// Collects fields that were asked for and are not there, where that means more than null.
    pub absent: Option<&'a Absent>,
}

impl<'a> Scope<'a> {
    /// The top-level config, where an absent field is null.
    pub fn new(config: &'a Value, vars: &'a [(&'a str, Value)]) -> Self {
        Scope { config, root: config, vars, absent: None }
    }

    fn missing(&self, field: &str) -> Val<'a> {
        if let Some(absent) = self.absent {
            absent.note(field);
        }
        Cow::Owned(Value::Null)
    }
}

/// A value during evaluation, borrowed from the config where possible.
type Val<'a> = Cow<'a, Value>;

impl Expr {
    /// Parse. Errors name the position.
    pub fn parse(text: &str) -> Result<Expr, String> {
        parse::parse(text)
    }

    /// Evaluate; anything without meaning (missing field, wrong type, division by zero) is null.
    pub fn eval(&self, scope: &Scope) -> Value {
        self.value(scope).into_owned()
    }

    /// As a truth value, as Python sees it.
    pub fn truth(&self, scope: &Scope) -> bool {
        truthy(&self.value(scope))
    }

    /// As a size; none when it is not a non-negative integer.
    pub fn size(&self, scope: &Scope) -> Option<u64> {
        match self.value(scope).as_ref() {
            Value::Number(n) => {
                n.as_u64().or_else(|| n.as_f64().filter(|f| *f >= 0.0 && f.fract() == 0.0).map(|f| f as u64))
            }
            _ => None,
        }
    }

    fn value<'a>(&'a self, s: &Scope<'a>) -> Val<'a> {
        match self {
            Expr::Lit(v) => Cow::Borrowed(v),
            Expr::Name(n) => {
                if let Some((_, v)) = s.vars.iter().rev().find(|(k, _)| k == n) {
                    return Cow::Borrowed(v);
                }
                if n == "root" {
                    return Cow::Borrowed(s.root);
                }
                s.config.get(n).map_or_else(|| s.missing(n), Cow::Borrowed)
            }
            Expr::List(items) => Cow::Owned(Value::Array(items.iter().map(|e| e.eval(s)).collect())),
            Expr::Attr(e, k) => match e.value(s) {
                Cow::Borrowed(Value::Object(o)) => o.get(k).map_or_else(|| s.missing(k), Cow::Borrowed),
                Cow::Borrowed(_) => Cow::Owned(Value::Null),
                Cow::Owned(v) => Cow::Owned(v.get(k).cloned().unwrap_or(Value::Null)),
            },
            Expr::Index(e, i) => {
                let i = i.eval(s);
                let pick = |v: &Value| -> Option<Value> {
                    match (v, &i) {
                        (Value::Array(a), Value::Number(n)) => {
                            let n = n.as_i64()?;
                            let n = if n < 0 { n.checked_add(a.len() as i64)? } else { n };
                            a.get(usize::try_from(n).ok()?).cloned()
                        }
                        (Value::String(s), Value::Number(n)) => {
                            let c = s.chars().nth(usize::try_from(n.as_u64()?).ok()?)?;
                            Some(Value::from(c.to_string()))
                        }
                        (Value::Object(o), Value::String(k)) => o.get(k).cloned(),
                        (Value::Object(o), Value::Number(n)) => o.get(&n.to_string()).cloned(),
                        _ => None,
                    }
                };
                Cow::Owned(pick(&e.value(s)).unwrap_or(Value::Null))
            }
            Expr::Unary(op, e) => {
                let v = e.value(s);
                Cow::Owned(match *op {
                    "not" => Value::Bool(!truthy(&v)),
                    _ => arith("-", &Value::from(0), &v),
                })
            }
            Expr::Binary("and", a, b) => {
                let v = a.value(s);
                if truthy(&v) { b.value(s) } else { v }
            }
            Expr::Binary("or", a, b) => {
                let v = a.value(s);
                if truthy(&v) { v } else { b.value(s) }
            }
            Expr::Binary(op, a, b) => Cow::Owned(binary(op, &a.value(s), &b.value(s))),
            Expr::If(parts) => {
                let (c, a, b) = parts.as_ref();
                if c.truth(s) { a.value(s) } else { b.value(s) }
            }
            Expr::Call(f, args) => {
                let args: Vec<Value> = args.iter().map(|a| a.eval(s)).collect();
                Cow::Owned(call(f, &args))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Expr {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match Value::deserialize(d)? {
            Value::String(s) => Expr::parse(&s).map_err(serde::de::Error::custom),
            v => Ok(Expr::Lit(v)),
        }
    }
}

/// Python's truth value.
pub fn truthy(v: &Value) -> bool {
    match v {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Number(n) => n.as_f64() != Some(0.0),
        Value::String(s) => !s.is_empty(),
        Value::Array(a) => !a.is_empty(),
        Value::Object(o) => !o.is_empty(),
    }
}

fn number(v: &Value) -> Option<f64> {
    match v {
        Value::Bool(b) => Some(f64::from(u8::from(*b))),
        Value::Number(n) => n.as_f64(),
        _ => None,
    }
}

fn integer(v: &Value) -> Option<i64> {
    match v {
        Value::Bool(b) => Some(i64::from(*b)),
        Value::Number(n) => n.as_i64(),
        _ => None,
    }
}

fn equal(a: &Value, b: &Value) -> bool {
    match (number(a), number(b)) {
        (Some(x), Some(y)) => x == y,
        _ => a == b,
    }
}

fn float(f: f64) -> Value {
    serde_json::Number::from_f64(f).map_or(Value::Null, Value::Number)
}

fn arith(op: &str, a: &Value, b: &Value) -> Value {
    if let (Some(x), Some(y)) = (integer(a), integer(b)) {
        let r = match op {
            "+" => x.checked_add(y),
            "-" => x.checked_sub(y),
            "*" => x.checked_mul(y),
            "//" if y != 0 => {
                let q = x.wrapping_div(y);
                Some(if x.wrapping_rem(y) != 0 && (x < 0) != (y < 0) { q - 1 } else { q })
            }
            "%" if y != 0 => {
                let r = x.wrapping_rem(y);
                Some(if r != 0 && (r < 0) != (y < 0) { r + y } else { r })
            }
            "/" if y != 0 => return float(x as f64 / y as f64),
            _ => None,
        };
        return r.map_or(Value::Null, Value::from);
    }
    if op == "+" {
        match (a, b) {
            (Value::String(x), Value::String(y)) => return Value::from(format!("{x}{y}")),
            (Value::Array(x), Value::Array(y)) => return Value::Array(x.iter().chain(y).cloned().collect()),
            _ => {}
        }
    }
    let (Some(x), Some(y)) = (number(a), number(b)) else { return Value::Null };
    match op {
        "+" => float(x + y),
        "-" => float(x - y),
        "*" => float(x * y),
        "/" if y != 0.0 => float(x / y),
        "//" if y != 0.0 => float((x / y).floor()),
        "%" if y != 0.0 => float(x - y * (x / y).floor()),
        _ => Value::Null,
    }
}

fn binary(op: &str, a: &Value, b: &Value) -> Value {
    let contains = |a: &Value, b: &Value| match b {
        Value::Array(items) => items.iter().any(|i| equal(i, a)),
        Value::Object(o) => {
            a.as_str().map_or_else(|| integer(a).is_some_and(|i| o.contains_key(&i.to_string())), |k| o.contains_key(k))
        }
        Value::String(s) => a.as_str().is_some_and(|k| s.contains(k)),
        _ => false,
    };
    match op {
        "==" => Value::Bool(equal(a, b)),
        "!=" => Value::Bool(!equal(a, b)),
        "in" => Value::Bool(contains(a, b)),
        "not in" => Value::Bool(!contains(a, b)),
        "<" | "<=" | ">" | ">=" => {
            let order = match (a, b) {
                (Value::String(x), Value::String(y)) => Some(x.cmp(y)),
                _ => number(a).zip(number(b)).and_then(|(x, y)| x.partial_cmp(&y)),
            };
            Value::Bool(order.is_some_and(|o| match op {
                "<" => o.is_lt(),
                "<=" => o.is_le(),
                ">" => o.is_gt(),
                _ => o.is_ge(),
            }))
        }
        _ => arith(op, a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn eval(text: &str) -> Value {
        let config =
            json!({"n": 6, "h": 64, "heads": 4, "hd": null, "types": ["a", "b", "a"], "flag": true, "sub": {"x": 3}});
        let vars = [("layer", json!(1))];
        Expr::parse(text).unwrap().eval(&Scope::new(&config, &vars))
    }

    #[test]
    fn numbers_of_a_string() {
        assert_eq!(eval("ints('3, 4,5')"), json!([3, 4, 5]));
        assert_eq!(eval("ints('3,x')"), json!(null));
        assert_eq!(eval("layer in ints('1,2')"), json!(true));
    }

    #[test]
    fn fields_of_entries() {
        let config = json!({"teachers": [{"name": "a"}, {"name": "b", "use": false}, {"name": "a", "use": true}], "odd": [{"name": "a"}, 3]});
        let eval = |text: &str| Expr::parse(text).unwrap().eval(&Scope::new(&config, &[]));
        assert_eq!(eval("column(teachers, 'name', null)"), json!(["a", "b", "a"]));
        assert_eq!(eval("distinct(column(teachers, 'name', null))"), json!(2));
        assert_eq!(eval("count(column(teachers, 'use', true), true)"), json!(2));
        assert_eq!(eval("column(odd, 'name', 'b')"), json!(["a", "b"]));
        assert_eq!(eval("distinct(missing)"), json!(null));
    }

    #[test]
    fn places_of_a_list() {
        assert_eq!(eval("where(types, 'a')"), json!([0, 2]));
        assert_eq!(eval("where(types, 'c') + [1]"), json!([1]));
        assert_eq!(eval("where(missing, 'a')"), json!(null));
        assert_eq!(eval("place(types, 'b') + place(where(types, 'a'), 2)"), json!(2));
        assert_eq!(eval("place(types, 'c')"), json!(null));
    }

    #[test]
    fn means_what_python_means() {
        for (text, want) in [
            ("h // heads if hd is None else hd", json!(16)),
            ("types[layer] == 'b' and flag", json!(true)),
            ("layer >= n - 5", json!(true)),
            ("layer + 1 < n - 5 or not flag", json!(false)),
            ("missing", json!(null)),
            ("count(types, 'a') * 2 - -1", json!(5)),
            ("sub.x % 2 + root.sub.x", json!(4)),
            ("-7 // 2", json!(-4)),
            ("-7 % 4", json!(1)),
            ("7 / 2", json!(3.5)),
            ("round_up(65, 64) + ceil_div(7, 2)", json!(132)),
            ("'a' in types and 'c' not in types", json!(true)),
            ("min(n, h) + max([1, 2])", json!(8)),
            ("types[-1]", json!("a")),
            ("1 // 0", json!(null)),
            ("9223372036854775807 + 1", json!(null)),
            ("(n or 3) - (0 or 2)", json!(4)),
            ("hd != null", json!(false)),
            ("words('ab', 'b', 'x') == ['a', 'x'] and words(types, 'a', 'c') == ['c', 'b', 'c']", json!(true)),
            (
                "from_cycle(4, 2, 1, 0, 1) == [0, 1, 0, 1] and at_places(3, [0], 'a', 'b') == ['b', 'a', 'a']",
                json!(true),
            ),
        ] {
            assert_eq!(eval(text), want, "{text}");
        }
    }

    #[test]
    fn rejects_what_it_cannot_read() {
        for text in ["", "a +", "a if b", "(a", "a b", "a @ b", "'a"] {
            assert!(Expr::parse(text).is_err(), "{text}");
        }
    }
}
