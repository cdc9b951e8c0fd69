//! `config.json`: what vLLM and transformers make of it before any weight is read.

family![
    missing,
    unreadable,
    unknown_model_type,
    bad_field,
    no_architecture,
    base_class,
    unknown_architecture,
    removed_architecture,
    draft_model,
    refused_argument,
    remote_code,
    duplicate_key,
];
