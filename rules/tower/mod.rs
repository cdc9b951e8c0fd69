//! Vision and audio towers: config, tensors, architecture.

family![leftover_tensors, unexpected_tensors, missing_tensors, null_config, foreign_config];
