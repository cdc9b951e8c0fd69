"""What the source of a class says that the search does not find by itself. Nothing here is believed: an expression gets into a class file
only where it explains what was built, in every sample and in new configs."""

import random


def dims(*names):
    """Zeros in all of these or in none, whichever the first has: attention that is plain or latent."""
    def f(rng, d):
        return 0 if any(d.get(n) == 0 for n in names) else rng.randrange(16, 272, 16)
    return f


def one_of(*values):
    return lambda rng, d: rng.choice(values)


def conformer(rng, d):
    """The audio encoder's dictionary of FireRedASR2."""
    heads = rng.choice((2, 4, 5))
    return {"idim": rng.randrange(40, 130), "n_layers_enc": rng.randint(1, 4), "n_head": heads, "d_model": heads * 16 * rng.randint(1, 8), "pe_maxlen": 500,
            **({"kernel_size": rng.choice((7, 15, 33))} if rng.random() < .7 else {})}


def cohere_encoder(rng, d):
    heads = rng.choice((2, 4, 5))
    return {**d["encoder"], "feat_in": rng.randrange(40, 200), "n_layers": rng.randint(1, 4), "d_model": heads * 16 * rng.randint(1, 8), "n_heads": heads,
            "subsampling_conv_channels": rng.choice((-1, 32, 64, 256)), "ff_expansion_factor": rng.choice((2, 3, 4)), "untie_biases": rng.random() < .6,
            "conv_kernel_size": rng.choice((5, 9, 31)), "use_bias": rng.random() < .5, "pos_emb_max_len": 100}


def cohere_decoder(rng, d):
    heads = rng.choice((2, 4, 5))
    return {"config_dict": {**d["transf_decoder"]["config_dict"], "hidden_size": heads * 16 * rng.randint(1, 8), "num_layers": rng.randint(1, 4),
                            "num_attention_heads": heads, "inner_size": rng.randrange(64, 2000, 8), "max_sequence_length": rng.randrange(100, 600)}}


def per_layer(make):
    """One value for all layers, or a list of them."""
    return lambda rng, d: [make(rng) for _ in range(d["num_hidden_layers"])] if rng.random() < .5 else make(rng)


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


def given(field, otherwise):
    """A field that a config may leave out."""
    return f"{field} if {field} != null else {otherwise}"


MINIMAX_M3 = "text_config."
# What Moondream 3's config classes take for what `config` leaves out.
MOONDREAM = {"text": {"dim": 2048, "ff_dim": 8192, "n_layers": 24, "vocab_size": 51200, "n_heads": 32, "n_kv_heads": 32},
             "text.moe": {"n_experts": 64, "expert_inner_dim": 1024},
             "vision": {"enc_dim": 1152, "enc_patch_size": 14, "enc_n_layers": 27, "enc_ff_dim": 4304, "proj_inner_dim": 8192}}


# Sizes of the vision transformers that RADIO names.
RADIO = {"vit_small_patch16_224": (384, 12, 1536), "vit_base_patch16_224": (768, 12, 3072), "vit_large_patch16_224": (1024, 24, 4096), "vit_huge_patch16_224": (1280, 32, 5120)}


def radio(tower, patch):
    """What a RADIO tower is made of, by the `args` that it was trained with."""
    args = f"{tower}.args"
    def size(i):
        return "".join(f"{RADIO[name][i]} if {args}.model == '{name}' else " for name in reversed(RADIO)) + "null"
    side = f"((2 * {given(f'{args}.cpe_max_size', 2048)}) + {patch}) // (2 * {patch})".replace(f"2 * {given(f'{args}.cpe_max_size', 2048)}", f"2 * ({given(f'{args}.cpe_max_size', 2048)})")
    heads = f"((distinct(column({args}.teachers, 'name', null)) if {args}.teachers else 0) if {args}.cls_token_per_teacher else 1)"
    summary = f"count(column({args}.teachers, 'use_summary', true), true)"
    return [size(0), size(1), size(2), f"({side}) * ({side})", f"{heads} + ({args}.register_multiple - {heads} % {args}.register_multiple if {args}.register_multiple else 0)",
            summary, f"{summary} > 0", f"3 * {patch} * {patch}"]


def radio_args(rng: random.Random, d):
    """The `args` of a RADIO tower."""
    def some(**fields):
        return {k: v for k, v in fields.items() if rng.random() < .7}
    teachers = [{"name": rng.choice(("clip", "siglip", "dino_v2", "sam")), **some(use_summary=rng.random() < .5)} for _ in range(rng.randint(0, 5))]
    return {"model": rng.choice((*RADIO, "vit_huge_patch16_224")), **some(cpe_max_size=16 * rng.randint(20, 128) + rng.choice((0, 0, 3, 12)), cls_token_per_teacher=rng.random() < .7,
                                                                           register_multiple=rng.choice((None, 8, 10, 16)), teachers=teachers)}


