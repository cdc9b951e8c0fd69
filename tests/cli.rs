//! The program from outside: exit codes, streams, formats.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

#[path = "support/case.rs"]
#[allow(dead_code, reason = "shared between test binaries")]
mod case;
#[path = "support/schema.rs"]
mod schema;

use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn command(args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_ckpt-lint"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "GITHUB_ACTIONS", "GITHUB_WORKSPACE", "COLUMNS"] {
        c.env_remove(name);
    }
    c.current_dir(env!("CARGO_MANIFEST_DIR")).args(args);
    c
}

fn ran(args: &[&str]) -> Ran {
    let o = command(args).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    Ran { code: o.status.code().unwrap(), out: text(o.stdout), err: text(o.stderr) }
}

const BROKEN: &str = "examples/unlisted-linear/broken";
const MENDED: &str = "examples/unlisted-linear/mended";

fn made(id: &str) -> (tempfile::TempDir, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/conformance/cases/{id}.json"));
    let dir = tempfile::tempdir().unwrap();
    case::read(&path).materialize(dir.path());
    let text = dir.path().display().to_string();
    (dir, text)
}

#[test]
fn exit_codes() {
    assert_eq!(ran(&[MENDED]).code, 0);
    assert_eq!(ran(&[BROKEN]).code, 1);
    assert_eq!(ran(&["check", BROKEN, "--fail-on", "never"]).code, 0);
    assert_eq!(ran(&[BROKEN, "--ignore", "quant"]).code, 0);
    assert_eq!(ran(&[BROKEN, "--format", "json"]).code, 1, "no format changes the exit code");
    for bad in [
        &["nowhere/at/all"][..],
        &["src"],
        &[],
        &[BROKEN, "--vllm", "0.1"],
        &[BROKEN, "--select", "quant-unlisted-linaer"],
        &[BROKEN, "--format", "text", "--format", "json"],
        &[BROKEN, "--format", "json=no/such/folder/x.json"],
        &[BROKEN, "--no-such-flag"],
    ] {
        let r = ran(bad);
        assert_eq!(r.code, 2, "{bad:?}");
        assert!(!r.err.is_empty(), "{bad:?} says why");
    }
}

#[test]
fn a_version_is_chosen() {
    let unknown = ran(&[MENDED, "--vllm", "0.3"]);
    assert_eq!(unknown.code, 2);
    let (_, known) = unknown.err.trim_end().split_once("there are no facts for vLLM 0.3; there are for ").unwrap();
    assert!(known.ends_with("0.32"), "the newest is the last: {known}");
    for version in known.split(", ") {
        for asked in [version, &format!("{version}.1")] {
            let last = format!("vLLM {version} would load this checkpoint");
            assert!(ran(&[MENDED, "--vllm", asked]).out.trim_end().ends_with(&last), "{asked}");
        }
    }
}

#[test]
fn mistrals_own_config_is_not_judged_by_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(MENDED);
    fs::copy(from.join("config.json"), dir.path().join("config.json")).unwrap();
    fs::copy(from.join("model.safetensors"), dir.path().join("consolidated.safetensors")).unwrap();
    let verdict = || ran(&[dir.path().to_str().unwrap()]).out.trim_end().lines().last().unwrap().to_owned();
    assert!(verdict().ends_with("would load this checkpoint"), "{}", verdict());
    fs::create_dir(dir.path().join("original")).unwrap();
    fs::write(dir.path().join("original/params.json"), "{}").unwrap();
    assert!(verdict().ends_with("would load this checkpoint"), "{}", verdict());
    fs::write(dir.path().join("params.json"), "{}").unwrap();
    assert!(verdict().contains("unknown: params.json"), "{}", verdict());
    fs::remove_file(dir.path().join("config.json")).unwrap();
    assert!(verdict().contains("unknown: params.json"), "{}", verdict());
}

