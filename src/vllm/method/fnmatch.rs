//! Python's `fnmatch.fnmatchcase`: `*`, `?`, `[seq]`, `[!seq]`.

/// Whether `name` matches `pattern` from end to end.
pub(super) fn fnmatch(name: &str, pattern: &str) -> bool {
    Glob::new(pattern).matches(name, &name.chars().collect::<Vec<_>>(), &mut 0)
}

#[derive(Debug)]
enum Token {
    Star,
    One,
    Char(char),
    Set { negated: bool, ranges: Vec<(char, char)> },
}

/// A pattern of Python's `fnmatch`.
#[derive(Debug)]
pub(super) struct Glob {
    /// What stands before the first wildcard.
    head: String,
    tokens: Vec<Token>,
}

impl Glob {
    /// `fnmatch.translate`.
    pub(super) fn new(pattern: &str) -> Glob {
        let chars: Vec<char> = pattern.chars().collect();
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(c) = chars.get(at) {
            at += 1;
            tokens.push(match c {
                '*' => {
                    if matches!(tokens.last(), Some(Token::Star)) {
                        continue;
                    }
                    Token::Star
                }
                '?' => Token::One,
                '[' => {
                    // A bracket right after the opening one, or after `!`, is a member.
                    let negated = chars.get(at) == Some(&'!');
                    let start = at + usize::from(negated);
                    let skip = usize::from(chars.get(start) == Some(&']'));
                    match chars.iter().skip(start + skip).position(|c| *c == ']') {
                        None => Token::Char('['),
                        Some(n) => {
                            let end = start + skip + n;
                            at = end + 1;
                            Token::Set { negated, ranges: ranges(&chars[start..end]) }
                        }
                    }
                }
                c => Token::Char(*c),
            });
        }
        let head = tokens.iter().map_while(|t| if let Token::Char(c) = t { Some(*c) } else { None }).collect();
        Glob { head, tokens }
    }

    /// Counts the steps that it takes.
    pub(super) fn matches(&self, text: &str, name: &[char], steps: &mut u64) -> bool {
        *steps += 1;
        if !text.starts_with(&self.head) {
            return false;
        }
        // The last star is the only one that has to give way.
        let (mut at, mut token) = (0, 0);
        let mut back: Option<(usize, usize)> = None;
        while at < name.len() {
            *steps += 1;
            match self.tokens.get(token) {
                Some(Token::Star) => {
                    back = Some((token, at));
                    token += 1;
                }
                Some(t) if t.takes(name[at]) => {
                    token += 1;
                    at += 1;
                }
                _ => {
                    let Some((star, from)) = back else { return false };
                    back = Some((star, from + 1));
                    (token, at) = (star + 1, from + 1);
                }
            }
        }
        self.tokens[token.min(self.tokens.len())..].iter().all(|t| matches!(t, Token::Star))
    }
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Token::Star => false,
            Token::One => true,
            Token::Char(own) => *own == c,
            Token::Set { negated, ranges } => ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated,
        }
    }
}

/// Members of a set; empty ranges match nothing.
fn ranges(mut inside: &[char]) -> Vec<(char, char)> {
    let mut out = Vec::new();
    while let [first, rest @ ..] = inside {
        if let ['-', last, rest @ ..] = rest {
            out.push((*first, *last));
            inside = rest;
        } else {
            out.push((*first, *first));
            inside = rest;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(pattern: &str, name: &str) -> bool {
        Glob::new(pattern).matches(name, &name.chars().collect::<Vec<_>>(), &mut 0)
    }

    #[test]
    fn wildcards_match_as_fnmatch_does() {
        for (pattern, name, want) in [
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("*.mlp.*", "x.mlp.y", true),
            ("*a*b", "aab", true),
            ("?b", "ab", true),
            ("?b", "b", false),
            ("[!1-9].x", "0.x", true),
            ("[!1-9].x", "3.x", false),
            ("[]x]", "]", true),
            ("[x", "[x", true),
            ("[z-a]", "b", false),
            ("[!]", "[!]", true),
            ("[a-]", "-", true),
            ("", "", true),
            ("**", "anything", true),
            ("abc*", "ab", false),
        ] {
            assert_eq!(hit(pattern, name), want, "{pattern} {name}");
        }
    }

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
            assert_eq!(fnmatch(name, pattern), want, "{pattern} {name}");
        }
    }
}