def moondream(rng: random.Random, d):
    """Moondream's nested config, parts of it left out."""
    def some(**fields):
        return {k: v for k, v in fields.items() if rng.random() < .7}
    if rng.random() < .1:
        return {}
    heads = rng.choice((2, 4, 8, 16, 32))
    text = dict(dim=32 * 4 * rng.randint(2, 20), ff_dim=8 * rng.randint(20, 400), n_layers=rng.randint(2, 8), vocab_size=rng.randint(1000, 60000))
    text = some(**text)
    if rng.random() < .7:
        text |= {"n_heads": heads, "n_kv_heads": rng.choice([k for k in (1, 2, 4, 8, 16, 32) if k <= heads])}
    if rng.random() < .7:
        text["moe"] = some(n_experts=4 * rng.randint(1, 16), start_layer=rng.randint(0, 6), n_experts_per_tok=rng.choice((1, 2, 4)), expert_inner_dim=8 * rng.randint(8, 200))
    patch = rng.choice((7, 14, 16))
    vision = some(enc_n_layers=rng.randint(2, 8), enc_ff_dim=8 * rng.randint(20, 400), proj_inner_dim=8 * rng.randint(20, 400))
    if rng.random() < .6:
        vision |= {"enc_dim": 16 * 8 * rng.randint(2, 12), "enc_n_heads": rng.choice((4, 8, 16))}
    if rng.random() < .6:
        vision |= {"enc_patch_size": patch, "crop_size": patch * rng.randint(4, 30)}
    return {k: v for k, v in (("text", text), ("vision", vision)) if rng.random() < .9}


def sparse_m3(rng: random.Random, d):
    """MiniMax M3's sparse attention: which layers have an index, and how large that is."""
    if rng.random() < .2:
        return None
    heads = d.get("num_key_value_heads") or 4
    return {"use_sparse_attention": True, "sparse_index_dim": 16 * rng.randint(1, 9), "sparse_num_index_heads": heads, "sparse_topk_blocks": 16,
            "sparse_block_size": 128, "sparse_score_type": "max", "sparse_init_block": 0, "sparse_local_block": 1,
            **({"sparse_attention_freq": [rng.randint(0, 1) for _ in range(d.get("num_hidden_layers") or 4)]} if rng.random() < .9 else {})}


def tower_m3(rng: random.Random, d):
    """MiniMax M3's vision tower, which its config keeps as it is."""
    def some(**fields):
        return {k: v for k, v in fields.items() if rng.random() < .7}
    heads = rng.choice((2, 4, 8))
    return {"model_type": "clip_vision_model", "hidden_size": heads * 16 * rng.randint(2, 20), "intermediate_size": 8 * rng.randint(20, 300),
            "num_hidden_layers": rng.randint(2, 6), "num_attention_heads": heads, "num_channels": rng.choice((1, 3)), "image_size": 2016,
            "patch_size": rng.choice((7, 14, 16)), "layer_norm_eps": 1e-5,
            "img_token_compression_config": some(spatial_merge_size=rng.choice((1, 2, 3)), temporal_patch_size=rng.choice((1, 2, 4))),
            **some(multimodal_projector_bias=rng.random() < .5, patch_merge_bias=rng.random() < .5)}


def laguna_heads(rng, d):
    """Heads of every layer, multiples of the number of key heads."""
    kv = d.get("num_key_value_heads") or 8
    return [kv * rng.choice((1, 2, 3)) for _ in range(d["num_hidden_layers"])] if rng.random() < .7 else None


def kda(full):
    """Kimi's layers of linear attention, counted from one, and their sizes; `full`: with a gate of full rank, whose heads need no padding."""
    return lambda rng, d: None if not full and rng.random() < .15 else kda_layers(rng, d, full)


def kda_layers(rng, d, full):
    n = d.get("num_hidden_layers") or 27
    linear = [i for i in range(1, n + 1) if rng.random() < .6]
    return {"kda_layers": linear, "full_attn_layers": [i for i in range(1, n + 1) if i not in linear], "num_heads": rng.choice((16, 32, 48) if full else (2, 4, 8)),
            "head_dim": rng.choice((32, 64, 128)), "short_conv_kernel_size": rng.choice((2, 3, 4)), "gate_lower_bound": -5.0,
            **({"use_full_rank_gate": True} if full else {})}


# Tables of n-grams, each a little larger than the one before.
NGRAMS = "emb_split_num * (emb_neighbor_num - 1)"
LAGUNA = "(num_attention_heads_per_layer[layer] if num_attention_heads_per_layer != null else num_attention_heads)"


def kimi(pre):
    """Kimi's layers; `pre` is where their config is."""
    c = f"{pre}linear_attn_config"
    return [f"{c} != null and (layer + 1) in {c}.kda_layers", f"{c} == null or not (layer + 1) in {c}.kda_layers",
            f"{pre}num_experts != null and layer >= {pre}first_k_dense_replace and layer % {pre}moe_layer_freq == 0",
            *(f"{c}.{f}" for f in ("num_heads", "head_dim", "short_conv_kernel_size", "use_full_rank_gate")), f"{c}.num_heads * {c}.head_dim",
            f"{pre}attn_res_block_size != null"]



