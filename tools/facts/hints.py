"""What the source of a class says that the search does not find by itself. Nothing here is believed: an expression gets into a class file
only where it explains what was built, in every sample and in new configs."""

import random


def indices(rng: random.Random, d):
    """Indices of layers as a text, some of them beyond the last."""
    n = d.get("num_hidden_layers") or 4
    return ",".join(str(i) for i in sorted(rng.sample(range(n + 2), rng.randint(1, n)))) if rng.random() < .8 else None


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


# Class → expressions over its config (and `layer`), tried beside the fields.
EXPRESSIONS = {
    "Step3TextForCausalLM": ["layer in (ints(moe_layers_enum) if moe_layers_enum != null else range(1, num_hidden_layers, 1))"],
    "Step3VLForConditionalGeneration": ["layer in (ints(text_config.moe_layers_enum) if text_config.moe_layers_enum != null else "
                                        "range(1, text_config.num_hidden_layers, 1))"],
    # Text models.
    # Embedding, ranking.
    # Multimodal, A to K.
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


# Model type → what makes fields agree that the class wants to, when all the others are drawn.
AGREE = {
    "mimovl": mimo_tower,
    "molmo2_adapter": heads_agree(), "molmo2_vit": heads_agree(),
}

# Class → conditions that its file holds for, beside vary.PIN: what the configs of the samples had in common (see vary.KINDS).
ONLY = {
    "NemotronH_Nano_VL_V2": ["sound_config == null or sound_config.subsampling_factor == 8", "sound_config == null or sound_config.subsampling_conv_stride == 2"],
    "NemotronParseForConditionalGeneration": ["encoder.args.patch_size == null or encoder.args.patch_size == 16"],
    "OpenCUAForConditionalGeneration": ["text_config.model_type == 'qwen2'"],
}

# Model type → field → value, a function of a random generator and the config so far: fields whose name does not tell what they may hold.
VALUES = {
    "step3_text": {"moe_layers_enum": indices},
    # Text models.
    # Embedding, ranking.
    # Multimodal, A to K.
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
}
