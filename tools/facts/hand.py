"""What is read rather than measured. Hand-written loaders: what their loop does, in the words of src/vllm, for the source that was read.

Key: module.qualified name; the hash is that of the source (first 12 digits of its sha256). Another source is "not read": unknown.
"""
KEYED_MLA = {
    "kind": "keyed",
    "skip_layers": ["num_hidden_layers", "num_nextn_predict_layers"],
    "stacked": [["gate_up_proj", "gate_proj", 0], ["gate_up_proj", "up_proj", 1], ["wk_weights_proj", "wk", 0], ["wk_weights_proj", "weights_proj", 1],
                ["fused_qkv_a_proj", "q_a_proj", 0], ["fused_qkv_a_proj", "kv_a_proj_with_mqa", 1]],
    "optional": ["fused_qkv_a_proj"],
}
QKV = [[".qkv_proj", ".q_proj", "q"], [".qkv_proj", ".k_proj", "k"], [".qkv_proj", ".v_proj", "v"]]
LLAMA4 = {"kind": "keyed", "dialect": "llama4", "stacked": QKV + [[".gate_up_proj", ".gate_proj", 0], [".gate_up_proj", ".up_proj", 1]]}
# `auto`: what the generator does that is handed to AutoWeightsLoader; its mapper and the rest are measured.
# This one permutes rows of queries and keys.
LLAMA4_TEXT = {"kind": "auto", "permute": ["num_attention_heads", "num_key_value_heads"]}
LLAMA4_WRAPPER = {"kind": "keyed", "dialect": "llama4_wrapper", "stacked": [
    *[[f".self_attn{p}", f".self_attn{n}", i] for p, n, i in QKV],
    [".shared_expert.gate_up_proj", ".shared_expert.gate_proj", 0], [".shared_expert.gate_up_proj", ".shared_expert.up_proj", 1],
    [".feed_forward.gate_up_proj", ".feed_forward.gate_proj", 0], [".feed_forward.gate_up_proj", ".feed_forward.up_proj", 1]]}
MISTRAL = {"kind": "auto", "segments": [
    ["layers", "model.layers"], ["attention", "self_attn"], ["qscale_act", "input_scale"], ["qscale_weight", "weight_scale"],
    ["kv_fake_quantizer.qscale_act", "kv_scale"], ["q_fake_quantizer.qscale_act", "attn.q_scale"], ["k_fake_quantizer.qscale_act", "k_scale"],
    ["v_fake_quantizer.qscale_act", "v_scale"], ["wq", "q_proj"], ["wk", "k_proj"], ["wv", "v_proj"], ["wo", "o_proj"],
    ["attention_norm", "input_layernorm"], ["feed_forward", "mlp"], ["w1", "gate_proj"], ["w2", "down_proj"], ["w3", "up_proj"],
    ["ffn_norm", "post_attention_layernorm"], ["tok_embeddings", "model.embed_tokens"], ["output", "lm_head"], ["norm", "model.norm"]]}
# Layers beyond those that are built: the wrapper may take the features of an inner one.
BUILT = {"kind": "auto", "skip": ["encoder.layers.", "null", "null"]}
KEYED_ROWS = {"kind": "keyed", "dialect": "rows"}
GATE_UP = [["gate_up_proj", "gate_proj", 0], ["gate_up_proj", "up_proj", 1]]
GLM4_MOE = {"kind": "auto", "skip": ["layers.", "num_hidden_layers", "num_nextn_predict_layers"]}
GPT_OSS = {"kind": "keyed", "dialect": "gpt_oss", "stacked": QKV}
# AutoWeightsLoader behind a generator that does nothing here: the shared expert among the others only with AITER (ROCm).
AS_MEASURED = {"kind": "auto"}
# Names get this prefix, unless they begin with one of those.
TRANSFORMER = {"kind": "auto", "prefix": ["transformer.", ["transformer."]]}
GPT2 = {"kind": "auto", "prefix": ["transformer.", ["transformer.", "lm_head.", "score."]]}
# `any(name.startswith("model."))` of all names; names of one checkpoint are of one kind.
BERT = {"kind": "auto", "prefix": ["model.", ["model.", "lm_head."]], "mapper": {"prefix": [["lm_head.", None]]}}
ROBERTA = {"kind": "auto", "prefix": ["model.", ["roberta.", "lm_head."]], "mapper": {"prefix": [["lm_head.", None], ["roberta.", "model."]]}}
# Two-dimensional weights of these are stored the other way round.
CONV1D = {"kind": "auto", "turned": ["c_attn", "c_proj", "c_fc"]}
KEYED_GLM4_LITE = {**KEYED_MLA, "stacked": [r for r in KEYED_MLA["stacked"] if r[0] != "wk_weights_proj"]}
# A tensor of one dimension is a matrix of one row.
QWEN2_MOE = {"kind": "auto", "one_row": "mlp.shared_expert_gate"}
# Multi-head or multi-head latent attention: of the rows of both, those lead nowhere whose module is not there.
MHA = [[p[1:], n[1:], i] for p, n, i in QKV]
DEEPSEEK = {**KEYED_MLA, "stacked": KEYED_MLA["stacked"] + MHA, "optional": ["fused_qkv_a_proj", "qkv_proj"]}
# By key, a fused weight as a whole.
FALCON = {"kind": "keyed", "dialect": "whole"}
KEYED_AXK1 = {**DEEPSEEK, "stacked": KEYED_GLM4_LITE["stacked"] + MHA}
DEEPSEEK_V4 = {"kind": "keyed", "dialect": "deepseek_v4", "sinks": "num_attention_heads", "stacked": [
    ["gate_up_proj", "w1", 0], ["gate_up_proj", "w3", 1], ["attn.fused_wqa_wkv", "attn.wq_a", 0], ["attn.fused_wqa_wkv", "attn.wkv", 1],
    ["compressor.fused_wkv_wgate", "compressor.wkv", 0], ["compressor.fused_wkv_wgate", "compressor.wgate", 1]]}
