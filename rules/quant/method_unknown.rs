//! A misspelt or removed method.

use crate::checkpoint::Checkpoint;
use crate::finding::{Fix, Level};
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "quant-method-unknown",
    summary: "the quantization method is not one of vLLM's",
    page: include_str!("method_unknown.md"),
    level: Level::Error,
    claims: &[Kind::QuantMethodUnknown],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    for event in sink.events(plan) {
        let file = event.file.as_deref().unwrap_or("config.json");
        let named =
            event.pointer.as_deref().and_then(|p| words::json(cp, file)?.pointer(p)?.as_str()).unwrap_or_default();
        let plain = |s: &str| s.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        let message = event.error.as_ref().map_or("", |e| e.text.as_str());
        // The methods as the message lists them.
        let near = message.split('\'').skip(1).step_by(2).find(|m| plain(m) == plain(named));
        let help = match (near, elsewhere(named)) {
            (Some(method), _) => format!("write `\"quant_method\": \"{method}\"`"),
            (None, Some(help)) => help,
            (None, None) => "the message lists the methods; a tool's own name often differs from vLLM's".to_owned(),
        };
        let mut draft = sink.cause(&[event]).at(event).label("not a method of this vLLM").help(help);
        if let (Some(method), Some(pointer)) = (near, &event.pointer) {
            draft = draft.fix(Fix::Set { file: file.to_owned(), pointer: pointer.clone(), value: method.into() });
        }
        draft.say(words::fit(format!("vLLM has no quantization method `{named}`"), || {
            "vLLM has no such quantization method".into()
        }));
    }
}

/// Methods that vLLM has left to plugins, or has nothing for.
fn elsewhere(named: &str) -> Option<String> {
    let plugin = match named {
        "bitsandbytes" => "vllm-bnb-plugin",
        "gguf" => "vllm-gguf-plugin",
        "aqlm" | "eetq" | "exl2" | "exl3" | "higgs" | "hqq" | "quanto" | "quip" | "spqr" | "vptq" => {
            return Some(
                "vLLM has no code for it: quantize the 16-bit model anew, with llm-compressor for instance".into(),
            );
        }
        _ => return None,
    };
    Some(format!("`pip install {plugin}` adds the method to vLLM; what the plugin then does is not checked here"))
}
