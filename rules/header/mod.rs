//! The safetensors headers themselves.

family![broken, duplicate_name,];