#[test]
fn pasting_the_help_mends_it() {
    let r = ran(&[BROKEN, "--format", "json"]);
    let report: Value = serde_json::from_str(&r.out).unwrap();
    let fix = &report["checkpoints"][0]["findings"][0]["fix"];
    assert_eq!(fix["action"], "append");
    let dir = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors"] {
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(BROKEN).join(file), dir.path().join(file)).unwrap();
    }
    let config = dir.path().join("config.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    let list = value.pointer_mut(fix["pointer"].as_str().unwrap()).unwrap().as_array_mut().unwrap();
    list.extend(fix["entries"].as_array().unwrap().iter().cloned());
    fs::write(&config, value.to_string()).unwrap();
    let r = ran(&[&dir.path().display().to_string()]);
    assert_eq!(r.code, 0, "{}", r.out);
    assert!(r.out.trim_end().ends_with("vLLM 0.32 would load this checkpoint"), "{}", r.out);
}

#[test]
fn json_has_the_documented_shape() {
    let text = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/report.schema.json")).unwrap();
    let schema: Value = serde_json::from_slice(&text).unwrap();
    let (_a, one) = made("llama-igsyn-ghost");
    let (_b, two) = made("gemma4uni-untied-nohead");
    let (_c, three) = made("llama-qc-nomethod");
    let r = ran(&[BROKEN, MENDED, &one, &two, &three, "--format", "json"]);
    let report: Value = serde_json::from_str(&r.out).unwrap();
    schema::check(&schema, &schema, &report, "");
    assert_eq!(report["version"], 1);
    let classes: Vec<_> = report["checkpoints"].as_array().unwrap().iter().map(|c| &c["verdict"]["class"]).collect();
    assert_eq!(classes, ["refuses", "loads", "loads", "damages", "refuses"]);
    let finding = &report["checkpoints"][0]["findings"][0];
    assert_eq!(finding["vllm_message"]["text"], report["checkpoints"][0]["verdict"]["message"]);
    assert_eq!(finding["position"]["file"], "config.json");
}

#[test]
fn errors_of_the_run_are_in_the_json_too() {
    let r = ran(&["nowhere/at/all", "--format", "json"]);
    let report: Value = serde_json::from_str(&r.out).unwrap();
    assert!(report["errors"][0]["message"].as_str().unwrap().contains("nowhere/at/all"));
    assert!(r.err.starts_with("ckpt-lint: "));
}

#[test]
fn several_formats_in_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let file: PathBuf = dir.path().join("report.json");
    let r = ran(&[BROKEN, "--format", "text", "--format", &format!("json={}", file.display())]);
    assert!(r.out.contains("would refuse"));
    let report: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(report["checkpoints"][0]["path"], BROKEN);
}

#[test]
fn same_bytes_in_same_report_out() {
    for format in ["text", "json"] {
        let args = ["examples", "--format", format];
        assert_eq!(ran(&args).out, ran(&args).out);
    }
    assert!(ran(&[BROKEN, "-v"]).out.contains(" ms"), "-v says how long it took, and nothing else does");
    assert!(!ran(&[BROKEN]).out.contains(" ms"));
}

#[test]
fn a_tree_of_many_ends_with_one_line() {
    let out = ran(&["examples"]).out;
    assert!(out.trim_end().ends_with("3 checkpoints: 1 refused, 2 load · 1 error"), "{out}");
}

