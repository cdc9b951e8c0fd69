//! Names that differ by a prefix only, such as `model.language_model.` and `language_model.model.`: a renaming is told
//! as one, not as a loss and a gain of everything below.

use super::Renamed;
use super::part::Part;
use super::stored::{Packing, Pairs, Stored};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Words of a prefix.
const WORDS: usize = 4;
/// Bytes of a prefix. Longer ones are made up.
const BYTES: usize = 200;
/// Renamings of one checkpoint: a wrapper moves the language model, the head and each tower.
const MOST: usize = 8;

/// Gives the weights of `b` the names that they have in `a`, and says which prefixes became which.
pub(super) fn undo(a: &Stored, b: &mut Stored) -> Vec<Renamed> {
    let mut out = Vec::new();
    while out.len() < MOST {
        let pairs = Pairs::of(a, b);
        if pairs.left.is_empty() || pairs.right.is_empty() {
            break;
        }
        let Some((from, to)) = vote(a, b, &pairs) else { break };
        let left: HashSet<&str> = pairs.left.iter().filter_map(|&i| a.weights.get(i)).map(|w| &*w.key).collect();
        let mut weights = 0;
        for &j in &pairs.right {
            let Some(w) = b.weights.get_mut(j) else { continue };
            let Some(rest) = w.key.strip_prefix(to.as_str()) else { continue };
            let key = format!("{from}{rest}");
            if left.contains(key.as_str()) {
                weights += 1;
                if w.packing != Packing::Alone {
                    w.part = Part::of(&key);
                }
                w.key = Cow::Owned(key);
            }
        }
        if weights == 0 {
            break;
        }
        out.push(Renamed { before: from, after: to, weights });
    }
    out
}

/// The pair of prefixes that most weights agree on.
fn vote(a: &Stored, b: &Stored, pairs: &Pairs) -> Option<(String, String)> {
    // What follows a prefix, and the one weight where it does; none when there are several, as with `0.norm.weight`.
    let mut rests: HashMap<&str, Option<(usize, &str)>> = HashMap::new();
    for &j in &pairs.right {
        let Some(w) = b.weights.get(j) else { continue };
        for (prefix, rest) in cuts(&w.key) {
            rests.entry(rest).and_modify(|e| *e = None).or_insert(Some((j, prefix)));
        }
    }
    let mut votes: HashMap<(&str, &str), usize> = HashMap::new();
    for &i in &pairs.left {
        let Some(w) = a.weights.get(i) else { continue };
        for (from, rest) in cuts(&w.key) {
            let Some(Some((j, to))) = rests.get(rest) else { continue };
            let same = match (w.plain(), b.weights.get(*j).and_then(|w| w.plain())) {
                (Some((s, _)), Some((t, _))) => s == t,
                _ => true,
            };
            // `layers.0.` for `layers.1.` is no renaming, and a lone `weight` says nothing.
            if same && from != *to && rest.contains('.') && !ends_in_number(from) && !ends_in_number(to) {
                *votes.entry((from, to)).or_default() += 1;
            }
        }
    }
    // Of prefixes with as many votes the shortest, then the first.
    // A single weight may end in the same words by chance, unless a prefix was only put before its name or taken away.
    let nested = |(f, t): &(&str, &str)| f.ends_with(t) || t.ends_with(f);
    let best = votes.into_iter().filter(|(pair, n)| *n > 1 || nested(pair)).max_by(|((f, t), n), ((g, u), m)| {
        n.cmp(m).then_with(|| (g.len() + u.len()).cmp(&(f.len() + t.len()))).then_with(|| (g, u).cmp(&(f, t)))
    });
    best.map(|((from, to), _)| (from.to_owned(), to.to_owned()))
}

/// A name cut after its first words: none, one, two and so on.
fn cuts(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let dots = name.match_indices('.').map(|(i, _)| i + 1).take(WORDS).take_while(|i| *i <= BYTES);
    std::iter::once(0).chain(dots).map(|at| name.split_at(at))
}

fn ends_in_number(prefix: &str) -> bool {
    prefix.trim_end_matches('.').ends_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_at_dots() {
        let all: Vec<_> = cuts("a.b.w").collect();
        assert_eq!(all, [("", "a.b.w"), ("a.", "b.w"), ("a.b.", "w")]);
        assert_eq!(cuts("").count(), 1);
        assert_eq!(cuts(&"a.".repeat(1000)).count(), 1 + WORDS);
    }
}
