//! Weights that one side stores in one tensor and the other in several: stacked and separate experts, fused and
//! separate projections.

use super::Layout;
use super::causes::Names;
use super::stored::{Packing, Pairs, Stored, Weight};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What was found, and which weights are hereby told.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    pub(super) told: Vec<Layout>,
    pub(super) left: HashSet<usize>,
    pub(super) right: HashSet<usize>,
}

/// How one side stores the experts of a layer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Experts<'n> {
    /// Words of the tensors, as stored.
    words: BTreeSet<&'n str>,
    /// Numbers in the names; none when the experts are stacked.
    numbers: BTreeSet<u32>,
    /// Sizes of the first dimension of stacked tensors.
    stacked: BTreeSet<u64>,
    weights: Vec<usize>,
}

/// Finds them among the weights that are on one side only.
pub(super) fn find(a: &Stored, b: &Stored, pairs: &Pairs) -> Layouts {
    let mut out = Layouts::default();
    if pairs.left.is_empty() || pairs.right.is_empty() {
        return out;
    }
    let mut rows: BTreeMap<(String, String), Names> = BTreeMap::new();
    let right = experts(b, &pairs.right);
    for (module, here) in experts(a, &pairs.left) {
        let Some(there) = right.get(module).filter(|t| same(&here, t)) else { continue };
        rows.entry((here.words(), there.words())).or_default().add(module, 1);
        out.left.extend(&here.weights);
        out.right.extend(&there.weights);
    }
    for (from, to, names) in [(a, b, (&pairs.left, &pairs.right)), (b, a, (&pairs.right, &pairs.left))] {
        let forward = std::ptr::eq(from, a);
        for (module, whole, parts, indices) in fused((from, names.0), (to, names.1)) {
            let key = if forward { (whole, parts) } else { (parts, whole) };
            rows.entry(key).or_default().add(module, 1);
            let (whole, parts) = (indices.0, indices.1);
            let (one, many) = if forward { (&mut out.left, &mut out.right) } else { (&mut out.right, &mut out.left) };
            one.insert(whole);
            many.extend(parts);
        }
    }
    for ((before, after), names) in rows {
        let told = names.told().into_iter();
        out.told.extend(told.map(|(name, modules)| Layout {
            name,
            before: before.clone(),
            after: after.clone(),
            modules,
        }));
    }
    out
}

/// The experts of each layer, by module.
fn experts<'n>(stored: &'n Stored, missing: &[usize]) -> HashMap<&'n str, Experts<'n>> {
    let mut out: HashMap<&str, Experts> = HashMap::new();
    for &i in missing {
        let Some(w) = stored.weights.get(i) else { continue };
        let Some(at) = w.key.find(".experts.") else { continue };
        let (module, rest) = (w.key.get(..at + ".experts".len()), w.key.get(at + ".experts.".len()..));
        let (Some(module), Some(rest)) = (module, rest) else { continue };
        let entry = out.entry(module).or_default();
        entry.weights.push(i);
        let numbered = rest.split_once('.').and_then(|(n, word)| Some((n.parse::<u32>().ok()?, word)));
        let word = match numbered {
            Some((n, word)) => {
                entry.numbers.insert(n);
                word
            }
            None => {
                let first = w.carrier.filter(|_| w.packing != Packing::Qweight).and_then(|t| t.shape.first());
                entry.stacked.extend(first);
                rest
            }
        };
        entry.words.insert(word.strip_suffix(".weight").unwrap_or(word));
    }
    out
}

impl Experts<'_> {
    /// `128 experts with down_proj, gate_proj, up_proj`, or `stacked down_proj, gate_up_proj`.
    fn words(&self) -> String {
        let words = self.words.iter().copied().collect::<Vec<_>>().join(", ");
        match self.numbers.len() {
            0 => format!("stacked {words}"),
            n => format!("{n} experts with {words}"),
        }
    }

    /// The projections that the words stand for; none when there is an unknown one.
    fn projections(&self) -> Option<BTreeSet<&'static str>> {
        let mut out = BTreeSet::new();
        for word in &self.words {
            let plain = word.strip_suffix("_bias").or(word.strip_suffix(".bias")).unwrap_or(word);
            let bias = plain.len() < word.len();
            let [gate, up, down] = if bias { ["gate+", "up+", "down+"] } else { ["gate", "up", "down"] };
            match plain {
                "gate_up_proj" | "w13" => out.extend([gate, up]),
                "gate_proj" | "w1" => out.extend([gate]),
                "up_proj" | "w3" => out.extend([up]),
                "down_proj" | "w2" => out.extend([down]),
                _ => return None,
            }
        }
        Some(out)
    }

    /// How many experts there are, when they are complete.
    fn count(&self) -> Option<u64> {
        if self.numbers.is_empty() {
            return self.stacked.first().copied().filter(|_| self.stacked.len() == 1);
        }
        let all = self.numbers.len();
        let last = usize::try_from(*self.numbers.last()?).ok()?;
        let whole =
            self.stacked.is_empty() && last.checked_add(1) == Some(all) && self.weights.len() == all * self.words.len();
        whole.then_some(all as u64)
    }
}

/// The same experts, stored in another way.
fn same(a: &Experts, b: &Experts) -> bool {
    let (here, there) = (a.projections().zip(a.count()), b.projections().zip(b.count()));
    here.is_some() && here == there
}

/// Projections that are stored as one.
const FUSED: [(&str, &[&str]); 2] =
    [("qkv_proj", &["q_proj", "k_proj", "v_proj"]), ("gate_up_proj", &["gate_proj", "up_proj"])];

type Found<'n> = (&'n str, String, String, (usize, Vec<usize>));

/// Fused projections of `one` whose parts are all in `many`.
fn fused<'n>((one, missing): (&'n Stored, &[usize]), (many, others): (&'n Stored, &[usize])) -> Vec<Found<'n>> {
    let there: HashMap<&str, usize> = others.iter().filter_map(|&j| Some((&*many.weights.get(j)?.key, j))).collect();
    let mut out = Vec::new();
    for &i in missing {
        let Some(w) = one.weights.get(i) else { continue };
        for (whole, parts) in FUSED {
            let mut ends = [".weight", ".bias"].into_iter();
            let found = ends.find_map(|end| Some((w.key.strip_suffix(end)?.strip_suffix(whole)?, end)));
            let Some((module, end)) = found.filter(|(m, _)| m.ends_with('.')) else { continue };
            let at: Option<Vec<usize>> =
                parts.iter().map(|p| there.get(format!("{module}{p}{end}").as_str()).copied()).collect();
            let Some(at) = at.filter(|at| adds_up(w, at.iter().filter_map(|&j| many.weights.get(j)))) else { continue };
            out.push((module.trim_end_matches('.'), whole.to_owned(), parts.join(", "), (i, at)));
        }
    }
    out
}

/// The rows of the parts are those of the whole, where both can be seen.
fn adds_up<'w, 'c: 'w>(whole: &Weight, parts: impl Iterator<Item = &'w Weight<'c>>) -> bool {
    let rows = |w: &Weight| w.plain().and_then(|(shape, _)| shape.first().copied());
    let sum = parts.map(rows).try_fold(0u64, |n, r| n.checked_add(r?));
    rows(whole).zip(sum).is_none_or(|(a, b)| a == b)
}