# The drafter's layers are left out before AutoWeightsLoader sees them.
NO_DRAFTER = {"kind": "auto", "skip": ["layers.", "num_hidden_layers", "num_nextn_predict_layers"]}
NO_DRAFTER_OUTSIDE = {"kind": "auto", "skip": ["model.layers.", "num_hidden_layers", "num_nextn_predict_layers"]}
DOTTED_GATE_UP = [[f".{p}", f".{n}", i] for p, n, i in GATE_UP]
KEYED_HYV3 = {"kind": "keyed", "stacked": QKV + DOTTED_GATE_UP, "mapper": {"substr": [["router.gate.", "gate."]]}}
# Stacked rows are those of the class around it.
HYV4 = {"kind": "keyed", "dialect": "lenient", "banks": True, "sinks": "num_attention_heads", "stacked": [[".indexer.wk_weights_proj.", ".indexer.wk.", 0]],
        "mapper": {"substr": [["gate.e_score_correction_bias", "expert_bias"], ["router.gate.", "gate."], ["hc_fn", "hc_fn.weight"],
                              ["hc_head_fn", "hc_head_fn.weight"]]}}
# Experts one by one, or all in one tensor.
KEYED_GRANITE = {"kind": "keyed", "stacked": QKV, "banks": True, "mapper": {
    "substr": [["A_log", "A"]],
    "suffix": [[".block_sparse_moe.input_linear.weight", ".block_sparse_moe.experts.gate_up_proj"],
               [".block_sparse_moe.output_linear.weight", ".block_sparse_moe.experts.down_proj"],
               [".block_sparse_moe.router.layer.weight", ".block_sparse_moe.gate.weight"]]}}
MIMO_V2 = {"kind": "keyed", "dialect": "lenient", "stacked": [[p[1:], n[1:], i] for p, n, i in QKV + DOTTED_GATE_UP]}
MODERNBERT = {"kind": "keyed", "dialect": "lenient",
              "mapper": {"prefix": [["model.layers.", "encoder_layer.layers."], ["layers.", "encoder_layer.layers."], ["model.", ""]]}}
MODERNBERT_CLASSIFIER = {"kind": "keyed", "dialect": "lenient", "strict": ["classifier", "pooling."],
                         "mapper": {"prefix": [["model.layers.", "model.encoder_layer.layers."], ["head.", "pooling."]]}}
# `_create_pooling_model_cls`: names of the bare model, where there is one inside.
POOLING = {"kind": "auto", "prefix": ["model.", ["lm_head.", "score."]], "child": "model"}
OPENVLA = {"kind": "auto", "mapper": {
    "substr": [[".ls1.scale_factor", ".ls1.gamma"], [".ls2.scale_factor", ".ls2.gamma"]],
    "prefix": [["vision_backbone.featurizer.", "vision_backbone.dinov2_featurizer."],
               ["vision_backbone.fused_featurizer.", "vision_backbone.siglip_featurizer."]]}}
# Names of shards before the mapper; `stacked_before`, `regex_before` come before the rows that are measured.
VIT_MERGER = {"kind": "auto", "stacked_before": [[f"vit_merger.self_attn.{p}_proj.", ["vit_merger.self_attn.qkv_proj.", p]] for p in "qkv"]}
WHISPER_LAYERS = {"kind": "auto", "zero_bias": [".self_attn.k_proj.weight"]}


def gte_new(module):
    """Both halves of a fused weight change places before they are loaded one by one: it comes as a whole."""
    renames = [["mlp.up_gate_proj", "mlp.gate_up_proj"], *map(list, type(module).hf_to_vllm_mapper.orig_to_new_substr.items())]
    return {"kind": "keyed", "dialect": "whole", "mapper": {
        "regex": [["^classifier", None]], "substr": renames if module.add_pooling_layer else [*renames, ["pooler", None]]}}


# A correction is stored with a dimension of 1 before the experts, beside the gate.
ERNIE45_MOE = {"kind": "auto", "squeezed": "e_score_correction_bias",
               "regex_before": [["moe_statics\\.e_score_correction_bias", "gate.e_score_correction_bias"]]}
# Keys and values of a head lie together.
TELECHAT2 = {"kind": "auto", "halves": ["self_attn.key_value", ["self_attn.key", "self_attn.value"], "n_head", "hidden_size // n_head"]}
PLAIN_QKV = [[p[1:], n[1:], i] for p, n, i in QKV]
QKV_A = [["fused_qkv_a_proj", "q_a_proj", 0], ["fused_qkv_a_proj", "kv_a_proj_with_mqa", 1]]
OLD_ROTARY = [["rotary_emb.cos_cached", None], ["rotary_emb.sin_cached", None]]
# Its rows leave alone what has "mlp" and not "mlps" in its name: experts and their router.
LONGCAT = {"kind": "keyed", "stacked": QKV_A + DOTTED_GATE_UP, "mapper": {
    "regex": [["^(?!.*\\.experts\\.).*\\.kv_scale$", None]], "prefix": [["mtp.", None]]}}
# One projection of all experts in one tensor.
STEP3_BANKS = [[".moe.gate_proj.", ".moe.experts.w13_", 0], [".moe.up_proj.", ".moe.experts.w13_", 1], [".moe.down_proj.", ".moe.experts.w2_", 2]]
STEP3_TEXT = {"kind": "keyed", "dialect": "rows", "stacked": DOTTED_GATE_UP, "banked": STEP3_BANKS, "slices": ["share_q_dim", "head_dim"], "unquantized": True}
STEP3P5 = {"kind": "keyed", "dialect": "lenient", "stacked": PLAIN_QKV + GATE_UP, "banked": STEP3_BANKS, "skip": ["layers.", "num_hidden_layers", "null"],
           "mapper": {"substr": [["expert_bias", None]], "prefix": [["model.", ""]]}}
