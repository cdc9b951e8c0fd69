//! Numbers and lists in words, the same in every finding and report.

/// `1 tensor`, `12 entries`, `1,333 tensors`.
pub fn count(n: usize, one: &str) -> String {
    let stem = one.strip_suffix('y').filter(|s| !s.ends_with('e'));
    let many = stem.map_or_else(|| format!("{one}s"), |s| format!("{s}ies"));
    format!("{} {}", thousands(n as u64), if n == 1 { one } else { &many })
}

/// `is` or `are`, and the like.
pub fn verb(n: usize, one: &'static str, many: &'static str) -> &'static str {
    if n == 1 { one } else { many }
}

/// Digits in groups of three.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `805,306,368 bytes (768 MiB)`.
pub fn bytes(n: u64) -> String {
    if n < 1 << 20 { format!("{} bytes", thousands(n)) } else { format!("{} bytes ({})", thousands(n), size(n)) }
}

/// `7.68 GiB`.
pub fn size(n: u64) -> String {
    let (unit, name) = match n {
        0..1_048_576 => (1_024, "KiB"),
        1_048_576..1_073_741_824 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    if n < 1_024 {
        return format!("{n} B");
    }
    // Two digits after the point, without floats: reports are compared byte by byte.
    let hundredths = (u128::from(n) * 100 + unit / 2) / unit;
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    match rest {
        0 => format!("{whole} {name}"),
        _ => format!("{whole}.{rest:02} {name}"),
    }
}

/// `` `a`, `b` and 3 more ``: as many as fit a message.
pub fn list<S: AsRef<str>>(names: &[S], room: usize) -> String {
    let mut out = String::new();
    for (i, name) in names.iter().enumerate() {
        let next = format!("{}`{}`", if i == 0 { "" } else { ", " }, name.as_ref());
        if i > 0 && out.len() + next.len() > room {
            return format!("{out} and {} more", thousands((names.len() - i) as u64));
        }
        out.push_str(&next);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts() {
        assert_eq!(bytes(805_306_368), "805,306,368 bytes (768 MiB)");
        assert_eq!(size(8_250_000_000), "7.68 GiB");
        assert_eq!(size(12), "12 B");
        assert_eq!(count(1, "entry"), "1 entry");
        assert_eq!(count(1333, "entry"), "1,333 entries");
        assert_eq!(list(&["a", "b", "c"], 8), "`a`, `b` and 1 more");
    }
}
