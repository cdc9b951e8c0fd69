//! `ckpt-lint diff` from outside: what it says of pairs of checkpoints, and how it ends.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

#[path = "support/case.rs"]
#[allow(dead_code, reason = "shared between test binaries")]
mod case;
#[path = "support/schema.rs"]
mod schema;

use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

const BROKEN: &str = "examples/unlisted-linear/broken";
const MENDED: &str = "examples/unlisted-linear/mended";

/// Two folders, `a` and `b`, in one that goes away.
struct Pair(tempfile::TempDir);

impl Pair {
    fn path(&self, side: &str) -> String {
        self.0.path().join(side).display().to_string()
    }

    /// What is printed, the folders written as `a` and `b`, and the exit code.
    fn run(&self, args: &[&str]) -> (String, i32) {
        let mut c = command();
        let o = c.current_dir(self.0.path()).args(["diff", "a", "b"]).args(args).output().unwrap();
        (String::from_utf8(o.stdout).unwrap(), o.status.code().unwrap())
    }

    fn json(&self) -> (Value, i32) {
        let (text, code) = self.run(&["--format", "json"]);
        let value: Value = serde_json::from_str(&text).unwrap();
        documented(&value);
        assert_eq!(value["intact"], code == 0, "{text}");
        (value, code)
    }
}

fn command() -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_ckpt-lint"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "COLUMNS"] {
        c.env_remove(name);
    }
    c
}

fn documented(value: &Value) {
    let text = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/diff.schema.json")).unwrap();
    let schema: Value = serde_json::from_slice(&text).unwrap();
    schema::check(&schema, &schema, value, "");
}

/// Two recorded cases.
fn cases(a: &str, b: &str) -> Pair {
    let pair = Pair(tempfile::tempdir().unwrap());
    for (side, id) in [("a", a), ("b", b)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/conformance/cases/{id}.json"));
        case::read(&path).materialize(&pair.0.path().join(side));
    }
    pair
}

/// Two checkpoints of our own: config, and tensors as name, dtype, shape.
type Tensors = Vec<(String, &'static str, Vec<u64>)>;

fn made(a: (Value, Tensors), b: (Value, Tensors)) -> Pair {
    let pair = Pair(tempfile::tempdir().unwrap());
    for (side, (config, tensors)) in [("a", a), ("b", b)] {
        let tensors: Vec<Value> =
            tensors.into_iter().map(|(n, d, s)| json!({"name": n, "dtype": d, "shape": s})).collect();
        let json = json!({
            "id": "made", "arch": "", "family": "",
            "files": {"config.json": config},
            "shards": {"model.safetensors": {"tensors": tensors}},
        });
        let case = case::Case {
            id: String::new(),
            arch: String::new(),
            family: String::new(),
            good: true,
            expect: Vec::new(),
            json,
        };
        case.materialize(&pair.0.path().join(side));
    }
    pair
}

fn t(name: &str, dtype: &'static str, shape: &[u64]) -> (String, &'static str, Vec<u64>) {
    (name.to_owned(), dtype, shape.to_vec())
}

/// A small model without quantization.
fn plain(prefix: &str) -> Tensors {
    let mut out =
        vec![t(&format!("{prefix}embed_tokens.weight"), "BF16", &[64, 128]), t("lm_head.weight", "BF16", &[64, 128])];
    for layer in 0..4 {
        for word in ["q_proj", "k_proj", "v_proj"] {
            out.push(t(&format!("{prefix}layers.{layer}.self_attn.{word}.weight"), "BF16", &[128, 128]));
        }
        out.push(t(&format!("{prefix}layers.{layer}.mlp.down_proj.weight"), "BF16", &[128, 256]));
        out.push(t(&format!("{prefix}layers.{layer}.input_layernorm.weight"), "BF16", &[128]));
    }
    out
}

fn config() -> Value {
    json!({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128, "eos_token_id": 2})
}

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/diff");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn precisions(value: &Value, part: &str) -> Vec<String> {
    let rows = value["weights"].as_array().unwrap().iter();
    let row = rows.clone().find(|r| r["part"] == part && r["kind"] == "matrix").unwrap();
    let counts = row["after"].as_array().unwrap().iter();
    counts.map(|c| format!("{} {}", c["weights"], c["precision"].as_str().unwrap())).collect()
}

