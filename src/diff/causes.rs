//! One line for a cause, not for a tensor: whole modules and towers are named once, and numbers are collapsed.

use super::Cause;
use super::part::Part;
use super::stored::Stored;
use crate::checkpoint::natural;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;

/// Numbers in one name that are collapsed; more are made up.
const NUMBERS: usize = 4;
/// Words and bytes of a name up to which modules are looked for.
const WORDS: usize = 12;
const BYTES: usize = 300;

/// Names that have all in common but their numbers.
#[derive(Debug, Default)]
struct Group {
    /// The numbers, by position.
    numbers: Vec<BTreeSet<u32>>,
    names: usize,
    weights: usize,
}

/// Names, collapsed.
#[derive(Debug, Default)]
pub(super) struct Names {
    groups: BTreeMap<String, Group>,
}

impl Names {
    /// Adds a name that stands for so many weights.
    pub(super) fn add(&mut self, name: &str, weights: usize) {
        let (template, numbers) = template(name);
        let group = self.groups.entry(template).or_default();
        group.numbers.resize_with(numbers.len(), BTreeSet::new);
        for (set, n) in group.numbers.iter_mut().zip(numbers) {
            set.insert(n);
        }
        group.names += 1;
        group.weights += weights;
    }

    /// The collapsed names, with their weights. Names that differ in their last word only become one.
    pub(super) fn told(&self) -> Vec<(String, usize)> {
        let mut rows: Vec<(String, Vec<&str>, usize)> = Vec::new();
        let mut places: HashMap<(String, &str), usize> = HashMap::new();
        for (template, group) in &self.groups {
            let (module, last) = siblings(template);
            let parent = filled(module, group);
            let end = if last.1.is_empty() { String::new() } else { format!(".{}", last.1) };
            let known = places.get(&(parent.clone(), last.1)).filter(|_| !parent.is_empty());
            match known.and_then(|at| rows.get_mut(*at)) {
                Some(row) => {
                    row.1.push(last.0);
                    row.2 += group.weights;
                }
                None => {
                    places.insert((parent.clone(), last.1), rows.len());
                    rows.push((format!("{parent}\0{end}"), vec![last.0], group.weights));
                }
            }
        }
        let mut out: Vec<(String, usize)> = rows
            .into_iter()
            .map(|(frame, words, weights)| {
                let (parent, end) = frame.split_once('\0').unwrap_or((&frame, ""));
                let words = match &words[..] {
                    [one] => (*one).to_owned(),
                    many => format!("{{{}}}", many.join(",")),
                };
                (format!("{parent}{words}{end}"), weights)
            })
            .collect();
        out.sort_by(|a, b| natural(&a.0, &b.0));
        out
    }
}

/// The module above, with its point, and the word that tells siblings apart, with what follows it: `weight`, mostly.
/// A word with a number in it stays with the module.
fn siblings(template: &str) -> (&str, (&str, &str)) {
    let (front, end) = match template.rsplit_once('.') {
        Some((front, end)) if matches!(end, "weight" | "bias") => (front, end),
        _ => (template, ""),
    };
    let at = front.rfind('.').map_or(0, |i| i + 1);
    let (module, word) = front.split_at(at);
    if word.contains('\u{1}') { (front, ("", end)) } else { (module, (word, end)) }
}

/// The name with a mark in the place of each number, and the numbers.
fn template(name: &str) -> (String, Vec<u32>) {
    let mut out = String::with_capacity(name.len());
    let mut numbers = Vec::new();
    for (i, word) in name.split('.').enumerate() {
        if i > 0 {
            out.push('.');
        }
        let number = word.parse::<u32>().ok().filter(|_| word.bytes().all(|b| b.is_ascii_digit()));
        match number.filter(|_| numbers.len() < NUMBERS) {
            Some(n) => {
                numbers.push(n);
                out.push('\u{1}');
            }
            // The mark itself cannot stand in a name that is told.
            None => out.extend(word.chars().map(|c| if c <= '\u{1}' { '\u{fffd}' } else { c })),
        }
    }
    (out, numbers)
}

