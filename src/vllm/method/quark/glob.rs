//! Python's `fnmatch.fnmatchcase`: `*`, `?`, `[seq]`, `[!seq]`.

/// Whether `name` matches `pattern` from end to end.
pub(super) fn matches(name: &str, pattern: &str) -> bool {
    let (name, pattern) = (name.as_bytes(), pattern.as_bytes());
    let (mut n, mut p) = (0, 0);
    // Where to go on when what follows the last star does not fit.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(b'?') => Some(p + 1),
            Some(b'[') => match set(pattern, p, name[n]) {
                Some((fits, after)) => fits.then_some(after),
                None => (name[n] == b'[').then_some(p + 1),
            },
            Some(c) => (*c == name[n]).then_some(p + 1),
            None => None,
        };
        match (step, star) {
            (Some(after), _) => (n, p) = (n + 1, after),
            (None, Some((after, at))) => {
                star = Some((after, at + 1));
                (n, p) = (at + 1, after);
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// A set from its bracket on: whether it holds the character, and what follows it. None when it never closes.
fn set(pattern: &[u8], open: usize, c: u8) -> Option<(bool, usize)> {
    let negated = pattern.get(open + 1) == Some(&b'!');
    let start = open + 1 + usize::from(negated);
    // A bracket right at the beginning stands for itself.
    let close = (start + 1..pattern.len()).find(|i| pattern[*i] == b']')?;
    let body = &pattern[start..close];
    let mut hit = false;
    let mut i = 0;
    while i < body.len() {
        if i + 2 < body.len() && body[i + 1] == b'-' {
            hit |= (body[i]..=body[i + 2]).contains(&c);
            i += 3;
        } else {
            hit |= body[i] == c;
            i += 1;
        }
    }
    Some((hit != negated, close + 1))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn as_python_has_it() {
        for (pattern, name, want) in [
            ("*k_proj", "model.layers.0.self_attn.k_proj", true),
            ("*k_proj", "model.layers.0.self_attn.k_proj.x", false),
            ("*.[qk]_proj", "a.q_proj", true),
            ("*.[!qk]_proj", "a.q_proj", false),
            ("layers.[0-3].*", "layers.2.mlp", true),
            ("a?c", "abc", true),
            ("a[c", "a[c", true),
            ("*a*b*c*", "xxaxxbxx", false),
            ("", "", true),
            ("**", "", true),
        ] {
            assert_eq!(matches(name, pattern), want, "{pattern} {name}");
        }
    }
}
