//! Types and validators of the config class, as transformers 5 checks them.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "config-bad-field",
    summary: "a field of the config has a value that its class rejects",
    page: include_str!("bad_field.md"),
    level: Level::Error,
    claims: &[Kind::ConfigField],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    for event in sink.events(plan) {
        let pointer = event.pointer.clone().unwrap_or_default();
        if pointer.is_empty() {
            // A validator of the whole class: its words say which fields contradict each other.
            let help = "correct the fields that the message names: they contradict each other";
            sink.cause(&[event]).file("config.json").help(help).say("the config does not pass the checks of its class");
            continue;
        }
        let file = event.file.as_deref().unwrap_or("config.json");
        let name = pointer.trim_start_matches('/').replace('/', ".");
        let draft = sink.cause(&[event]).key(file, &pointer).subjects([name.clone()]);
        let draft =
            if words::has(cp, file, &pointer) { draft } else { draft.label(format!("`{name}` is missing here")) };
        draft.help("compare with the config of the base model; exporters of other versions write other fields").say(
            words::fit(format!("`{name}` is not what the config class expects"), || {
                "a field is not what the config class expects".into()
            }),
        );
    }
}
