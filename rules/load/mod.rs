//! The stream of tensors: what has no home, what stays unwritten.

family![
    homeless_tensor,
    extra_layer,
    shape_mismatch,
    cut_tensor,
    unwritten,
    half_written,
    missing_layer,
    not_initialized,
    default_buffer,
    meaning_lost_cast,
    dropped_tensor,
    wrapper_prefix,
    unknown,
    unexplained,
];
