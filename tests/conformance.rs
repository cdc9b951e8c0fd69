//! Our verdicts against the recorded ones of the real vLLM.
//!
//! `CONFORMANCE=all cargo test --test conformance -- --nocapture` prints every disagreement, `CONFORMANCE=TEXT` those of cases
//! with TEXT in their name; with `CONFORMANCE_CASES=FOLDER`, of cases that lie elsewhere. The agreement by architecture and
//! method is docs/conformance.md; `UPDATE=1` writes it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

#[path = "support/case.rs"]
#[allow(dead_code, reason = "shared between test binaries")]
mod case;

use case::Case;
use ckpt_lint::checkpoint::Checkpoint;
use ckpt_lint::source::LocalSource;
use ckpt_lint::vllm::trace::{Class, Effect, Kind};
use ckpt_lint::vllm::{Plan, Target};
use serde_json::Value;
use std::collections::BTreeMap;

struct Ours {
    class: &'static str,
    stage: String,
    message: String,
    error_type: String,
    blame: String,
    unknown: Vec<String>,
    loud: Vec<String>,
}

fn plan(case: &Case, vllm: &str) -> Plan {
    let dir = tempfile::tempdir().unwrap();
    case.materialize(dir.path());
    let source = LocalSource::open(dir.path()).unwrap();
    let checkpoint = Checkpoint::read(&source, "case").unwrap();
    let mut target = Target { vllm: vllm.into(), ..Target::default() };
    if let Some(args) = case.json.get("args").and_then(Value::as_object) {
        if let Some(q) = args.get("quantization").and_then(Value::as_str) {
            target.quantization = Some(q.into());
        }
        if let Some(f) = args.get("load_format").and_then(Value::as_str) {
            target.load_format = f.into();
        }
        target.language_model_only = args.get("language_model_only") == Some(&Value::Bool(true));
        target.trust_remote_code = args.get("trust_remote_code") == Some(&Value::Bool(true));
    }
    Plan::of(&checkpoint, &target)
}

fn ours(case: &Case, vllm: &str) -> Ours {
    let plan = plan(case, vllm);
    let first = plan.trace.first_refusal();
    let error = first.and_then(|e| e.error.clone());
    Ours {
        class: match plan.trace.class() {
            Class::Loads => "loads",
            Class::Refuses => "refuses",
            Class::Damages => "damages",
            Class::Unknown => "unknown",
        },
        stage: first.map(|e| format!("{:?}", e.stage).to_lowercase()).unwrap_or_default(),
        message: error.as_ref().map(|e| e.text.clone()).unwrap_or_default(),
        error_type: error.map(|e| e.error_type).unwrap_or_default(),
        blame: first.and_then(|e| e.in_hand.clone().or_else(|| e.tensor.clone())).unwrap_or_default(),
        unknown: plan.trace.of(Kind::Unknown).map(|e| e.detail.clone()).collect(),
        loud: plan
            .trace
            .events
            .iter()
            .filter(|e| e.effect != Effect::Keeps)
            .map(|e| format!("{:?} {:?} {:?} {}", e.kind, e.tensor, e.module, e.detail))
            .collect(),
    }
}

fn share(rows: &[(String, bool)]) -> f64 {
    let mut by: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (key, ok) in rows {
        let e = by.entry(key).or_default();
        e.0 += usize::from(*ok);
        e.1 += 1;
    }
    100.0 * by.values().map(|(a, b)| *a as f64 / *b as f64).sum::<f64>() / by.len().max(1) as f64
}

/// What became of one case with one release of vLLM.
struct Row {
    /// Minor version.
    vllm: String,
    family: String,
    arch: String,
    method: String,
    /// Class agrees.
    class: bool,
    /// Message, error type and blame agree; none where vLLM does not refuse.
    words: Option<bool>,
    unknown: bool,
    /// A good one that we would not let pass.
    alarm: Option<String>,
    wrong: Option<String>,
}

/// The recorded verdicts of releases that there are facts for: `oracle` is the newest one's, `oracle-0.30` another's.
fn verdicts(case: &Case) -> impl Iterator<Item = (String, &Value)> {
    let recorded =
        case.json.as_object().unwrap().iter().filter(|(k, v)| k.starts_with("oracle") && v["class"].is_string());
    recorded.filter_map(|(_, v)| Some((ckpt_lint::facts::version(v["vllm"].as_str()?)?.to_owned(), v)))
}

