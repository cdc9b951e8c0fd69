"""Config programs: rules/facts/vllm/<version>/configs/<model_type>.json.

    python tools/facts/configs.py [--out DIR] [MODEL_TYPE...]
    python tools/facts/configs.py --check 200 [MODEL_TYPE...]

Fields, their types and defaults, aliases and sub-configs are read off the transformers class. What its __post_init__ derives is
code, so it is written down here once (DERIVE, CHECKS) and `--check` compares it with the real class on random configs.
"""
import argparse
import dataclasses
import functools
import hashlib
import inspect
import json
import os
import random
import re
import sys
import types
import typing

import where
from derive import REMAP, plain

def both_ways(when):
    """A window that reaches to both sides."""
    return [["sliding_window", f"sliding_window // 2 + 1 if {when} else sliding_window"]]


def unless_given(*rows):
    return [[field, f"{field} if {field} != null else {e}"] for field, e in rows]


GEMMA4_TEXT = both_ways("use_bidirectional_attention == 'all'") + [
    ["layer_types", "with_last(cycle(num_hidden_layers, 6, 'sliding_attention', 'full_attention') if layer_types == null else layer_types, 'full_attention')"],
    ["global_head_dim", "512 if global_head_dim == null else global_head_dim"],
    ["per_layer_config", "per_layer_config if per_layer_config != null else "
                         "at_indices(layer_types, 'full_attention', 'head_dim', global_head_dim, 'num_key_value_heads', "
                         "num_global_key_value_heads if attention_k_eq_v else null)"],
]
HEADS = [["num_key_value_heads", "num_attention_heads if num_key_value_heads == null else num_key_value_heads"]]
HEAD_DIM = [["head_dim", "hidden_size // num_attention_heads if head_dim == null else head_dim"]]
# vLLM's Qwen 2 does not look at `head_dim`.
SPLIT = [["head_dim", "hidden_size // num_attention_heads"]]
WINDOW = [["sliding_window", "sliding_window if use_sliding_window else null"]]
LATE_WINDOWS = WINDOW + HEADS + [
    ["layer_types", "layer_types if layer_types != null else step(num_hidden_layers, num_hidden_layers if sliding_window == null else max_window_layers, "
                    "'full_attention', 'sliding_attention')"]]
