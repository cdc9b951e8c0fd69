//! Known findings, standard input, and what depends on who looks on: the program from outside.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/case.rs"]
#[allow(dead_code, reason = "shared between test binaries")]
mod case;

use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

struct Ran {
    code: i32,
    out: String,
    err: String,
}

const VARIABLES: [&str; 10] = [
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "CI",
    "GITHUB_ACTIONS",
    "GITHUB_WORKSPACE",
    "FORCE_HYPERLINK",
    "PAGER",
    "CKPT_LINT_PAGER",
    "TERM_PROGRAM",
];

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_ckpt-lint"));
    for name in VARIABLES {
        c.env_remove(name);
    }
    c.current_dir(dir).args(args);
    c
}

fn ended(c: &mut Command) -> Ran {
    let o = c.output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    Ran { code: o.status.code().unwrap(), out: text(o.stdout), err: text(o.stderr) }
}

fn ran(dir: &Path, args: &[&str]) -> Ran {
    ended(&mut command(dir, args))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

const BROKEN: &str = "examples/unlisted-linear/broken";
const RICH: &str = "gemma4mm-cut-vision-staleignore";

/// A repository with the case in `models/case`.
fn repository(id: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("models/case");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir(dir.path().join(".git")).unwrap();
    case::read(&root().join(format!("tests/conformance/cases/{id}.json"))).materialize(&folder);
    dir
}

fn report(dir: &Path, args: &[&str]) -> Value {
    let args = [args, &["--format", "json"]].concat();
    serde_json::from_str(&ran(dir, &args).out).unwrap()
}

#[test]
fn a_baseline_accepts_what_is_there() {
    let repo = repository(RICH);
    let dir = repo.path();
    let all = report(dir, &["models"])["checkpoints"][0]["findings"].as_array().unwrap().len();
    assert_eq!(ran(dir, &["models"]).code, 1);
    let r = ran(dir, &["models", "--baseline", "known.json", "--write-baseline"]);
    assert_eq!((r.code, r.err.as_str()), (0, format!("ckpt-lint: known.json: {all} findings written\n").as_str()));
    assert!(r.out.contains("would refuse it"), "what vLLM would do does not change: {}", r.out);
    let written = fs::read_to_string(dir.join("known.json")).unwrap();
    let value: Value = serde_json::from_str(&written).unwrap();
    assert_eq!((&value["version"], value["findings"].as_array().unwrap().len()), (&json!(1), all));
    assert_eq!(value["findings"][0]["checkpoint"], "models/case");

    let r = ran(dir, &["models", "--baseline", "known.json", "--fail-on", "note"]);
    assert_eq!((r.code, r.err.as_str()), (0, ""), "{}", r.out);
    let json = report(dir, &["models", "--baseline", "known.json"]);
    let checkpoint = &json["checkpoints"][0];
    assert!(checkpoint["findings"].as_array().unwrap().is_empty());
    assert_eq!(checkpoint["ignored"].as_array().unwrap().len(), all);
    assert_eq!(checkpoint["ignored"][0]["reason"], "baseline");

    // From another folder, with lines that moved and entries that changed places, it is the same.
    let config = dir.join("models/case/config.json");
    let mut moved: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    moved.pointer_mut("/quantization_config/ignore").unwrap().as_array_mut().unwrap().rotate_left(1);
    fs::write(&config, format!("\n\n{moved}")).unwrap();
    let r = ran(&dir.join("models"), &["case", "--baseline", "../known.json", "--fail-on", "note"]);
    assert_eq!((r.code, r.err.as_str()), (0, ""), "{}", r.out);
    // Written again, it is the same, too.
    ran(dir, &["models", "--baseline", "known.json", "--write-baseline"]);
    assert_eq!(fs::read_to_string(dir.join("known.json")).unwrap(), written);
    // In the settings it counts from where these are.
    fs::write(dir.join("ckpt-lint.toml"), "baseline = \"known.json\"\n").unwrap();
    assert_eq!(ran(&dir.join("models"), &["case", "--fail-on", "note"]).code, 0);
    assert_eq!(ran(&dir.join("models"), &["case", "--no-config"]).code, 1);
}

#[test]
fn what_gets_worse_or_goes_away_is_told() {
    let repo = repository(RICH);
    let dir = repo.path();
    ran(dir, &["models", "--baseline", "known.json", "--write-baseline"]);
    let file = dir.join("known.json");
    let whole: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let at = |key: &str, value: Value| {
        let mut less = whole.clone();
        let findings = less["findings"].as_array_mut().unwrap();
        let some = findings.iter_mut().find(|f| f["level"] != "note" && f["subjects"] != 0).unwrap();
        some[key] = value;
        fs::write(&file, less.to_string()).unwrap();
        ran(dir, &["models", "--baseline", "known.json", "--fail-on", "note"])
    };
    // The same at a lower level before, or of fewer things, is not what was accepted.
    for (key, value) in [("level", json!("note")), ("subjects", json!(0))] {
        let r = at(key, value);
        assert_eq!((r.code, r.err.as_str()), (1, ""), "{key}: {}", r.out);
    }
    let r = at("fingerprint", json!("0:1"));
    assert_eq!(r.code, 1);
    assert!(r.err.contains("known.json: `") && r.err.contains("of models/case matches nothing any more"), "{}", r.err);
    // Of a checkpoint that was not looked at, and of rules that did not run, nothing is said.
    let r = at("checkpoint", json!("models/other"));
    assert_eq!(r.err, "");
    fs::write(&file, whole.to_string()).unwrap();
    assert_eq!(ran(dir, &["models", "--baseline", "known.json", "--select", "serve"]).err, "");
}

#[test]
fn a_baseline_that_is_none() {
    let repo = repository(RICH);
    let dir = repo.path();
    for (text, said) in [
        (None, "bad.json: "),
        (Some("{"), "bad.json is no baseline of ckpt-lint: EOF"),
        (Some("{\"version\": 2, \"findings\": []}"), "version 2; this ckpt-lint reads version 1"),
        (Some("{\"version\": 1, \"findings\": [{}]}"), "missing field `checkpoint` at line 1"),
    ] {
        match text {
            Some(text) => fs::write(dir.join("bad.json"), text).unwrap(),
            None => drop(fs::remove_file(dir.join("bad.json"))),
        }
        let r = ran(dir, &["models", "--baseline", "bad.json"]);
        assert!(r.code == 2 && r.err.contains(said) && r.out.is_empty(), "{}: {}", r.code, r.err);
    }
    let r = ran(dir, &["models", "--write-baseline"]);
    assert!(r.code == 2 && r.err.contains("--write-baseline needs a file"), "{}", r.err);
    // What could not be looked at is not accepted unseen.
    let r = ran(dir, &["models", "nowhere", "--baseline", "new.json", "--write-baseline"]);
    assert!(r.code == 2 && r.err.contains("not written") && !dir.join("new.json").exists(), "{}", r.err);
}

/// Runs with a text on standard input.
fn fed(args: &[&str], text: &[u8]) -> Ran {
    let mut c = command(root(), args);
    let mut child = c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let text = text.to_vec();
    // A run that ends before it reads is none of the writer's business.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&text)));
    let o = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    Ran { code: o.status.code().unwrap(), out: text(o.stdout), err: text(o.stderr) }
}

#[test]
fn standard_input_is_one_config() {
    let config = fs::read(root().join(BROKEN).join("config.json")).unwrap();
    let r = fed(&["-"], &config);
    assert_eq!(r.code, 0, "{}", r.out);
    assert!(r.out.starts_with("<stdin>\n") && r.out.contains("no weights looked at"), "{}", r.out);
    assert!(r.out.trim_end().ends_with("weights, index and other files were not looked at"), "{}", r.out);
    assert!(!r.out.contains("would load"), "{}", r.out);

    let mut wrong: Value = serde_json::from_slice(&config).unwrap();
    wrong["architectures"] = json!(["NoSuchForCausalLM"]);
    let wrong = serde_json::to_vec_pretty(&wrong).unwrap();
    let r = fed(&["-"], &wrong);
    assert!(r.code == 1 && r.out.contains("[<stdin>:") && r.out.contains("would refuse it"), "{}", r.out);
    let log: Value = serde_json::from_str(&fed(&["-", "--format", "sarif"], &wrong).out).unwrap();
    let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(place, &json!({"uri": "%3Cstdin%3E", "uriBaseId": "%SRCROOT%"}));
    for (text, code) in [(&b""[..], 1), (b"[]", 1), (b"\xff\xfe", 1), (b"{}", 1)] {
        assert_eq!(fed(&["-"], text).code, code, "{text:?}");
    }
    for args in [&["-", "-"][..], &["-", BROKEN], &["-", "--require-weights"]] {
        let r = fed(args, &config);
        assert!(r.code == 2 && r.err.contains("`-` "), "{args:?}: {}", r.err);
    }
}

#[test]
fn one_bad_path_takes_nothing_from_the_others() {
    let r = ran(root(), &[BROKEN, "examples/unlisted-linear/borken", "src"]);
    assert_eq!(r.code, 2);
    assert!(r.out.contains("would refuse it"), "{}", r.out);
    assert!(r.err.contains("did you mean `examples/unlisted-linear/broken`?"), "{}", r.err);
    assert!(r.err.contains("src: no checkpoint here"), "{}", r.err);
}

#[test]
fn a_verdict_by_names_says_so() {
    let repo = repository("llama-files-lfs-all");
    for args in [&["models"][..], &["models", "--require-weights"]] {
        let out = ran(repo.path(), args).out;
        let last = "vLLM 0.32 would load this checkpoint, by its names: the weights are not here";
        assert!(out.trim_end().ends_with(last), "{out}");
    }
}

/// In a log of GitHub Actions, both, and none of the text is an order.
#[test]
fn text_and_annotations_in_a_log() {
    let evil = "x\n::error::a\r##[add-mask]b";
    let repo = tempfile::tempdir().unwrap();
    let folder = repo.path().join("::warning::w");
    fs::create_dir(&folder).unwrap();
    let mut case = case::read(&root().join("tests/conformance/cases/llama-igsyn-ghost.json"));
    let config = case.json.pointer_mut("/files/config.json").unwrap();
    config["quantization_config"]["ignore"].as_array_mut().unwrap().push(json!(evil));
    case.materialize(&folder);
    let text = fs::read_to_string(folder.join("config.json")).unwrap();
    fs::write(folder.join("config.json"), text.replace(": null", ": \"##[group]\"")).unwrap();
    let in_log = |args: &[&str]| ended(command(repo.path(), args).env("GITHUB_ACTIONS", "true"));
    let r = in_log(&["."]);
    let ours = |l: &&str| ["::error ", "::warning ", "::notice "].iter().any(|c| l.starts_with(c));
    let (orders, text): (Vec<&str>, Vec<&str>) = r.out.lines().partition(|l| l.trim_start().starts_with("::"));
    assert!(!orders.is_empty() && orders.iter().all(&ours), "{}", r.out);
    assert!(text.iter().any(|l| l.contains("vLLM 0.32")) && !text.iter().any(|l| l.contains("##[")), "{}", r.out);
    assert!(orders.iter().all(|l| !l.contains("##[")), "{}", r.out);
    // Whoever asks for a format gets that.
    assert!(!in_log(&[".", "--format", "text"]).out.lines().any(|l| ours(&l)));
    assert_eq!(in_log(&["."]).code, ran(repo.path(), &["."]).code);
}

#[test]
fn links_only_where_they_work() {
    let link = "\u{1b}]8;;https://";
    let forced = |args: &[&str]| ended(command(root(), args).env("FORCE_HYPERLINK", "1")).out;
    assert!(forced(&[BROKEN, "--color", "always"]).contains(link));
    assert!(!forced(&[BROKEN]).contains('\u{1b}'), "without colour there are no escapes at all");
    assert!(!ran(root(), &[BROKEN, "--color", "always"]).out.contains(link));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out.txt");
    forced(&[BROKEN, "--color", "always", "--format", &format!("text={}", file.display())]);
    assert!(!fs::read_to_string(file).unwrap().contains('\u{1b}'));
}

/// The picture in the README is what the program prints.
#[test]
fn the_picture_is_current() {
    let mut c = Command::new("python3");
    c.arg("tools/session.py").arg("--check").env("BIN", env!("CARGO_BIN_EXE_ckpt-lint")).current_dir(root());
    // Only whoever draws it needs Python.
    let Ok(o) = c.output() else { return };
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
}

#[test]
fn a_family_explains_itself() {
    let out = ran(root(), &["explain", "tie"]).out;
    assert!(out.lines().count() > 3 && out.lines().all(|l| l.starts_with("tie-")), "{out}");
}

/// On a terminal, which `script` plays.
#[cfg(target_os = "linux")]
mod terminal {
    use super::*;

    /// What the program prints on a terminal of so many columns and rows.
    fn on(columns: usize, rows: usize, args: &str, variables: &[(&str, &str)]) -> String {
        let program = env!("CARGO_BIN_EXE_ckpt-lint");
        let mut c = Command::new("script");
        for name in VARIABLES {
            c.env_remove(name);
        }
        c.env("TERM", "xterm-256color").envs(variables.iter().copied()).current_dir(root()).stdin(Stdio::null());
        c.args(["-qec", &format!("stty cols {columns} rows {rows}; {program} {args}"), "/dev/null"]);
        let o = c.output().unwrap();
        String::from_utf8(o.stdout).unwrap().replace("\r\n", "\n")
    }

    fn plain(text: &str) -> String {
        let mut out = String::new();
        let mut parts = text.split('\u{1b}');
        out.push_str(parts.next().unwrap());
        for part in parts {
            out.push_str(part.split_once('m').map_or(part, |p| p.1));
        }
        out
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in [60, 80, 120] {
            let text = on(columns, 50, &format!("examples {} -v", "tests/../examples"), &[]);
            assert!(text.contains('\u{1b}'), "colours: {text}");
            for line in plain(&text).lines() {
                // A name is never broken: it is there to be copied.
                let inside = line.trim_start_matches([' ', '·', '│', '╰', '─']);
                let one = inside.split_whitespace().count() < 2;
                assert!(one || line.chars().count() <= columns, "{columns}: {line}");
            }
        }
        let bare = on(80, 50, BROKEN, &[("NO_COLOR", "1"), ("FORCE_HYPERLINK", "1")]);
        assert!(!bare.contains('\u{1b}') && bare.contains(" ms"), "{bare}");
        let linked = on(80, 50, BROKEN, &[("FORCE_HYPERLINK", "1")]);
        assert_eq!(linked.matches("\u{1b}]8;;https://").count(), 1, "{linked}");
    }

    #[test]
    fn a_page_that_is_too_long_goes_to_the_pager() {
        let page = "explain quant-unlisted-linear";
        let counted = |rows, pager| on(80, rows, page, &[("CKPT_LINT_PAGER", pager), ("PAGER", "false")]);
        let lines: usize = counted(10, "wc -l").trim().parse().unwrap();
        assert!(lines > 20, "{lines}");
        for (rows, pager) in [(200, "wc -l"), (10, "no-such-pager -x"), (10, ""), (10, "cat")] {
            let text = counted(rows, pager);
            assert!(text.starts_with("# quant-unlisted-linear\n") && text.lines().count() == lines, "{pager}: {text}");
        }
        assert_eq!(on(80, 10, page, &[("PAGER", "wc -l")]).trim(), lines.to_string());
        // Read to the first line and closed.
        assert_eq!(on(80, 10, page, &[("PAGER", "head -n 1")]), "# quant-unlisted-linear\n");
    }
}
