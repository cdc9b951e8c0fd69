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

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Outside,
    /// Right after the opening bracket.
    Start,
    Inside,
}

#[cfg(test)]
mod tests {
    use super::translate;

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
