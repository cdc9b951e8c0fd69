//! Lexer and parser of the fact files' expressions: Python's precedence.

use super::Expr;
use serde_json::Value;

/// Parse a whole text.
pub(super) fn parse(text: &str) -> Result<Expr, String> {
    let tokens = lex(text)?;
    let mut p = Parser { tokens, at: 0 };
    let e = p.ternary()?;
    match p.tokens.get(p.at) {
        Some(t) => Err(format!("unexpected {t:?} in `{text}`")),
        None => Ok(e),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(Value),
    Text(String),
    Word(String),
    Op(&'static str),
}

const OPS: [&str; 19] =
    ["//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "<", ">", "(", ")", "[", "]", ",", ".", ":"];

fn lex(text: &str) -> Result<Vec<Token>, String> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let len = if c.is_ascii_digit() {
            let mut len = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != 'e').unwrap_or(rest.len());
            if rest[..len].ends_with('e') && rest[len..].starts_with('-') {
                len += 1 + rest[len + 1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - len - 1);
            }
            let v = serde_json::from_str(&rest[..len]).map_err(|e| format!("number `{}`: {e}", &rest[..len]))?;
            out.push(Token::Number(v));
            len
        } else if c.is_alphabetic() || c == '_' {
            let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            out.push(Token::Word(rest[..len].to_owned()));
            len
        } else if c == '\'' || c == '"' {
            let end = rest[1..].find(c).ok_or_else(|| format!("unclosed string in `{text}`"))?;
            out.push(Token::Text(rest[1..=end].to_owned()));
            end + 2
        } else {
            let op =
                OPS.iter().find(|op| rest.starts_with(**op)).ok_or_else(|| format!("unexpected `{c}` in `{text}`"))?;
            out.push(Token::Op(op));
            op.len()
        };
        rest = rest[len..].trim_start();
    }
    Ok(out)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn op(&mut self, op: &str) -> bool {
        let hit = matches!(self.tokens.get(self.at), Some(Token::Op(o)) if *o == op);
        self.at += usize::from(hit);
        hit
    }

    fn word(&mut self, w: &str) -> bool {
        let hit = matches!(self.tokens.get(self.at), Some(Token::Word(o)) if o == w);
        self.at += usize::from(hit);
        hit
    }

    fn need(&mut self, op: &str) -> Result<(), String> {
        if self.op(op) { Ok(()) } else { Err(format!("expected `{op}` at token {}", self.at)) }
    }

    fn ternary(&mut self) -> Result<Expr, String> {
        let a = self.level(0)?;
        if !self.word("if") {
            return Ok(a);
        }
        let c = self.level(0)?;
        if !self.word("else") {
            return Err("`if` without `else`".into());
        }
        let b = self.ternary()?;
        Ok(Expr::If(Box::new((c, a, b))))
    }

    /// Levels: or, and, not, comparison, additive, multiplicative, unary.
    fn level(&mut self, level: u8) -> Result<Expr, String> {
        let bin = |op, a, b| Expr::Binary(op, Box::new(a), Box::new(b));
        match level {
            0 | 1 => {
                let word = if level == 0 { "or" } else { "and" };
                let mut a = self.level(level + 1)?;
                while self.word(word) {
                    a = bin(if level == 0 { "or" } else { "and" }, a, self.level(level + 1)?);
                }
                Ok(a)
            }
            2 => {
                if self.word("not") {
                    return Ok(Expr::Unary("not", Box::new(self.level(2)?)));
                }
                self.level(3)
            }
            3 => {
                let mut a = self.level(4)?;
                loop {
                    let op = if let Some(op) = ["==", "!=", "<=", ">=", "<", ">"].into_iter().find(|op| self.op(op)) {
                        op
                    } else if self.word("in") {
                        "in"
                    } else if self.word("is") {
                        if self.word("not") { "!=" } else { "==" }
                    } else if self.word("not") {
                        if !self.word("in") {
                            return Err("`not` without `in`".into());
                        }
                        "not in"
                    } else {
                        return Ok(a);
                    };
                    a = bin(op, a, self.level(4)?);
                }
            }
            4 | 5 => {
                let ops: &[&'static str] = if level == 4 { &["+", "-"] } else { &["*", "//", "/", "%"] };
                let mut a = self.level(level + 1)?;
                while let Some(op) = ops.iter().find(|op| self.op(op)) {
                    a = bin(op, a, self.level(level + 1)?);
                }
                Ok(a)
            }
            _ => {
                if self.op("-") {
                    return Ok(Expr::Unary("-", Box::new(self.level(6)?)));
                }
                self.postfix()
            }
        }
    }

    fn postfix(&mut self) -> Result<Expr, String> {
        let mut e = self.atom()?;
        loop {
            if self.op(".") {
                match self.tokens.get(self.at) {
                    Some(Token::Word(w)) => {
                        e = Expr::Attr(Box::new(e), w.clone());
                        self.at += 1;
                    }
                    _ => return Err("`.` without a name".into()),
                }
            } else if self.op("[") {
                let i = self.ternary()?;
                self.need("]")?;
                e = Expr::Index(Box::new(e), Box::new(i));
            } else if matches!(e, Expr::Name(_)) && self.op("(") {
                let Expr::Name(f) = e else { return Err("call of no name".into()) };
                e = Expr::Call(f, self.list(")")?);
            } else {
                return Ok(e);
            }
        }
    }

    fn list(&mut self, end: &str) -> Result<Vec<Expr>, String> {
        let mut items = Vec::new();
        while !self.op(end) {
            items.push(self.ternary()?);
            if !self.op(",") {
                self.need(end)?;
                break;
            }
        }
        Ok(items)
    }

    fn atom(&mut self) -> Result<Expr, String> {
        let t = self.tokens.get(self.at).cloned().ok_or("expression ends too early")?;
        self.at += 1;
        Ok(match t {
            Token::Number(v) => Expr::Lit(v),
            Token::Text(s) => Expr::Lit(Value::from(s)),
            Token::Word(w) => match w.as_str() {
                "null" | "None" => Expr::Lit(Value::Null),
                "true" | "True" => Expr::Lit(Value::Bool(true)),
                "false" | "False" => Expr::Lit(Value::Bool(false)),
                _ => Expr::Name(w),
            },
            Token::Op("(") => {
                let e = self.ternary()?;
                self.need(")")?;
                e
            }
            Token::Op("[") => Expr::List(self.list("]")?),
            Token::Op(o) => return Err(format!("unexpected `{o}`")),
        })
    }
}
