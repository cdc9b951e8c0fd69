//! Tied embeddings: the flag, the head, the embedding.

family![duplicate_head, packed_embedding, flag_conflict, stray_head, missing_head, missing_embedding, headless_class,];
