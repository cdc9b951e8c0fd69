//! The house rules, enforced. Each failure says why the rule is there.
//!
//! `UPDATE=1 cargo test --test house` rewrites what is generated: the table and the help in the README, the schema.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

#[path = "support/case.rs"]
#[allow(dead_code, reason = "shared between test binaries")]
mod case;
#[path = "support/lint.rs"]
#[allow(dead_code, reason = "shared between test binaries")]
mod lint;

use ckpt_lint::cli::Cli;
use ckpt_lint::diff;
use ckpt_lint::report::json;
use ckpt_lint::rules;
use ckpt_lint::run::run;
use ckpt_lint::vllm::trace::Kind;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(dir: &str, ext: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut stack = vec![root().join(dir)];
    while let Some(dir) = stack.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                stack.push(path);
            } else if path.extension().is_some_and(|e| e == ext) {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string().replace('\\', "/")
}

/// Code without tests and comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap();
    text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The room that a file belongs to.
fn room(path: &str) -> &str {
    let inside = path.strip_prefix("src/").unwrap_or("rules");
    let first = inside.split(['/', '.']).next().unwrap();
    if path.starts_with("rules/") { "rules" } else { first }
}

/// Who may use what, from the design. A room may always use itself.
const MAY: &[(&str, &[&str])] = &[
    ("finding", &[]),
    ("pattern", &[]),
    ("facts", &[]),
    ("source", &[]),
    ("checkpoint", &["source", "pattern"]),
    ("vllm", &["checkpoint", "pattern", "facts"]),
    ("rule", &["checkpoint", "vllm", "finding", "pattern", "facts"]),
    ("rules", &["rule", "checkpoint", "vllm", "finding", "pattern", "facts"]),
    ("policy", &["finding", "rule"]),
    ("locate", &["finding", "checkpoint"]),
    ("report", &["finding", "rule", "locate"]),
    ("diff", &["checkpoint", "finding", "locate"]),
    ("cli", &["finding", "policy", "facts"]),
    (
        "run",
        &[
            "source",
            "checkpoint",
            "vllm",
            "facts",
            "finding",
            "rule",
            "rules",
            "policy",
            "locate",
            "report",
            "diff",
            "cli",
        ],
    ),
];

