"""Hand-written loaders: what their loop does, in the words of src/vllm, for the source that was read.

Key: module.qualified name; the hash is that of the source (first 12 digits of its sha256). Another source is "not read": unknown.
"""
KEYED_MLA = {
    "kind": "keyed",
    "skip_layers": ["num_hidden_layers", "num_nextn_predict_layers"],
    "stacked": [["gate_up_proj", "gate_proj", 0], ["gate_up_proj", "up_proj", 1], ["wk_weights_proj", "wk", 0], ["wk_weights_proj", "weights_proj", 1],
                ["fused_qkv_a_proj", "q_a_proj", 0], ["fused_qkv_a_proj", "kv_a_proj_with_mqa", 1]],
    "optional": ["fused_qkv_a_proj"],
}
LOADERS = {"deepseek_v2.DeepseekV2Model.load_weights": ("83579b19b333", KEYED_MLA)}
