"""What the source of a class says that the search does not find by itself. Nothing here is believed: an expression gets into a class file
only where it explains what was built, in every sample and in new configs."""

import random


def indices(rng: random.Random, d):
    """Indices of layers as a text, some of them beyond the last."""
    n = d.get("num_hidden_layers") or 4
    return ",".join(str(i) for i in sorted(rng.sample(range(n + 2), rng.randint(1, n)))) if rng.random() < .8 else None


def blocks(rng, d):
    """Blocks of a searched architecture (Nemotron): heads of a group, width of the MLP, or neither."""
    heads = d.get("num_attention_heads") or 8
    return [{"attention": {"n_heads_in_group": rng.choice([k for k in range(1, heads + 1) if heads % k == 0]), "no_op": False, "replace_with_linear": False}
             if rng.random() < .6 else {"n_heads_in_group": None, "no_op": True, "replace_with_linear": False},
             "ffn": {"ffn_mult": rng.choice((.5, 1.3125, 2.625, 5.25, rng.uniform(.3, 4))), "no_op": False, "replace_with_linear": False}
             if rng.random() < .7 else {"ffn_mult": None, "no_op": True, "replace_with_linear": False}} for _ in range(d["num_hidden_layers"])]


def groups(rng, d):
    heads = d.get("num_attention_heads") or 8
    return rng.choice([k for k in range(2, heads + 1) if heads % k == 0])


def other_attention(rng, d):
    """Step 3.5: the sizes of the layers with a window, or whichever it says."""
    heads = rng.choice((2, 4, 6, 8))
    return None if rng.random() < .2 else {"attention_type": rng.choice(("sliding_attention", "sliding_attention", "full_attention")),
                                           "num_attention_heads": heads, "num_attention_groups": rng.choice((1, 2, heads)),
                                           "head_dim": rng.choice((16, 32, 64, 128))}


def words_of(rng, d, *words):
    """One of them for every layer, or nothing."""
    return [rng.choice(words) for _ in range(d["num_hidden_layers"])] if rng.random() < .7 else None


def some_hybrid(rng, d):
    n = d["num_hidden_layers"]
    at = rng.sample(range(n), rng.randint(1, n))
    return ["hybrid" if i in at else rng.choice(("mamba", "linear_attention")) for i in range(n)]


COLQWEN = "embed_dim or dims or dim or projection_dim or colbert_dim"
COLPALI = "embedding_dim or embed_dim or dim or projection_dim or colbert_dim"
# Layers of the other kind of attention have sizes of their own.
OTHER = "attention_other_setting and layer_types and layer_types[layer] == attention_other_setting.attention_type"
STEP3P5 = ["layer in (ints(moe_layers_enum) if moe_layers_enum != null else range(1, num_hidden_layers, 1))",
           *(f"attention_other_setting.{f} if {OTHER} and attention_other_setting.{f} else {f}" for f in ("num_attention_heads", "num_attention_groups")),
           f"(attention_other_setting.head_dim if {OTHER} else head_dim) or head_dim or hidden_size // "
           f"(attention_other_setting.num_attention_heads if {OTHER} and attention_other_setting.num_attention_heads else num_attention_heads)"]

# Tokens to one of a compressed key, in a layer of DeepSeek V4.
RATIO = "max(1, compress_ratios[layer])"
V4 = [RATIO, f"{RATIO} == 4", f"{RATIO} > 1", f"head_dim * (2 if {RATIO} == 4 else 1)", "64 if num_attention_heads <= 64 else 128", "(2 + hc_mult) * hc_mult",
      "num_attention_heads * head_dim // o_groups", "topk_method == 'noaux_tc' and (layer >= num_hash_layers or vision_n_layers > 0)", "vision_n_layers > 0",
      "3 * vision_patch_size * vision_patch_size", "vision_dim * vision_downsample_ratio * vision_downsample_ratio"]

