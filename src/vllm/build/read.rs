//! Fact files of inner classes, and words in them that stand for something else.

use super::Builder;
use crate::facts::{self, ClassFile, Expr, Scope};
use crate::vllm::method::Element;
use std::rc::Rc;

impl Builder<'_> {
    /// The file of an inner class.
    pub(super) fn file(&mut self, class: &str) -> Option<Rc<ClassFile>> {
        if let Some((_, f)) = self.files.iter().find(|(n, _)| n == class) {
            return Some(Rc::clone(f));
        }
        let Some(f) = facts::class(self.version, class) else {
            self.tree.unknown.push(format!("no facts for the inner class {class}"));
            return None;
        };
        let f = Rc::new(f);
        self.files.push((class.to_owned(), Rc::clone(&f)));
        Some(f)
    }
}

/// A dtype by torch's name.
pub(super) fn element(dtype: &str) -> Element {
    match dtype {
        "float32" => Element::F32,
        "int64" => Element::I64,
        "int32" => Element::I32,
        "uint8" => Element::U8,
        "int8" => Element::I8,
        "float8_e4m3fn" => Element::F8E4M3,
        _ => Element::Model,
    }
}

/// A quantization prefix: `=`, or a template with `{root}`, index variables and expressions of them.
pub(super) fn template(q: &str, path: &str, root: &str, scope: &Scope) -> String {
    if q == "=" {
        return path.to_owned();
    }
    let mut out = String::new();
    let mut rest = q;
    while let Some((before, after)) = rest.split_once('{') {
        let (key, tail) = after.split_once('}').unwrap_or((after, ""));
        out.push_str(before);
        if key == "root" {
            // A prefix that is put before `.layers` whether it is empty or not.
            out.push_str(if tail.starts_with('.') { root.trim_end_matches('.') } else { root });
        } else if let Ok(e) = Expr::parse(key) {
            out.push_str(&e.eval(scope).to_string());
        }
        rest = tail;
    }
    out + rest
}
