//! The formats for other programs: what each looks like, and that nothing of a stranger's breaks out of it.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/case.rs"]
#[allow(dead_code, reason = "shared between test binaries")]
mod case;

use ckpt_lint::finding::{Finding, Level, Place, Subjects, words};
use ckpt_lint::report::text::Look;
use ckpt_lint::report::{Class, FileState, Ignored, Read, Report, Section, Shown, Target, Verdict};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Findings of all levels, at lines, at tensors and at no line.
const RICH: &str = "gemma4mm-cut-vision-staleignore";
/// What a stranger may call a tensor: ends of lines, commands, cells, fences, tags, mentions, links.
const EVIL: &str = "a\n::error::x\r##[add-mask]y\n```\n|</code><img src=x>`@octocat` [l](http://e.example) ]]>&{0}%0A\u{1b}[2J\u{202e}";

fn program(root: &Path, args: &[&str]) -> String {
    let mut c = Command::new(env!("CARGO_BIN_EXE_ckpt-lint"));
    c.env_remove("GITHUB_WORKSPACE").current_dir(root).args(args);
    let o = c.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&o.stderr), "", "{args:?}");
    String::from_utf8(o.stdout).unwrap()
}

/// The case in `models/case` of a repository.
fn repository(id: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("models/case");
    fs::create_dir_all(&folder).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/conformance/cases/{id}.json"));
    case::read(&path).materialize(&folder);
    root
}

/// A repository whose checkpoint, folder and names are from a stranger.
fn evil() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("models").join("x,y::z|`<b>&\n::warning::w");
    fs::create_dir_all(&folder).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/cases/llama-igsyn-ghost.json");
    let mut case = case::read(&path);
    let config = case.json.pointer_mut("/files/config.json").unwrap();
    config["quantization_config"]["ignore"].as_array_mut().unwrap().push(json!(EVIL));
    let shards = case.json["shards"].as_object_mut().unwrap();
    let tensors = shards.values_mut().next().unwrap()["tensors"].as_array_mut().unwrap();
    for name in [EVIL, "b|c @octocat"] {
        tensors.push(json!({"name": name, "dtype": "BF16", "shape": [2]}));
    }
    case.materialize(&folder);
    root
}

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/formats");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(RICH);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

type Pairs = Vec<(String, String)>;

/// What the runner of GitHub Actions makes of a line: command, properties, message.
fn workflow_command(line: &str) -> Option<(String, Pairs, String)> {
    let undone = |text: &str, more: bool| {
        let text = text.replace("%0D", "\r").replace("%0A", "\n");
        let text = if more { text.replace("%3A", ":").replace("%2C", ",") } else { text };
        text.replace("%25", "%")
    };
    let (info, message) = line.trim_start().strip_prefix("::")?.split_once("::")?;
    let (name, properties) = info.split_once(' ').unwrap_or((info, ""));
    let pair = |p: &str| p.split_once('=').map(|(k, v)| (k.to_owned(), undone(v, true)));
    Some((name.to_owned(), properties.split(',').filter_map(pair).collect(), undone(message, false)))
}

#[test]
fn github() {
    let root = repository(RICH);
    snapshot("github", &program(root.path(), &["models", "--format", "github"]));
    // Wherever the step runs, paths count from the workspace.
    let inside = root.path().join("models/case");
    let mut c = Command::new(env!("CARGO_BIN_EXE_ckpt-lint"));
    c.env("GITHUB_WORKSPACE", root.path()).current_dir(&inside).args([".", "--format", "github"]);
    assert_eq!(
        String::from_utf8(c.output().unwrap().stdout).unwrap(),
        program(root.path(), &["models", "--format", "github"])
    );
}

#[test]
fn github_commands_are_ours() {
    let root = evil();
    let text = program(root.path(), &["models", "--format", "github"]);
    let mut lines: Vec<&str> = text.lines().collect();
    let last = lines.pop().unwrap();
    assert!(last.starts_with("ckpt-lint: 1 checkpoint: "), "{last}");
    for line in &lines {
        let (name, properties, message) = workflow_command(line).unwrap();
        assert!(["error", "warning", "notice"].contains(&name.as_str()), "{line}");
        let keys: Vec<&str> = properties.iter().map(|p| p.0.as_str()).collect();
        assert!(
            keys.iter().all(|k| ["file", "line", "endLine", "col", "endColumn", "title"].contains(k)),
            "{keys:?} in {line}"
        );
        assert!(root.path().join(&properties[0].1).is_file(), "{properties:?}");
        assert!(!message.contains('\u{1b}') && !message.contains('\u{202e}'), "{message}");
    }
    let levels: Vec<&str> = lines.iter().map(|l| l[2..].split(' ').next().unwrap()).collect();
    let mut sorted = levels.clone();
    sorted.sort_by_key(|l| ["error", "warning", "notice"].iter().position(|n| n == l));
    assert_eq!(levels, sorted, "errors first");
    assert!(levels.len() > 1, "{text}");
}