EVERY_SECOND = [["layer_types", "cycle(num_hidden_layers, 2, 'sliding_attention', 'full_attention') if layer_types == null else layer_types"]]
OUTER_VOCABULARY = [["vocab_size", "vocab_size if vocab_size != null else text_config.vocab_size"]]
DERIVE = {
    "unlimited-ocr": OUTER_VOCABULARY,
    "unlimited_ocr": OUTER_VOCABULARY,
    "llama": HEADS + HEAD_DIM,
    "mistral": HEAD_DIM + HEADS,
    "mixtral": HEADS + HEAD_DIM,
    "qwen2": LATE_WINDOWS + SPLIT,
    "qwen3": LATE_WINDOWS,
    "qwen3_moe": WINDOW + HEADS + [["mlp_only_layers", "[] if mlp_only_layers == null else mlp_only_layers"]] + HEAD_DIM,
    "qwen2_5_vl_text": LATE_WINDOWS + SPLIT,
    "qwen2_vl": [["tie_word_embeddings", "true if not tie_word_embeddings and text_config.tie_word_embeddings else tie_word_embeddings"]],
    "qwen2_5_vl": [["tie_word_embeddings", "true if not tie_word_embeddings and text_config.tie_word_embeddings else tie_word_embeddings"]],
    "qwen3_vl_text": HEADS,
    "phi3": HEADS + HEAD_DIM,
    "granite": HEADS + HEAD_DIM,
    # Not a field of the class, but vLLM reads it.
    "glm4_moe": [["head_dim", "head_dim"]],
    "gemma2": EVERY_SECOND,
    "gemma3_text": both_ways("use_bidirectional_attention") + [["layer_types", "cycle(num_hidden_layers, 6 if sliding_window_pattern == null else sliding_window_pattern, "
                                    "'sliding_attention', 'full_attention') if layer_types == null else layer_types"]],
    "llama4_text": HEADS + HEAD_DIM + [
        ["no_rope_layers", "no_rope_layers if no_rope_layers else cycle(num_hidden_layers, no_rope_layer_interval, 1, 0)"],
        ["moe_layers", "moe_layers if moe_layers != null else range(interleave_moe_layer_step - 1, num_hidden_layers, "
                                                      "interleave_moe_layer_step)"]],
    "gpt_oss": HEADS + HEAD_DIM + EVERY_SECOND,
    "deepseek_v3": HEADS + [["moe_layer_freq", "1 if moe_layer_freq == null else moe_layer_freq"]],
    "nemotron_h": HEADS + [
        ["n_groups", "mamba_n_groups if mamba_n_groups != null else n_groups"], ["conv_kernel", "mamba_d_conv if mamba_d_conv != null else conv_kernel"],
        ["expand", "mamba_expand if mamba_expand != null else expand"],
        ["use_conv_bias", "mamba_conv_bias if mamba_conv_bias != null else use_conv_bias"],
        ["layer_types", "layer_types if layer_types != null else words(hybrid_override_pattern, 'M', 'linear_attention', 'E', 'moe', "
                        "'*', 'full_attention', '-', 'mlp') if hybrid_override_pattern != null else "
                        "['linear_attention', 'moe', 'full_attention', 'mlp']"],
        ["layer_types", REMAP.format("layer_types")], ["layers_block_type", "layer_types"], ["num_hidden_layers", "len(layer_types)"]],
    "olmo_hybrid": HEADS + [
        ["layer_types", "layer_types if layer_types != null else cycle(num_hidden_layers, 4, 'linear_attention', 'full_attention') if num_hidden_layers >= 4 "
                        "else with_last(cycle(num_hidden_layers, 4, 'linear_attention', 'full_attention'), 'full_attention')"],
        ["layer_types", REMAP.format("layer_types")],
        ["linear_num_key_heads", "num_attention_heads if linear_num_key_heads == null else linear_num_key_heads"],
        ["linear_num_value_heads", "num_attention_heads if linear_num_value_heads == null else linear_num_value_heads"],
        ["linear_key_head_dim", "int(0.75 * hidden_size / linear_num_key_heads) if linear_key_head_dim == null else linear_key_head_dim"],
        ["linear_value_head_dim", "2 * linear_key_head_dim if linear_value_head_dim == null else linear_value_head_dim"]],
    "dbrx": [["num_key_value_heads", "attn_config.kv_n_heads"]],
    # What the file gives of these goes before what is made of the others.
    "zamba2": HEADS + [["intermediate_size", "intermediate_size or 4 * hidden_size"], *unless_given(
        ("attention_hidden_size", "2 * hidden_size"), ("attention_head_dim", "2 * hidden_size // num_attention_heads"),
        ("mamba_headdim", "int(mamba_expand * hidden_size) // n_mamba_heads"), ("kv_channels", "hidden_size // num_attention_heads"),
        ("num_query_groups", "num_attention_heads"),
        ("layers_block_type", "at_places(54, [6, 12, 18, 24, 30, 36, 42, 47, 51], 'linear_attention', 'hybrid')")),
        ["head_dim", "attention_head_dim"], ["layers_block_type", REMAP.format("layers_block_type")], ["layer_types", "layers_block_type"],
        *unless_given(("hybrid_layer_ids", "where(layers_block_type, 'hybrid')")),
        ["max_position_embeddings", "16384 if use_long_context else max_position_embeddings"]],
    # The number of layers is that of all rounds together, unless the file says both.
    "hrm_text": [["L_bp_cycles", "[2] if L_bp_cycles == null else L_bp_cycles"],
                 ["embedding_scale", "1.0 / initializer_range if embedding_scale == null else embedding_scale"],
                 ["num_hidden_layers", "num_hidden_layers * (H_cycles * (L_cycles + 1) if num_layers_per_stack == null else 1)"],
                 ["num_layers_per_stack", "num_hidden_layers // (H_cycles * (L_cycles + 1)) if num_layers_per_stack == null else num_layers_per_stack"]],
    "hy_v4": [["qk_head_dim", "qk_nope_head_dim + qk_rope_head_dim"], ["head_dim", "qk_rope_head_dim"],
              ["mlp_layer_types", "at_places(num_hidden_layers, [0], 'sparse', 'dense') if mlp_layer_types == null else mlp_layer_types"],
              ["layer_types", "words(layer_types, 'sparse_attention', 'indexed_attention', 'sparse', 'indexed_attention')"],
              ["layer_types", REMAP.format("layer_types")],
              ["indexer_types", "['full'] + from_cycle(num_hidden_layers - 1, 4, 0, 'shared', 'full') if indexer_types == null else indexer_types"],
              ["head_dtype", "'float32' if enable_lm_head_fp32 and head_dtype == null else head_dtype"]],
    "mimovl": [["num_key_value_heads", "num_key_value_heads if num_key_value_heads != null else num_heads"],
               ["fullatt_block_indexes", "fullatt_block_indexes if fullatt_block_indexes != null else [7, 15, 23, 31]"],
               ["vit_window_attn_types", "vit_window_attn_types if vit_window_attn_types else cycle(depth, 1, -1, -1)"]],
    "minimax_m3_text": [["moe_layer_freq", "moe_layer_freq if moe_layer_freq != null else step(60, 3, 0, 1)"]],
    "moondream3": [[field, f"config.text.{short} if config.text.{short} != null else {n}"] for field, short, n in (
        ("num_hidden_layers", "n_layers", 24), ("vocab_size", "vocab_size", 51200), ("hidden_size", "dim", 2048), ("num_attention_heads", "n_heads", 32),
        ("num_key_value_heads", "n_kv_heads", 32), ("intermediate_size", "ff_dim", 8192))],
    "moss_transcribe_diarize": [
        ["adaptor_input_dim", "adaptor_input_dim if adaptor_input_dim != null else audio_config.d_model * audio_merge_size"],
        *([field, f"text_config.{field}"] for field in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                                        "num_key_value_heads", "head_dim", "attention_bias", "max_position_embeddings")), ["is_causal", "true"]],
    "openvla": [["timm_model_ids", "timm_model_ids if timm_model_ids else ['vit_large_patch14_reg4_dinov2.lvd142m', 'vit_so400m_patch14_siglip_224']"],
                ["timm_override_act_layers", "timm_override_act_layers if timm_override_act_layers else [null, null]"],
                ["image_sizes", "image_sizes if image_sizes else [224, 224]"]],
    "gemma4_text": GEMMA4_TEXT,
    "embedding_gemma2_text": [
        ["layer_types", "with_last(cycle(num_hidden_layers, 6 if sliding_window_pattern == null else sliding_window_pattern, 'sliding_attention', "
                        "'full_attention') if layer_types == null else layer_types, 'full_attention')"],
        ["per_layer_config", "per_layer_config if per_layer_config != null else "
                             "at_indices(layer_types, 'full_attention', 'head_dim', 512 if global_head_dim == null else global_head_dim, "
                             "'num_key_value_heads', 1 if num_global_key_value_heads == null else num_global_key_value_heads)"]],
    # The same code, of a class that does not declare `attention_k_eq_v`.
    "diffusion_gemma_text": [[f, e.replace(" if attention_k_eq_v else null", "")] for f, e in GEMMA4_TEXT],
    "gemma3n_text": [["intermediate_size", "intermediate_size if len(intermediate_size) != null else step(num_hidden_layers, 0, 0, intermediate_size)"],
                     ["layer_types", "cycle(num_hidden_layers, 5, 'sliding_attention', 'full_attention') if layer_types == null else layer_types"]],
    "gemma4_unified_text": GEMMA4_TEXT,
}
STRICT = {"error": "StrictDataclassClassValidationError"}
MULTIPLE = {"ok": "hidden_size % num_attention_heads == 0", **STRICT,
            "message": "Class validation error for validator 'validate_architecture':\n    ValueError: The hidden size ({hidden_size}) is not "
                       "a multiple of the number of attention heads ({num_attention_heads})."}