# Parameters of experts lie below `routed_experts`, which it does not know: it finds none of them.
DBRX = {"kind": "keyed", "dialect": "rows", "cache_scales": True,
        "mapper": {"regex": [["(w1|w2|v1)$", "\\1_weight"], ["mlp\\.(w1|v1)", "w13"], ["mlp\\.w2", "w2"]]}}
# With block-wise FP8 it pads the shared expert, with MXFP4 it renames.
BAILING_V3 = {"kind": "keyed", "dialect": "lenient", "cache_scales": True, "unquantized": True, "skip": ["model.layers.", "num_hidden_layers", "null"],
              "stacked": DOTTED_GATE_UP + [[".qkv_proj", f".{p}_proj", i] for i, p in enumerate("qkv")]
              + [[".qkvb_proj", f".{p}_proj", i] for i, p in enumerate("qkvb")] + [[f".{p}", f".{n}", i] for p, n, i in QKV_A],
              "mapper": {"substr": [[".attention.", ".self_attn."]]}}
# `attention.dense` is one thing in layers of linear attention and another in the rest.
BAILING_V25 = {"kind": "keyed", "dialect": "lenient", "cache_scales": True,
               "stacked": [["self_attn.dense", "attention.dense", 0], ["self_attn.o_proj", "attention.dense", 0]]
               + [[f".{p}", f".{n}", i] for p, n, i in QKV_A] + DOTTED_GATE_UP,
               "mapper": {"regex": [["attention\\.(?!dense)", "self_attn."]],
                          "substr": [[f"mlp.{a}", "mlp.gate.expert_bias"]
                                     for a in ("gate.e_score_correction_bias", "experts.e_score_correction_bias", "experts.expert_bias")],
                          "prefix": [["model.mtp", None], ["model.", ""]]}}
KIMI_ROWS = [[".in_proj_qkvgfab", f".{n}_proj", i] for i, n in enumerate(("q", "k", "v", "b", "f_a"))] \
    + [[".conv1d", f".{p}_conv1d", i] for i, p in enumerate("qkv")] + DOTTED_GATE_UP \
    + [[".fused_qkv_a_g_proj", f".{n}", i] for i, n in enumerate(("q_a_proj", "kv_a_proj_with_mqa", "g_proj"))] + [[f".{p}", f".{n}", i] for p, n, i in QKV_A]
# Its rows are tried where their parameters are; with a gate of full rank the class file says nothing.
KIMI = {"kind": "keyed", "cache_scales": True, "unquantized": True, "kda": True, "expert_names": ["w1", "w2", "w3"], "skip_layers": KEYED_MLA["skip_layers"],
        "stacked": KIMI_ROWS, "optional": list(dict.fromkeys(r[0] for r in KIMI_ROWS)),
        "mapper": {"substr": OLD_ROTARY, "suffix": [[".weight_packed", ".weight"]]}}
# Its gates have names of their own, and those without a place are dropped.
IQUEST_LOOP = {"kind": "keyed", "cache_scales": True, "skip": ["gate_projections.", "null", "null"],
               "stacked": PLAIN_QKV + [[f".mlp{p}", f".mlp{n}", i] for p, n, i in DOTTED_GATE_UP],
               "mapper": {"regex": [["^gate_projections\\.(?!\\d+\\.(weight|bias)$)", None],
                                    ["^(gate_projections\\.\\d+)\\.(weight|bias)$", "\\1.gate_proj.\\2"]]}}
K2_HORIZON = {"kind": "keyed", "dialect": "lenient", "cache_scales": True, "strict_experts": True, "exact": [".self_attn.v_experts."],
              "heads": "head_dim or hidden_size // num_attention_heads",
              "stacked": PLAIN_QKV + [["qk_proj", "q_proj", 0], ["qk_proj", "k_proj", 1]] + GATE_UP}
ERNIE45_VL = {"kind": "keyed", "dialect": "ernie45_vl", "cache_scales": True, "unquantized": True, "text_experts": "moe_num_experts[0]",
              "stacked": PLAIN_QKV + GATE_UP, "mapper": {"substr": [["mtp", None], ["vision_model", None], ["resampler_model", None]]}}


# Everything is one list first. The projection is loaded after the rest; where the config gives it no size, it is made for what comes.
PROJECTION = {"kind": "auto", "aside": {
    "module": "custom_text_proj", "within": ["custom_text_proj", "embedding_proj_layer"], "width": "hidden_size if hidden_size != null else text_config.hidden_size"}}
COLQWEN3 = {**PROJECTION, "outer": {"add": "model.", "any": ["language_model.", "visual."], "none": ["vlm.", "model."]}}
COLBERT = {"kind": "auto", "aside": {"module": "colbert_linear", "ending": "linear.weight", "width": "hidden_size"}}
# All but the projection goes to the model inside, whatever its name.
COLBERT_INNER = {**COLBERT, "mapper": {"prefix": [["", "model."]]}, "ignore_prefixes": [], "ignore_suffixes": [], "quant_aware": False}
# Of the head's names only these are known, the others are left out; all the rest goes to the model inside.
SPLADE = {"kind": "auto", "ignore_prefixes": [], "ignore_suffixes": [], "quant_aware": False, "mapper": {"regex": [
    ["^model\\.", ""], ["^bert\\.", ""], ["^mlm_head\\.", "model.mlm_head."],
    ["^cls\\.predictions\\.(transform\\.dense|decoder)\\.(weight|bias)$", "mlm_head.\\1.\\2"],
    ["^cls\\.predictions\\.transform\\.LayerNorm\\.(weight|bias)$", "mlm_head.layer_norm.\\1"], ["^mlm_head\\.transform\\.", "mlm_head."],
    ["^cls\\.predictions\\.", None], ["^(?!mlm_head\\.|model\\.mlm_head\\.)", "model."]]}}