#[test]
fn who_may_use_what() {
    let mut wrong = Vec::new();
    for path in files("src", "rs").into_iter().chain(files("rules", "rs")) {
        let file = name(&path);
        if matches!(file.as_str(), "src/lib.rs" | "src/main.rs") || file.ends_with("/tests.rs") {
            continue;
        }
        let room = room(&file);
        let Some((_, may)) = MAY.iter().find(|m| m.0 == room) else {
            wrong.push(format!("{file}: the room `{room}` is not in the design's table"));
            continue;
        };
        for part in code(&path).split("crate::").skip(1) {
            let used: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if used != room && !may.contains(&used.as_str()) {
                wrong.push(format!("{file}: `{room}` may not use `{used}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "data goes one way, or facts start to depend on words:\n{}", wrong.join("\n"));
}

#[test]
fn each_library_has_one_room() {
    let mut wrong = Vec::new();
    let homes: &[(&str, &[&str])] = &[
        ("clap", &["src/cli.rs"]),
        ("miette", &["src/report/text.rs"]),
        ("anstream", &["src/run/show.rs"]),
        ("std::fs", &["src/source/", "src/run/show.rs", "src/run/accepted.rs"]),
        ("std::env", &["src/run/terminal.rs"]),
        ("SystemTime", &[]),
        ("Instant", &["src/run.rs"]),
        ("println!", &[]),
    ];
    for path in files("src", "rs").into_iter().chain(files("rules", "rs")) {
        let file = name(&path);
        let text = code(&path);
        for (what, allowed) in homes {
            let used = text.contains(&format!("{what}::")) || what.ends_with('!') && text.contains(what);
            if used && file != "src/main.rs" && !allowed.iter().any(|a| file.starts_with(a)) {
                wrong.push(format!("{file}: `{what}` belongs to {allowed:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "a library that leaks cannot be replaced, and rules must be pure:\n{}", wrong.join("\n"));
}

#[test]
fn sizes() {
    let mut wrong = Vec::new();
    for path in files("src", "rs").into_iter().chain(files("rules", "rs")) {
        let file = name(&path);
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.split("#[cfg(test)]").next().unwrap().lines().count();
        let most = match file.as_str() {
            "src/main.rs" => 50,
            f if f.starts_with("rules/") => 150,
            _ => 400,
        };
        if lines > most {
            wrong.push(format!("{file}: {lines} lines, more than {most}"));
        }
    }
    assert!(wrong.is_empty(), "what does not fit a screen or two gets a folder:\n{}", wrong.join("\n"));
}

#[test]
fn every_rule_is_registered_and_has_its_page() {
    let registered: BTreeSet<String> =
        rules::all().map(|r| format!("rules/{}", r.page_path().replace(".md", ".rs"))).collect();
    assert_eq!(registered.len(), rules::all().count(), "two rules share a file or a name");
    let there: BTreeSet<String> =
        files("rules", "rs").iter().map(|p| name(p)).filter(|f| !f.ends_with("mod.rs")).collect();
    assert_eq!(there, registered, "a rule is one file of its own name and one word in its family's mod.rs");
    for rule in rules::all() {
        assert!(rules::families().any(|f| f == rule.family()), "{}: no such family", rule.name);
        assert!(rule.page.starts_with(&format!("# {}\n", rule.name)), "{}: the page begins with the name", rule.name);
        let mut at = 0;
        for heading in ["## What it checks", "## Why it matters", "## How to fix", "## Example", "## Evidence"] {
            let found = rule.page[at..].find(heading);
            at += found.unwrap_or_else(|| panic!("{}: the page needs `{heading}`, in this order", rule.name));
        }
    }
}

#[test]
fn every_kind_belongs_to_one_rule() {
    for kind in Kind::ALL {
        let rules: Vec<&str> = rules::all().filter(|r| r.claims.contains(kind)).map(|r| r.name).collect();
        assert_eq!(rules.len(), 1, "{kind:?} is claimed by {rules:?}: verdict and findings could disagree");
    }
}

#[test]
fn names_and_summaries() {
    let mut names = BTreeSet::new();
    for rule in rules::all() {
        for name in rule.aliases.iter().chain([&rule.name]) {
            assert!(names.insert(*name), "{name} twice");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}: kebab case");
        }
        wording(rule.summary, rule.name);
    }
}

/// Lower case, no final period, under 120 columns. vLLM's name and code in backticks are what they are.
fn wording(text: &str, whose: &str) {
    let first = text.chars().next().unwrap_or('X');
    assert!(!first.is_uppercase(), "{whose}: `{text}` begins in lower case, as after a colon");
    assert!(!text.ends_with('.'), "{whose}: `{text}` has no final period");
    assert!(text.chars().count() < 120, "{whose}: `{text}` is under 120 columns");
    assert!(!text.contains('\n') && !text.is_empty(), "{whose}: `{text}` is one line");
}

/// Rules that no case fires yet; each is a case to write (CONTRIBUTING.md).
const UNPROVEN: &[&str] = &["load-unexplained"];

#[test]
fn every_rule_has_a_case_and_a_good_twin() {
    let mut fired: BTreeSet<(&str, String)> = BTreeSet::new();
    let mut silent: BTreeSet<String> = BTreeSet::new();
    for case in case::all() {
        // What a case is made from: the first word of its name.
        let base = case.id.split('-').next().unwrap_or_default().to_owned();
        let (_, findings) = lint::lint(&case);
        for f in &findings {
            wording(&f.message, f.rule);
            if let Some(label) = &f.label {
                wording(label, f.rule);
            }
            fired.insert((f.rule, base.clone()));
        }
        if case.good && findings.is_empty() {
            silent.insert(base);
        }
    }
    let unproven: Vec<&str> = rules::all().map(|r| r.name).filter(|n| !fired.iter().any(|f| f.0 == *n)).collect();
    assert_eq!(unproven, UNPROVEN, "a rule that nothing fires is an opinion; a case is one JSON file");
    for (rule, _) in &fired {
        let twin = fired.iter().any(|f| f.0 == *rule && silent.contains(&f.1));
        assert!(twin, "{rule}: no good case of the same base on which it is silent");
    }
}

/// Compares a generated text, or writes it.
fn current(path: &str, wanted: &str) {
    let path = root().join(path);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, wanted).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(there == wanted, "{} is not current: `UPDATE=1 cargo test --test house`", path.display());
}

/// Replaces what stands between two marks.
fn between(text: &str, mark: &str, new: &str) -> String {
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("README has no {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("README has no {end}"));
    format!("{before}{begin}{new}{end}{after}")
}

/// What `ckpt-lint diff` prints for two folders of the repository, as one would see it.
fn compared(before: &str, after: &str) -> String {
    let folders = [before, after].map(|f| root().join(f).into_os_string());
    let line = ["ckpt-lint", "diff", "--color", "never"].map(OsString::from).into_iter().chain(folders);
    let mut out = Vec::new();
    run(Cli::from_args(line).unwrap(), &mut out, &mut Vec::new()).unwrap();
    let out = String::from_utf8(out).unwrap().replace(&format!("{}/", root().display()), "");
    format!("```console\n$ ckpt-lint diff {before} {after}\n{}\n```\n", out.trim_end())
}

#[test]
fn readme_is_current() {
    let mut table = String::from("| rule | what it finds |\n|---|---|\n");
    for rule in rules::all() {
        table.push_str(&format!("| [`{}`](rules/{}) | {} |\n", rule.name, rule.page_path(), rule.summary));
    }
    let help = format!("```text\n{}\n```\n", Cli::help().trim_end());
    let folder = root().join("examples/unlisted-linear/broken");
    let shown = lint::folder(&folder, &[]).0.replace(&folder.display().to_string(), "examples/unlisted-linear/broken");
    let shown = format!("```console\n$ ckpt-lint examples/unlisted-linear/broken\n{}\n```\n", shown.trim_end());
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let readme =
        between(&readme, "diff", &compared("examples/unlisted-linear/source", "examples/unlisted-linear/mended"));
    let readme = between(&readme, "rules", &table);
    let readme = between(&readme, "help", &help);
    let known = files("rules/facts/vllm/0.32/classes", "json");
    let known: Vec<_> = known.iter().map(|p| format!("`{}`", p.file_stem().unwrap().to_string_lossy())).collect();
    let folded =
        format!("  <details><summary>these {}</summary>\n\n  {}\n\n  </details>\n\n", known.len(), known.join(", "));
    let readme = between(&readme, "classes", &folded);
    current("README.md", &between(&readme, "example", &shown));
}

#[test]
fn schema_is_current() {
    current("docs/report.schema.json", &(serde_json::to_string_pretty(&json::schema()).unwrap() + "\n"));
    current("docs/diff.schema.json", &(serde_json::to_string_pretty(&diff::json::schema()).unwrap() + "\n"));
    let settings = schemars::schema_for!(ckpt_lint::policy::Settings);
    current("docs/settings.schema.json", &(serde_json::to_string_pretty(&settings).unwrap() + "\n"));
}

/// `tools/release.sh` writes them all.
#[test]
fn one_version_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let shim = fs::read_to_string(root().join("pyproject.toml")).unwrap();
    for line in [format!("version = \"{version}\""), format!("dependencies = [\"ckpt-lint=={version}\"]")] {
        assert!(shim.lines().any(|l| l == line), "pyproject.toml needs `{line}`, or the hook runs another version");
    }
    let pages = files("docs", "md").into_iter().chain([root().join("README.md")]);
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for mark in ["ckpt-lint==", "rev: v", "ckpt-lint@v"] {
            for rest in text.split(mark).skip(1) {
                let named: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
                assert_eq!(named, version, "{}: `{mark}` names another version: tools/release.sh", name(&page));
            }
        }
    }
    let changes = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let mut released = changes.lines().filter_map(|l| l.strip_prefix("## [")?.split_once(']')).map(|h| h.0);
    if let Some(last) = released.find(|v| *v != "Unreleased") {
        assert_eq!(last, version, "CHANGELOG.md: the newest heading is another version");
    }
}

/// The examples of the README are cases, so the real vLLM has judged them.
#[test]
fn examples_are_judged_cases() {
    let examples = [("source", "llama-base-bf16"), ("broken", "llama-16bit-down1"), ("mended", "llama-listed-down1")];
    for (folder, id) in examples {
        let case = case::read(&root().join(format!("tests/conformance/cases/{id}.json")));
        assert_eq!(case.text("/oracle/class"), Some(if case.good { "loads" } else { "refuses" }), "{id}");
        let dir = root().join("examples/unlisted-linear").join(folder);
        if std::env::var_os("UPDATE").is_some() {
            fs::create_dir_all(&dir).unwrap();
            case.materialize(&dir);
        }
        let fresh = tempfile::tempdir().unwrap();
        case.materialize(fresh.path());
        for entry in fs::read_dir(fresh.path()).unwrap() {
            let entry = entry.unwrap();
            let there = fs::read(dir.join(entry.file_name())).unwrap_or_default();
            assert!(there == fs::read(entry.path()).unwrap(), "{folder}: `UPDATE=1 cargo test --test house`");
        }
    }
}