/// A template with its numbers: `layers.{0-3,7}.mlp`.
fn filled(template: &str, group: &Group) -> String {
    let mut out = String::new();
    let mut at = 0;
    for c in template.chars() {
        if c != '\u{1}' {
            out.push(c);
            continue;
        }
        if let Some(set) = group.numbers.get(at) {
            ranges(set, &mut out);
        }
        at += 1;
    }
    out
}

/// `5`, `{0-3,7}`.
fn ranges(numbers: &BTreeSet<u32>, out: &mut String) {
    /// Ranges before the rest is left out.
    const SHOWN: usize = 6;
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &n in numbers {
        match runs.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(n) => *end = n,
            _ => runs.push((n, n)),
        }
    }
    if let [(a, b)] = runs[..]
        && a == b
    {
        let _ = write!(out, "{a}");
        return;
    }
    out.push('{');
    for (i, (a, b)) in runs.iter().take(SHOWN).enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = if a == b { write!(out, "{comma}{a}") } else { write!(out, "{comma}{a}-{b}") };
    }
    if runs.len() > SHOWN {
        out.push_str(",…");
    }
    out.push('}');
}

/// The weights of `here` at `missing` that are not in `told`, by cause: the largest modules that are gone as a whole.
pub(super) fn one_sided(
    here: &Stored,
    there: &Stored,
    missing: &[usize],
    told: &HashSet<usize>,
    tied: bool,
) -> Vec<Cause> {
    let missing: Vec<usize> = missing.iter().copied().filter(|i| !told.contains(i)).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let gone: HashSet<usize> = missing.iter().copied().collect();
    let mut modules: HashMap<&str, (usize, usize)> = HashMap::new();
    for (i, w) in here.weights.iter().enumerate() {
        for module in modules_of(&w.key) {
            let entry = modules.entry(module).or_default();
            entry.0 += 1;
            entry.1 += usize::from(gone.contains(&i));
        }
    }
    // By part, too: a head is another cause than a tower, whatever is above them.
    let mut names: BTreeMap<(Part, Option<String>), HashMap<&str, usize>> = BTreeMap::new();
    let embedded = there.weights.iter().any(|w| w.part == Part::Embedding);
    for i in missing {
        let Some(w) = here.weights.get(i) else { continue };
        let whole = |m: &&str| modules.get(m).is_some_and(|(all, gone)| all == gone);
        let name = modules_of(&w.key).find(whole).unwrap_or(&w.key);
        // A tied head is the embedding: vLLM loads it from there.
        let reason = (tied && embedded && w.part == Part::Head && w.key.ends_with("lm_head.weight"))
            .then(|| "both configs tie the head to the embedding".to_owned());
        *names.entry((w.part, reason)).or_default().entry(name).or_default() += 1;
    }
    let mut out = Vec::new();
    for ((part, reason), roots) in names {
        let mut group = Names::default();
        for (name, weights) in roots {
            group.add(name, weights);
        }
        let told = group.told().into_iter();
        out.extend(told.map(|(name, weights)| Cause { name, weights, part, reason: reason.clone() }));
    }
    out
}

/// The modules that a name is in, the largest first; not the model as a whole.
fn modules_of(name: &str) -> impl Iterator<Item = &str> {
    let dots = name.match_indices('.').map(|(i, _)| i).take(WORDS).take_while(|i| *i <= BYTES);
    dots.filter_map(|at| name.get(..at)).filter(|m| *m != "model")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(names: &[&str]) -> Vec<String> {
        let mut all = Names::default();
        names.iter().for_each(|n| all.add(n, 1));
        all.told().into_iter().map(|(name, n)| format!("{name} ({n})")).collect()
    }

    #[test]
    fn numbers_collapse() {
        assert_eq!(
            told(&["m.layers.0.a.weight", "m.layers.1.a.weight", "m.layers.9.a.weight"]),
            ["m.layers.{0-1,9}.a.weight (3)"]
        );
        assert_eq!(
            told(&["l.0.q.weight", "l.0.k.weight", "l.1.k.weight", "l.1.q.weight"]),
            ["l.{0-1}.{k,q}.weight (4)"]
        );
        assert_eq!(told(&["l.3", "l.4"]), ["l.{3-4} (2)"]);
        assert_eq!(told(&["99999999999.a"]), ["99999999999.a (1)"]);
        assert_eq!(told(&["a", ""]), [" (1)", "a (1)"]);
    }
}