# Two tables of the embedding, one after the other.
MOLMO = {"kind": "auto", "joined": {"from": ["wte.embedding", "wte.new_embedding"], "to": "model.embed_tokens.weight",
                                    "without": [["KeyError", "'embedding'"], ["KeyError", "'new_embedding'"]]}}
MOLMO2 = {"kind": "auto", "joined": {**MOLMO["joined"], "without": [
    ["ValueError", "Checkpoint is missing 'wte.embedding' or 'wte.new_embedding' weights required for Molmo2."]] * 2}}
# `routed`: names that begin so go to that part of the model; by its own `load_weights`, or as `by` says.
BY_NAME = {"kind": "keyed", "dialect": "rows"}
IF_THERE = {"kind": "keyed", "dialect": "lenient"}
PIXTRAL = {"kind": "routed", "untracked": True, "routes": [
    {"from": ["vision_encoder", "vision_tower"], "cut": 1, "to": "vision_encoder", "by": {
        **IF_THERE, "strict_rows": True, "mapper": {"substr": [[".wo.", ".o_proj."], [".w2.", ".down_proj."]]},
        "stacked": QKV + DOTTED_GATE_UP + [[".qkv_proj", f".w{p}", p] for p in "qkv"] + [[".gate_up_proj", ".w1", 0], [".gate_up_proj", ".w3", 1]]}},
    {"from": ["patch_merger"], "cut": 1, "to": "patch_merger", "by": BY_NAME},
    {"from": ["pre_mm_projector_norm"], "cut": 1, "to": "pre_mm_projector_norm", "by": BY_NAME},
    {"from": ["vision_language_adapter", "multi_modal_projector"], "cut": 1, "to": "vision_language_adapter", "by": IF_THERE},
    {"from": ["language_model."], "cut": 1, "to": "language_model"},
    {"from": [""], "to": "language_model"}]}
NANO = {"kind": "routed", "untracked": True, "routes": [
    {"from": ["language_model"], "cut": 1, "to": "language_model"},
    {"from": ["mlp1"], "cut": 1, "to": "mlp1", "by": BY_NAME, "late": True},
    {"from": ["vision_model.radio_model."], "cut": 1, "to": "vision_model", "late": True},
    {"from": ["sound"], "to": "sound_encoder", "late": True, "asserted": "not lm_only"}]}
# The scales of layers that RADIO stores are passed over.
RADIO = {**IF_THERE, "own": ["ls1", "ls2", "summary_idxs"], "mapper": {"regex": [
    ["^(?!radio_model\\.model\\.(patch_generator|blocks)\\.)", None], ["^radio_model\\.model\\.blocks\\.\\d+\\.ls[12](\\.|$)", None],
    ["^radio_model\\.", ""], ["^model\\.blocks\\.", "model.encoder.layers."]]}}
PARAKEET = {**IF_THERE, "strict": [""], "stranger": "Unknown weight: {}", "buffers": True, "mapper": {
    "regex": [["^sound_encoder\\.encoder\\.feature_extractor\\.", None], ["^(?!sound_encoder\\.|sound_projection\\.)", None],
              ["^sound_encoder\\.", ""], ["^sound_projection\\.", "projection."],
              {"if": "not sound_config.convolution_bias", "from": "\\.conv\\.(pointwise_conv[12]|depthwise_conv)\\.bias$"}]}}
# Mistral's names; what the whisper encoder of its own makes of them.
WHISPER = "^whisper_encoder\\."
VOXTRAL_ENCODER = {**BY_NAME, "optional": [".mlp.gate_up_proj", ".mlp.down_proj"],
                   "stacked": PLAIN_QKV + [[".mlp.gate_up_proj", ".mlp.fc1", 0], [".mlp.gate_up_proj", ".mlp.fc3", 1], [".mlp.down_proj", ".mlp.fc2", 0]],
                   "mapper": {"regex": [
                       [WHISPER + "conv_layers\\.0\\.(?:conv\\.)?(weight|bias)$", "whisper_encoder.conv1.\\1"],
                       [WHISPER + "conv_layers\\.1\\.(?:conv\\.)?(weight|bias)$", "whisper_encoder.conv2.\\1"],
                       [WHISPER + "transformer\\.layers\\.(\\d+)\\.attention\\.w([qkv])\\.(weight|bias)$", "whisper_encoder.layers.\\1.self_attn.\\2_proj.\\3"],
                       [WHISPER + "transformer\\.layers\\.(\\d+)\\.attention\\.wo\\.(weight|bias)$", "whisper_encoder.layers.\\1.self_attn.out_proj.\\2"],
                       [WHISPER + "transformer\\.layers\\.(\\d+)\\.attention_norm\\.(weight|bias)$", "whisper_encoder.layers.\\1.self_attn_layer_norm.\\2"],
                       [WHISPER + "transformer\\.layers\\.(\\d+)\\.feed_forward\\.w([123])\\.(weight|bias)$", "whisper_encoder.layers.\\1.mlp.fc\\2.\\3"],
                       [WHISPER + "transformer\\.layers\\.(\\d+)\\.ffn_norm\\.(weight|bias)$", "whisper_encoder.layers.\\1.final_layer_norm.\\2"],
                       [WHISPER + "transformer\\.norm\\.(weight|bias)$", "whisper_encoder.layer_norm.\\1"]]}}
