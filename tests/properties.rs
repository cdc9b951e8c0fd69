//! Bytes mutated at random: whatever is in a checkpoint, a run ends with one of its exit codes, in bounded time and
//! memory, and says of a header what the safetensors crate says.
//!
//! `PROPERTY_RUNS=100000 PROPERTY_SEED=7 cargo test --test properties` runs longer and elsewhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/case.rs"]
#[allow(dead_code, reason = "shared between test binaries")]
mod case;

use ckpt_lint::cli::Cli;
use ckpt_lint::run::run;
use fastrand::Rng;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Over all three kinds of file.
const RUNS: u64 = 10_000;
/// A run of ten thousand takes seconds; this is for what never ends.
const HANG: Duration = Duration::from_secs(600);
/// Address space of the whole test in KiB: a length in a file that is believed would need more.
const MEMORY: u64 = 4 << 20;

/// Pieces that mean something to the readers of these files.
const WORDS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b",",
    b":",
    b"null",
    b"true",
    b"NaN",
    b"-1",
    b"0",
    b"1e400",
    b"18446744073709551616",
    b"9223372036854775807",
    b"4294967296",
    b"\\ud800",
    b"\xff",
    b"\0",
    b"..",
    b"/",
    b"re:(",
    b"re:(a+)+$",
    b"F8_E4M3",
    b"I32",
    b"data_offsets",
    b"shape",
    b"weight_map",
    b"\n",
    b" ",
];

/// Changes a few places, most of them in the first `head` bytes: behind a header there are only weights.
fn mutate(bytes: &mut Vec<u8>, head: usize, rng: &mut Rng) {
    for _ in 0..rng.usize(1..5) {
        let n = if rng.u8(0..10) == 0 { bytes.len() } else { bytes.len().min(head) };
        let at = rng.usize(0..=n);
        let some = rng.usize(0..24).min(n - at);
        match rng.u8(0..8) {
            0 if at < n => bytes[at] ^= 1 << rng.u8(0..8),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..at + some)),
            3 => {
                let piece = bytes[at..at + some].to_vec();
                let to = rng.usize(0..=n);
                bytes.splice(to..to, piece);
            }
            4 => {
                let deep = rng.choice([&b"["[..], b"{\"a\":"]).unwrap().repeat(rng.usize(1..3000));
                bytes.splice(at..at, deep);
            }
            5 => {
                // A number becomes another one.
                if let Some(d) = (at..n).find(|i| bytes[*i].is_ascii_digit()) {
                    let end = (d..n).find(|i| !bytes[*i].is_ascii_digit()).unwrap_or(n);
                    let new = match rng.u8(0..4) {
                        0 => b"0".to_vec(),
                        1 => rng.u64(..).to_string().into_bytes(),
                        2 => b"-7".to_vec(),
                        _ => rng.u16(..).to_string().into_bytes(),
                    };
                    bytes.splice(d..end, new);
                }
            }
            _ => {
                let word = WORDS[rng.usize(0..WORDS.len())];
                let over = if rng.bool() { word.len().min(n - at) } else { 0 };
                bytes.splice(at..at + over, word.iter().copied());
            }
        }
    }
}

/// Findings of a run over a folder, by rule.
fn lint(dir: &Path) -> Vec<String> {
    let cli = Cli::from_args(["ckpt-lint", "--format", "json"].map(Into::into).into_iter().chain([dir.into()]))
        .unwrap_or_else(|_| panic!("bad arguments"));
    let mut out = Vec::new();
    let done = run(cli, &mut out, &mut std::io::sink()).unwrap_or_else(|e| panic!("{e:?}"));
    assert!((0..=2).contains(&(done.exit as u8)));
    let report: Value = serde_json::from_slice(&out).unwrap();
    report["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|c| c["findings"].as_array().unwrap())
        .map(|f| f["rule"].as_str().unwrap().to_owned())
        .collect()
}

struct Target {
    case: &'static str,
    file: &'static str,
    /// Of the runs.
    share: u64,
}

const TARGETS: [Target; 6] = [
    Target { case: "llama-base-sharded-w4a16", file: "model-00001-of-00003.safetensors", share: 40 },
    Target { case: "llama-base-sharded-w4a16", file: "model.safetensors.index.json", share: 20 },
    Target { case: "llama-base-sharded-w4a16", file: "config.json", share: 10 },
    Target { case: "gemma4mm-base-w4a16", file: "config.json", share: 10 },
    Target { case: "qwen25vl-wide-w4", file: "config.json", share: 10 },
    Target { case: "deepseekv3-wide-fp8", file: "config.json", share: 10 },
];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |n| n.parse().unwrap())
}

