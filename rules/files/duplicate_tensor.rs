//! Both copies are streamed; the one in the later file wins, without a word.

use crate::checkpoint::Checkpoint;
use crate::finding::Level;
use crate::rule::{Rule, Sink, words};
use crate::vllm::Plan;
use crate::vllm::trace::Kind;

pub(super) static RULE: Rule = Rule {
    name: "files-duplicate-tensor",
    summary: "a tensor is stored in two shards that vLLM reads",
    page: include_str!("duplicate_tensor.md"),
    level: Level::Warning,
    claims: &[Kind::DuplicateTensor],
    aliases: &[],
    check,
};

fn check(cp: &Checkpoint, plan: &Plan, sink: &mut Sink) {
    let events = sink.events(plan);
    for ((file, before), group) in words::groups(&events, |e| (e.file.clone().unwrap_or_default(), e.detail.clone())) {
        let n = group.len();
        sink.cause(&group)
            .file(&file)
            .subjects(words::names(&group))
            .evidence(words::tensor_lines(cp, &group))
            .help(format!(
                "keep them in one file: the copies in `{before}` are read and overwritten ({} more to load)",
                words::size(words::total(&group))
            ))
            .say(words::fit(
                format!(
                    "{} stored twice, in `{before}` and `{file}`; vLLM keeps the latter",
                    words::count(n, "tensor") + words::verb(n, " is", " are")
                ),
                || {
                    format!(
                        "{} stored in two shards; vLLM keeps the copy in the later file",
                        words::count(n, "tensor") + words::verb(n, " is", " are")
                    )
                },
            ));
    }
}