ARCHITECTURE = "Class validation error for validator 'validate_architecture':\n    ValueError: "
CHECKS = {"llama": [MULTIPLE], "gemma2": [MULTIPLE], "gemma3_text": [MULTIPLE], "gemma3n_text": [MULTIPLE], "hrm_text": [MULTIPLE],
          "dbrx": [{"ok": "not tie_word_embeddings", **STRICT, "message": f"{ARCHITECTURE}tie_word_embeddings is not supported for DBRX models."}], "olmo_hybrid": [
    {"ok": "'linear_attention' in layer_types", **STRICT, "message": f"{ARCHITECTURE}OLMoHybrid expects at least one 'linear_attention' layer."},
    {"ok": "count(layer_types, 'linear_attention') < len(layer_types)", **STRICT, "message": f"{ARCHITECTURE}OLMoHybrid expects at least one attention layer."}]}
# What stands in for an absent sub-config: the class's own default, or nothing.
# `flat`: made of the fields of the config around it.
SUB_DEFAULT = {("qwen3_asr", "thinker_config"): "flat", ("gemma4", "text_config"): "class", ("gemma4_unified", "text_config"): "class", ("qwen2_5_vl", "text_config"): "flat",
               ("qwen2_5_vl", "vision_config"): "class",
               # It has sizes of its own for those that are absent, which no checkpoint does without.
               ("moss_transcribe_diarize", "text_config"): "null", ("moss_transcribe_diarize", "audio_config"): "null",
               **{(t, f): "class" for t in ("gemma3", "qwen3_vl", "llama4") for f in ("text_config", "vision_config")}}