#[test]
fn github_shows_ten_of_a_level() {
    let root = repository(RICH);
    let from = root.path().join("models/case");
    for i in 0..11 {
        let to = root.path().join(format!("models/copy{i}"));
        fs::create_dir(&to).unwrap();
        for entry in fs::read_dir(&from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    let text = program(root.path(), &["models", "--format", "github"]);
    for level in ["error", "warning", "notice"] {
        assert!(text.lines().filter(|l| l.starts_with(&format!("::{level} "))).count() <= 10, "{text}");
    }
    assert!(text.trim_end().ends_with("not annotated: GitHub shows 10 of a level in a step"), "{text}");
}

#[test]
fn markdown() {
    let root = repository(RICH);
    snapshot("markdown", &program(root.path(), &["models", "--format", "markdown"]));
    let two =
        program(Path::new(env!("CARGO_MANIFEST_DIR")), &["examples", "--format", "markdown", "--fail-on", "never"]);
    assert!(two.contains("| `examples/unlisted-linear/broken` | **would refuse** | 1 error |"), "{two}");
    assert!(two.contains("**3 checkpoints**: 1 refused, 2 load · 1 error"), "{two}");
}

/// Renders as GitHub does, and looks for what only a stranger would have put there.
#[test]
fn markdown_has_nothing_of_a_strangers() {
    use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
    let root = evil();
    let text = program(root.path(), &["models", "--format", "markdown"]);
    let (mut block, mut blocks, mut seen) = (false, 0, String::new());
    for event in Parser::new_ext(&text, Options::all()) {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                assert!(matches!(&kind, CodeBlockKind::Fenced(lang) if &**lang == "text"), "{kind:?}");
                (block, blocks) = (true, blocks + 1);
            }
            Event::End(TagEnd::CodeBlock) => block = false,
            Event::Text(t) if block => seen.push_str(&t),
            Event::Text(t) => assert!(!t.contains(['@', '<', '|', '[', ']']) && !t.contains("://"), "{t}"),
            Event::Code(t) => seen.push_str(&t),
            Event::Start(Tag::Link { dest_url, .. }) => {
                assert!(dest_url.starts_with("https://github.com/ckpt-lint/"), "{dest_url}");
            }
            Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::Strong) | Event::End(_) | Event::SoftBreak => {}
            other => panic!("{other:?} in {text}"),
        }
    }
    assert!(blocks > 2 && seen.contains("<img src=x>`@octocat`"), "{text}");
}

fn sarif(root: &Path) -> Value {
    let text = program(root, &["models", "--format", "sarif"]);
    let log: Value = serde_json::from_str(&text).unwrap();
    valid_sarif(&log);
    log
}

fn valid_sarif(log: &Value) {
    let schema = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/sarif-2.1.0.schema.json")).unwrap();
    let mut schema: Value = serde_json::from_slice(&schema).unwrap();
    // As published, and its pattern for languages is no regular expression. We write none.
    for of in ["run", "toolComponent"] {
        let language = schema.pointer_mut(&format!("/definitions/{of}/properties/language")).unwrap();
        assert!(language.as_object_mut().unwrap().remove("pattern").is_some());
    }
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(log).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// What GitHub asks for beyond the schema.
#[test]
fn sarif_for_code_scanning() {
    let root = repository(RICH);
    let log = sarif(root.path());
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), ckpt_lint::rules::all().count());
    for rule in rules {
        for (key, most) in [("shortDescription", 1_024), ("fullDescription", 1_024)] {
            let text = rule[key]["text"].as_str().unwrap();
            assert!(!text.is_empty() && text.chars().count() <= most, "{rule}");
        }
        assert!(rule["help"]["markdown"].as_str().unwrap().starts_with("# "), "{rule}");
        assert!(rule["helpUri"].as_str().unwrap().starts_with("https://"), "{rule}");
        assert!(rule["name"].as_str().unwrap().len() <= 255 && rule["defaultConfiguration"]["level"].is_string());
        assert!(rule["properties"]["tags"].as_array().unwrap().len() <= 10);
    }
    let mut prints = std::collections::BTreeSet::new();
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        assert!(root.path().join(place["artifactLocation"]["uri"].as_str().unwrap()).is_file(), "{place}");
        for side in ["startLine", "startColumn", "endLine", "endColumn"] {
            assert!(place["region"][side].as_u64().unwrap() >= 1, "{place}");
        }
        assert!(prints.insert(result["partialFingerprints"]["primaryLocationLineHash"].to_string()), "{result}");
    }
    // One rule in the snapshot is enough, and a new one should not change it.
    let mut shown = log.clone();
    shown["runs"][0]["tool"]["driver"]["rules"].as_array_mut().unwrap().truncate(1);
    shown["runs"][0]["tool"]["driver"]["semanticVersion"] = "VERSION".into();
    for result in shown["runs"][0]["results"].as_array_mut().unwrap() {
        result["ruleIndex"] = "INDEX".into();
    }
    snapshot("sarif", &serde_json::to_string_pretty(&shown).unwrap());
}