# Class → expressions over its config (and `layer`), tried beside the fields.
EXPRESSIONS = {
    "Step3TextForCausalLM": ["layer in (ints(moe_layers_enum) if moe_layers_enum != null else range(1, num_hidden_layers, 1))"],
    "Step3VLForConditionalGeneration": ["layer in (ints(text_config.moe_layers_enum) if text_config.moe_layers_enum != null else "
                                        "range(1, text_config.num_hidden_layers, 1))"],
    # Text models.
    # A map of attributes that the model itself sets hides these from the watch on what is read.
    "TeleChat2ForCausalLM": ["n_layer", "ffn_hidden_size", "n_head"],
    "SarvamMLAForCausalLM": ["layer >= first_k_dense_replace and (layer - first_k_dense_replace) % moe_layer_freq == 0"],
    "Ernie4_5_MoeForCausalLM": ["(use_moe if use_moe != null else moe_num_experts > 0) and (layer + 1) % moe_layer_interval == 0 and "
                                "layer >= moe_layer_start_index and layer <= moe_layer_end_index", "moe_num_shared_experts > 0"],
    "DeciLMForCausalLM": ["block_configs[layer].attention.no_op", "block_configs[layer].ffn.no_op",
                          "num_attention_heads // block_configs[layer].attention.n_heads_in_group",
                          "round_up(int(2 * block_configs[layer].ffn.ffn_mult * hidden_size / 3), 256)"],
    "MistralLarge3ForCausalLM": ["n_routed_experts != null and layer >= first_k_dense_replace and layer % moe_layer_freq == 0"],
    "Step3p5ForCausalLM": STEP3P5,
    # Read while weights are loaded, which nobody watches.
    "HYV4ForCausalLM": ["num_nextn_predict_layers", "layer_types != null and layer_types[layer] == 'indexed_attention'",
                        "layer_types != null and layer_types[layer] == 'indexed_attention' and "
                        "indexer_types[layer] == 'full'"],
    **dict.fromkeys(("BailingMoeV3ForCausalLM", "BailingMoeV3VLForConditionalGeneration"), [
        f"(layer + 1) % {t}layer_group_size == 0 or layer >= {t}num_hidden_layers // {t}layer_group_size * {t}layer_group_size" for t in ("", "text_config.")]),
    "MuseGlimmerForCausalLM": ["text_config.no_rope_layers[layer] == 1 if text_config.no_rope_layers != null else (text_config.num_hidden_layers - 1 - layer) % 4 != 0",
                               "vision_config.patch_temporal * 3 * vision_config.patch_size * vision_config.patch_size", "has_vision == null or has_vision"],
    # The shared blocks take turns; each has an adapter of its own for every layer that it serves.
    "Zamba2ForCausalLM": ["place(hybrid_layer_ids, layer) < num_mem_blocks", "place(hybrid_layer_ids, layer) >= num_mem_blocks",
                          "hybrid_layer_ids[place(hybrid_layer_ids, layer) % num_mem_blocks]", "sub % num_mem_blocks == place(hybrid_layer_ids, layer)",
                          "len(hybrid_layer_ids)", "len(layers_block_type)", "layers_block_type[layer] == 'hybrid'",
                          "place(hybrid_layer_ids, layer) * (len(hybrid_layer_ids) + num_mem_blocks - 1) // num_mem_blocks + sub // num_mem_blocks"],
    **dict.fromkeys(("DeepseekV4ForCausalLM", "DeepseekV4ForConditionalGeneration"), V4),
    # Embedding, ranking.
    **dict.fromkeys(("ColBERTModernBertModel", "ColBERTLfm2Model"), ["colbert_dim or dim or projection_dim", "(colbert_dim or dim or projection_dim) != null"]),
    "ColQwen3Model": [f"{COLQWEN}", f"({COLQWEN}) != null"],
    "ColQwen3_5Model": [f"{COLQWEN} or 128"],
    "ColPaliModel": [f"{COLPALI}", f"({COLPALI}) != null"],
    "ColModernVBertForRetrieval": ["quant in ['bitsandbytes', 'torchao'] or (vision_config.hidden_size % 64 == 0 and vision_config.intermediate_size % 64 == 0)"],
    "SiglipEmbeddingModel": [f"quant in ['bitsandbytes', 'torchao'] or ({t}hidden_size % 64 == 0 and {t}intermediate_size % 64 == 0)"
                             for t in ("text_config.", "vision_config.")],
    "NomicBertModel": ["n_embd", "n_inner", "n_layer", "moe_every_n_layers > 0 and layer % moe_every_n_layers == 1", "activation_function == 'swiglu'",
                       "qkv_proj_bias"],
    # Multimodal, A to K.
    # Multimodal, L to Z.
}

