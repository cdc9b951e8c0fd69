"""Config programs: rules/facts/vllm/<version>/configs/<model_type>.json.

    python tools/facts/configs.py rules/facts/vllm/0.32/configs [MODEL_TYPE...]
    python tools/facts/configs.py --check 200 rules/facts/vllm/0.32/configs

Fields, their types and defaults, aliases and sub-configs are read off the transformers class. What its __post_init__ derives is
code, so it is written down here once (DERIVE, CHECKS) and `--check` compares it with the real class on random configs.
"""
import argparse
import dataclasses
import hashlib
import inspect
import json
import random
import sys
import types
import typing

GEMMA4_TEXT = [
    ["layer_types", "with_last(cycle(num_hidden_layers, 6, 'sliding_attention', 'full_attention') if layer_types == null else layer_types, 'full_attention')"],
    ["global_head_dim", "512 if global_head_dim == null else global_head_dim"],
    ["per_layer_config", "per_layer_config if per_layer_config != null else "
                         "at_indices(layer_types, 'full_attention', 'head_dim', global_head_dim, 'num_key_value_heads', "
                         "num_global_key_value_heads if attention_k_eq_v else null)"],
]
HEADS = [["num_key_value_heads", "num_attention_heads if num_key_value_heads == null else num_key_value_heads"]]
DERIVE = {
    "llama": HEADS + [["head_dim", "hidden_size // num_attention_heads if head_dim == null else head_dim"]],
    "qwen3_moe": HEADS + [["mlp_only_layers", "[] if mlp_only_layers == null else mlp_only_layers"],
                          ["head_dim", "hidden_size // num_attention_heads if head_dim == null else head_dim"]],
    "deepseek_v3": HEADS + [["moe_layer_freq", "1 if moe_layer_freq == null else moe_layer_freq"]],
    "gemma4_text": GEMMA4_TEXT,
    "gemma4_unified_text": GEMMA4_TEXT,
}
MULTIPLE = {"ok": "hidden_size % num_attention_heads == 0", "error": "StrictDataclassClassValidationError",
            "message": "Class validation error for validator 'validate_architecture':\n    ValueError: The hidden size ({hidden_size}) is not "
                       "a multiple of the number of attention heads ({num_attention_heads})."}
CHECKS = {"llama": [MULTIPLE]}
# What stands in for an absent sub-config: the class's own default, or nothing.
SUB_DEFAULT = {("gemma4", "text_config"): "class", ("gemma4_unified", "text_config"): "class"}
# Fields of every config that say nothing of structure.
DULL = {"output_hidden_states", "return_dict", "chunk_size_feed_forward", "is_encoder_decoder", "id2label", "label2id", "problem_type",
        "transformers_version", "architectures", "dtype", "tie_last_hidden_states", "model_type"}


def type_word(t):
    if t is type(None):
        return "null"
    if t in (int, float, bool, str, dict, list, tuple):
        return t.__name__
    origin = typing.get_origin(t)
    if origin in (typing.Union, types.UnionType):
        return "|".join(dict.fromkeys(type_word(a) for a in typing.get_args(t)))
    if origin in (list, tuple):
        args = [a for a in typing.get_args(t) if a is not Ellipsis]
        return f"list[{type_word(args[0])}]" if args else "list"
    if origin is dict:
        return "dict"
    return "any"


def program(model_type, cls):
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
        fields[f.name] = {"default": list(default) if isinstance(default, tuple) else default, "type": type_word(hints.get(f.name, object))}
    out = {"model_type": model_type, "class": cls.__name__, "fields": fields}
    if cls.attribute_map:
        out["aliases"] = dict(cls.attribute_map)
    if cls.sub_configs:
        out["sub"] = {k: {"model_type": v.model_type, "default": SUB_DEFAULT.get((model_type, k), "null")} for k, v in cls.sub_configs.items()
                      if hasattr(v, "model_type")}
    out["derive"] = DERIVE.get(model_type, [])
    out["checks"] = CHECKS.get(model_type, [])
    post = cls.__dict__.get("__post_init__")
    if post:
        out["source"] = {f"{cls.__name__}.__post_init__": hashlib.sha256(inspect.getsource(post).encode()).hexdigest()[:12]}
    return out


def dump(d):
    lines = []
    for k, v in d.items():
        if isinstance(v, (dict, list)) and v and k in ("fields", "sub", "derive", "checks"):
            rows = [f"  {json.dumps(a)}: {json.dumps(b)}" for a, b in v.items()] if isinstance(v, dict) else [f"  {json.dumps(r)}" for r in v]
            lines.append(f' "{k}": ' + ("{" if isinstance(v, dict) else "[") + "\n" + ",\n".join(rows) + "\n " + ("}" if isinstance(v, dict) else "]"))
        else:
            lines.append(f' "{k}": {json.dumps(v)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    from transformers import CONFIG_MAPPING
    ap = argparse.ArgumentParser()
    ap.add_argument("out")
    ap.add_argument("model_types", nargs="*")
    a = ap.parse_args()
    wanted = a.model_types or ["llama", "gemma4", "gemma4_text", "gemma4_vision", "gemma4_audio", "gemma4_unified", "gemma4_unified_text",
                               "gemma4_unified_vision", "gemma4_unified_audio", "qwen3_moe", "deepseek_v3"]
    for t in wanted:
        open(f"{a.out}/{t}.json", "w").write(dump(program(t, CONFIG_MAPPING[t])))
        print(t, file=sys.stderr)


if __name__ == "__main__":
    main()
