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


GEMMA4_OWN = "text_config.num_hidden_layers - (text_config.num_kv_shared_layers or 0)"      # layers that share nothing

# Class → expressions over its config (and `layer`), tried beside the fields.
EXPRESSIONS = {
    "Step3TextForCausalLM": ["layer in (ints(moe_layers_enum) if moe_layers_enum != null else range(1, num_hidden_layers, 1))"],
    "Step3VLForConditionalGeneration": ["layer in (ints(text_config.moe_layers_enum) if text_config.moe_layers_enum != null else "
                                        "range(1, text_config.num_hidden_layers, 1))"],
    # Text models.
    # Embedding, ranking.
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
    "MossAudioModel": ["audio_config.downsample_hidden_size * ((audio_config.num_mel_bins - 1) // 8 + 1)"],
}

# Model type → field → value, a function of a random generator and the config so far: fields whose name does not tell what they may hold.
VALUES = {
    "step3_text": {"moe_layers_enum": indices},
    # Text models.
    # Embedding, ranking.
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
    "moss_audio_encoder": {"num_mel_bins": one_of(64, 80, 100, 128)},
}
