//! Our verdicts against the recorded ones of the real vLLM.
//!
//! `CONFORMANCE=all cargo test --test conformance -- --nocapture` prints every disagreement; with
//! `CONFORMANCE_CASES=FOLDER`, of cases that lie elsewhere.

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

/// Architectures whose verdicts must agree.
const ARCHITECTURES: [&str; 21] = [
    "LlamaForCausalLM",
    "Gemma4ForCausalLM",
    "Gemma4ForConditionalGeneration",
    "Gemma4UnifiedForConditionalGeneration",
    "Gemma2ForCausalLM",
    "Gemma3ForCausalLM",
    "Gemma3ForConditionalGeneration",
    "MistralForCausalLM",
    "MixtralForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "Qwen3MoeForCausalLM",
    "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Phi3ForCausalLM",
    "GraniteForCausalLM",
    "Llama4ForConditionalGeneration",
    "Llama4ForCausalLM",
    "DeepseekV3ForCausalLM",
    "GptOssForCausalLM",
    "Glm4MoeForCausalLM",
];

struct Ours {
    class: &'static str,
    stage: String,
    message: String,
    error_type: String,
    blame: String,
    unknown: Vec<String>,
    loud: Vec<String>,
}

fn plan(case: &Case) -> Plan {
    let dir = tempfile::tempdir().unwrap();
    case.materialize(dir.path());
    let source = LocalSource::open(dir.path()).unwrap();
    let checkpoint = Checkpoint::read(&source, "case").unwrap();
    let mut target = Target::default();
    if let Some(args) = case.json.get("args").and_then(Value::as_object) {
        if let Some(q) = args.get("quantization").and_then(Value::as_str) {
            target.quantization = Some(q.into());
        }
        if let Some(f) = args.get("load_format").and_then(Value::as_str) {
            target.load_format = f.into();
        }
        target.language_model_only = args.get("language_model_only") == Some(&Value::Bool(true));
    }
    Plan::of(&checkpoint, &target)
}

fn ours(case: &Case) -> Ours {
    let plan = plan(case);
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
        blame: first.and_then(|e| e.tensor.clone()).unwrap_or_default(),
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

#[test]
fn verdicts_agree_with_the_real_vllm() {
    let only = std::env::var("CONFORMANCE").unwrap_or_default();
    let mut class = Vec::new();
    let mut words = Vec::new();
    let mut class_by_arch = Vec::new();
    let mut alarms = Vec::new();
    let mut wrong = Vec::new();
    let mut unknown = 0;
    let elsewhere = std::env::var_os("CONFORMANCE_CASES").is_some();
    for case in case::all().iter().filter(|c| elsewhere || ARCHITECTURES.contains(&c.arch.as_str())) {
        if !only.is_empty() && only != "all" && !case.id.contains(&only) {
            continue;
        }
        let o = ours(case);
        let want = case.text("/oracle/class").unwrap_or("?");
        let agree = o.class == want;
        class.push((case.family.clone(), agree));
        class_by_arch.push((case.arch.clone(), agree));
        unknown += usize::from(o.class == "unknown");
        let text = |p: &str| case.text(p).unwrap_or_default().to_owned();
        if want == "refuses" {
            let same = same_text(&o.message, &text("/oracle/message"))
                && o.error_type == text("/oracle/error_type")
                && (text("/oracle/blame/tensor").is_empty() || o.blame == text("/oracle/blame/tensor"));
            words.push((case.family.clone(), same));
            if agree && !same {
                wrong.push(format!(
                    "{}: words\n   vLLM {} {} | {} | {}\n   ours {} {} | {} | {}",
                    case.id,
                    text("/oracle/stage"),
                    text("/oracle/error_type"),
                    cut(&text("/oracle/message")),
                    text("/oracle/blame/tensor"),
                    o.stage,
                    o.error_type,
                    cut(&o.message),
                    o.blame
                ));
            }
        }
        if !agree {
            wrong.push(format!(
                "{}: class\n   vLLM {want} {} {} {} {}\n   ours {} {} {} {} {:?} {:?}",
                case.id,
                text("/oracle/stage"),
                text("/oracle/error_type"),
                cut(&text("/oracle/message")),
                case.json.pointer("/oracle/damage").map(|d| cut(&d.to_string())).unwrap_or_default(),
                o.class,
                o.stage,
                o.error_type,
                cut(&o.message),
                o.unknown,
                o.loud.iter().take(4).collect::<Vec<_>>()
            ));
        }
        if case.good && o.class != "loads" {
            alarms.push(case.id.clone());
        }
    }
    let (by_family, by_arch, by_words) = (share(&class), share(&class_by_arch), share(&words));
    let summary = format!(
        "{} cases: class {by_family:.1} % by family, {by_arch:.1} % by architecture; words {by_words:.1} % of refusals; {unknown} unknown; {} good ones flagged",
        class.len(),
        alarms.len()
    );
    if !only.is_empty() {
        println!("{}\n{summary}", wrong.join("\n"));
        return;
    }
    println!("{summary}");
    assert!(alarms.is_empty(), "good checkpoints flagged: {alarms:?}");
    assert!(by_family >= 98.0 && by_arch >= 98.0, "{summary}\n{}", wrong.join("\n"));
    assert!(by_words >= 90.0 && unknown * 50 <= class.len(), "{summary}\n{}", wrong.join("\n"));
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