ALL = ["llama", "gemma2", "gemma3", "gemma3_text", "siglip_vision_model", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "qwen2_5_vl",
       "qwen2_5_vl_text", "qwen2_5_vl_vision", "qwen3_vl", "qwen3_vl_text", "qwen3_vl_vision", "phi3", "granite", "llama4", "llama4_text",
       "llama4_vision_model", "gpt_oss", "glm4_moe", "gemma4", "gemma4_text", "gemma4_vision", "gemma4_audio", "gemma4_unified",
       "gemma4_unified_text", "gemma4_unified_vision", "gemma4_unified_audio", "deepseek_v3"]
# Sub-configs whose class has no model type, or that of other remote code: what their programs are called.
NAMELESS = {("bailing_moe_v3_vl", "text_config"): "bailing_moe_v3_text", ("dbrx", "attn_config"): "dbrx_attn_config", ("dbrx", "ffn_config"): "dbrx_ffn_config"}
# Classes with the model type of another one -> name of their program.
SECOND = {"DeepseekVLV2TextConfig": "deepseek_vl_v2_text", "Qwen3_5VisionConfig": "qwen3_5_vision", "Qwen3_5MoeVisionConfig": "qwen3_5_moe_vision"}
# Fields of every config that say nothing of structure.
DULL = {"output_hidden_states", "return_dict", "chunk_size_feed_forward", "is_encoder_decoder", "id2label", "label2id", "problem_type",
        "transformers_version", "architectures", "dtype", "tie_last_hidden_states", "model_type"}


def layer_checks():
    """`PreTrainedConfig.validate_layer_type`, which every config class inherits."""
    from transformers import configuration_utils as u
    allowed = tuple(u.ALLOWED_ATTN_LAYER_TYPES)
    old = list(u._LEGACY_LAYER_TYPE_REMAP)
    said = "Class validation error for validator 'validate_layer_type':\n    ValueError: "
    given = "layer_types == null or num_hidden_layers == null or "
    return [
        {"ok": f"{given}subset(layer_types, {list(allowed) + old})", **STRICT,
         "message": f"{said}The `layer_types` entries must be in {allowed} but got {{layer_types}}"},
        {"ok": f"{given}num_hidden_layers == len(layer_types)", **STRICT,
         "message": f"{said}`num_hidden_layers` ({{num_hidden_layers}}) must be equal to the number of `layer_types` ({{layer_types.len}})"},
    ]


def type_word(t):
    if t is type(None):
        return "null"
    if typing.is_typeddict(t):
        return t.__name__
    if t in (int, float, bool, str, dict, list, tuple):
        return t.__name__
    origin = typing.get_origin(t)
    if origin in (typing.Union, types.UnionType):
        return "|".join(dict.fromkeys(type_word(a) for a in typing.get_args(t)))
    if origin in (list, tuple):
        args = [a for a in typing.get_args(t) if a is not Ellipsis]
        inner = type_word(args[0]) if args else "any"
        return "list" if "|" in inner or inner == "any" else f"list[{inner}]"
    if origin is dict:
        return "dict"
    return "any"


