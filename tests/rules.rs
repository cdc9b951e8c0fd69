//! Rules over the conformance cases: what fires, where nothing may, and what a report looks like.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

#[path = "support/case.rs"]
#[allow(dead_code, reason = "shared between test binaries")]
mod case;
#[path = "support/lint.rs"]
#[allow(dead_code, reason = "shared between test binaries")]
mod lint;

use ckpt_lint::finding::Level;
use ckpt_lint::vllm::trace::Class;
use std::collections::BTreeMap;

/// Report by rule: the simplest case that fires it.
const SHOWN: &[(&str, &str)] = &[
    ("config-bad-field", "llama-cfg-heads3"),
    ("config-base-class", "mixtral-wide-noarch"),
    ("config-draft-model", "llama-arch-draft"),
    ("config-no-architecture", "llama4-arch-none"),
    ("config-removed-architecture", "llama-arch-removed"),
    ("config-duplicate-key", "llama-config-dupkey"),
    ("config-missing", "llama-files-configmissing"),
    ("config-refused-argument", "llama-qc-arg-fp8"),
    ("config-remote-code", "internlm2-remote-noflag"),
    ("config-unknown-architecture", "llama-config-archunknown"),
    ("config-unknown-model-type", "llama-config-notype"),
    ("config-unreadable", "llama-config-bom"),
    ("files-duplicate-tensor", "llama-files-dup-same"),
    ("files-lfs-pointer", "llama-files-lfs-one"),
    ("files-no-weights", "llama-files-none"),
    ("files-stray-consolidated", "llama-files-consolidated-sub"),
    ("files-weights-absent", "llama-files-lfs-all"),
    ("header-broken", "llama-header-hole"),
    ("header-duplicate-name", "llama-header-dupkey-same"),
    ("index-escaping-path", "llama-index-path-dotdot"),
    ("index-ghost-tensor", "llama-index-ghost"),
    ("index-missing-shard", "llama-files-shardmissing"),
    ("index-stale-entry", "llama-index-omits"),
    ("index-unlisted-shard", "llama-files-both-index"),
    ("index-unusable", "llama-index-lfs"),
    ("load-cut-tensor", "gemma4-kvshared0-bf16"),
    ("load-default-buffer", "gemma4uni-missing-layerscalars"),
    ("load-dropped-tensor", "gemma4-base-bf16"),
    ("load-extra-layer", "llama-extralayer"),
    ("load-half-written", "llama-missing-k1-bf16"),
    ("load-homeless-tensor", "llama-extra-top"),
    ("load-meaning-lost-cast", "llama-packed-f32"),
    ("load-missing-layer", "llama-missing-lastlayer"),
    ("load-not-initialized", "gemma4uni-missing-qnorm"),
    ("load-shape-mismatch", "llama-shape-norm-2d"),
    ("load-unknown", "llama-files-onlybin"),
    ("load-unwritten", "llama-missing-mlpbias-bf16"),
    ("load-wrapper-prefix", "llama-files-adapter"),
    ("quant-config-rejected", "llama-qc-ignore-null"),
    ("quant-dead-ignore", "llama-igsyn-ghost"),
    ("quant-dead-target", "llama-embed-packed-tied"),
    ("quant-embedding-scheme", "llama-head-packed-untargeted"),
    ("quant-fused-mixture", "llama-disagree-q-listed"),
    ("quant-ignored-but-packed", "llama-ignpacked-down1"),
    ("quant-method-missing", "llama-qc-nomethod"),
    ("quant-one-device", "blind4-ministral3-w4afp8"),
    ("quant-packed-unexpected", "llama-qc-gone"),
    ("quant-scheme-misfit", "llama-fp8-scale1d"),
    ("quant-method-unknown", "deepseekv3-wide-method"),
    ("quant-pattern-broken", "gemma3mm-wide-targets-broken"),
    ("quant-scheme-shape", "llama-groupsize-cfg256"),
    ("quant-scheme-surplus", "llama-kv-outputscale"),
    ("quant-scheme-unsupported", "llama-qc-format-packuquantized"),
    ("quant-unlisted-linear", "llama-qc-onplain"),
    ("quant-unread-config", "llama-unread-hfquant"),
    ("serve-missing-code", "llama-serve-nocode"),
    ("serve-no-chat-template", "llama-serve-notemplate"),
    ("serve-no-processor", "qwen25vl-serve-noprocessor"),
    ("serve-no-tokenizer", "llama-serve-novocab"),
    ("serve-token-id", "llama-serve-eosoutside"),
    ("tie-duplicate-head", "llama-tie-samehead-bf16"),
    ("tie-flag-conflict", "gemma4uni-tieflag-toptrue-textfalse-nohead"),
    ("tie-headless-class", "llama-tie-suffixhead"),
    ("tie-missing-embedding", "llama-missing-embed"),
    ("tie-missing-head", "gemma4uni-untied-nohead"),
    ("tie-packed-embedding", "gemma4uni-embed-packed-tied"),
    ("tie-stray-head", "llama-tie-strayhead"),
    ("tower-foreign-config", "mmarch-qwen2_5_vlforconditionalgeneration-text"),
    ("tower-leftover-tensors", "gemma4uni-othertower"),
    ("tower-missing-tensors", "gemma4uni-configured-audio-gone-w4a16"),
    ("tower-null-config", "gemma4uni-cut-vision-clean"),
    ("tower-unexpected-tensors", "llama-leftover-vision-bf16"),
];

