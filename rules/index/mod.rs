//! `model.safetensors.index.json` against the shards.

family![missing_shard, unusable, escaping_path, ghost_tensor, stale_entry, unlisted_shard,];