MM = "^mm_(?:streams_embeddings.embedding_module|whisper_embeddings)"
VOXTRAL = {"kind": "routed", "own": ["whisper_encoder.embed_positions.weight"], "zero_bias": [".wk.weight"], "mapper": {"regex": [
    # Marked, so that what is the encoder's stays known.
    [MM + "(?!\\.tok_embeddings|\\.audio_language_projection)\\.?", "<encoder>."],
    [MM + "\\.", ""], ["^audio_language_projection\\.", "audio_language_adapter."],
    ["^audio_language_adapter\\.0\\.weight$", "audio_language_adapter.w_in.weight"],
    ["^audio_language_adapter\\.2\\.weight$", "audio_language_adapter.w_out.weight"]]}, "routes": [
        {"from": ["<encoder>."], "cut": 1, "to": "whisper_encoder", "by": VOXTRAL_ENCODER},
        {"from": [f"audio_language_adapter.{p}.weight" for p in ("w_in", "w_out")], "if": "not lm_only", "to": "", "by": IF_THERE},
        {"from": [""], "to": "language_model"}]}
# Parameters are copied as a whole, whatever their own loader would do.
COPIED = {**IF_THERE, "strict": [""], "exact": [""]}
NEMOTRON_PARSE = {"kind": "routed", "untracked": True, "routes": [
    {"from": ["encoder"], "cut": 1, "to": "encoder", "late": True}, {"from": ["decoder"], "cut": 1, "to": "decoder", "late": True},
    {"from": ["lm_head"], "cut": 1, "to": "lm_head", "by": COPIED}]}
NEMOTRON_PARSE_ENCODER = {"kind": "routed", "routes": [
    {"from": ["model_encoder"], "cut": 1, "to": "model_encoder", "late": True}, {"from": [""], "to": "", "by": COPIED}]}
NEMOTRON_PARSE_DECODER = {"kind": "keyed", "dialect": "whole", "mapper": {"regex": [["^embed_positions", None]]}, "stacked": [
    *[[f".self_attn{p}", f".self_attn{n}", i] for p, n, i in QKV], *[[".encoder_attn.kv_proj", f".encoder_attn.{p}_proj", i] for i, p in enumerate("kv")]]}
COHERE_ASR = {"kind": "auto", "regex_before": [
    ["^(?!log_softmax\\.mlp\\.layer0\\.(?:weight|bias)$)", "model."], ["^model\\.transf_decoder\\._decoder", "model.decoder"],
    ["^model\\.transf_decoder\\._embedding", "model.decoder.embedding"], ["second_sub_layer\\.query_net", "second_sub_layer.q_proj"],
    ["^log_softmax\\.mlp\\.layer0\\.", "proj_out."]]}
COHERE_ASR_MODEL = {"kind": "keyed", "dialect": "whole", "buffers": True, "stacked": [
    *[[".first_sub_layer.qkv_proj", f".first_sub_layer.{n}_net", i] for n, i in (("query", "q"), ("key", "k"), ("value", "v"))],
    *[[".second_sub_layer.kv_proj", f".second_sub_layer.{n}_net", i] for n, i in (("key", "k"), ("value", "v"))]]}
# Tensors of three dimensions are those of all experts.
MOONDREAM3 = {**IF_THERE, "ranked": [[3, f".mlp.{p}.weight", f".mlp.{p}_weight"] for p in ("fc1", "fc2")], "mapper": {
    "regex": [["^model\\.", ""], ["^text\\.wte$", "text.wte.weight"]],
    "substr": [["vision.proj_mlp.", "vision_proj."], ["text.lm_head.", "lm_head."], [".attn.qkv.", ".attn.qkv_proj."], [".attn.proj.", ".attn.out_proj."],
               *[[f".attn.tau.{p}", f".attn.tau_{p}"] for p in ("alpha", "wq", "wv")], [".mlp.router.", ".mlp.gate."]]}}
MINIMAX_M3 = {**IF_THERE, "cache_scales": True, "expert_names": ["w1", "w2", "w3"], "mapper": {"substr": [["mtp.", None], ["weight_scale_inv", "weight_scale"]]},
              "stacked": QKV + [[".qkv_proj", ".index_q_proj", 3], [".qkv_proj", ".index_k_proj", 4]] + DOTTED_GATE_UP}
# All is collected first.
BAGEL = {"kind": "routed", "mapper": {"regex": [["moe_gen|latent_pos_embed|llm2vae|vae2llm|time_embedder", None], ["^(?:decoder|encoder)\\.", None]]}, "routes": [
    {"from": [""], "to": "", "late": True, "by": {
        "kind": "auto", "quant_aware": True, "mapper": {"prefix": [["vit_pos_embed.pos_embed", None]]},
        "patches": ["patch_embedding.weight", "vit_config.num_channels", "vit_config.patch_size"]}}]}


def voxtral(module):
    """Of the norms that `ada_rms_norm_t_cond` adds to the language model its class file says nothing."""
    return {"kind": "voxtral"} if getattr(module.config.text_config, "ada_rms_norm_t_cond", False) else VOXTRAL


# The mapper of the language model, moved below it, before AutoWeightsLoader. Names are sorted then: of several faults vLLM may meet
# another one first.
BLIND = "lm_only or not (vision_n_layers > 0)"
SCALE = "(\\.experts\\.\\d+\\.w[123]%s)\\.scale$"
DEEPSEEK_V4_VL = {"kind": "routed", "routes": [{"from": [""], "to": "", "late": True, "by": {"kind": "auto"}}], "mapper": {
    "regex": [{"if": "expert_dtype != 'fp8'", "from": SCALE % "\\.base_layer", "to": "\\1.weight_scale"}, {"if": "expert_dtype != 'fp8'", "from": SCALE % "", "to": "\\1.weight_scale"},
              {"if": "expert_dtype == 'fp8'", "from": SCALE % "\\.base_layer", "to": "\\1.weight_scale_inv"}, ["\\.scale$", ".weight_scale_inv"]],
    "substr": [[".shared_experts.w2", ".shared_experts.down_proj"], ["mtp.", None]],
    "prefix": [*([p, f"language_model.model.{p}"] for p in ("layers.", "embed.", "norm.", "hc_head", "mtp.")),
               *({"if": BLIND, "from": p, "to": None} for p in ("vision.", "aligner.", "image_"))],
    "suffix": [["head.weight", "language_model.lm_head.weight"], ["embed.weight", "embed_tokens.weight"],
               [".ffn.gate.bias", ".ffn.gate.e_score_correction_bias"]]}}