#[test]
fn sarif_fingerprints_survive_moved_lines() {
    let prints = |root: &Path| -> Vec<Value> {
        let log = sarif(root);
        let results = log["runs"][0]["results"].as_array().unwrap();
        results.iter().map(|r| r["partialFingerprints"].clone()).collect()
    };
    let root = repository(RICH);
    let before = prints(root.path());
    let config = root.path().join("models/case/config.json");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replacen('{', "{\n\n  \"a_new_line\": 1,\n", 1)).unwrap();
    assert_eq!(before, prints(root.path()));
    // An entry that goes from a list moves those after it.
    let mut value: Value = serde_json::from_str(&text).unwrap();
    let ignore = value.pointer_mut("/quantization_config/ignore").unwrap().as_array_mut().unwrap();
    ignore.rotate_left(1);
    fs::write(&config, value.to_string()).unwrap();
    let sorted = |mut v: Vec<Value>| {
        v.sort_by_key(Value::to_string);
        v
    };
    assert_eq!(sorted(before), sorted(prints(root.path())));
}

#[test]
fn sarif_has_no_links_of_a_strangers() {
    let root = evil();
    let log = sarif(root.path());
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert!(results.len() > 1);
    for result in results {
        let text = result["message"]["text"].as_str().unwrap();
        assert!(!text.replace("\\](", "").contains("](") && !text.replace("{{0}}", "").contains("{0}"), "{text}");
        let uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.starts_with("models/x%2Cy%3A%3Az%7C%60%3Cb%3E%26%0A%3A%3Awarning%3A%3Aw/"), "{uri}");
    }
}