GEMMA4_OWN = "text_config.num_hidden_layers - (text_config.num_kv_shared_layers or 0)"      # layers that share nothing

# Heads of models that leave the field out.
HEAD = "(head_dim if head_dim != null else hidden_size // num_attention_heads)"

# Class → expressions over its config (and `layer`), tried beside the fields.
EXPRESSIONS = {
    # Transformers backend.
    **dict.fromkeys(("DogeForCausalLM", "PhimoeForCausalLM", "MinistralForCausalLM", "BitNetForCausalLM", "DiffLlamaForCausalLM", "PersimmonForCausalLM"),
                    [f"num_attention_heads * {HEAD}", f"num_key_value_heads * {HEAD}", HEAD]),
    "YoutuForCausalLM": ["num_attention_heads * (qk_nope_head_dim + qk_rope_head_dim)", "kv_lora_rank + qk_rope_head_dim",
                         "num_attention_heads * (qk_nope_head_dim + v_head_dim)", "num_attention_heads * v_head_dim", "q_lora_rank != null"],
    "Step3TextForCausalLM": ["layer in (ints(moe_layers_enum) if moe_layers_enum != null else range(1, num_hidden_layers, 1))"],
    "Step3VLForConditionalGeneration": ["layer in (ints(text_config.moe_layers_enum) if text_config.moe_layers_enum != null else "
                                        "range(1, text_config.num_hidden_layers, 1))"],
    **dict.fromkeys(("LongcatFlashForCausalLM", "LongcatFlashNgramForCausalLM"), [
        "num_layers", "ngram_vocab_size_ratio != null", NGRAMS, f"hidden_size // ({NGRAMS})",
        f"{NGRAMS} * int(ngram_vocab_size_ratio * vocab_size) + {NGRAMS} * {NGRAMS}"]),
    "LagunaForCausalLM": [LAGUNA, f"{LAGUNA} * head_dim", "(mlp_layer_types[layer] == 'sparse' if mlp_layer_types != null else layer > 0) and num_experts > 0", "gating == true or gating == 'per-head'",
                          f"{LAGUNA} if gating == true or gating == 'per-head' else {LAGUNA} * head_dim", "layer_types[layer] == 'sliding_attention' and swa_attention_sink_enabled"],
    "KimiLinearForCausalLM": kimi(""),
    "KimiK3ForConditionalGeneration": kimi("text_config."),
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
                          "hybrid_layer_ids[place(hybrid_layer_ids, layer) % num_mem_blocks]", "sub != null and sub % num_mem_blocks == place(hybrid_layer_ids, layer)", "2 * hidden_size", "mamba_expand * hidden_size",
                          "len(hybrid_layer_ids)", "len(layers_block_type)", "layers_block_type[layer] == 'hybrid'",
                          "place(hybrid_layer_ids, layer) * (len(hybrid_layer_ids) + num_mem_blocks - 1) // num_mem_blocks + sub // num_mem_blocks"],
    **dict.fromkeys(("DeepseekV4ForCausalLM", "DeepseekV4ForConditionalGeneration"), V4),
    # Embedding, ranking.
    **dict.fromkeys(("ColBERTModernBertModel", "ColBERTLfm2Model", "ColBERTJinaRobertaModel"), ["colbert_dim or dim or projection_dim", "(colbert_dim or dim or projection_dim) != null"]),
    "EmbeddingGemma2Model": [
        "quant in ['bitsandbytes', 'torchao', 'compressed-tensors'] or (vision_config.hidden_size % 64 == 0 and vision_config.intermediate_size % 64 == 0)",
        "text_config.num_hidden_layers * text_config.hidden_size_per_layer_input"],
    "ColQwen3Model": [f"{COLQWEN}", f"({COLQWEN}) != null"],
    "ColQwen3_5Model": [f"{COLQWEN} or 128"],
    "ColPaliModel": [f"{COLPALI}", f"({COLPALI}) != null"],
    "ColModernVBertForRetrieval": ["quant in ['bitsandbytes', 'torchao'] or (vision_config.hidden_size % 64 == 0 and vision_config.intermediate_size % 64 == 0)"],
    "SiglipEmbeddingModel": [f"quant in ['bitsandbytes', 'torchao'] or ({t}hidden_size % 64 == 0 and {t}intermediate_size % 64 == 0)"
                             for t in ("text_config.", "vision_config.")],
    "NomicBertModel": ["n_embd", "n_inner", "n_layer", "moe_every_n_layers > 0 and layer % moe_every_n_layers == 1", "activation_function == 'swiglu'",
                       "qkv_proj_bias"],
    # Multimodal, A to K.
    "FireRedASR2ForConditionalGeneration": [
        "audio_encoder_conf.d_model", "audio_encoder_conf.n_layers_enc", "audio_encoder_conf.n_head", "audio_encoder_conf.d_model // audio_encoder_conf.n_head",
        "33 if audio_encoder_conf.kernel_size == null else audio_encoder_conf.kernel_size", "((audio_encoder_conf.idim - 1) // 2 - 1) // 2 * 32",
        "encoder_downsample_rate * audio_encoder_conf.d_model"],
    "BagelForConditionalGeneration": ["26 if vit_config.num_hidden_layers == 27 else vit_config.num_hidden_layers"],
    **{c: ["vision_config.num_hidden_layers + 1 + vision_feature_layer if vision_feature_layer < 0 else vision_feature_layer"]
       for c in ("BeeForConditionalGeneration", "RForConditionalGeneration")},
    "DeepseekV2ForCausalLM": ["qk_nope_head_dim == 0 and qk_rope_head_dim == 0"],
    "DiffusionGemmaForConditionalGeneration": [
        "quant in ['bitsandbytes', 'torchao', 'compressed-tensors'] or (vision_config.hidden_size % 64 == 0 and vision_config.intermediate_size % 64 == 0)",
        f"text_config.intermediate_size * (2 if text_config.use_double_wide_mlp and layer >= {GEMMA4_OWN} and {GEMMA4_OWN} > 0 else 1)"],
    "KananaVForConditionalGeneration": [
        "projector_config.merge_size * projector_config.merge_size * projector_config.hidden_size",
        "projector_config.merge_size * projector_config.merge_size * projector_config.hidden_size // 4"],
    "CohereAsrForConditionalGeneration": [
        *[f"encoder.{f}" for f in ("n_layers", "d_model", "n_heads", "conv_kernel_size", "untie_biases")], *[f"head.{f}" for f in ("num_classes", "hidden_size")],
        *[f"transf_decoder.config_dict.{f}" for f in ("hidden_size", "inner_size", "num_layers", "max_sequence_length")],
        "true if encoder.use_bias == null else encoder.use_bias", "encoder.d_model // encoder.n_heads", "encoder.d_model * encoder.ff_expansion_factor",
        "encoder.d_model != transf_decoder.config_dict.hidden_size",
        "encoder.d_model if encoder.subsampling_conv_channels == -1 else encoder.subsampling_conv_channels",
        "(encoder.d_model if encoder.subsampling_conv_channels == -1 else encoder.subsampling_conv_channels) * ((encoder.feat_in - 1) // 8 + 1)"],
    "Ernie4_5_VLMoeForConditionalGeneration": [
        "pixel_hidden_size * spatial_conv_size * spatial_conv_size", "pixel_hidden_size * spatial_conv_size * spatial_conv_size * temporal_conv_size",
        "moe_intermediate_size[0] * moe_num_shared_experts",
        "layer >= min(moe_layer_start_index) and (moe_layer_end_index == null or layer <= max(moe_layer_end_index)) and "
        "(layer + 1) % (1 if moe_layer_interval == null else moe_layer_interval) == 0 and (max(moe_num_experts) > 0 if use_moe == null else use_moe)",
        *[f"layer >= moe_layer_start_index[{i}] and (moe_layer_end_index == null or layer <= moe_layer_end_index[{i}])" for i in (0, 1)]],
    # Multimodal, L to Z.
    "MiMoV2OmniForCausalLM": ["1025 if layer < 2 else 129", "vision_config.use_sink and layer not in vision_config.fullatt_block_indexes", *(
        f"vision_config.num_heads * vision_config.{f}_channels" for f in ("qk", "kv")), "vision_config.num_key_value_heads * vision_config.qk_channels",
        "vision_config.num_key_value_heads * vision_config.kv_channels", "vision_config.hidden_size * vision_config.spatial_merge_size * vision_config.spatial_merge_size", "audio_config.input_local_dim * audio_config.group_size"],
    "NemotronH_Nano_VL_V2": [
        *(f"sound_config.{f}" for f in ("conv_kernel_size", "subsampling_conv_channels", "subsampling_conv_kernel_size", "projection_hidden_size", "projection_bias",
                                        "convolution_bias")), "sound_config.subsampling_conv_channels * (sound_config.num_mel_bins // 8)",
        "layer % 3 == 1",
        "1 if layer > 0 and layer % 3 == 0 else sound_config.subsampling_conv_kernel_size", "sound_config.subsampling_conv_channels if layer > 0 and layer % 3 == 0 else 1",
        *radio("vision_config", "vision_config.patch_size"), "vit_hidden_size * (int(1 / downsample_ratio + 0.5) * int(1 / downsample_ratio + 0.5))",
        "text_config.num_nextn_predict_layers > 0",
        "3 * vision_config.video_temporal_patch_size * vision_config.patch_size * vision_config.patch_size", "vision_config.video_temporal_patch_size > 1"],
    "NemotronParseForConditionalGeneration": [
        *radio("encoder", "(encoder.args.patch_size if encoder.args.patch_size != null else 16)"),
        *(f"decoder.{f}" for f in ("d_model", "vocab_size", "decoder_layers", "decoder_ffn_dim", "encoder_ffn_dim")), "tie_word_embeddings or decoder.tie_word_embeddings"],
    "MiniMaxM3SparseForConditionalGeneration": [
        f"({MINIMAX_M3}sparse_attention_config.sparse_attention_freq if {MINIMAX_M3}sparse_attention_config != null else step(60, 3, 0, 1))[layer] > 0",
        f"{MINIMAX_M3}moe_layer_freq[layer] != 0",
        f"{MINIMAX_M3}sparse_attention_config.sparse_num_index_heads if {MINIMAX_M3}sparse_attention_config != null else 4",
        f"{MINIMAX_M3}sparse_attention_config.sparse_index_dim if {MINIMAX_M3}sparse_attention_config != null else 128",
        *(f"vision_config.{f}" for f in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_channels", "patch_size")),
        "2 if vision_config.img_token_compression_config.temporal_patch_size == null else vision_config.img_token_compression_config.temporal_patch_size",
        "text_config.hidden_size * ((2 if vision_config.img_token_compression_config.spatial_merge_size == null else vision_config.img_token_compression_config.spatial_merge_size)"
        " * (2 if vision_config.img_token_compression_config.spatial_merge_size == null else vision_config.img_token_compression_config.spatial_merge_size))",
        "projector_hidden_size if projector_hidden_size else text_config.hidden_size",
        "vision_config.multimodal_projector_bias == null or vision_config.multimodal_projector_bias", "vision_config.patch_merge_bias == null or vision_config.patch_merge_bias"],
    "Molmo2ForConditionalGeneration": ["text_config.qkv_bias", "vit_config.num_hidden_layers - 2", "adapter_config.intermediate_size",
                                        *(f"text_config.head_dim if text_config.qk_norm_type == 'qwen3' else text_config.{h} * text_config.head_dim"
                                          for h in ("num_key_value_heads", "num_attention_heads"))],
    "MolmoForCausalLM": ["(embedding_size if embedding_size else vocab_size) + 128", "embedding_size if embedding_size else vocab_size",
                         "attention_layer_norm == true", "num_key_value_heads * (hidden_size // num_attention_heads)"],
    "Moondream3ForCausalLM": [
        *(given(f"config.{part}.{f}", n) for part, fields in MOONDREAM.items() for f, n in fields.items()),
        f"layer >= ({given('config.text.moe.start_layer', 4)})",
        f"({given('config.text.dim', 2048)}) // ({given('config.text.n_heads', 32)})",
        f"(({given('config.vision.crop_size', 378)}) // ({given('config.vision.enc_patch_size', 14)})) * (({given('config.vision.crop_size', 378)}) // ({given('config.vision.enc_patch_size', 14)}))"],
    "Ovis": ["visual_tokenizer_config.backbone_config.model_type in ['aimv2', 'aimv2_vision_model']", "visual_tokenizer_config.backbone_config.model_type == 'siglip_vision_model'",
             "visual_tokenizer_config.vocab_size - 5", "visual_tokenizer_config.backbone_config.hidden_size * (visual_tokenizer_config.hidden_stride * "
             "visual_tokenizer_config.hidden_stride)", *(f"visual_tokenizer_config.backbone_config.{f}" for f in ("hidden_size", "intermediate_size", "num_channels", "patch_size",
                                                                                                        "num_hidden_layers", "qkv_bias", "mlp_bias"))],
    "PixtralForConditionalGeneration": ["vision_config.num_channels", "vision_config.patch_size", "vision_config.spatial_merge_size", "vision_config.adapter_bias",
                                        "vision_config.add_pre_mm_projector_layer_norm", "vision_config.mm_projector_id == 'patch_merge'",
                                        "vision_config.hidden_size * (vision_config.spatial_merge_size * vision_config.spatial_merge_size)"],
    "Qwen2_5OmniThinkerForConditionalGeneration": ["thinker_config.text_config.is_causal == null or thinker_config.text_config.is_causal"],
    "MossAudioModel": ["audio_config.downsample_hidden_size * ((audio_config.num_mel_bins - 1) // 8 + 1)"],
}