# Model type → field → value, a function of a random generator and the config so far: fields whose name does not tell what they may hold.
VALUES = {
    "step3_text": {"moe_layers_enum": indices},
    # Text models.
    "nemotron-nas": {"block_configs": blocks},
    "ernie4_5_moe": {"moe_num_shared_experts": lambda r, d: r.choice((0, 1, 2, 3))},
    "step3p5": {"moe_layers_enum": indices, "num_attention_groups": groups, "attention_other_setting": other_attention,
                "layer_types": lambda r, d: [r.choice(("full_attention", "sliding_attention")) for _ in range(d["num_hidden_layers"] + r.randint(0, 2))]},
    "olmo_hybrid": {"linear_key_head_dim": lambda r, d: r.choice((None, 16, 32, 64)), "linear_value_head_dim": lambda r, d: r.choice((None, 16, 48, 64)),
                    "linear_num_key_heads": lambda r, d: r.choice((None, 2, 4)), "linear_num_value_heads": lambda r, d: r.choice((4, 8))},
    "hy_v4": {"mlp_layer_types": lambda r, d: words_of(r, d, "dense", "sparse"), "indexer_types": lambda r, d: words_of(r, d, "full", "shared"),
              "layer_types": lambda r, d: words_of(r, d, "full_attention", "deepseek_sparse_attention", "sparse_attention", "sparse"),
              "gating_type": lambda r, d: r.choice(("elementwise", "headwise"))},
    # Its layers have windows or not, one of each at least; what it puts out is its patches side by side.
    "muse_glimmer_vision": {"output_dim": lambda r, d: d["hidden_size"] * d["merge_kernel_size"] ** 2, "merge_kernel_size": lambda r, d: r.choice((1, 2, 3)),
                            "layer_types": lambda r, d: words_of(r, d, "full_attention", "sliding_attention"), "patch_temporal": lambda r, d: r.choice((1, 2, 3))},
    "muse_glimmer": {"has_vision": lambda r, d: r.random() < .2},
    "muse_glimmer_text": {"no_rope_layers": lambda r, d: [r.choice((0, 1)) for _ in range(d["num_hidden_layers"])] if r.random() < .7 else None},
    "deepseek_v4": {"compress_ratios": lambda r, d: [r.choice((0, 1, 4, 128)) for _ in range(d["num_hidden_layers"] + 1)],
                    "topk_method": lambda r, d: r.choice(("noaux_tc", "greedy")), "num_hash_layers": lambda r, d: r.randint(0, d["num_hidden_layers"]),
                    "o_groups": lambda r, d: r.choice([k for k in range(1, d["num_attention_heads"] + 1) if d["num_attention_heads"] % k == 0]),
                    "hc_mult": lambda r, d: r.choice((2, 4)), "num_attention_heads": lambda r, d: r.choice((4, 8, 64, 96, 128)),
                    "vision_n_layers": lambda r, d: r.choice((0, 2, 3)), "vision_n_heads": lambda r, d: r.choice((2, 4, 8)),
                    "vision_dim": lambda r, d: d["vision_n_heads"] * 8 * r.randint(2, 12), "vision_downsample_ratio": lambda r, d: r.choice((1, 2, 3))},
    "zamba2": {"layers_block_type": lambda r, d: some_hybrid(r, d), "num_mem_blocks": lambda r, d: r.choice((1, 2, 3)), "n_mamba_heads": lambda r, d: r.choice((2, 4, 8)),
               "attention_head_dim": lambda r, d: r.choice((None, 32, 64, 160)),
               "attention_hidden_size": lambda r, d: r.choice((None, d["num_attention_heads"] * 16 * r.randint(2, 12))), "hybrid_layer_ids": lambda r, d: None},
    "bailing_moe_v3_text": {"layer_types": lambda r, d: None, "layers_block_type": lambda r, d: None},
    "bailing_hybrid": {"layer_types": lambda r, d: None, "layers_block_type": lambda r, d: None},
    "dbrx": {"d_model": lambda r, d: (d.get("n_heads") or 16) * 16 * r.randint(2, 24), "tie_word_embeddings": lambda r, d: False},
    "dbrx_attn_config": {"kv_n_heads": lambda r, d: r.choice((1, 2))},
    "dbrx_ffn_config": {"moe_num_experts": lambda r, d: r.choice((4, 8, 12)), "moe_top_k": lambda r, d: r.choice((1, 2))},
    # Embedding, ranking.
    # The projection to small vectors has its size under one of many names, or none.
    **{t: {f: lambda r, d: r.randrange(64, 900, 8) if r.random() < .3 else None for f in COLQWEN.split(" or ")}
       for t in ("colqwen3", "ops_colqwen3", "qwen3_vl_nemotron_embed")},
    "colpali": {f: lambda r, d: r.randrange(64, 900, 8) if r.random() < .3 else None for f in COLPALI.split(" or ") if f != "projection_dim"},
    # Always of one mind: mlp_fc1_bias, mlp_fc2_bias and qkv_proj_bias.
    "nomic_bert": {"n_embd": lambda r, d: (d.get("num_attention_heads") or 12) * 16 * r.randint(2, 12), "n_inner": lambda r, d: r.randrange(64, 3000, 8),
                   "n_layer": lambda r, d: r.randint(2, 6), "activation_function": lambda r, d: r.choice(("swiglu", "gelu")),
                   "mlp_fc1_bias": lambda r, d: r.random() < .5, "mlp_fc2_bias": lambda r, d: d.get("mlp_fc1_bias", False),
                   "qkv_proj_bias": lambda r, d: d.get("mlp_fc1_bias", False), "moe_every_n_layers": lambda r, d: r.choice((0, 2, 3)),
                   "num_experts": lambda r, d: r.choice((4, 6, 8)), "moe_top_k": lambda r, d: r.choice((1, 2)), "rotary_emb_scale_base": lambda r, d: None,
                   "rotary_emb_interleaved": lambda r, d: False},
    # Multimodal, A to K.
    # Multimodal, L to Z.
}

# Class → [condition, field, its values]: what its samples are restricted to, and its file says so (`only`).
ONLY = {
    # Text models.
    # A vision tower makes it another class.
    "DeepseekV4ForCausalLM": [("not vision_n_layers", "vision_n_layers", lambda r, d: 0)],
    # Older files have all fields at the top.
    "MuseGlimmerForCausalLM": [("text_config != null and hidden_size == null and num_hidden_layers == null", None, None)],
    # Embedding, ranking.
    # What it says inside `vlm_config` counts as said outside, which config programs cannot.
    "ColPaliModel": [("vlm_config == null", None, None)],
    # Encoders are another class.
    "JinaEmbeddingsV5Model": [("is_decoder == null or is_decoder", "is_decoder", lambda r, d: True)],
    # Multimodal, A to K.
    # Multimodal, L to Z.
}