def minicpm(module):
    """Experts of its own kind (`MiniCPMMoE`) have no words."""
    return {"kind": "minicpm"} if module.num_experts else {
        "kind": "keyed", "stacked": PLAIN_QKV + GATE_UP, "mapper": {"substr": OLD_ROTARY}}


def bert_with_rope(module):
    """Rows of the gate where the activation has one."""
    m = type(module).hf_to_vllm_mapper
    return {"kind": "keyed", **({"stacked": GATE_UP} if module.config.hidden_act in ("silu", "geglu") else {}), "mapper": {
        "substr": [*map(list, m.orig_to_new_substr.items()), *([] if module.add_pooling_layer else [["pooler", None]])],
        "prefix": [*map(list, m.orig_to_new_prefix.items())]}}


def jina_roberta(module):
    """A weight and the LoRA tensors of its tasks become one."""
    table = bert_with_rope(module)
    rows = [["\\.parametrizations(\\.[^.]+)\\.original$", "\\1"], ["\\.parametrizations\\.[^.]+\\.0\\.lora_[AB]$", None]]
    return {**table, "mapper": {"regex": rows, **table["mapper"]}}


# vLLM 0.30: names that it has no place for are dropped without a word. `lenient`: nothing of it is measured, all is in the class file.
GEMMA4 = {"kind": "auto", "lenient": True}
GEMMA4_TEXT = {"kind": "auto", "mapper": {
    "regex": [["language_model\\.", ""], ["\\.router\\.per_expert_scale", ".moe.per_expert_scale"], ["(?<!\\.moe)\\.experts\\.", ".moe.experts."]],
    "substr": [["audio_tower.", None], ["vision_tower.", None], ["embed_audio.", None], ["embed_vision.", None]]}}
