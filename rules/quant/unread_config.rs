//! A second quantization config, left from another tool: vLLM reads one and never looks at the rest.

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;
use serde_json::Value;

pub(super) static RULE: Rule = Rule {
    name: "quant-unread-config",
    summary: "a quantization config that vLLM does not read",
    page: include_str!("unread_config.md"),
    level: Level::Warning,
    claims: &[],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    if plan.class.is_none() {
        return;
    }
    let read = plan.quant_place.as_ref().map(|(file, pointer)| (file.as_str(), pointer.as_str()));
    let config = cp.config.get().map(|c| &c.value);
    let nested = ["/quantization_config", "/text_config/quantization_config", "/compression_config"]
        .into_iter()
        .filter_map(|p| Some(("config.json", p, config?.pointer(p).filter(|v| v.is_object())?)));
    let files = cp.quant_files.iter().filter_map(|(file, part)| Some((file.as_str(), "", &part.get()?.value)));
    for (file, pointer, value) in nested.chain(files) {
        if read == Some((file, pointer)) {
            continue;
        }
        let Some(own) = method(file, value) else { continue };
        match (&plan.method, read) {
            // The same method told twice is how several tools write it.
            (Some(method), _) if alike(method, own) => {}
            (Some(method), Some((first, _))) => {
                let draft =
                    sink.fact().subjects([file]).help(format!("remove it, if the tensors are those of {method}"));
                let draft = if pointer.is_empty() {
                    draft.file(file).fix(Fix::DeleteFile { file: file.to_owned() })
                } else {
                    draft.key(file, pointer)
                };
                draft.say(format!("a second quantization config ({own}): vLLM reads the one in {first} ({method})"));
            }
            (None, None) if pointer.is_empty() => {
                sink.fact()
                    .file(file)
                    .subjects([file])
                    .help(format!(
                        "put it into config.json as `quantization_config`, with `\"quant_method\": \"{own}\"`"
                    ))
                    .say(format!("vLLM reads {file} only with `--quantization`, and takes the model as unquantized"));
            }
            _ => {}
        }
    }
}

/// The method that a config speaks of; the tools that write files of their own leave its name out.
fn method<'v>(file: &str, value: &'v Value) -> Option<&'v str> {
    let named = value.get("quant_method").and_then(Value::as_str);
    named.or_else(|| match file {
        _ if value.get("producer").is_some() => Some("modelopt"),
        "quantize_config.json" if value.get("bits").is_some() => Some("gptq"),
        "quant_config.json" if value.get("w_bit").is_some() => Some("awq"),
        _ => None,
    })
}

fn alike(a: &str, b: &str) -> bool {
    let plain = |s: &str| s.trim_start_matches("auto_").replace(['_', '-'], "").to_lowercase();
    let (a, b) = (plain(a), plain(b));
    a == b || a.starts_with("modelopt") && b.starts_with("modelopt") || a.starts_with("gptq") && b.starts_with("gptq")
}
