//! Module-name patterns of compressed-tensors: an exact name, or `re:P` with the meaning of Python's `regex.match`,
//! anchored at the start only. `re:.*lm_head` therefore also matches `lm_head_norm`, and `re:lm_head` does not match
//! `model.lm_head`.

mod plain;
mod python;

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use fancy_regex::{Regex, RegexBuilder};

/// Backtracks that one match may cost: a fifth of a millisecond, about. Real patterns need none.
const BACKTRACK_LIMIT: usize = 20_000;
/// Bytes of a compiled pattern; `(a{1000}){1000}` takes more.
const SIZE_LIMIT: usize = 2 << 20;
/// Longer patterns are not compiled.
const MAX_LENGTH: usize = 16 << 10;

/// Why a pattern gives no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternError {
    /// It does not compile; in the words of the regex library.
    Broken(String),
    /// Matching it takes too many steps; Python would take them, and seem to hang.
    TooCostly,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Broken(text) => f.write_str(text),
            PatternError::TooCostly => f.write_str("matching takes too many steps"),
        }
    }
}

impl std::error::Error for PatternError {}

/// One entry of an ignore list or of targets.
#[derive(Debug)]
pub struct Pattern {
    entry: String,
    how: How,
}

#[derive(Debug)]
enum How {
    Exact,
    /// Literals, `.` and `.*` only: what nearly all real patterns consist of.
    Plain(plain::Plain, OnceLock<Result<Compiled, PatternError>>),
    Regex(Compiled),
}

#[derive(Debug)]
struct Compiled {
    regex: Regex,
    /// Set once a match was given up: one hostile pattern must cost its limit once, not once a module.
    given_up: AtomicBool,
}

impl Compiled {
    fn new(source: &str) -> Result<Self, PatternError> {
        let regex = RegexBuilder::new(source)
            .backtrack_limit(BACKTRACK_LIMIT)
            .delegate_size_limit(SIZE_LIMIT)
            .build()
            .map_err(|e| PatternError::Broken(one_line(&e.to_string())))?;
        Ok(Compiled { regex, given_up: AtomicBool::new(false) })
    }

    fn is_match(&self, name: &str) -> Result<bool, PatternError> {
        if self.given_up.load(Ordering::Relaxed) {
            return Err(PatternError::TooCostly);
        }
        self.regex.is_match(name).map_err(|_| {
            self.given_up.store(true, Ordering::Relaxed);
            PatternError::TooCostly
        })
    }
}

/// The regex library draws pictures under some errors.
fn one_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let first = lines.next().unwrap_or("does not compile");
    let last = lines.next_back().filter(|l| l.starts_with("error:"));
    last.unwrap_or(first).trim_start_matches("error: ").to_owned()
}

impl Pattern {
    /// Compiles an entry.
    ///
    /// # Errors
    /// [`PatternError::Broken`] for a `re:` pattern that does not compile.
    pub fn new(entry: &str) -> Result<Self, PatternError> {
        let how = match entry.strip_prefix("re:") {
            None => How::Exact,
            Some(p) if p.len() > MAX_LENGTH => {
                return Err(PatternError::Broken(format!("longer than {MAX_LENGTH} bytes")));
            }
            Some(p) => match plain::Plain::new(p) {
                Some(plain) => How::Plain(plain, OnceLock::new()),
                None => How::Regex(anchored(p)?),
            },
        };
        Ok(Pattern { entry: entry.to_owned(), how })
    }

    /// The entry as written, `re:` included.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Whether it is a `re:` pattern.
    pub fn is_regex(&self) -> bool {
        !matches!(self.how, How::Exact)
    }

    /// Whether compressed-tensors would say that this entry matches `name`.
    ///
    /// # Errors
    /// [`PatternError::TooCostly`], from then on always for this pattern.
    pub fn is_match(&self, name: &str) -> Result<bool, PatternError> {
        match &self.how {
            How::Exact => Ok(self.entry == name),
            How::Regex(regex) => regex.is_match(name),
            How::Plain(plain, slow) => match plain.is_match(name) {
                Some(answer) => Ok(answer),
                None => slow.get_or_init(|| anchored(self.source())).as_ref().map_err(Clone::clone)?.is_match(name),
            },
        }
    }

    /// Whether a `re:` pattern would match `name` if it were not anchored at the start (Python's `regex.search`), for
    /// hints on near misses. Always false for exact entries, and where there is no answer.
    ///
    /// Compiles anew each time: [`Pattern::would_match_any_unanchored`] for more than one name.
    pub fn would_match_unanchored(&self, name: &str) -> bool {
        self.would_match_any_unanchored([name])
    }