LOADERS = {
    "gemma4.Gemma4Model.load_weights": ("32b62235387f", GEMMA4),
    "gemma4.Gemma4ForCausalLM.load_weights": ("429b8461c557", GEMMA4_TEXT),
    "deepseek_v2.DeepseekV2Model.load_weights": ("83579b19b333", DEEPSEEK),
    "llama4.Llama4Model.load_weights": ("d4fa57e9bdc9", LLAMA4),
    "llama4.Llama4ForCausalLM.load_weights": ("507ce68d4f16", LLAMA4_TEXT),
    "mllama4.Llama4ForConditionalGeneration.load_weights": ("e15e991dc4c0", LLAMA4_WRAPPER),
    "mistral.MistralForCausalLM.load_weights": ("b371987c884f", MISTRAL),
    "siglip.SiglipVisionTransformer.load_weights": ("b2b79753be40", BUILT),
    "glm4_moe.Glm4MoeModel.load_weights": ("a82953f916e3", GLM4_MOE),
    "qwen3_next.Qwen3NextModel.load_weights": ("b9459aaeb71e", AS_MEASURED),
    "qwen3_5.Qwen3_5Model.load_weights": ("aa52f4f36b7a", AS_MEASURED),
    "qwen2_moe.Qwen2MoeForCausalLM.load_weights": ("1a88cd183118", QWEN2_MOE),
    "model.DeepseekV4Model.load_weights": ("64e681f579c1", DEEPSEEK_V4),
    "glm4_moe_lite.Glm4MoeLiteModel.load_weights": ("9d872a54e359", KEYED_GLM4_LITE),
    "model.DeepseekV32Model.load_weights": ("59265a080f57", KEYED_MLA),
    "bloom.BloomForCausalLM.load_weights": ("0ea4806e3dae", TRANSFORMER),
    "bloom.BloomModel.load_weights": ("67a60617be84", AS_MEASURED),
    "gpt2.GPT2LMHeadModel.load_weights": ("0ea4806e3dae", GPT2),
    "gpt2.GPT2Model.load_weights": ("d7f61edadda5", CONV1D),
    # A bias of the head gets its place when it comes.
    "causal.CausalMixin.load_weights": ("3e6c209e46e8", {"kind": "auto", "head_bias": "lm_head"}),
    "bert.BertEmbeddingModel.load_weights": ("c49dfda86dd7", BERT),
    "roberta.RobertaEmbeddingModel.load_weights": ("ca03354f1168", ROBERTA),
    "falcon.FalconModel.load_weights": ("6e67696a9dce", FALCON),
    "AXK1.AXK1Model.load_weights": ("b84c691b17b0", KEYED_AXK1),
    # `_normalize_lm_head` changes values only.
    "bailing_moe.BailingMoeForCausalLM.load_weights": ("4bef9569f96d", AS_MEASURED),
    # The mean of a bias is taken off, no more.
    "sarvam.SarvamMoEForCausalLM.load_weights": ("b96982152a27", AS_MEASURED),
    # Likewise; the other puts halves of a tensor in turns.
    "param2moe.Param2MoEModel.load_weights": ("022c4cacebe9", AS_MEASURED),
    "openai_privacy_filter.OpenAIPrivacyFilterForTokenClassification.load_weights": ("27c54d4c058d", AS_MEASURED),
    "minicpmv4_6.MiniCPMV4_6ForConditionalGeneration.load_weights": ("a6c47e34ee93", VIT_MERGER),
    "glmasr.GlmAsrEncoder.load_weights": ("5a91562956f3", {"kind": "auto", "zero_bias": [".k_proj.weight"]}),
    "moss_transcribe_diarize.MossTranscribeDiarizeWhisperEncoder.load_weights": ("5a91562956f3", {"kind": "auto", "zero_bias": [".k_proj.weight"]}),
    "ultravox.UltravoxWhisperEncoder.load_weights": ("27d27c5cca63", WHISPER_LAYERS),
    "ultravox.UltravoxTransformerProjector.load_weights": ("27d27c5cca63", WHISPER_LAYERS),
    "bert_with_rope.BertWithRope.load_weights": ("e0347bc076a5", bert_with_rope),
    "bert_with_rope.JinaRobertaModel.load_weights": ("6d5d7eb6f5ca", jina_roberta),
    "colqwen3.ColQwen3Model.load_weights": ("8322473b629c", COLQWEN3),
    "colqwen3_5.ColQwen3_5Model.load_weights": ("69b4eadb4ddc", PROJECTION),
    "colpali.ColPaliModel.load_weights": ("b6432afadf74", PROJECTION),
    "colbert.ColBERTModel.load_weights": ("9e527365db2d", COLBERT),
    "colbert.ColBERTJinaRobertaModel.load_weights": ("d3ceec6c82e3", COLBERT),
    "colbert.ColBERTModernBertModel.load_weights": ("84a1a8460e69", COLBERT_INNER),
    "colbert.ColBERTLfm2Model.load_weights": ("ceca5296f4e8", COLBERT_INNER),
    "bert.BertSpladeSparseEmbeddingModel.load_weights": ("cffb23bc773c", SPLADE),
    "bert.BertForMaskedLM.load_weights": ("cf58f82884f0", {"kind": "auto", "filled": "mlm_head.decoder.weight"}),
    "bert_with_rope.GteNewModel.load_weights": ("58702d20b5ec", gte_new),
    "openpangu.OpenPanguModel.load_weights": ("e905029921c8", NO_DRAFTER),
    "hy_v3.HYV3ForCausalLM.load_weights": ("cf196eee8609", NO_DRAFTER_OUTSIDE),
    "model.HYV4Model.load_weights": ("f69ab2b7a758", HYV4),
    # LoRA tensors of the task are added to the weights.
    "jina.JinaEmbeddingsV5DecoderModel.load_weights": ("03ab584bd42c", AS_MEASURED),
    "hy_v3.HYV3Model.load_weights": ("344766b96635", KEYED_HYV3),
    "ernie45_moe.Ernie4_5_MoeModel.load_weights": ("a76148f43eec", ERNIE45_MOE),
    "minicpm.MiniCPMModel.load_weights": ("6c5cc1172146", minicpm),
    # A slice that is the whole on one rank.
    "laguna.LagunaModel.load_weights": ("2b71fa2cc744", AS_MEASURED),
    "sarvam.SarvamMLAModel.load_weights": ("f1da81b5e5b6", AS_MEASURED),
    "longcat_flash.FlashModel.load_weights": ("9d7d26baa110", LONGCAT),
    "longcat_flash_ngram.FlashNgramModel.load_weights": ("d340c79c5803", {**LONGCAT, "tables": "int(ngram_vocab_size_ratio * vocab_size)"}),
    "telechat2.TeleChat2Model.load_weights": ("4f5afe0796db", TELECHAT2),
    "step3p5.Step3p5Model.load_weights": ("5892317e64b6", STEP3P5),
    "step3_text.Step3TextModel.load_weights": ("5d7b97ddd728", STEP3_TEXT),
    "dbrx.DbrxModel.load_weights": ("577243abf2c5", DBRX),
    "bailing_moe_v3.BailingMoeV3ForCausalLM.load_weights": ("2d30a374fd3e", BAILING_V3),
    "bailing_moe_linear.BailingMoeV25Model.load_weights": ("b1fd68496495", BAILING_V25),
    "iquest_loopcoder.IQuestLoopCoderModel.load_weights": ("4040f5b58607", IQUEST_LOOP),
    "model.KimiLinearModel.load_weights": ("52fd4137371e", KIMI),
    "k2_horizon.K2HorizonModel.load_weights": ("153e5ab6f88f", K2_HORIZON),
    "ernie45_vl_moe.Ernie4_5_VLMoeForCausalLM.load_weights": ("5ad84003a53e", ERNIE45_VL),
    "molmo.MolmoForCausalLM.load_weights": ("31a22aa03c52", MOLMO),
    "molmo2.Molmo2ForConditionalGeneration.load_weights": ("31a22aa03c52", MOLMO2),
    "pixtral.PixtralForConditionalGeneration.load_weights": ("ce20b26cd711", PIXTRAL),
    "nano_nemotron_vl.NemotronH_Nano_VL_V2.load_weights": ("834c46a822f5", NANO),
    "radio.RadioModel.load_weights": ("de3eca20ad86", RADIO),
    "parakeet.ProjectedParakeet.load_weights": ("ee7a1e5009ea", PARAKEET),
    "voxtral.VoxtralForConditionalGeneration.load_weights": ("45b863ef4bde", voxtral),
    "bagel.BagelForConditionalGeneration.load_weights": ("0f5a4823d35f", BAGEL),
    "nemotron_parse.NemotronParseForConditionalGeneration.load_weights": ("48231c0f5f7e", NEMOTRON_PARSE),
    "nemotron_parse.RadioWithNeck.load_weights": ("836166712fce", NEMOTRON_PARSE_ENCODER),
    "nemotron_parse.MBartDecoderNoPos.load_weights": ("37585736cded", NEMOTRON_PARSE_DECODER),
    "cohere_asr.CohereAsrForConditionalGeneration.load_weights": ("0ff31dbdec44", COHERE_ASR),
    "cohere_asr.CohereASRModel.load_weights": ("b6dc94954ce9", COHERE_ASR_MODEL),
    "moondream3.Moondream3ForCausalLM.load_weights": ("bd9ad8189e5d", MOONDREAM3),
    "model.MiniMaxM3Model.load_weights": ("230152f2853a", MINIMAX_M3),
    "vl_model.DeepseekV4ForConditionalGeneration.load_weights": ("1ae369433aa1", DEEPSEEK_V4_VL),
    "vision_tower.MiniMaxVLVisionModel.load_weights": ("1fc4e8922888", {**BY_NAME, "stacked": [[f"{p[1:]}.", f"{n[1:]}.", i] for p, n, i in QKV]}),
    "granitemoehybrid.GraniteMoeHybridModel.load_weights": ("8cc876906e88", KEYED_GRANITE),
    "mimo_v2.MiMoV2Model.load_weights": ("e3ac72dce42f", MIMO_V2),
    "modernbert.ModernBertModel.load_weights": ("12aa66fb832a", MODERNBERT),
    "modernbert.ModernBertForSequenceClassification.load_weights": ("a8ea55efaaed", MODERNBERT_CLASSIFIER),
    "gpt2.GPT2ForSequenceClassification.load_weights": ("6c752096b7d1", GPT2),
    "adapters._create_pooling_model_cls.<locals>.ModelForPooling.load_weights": ("fcff0ca734e5", POOLING),
    "adapters.as_seq_cls_model.<locals>.ModelForSequenceClassification.load_weights": ("a6680007cf7f", POOLING),
    "gpt_oss.GptOssModel.load_weights": ("1959a135ae8e", GPT_OSS),
    "clip.CLIPVisionTransformer.load_weights": ("3a18845ef00b", BUILT),
    "blip.BlipVisionModel.load_weights": ("c27507725de0", BUILT),
    "idefics2_vision_model.Idefics2VisionTransformer.load_weights": ("e129d5627f56", BUILT),
    "lfm2_siglip2.Siglip2Model.load_weights": ("252462877b85", {**BUILT, "skip": ["vision_model.encoder.layers.", "null", "null"]}),
    "pixtral.PixtralHFVisionModel.load_weights": ("1a156ed928c2", {
        **KEYED_ROWS, "stacked": QKV + [[f".{p}", f".{n}", i] for p, n, i in GATE_UP], "skip": ["transformer.layers.", "null", "null"]}),
    "openpangu_vl.OpenPanguVisionTransformer.load_weights": ("51fd88bbcb23", {
        **KEYED_ROWS, "stacked": [["attn.qkv.", f"attn.{p}.", p] for p in "qkv"] + GATE_UP}),
    "openvla.OpenVLAForActionPrediction.load_weights": ("4bc092487699", OPENVLA),
    "ernie45_vl.Ernie4_5_VisionTransformer.load_weights": ("bf5aa356acf6", KEYED_ROWS),
    "ernie45_vl.VariableResolutionResamplerModel.load_weights": ("58e86122d2c8", {"kind": "keyed", "dialect": "lenient"}),
    "whisper.WhisperForConditionalGeneration.load_weights": ("fff50d8be107", {
        "kind": "auto", "zero_bias": [".k_proj.weight", ".k_proj.weight_packed"]}),
}

