//! The quantization config against the stored tensors.

family![
    unlisted_linear,
    ignored_but_packed,
    dead_ignore,
    dead_target,
    fused_mixture,
    packed_unexpected,
    method_missing,
    method_unknown,
    unread_config,
    config_rejected,
    scheme_unsupported,
    scheme_shape,
    scheme_surplus,
    scheme_misfit,
    embedding_scheme,
    pattern_broken,
    one_device,
];
