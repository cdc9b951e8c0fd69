//! What is known: one folder a family, one file and one page a rule, one word to register either.

use crate::rule::Rule;

/// Declares families: their modules, and the list of all rules, in this order.
macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(mod $family;)*
        /// Rules by family.
        static FAMILIES: &[(&str, &[&Rule])] = &[$((stringify!($family), $family::RULES)),*];
    };
}

/// Declares the rules of a family.
macro_rules! family {
    ($($rule:ident),* $(,)?) => {
        $(mod $rule;)*
        pub(super) static RULES: &[&crate::rule::Rule] = &[$(&$rule::RULE),*];
    };
}

families![files, index, header, config, quant, tie, tower, load, serve];

/// Every rule, in the order of families and rules.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    FAMILIES.iter().flat_map(|f| f.1.iter().copied())
}

/// Names of the families.
pub fn families() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|f| f.0)
}

/// The rule with this name, or with this name in the past.
pub fn find(name: &str) -> Option<&'static Rule> {
    all().find(|r| r.name == name || r.aliases.contains(&name))
}
