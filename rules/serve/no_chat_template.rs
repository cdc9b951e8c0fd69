//! A base model, or a template that was left behind.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink};
use crate::vllm::Plan;

pub(super) static RULE: Rule = Rule {
    name: "serve-no-chat-template",
    summary: "no chat template, so chat requests are refused",
    page: include_str!("no_chat_template.md"),
    level: Level::Warning,
    claims: &[],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    // Without a vocabulary there is more to say, and mistral-common brings templates of its own.
    if plan.class.is_none()
        || !super::dressed(cp)
        || cp.chat_template
        || !super::vocabulary(cp)
        || super::has(cp, "tekken.json")
    {
        return;
    }
    sink.fact()
        .note()
        .help("a base model needs none; for chat copy chat_template.jinja from the instruct model, or pass `--chat-template`")
        .say("no chat template: completions work, chat requests are refused");
}