/// The test itself, in a process of its own with little memory.
#[test]
#[ignore = "started by `mutated_checkpoints`"]
fn child() {
    let (runs, seed) = (number("PROPERTY_RUNS", RUNS), number("PROPERTY_SEED", 1));
    let (half, of) = (number("PROPERTY_PART", 0), 2);
    let log =
        std::env::var_os("PROPERTY_LOG").map_or_else(|| std::env::temp_dir().join("ckpt-lint-property"), Into::into);
    for (i, target) in TARGETS.iter().enumerate() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/cases");
        let dir = tempfile::tempdir().unwrap();
        case::read(&root.join(format!("{}.json", target.case))).materialize(dir.path());
        let path = dir.path().join(target.file);
        let good = fs::read(&path).unwrap();
        let header = target.file.ends_with(".safetensors");
        let head = if header { 8 + u64::from_le_bytes(*good.first_chunk().unwrap()) as usize } else { good.len() };
        for n in (0..runs * target.share / 100).filter(|n| n % of == half) {
            let mut rng = Rng::with_seed(seed << 40 | (i as u64) << 32 | n);
            let mut bytes = good.clone();
            mutate(&mut bytes, head, &mut rng);
            fs::write(&path, &bytes).unwrap();
            let what = format!("{} of {}, seed {seed}, run {n}", target.file, target.case);
            // An abort says nothing of where it was.
            fs::write(&log, &what).unwrap();
            // On a panic, the harness prints what this thread was at.
            std::thread::Builder::new()
                .name(what.clone())
                .stack_size(2 << 20)
                .spawn({
                    let dir = dir.path().to_owned();
                    move || {
                        let rules = lint(&dir);
                        if header {
                            let fires = rules.iter().any(|r| r == "header-broken" || r == "files-lfs-pointer");
                            let refuses = safetensors::SafeTensors::deserialize(&bytes).is_err();
                            assert_eq!(refuses, fires, "safetensors and the header rules disagree: {rules:?}");
                        }
                    }
                })
                .unwrap()
                .join()
                .unwrap_or_else(|_| panic!("{what}"));
        }
    }
}

#[test]
fn mutated_checkpoints() {
    let logs = tempfile::tempdir().unwrap();
    let start = |part: &str| {
        let me = std::env::current_exe().unwrap();
        let args = ["child", "--exact", "--ignored", "--nocapture"];
        let mut c = if cfg!(unix) {
            let mut c = Command::new("sh");
            c.arg("-c").arg(format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")).arg(me);
            c
        } else {
            Command::new(me)
        };
        c.args(args)
            .env("PROPERTY_PART", part)
            .env("PROPERTY_LOG", logs.path().join(part))
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut parts = ["0", "1"].map(start);
    let began = Instant::now();
    for (i, part) in parts.iter_mut().enumerate() {
        let at = || fs::read_to_string(logs.path().join(i.to_string())).unwrap_or_default();
        loop {
            if let Some(status) = part.try_wait().unwrap() {
                assert!(status.success(), "{status} at {}", at());
                break;
            }
            if began.elapsed() > HANG {
                let _ = part.kill();
                panic!("does not end: {}", at());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