fn judge(case: &Case, vllm: String, oracle: &Value) -> Row {
    let o = ours(case, &vllm);
    let text = |p: &str| oracle.pointer(p).and_then(Value::as_str).unwrap_or_default().to_owned();
    let want = text("/class");
    let class = o.class == want;
    let words = (want == "refuses").then(|| {
        same_text(&o.message, &text("/message"))
            && o.error_type == text("/error_type")
            && (text("/blame/tensor").is_empty() || o.blame == text("/blame/tensor"))
    });
    let wrong = if !class {
        Some(format!(
            "{}: class\n   vLLM {vllm} {want} {} {} {} {}\n   ours {} {} {} {} {:?} {:?}",
            case.id,
            text("/stage"),
            text("/error_type"),
            cut(&text("/message")),
            oracle.pointer("/damage").map(|d| cut(&d.to_string())).unwrap_or_default(),
            o.class,
            o.stage,
            o.error_type,
            cut(&o.message),
            o.unknown,
            o.loud.iter().take(4).collect::<Vec<_>>()
        ))
    } else if words == Some(false) {
        Some(format!(
            "{}: words\n   vLLM {vllm} {} {} | {} | {}\n   ours {} {} | {} | {}",
            case.id,
            text("/stage"),
            text("/error_type"),
            cut(&text("/message")),
            text("/blame/tensor"),
            o.stage,
            o.error_type,
            cut(&o.message),
            o.blame
        ))
    } else {
        None
    };
    Row {
        method: method(case, oracle, &vllm),
        vllm,
        family: case.family.clone(),
        arch: case.arch.clone(),
        class,
        words,
        unknown: o.class == "unknown",
        alarm: (case.good && o.class != "loads" && (want == "loads" || o.class != want)).then(|| case.id.clone()),
        wrong,
    }
}

/// The quantization method as vLLM resolved it, else as the files name it; `none` for what is no method of vLLM's.
fn method(case: &Case, oracle: &Value, vllm: &str) -> String {
    let config =
        |p: &str| case.json.pointer(&format!("/files/config.json{p}/quantization_config/quant_method"))?.as_str();
    let named = ["", "/text_config"].iter().find_map(|p| config(p));
    let name = oracle["quantization"].as_str().or(named).unwrap_or("none").to_lowercase();
    let registry = ckpt_lint::facts::registry(vllm).unwrap();
    match name.as_str() {
        "gptq" | "gptq_marlin" => "auto_gptq".into(),
        "awq" | "awq_marlin" => "auto_awq".into(),
        "auto-round" => "inc".into(),
        "compressed_tensors" => "compressed-tensors".into(),
        n if registry.quant_methods.iter().any(|m| m == n) => name,
        _ => "none".into(),
    }
}