    /// The same for any of many names, compiled once, and given up for good at the first name that costs too much.
    pub fn would_match_any_unanchored<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        self.is_regex()
            && Compiled::new(&format!("(?:{})", python::translate(self.source()))).is_ok_and(|c| {
                names.into_iter().map(|n| c.is_match(n)).find(|m| *m != Ok(false)).is_some_and(|m| m == Ok(true))
            })
    }

    fn source(&self) -> &str {
        self.entry.strip_prefix("re:").unwrap_or(&self.entry)
    }
}

fn anchored(pattern: &str) -> Result<Compiled, PatternError> {
    Compiled::new(&format!("\\A(?:{})", python::translate(pattern))).map_err(|e| match e {
        // vLLM prints what Python's `regex` module says.
        PatternError::Broken(text) => PatternError::Broken(python::complaint(pattern).unwrap_or(text)),
        other => other,
    })
}

/// A list of entries that answers for many names: exact entries by hash, patterns one after the other.
#[derive(Debug, Default)]
pub struct PatternSet {
    /// Entry → its places in the list, ascending.
    exact: HashMap<String, Vec<usize>>,
    regexes: Vec<(usize, Pattern)>,
    broken: Vec<(usize, PatternError)>,
    len: usize,
}

impl PatternSet {
    /// Compiles all entries; those that do not compile match nothing and are kept in [`PatternSet::broken`].
    pub fn new<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Self {
        let mut set = PatternSet::default();
        for (i, entry) in entries.into_iter().enumerate() {
            set.len = i + 1;
            let entry = entry.as_ref();
            match Pattern::new(entry) {
                Ok(p) if p.is_regex() => set.regexes.push((i, p)),
                Ok(_) => set.exact.entry(entry.to_owned()).or_default().push(i),
                Err(e) => set.broken.push((i, e)),
            }
        }
        set
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Entries that do not compile, by their place in the list. In Python each raises once it is reached.
    pub fn broken(&self) -> &[(usize, PatternError)] {
        &self.broken
    }

    /// The first entry in list order that matches.
    ///
    /// # Errors
    /// The place of a pattern that gave no answer before one that matches did.
    pub fn first(&self, name: &str) -> Result<Option<usize>, (usize, PatternError)> {
        let exact = self.exact.get(name).and_then(|at| at.first().copied());
        for (i, pattern) in &self.regexes {
            if exact.is_some_and(|e| e < *i) {
                break;
            }
            if pattern.is_match(name).map_err(|e| (*i, e))? {
                return Ok(Some(*i));
            }
        }
        Ok(exact)
    }

    /// Every entry that matches, in list order.
    ///
    /// # Errors
    /// The place of the first pattern that gave no answer.
    pub fn all(&self, name: &str) -> Result<Vec<usize>, (usize, PatternError)> {
        let mut found = self.exact.get(name).cloned().unwrap_or_default();
        for (i, pattern) in &self.regexes {
            if pattern.is_match(name).map_err(|e| (*i, e))? {
                found.push(*i);
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Patterns that do not match `name`, but would if they were not anchored at the start.
    pub fn near_misses(&self, name: &str) -> Vec<usize> {
        let near = |p: &Pattern| matches!(p.is_match(name), Ok(false)) && p.would_match_unanchored(name);
        self.regexes.iter().filter(|(_, p)| near(p)).map(|(i, _)| *i).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(entry: &str, name: &str) -> bool {
        Pattern::new(entry).unwrap().is_match(name).unwrap()
    }

    /// Each line was answered so by Python's `regex` module.
    #[test]
    fn means_what_python_means() {
        for (entry, name, answer) in [
            ("re:.*lm_head", "language_model.lm_head", true),
            ("re:.*lm_head", "lm_head_norm", true),
            ("re:lm_head", "model.lm_head", false),
            ("re:vision_tower", "vision_tower.layers.0.q", true),
            ("re:.*mlp.gate$", "model.layers.3.mlp.gate", true),
            ("re:.*mlp.gate$", "model.layers.3.mlp.gate_proj", false),
            ("re:^lm_head$", "lm_head", true),
            ("re:^model\\.layers\\.[0-2]\\..*", "model.layers.2.x", true),
            ("re:^model\\.layers\\.[0-2]\\..*", "model.layers.12.x", false),
            ("re:.*(?<!shared_)experts.*", "mlp.experts.0", true),
            ("re:.*(?<!shared_)experts$", "mlp.shared_experts", false),
            ("re:(?!.*mtp).*gate", "mtp.gate", false),
            ("re:a|b", "bcd", true),
            ("re:a|b", "cab", false),
            ("re:(?P<n>ab)(?P=n)\\Z", "abab", true),
            ("re:(?P<n>ab)(?P=n)\\Z", "ababx", false),
            ("re:a++b", "aaab", true),
            ("re:(?>a+)ab", "aaab", false),
            ("re:[[a]x", "[x", true),
            ("re:[a&&b]x", "&x", true),
            ("re:[--9]x", ".x", true),
            ("re:\\<x", "<x", true),
            ("re:x{,2}y", "xxy", true),
            ("re:x{,2}y", "xxxy", false),
            ("re:x{a", "x{a", true),
            ("re:model[.]visual.*", "model.visual.a", true),
            ("re:(?i)LM_head", "lm_HEAD", true),
            ("re:", "anything", true),
            ("re:.*\\d+\\.q_proj", "layers.12.q_proj", true),
            ("re:layers\\.\\d", "layers.é", false),
            ("re:.\\.a", "é.a", true),
            ("model.layers", "model.layers", true),
            ("model.layers", "model.layers.0", false),
            ("model.*", "model.layers", false),
            ("Linear", "Linear", true),
        ] {
            assert_eq!(matches(entry, name), answer, "{entry} on {name}");
        }
    }

    #[test]
    fn what_does_not_compile_says_why_on_one_line() {
        for entry in
            ["re:(", "re:*", "re:[a", "re:a)", "re:(?P<n", "re:[z-a]", "re:(?:(?:a{1000}){1000}){1000}", "re:[a--b]"]
        {
            let error = Pattern::new(entry).unwrap_err();
            let text = error.to_string();
            assert!(!text.is_empty() && !text.contains('\n'), "{entry}: {text}");
        }
        assert!(Pattern::new(&format!("re:{}", "(".repeat(10_000))).is_err());
        assert!(Pattern::new(&format!("re:{}", "a".repeat(20_000))).is_err());
    }

    #[test]
    fn hostile_patterns_end() {
        let p = Pattern::new("re:(?=(a+)+$)b").unwrap();
        let name = "a".repeat(400) + "!";
        let start = std::time::Instant::now();
        let errors = (0..10_000).filter(|_| p.is_match(&name).is_err()).count();
        // Linear engines may well answer; what counts is that neither way takes long.
        assert!(errors == 0 || errors == 10_000);
        let p = Pattern::new("re:(a|a)*\\1(?=b)c").unwrap();
        assert_eq!(p.is_match(&name), Err(PatternError::TooCostly));
        assert_eq!(p.is_match("b"), Err(PatternError::TooCostly));
        assert!(start.elapsed().as_secs() < 20);
    }

    #[test]
    fn sets_answer_in_list_order() {
        let set = PatternSet::new(["b", "re:a.*", "abc", "re:(", "re:.*c", "abc"]);
        assert_eq!((set.len(), set.is_empty()), (6, false));
        assert_eq!(set.first("abc").unwrap(), Some(1));
        assert_eq!(set.first("b").unwrap(), Some(0));
        assert_eq!(set.first("xc").unwrap(), Some(4));
        assert_eq!(set.first("x").unwrap(), None);
        assert_eq!(set.all("abc").unwrap(), [1, 2, 4, 5]);
        assert_eq!(set.broken()[0].0, 3);
        let set = PatternSet::new(["abc", "re:a.*"]);
        assert_eq!(set.first("abc").unwrap(), Some(0));
    }

    #[test]
    fn near_misses_are_those_of_the_start() {
        let set = PatternSet::new(["re:lm_head", "re:vision", "lm_head", "re:.*lm_head"]);
        assert_eq!(set.near_misses("model.lm_head"), [0]);
        assert!(set.near_misses("lm_head").is_empty());
    }

    #[test]
    fn looks_for_near_misses_among_many_names() {
        let names = ["model.layers.0.mlp.down_proj", "model.norm"];
        assert!(Pattern::new("re:mlp\\.down").unwrap().would_match_any_unanchored(names));
        assert!(!Pattern::new("re:vision").unwrap().would_match_any_unanchored(names));
        assert!(
            !Pattern::new("model.norm").unwrap().would_match_any_unanchored(names),
            "exact entries have no near miss here"
        );
        // One answer that costs too much is the last: the name behind it is not tried.
        let hostile = Pattern::new("re:(?=b)b|^(?=a)(a|aa)+$").unwrap();
        let long = format!("{}!", "a".repeat(200));
        assert!(!hostile.would_match_any_unanchored([long.as_str(), "b"]));
        assert!(hostile.would_match_any_unanchored(["b"]));
    }
}
