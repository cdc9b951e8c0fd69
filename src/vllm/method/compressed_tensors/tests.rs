//! `recorded/*.jsonl` holds what vLLM 0.32.0 with compressed-tensors 0.17.0 itself said: each line is an input that was
//! given to the real `QuantizationArgs`, `from_config`, `validate_kv_cache_scheme`, or to a real layer (on a made-up
//! device of capability 89, or the one that the line names), with the outcome. Links in messages are `<url>`; refusals for want of a kernel are left out.

use serde_json::{Value, json};

use super::args::Args;
use super::{By, CompressedTensors};
use crate::vllm::method::{Built, Layer, Load, Offered, Param, Quantizer, py};
use crate::vllm::trace::{Kind, Raised};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn said(case: &Value) -> Option<(String, String)> {
    Some((case["raises"].as_str()?.to_owned(), case["text"].as_str()?.to_owned()))
}

fn words(raised: Raised) -> (String, String) {
    (raised.error_type, raised.text)
}

#[test]
fn arguments_as_the_library_reads_them() {
    for case in lines(include_str!("recorded/args.jsonl")) {
        match (Args::parse(&case["in"]), said(&case)) {
            (Ok(args), None) => assert_eq!(args.repr(), case["ok"].as_str().unwrap(), "{}", case["in"]),
            (Err((_, raised)), Some(said)) => assert_eq!(words(raised), said, "{}", case["in"]),
            (got, said) => panic!("{}: {got:?} against {said:?}", case["in"]),
        }
    }
}

#[test]
fn configs_as_from_config_reads_them() {
    for case in lines(include_str!("recorded/config.jsonl")) {
        match (CompressedTensors::parse(&case["in"]), said(&case)) {
            (Ok(ct), None) => {
                let repr = |a: &Option<Args>| a.as_ref().map_or("None".to_owned(), Args::repr);
                let rows = ct.targets.list().iter().map(|target| {
                    let group = &ct.groups[target.payload];
                    let format = py::repr(&group.format);
                    json!([target.written, group.weights.repr(), repr(&group.input), repr(&group.output), format])
                });
                assert_eq!(Value::from(rows.collect::<Vec<_>>()), case["ok"], "{}", case["in"]);
            }
            (Err((_, raised)), Some(said)) => assert_eq!(words(raised), said, "{}", case["in"]),
            (got, said) => panic!("{}: {got:?} against {said:?}", case["in"]),
        }
    }
}

fn layer(
    offered: Offered,
    prefix: &'static str,
    class: &'static str,
    input: u64,
    outputs: &'static [u64],
) -> Layer<'static> {
    let expert_names = ["gate_proj", "down_proj", "up_proj"];
    let row = class.starts_with("Row");
    Layer { offered, prefix, class, row, input, outputs, experts: 4, expert_names, bias: false, kv_heads: 2 }
}

fn qkv(prefix: &'static str) -> Layer<'static> {
    layer(Offered::Linear, prefix, "QKVParallelLinear", 256, &[256, 128, 128])
}

fn row(prefix: &'static str) -> Layer<'static> {
    layer(Offered::Linear, prefix, "RowParallelLinear", 512, &[256])
}

fn attention() -> Layer<'static> {
    layer(Offered::Attention, "l.attn", "Attention", 0, &[])
}

#[test]
fn kv_cache_schemes_as_vllm_validates_them() {
    for case in lines(include_str!("recorded/kv.jsonl")) {
        let mut ct = CompressedTensors::parse(&json!({"kv_cache_scheme": case["in"]})).unwrap();
        match (ct.build(&attention()), said(&case)) {
            (Built::Quantized { params, .. }, None) => {
                let per_head = case["in"]["strategy"] == "attn_head";
                assert_eq!(params[0].shape, [if per_head { 2 } else { 1 }]);
                assert!(params.iter().all(|p| p.unread));
            }
            (Built::Refused { why, raised }, Some(said)) => {
                assert_eq!((why, words(raised)), (Kind::QuantConfigRejected, said));
            }
            (got, said) => panic!("{}: {got:?} against {said:?}", case["in"]),
        }
    }
    let mla = layer(Offered::Attention, "l.attn", "MLAAttention", 0, &[]);
    let mut ct = CompressedTensors::parse(&json!({"kv_cache_scheme": {}})).unwrap();
    assert_eq!(ct.build(&mla), Built::Plain { entry: None });
}

/// The config that a recorded case stands for.
fn config(args: &Value, targets: &[&str], ignore: &Value) -> CompressedTensors {
    let mut group = json!({"targets": targets, "weights": args[0]});
    for (i, key) in [(1, "input_activations"), (2, "output_activations")] {
        if !args[i].is_null() {
            group[key] = args[i].clone();
        }
    }
    let mut config = json!({"config_groups": {"g": group}});
    if !args[3].is_null() {
        config["format"] = args[3].clone();
    }
    if !ignore.is_null() {
        config["ignore"] = ignore.clone();
    }
    CompressedTensors::parse(&config).unwrap()
}

fn packed() -> Vec<(String, Vec<String>)> {
    vec![("qkv_proj".into(), ["q_proj", "k_proj", "v_proj"].map(str::to_owned).to_vec())]
}

fn load(param: &Param) -> &'static str {
    match param.load {
        Load::Scalar | Load::Turned { .. } | Load::TurnedPadded | Load::Repacked { .. } | Load::Numbered => {
            "of other methods"
        }
        Load::Both => "both",
        Load::Output => "output",
        Load::PerTensor => "per-tensor",
        Load::Column => "column",
        Load::Block { .. } => "block",
        Load::Whole => "whole",
        Load::PackedInput | Load::PackedOutput { .. } => "packed",
    }
}

