//! The order in which vLLM opens shards.

use std::cmp::Ordering;

/// vLLM's `_natural_sort_key` over base names: digit runs compare as numbers of any length, the rest by code point.
///
/// Python's sort leaves equal keys (`m-1`, `m-01`) as the file system listed them; here the name breaks the tie.
pub fn natural(a: &str, b: &str) -> Ordering {
    let base = |s: &'_ str| s.rfind('/').map_or(0, |i| i + 1);
    let (mut x, mut y) = (&a[base(a)..], &b[base(b)..]);
    // `re.split(r"(\d+)")` starts with text, if only empty text, so text always meets text and digits meet digits.
    loop {
        let (tx, rx) = x.split_at(x.find(|c: char| c.is_ascii_digit()).unwrap_or(x.len()));
        let (ty, ry) = y.split_at(y.find(|c: char| c.is_ascii_digit()).unwrap_or(y.len()));
        match tx.cmp(ty) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
        if rx.is_empty() || ry.is_empty() {
            // The shorter list of pieces is the smaller one.
            return rx.len().cmp(&ry.len()).then_with(|| a.cmp(b));
        }
        let (nx, sx) = rx.split_at(rx.find(|c: char| !c.is_ascii_digit()).unwrap_or(rx.len()));
        let (ny, sy) = ry.split_at(ry.find(|c: char| !c.is_ascii_digit()).unwrap_or(ry.len()));
        let (zx, zy) = (nx.trim_start_matches('0'), ny.trim_start_matches('0'));
        match zx.len().cmp(&zy.len()).then_with(|| zx.cmp(zy)) {
            Ordering::Equal => (x, y) = (sx, sy),
            unequal => return unequal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digit_runs_are_numbers() {
        let mut names = ["model-10.safetensors", "model-9.safetensors", "extra.safetensors", "model.safetensors"];
        names.sort_by(|a, b| natural(a, b));
        // `-` is before `.`
        assert_eq!(names, ["extra.safetensors", "model-9.safetensors", "model-10.safetensors", "model.safetensors"]);
        assert_eq!(natural("a-00002", "a-1"), Ordering::Greater);
        assert_eq!(natural("a-99999999999999999999998", "a-99999999999999999999999"), Ordering::Less);
        assert_eq!(natural("z/a1", "b/a2"), Ordering::Less);
        assert_eq!(natural("1a", "a1"), Ordering::Less);
        assert_eq!(natural("a", "a1"), Ordering::Less);
        assert_eq!(natural("m-01", "m-1"), Ordering::Less);
        assert_eq!(natural("m-1", "m-1"), Ordering::Equal);
    }
}
