//! The folder: which weight files are there.

family![no_weights, weights_absent, stray_consolidated, lfs_pointer, duplicate_tensor,];