fn element(param: &Param) -> String {
    if param.name.ends_with("3_weight_shape") || param.name.ends_with("2_weight_shape") {
        return "Model".into();
    }
    format!("{:?}", param.element)
}

#[test]
fn linears_heads_and_embeddings_as_vllm_builds_them() {
    for case in lines(include_str!("recorded/linear.jsonl")) {
        let mut ct = config(&case["args"], &["Linear", "ParallelLMHead", "Embedding"], &Value::Null);
        ct.set_packed(packed(), true);
        let built = ct.build(&match case["layer"].as_str().unwrap() {
            "qkv" => qkv("l.qkv_proj"),
            "row" => row("l.down"),
            "head" => layer(Offered::Head, "lm_head", "ParallelLMHead", 256, &[320]),
            _ => layer(Offered::Embedding, "embed", "VocabParallelEmbedding", 256, &[320]),
        });
        match (built, said(&case)) {
            (Built::Quantized { params, nones, .. }, None) => {
                // An alias under a second name is no parameter of its own.
                let params = params.iter().filter(|p| !(p.unread && p.name == "weight_packed"));
                let params = params.map(|p| (p.name.to_owned(), json!([p.shape, element(p), load(p)]))).collect();
                assert_eq!(Value::Object(params), case["params"], "{case}");
                let mut nones = nones;
                nones.sort_unstable();
                assert_eq!(json!(nones), case["nones"], "{case}");
            }
            (Built::Refused { raised, .. }, Some(said)) => assert_eq!(words(raised), said, "{case}"),
            (got, _) => panic!("{case}: {got:?}"),
        }
    }
}

#[test]
fn experts_as_vllm_builds_them() {
    for case in lines(include_str!("recorded/experts.jsonl")) {
        let mut ct = config(&case["args"], &["Linear"], &case["ignore"]);
        let m = [case["M"].as_u64().unwrap_or(256)];
        let layer = Layer {
            input: case["H"].as_u64().unwrap_or(256),
            outputs: &m,
            expert_names: if case["ungated"] == true {
                ["up_proj", "down_proj", ""]
            } else {
                ["gate_proj", "down_proj", "up_proj"]
            },
            ..layer(Offered::Experts, "l1.mlp.experts", "RoutedExperts", 0, &[])
        };
        match (ct.build(&layer), said(&case)) {
            (Built::Quantized { params, .. }, None) => {
                let params = params.iter().map(|p| (p.name.to_owned(), json!([p.shape, element(p)]))).collect();
                assert_eq!(Value::Object(params), case["params"], "{case}");
            }
            (Built::Plain { entry }, None) => {
                assert_eq!(case["scheme"], "UnquantizedFusedMoEMethod", "{case}");
                assert_eq!(entry, Some(0));
            }
            (Built::Refused { raised, .. }, Some(said)) => assert_eq!(words(raised), said, "{case}"),
            (got, _) => panic!("{case}: {got:?}"),
        }
    }
}

fn w4(more: Value) -> CompressedTensors {
    let mut config = json!({
        "format": "pack-quantized",
        "config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 4, "group_size": 32}}},
    });
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    let mut ct = CompressedTensors::parse(&config).unwrap();
    ct.set_packed(packed(), false);
    ct
}

fn is_plain(built: &Built, by: Option<usize>) -> bool {
    matches!(built, Built::Plain { entry } if *entry == by)
}