def heads_agree(heads="num_attention_heads", kv="num_key_value_heads"):
    """The width is that of the heads together."""
    def fix(rng: random.Random, d):
        d[heads], d["head_dim"] = rng.choice((2, 4, 8, 12)), 8 * rng.randint(2, 16)
        d[kv] = rng.choice([k for k in (1, 2, 4) if d[heads] % k == 0])
        d["hidden_size"] = d[heads] * d["head_dim"]
    return fix


def mimo_tower(rng: random.Random, d):
    d["num_heads"] = rng.choice((2, 4, 8, 16))
    d["num_key_value_heads"] = rng.choice([k for k in (None, 1, 2, 4) if k is None or d["num_heads"] % k == 0])


def zamba(rng: random.Random, d):
    """The heads are as wide as the attention, and what the class derives is left out."""
    for f in ("attention_head_dim", "attention_hidden_size", "hybrid_layer_ids", "mamba_headdim", "kv_channels", "num_query_groups"):
        d.pop(f, None)
    d["mamba_expand"] = rng.choice((1, 2, 4))
    if rng.random() < .6:
        d["attention_head_dim"] = rng.choice((32, 64, 160))
        d["attention_hidden_size"] = d["attention_head_dim"] * d.get("num_attention_heads", 32)


# Model type → what makes fields agree that the class wants to, when all the others are drawn.
AGREE = {
    "mimovl": mimo_tower, "zamba2": zamba,
    "molmo2_adapter": heads_agree(), "molmo2_vit": heads_agree(),
}

