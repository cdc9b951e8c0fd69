//! compressed-tensors (in the making).