#[test]
fn verdicts_agree_with_the_real_vllm() {
    let only = std::env::var("CONFORMANCE").unwrap_or_default();
    let elsewhere = std::env::var_os("CONFORMANCE_CASES").is_some();
    let wanted = |c: &&Case| only.is_empty() || only == "all" || c.id.contains(&only);
    let all = case::all();
    let cases: Vec<_> = all.iter().filter(wanted).flat_map(|c| verdicts(c).map(move |(v, o)| (c, v, o))).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let rows: Vec<Row> = std::thread::scope(|scope| {
        let judge = |(c, v, o): &(&Case, String, &Value)| judge(c, v.clone(), o);
        let cases = &cases;
        let part = move |n: usize| cases.iter().skip(n).step_by(workers).map(judge).collect::<Vec<Row>>();
        let threads: Vec<_> = (0..workers).map(|n| scope.spawn(move || part(n))).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let mut wrong: Vec<&str> = rows.iter().filter_map(|r| r.wrong.as_deref()).collect();
    wrong.sort_unstable();
    let wrong = wrong.join("\n");
    let versions = ckpt_lint::facts::versions().into_iter().rev();
    let shares: Vec<_> = versions.map(|v| Shares::of(v, rows.iter().filter(|r| r.vllm == v).collect())).collect();
    if !only.is_empty() || elsewhere {
        println!("{wrong}");
        shares.iter().for_each(|s| println!("{} {:?}", s.summary(), s.alarms));
        return;
    }
    for s in &shares {
        println!("{}", s.summary());
        assert!(s.alarms.is_empty(), "good checkpoints flagged: {:?}", s.alarms);
        assert!(s.class.iter().all(|c| *c >= if s.newest { 98.0 } else { 95.0 }), "{}\n{wrong}", s.summary());
        assert!(s.words >= 90.0, "{}\n{wrong}", s.summary());
        assert!(!s.newest || s.unknown * 50 <= s.rows.len(), "{}\n{wrong}", s.summary());
    }
    published(&matrix(&shares));
}

/// The agreement with one release.
struct Shares<'r> {
    vllm: &'static str,
    newest: bool,
    rows: Vec<&'r Row>,
    /// By family, by architecture, by method.
    class: [f64; 3],
    words: f64,
    unknown: usize,
    alarms: Vec<&'r String>,
}

impl<'r> Shares<'r> {
    fn of(vllm: &'static str, rows: Vec<&'r Row>) -> Self {
        let newest = vllm == ckpt_lint::facts::newest();
        let by = |key: fn(&Row) -> &String, ok: fn(&Row) -> Option<bool>| {
            share(&rows.iter().filter_map(|r| Some((key(r).clone(), ok(r)?))).collect::<Vec<_>>())
        };
        let keys = [(|r| &r.family) as fn(&Row) -> &String, |r| &r.arch, |r| &r.method];
        // An older release lacks facts of its own for some classes, and says so.
        let known: fn(&Row) -> Option<bool> =
            if newest { |r| Some(r.class) } else { |r| (!r.unknown).then_some(r.class) };
        let said: fn(&Row) -> Option<bool> = if newest { |r| r.words } else { |r| r.words.filter(|_| !r.unknown) };
        Shares {
            vllm,
            newest,
            class: keys.map(|key| by(key, known)),
            words: by(|r| &r.family, said),
            unknown: rows.iter().filter(|r| r.unknown).count(),
            alarms: rows.iter().filter(|r| newest || !r.unknown).filter_map(|r| r.alarm.as_ref()).collect(),
            rows,
        }
    }

    fn summary(&self) -> String {
        let [family, arch, method] = self.class;
        format!(
            "vLLM {}: {} cases: class {family:.1} % by family, {arch:.1} % by architecture, {method:.1} % by method; words {:.1} % of refusals; \
             {} unknown; {} good ones flagged",
            self.vllm,
            self.rows.len(),
            self.words,
            self.unknown,
            self.alarms.len()
        )
    }
}

/// Agreement by release, and by architecture and method.
fn matrix(shares: &[Shares<'_>]) -> String {
    let mut out = String::from(
        "# Agreement with the real vLLM\n\nWritten by `UPDATE=1 cargo test --test conformance`, which compares every case of [tests/conformance](../tests/conformance/README.md) with the recorded verdicts.\n\n",
    );
    for s in shares {
        out.push_str(&format!("* {}.\n", s.summary()));
    }
    out.push_str(
        "\nPercentages are means over families, architectures or methods. With the newest release `unknown` counts as disagreement; an older one is \
         judged on a sample, and on what there are facts for.\n\n",
    );
    for s in shares {
        out.push_str(&format!("## vLLM {}\n\n", s.vllm));
        let mut table = |title: &str, key: fn(&Row) -> String| {
            let mut groups: BTreeMap<String, (usize, usize, usize, usize)> = BTreeMap::new();
            for r in &s.rows {
                let g = groups.entry(key(r)).or_default();
                g.0 += 1;
                g.1 += usize::from(r.class);
                g.2 += usize::from(r.words.is_some());
                g.3 += usize::from(r.words == Some(true));
            }
            out.push_str(&format!("| {title} | cases | class | refusals | words |\n|---|---|---|---|---|\n"));
            for (name, (n, class, refused, words)) in groups {
                out.push_str(&format!("| {name} | {n} | {class} | {refused} | {words} |\n"));
            }
            out.push('\n');
        };
        table("method", |r| r.method.clone());
        table("family of faults", |r| r.family.clone());
        if s.newest {
            table("architecture, method", |r| format!("{}, {}", r.arch, r.method));
        } else {
            table("architecture", |r| r.arch.clone());
        }
    }
    out.trim_end().to_owned() + "\n"
}

fn published(text: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/conformance.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, text).unwrap();
    }
    let old = std::fs::read_to_string(path).unwrap_or_default();
    assert!(old == text, "docs/conformance.md is not what the cases give: UPDATE=1 cargo test --test conformance");
}

/// The recorder cuts texts of more than 3,000 characters.
fn same_text(ours: &str, recorded: &str) -> bool {
    if recorded.chars().count() >= 2990 {
        ours.starts_with(recorded.trim_end_matches('…').trim_end())
    } else {
        ours.trim() == recorded.trim()
    }
}

fn cut(s: &str) -> String {
    let s = s.replace('\n', "\\n");
    if s.len() > 260 { format!("{}…", s.chars().take(260).collect::<String>()) } else { s }
}