# Model type → field → value, a function of a random generator and the config so far: fields whose name does not tell what they may hold.
VALUES = {
    "step3_text": {"moe_layers_enum": indices},
    "laguna": {"num_attention_heads_per_layer": laguna_heads, "gating": lambda r, d: r.choice((True, False, "per-head", "per-element")),
               "mlp_layer_types": lambda r, d: words_of(r, d, "dense", "sparse"), "layer_types": lambda r, d: words_of(r, d, "full_attention", "sliding_attention")},
    "longcat_flash": {"num_hidden_layers": lambda r, d: 2 * r.randint(1, 4), "num_layers": lambda r, d: d["num_hidden_layers"] // 2,
                      "ngram_vocab_size_ratio": lambda r, d: r.choice((None, 2, 3)), "emb_split_num": lambda r, d: r.choice((2, 4)),
                      "emb_neighbor_num": lambda r, d: r.choice((2, 3))},
    "kimi_k3.text_config": {"linear_attn_config": kda(True)},
    "kimi_linear": {"linear_attn_config": kda(False), "mla_use_nope": lambda r, d: True, "num_experts": lambda r, d: r.choice((None, 8, 16)),
                    "num_experts_per_token": lambda r, d: 2, "num_shared_experts": lambda r, d: r.choice((0, 1, 2)), "attn_res_block_size": lambda r, d: r.choice((None, 2, 4)),
                    "q_lora_rank": lambda r, d: r.choice((None, 64, 192)), "first_k_dense_replace": lambda r, d: r.randint(0, 3),
                    "mla_use_output_gate": lambda r, d: r.random() < .5, "routed_expert_hidden_size": lambda r, d: r.choice((None, 256, 384)),
                    **{f: lambda r, d: 16 * r.randint(2, 9) for f in ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "moe_intermediate_size")}},
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
    "deepseek_v4": {"expert_dtype": lambda r, d: r.choice(("fp4", "fp8")),
                    "compress_ratios": lambda r, d: [r.choice((0, 1, 4, 128)) for _ in range(d["num_hidden_layers"] + 1)],
                    "topk_method": lambda r, d: r.choice(("noaux_tc", "greedy")), "num_hash_layers": lambda r, d: r.randint(0, d["num_hidden_layers"]),
                    "o_groups": lambda r, d: r.choice([k for k in range(1, d["num_attention_heads"] + 1) if d["num_attention_heads"] % k == 0]),
                    "hc_mult": lambda r, d: r.choice((2, 4)), "num_attention_heads": lambda r, d: r.choice((4, 8, 64, 96, 128)),
                    "vision_n_layers": lambda r, d: r.choice((0, 2, 3)), "vision_n_heads": lambda r, d: r.choice((2, 4, 8)),
                    "vision_dim": lambda r, d: d["vision_n_heads"] * 8 * r.randint(2, 12), "vision_downsample_ratio": lambda r, d: r.choice((1, 2, 3))},
    # Every layer's router is traced anew, which takes seconds.
    **dict.fromkeys(("phimoe", "solar_open", "dots1"), {"num_hidden_layers": lambda r, d: r.randint(2, 3)}),
    "embedding_gemma2_text": {"sliding_window_pattern": lambda r, d: r.choice((1, 2, 3, 6)), "hidden_size_per_layer_input": lambda r, d: r.randrange(16, 200, 8)},
    "zamba2": {"layers_block_type": lambda r, d: some_hybrid(r, d), "num_mem_blocks": lambda r, d: r.choice((1, 2, 3)), "n_mamba_heads": lambda r, d: r.choice((2, 4, 8)),
               "use_shared_attention_adapter": lambda r, d: r.random() < .7},
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
    "deepseek_v2": {"qk_nope_head_dim": lambda rng, d: 0 if rng.random() < .3 else rng.randrange(16, 272, 16), "qk_rope_head_dim": dims("qk_nope_head_dim")},
    "deepseek_vl_v2_text": {"kv_lora_rank": lambda rng, d: None if rng.random() < .5 else rng.randrange(16, 512, 16),
                            "qk_nope_head_dim": lambda rng, d: 0 if d["kv_lora_rank"] is None else rng.randrange(16, 272, 16),
                            "qk_rope_head_dim": dims("qk_nope_head_dim")},
    "mlp_projector": {"projector_type": one_of("linear", "downsample_mlp_gelu"), "downsample_ratio": one_of(1, 2, 3),
                      "mlp_ratio": one_of(1, 2, 4)},
    "bagel": {"vit_max_num_patch_per_side": one_of(4, 9, 16)},
    "bagel.vit_config": {"num_hidden_layers": one_of(2, 3, 4, 5, 27)},
    "bee": {"vision_feature_layer": one_of(-1, -2, -2, 1, 2)},
    "rvl": {"vision_feature_layer": one_of(-1, -2, -2, 1, 2)},
    "kanana-1.5-v.vision_config": {"embed_dim": lambda rng, d: d["num_heads"] * 16 * rng.randint(1, 8), "spatial_merge_size": one_of(1, 2, 3),
                                   "mlp_ratio": one_of(2, 3, 4), "temporal_patch_size": one_of(1, 2), "in_channels": one_of(1, 3)},
    "kanana-1.5-v.projector_config": {"merge_size": one_of(1, 2, 3), "pos_emb_size": one_of(16, 49, 100, 576), "num_eos_tokens": one_of(0)},
    "ernie4_5_moe_vl": {"spatial_conv_size": one_of(1, 2, 3), "temporal_conv_size": one_of(1, 2, 3), "moe_layer_interval": one_of(1, 1, 2),
                        "moe_num_experts": lambda rng, d: [rng.choice((4, 8, 12, 16))] * 2,
                        "moe_intermediate_size": lambda rng, d: [rng.randrange(64, 1000, 8), rng.randrange(64, 1000, 8)],
                        "moe_layer_start_index": lambda rng, d: [rng.randrange(min(end, d["num_hidden_layers"] - 1) + 1) for end in d["moe_layer_end_index"]],
                        "moe_layer_end_index": lambda rng, d: [rng.randrange(d["num_hidden_layers"] + 2) for _ in "tv"],
                        "moe_num_shared_experts": one_of(0, 1, 2)},
    "ernie4_5_moe_vl.vision_config": {"embed_dim": lambda rng, d: d["hidden_size"], "mlp_ratio": one_of(2, 3, 4), "spatial_merge_size": one_of(1, 2, 3),
                                      "in_channels": one_of(1, 3)},
    "cohere_asr_remote": {"encoder": cohere_encoder, "transf_decoder": cohere_decoder,
                          "head": lambda rng, d: {"num_classes": rng.randrange(1000, 20000), "hidden_size": 16 * rng.randint(4, 60), "log_softmax": True}},
    "fireredasr2": {"audio_encoder_conf": conformer, "encoder_downsample_rate": one_of(1, 2, 3, 4)},
    "interns2_mobius.text_config": {"num_blocks": one_of(1, 2, 3, 4), "layer_scale": one_of(False, True)},
    "gemma3n_text": {"intermediate_size": per_layer(lambda rng: rng.randrange(64, 3000, 8)),
                     "num_kv_shared_layers": lambda rng, d: rng.randrange(d["num_hidden_layers"])},
    # Multimodal, L to Z.
    "mimovl": {"vit_window_attn_types": lambda r, d: r.choice((None, [r.choice((-1, 0, 1)) for _ in range(d.get("depth") or 28)])), "use_sink": lambda r, d: r.random() < .5,
               "fullatt_block_indexes": lambda r, d: r.choice((None, sorted(r.sample(range(8), 3)))), "qk_channels": lambda r, d: r.choice((32, 64, 80)),
               "kv_channels": lambda r, d: r.choice((32, 64, 80)), "in_channels": lambda r, d: r.choice((1, 3)), "spatial_merge_size": lambda r, d: r.choice((1, 2, 3)),
               "temporal_patch_size": lambda r, d: r.choice((1, 2))},
    "mimo_audio": {"input_local_attn_heads": lambda r, d: r.choice((2, 4, 8)), "group_size": lambda r, d: r.choice((2, 4, 8)),
                   "input_local_dim": lambda r, d: (d.get("input_local_attn_heads") or 64) * 16 * r.randint(1, 12), "projection_layers": lambda r, d: r.choice((1, 2)),
                   "input_local_layers": lambda r, d: r.randint(2, 6), "add_post_norm": lambda r, d: r.random() < .5},
    # The tower inside, whose fields it takes as if they were those of `aimv2_vision_model`.
    "aimv2": {"hidden_size": lambda r, d: (d.get("num_attention_heads") or 8) * 16 * r.randint(2, 12), "intermediate_size": lambda r, d: 8 * r.randint(20, 200),
              "num_hidden_layers": lambda r, d: r.randint(2, 5), "num_channels": lambda r, d: r.choice((1, 3)), "patch_size": lambda r, d: r.choice((7, 14)),
              "image_size": lambda r, d: 14 * r.randint(4, 20), "qkv_bias": lambda r, d: r.random() < .5, "mlp_bias": lambda r, d: r.random() < .5},
    "siglip_visual_tokenizer": {"hidden_stride": lambda r, d: r.choice((1, 2, 3)), "vocab_size": lambda r, d: r.randint(1000, 70000)},
    "aimv2_visual_tokenizer": {"hidden_stride": lambda r, d: r.choice((1, 2, 3)), "vocab_size": lambda r, d: r.randint(1000, 70000)},
    "NemotronH_Nano_VL_V2": {"downsample_ratio": lambda r, d: r.choice((.5, .5, .25, 1.))},
    "NemotronH_Nano_Omni_Reasoning_V3": {"downsample_ratio": lambda r, d: r.choice((.5, .5, .25, 1.))},
    "radio_remote": {"args": radio_args, "video_temporal_patch_size": lambda r, d: r.choice((1, 1, 2, 4)), "patch_size": lambda r, d: r.choice((14, 16)),
                     "separate_video_embedder": lambda r, d: True},
    "parakeet_sound": {"hidden_size": lambda r, d: (d.get("num_attention_heads") or 8) * 16 * r.randint(2, 12), "conv_kernel_size": lambda r, d: r.choice((5, 7, 9)),
                       "subsampling_conv_kernel_size": lambda r, d: r.choice((3, 5)), "subsampling_conv_channels": lambda r, d: 8 * r.randint(4, 40),
                       "num_mel_bins": lambda r, d: r.choice((80, 128)), "convolution_bias": lambda r, d: r.random() < .5, "projection_bias": lambda r, d: r.random() < .5},
    "minimax_m3_text": {"n_shared_experts": lambda r, d: r.choice((0, 1, 2)), "sparse_attention_config": sparse_m3, "hidden_act": lambda r, d: "swigluoai",
                        "moe_layer_freq": lambda r, d: [r.randint(0, 1) for _ in range(d.get("num_hidden_layers") or 4)] if r.random() < .8 else None},
    "minimax_m3_vl": {"vision_config": tower_m3, "projector_hidden_size": lambda r, d: r.choice((None, 8 * r.randint(20, 300)))},
    "molmo": {"embedding_size": lambda r, d: r.choice((None, r.randrange(1000, 90000)))},
    "molmo2_text": {"qkv_bias": lambda r, d: r.random() < .5, "qk_norm_type": lambda r, d: r.choice(("olmo", "qwen3"))},
    "molmo2_vit": {"num_hidden_layers": lambda r, d: r.randint(9, 14)},
    "moondream3": {"config": moondream},
    "openvla": {"image_sizes": lambda r, d: r.choice((None, [224, 224], [14 * r.randint(8, 24)] * 2))},
    "pixtral_args": {"adapter_bias": lambda r, d: r.random() < .5, "add_pre_mm_projector_layer_norm": lambda r, d: r.random() < .5,
                     "mm_projector_id": lambda r, d: r.choice(("", "patch_merge")), "spatial_merge_size": lambda r, d: r.choice((1, 2, 3)),
                     "num_channels": lambda r, d: r.choice((1, 3)), "patch_size": lambda r, d: r.choice((7, 14, 16)),
                     "hidden_size": lambda r, d: (d.get("num_attention_heads") or 16) * 16 * r.randint(2, 16)},
    "moss_audio_encoder": {"num_mel_bins": one_of(64, 80, 100, 128)},
}