def type_of(cls):
    """Name of a class's program: its model type, unless that is another class's too."""
    return SECOND.get(cls.__name__, cls.model_type)


def measured(model_type, cls):
    """The part of a program that is read off the class."""
    import derive
    init = derive.own_init(cls)
    out = {"model_type": cls.model_type if cls.__name__ in SECOND else model_type, "class": cls.__name__, "module": cls.__module__, "fields": signature(cls) if init else declared(cls)}
    if cls.attribute_map:
        out["aliases"] = dict(cls.attribute_map)
    subs = cls.sub_configs or {}
    if subs:
        out["sub"] = {k: {"model_type": NAMELESS.get((model_type, k)) or type_of(v), "default": SUB_DEFAULT.get((model_type, k)) or sub_default(cls, k)}
                      for k, v in subs.items() if getattr(v, "model_type", "") or (model_type, k) in NAMELESS}
        for k in [k for k, v in out["sub"].items() if v["default"] == "flat"]:
            for f in subs[k].sub_configs or ():
                out["fields"].pop(f, None)
    if found := undeclared(cls):
        out["sub"] = {f: {"model_type": type_of(c), "default": sub_default(cls, f), **({"from": key} if key != f else {})}
                      for f, (c, key, auto) in found.items() if not auto}
        out["auto"] = {f: {**auto_default(cls, f, key), **({"from": key} if key != f else {})} for f, (_, key, auto) in found.items() if auto}
        for f, (c, key, auto) in found.items():
            if not auto and key == f and (below := auto_default(cls, f)).get("merge"):      # defaults of its own
                own = json.loads(json.dumps(c().to_diff_dict(), default=str))
                out["auto"][f] = {**below, "default": {k: v for k, v in below["default"].items() if k == "model_type" or own.get(k) != v}}
                del out["sub"][f]
        for f in [f for f in out["fields"] if f in found or f in {key for _, key, _ in found.values()}]:
            del out["fields"][f]
    auto = [k for k, v in subs.items() if not hasattr(v, "model_type")]
    if auto:
        # Of whatever class their own `model_type` names; else of this one.
        out["auto"] = {k: auto_default(cls, k) for k in auto}
    return out


# A sub-config whose fields count as the config's own.
FLAT = {"colpali": "vlm_config"}


def program(model_type, cls):
    import derive
    init, out = derive.own_init(cls), measured(model_type, cls)
    text = text_path(cls)
    if text and text != "text_config":
        out["text"] = text
    layers = "num_hidden_layers" in out["fields"]
    if model_type in FLAT:
        out["flat"] = FLAT[model_type]
    out["derive"], out["checks"] = DERIVE.get(model_type, []), CHECKS.get(model_type, [])
    if not init or "validate_layer_type" in dir(cls):
        out["checks"] = out["checks"] + (layer_checks() if layers and not init else [])
    given, notes = words(cls) | WORDS.get(model_type, {}), []
    if given:
        out["words"] = given
    if model_type not in DERIVE and model_type not in ALL:
        rows, unknown, bad = derive.find(out, cls)
        out["derive"] = rows
        if unknown:
            out["unknown"] = unknown
        if any("not a multiple of the number of attention heads" in str(e) for _, e in bad):
            out["checks"] = [MULTIPLE, *out["checks"]]
            bad = [(s, e) for s, e in bad if "not a multiple of the number of attention heads" not in str(e)]
        notes = sorted({re.sub(r"\d+", "N", f"{type(e).__name__}: {str(e)[:140]}") for _, e in bad})
    if notes:
        out["also_refused"] = notes[:6]
    post = cls.__dict__.get("__post_init__") or (init and init.__dict__["__init__"])
    if post:
        out["source"] = {post.__qualname__: hashlib.sha256(inspect.getsource(post).encode()).hexdigest()[:12]}
    return out


def text_path(cls):
    """Dotted name of what `get_text_config()` gives, or None."""
    import real
    try:
        obj = cls()
        return real.config_path(obj, obj.get_text_config())
    except Exception:       # noqa: BLE001  a class that makes nothing of nothing
        return None