fn lost(value: &Value) -> Vec<&str> {
    value["lost"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect()
}

#[test]
fn quantized() {
    let pair = cases("llama-base-bf16", "llama-16bit-down1");
    let (text, code) = pair.run(&[]);
    assert_eq!(code, 0, "{text}");
    snapshot("quantized", &text);
    let (value, _) = pair.json();
    snapshot(
        "quantized-json",
        &serde_json::to_string_pretty(&value).unwrap().replace(env!("CARGO_PKG_VERSION"), "VERSION"),
    );
}

#[test]
fn towers() {
    let (text, code) = cases("gemma4mm-base-bf16", "gemma4mm-base-w4a16").run(&[]);
    assert_eq!(code, 0, "{text}");
    snapshot("towers", &text);
}

#[test]
fn experts_in_fp8() {
    let pair = cases("qwen3moe-base-w4a16", "qwen3moe-base-fp8dyn");
    assert_eq!(precisions(&pair.json().0, "experts")[0].split_once(' ').unwrap().1, "fp8 per channel");
}

/// What must not happen on the way, told line by line.
#[test]
fn all_that_can_go_wrong() {
    let mut tensors = plain("model.");
    // A projection of two layers, and the whole last layer.
    tensors.retain(|(n, _, _)| !n.contains("layers.3.") && n != "model.layers.1.self_attn.q_proj.weight");
    tensors[0].2 = vec![60, 128];
    tensors.push(t("model.layers.0.self_attn.k_scale", "F32", &[1]));
    tensors.push(t("evil\u{1b}[31m.\u{202e}weight", "F16", &[1, 1]));
    let mut b = config();
    b["hidden_size"] = 64.into();
    b["eos_token_id"] = json!([2, 3]);
    b["rope_scaling"] = json!({"rope_type": "yarn", "factor": 4.0});
    b["use_cache"] = false.into();
    b.as_object_mut().unwrap().remove("architectures");
    let pair = made((config(), plain("model.")), (b, tensors));
    let (text, code) = pair.run(&[]);
    assert_eq!(code, 1, "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}']));
    snapshot("all-that-can-go-wrong", &text);
    let (value, _) = pair.json();
    assert_eq!(lost(&value), ["model.layers.1.self_attn.q_proj", "model.layers.3"]);
}

#[test]
fn the_same_is_intact() {
    for args in
        [&["diff", BROKEN, BROKEN][..], &["diff", MENDED, BROKEN], &["diff", BROKEN, "--format", "json", MENDED]]
    {
        let o = command().current_dir(env!("CARGO_MANIFEST_DIR")).args(args).output().unwrap();
        assert_eq!(o.status.code(), Some(0), "{o:?}");
    }
}

#[test]
fn a_run_that_fails_is_no_difference() {
    for args in
        [&["diff", BROKEN, "no/such"][..], &["diff", BROKEN], &["diff", "src", BROKEN], &["diff", "examples", BROKEN]]
    {
        let o = command().current_dir(env!("CARGO_MANIFEST_DIR")).args(args).output().unwrap();
        assert_eq!(o.status.code(), Some(2), "{args:?}");
        assert!(o.stdout.is_empty() && !o.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_prefix_is_a_renaming() {
    for (from, to) in
        [("model.", "model.language_model."), ("model.language_model.", "language_model.model."), ("model.", "")]
    {
        let (value, code) = made((config(), plain(from)), (config(), plain(to))).json();
        assert_eq!(code, 0, "{value}");
        assert_eq!(value["renamed"], json!([{"before": from, "after": to, "weights": 21}]));
        assert_eq!(lost(&value), Vec::<&str>::new());
    }
    // A prefix that something is lost behind is one all the same.
    let mut less = plain("language_model.model.");
    less.retain(|(n, _, _)| !n.contains("v_proj"));
    let (value, code) = made((config(), plain("model.")), (config(), less)).json();
    assert_eq!((code, lost(&value)), (1, vec!["model.layers.{0-3}.self_attn.v_proj"]));
}

#[test]
fn stacked_and_fused_is_another_layout() {
    let one = |words: &[&str], end: &str, shape: &[u64]| -> Tensors {
        (0..2)
            .flat_map(|l| words.iter().map(move |w| (l, *w)))
            .map(|(l, w)| t(&format!("model.layers.{l}.mlp.{w}{end}"), "BF16", shape))
            .collect()
    };
    let stacked = || one(&["experts.gate_up_proj", "experts.down_proj"], "", &[4, 16, 8]);
    let each = |n: usize| -> Tensors {
        let experts = (0..n).flat_map(|e| ["gate_proj", "up_proj", "down_proj"].map(|w| format!("experts.{e}.{w}")));
        experts.flat_map(|w| one(&[w.as_str()], ".weight", &[8, 8])).collect()
    };
    let (value, code) = made((config(), stacked()), (config(), each(4))).json();
    assert_eq!(code, 0, "{value}");
    let told = json!([{
        "name": "model.layers.{0-1}.mlp.experts", "modules": 2,
        "before": "stacked down_proj, gate_up_proj", "after": "4 experts with down_proj, gate_proj, up_proj",
    }]);
    assert_eq!(value["layouts"], told);
    // An expert too few is a loss.
    assert_eq!(made((config(), stacked()), (config(), each(3))).json().1, 1);
    let apart = one(&["gate_proj", "up_proj"], ".weight", &[8, 8]);
    let (value, code) = made((config(), apart), (config(), one(&["gate_up_proj"], ".weight", &[16, 8]))).json();
    assert_eq!(code, 0, "{value}");
    assert_eq!(value["layouts"][0]["after"], "gate_up_proj");
}

/// How the methods store a linear of 128 rows and 256 columns.
#[test]
fn methods() {
    type Tensors<'a> = &'a [(&'a str, &'static str, &'a [u64])];
    let stored: &[(&str, Value, Tensors)] = &[
        ("BF16", json!({}), &[("weight", "BF16", &[128, 256])]),
        (
            "fp8 per tensor",
            json!({}),
            &[("weight", "F8_E4M3", &[128, 256]), ("weight_scale", "F32", &[]), ("input_scale", "F32", &[])],
        ),
        ("fp8 per channel", json!({}), &[("weight", "F8_E4M3", &[128, 256]), ("weight_scale", "BF16", &[128, 1])]),
        ("fp8 block 128x128", json!({}), &[("weight", "F8_E4M3", &[128, 256]), ("weight_scale_inv", "F32", &[1, 2])]),
        ("int8 per channel", json!({}), &[("weight", "I8", &[128, 256]), ("weight_scale", "F32", &[128, 1])]),
        (
            "int4 group 128",
            json!({}),
            &[("weight_packed", "I32", &[128, 32]), ("weight_scale", "BF16", &[128, 2]), ("weight_shape", "I64", &[2])],
        ),
        (
            "int8 group 64 with zero points",
            json!({}),
            &[
                ("weight_packed", "I32", &[128, 64]),
                ("weight_scale", "BF16", &[128, 4]),
                ("weight_zero_point", "I32", &[32, 4]),
            ],
        ),
        (
            "nvfp4 group 16",
            json!({}),
            &[
                ("weight_packed", "U8", &[128, 128]),
                ("weight_scale", "F8_E4M3", &[128, 16]),
                ("weight_global_scale", "F32", &[1]),
            ],
        ),
        (
            "nvfp4 group 16",
            json!({}),
            &[("weight", "U8", &[128, 128]), ("weight_scale", "F8_E4M3", &[128, 16]), ("weight_scale_2", "F32", &[])],
        ),
        ("mxfp4 group 32", json!({}), &[("weight_packed", "U8", &[128, 128]), ("weight_scale", "U8", &[128, 8])]),
        (
            "int4 group 128",
            json!({"bits": 4}),
            &[
                ("qweight", "I32", &[32, 128]),
                ("scales", "F16", &[2, 128]),
                ("qzeros", "I32", &[2, 16]),
                ("g_idx", "I32", &[256]),
            ],
        ),
        (
            "int4 group 128",
            json!({}),
            &[("qweight", "I32", &[256, 16]), ("scales", "F16", &[2, 128]), ("qzeros", "I32", &[2, 16])],
        ),
        ("int4 without scales", json!({}), &[("weight_packed", "I32", &[128, 32])]),
        (
            "bitsandbytes 4-bit",
            json!({}),
            &[
                ("weight", "U8", &[16384, 1]),
                ("weight.absmax", "F32", &[512]),
                ("weight.quant_map", "F32", &[16]),
                ("weight.quant_state.bitsandbytes__nf4", "U8", &[80]),
            ],
        ),
    ];
    for (precision, quant, tensors) in stored {
        let name = "model.layers.0.mlp.down_proj";
        let source = vec![t(&format!("{name}.weight"), "BF16", &[128, 256])];
        let made_of = tensors.iter().map(|(w, d, s)| t(&format!("{name}.{w}"), d, s)).collect();
        let mut b = config();
        b["quantization_config"] = quant.clone();
        let (value, code) = made((config(), source), (b, made_of)).json();
        assert_eq!(precisions(&value, "layers"), [format!("1 {precision}")], "{value}");
        assert_eq!(value["gained"], json!([]), "{precision}");
        assert_eq!(code == 0, !precision.contains("without"), "{precision}: {value}");
    }
}

/// Names and numbers of strangers: long, deep, many, and never a reason to stop or to take long.
#[test]
fn hostile() {
    let many: Tensors = (0..5_000u64).map(|i| t(&format!("a.{}.x{}.{i}.w", i % 7, i % 13), "BF16", &[1])).collect();
    let mut odd: Tensors = vec![
        t(&"a.".repeat(50_000), "I32", &[0]),
        t(&"1.".repeat(50_000), "BF16", &[1, 1, 1]),
        t(".", "U8", &[]),
        t("", "U8", &[0, 0]),
        t("weight_packed", "I32", &[0, 0]),
        t("weight_scale", "F32", &[0, 0]),
        t("experts.4294967295.w1", "F32", &[1]),
        t("m.experts.99999999999.w1.weight", "F32", &[1]),
        t("x.qweight", "I32", &[0, 0]),
        t("x.scales", "F16", &[0, 0]),
        t("x.qzeros", "I32", &[0]),
    ];
    odd.extend((0..1_000u64).map(|i| t(&format!("b.{}.x{}.{i}.w", i % 7, i % 13), "BF16", &[1])));
    let mut nested = json!({"hidden_size": 1});
    for _ in 0..100 {
        nested =
            json!({"x".repeat(1_000): nested, "rope_scaling": {"type": 1}, "rope_theta": nested.get("rope_theta")});
    }
    let deep = (nested, odd);
    for pair in [made((json!({}), many), deep.clone()), made(deep.clone(), (Value::Object(Map::new()), Vec::new()))] {
        assert_eq!(pair.run(&["--format", "json"]).1, 1);
        assert_eq!(pair.run(&[]).1, 1);
    }
    assert_eq!(made(deep.clone(), deep).run(&[]).1, 0);
}

/// What could not be read speaks against a pair: silence would pass for a promise.
#[test]
fn unread_is_not_intact() {
    let pair = made((config(), plain("model.")), (config(), plain("model.")));
    assert_eq!(pair.json().1, 0);
    fs::write(Path::new(&pair.path("b")).join("config.json"), "{,").unwrap();
    let (value, code) = pair.json();
    assert_eq!(code, 1);
    assert!(value["after"]["unread"][0].as_str().unwrap().starts_with("config.json cannot be read"), "{value}");
}

/// The weights are somewhere else: names are still compared.
#[test]
fn an_index_is_enough_for_names() {
    let pair = made((config(), plain("model.")), (config(), plain("model.")));
    let shard = Path::new(&pair.path("b")).join("model.safetensors");
    fs::remove_file(shard).unwrap();
    let mut names: Map<String, Value> =
        plain("model.").into_iter().map(|(n, _, _)| (n, "w.safetensors".into())).collect();
    let index = Path::new(&pair.path("b")).join("model.safetensors.index.json");
    fs::write(&index, json!({"weight_map": names}).to_string()).unwrap();
    let (value, code) = pair.json();
    assert_eq!((code, value["after"]["by_name"].as_u64()), (0, Some(22)), "{value}");
    names.remove("lm_head.weight");
    fs::write(&index, json!({"weight_map": names}).to_string()).unwrap();
    assert_eq!(pair.json().1, 1);
}

/// A head that both sides tie to the embedding may go.
#[test]
fn a_tied_head_is_no_loss() {
    let mut tied = config();
    tied["tie_word_embeddings"] = true.into();
    let mut bare = plain("model.");
    bare.retain(|(n, _, _)| n != "lm_head.weight");
    assert_eq!(made((tied.clone(), plain("model.")), (tied, bare.clone())).json().1, 0);
    assert_eq!(made((config(), plain("model.")), (config(), bare)).json().1, 1);
}

#[test]
fn generation_config() {
    let pair = made((config(), plain("model.")), (config(), plain("model.")));
    let write = |side: &str, value: Value| {
        fs::write(Path::new(&pair.path(side)).join("generation_config.json"), value.to_string()).unwrap();
    };
    write("a", json!({"eos_token_id": [2, 7], "temperature": 0.6}));
    assert_eq!(pair.json().1, 1, "the second end of text is gone");
    write("b", json!({"eos_token_id": [7, 2], "temperature": 0.7}));
    let (value, code) = pair.json();
    assert_eq!((code, &value["fields"][0]["name"]), (0, &json!("temperature")));
}

#[test]
fn special_tokens() {
    let pair = made((config(), plain("model.")), (config(), plain("model.")));
    let write = |side: &str, value: Value| {
        fs::write(Path::new(&pair.path(side)).join("tokenizer_config.json"), value.to_string()).unwrap();
    };
    write("a", json!({"eos_token": {"content": "</s>"}, "bos_token": null, "added_tokens_decoder": {"0": {}}}));
    let (value, code) = pair.json();
    assert_eq!((code, &value["files_lost"]), (0, &json!(["tokenizer_config.json"])));
    write("b", json!({"eos_token": "</s>"}));
    assert_eq!(pair.json().1, 0);
    write("b", json!({"eos_token": "<|im_end|>"}));
    let (value, code) = pair.json();
    assert_eq!((code, &value["fields"][0]["name"]), (1, &json!("eos_token")), "{value}");
    write("b", json!([]));
    assert_eq!(pair.json().1, 1);
}