# Class → [condition, field, its values]: what its samples are restricted to, and its file says so (`only`).
ONLY = {
    # Transformers backend.
    # The others have tables of experts, as many as the square of a number.
    "DogeForCausalLM": [("not is_moe", "is_moe", lambda r, d: False)],
    # Text models.
    # With such a gate it is built of another number of parts.
    "KimiLinearForCausalLM": [("not linear_attn_config.use_full_rank_gate", None, None)],
    "KimiK3ForConditionalGeneration": [("text_config.linear_attn_config.use_full_rank_gate and text_config.linear_attn_config.num_heads % 16 == 0", None, None)],
    # A vision tower makes it another class.
    "DeepseekV4ForCausalLM": [("not vision_n_layers", "vision_n_layers", lambda r, d: 0)],
    # Older files have all fields at the top.
    "MuseGlimmerForCausalLM": [("text_config != null and hidden_size == null and num_hidden_layers == null", None, None)],
    # Embedding, ranking.
    # vLLM lists it among embedders, so that it is built as a whole here.
    "EmbeddingGemma2Model": [("not lm_only", None, None)],
    # Encoders are another class.
    "JinaEmbeddingsV5Model": [("is_decoder == null or is_decoder", "is_decoder", lambda r, d: True)],
    # Multimodal, A to K.
    # Multimodal, L to Z.
    "NemotronH_Nano_VL_V2": [("sound_config == null or sound_config.subsampling_factor == 8", None, None),
                             ("sound_config == null or sound_config.subsampling_conv_stride == 2", None, None)],
    "NemotronParseForConditionalGeneration": [("encoder.args.patch_size == null or encoder.args.patch_size == 16", None, None)],
    "OpenCUAForConditionalGeneration": [("text_config.model_type == 'qwen2'", None, None)],
}