@functools.cache
def undeclared(cls):
    """Sub-configs that a constructor makes without saying so in `sub_configs`: field -> (class, key it is made from, whether its own
    `model_type` names the class)."""
    from transformers import PreTrainedConfig
    if cls.sub_configs:
        return {}
    text = ""
    for c in cls.__mro__[:cls.__mro__.index(PreTrainedConfig)] if PreTrainedConfig in cls.__mro__ else ():     # a constructor may leave it to its parent's
        try:
            text += inspect.getsource(c.__dict__["__init__"])
        except (KeyError, OSError, TypeError):
            pass
    out = {}
    for f in dict.fromkeys(re.findall(r"self\.(\w+_config)(?:: [\w. |]+)? = ", text)):
        value = next(v for v in re.findall(rf"self\.{f}(?:: [\w. |]+)? = (.{{1,200}})", text, re.S) if not v.startswith("None"))
        key = re.match(r'\w+\(\*\*kwargs\.pop\("(\w+)"|(?:[^\n]*\n?[^\n]*\n?[^\n]*)\(\*\*\(?(\w+_config)\b|(\w+_config)\n', value)
        key = next((g for g in key.groups() if g), f) if key else f
        made = []
        for given in ({}, {"model_type": "qwen3"}):
            try:
                made.append(getattr(cls(**{key: given}), f))
            except Exception:       # noqa: BLE001  it wants more than nothing
                pass
        made = [m for m in made if hasattr(m, "to_dict")]
        if made:
            auto = type(made[-1]).model_type == "qwen3" and (len(made) == 1 or len({type(m) for m in made}) > 1)
            out[f] = (type(made[0]), key, auto)
    return out


def declared(cls):
    """Fields of a dataclass."""
    import torch  # annotations name it
    scope = {"torch": torch, "Any": typing.Any, "Literal": typing.Literal, **vars(typing)}
    hints = {}
    for f in dataclasses.fields(cls):
        try:
            hints[f.name] = eval(f.type, {**scope, **vars(sys.modules[cls.__module__])}) if isinstance(f.type, str) else f.type
        except Exception:  # an annotation that we cannot read refuses nothing
            hints[f.name] = object
    fields = {}
    for f in dataclasses.fields(cls):
        if f.name in DULL or f.name.startswith("_") or f.name in (cls.sub_configs or {}):
            continue
        default = f.default if f.default is not dataclasses.MISSING else None
        if f.default_factory is not dataclasses.MISSING:
            default = f.default_factory()
        fields[f.name] = {"default": json_or_null(list(default) if isinstance(default, tuple) else default), "type": type_word(hints.get(f.name, object))}
    return fields


def signature(cls):
    """Parameters of a constructor, and what a bare object has besides. Nothing checks their types."""
    import derive
    from transformers import PreTrainedConfig
    fields = {}
    for c in cls.__mro__:
        if c is PreTrainedConfig:
            break
        if "__init__" not in c.__dict__ or not derive._has_source(c.__dict__["__init__"]):
            continue
        for p in list(inspect.signature(c.__dict__["__init__"]).parameters.values())[1:]:
            if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) or p.name in DULL or p.name in (cls.sub_configs or {}) or p.name in fields:
                continue
            default = None if p.default is p.empty else p.default
            fields[p.name] = {"default": json_or_null(list(default) if isinstance(default, tuple) else default), "type": "any"}
    if "tie_word_embeddings" not in fields:
        fields["tie_word_embeddings"] = {"default": getattr(cls(), "tie_word_embeddings", None), "type": "any"}
    return fields


def json_or_null(v):
    try:
        return json.loads(json.dumps(v, allow_nan=False))
    except (TypeError, ValueError):
        return None


def sub_default(cls, field):
    post = cls.__dict__.get("__post_init__")
    if post and re.search(rf'self\.{field} = self\.sub_configs\["{field}"\]\(\*\*\w*kwargs\)', inspect.getsource(post)):
        return "flat"       # Hub configs of before there were sub-configs
    try:
        return "null" if getattr(cls(), field, None) is None else "class"
    except Exception:       # noqa: BLE001  a class that makes nothing of nothing
        return "null"