/// What is ignored stays a result, so that code scanning neither closes nor reopens it.
#[test]
fn sarif_keeps_what_is_ignored() {
    let root = repository(RICH);
    let all = sarif(root.path());
    fs::create_dir(root.path().join(".git")).unwrap();
    let rule = all["runs"][0]["results"][0]["ruleId"].as_str().unwrap();
    let toml = format!("baseline = \"known.json\"\n[[ignore]]\nrule = \"{rule}\"\nreason = \"known [x](y)\"\n");
    fs::write(root.path().join("ckpt-lint.toml"), toml).unwrap();
    let mut c = Command::new(env!("CARGO_BIN_EXE_ckpt-lint"));
    c.env_remove("GITHUB_WORKSPACE").current_dir(root.path()).args(["models", "--write-baseline"]);
    assert_eq!(c.output().unwrap().status.code(), Some(0));
    // One more finding, which nobody has accepted.
    let config = root.path().join("models/case/config.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    let ignore = value.pointer_mut("/quantization_config/ignore").unwrap().as_array_mut().unwrap();
    ignore.push("a.module.that.is.new".into());
    fs::write(&config, value.to_string()).unwrap();
    let log = sarif(root.path());
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert!(results.iter().all(|r| r["suppressions"].is_array()), "all or none: {results:?}");
    let why: Vec<_> = results.iter().map(|r| &r["suppressions"][0]["justification"]).collect();
    assert!(why[0].is_null() && why[1..].iter().all(|w| w.is_string()), "{why:?}");
    assert!(why.contains(&&json!("known [x\\](y)")) && why.contains(&&json!("baseline")), "{why:?}");
    let prints = |log: &Value| -> std::collections::BTreeSet<String> {
        let results = log["runs"][0]["results"].as_array().unwrap();
        results.iter().map(|r| r["partialFingerprints"]["primaryLocationLineHash"].to_string()).collect()
    };
    assert!(prints(&log).is_superset(&prints(&all)), "ignoring one renames none");
    assert_eq!(log["runs"][0]["automationDetails"]["id"], "ckpt-lint/models/");
}

/// A report of as many findings, in memory.
fn many(findings: usize, ignored: usize) -> Report {
    let rule = ckpt_lint::rules::find("index-ghost-tensor").unwrap();
    let shown = |i: usize| Shown {
        finding: Finding {
            rule: rule.name,
            level: Level::Error,
            message: format!("finding {i}"),
            place: Place::Folder,
            label: None,
            subjects: Subjects { count: 1, names: vec![format!("tensor.{i}.of.a.name.that.takes.its.room")] },
            evidence: Vec::new(),
            vllm: None,
            help: None,
            fix: None,
        },
        url: rule.url(),
        spot: None,
        print: format!("{i:016x}:1"),
    };
    let ignored = (0..ignored).map(|i| Ignored { shown: shown(findings + i), reason: "baseline".into() });
    Report {
        tool: "0",
        facts: vec!["0.32"],
        rules: ckpt_lint::rules::all().collect(),
        target: Target {
            vllm: "0.32".into(),
            quantization: None,
            load_format: "auto".into(),
            language_model_only: false,
            trust_remote_code: false,
        },
        scope: "models/case".into(),
        checkpoints: vec![Section {
            path: "models/case".into(),
            base: "models/case".into(),
            verdict: Verdict { class: Class::Refuses, message: None, error_type: None, stage: None, garbage: 0 },
            findings: (0..findings).map(shown).collect(),
            ignored: ignored.collect(),
            unknown: Vec::new(),
            read: Read {
                config: FileState::Read,
                index: FileState::Absent,
                shards: 1,
                headers: 1,
                pointers: 0,
                tensors: 1,
                bytes: 1,
                names_only: false,
                config_only: false,
            },
        }],
        errors: Vec::new(),
        elapsed: std::time::Duration::ZERO,
    }
}

/// GitHub rejects a file of more than 25,000 results, and a summary of more than 1 MiB, whole.
#[test]
fn limits_of_github() {
    let look = Look { width: 100, verbose: false, quiet: false, time: false, fit: false, links: false };
    for (findings, ignored, left) in [(25_000, 0, None), (25_001, 2, Some("3 findings"))] {
        let report = many(findings, ignored);
        let mut out = Vec::new();
        ckpt_lint::report::sarif::render(&report, &mut out).unwrap();
        let log: Value = serde_json::from_slice(&out).unwrap();
        let run = &log["runs"][0];
        assert_eq!(run["results"].as_array().unwrap().len(), 25_000);
        let note = &run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"];
        match left {
            None => assert!(note.is_null(), "{note}"),
            Some(left) => assert_eq!(note, &format!("{left} left out, the least severe ones")),
        }
        let mut out = Vec::new();
        ckpt_lint::report::markdown::render(&report, look, &mut out).unwrap();
        assert!(out.len() > 900 << 10 && out.len() < 1 << 20, "{}", out.len());
        let text = String::from_utf8(out).unwrap();
        assert!(text.trim_end().ends_with("more, for which there is no room here"), "{}", &text[text.len() - 200..]);
        let shown = text.matches("#### ").count();
        assert!(text.contains(&format!("… and {} more", words::count(findings - shown, "finding"))));
    }
}

#[test]
fn gitlab() {
    let root = repository(RICH);
    snapshot("gitlab", &program(root.path(), &["models", "--format", "gitlab"]));
    for root in [root, evil()] {
        let text = program(root.path(), &["models", "--format", "gitlab"]);
        let issues: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert!(issues.len() > 1);
        let mut prints = std::collections::BTreeSet::new();
        for issue in &issues {
            assert!(!issue["description"].as_str().unwrap().is_empty() && issue["check_name"].is_string(), "{issue}");
            assert!(prints.insert(issue["fingerprint"].as_str().unwrap()), "{issue}");
            assert!(["major", "minor", "info"].contains(&issue["severity"].as_str().unwrap()), "{issue}");
            let path = issue["location"]["path"].as_str().unwrap();
            assert!(!path.starts_with('/') && root.path().join(path).is_file(), "{issue}");
            assert!(issue["location"]["lines"]["begin"].as_u64().unwrap() >= 1, "{issue}");
        }
    }
}

#[test]
fn junit() {
    let root = repository(RICH);
    snapshot("junit", &program(root.path(), &["models", "--format", "junit"]));
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for (root, path) in [(root.path(), "models"), (evil().path(), "models"), (examples.as_path(), ".")] {
        let text = program(root, &[path, "--format", "junit"]);
        let xml = roxmltree::Document::parse(&text).unwrap();
        let of = |node: roxmltree::Node, name: &str| node.descendants().filter(|n| n.has_tag_name(name)).count();
        let suites = xml.root_element();
        let said = |node: roxmltree::Node, name: &str| node.attribute(name).unwrap().parse::<usize>().unwrap();
        assert!(of(suites, "testcase") > 1);
        for node in xml.descendants().filter(|n| n.has_tag_name("testsuite") || n.has_tag_name("testsuites")) {
            assert_eq!(said(node, "tests"), of(node, "testcase"), "{text}");
            assert_eq!(said(node, "failures"), of(node, "failure"), "{text}");
            assert_eq!(said(node, "errors"), 0, "{text}");
        }
        let known = ["testsuites", "testsuite", "testcase", "failure", "skipped"];
        for node in xml.descendants().filter(roxmltree::Node::is_element) {
            assert!(known.contains(&node.tag_name().name()), "{node:?}");
        }
        let mut names = std::collections::BTreeSet::new();
        for test in xml.descendants().filter(|n| n.has_tag_name("testcase")) {
            assert!(names.insert((test.attribute("classname"), test.attribute("name"))), "{test:?}");
        }
    }
}

#[test]
fn all_formats_in_one_run() {
    let root = repository(RICH);
    let kinds = ["json", "github", "markdown", "sarif", "gitlab", "junit"];
    let files: Vec<String> = kinds.iter().map(|k| format!("{k}=out.{k}")).collect();
    let mut args = vec!["models", "--format", "text"];
    for file in &files {
        args.extend(["--format", file]);
    }
    assert!(program(root.path(), &args).contains("would refuse"));
    for kind in kinds {
        let alone = program(root.path(), &["models", "--format", kind]);
        assert_eq!(fs::read_to_string(root.path().join(format!("out.{kind}"))).unwrap(), alone, "{kind}");
    }
}

/// A run that could not look at its checkpoint must not read as one that found nothing.
#[test]
fn errors_of_the_run_are_in_every_format() {
    let root = tempfile::tempdir().unwrap();
    let ran = |kind: &str| {
        let mut c = Command::new(env!("CARGO_BIN_EXE_ckpt-lint"));
        c.env_remove("GITHUB_WORKSPACE").current_dir(root.path()).args(["no|`where`", "--format", kind]);
        let o = c.output().unwrap();
        assert_eq!(o.status.code(), Some(2), "{kind}");
        String::from_utf8(o.stdout).unwrap()
    };
    assert!(ran("github").starts_with("::error title=ckpt-lint::"));
    assert!(ran("markdown").contains("**not looked at:** ``"));
    let log: Value = serde_json::from_str(&ran("sarif")).unwrap();
    valid_sarif(&log);
    assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], false);
    assert_eq!(ran("gitlab"), "[]\n");
    let text = ran("junit");
    let xml = roxmltree::Document::parse(&text).unwrap();
    assert_eq!(xml.root_element().attribute("errors"), Some("1"));
    assert!(xml.descendants().any(|n| n.has_tag_name("error")));
}

/// A checkpoint elsewhere has no relative path. An empty variable is as good as none.
#[test]
fn checkpoints_outside_of_the_root() {
    let (root, there) = (tempfile::tempdir().unwrap(), repository(RICH));
    let folder = there.path().join("models/case").display().to_string();
    let mut c = Command::new(env!("CARGO_BIN_EXE_ckpt-lint"));
    c.env("GITHUB_WORKSPACE", "").current_dir(root.path()).args([&folder, "--format", "sarif"]);
    let o = c.output().unwrap();
    let log: Value = serde_json::from_slice(&o.stdout).unwrap_or_else(|_| panic!("{o:?}"));
    valid_sarif(&log);
    let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(place["uri"], format!("file://{folder}/config.json"));
    assert!(place.get("uriBaseId").is_none());
}