/// Reports of the same rules where another method gives them other words.
const METHODS: &[(&str, &str)] = &[
    ("quant-config-rejected", "llama-mo-fp8hf-mx8"),
    ("quant-ignored-but-packed", "llama-mo-fp8-within"),
    ("quant-packed-unexpected", "llama-mo-mix-unnamed"),
    ("quant-scheme-unsupported", "llama-mo-mix-mixedq"),
    ("quant-unlisted-linear", "llama-mo-fp8hf-unlisted"),
];

/// `RULES=all cargo test --test rules -- --nocapture` prints the simplest case of each rule.
#[test]
fn verdict_and_findings_agree_and_good_checkpoints_are_silent() {
    let talk = std::env::var_os("RULES").is_some();
    let mut fired: BTreeMap<&str, Vec<(usize, usize, String)>> = BTreeMap::new();
    let (mut disagree, mut loud, mut unexpected) = (Vec::new(), Vec::new(), Vec::new());
    for case in case::all() {
        let (plan, findings) = lint::lint(&case);
        let class = plan.trace.class();
        let error = findings.iter().any(|f| f.level == Level::Error);
        match class {
            Class::Refuses | Class::Damages if !error => disagree.push(format!("{}: {class:?}, no error", case.id)),
            Class::Loads if error => disagree.push(format!("{}: loads, with an error", case.id)),
            _ => {}
        }
        for f in &findings {
            fired.entry(f.rule).or_default().push((findings.len(), case.id.len(), case.id.clone()));
            if case.good && f.level >= Level::Warning {
                loud.push(format!("{}: {} {}", case.id, f.rule, f.message));
            }
        }
        for rule in &case.expect {
            if class != Class::Unknown && !findings.iter().any(|f| f.rule == rule) {
                unexpected.push(format!("{}: {rule} does not fire", case.id));
            }
        }
    }
    if talk {
        for (rule, cases) in &fired {
            println!("{rule:28} {:4}, simplest in {}", cases.len(), cases.iter().min().unwrap().2);
        }
        println!("{}", loud.join("\n"));
    }
    assert!(disagree.is_empty(), "{}", disagree.join("\n"));
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
    assert!(loud.is_empty(), "good checkpoints flagged:\n{}", loud.join("\n"));
}

/// What each rule looks like in a whole report. `CASE=llama-base` prints the reports of other cases.
#[test]
fn reports() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let cases = case::all();
    let wanted = std::env::var("CASE").ok();
    for case in cases.iter().filter(|c| wanted.as_ref().is_some_and(|w| c.id.contains(w))) {
        println!("--- {} good={}\n{}", case.id, case.good, lint::report(case, &[]).0);
    }
    for (i, (rule, id)) in SHOWN.iter().chain(METHODS).enumerate() {
        let case = cases.iter().find(|c| c.id == *id).unwrap_or_else(|| panic!("no case {id}"));
        let (text, _) = lint::report(case, &[]);
        assert!(text.contains(rule), "{id} does not fire {rule}:\n{text}");
        settings.set_description(*id);
        let name = if i < SHOWN.len() { (*rule).to_owned() } else { format!("{rule}@{id}") };
        settings.bind(|| insta::assert_snapshot!(name, text));
    }
}
