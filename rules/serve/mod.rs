//! What starts, or nearly, and then cannot talk: the files and ids around the weights.

use crate::checkpoint::{Checkpoint, FolderKind};

family![no_tokenizer, no_processor, no_chat_template, token_id, missing_code];

/// Whether the folder means to be complete: something of a tokenizer, a processor or a template is there. A folder of
/// nothing but config and weights is on its way somewhere, and its tokenizer may come from `--tokenizer`.
fn dressed(cp: &Checkpoint) -> bool {
    cp.kind == FolderKind::Model
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