# These do something after AutoWeightsLoader is through, which a call without weights does not show: LOADERS says what.
AFTER = {"bert.BertForMaskedLM.load_weights"}

# Refusals of constructors whose condition the search does not find: what the message looks like, and the row of `refuses`.
REFUSALS = [
    (r"'XLMRobertaConfig' object has no attribute 'position_embedding_type'",
     {"if": "architecture == 'XLMRobertaModel' and position_embedding_type == null", "error": "AttributeError",
      "message": "'XLMRobertaConfig' object has no attribute 'position_embedding_type'", "pointer": "/position_embedding_type", "early": True}),
    (r"cannot assign module before Module.__init__",
     {"if": "colbert_dim or dim or projection_dim", "error": "AttributeError", "message": "cannot assign module before Module.__init__() call",
      "pointer": "/dim"}),
    (r"ColQwen3.5 checkpoints must declare",
     {"if": "retrieval_attention_contract not in ['causal', 'bidirectional']", "error": "ValidationError",
      "message": "ColQwen3.5 checkpoints must declare retrieval_attention_contract as 'causal' or 'bidirectional'",
      "pointer": "/retrieval_attention_contract"}),
    (r"num_heads \(\d+\) is not divisible by num_kv_heads",
     {"if": "num_key_value_heads != null and num_attention_heads % num_key_value_heads != 0", "error": "AssertionError",
      "message": "num_heads ({num_attention_heads}) is not divisible by num_kv_heads ({num_key_value_heads})", "pointer": "/num_key_value_heads"}),
    (r"Sliding window for some but all layers",
     {"if": "'sliding_attention' in layer_types and 'full_attention' in layer_types and max_window_layers != num_hidden_layers",
      "error": "AssertionError",
      "message": "Sliding window for some but all layers is not supported. This model uses sliding window but `max_window_layers` = "
                 "{max_window_layers} is less than `num_hidden_layers` = {num_hidden_layers}. Please open an issue to discuss this feature.",
      "pointer": "/max_window_layers"}),
    (r"'Glm4MoeConfig' object has no attribute 'head_dim'",
     {"if": "head_dim == null", "error": "AttributeError", "message": "'Glm4MoeConfig' object has no attribute 'head_dim'", "pointer": "/head_dim"}),
    (r"range\(\) arg 3 must not be zero",
     {"if": "interleave_moe_layer_step == 0", "error": "ValidationError", "message": "range() arg 3 must not be zero",
      "pointer": "/interleave_moe_layer_step"}),
    (r"integer modulo by zero",
     {"if": "no_rope_layer_interval == 0", "error": "ZeroDivisionError", "message": "integer modulo by zero", "pointer": "/no_rope_layer_interval"}),
    (r"list index out of range",
     {"if": "no_rope_layers != null and len(no_rope_layers) < num_hidden_layers", "error": "IndexError", "message": "list index out of range",
      "pointer": "/no_rope_layers"}),
]