def auto_default(cls, field, key=None):
    """Model type of a sub-config that names none, and what stands there when there is none at all."""
    try:
        named = getattr(cls(**{key or field: {}}), field).model_type
    except Exception:       # noqa: BLE001  it has to name one
        named = None
    try:
        bare = getattr(cls(), field)
        bare = json.loads(json.dumps({k: v for k, v in bare.to_diff_dict().items() if k not in DULL or k == "model_type"}))
    except Exception:       # noqa: BLE001  nothing stands there
        bare = None
    out = {"model_type": named, "default": bare}
    if bare and named == bare.get("model_type"):
        own = json.loads(json.dumps(type(getattr(cls(), field))().to_diff_dict(), default=str))
        given = json.loads(json.dumps(getattr(cls(**{key or field: {}}), field).to_diff_dict(), default=str))
        if given != own and all(given.get(k) == v for k, v in bare.items()):
            out["merge"] = True     # what stands there alone is below what is given
            other = getattr(cls(**{key or field: {"num_attention_heads": 2, "num_hidden_layers": 2}}), field)
            for k in [k for k, v in bare.items() if k not in ("num_attention_heads", "num_hidden_layers") and plain(getattr(other, k, None)) != v]:
                del bare[k]         # made of others
    return out


# Where a bare config does not have all of them.
WORDS = {"olmo_hybrid": {"layer_types": ["linear_attention", "full_attention"]}, "lfm2": {"layer_types": ["conv", "full_attention"]}, "lfm2_moe": {"layer_types": ["conv", "full_attention"]}}


def words(cls):
    """Fields that hold one word a layer, and the words that a bare config has there."""
    import derive
    try:
        have = derive.attributes(cls())
    except Exception:       # noqa: BLE001
        return {}
    n = next((have[c] for c in derive.COUNT if isinstance(have.get(c), int)), None)
    return {k: sorted(set(v)) for k, v in have.items()
            if isinstance(v, list) and (len(v) == n or k.startswith("layer")) and v and all(isinstance(x, str) for x in v) and k not in derive.properties(cls)}