#[test]
fn colour_only_where_it_is_wanted() {
    let esc = '\u{1b}';
    assert!(!ran(&[BROKEN]).out.contains(esc));
    assert!(ran(&[BROKEN, "--color", "always"]).out.contains(esc));
    assert!(!ran(&[BROKEN, "--color", "never"]).out.contains(esc));
    let forced = command(&[BROKEN]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(forced.stdout.contains(&0x1b));
    let both = command(&[BROKEN]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap();
    assert!(!both.stdout.contains(&0x1b));
}

#[test]
fn names_of_strangers_cannot_steer_the_terminal() {
    let (dir, path) = made("llama-extra-top");
    let shard = dir.path().join("model.safetensors");
    let bytes = fs::read(&shard).unwrap();
    let text = String::from_utf8_lossy(&bytes[8..]).replace("optimizer.step", "opt\\u001b[2Jstep");
    let end = text.rfind("}}").unwrap() + 2;
    let mut out = (end as u64).to_le_bytes().to_vec();
    out.extend_from_slice(&text.as_bytes()[..end]);
    let data = bytes.len() - 8 - usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    out.resize(out.len() + data, 0);
    fs::write(&shard, out).unwrap();
    let r = ran(&[&path]);
    assert!(r.out.contains("[2Jstep") && !r.out.contains('\u{1b}'), "{}", r.out);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child =
        command(&["rules", "--format", "json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(err.is_empty(), "{err}");
}

#[test]
fn rules_and_pages() {
    let list = ran(&["rules"]).out;
    assert!(list.contains("quant-unlisted-linear"));
    let json: Value = serde_json::from_str(&ran(&["rules", "--format", "json"]).out).unwrap();
    assert_eq!(json.as_array().unwrap().len(), list.lines().count());
    assert!(ran(&["explain", "quant-unlisted-linear"]).out.starts_with("# quant-unlisted-linear"));
    let r = ran(&["explain", "unlisted-linear"]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("did you mean `quant-unlisted-linear`?"), "{}", r.err);
}

#[test]
fn missing_weights_are_a_note_until_they_are_required() {
    let (_dir, path) = made("llama-files-lfs-all");
    assert_eq!(ran(&[&path, "--fail-on", "warning"]).code, 0);
    assert_eq!(ran(&[&path, "--fail-on", "note"]).code, 1);
    assert_eq!(ran(&[&path, "--require-weights"]).code, 1);
    assert!(!ran(&[&path, "-q"]).out.contains("files-weights-absent"), "-q hides notes");
}

#[test]
fn what_changes_the_verdict() {
    let (_dir, path) = made("llama-files-consolidated-sub");
    assert_eq!(ran(&[&path]).code, 1);
    assert_eq!(ran(&[&path, "--load-format", "hf"]).code, 0);
}

#[test]
fn a_closed_pipe_is_no_pass() {
    let (_dir, path) = made("llama-unlisted-up0");
    let mut child = command(&[&path, "--format", "json"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn an_ignore_means_the_same_however_the_path_is_typed() {
    let work = tempfile::tempdir().unwrap();
    fs::create_dir_all(work.path().join(".git")).unwrap();
    let model = work.path().join("models/known");
    fs::create_dir_all(&model).unwrap();
    let (from, _) = made("llama-unlisted-up0");
    for file in fs::read_dir(from.path()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), model.join(file.file_name())).unwrap();
    }
    let text = "[[ignore]]\nrule = \"quant\"\npath = \"models/known\"\nreason = \"a test\"\n";
    fs::write(work.path().join("ckpt-lint.toml"), text).unwrap();
    let whole = model.display().to_string();
    for (dir, arg) in [("", "."), ("", "models"), ("", "./models/known/"), ("models", "known"), ("", &whole)] {
        let r = ran_in(&work.path().join(dir), &[arg]);
        assert!(r.code == 0 && !r.err.contains("matches nothing"), "{dir} {arg}: {}{}", r.out, r.err);
        assert!(!r.out.contains("./models"), "{arg}: {}", r.out);
    }
    let r = ran_in(work.path(), &["models", "--select", "tie"]);
    assert!(!r.err.contains("matches nothing"), "its rules did not run: {}", r.err);
    assert_eq!(ran_in(work.path(), &["--show-settings"]).code, 0);
}

/// Runs in a folder of its own, where settings may lie.
fn ran_in(dir: &Path, args: &[&str]) -> Ran {
    let o = command(args).current_dir(dir).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    Ran { code: o.status.code().unwrap(), out: text(o.stdout), err: text(o.stderr) }
}

#[test]
fn settings_ignore_with_a_reason_and_belong_to_where_one_works() {
    let (model, _) = made("llama-unlisted-up0");
    let work = tempfile::tempdir().unwrap();
    fs::create_dir(work.path().join(".git")).unwrap();
    let deep = work.path().join("a/b");
    fs::create_dir_all(&deep).unwrap();
    let model_path = model.path().display().to_string();
    assert_eq!(ran_in(&deep, &[&model_path]).code, 1);

    let toml = work.path().join("ckpt-lint.toml");
    fs::write(
        &toml,
        "[[ignore]]\nrule = \"quant\"\nreason = \"a test\"\n[[ignore]]\nrule = \"tie\"\nreason = \"gone\"\n",
    )
    .unwrap();
    let r = ran_in(&deep, &[&model_path]);
    assert_eq!(r.code, 0, "{}", r.out);
    assert!(r.out.contains("1 ignored") && r.out.contains("would refuse it"), "{}", r.out);
    assert!(r.err.contains("[[ignore]] 2 (`tie`) matches nothing any more"), "{}", r.err);
    // A hook names files: an ignore may be for a checkpoint that the commit does not touch.
    let r = ran_in(&deep, &[&format!("{model_path}/config.json")]);
    assert!(r.code == 0 && !r.err.contains("matches nothing"), "{}", r.err);
    let json: Value = serde_json::from_str(&ran_in(&deep, &[&model_path, "--format", "json"]).out).unwrap();
    assert_eq!(json["checkpoints"][0]["ignored"][0]["reason"], "a test");
    assert_eq!(ran_in(&deep, &[&model_path, "--no-config"]).code, 1);
    let shown = ran_in(&deep, &["x", "--show-settings"]);
    assert!(
        shown.code == 0 && shown.out.contains("ckpt-lint.toml") && shown.out.contains("reason = \"a test\""),
        "{}",
        shown.out
    );

    for (text, said) in [
        ("fail_on = \"error\"", "did you mean `fail-on`?"),
        ("[[ignore]]\nrule = \"quant-unlisted-linaer\"\nreason = \"x\"", "did you mean `quant-unlisted-linear`?"),
        ("vllm = \"0.1\"", "there are no facts for vLLM 0.1"),
    ] {
        fs::write(&toml, text).unwrap();
        let r = ran_in(&deep, &[&model_path]);
        assert!(r.code == 2 && r.err.contains(said), "{text}: {} {}", r.code, r.err);
    }
    fs::remove_file(&toml).unwrap();

    // A checkpoint never brings its own judge.
    fs::write(model.path().join("ckpt-lint.toml"), "fail-on = \"never\"").unwrap();
    assert_eq!(ran_in(&deep, &[&model_path]).code, 1);
    // Nothing above the repository counts.
    fs::write(work.path().join("ckpt-lint.toml"), "fail-on = \"never\"").unwrap();
    fs::create_dir(work.path().join("a/.git")).unwrap();
    assert_eq!(ran_in(&deep, &[&model_path]).code, 1);
}

#[test]
fn completions_and_the_man_page() {
    for (shell, word) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef ckpt-lint"),
        ("fish", "complete -c ckpt-lint"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let r = ran(&["completions", shell]);
        assert!(r.code == 0 && r.out.contains(word) && r.out.contains("fail-on"), "{shell}: {}", r.out);
    }
    let man = ran(&["man"]);
    assert!(
        man.code == 0 && man.out.contains(".TH ckpt-lint") && man.out.contains("language\\-model\\-only"),
        "{}",
        man.out
    );
    // The script is one that the shell takes.
    let mut bash = Command::new("bash").args(["-n"]).stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(bash.stdin.as_mut().unwrap(), ran(&["completions", "bash"]).out.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success());
}