fn refusal(built: Built) -> (Kind, String) {
    match built {
        Built::Refused { why, raised } => (why, raised.text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn ignore_is_exact_or_a_pattern_from_the_start() {
    let mut ct = w4(json!({"ignore": ["model.l", "re:.*down", "lm_head", "model.l.q_proj", "model.l.k_proj",
        "model.l.v_proj", "model.m.q_proj", "Linear"]}));
    assert!(is_plain(&ct.build(&row("model.x.down_proj")), Some(1)));
    assert!(is_plain(&ct.build(&qkv("model.l.qkv_proj")), Some(3)));
    assert!(matches!(ct.build(&row("model.l.o_proj")), Built::Quantized { .. }));
    let (why, text) = refusal(ct.build(&qkv("model.m.qkv_proj")));
    assert_eq!(why, Kind::FusedMixture);
    assert_eq!(
        text,
        "Found different quantization schemes for the shards of model.m.qkv_proj. vLLM requires all to use the same scheme."
    );
    let dead: Vec<_> = ct.dead_entries().into_iter().map(|d| (d.pointer, d.entry, d.ignore)).collect();
    let of = |i: usize, entry: &str| (format!("/ignore/{i}"), entry.to_owned(), true);
    assert_eq!(dead, [of(0, "model.l"), of(2, "lm_head"), of(7, "Linear")]);
    ct.touch("lm_head");
    assert_eq!(ct.dead_entries().len(), 2);
}

#[test]
fn names_are_mapped_where_they_hold_a_dot() {
    let mut ct = w4(json!({"ignore": ["model.a.b", "re:model.*x", "lm_head"]}));
    let rename = |name: &str| name.replacen("model.", "language_model.model.", 1);
    ct.map_names(&rename);
    assert!(is_plain(&ct.build(&row("language_model.model.a.b")), Some(0)));
    assert!(matches!(ct.build(&row("language_model.model.x")), Built::Quantized { .. }));
    assert!(is_plain(&ct.build(&row("model.y.x")), Some(1)));
    assert_eq!(
        ct.dead_entries(),
        [super::DeadEntry {
            pointer: "/ignore/2".into(),
            entry: "lm_head".into(),
            name: "lm_head".into(),
            ignore: true
        }]
    );
}

#[test]
fn keys_that_meet_take_the_last_value() {
    let eight = json!({"num_bits": 8, "group_size": 32});
    let mut ct = w4(json!({"config_groups": {
        "a": {"targets": ["model.a.x", "re:.*"], "weights": {"num_bits": 4, "group_size": 32}},
        "b": {"targets": ["a.x"], "weights": {"num_bits": 2, "group_size": 32}},
        "c/d": {"targets": ["Linear", "model.b.x"], "weights": eight},
    }}));
    ct.map_names(&|name: &str| name.strip_prefix("model.").unwrap_or(name).to_owned());
    let scheme = |built: Built| match built {
        Built::Quantized { scheme, .. } => scheme,
        other => panic!("{other:?}"),
    };
    assert_eq!(scheme(ct.build(&row("a.x"))), "W2A16 (pack-quantized, group 32)");
    assert_eq!(scheme(ct.build(&row("b.x"))), "W4A16 (pack-quantized, group 32)");
    assert_eq!(ct.why(&row("a.x")).unwrap().pointer, "/config_groups/b/targets/0");
    // Reached by name and class, though another target came first.
    assert_eq!(ct.dead_entries(), []);
}

#[test]
fn targets_by_name_then_shards_then_class() {
    let mut ct = w4(json!({"config_groups": {
        "q": {"targets": ["l.q_proj"], "weights": {"num_bits": 8, "group_size": 32}},
        "kv": {"targets": ["re:l.[kv]_proj"], "weights": {"num_bits": 4, "group_size": 32}},
        "rest": {"targets": ["rowparallel", "re:Nothing"], "weights": {"num_bits": 2, "group_size": 32}},
    }}));
    let why = ct.why(&qkv("l.qkv_proj")).unwrap();
    assert_eq!((why.by, why.target.as_str(), why.group.as_str()), (By::Shards, "l.q_proj", "/config_groups/q"));
    assert!(matches!(ct.build(&qkv("l.qkv_proj")), Built::Quantized { scheme, .. } if scheme.starts_with("W8")));
    assert!(is_plain(&ct.build(&qkv("m.qkv_proj")), None));
    assert!(matches!(ct.build(&row("m.o")), Built::Quantized { scheme, .. } if scheme.starts_with("W2")));
    assert_eq!(ct.why(&row("m.o")).unwrap().by, By::Class);
    let dead: Vec<_> = ct.dead_entries().into_iter().map(|d| d.pointer).collect();
    assert_eq!(dead, ["/config_groups/rest/targets/1"]);
}

#[test]
fn only_expert_zero_counts_and_linear_stands_for_experts() {
    let experts = layer(Offered::Experts, "m.experts", "MoERunner", 256, &[256]);
    let mut ct = w4(json!({"ignore": ["m.experts.3.up_proj", "m.experts.4.up_proj", "m.experts"]}));
    assert!(matches!(ct.build(&experts), Built::Quantized { .. }));
    assert_eq!(ct.why(&experts).unwrap().target, "Linear");
    let dead: Vec<_> = ct.dead_entries().into_iter().map(|d| d.entry).collect();
    assert_eq!(dead, ["m.experts.4.up_proj", "m.experts"]);
}

/// The messages are Python's own.
#[test]
fn lists_that_are_no_lists() {
    let (pointer, raised) = CompressedTensors::parse(&json!({"ignore": null})).unwrap_err();
    assert_eq!((pointer.as_str(), raised.text.as_str()), ("/ignore", "'NoneType' object is not iterable"));
    let odd = json!({"ignore": ["a", 5]});
    let mut ct = w4(odd.clone());
    assert_eq!(refusal(ct.build(&row("x"))).1, "'int' object has no attribute 'startswith'");
    let mut ct = w4(odd);
    ct.map_names(&str::to_owned);
    assert_eq!(refusal(ct.build(&row("x"))).1, "argument of type 'int' is not iterable");
    let mut ct = w4(json!({"ignore": ["re:("]}));
    assert_eq!(refusal(ct.build(&row("x"))).0, Kind::PatternBroken);
    assert!(matches!(ct.build(&row("y")), Built::Quantized { .. }));
    assert_eq!(ct.broken, [("/ignore/0".to_owned(), "re:(".to_owned())]);
    // Targets are walked only up to the first that matches.
    let group = json!({"g": {"targets": ["re:x", "re:("], "weights": {"num_bits": 4, "group_size": 32}}});
    let mut ct = w4(json!({"config_groups": group}));
    assert!(matches!(ct.build(&row("x")), Built::Quantized { .. }));
    assert_eq!(refusal(ct.build(&row("y"))).0, Kind::PatternBroken);
}

#[test]
fn where_a_refusal_stands() {
    let at = |config: Value| CompressedTensors::parse(&config).unwrap_err().0;
    let group = |weights: Value| json!({"config_groups": {"a/b": {"targets": ["Linear"], "weights": weights}}});
    assert_eq!(at(group(json!({"num_bits": "x"}))), "/config_groups/a~1b/weights/num_bits");
    assert_eq!(at(group(json!({"group_size": -1, "strategy": "group"}))), "/config_groups/a~1b/weights/group_size");
    assert_eq!(at(group(json!({"group_size": 2, "actorder": true}))), "/config_groups/a~1b/weights/actorder");
    assert_eq!(at(json!({"config_groups": {"g": {}}})), "/config_groups/g");
    assert_eq!(at(json!({"sparsity_config": {"format": "x", "targets": ["y"]}})), "/sparsity_config/targets");
}

#[test]
fn odd_sizes_raise_and_never_panic() {
    let sizes = [0, 1, -1, i64::MIN, i64::MAX, 3];
    for bits in sizes {
        for size in sizes {
            for weights in [
                json!({"num_bits": bits, "group_size": size}),
                json!({"num_bits": bits, "group_size": size, "symmetric": false, "strategy": "channel"}),
                json!({"type": "float", "strategy": "block", "block_structure": [bits, size]}),
            ] {
                for format in ["pack-quantized", "float-quantized"] {
                    let group = json!({"g": {"targets": ["Linear", "Embed", "Head"], "weights": weights}});
                    let config = json!({"format": format, "config_groups": group});
                    let Ok(mut ct) = CompressedTensors::parse(&config) else { continue };
                    for offered in [Offered::Linear, Offered::Head, Offered::Embedding, Offered::Experts] {
                        for (input, outputs) in [(0, &[][..]), (u64::MAX, &[u64::MAX, 3]), (7, &[0])] {
                            ct.build(&layer(offered, "x", "LinearEmbedHead", input, outputs));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn long_lists_are_looked_up_by_hash() {
    let entries: Vec<_> = (0..5000).map(|i| format!("model.layers.{i}.self_attn.o_proj")).collect();
    let mut ct = w4(json!({"ignore": entries}));
    let names: Vec<_> = (0..20_000).map(|i| format!("model.layers.{i}.self_attn.o_proj")).collect();
    let plain = names.iter().filter(|name| {
        let layer = Layer { prefix: name, ..row("") };
        matches!(ct.build(&layer), Built::Plain { .. })
    });
    assert_eq!(plain.count(), 5000);
    assert!(ct.dead_entries().is_empty());
}
