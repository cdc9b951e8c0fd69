//! Patterns of literals, `.` and `.*`, matched without a regex engine: most real entries are such, and a large
//! mixture-of-experts model asks every entry about 45,000 modules.

/// Pieces between `.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plain {
    pieces: Vec<Vec<Step>>,
    /// Ends in `$`.
    to_end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Byte(u8),
    Any,
}

impl Plain {
    /// `None` when the pattern holds anything else.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        let mut pieces = vec![Vec::new()];
        let mut to_end = false;
        let mut bytes = pattern.strip_prefix('^').unwrap_or(pattern).bytes().peekable();
        while let Some(b) = bytes.next() {
            let step = match b {
                b'$' if bytes.peek().is_none() => {
                    to_end = true;
                    break;
                }
                b'.' if bytes.next_if_eq(&b'*').is_some() => {
                    // Lazy and possessive stars are for the engine.
                    if matches!(bytes.peek(), Some(b'?' | b'+' | b'*' | b'{')) {
                        return None;
                    }
                    pieces.push(Vec::new());
                    continue;
                }
                b'.' => Step::Any,
                b'\\' => Step::Byte(bytes.next().filter(|b| matches!(b, b'.' | b'-' | b'_' | b'/'))?),
                b if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'/' | b' ' | b':') => Step::Byte(b),
                _ => return None,
            };
            if matches!(bytes.peek(), Some(b'*' | b'+' | b'?' | b'{')) {
                return None;
            }
            pieces.last_mut()?.push(step);
        }
        Some(Plain { pieces, to_end })
    }

    /// `regex.match`, or `None` when the name needs the engine: `.` stops at line ends and takes whole characters.
    pub(super) fn is_match(&self, name: &str) -> Option<bool> {
        let name = name.as_bytes();
        if name.iter().any(|b| !b.is_ascii() || *b == b'\n') {
            return None;
        }
        Some(self.run(name))
    }

    fn run(&self, name: &[u8]) -> bool {
        let Some((first, rest)) = self.pieces.split_first() else { return true };
        if !fits(first, name) {
            return false;
        }
        let mut at = first.len();
        let Some((last, middle)) = rest.split_last() else {
            return !self.to_end || at == name.len();
        };
        // The leftmost place for each piece leaves most room for the next ones.
        let find = |piece: &[Step], from: usize| {
            (from..=name.len().checked_sub(piece.len())?).find(|&i| fits(piece, &name[i..])).map(|i| i + piece.len())
        };
        for piece in middle {
            match find(piece, at) {
                Some(end) => at = end,
                None => return false,
            }
        }
        if self.to_end {
            name.len().checked_sub(last.len()).is_some_and(|start| start >= at && fits(last, &name[start..]))
        } else {
            find(last, at).is_some()
        }
    }
}

fn fits(piece: &[Step], name: &[u8]) -> bool {
    piece.len() <= name.len() && piece.iter().zip(name).all(|(s, b)| *s == Step::Any || *s == Step::Byte(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_only_what_it_understands() {
        for yes in [".*lm_head", "^a.b$", "model\\.visual.*", "", "$", "a.*b.*c"] {
            assert!(Plain::new(yes).is_some(), "{yes}");
        }
        for no in ["a|b", "a+", "a$b", "[a]", "(a)", "a.*?b", "\\d", "a**", "a.+", "é", "a^b", "a{2}", ".?"] {
            assert!(Plain::new(no).is_none(), "{no}");
        }
    }

    /// All patterns up to five symbols against all names up to four, with the regex engine as the judge.
    #[test]
    fn agrees_with_the_engine() {
        let symbols = ["a", "\\.", ".", ".*", "$", "^"];
        let names: Vec<String> = (0..5u32)
            .flat_map(|n| (0..2usize.pow(n)).map(move |bits| (0..n).map(|i| ["a", "."][bits >> i & 1]).collect()))
            .collect();
        let mut tried = 0;
        for n in 0..5u32 {
            for code in 0..symbols.len().pow(n) {
                let pattern: String = (0..n).map(|i| symbols[code / symbols.len().pow(i) % symbols.len()]).collect();
                let Some(plain) = Plain::new(&pattern) else { continue };
                let engine = fancy_regex::Regex::new(&format!("\\A(?:{pattern})")).unwrap();
                for name in &names {
                    assert_eq!(plain.is_match(name), Some(engine.is_match(name).unwrap()), "{pattern} on {name}");
                }
                tried += 1;
            }
        }
        assert!(tried > 300, "{tried}");
    }
}