def dump(d):
    lines = []
    for k, v in d.items():
        if isinstance(v, (dict, list)) and v and k in ("fields", "sub", "auto", "derive", "checks"):
            rows = [f"  {json.dumps(a)}: {json.dumps(b)}" for a, b in v.items()] if isinstance(v, dict) else [f"  {json.dumps(r)}" for r in v]
            lines.append(f' "{k}": ' + ("{" if isinstance(v, dict) else "[") + "\n" + ",\n".join(rows) + "\n " + ("}" if isinstance(v, dict) else "]"))
        else:
            lines.append(f' "{k}": {json.dumps(v)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--check", type=int, metavar="N", help="compare with N random configs of each class, write nothing")
    ap.add_argument("--out", default=where.folder("configs"))
    ap.add_argument("model_types", nargs="*")
    a = ap.parse_args()
    wanted = a.model_types or ALL
    if a.check:
        sys.exit(any([check(t, a.check) for t in wanted]))
    for t in wanted:
        try:
            write(t, a.out)
        except Exception as e:      # noqa: BLE001  one class less
            print(f"{t}: {type(e).__name__}: {str(e)[:200]}")
            continue
        check(t, 60)


def write(t, out):
    """The program of a model type, and of its sub-configs."""
    import plan
    import vary
    cls = class_of(t)
    vary.BASE[t] = base_of(t)
    for field, s in {**(cls.sub_configs or {}), **{f: c for f, (c, _, auto) in undeclared(cls).items()}}.items():
        st = NAMELESS.get((t, field)) or getattr(s, "model_type", None) and type_of(s)
        if st:
            INNER[st] = s
        else:
            st = auto_default(cls, field)["model_type"]
        if st and st != t and not os.path.exists(f"{out}/{st}.json"):
            write(st, out)
    p = program(t, cls)
    with open(f"{out}/{t}.json", "w") as f:
        f.write(dump(p))


# Classes of sub-configs, some of which only their outer class knows.
INNER = {}


def class_of(t):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../oracle"))
    from _configs import config_class
    import vllm.transformers_utils.configs.ovis     # noqa: F401  it registers two more
    try:
        return config_class(t)
    except KeyError:
        return INNER[t]


def base_of(t):
    """Fields that the class has no default for."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../oracle"))
    from _configs import FIXES
    import plan
    given = (plan.OVERRIDE.get(("configs", t)) or {}).get("given", {})
    return {**given, **{k: v for k, v in FIXES.get(t, {}).items() if not k.startswith("-") and "." not in k}}


def remote(t, entry=None):
    """Stands in for the program of a config class that is remote code (`_remote.py`), and for those of its sub-configs: every field that
    is known of it is given, since nobody knows what the class makes of one that is not. False: it is none."""
    import plan
    from _mocks import is_sub
    from _remote import RAW, REMOTE
    entry = entry or REMOTE.get(t)
    if ("configs", t) in plan.OVERRIDE:
        return True
    if entry is None or plan.load("configs", t) and "_class" in entry:
        return False
    if "_class" in entry:
        plan.OVERRIDE[("configs", t)] = {**measured(t, class_of(t)), "derive": []}
        return True
    base = plan.load("configs", entry["_base"]) if "_base" in entry else {"fields": {"tie_word_embeddings": {"default": None, "type": "bool"}}}
    own = {k: v for k, v in entry.items() if k[0] != "_" and k != "model_type"}
    subs = {k: v for k, v in own.items() if isinstance(v, dict) and is_sub(k, v) and k not in RAW.get(t, ())}
    given = {k: v for k, v in own.items() if k not in subs}
    for k, v in subs.items():
        inner = v.setdefault("model_type", f"{t}.{k}")
        if not plan.load("configs", inner):
            remote(inner, v)
    llm = [["text_config", "llm_config"]] if "llm_config" in subs and "text_config" not in subs else []
    plan.OVERRIDE[("configs", t)] = {
        **base, "model_type": t, "class": t, "fields": {**base["fields"], **{k: {"default": v, "type": "any"} for k, v in given.items()}},
        "auto": {**base.get("auto", {}), **{k: {"model_type": v["model_type"], "default": v} for k, v in subs.items()}},
        "derive": [*base.get("derive", []), *llm], "given": given}
    return True


def check(model_type, n, seed=0, program=None):
    """How many of n random configs the program and the class resolve differently; the first few are printed."""
    from transformers import logging
    import derive
    import plan
    import vary
    logging.set_verbosity_error()
    if program:
        plan.OVERRIDE[("configs", model_type)] = program
    rng, bad, cls = random.Random(seed), 0, class_of(model_type)
    vary.BASE[model_type] = base_of(model_type)
    skip = set((plan.load("configs", model_type) or {}).get("unknown", ()))
    for _ in range(n):
        raw = vary.config(model_type, rng)
        try:
            ours = plan.resolve(raw, model_type=model_type)
        except plan.Refused as e:
            ours = str(e)
        try:
            theirs = cls(**{k: v for k, v in json.loads(json.dumps(raw)).items() if k != "model_type"})
            theirs.allow_global_per_layer_attribute_access = True
            wrong = isinstance(ours, str) or [k for k in differing(ours, theirs) if k.split(':')[0] not in skip]
        except Exception as e:  # noqa: BLE001  any refusal of transformers
            theirs, wrong = e, not isinstance(ours, str)
        if wrong:
            bad += 1
            if bad <= 3:
                print(f"{model_type}: {wrong} {theirs if isinstance(theirs, Exception) else ''} {ours if isinstance(ours, str) else ''}")
    print(f"{model_type}: {n - bad} of {n} as the class has them" + (f"; unknown: {sorted(skip)}" if skip else ""))
    return bad


def differing(ours, theirs, at=""):
    import derive
    import vary
    """Fields of a resolved config that the real object has otherwise."""
    # Not resolved, since nothing that is loaded depends on them: rotary embeddings, Llama 4's kinds of attention.
    program_fields = {k for k in ours if not k.startswith("_") and "rope" not in k and k != "per_layer_config"}
    if ours.get("model_type") == "llama4_text" or "interleave_moe_layer_step" in ours:
        program_fields -= {"layer_types"}
    for k in sorted(program_fields):
        if not hasattr(theirs, k) or k in derive.DULL or vary.STILL.search(k):
            continue    # a default of vLLM's own
        v = getattr(theirs, k)
        if isinstance(ours[k], dict) and hasattr(v, "to_dict"):
            v.allow_global_per_layer_attribute_access = True
            yield from differing(ours[k], v, f"{at}{k}.")
        elif k != "model_type" and json.loads(json.dumps(v, default=str)) != ours[k]:
            yield f"{at}{k}: ours {ours[k]!r}, theirs {v!r}"


if __name__ == "__main__":
    main()
