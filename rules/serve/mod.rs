//! What starts, or nearly, and then cannot talk: the files and ids around the weights.

use crate::checkpoint::{Checkpoint, FolderKind};

family![no_tokenizer, no_processor, no_chat_template, token_id, missing_code];

/// Whether the folder means to be complete: the weights are here, and something of a tokenizer, a processor or a
/// template. A folder of nothing but config and weights is on its way somewhere, and its tokenizer may come from
/// `--tokenizer`; one of nothing but metadata is not what will be served.
fn dressed(cp: &Checkpoint) -> bool {
    whole(cp)
        && [
            "tokenizer_config.json",
            "special_tokens_map.json",
            "added_tokens.json",
            "preprocessor_config.json",
            "processor_config.json",
            "chat_template.jinja",
            "chat_template.json",
        ]
        .iter()
        .chain(&VOCABULARIES)
        .any(|name| has(cp, name))
}

/// A model whose weights are here.
fn whole(cp: &Checkpoint) -> bool {
    cp.kind == FolderKind::Model && cp.shards.iter().any(|s| !s.is_pointer())
}

/// Any of them holds a vocabulary.
const VOCABULARIES: [&str; 10] = [
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer.model.v3",
    "vocab.json",
    "vocab.txt",
    "tekken.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tiktoken.model",
    "merges.txt",
];

fn vocabulary(cp: &Checkpoint) -> bool {
    let other = |n: &str| !n.contains('/') && (n.ends_with(".tiktoken") || n.ends_with(".spm"));
    VOCABULARIES.iter().any(|name| has(cp, name)) || cp.files.iter().any(|f| other(&f.name))
}

fn has(cp: &Checkpoint, name: &str) -> bool {
    cp.files.binary_search_by(|f| f.name.as_str().cmp(name)).is_ok()
}
