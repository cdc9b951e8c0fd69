//! Python's pattern syntax in that of fancy-regex. Only what differs is touched.

/// Rewrites a pattern of Python's `regex` module (version 0 behaviour). What is invalid stays invalid.
pub(super) fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    let mut class = Class::Outside;
    let mut last = '\0';
    while let Some(c) = rest.next() {
        match (c, class) {
            ('\\', _) => match rest.next() {
                // The very end; `\Z` means something laxer elsewhere.
                Some('Z') if class == Class::Outside => out.push_str("\\z"),
                // Plain characters in Python, word boundaries here.
                Some(c @ ('<' | '>')) => out.push(c),
                Some('h') => out.push_str(if class == Class::Outside { "[ \\t]" } else { " \\t" }),
                Some(c) => out.extend(['\\', c]),
                None => out.push('\\'),
            },
            ('[', Class::Outside) => {
                class = Class::Start;
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // The first `]` is a member.
                if rest.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                    class = Class::Inside;
                }
                last = '\0';
                continue;
            }
            (']', Class::Start | Class::Inside) => {
                class = Class::Outside;
                out.push(']');
            }
            ('[', _) if rest.peek() == Some(&':') => out.push('['),
            // No nested classes and no set operations in version 0.
            ('[', _) => out.push_str("\\["),
            ('&' | '~', Class::Start | Class::Inside) => out.extend(['\\', c]),
            // `--` is a range that begins or ends with a hyphen.
            ('-', Class::Start | Class::Inside) if rest.peek() == Some(&'-') => {
                if last == '\0' {
                    out.push_str("\\-");
                } else {
                    rest.next();
                    out.push_str("-\\-");
                }
            }
            ('{', Class::Outside) if rest.peek() == Some(&',') => {
                // `{,n}` is `{0,n}`, and `{,` in front of anything else is itself.
                let ahead: String = rest.clone().skip(1).take_while(char::is_ascii_digit).collect();
                let closed = rest.clone().nth(1 + ahead.len()) == Some('}');
                out.push_str(if closed { "{0" } else { "\\{" });
            }
            (c, _) => out.push(c),
        }
        if class == Class::Start {
            class = Class::Inside;
        }
        last = c;
    }
    out
}

/// What Python's `regex` module says of a pattern that does not compile, for the common mistakes; none for others.
pub(super) fn complaint(pattern: &str) -> Option<String> {
    let chars: Vec<char> = pattern.chars().collect();
    let end = chars.len();
    let (mut open, mut i) = (0usize, 0);
    // Whether there is something to repeat, and whether it is repeated already.
    let (mut atom, mut repeated) = (false, false);
    while let Some(&c) = chars.get(i) {
        match c {
            '\\' if i + 1 == end => return Some(format!("bad escape (end of pattern) at position {end}")),
            '\\' => i += 1,
            '[' => {
                let mut j = i + 1 + usize::from(chars.get(i + 1) == Some(&'^'));
                j += usize::from(chars.get(j) == Some(&']'));
                while chars.get(j).is_some_and(|c| *c != ']') {
                    j += 1 + usize::from(chars[j] == '\\');
                }
                if j >= end {
                    return Some(format!("unterminated character set at position {end}"));
                }
                i = j;
            }
            '(' => {
                open += 1;
                (atom, repeated) = (false, false);
                // `(?:`, `(?P<n>`, `(?=` …: the group's own letters are no atoms.
                if chars.get(i + 1) == Some(&'?') {
                    i += 2;
                }
                i += 1;
                continue;
            }
            ')' => {
                let Some(left) = open.checked_sub(1) else {
                    return Some(format!("unbalanced parenthesis at position {i}"));
                };
                open = left;
            }
            '|' => {
                (atom, repeated) = (false, false);
                i += 1;
                continue;
            }
            '*' | '+' | '?' if !atom => return Some(format!("nothing to repeat at position {i}")),
            // After a repeat, `?` makes it lazy and `+` possessive.
            '?' | '+' if repeated && matches!(chars[i - 1], '*' | '+' | '?' | '}') && c == '?' => {}
            '*' | '+' if repeated => return Some(format!("multiple repeat at position {i}")),
            '*' | '+' | '?' => {
                repeated = true;
                i += 1;
                continue;
            }
            _ => {}
        }
        (atom, repeated) = (true, false);
        i += 1;
    }
    (open > 0).then(|| format!("missing ) at position {end}"))
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Outside,
    /// Right after the opening bracket.
    Start,
    Inside,
}

#[cfg(test)]
mod tests {
    use super::{complaint, translate};

    #[test]
    fn complains_as_python_does() {
        // As `regex.compile` of Python says it.
        for (pattern, text) in [
            (".*(", "missing ) at position 3"),
            ("(a", "missing ) at position 2"),
            ("a)", "unbalanced parenthesis at position 1"),
            ("*a", "nothing to repeat at position 0"),
            ("a**", "multiple repeat at position 2"),
            ("a+*", "multiple repeat at position 2"),
            ("[a", "unterminated character set at position 2"),
            ("[]", "unterminated character set at position 2"),
            ("a\\", "bad escape (end of pattern) at position 2"),
            ("x|*", "nothing to repeat at position 2"),
            ("(?:*)", "nothing to repeat at position 3"),
            ("(a))", "unbalanced parenthesis at position 3"),
            ("**", "nothing to repeat at position 0"),
        ] {
            assert_eq!(complaint(pattern).as_deref(), Some(text), "{pattern}");
        }
        for fine in [".*q_proj$", "(?P<n>a)+?b", "[*+]", r"\(", "a{2}", "^*", "[^]]*"] {
            assert_eq!(complaint(fine), None, "{fine}");
        }
    }

    #[test]
    fn touches_only_what_differs() {
        for same in [r".*\.q_proj$", r"a\\Z", r"[^a-z]+(?:x|y)", r"(?P<n>a)\d{2,3}", r"[[:alpha:]]"] {
            assert_eq!(translate(same), same);
        }
        assert_eq!(translate(r"a\Z"), r"a\z");
        assert_eq!(translate("[]a]"), r"[\]a]");
        assert_eq!(translate("[^]a]"), r"[^\]a]");
        assert_eq!(translate("[a[b]"), r"[a\[b]");
        assert_eq!(translate("[a&&b]"), r"[a\&\&b]");
        assert_eq!(translate("[+--a]"), r"[+-\-a]");
        assert_eq!(translate("[--a]"), r"[\--a]");
        assert_eq!(translate("a{,3}"), "a{0,3}");
        assert_eq!(translate("a{,x"), r"a\{,x");
        assert_eq!(translate("a\\"), "a\\");
    }
}
