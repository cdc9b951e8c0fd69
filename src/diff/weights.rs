//! Precision and bytes of all weights, and shapes that are no longer those of the source.

use super::causes::Names;
use super::part::Part;
use super::precision::Grain;
use super::precision::{self, Precision};
use super::stored::{Packing, Pairs, Stored, Weight};
use super::{Bytes, Cause, Change, Count, Kind, Reshaped, Weights};
use std::collections::{BTreeMap, HashMap};

/// Weights of one part and kind, counted.
#[derive(Debug, Default)]
struct Row {
    before: BTreeMap<Precision, usize>,
    after: BTreeMap<Precision, usize>,
    changes: BTreeMap<(Precision, Precision), (usize, Names)>,
}

/// What comes of comparing the weights that both sides have.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) weights: Vec<Weights>,
    pub(super) reshaped: Vec<Reshaped>,
    /// Packed integers mean nothing without their scales.
    pub(super) scaleless: Vec<Cause>,
}

/// Counts precisions on both sides, and finds weights whose shape changed or whose scales are lost.
pub(super) fn compare(a: &Stored, b: &Stored, pairs: &Pairs) -> Compared {
    let mut scaleless = Names::default();
    let mut rows: BTreeMap<(Part, Kind), Row> = BTreeMap::new();
    let mut shapes: BTreeMap<(Vec<u64>, Vec<u64>, Precision), Names> = BTreeMap::new();
    for &(i, j) in &pairs.both {
        let (Some(w), Some(v)) = (a.weights.get(i), b.weights.get(j)) else { continue };
        // What one side cannot tell of a packed weight, the other may.
        let plain = |w: &Weight| w.plain().map(|(shape, _)| shape.to_vec());
        let (before, whole) = precision::of(w, a.hints, plain(v).as_deref());
        let (after, other) = precision::of(v, b.hints, plain(w).as_deref());
        // The source says what it is: scales may be stacked along with the experts, and packed shapes be open.
        let kind = match kind(w, whole.as_deref()) {
            Kind::Unknown => self::kind(v, other.as_deref()),
            kind => kind,
        };
        let row = rows.entry((w.part, kind)).or_default();
        *row.before.entry(before).or_default() += 1;
        *row.after.entry(after).or_default() += 1;
        let change = row.changes.entry((before, after)).or_default();
        change.0 += 1;
        change.1.add(&w.key, 1);
        let missing = |p| matches!(p, Precision::Quantized { grain: Grain::Missing, .. });
        if missing(after) && !missing(before) {
            scaleless.add(&w.key, 1);
        }
        if let (Some(from), Some(to)) = (whole, other)
            && from != to
            && w.packing != Packing::Alone
        {
            let stored = v.carrier.map_or(to, |t| t.shape.to_vec());
            shapes.entry((from, stored, after)).or_default().add(&w.key, 1);
        }
    }
    for (stored, missing, first) in [(a, &pairs.left, true), (b, &pairs.right, false)] {
        for w in missing.iter().filter_map(|&i| stored.weights.get(i)) {
            let (precision, whole) = precision::of(w, stored.hints, None);
            let row = rows.entry((w.part, kind(w, whole.as_deref()))).or_default();
            let counts = if first { &mut row.before } else { &mut row.after };
            *counts.entry(precision).or_default() += 1;
        }
    }
    let mut reshaped = Vec::new();
    for ((before, after, precision), names) in shapes {
        for (name, weights) in names.told() {
            let (before, after, stored) = (before.clone(), after.clone(), precision.to_string());
            reshaped.push(Reshaped { name, before, after, stored, weights });
        }
    }
    let cause =
        |(name, weights)| Cause { name: format!("scales of {name}"), weights, part: Part::Quantization, reason: None };
    Compared {
        weights: rows.into_iter().map(|((part, kind), row)| row.told(part, kind)).collect(),
        reshaped,
        scaleless: scaleless.told().into_iter().map(cause).collect(),
    }
}

fn kind(w: &Weight, whole: Option<&[u64]>) -> Kind {
    let shape = whole.or(w.carrier.map(|t| &*t.shape));
    match shape {
        None => Kind::Unknown,
        Some(s) if s.len() > 1 => Kind::Matrix,
        Some(_) => Kind::Vector,
    }
}

impl Row {
    fn told(self, part: Part, kind: Kind) -> Weights {
        let mut changes: Vec<_> = self.changes.into_iter().collect();
        changes.sort_by_key(|(_, (n, _))| std::cmp::Reverse(*n));
        let changes = changes.into_iter().map(|((before, after), (weights, names))| Change {
            before: before.to_string(),
            after: after.to_string(),
            weights,
            names: names.told().into_iter().map(|(name, _)| name).collect(),
        });
        Weights { part, kind, before: counts(self.before), after: counts(self.after), changes: changes.collect() }
    }
}

fn counts(all: BTreeMap<Precision, usize>) -> Vec<Count> {
    let mut out: Vec<Count> = all.into_iter().map(|(p, weights)| Count { precision: p.to_string(), weights }).collect();
    out.sort_by_key(|c| std::cmp::Reverse(c.weights));
    out
}

/// Bytes by part; parts that neither side has are left out.
pub(super) fn bytes(a: &Stored, b: &Stored) -> Vec<Bytes> {
    let sum = |stored: &Stored| {
        let mut out: HashMap<Part, u64> = HashMap::new();
        for w in &stored.weights {
            for (part, bytes) in [(w.part, w.bytes), (Part::Quantization, w.extra_bytes)] {
                let all = out.entry(part).or_default();
                *all = all.saturating_add(bytes);
            }
        }
        out
    };
    let (before, after) = (sum(a), sum(b));
    // Of tensors that are not here the sizes are not known, and half a sum makes no ratio.
    let known = a.by_name == 0 && b.by_name == 0;
    let of = |all: &HashMap<Part, u64>, part: Part| all.get(&part).copied().unwrap_or(0);
    let rows = Part::ALL.into_iter().map(|part| (part, of(&before, part), of(&after, part)));
    rows.filter(|(_, x, y)| *x > 0 || *y > 0)
        .map(|(part, before, after)| Bytes { part, before, after, ratio: ratio(before, after).filter(|_| known) })
        .collect()
}

/// After by before, to three digits.
pub(super) fn ratio(before: u64, after: u64) -> Option<f64> {
    let thousandths = (u128::from(after) * 1_000 + u128::from(before) / 2).checked_div(u128::from(before))?;
    #[allow(clippy::cast_precision_loss, reason = "more digits than a float has are of no use to anybody")]
    Some(thousandths as f64 / 1_000.0)
}
