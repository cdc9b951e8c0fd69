"""Random admissible configs of a model type, from its config program and a small table of what fields may hold."""
import copy
import math
import random
import re

from hints import AGREE, VALUES
from plan import load

# Values by field name (regular expression -> function of rng, config so far). The first that matches counts.
def size(lo, hi, step):
    return lambda r, d: r.randrange(lo, hi, step)


def pick(*xs):
    return lambda r, d: r.choice(xs)


def layers(r, d):
    return r.randint(2, 7)


def upto(name, top=0):
    return lambda r, d: r.randint(0, max(0, (d.get(name) or 4) - 1 + top))


def divisor(name):
    def f(r, d):
        n = d.get(name) or 8
        return r.choice([k for k in range(1, n + 1) if n % k == 0])
    return f


def times(name, step):
    return lambda r, d: (d.get(name) or 8) * step * r.randint(2, 24)


FIELDS = [
    (r"^(num_hidden_layers|num_layers|n_layer|n_layers|depth|encoder_layers|decoder_layers)$", layers),
    (r"^(num_attention_heads|num_heads|n_head|n_heads|encoder_attention_heads|decoder_attention_heads|index_n_heads)$", pick(2, 3, 4, 6, 8, 12)),
    (r"^(num_key_value_heads|num_global_key_value_heads)$", divisor("num_attention_heads")),
    (r"^(hidden_size|d_model|n_embd)$", lambda r, d: (d.get("num_attention_heads") or 8) * r.choice((16, 64)) * r.randint(2, 24)),
    (r"^qk_rope_head_dim$", size(16, 128, 16)),
    (r"^rotary_dim$", lambda r, d: (d.get("head_dim") or 32) // 2),
    (r"head_dim$", size(16, 272, 16)),
    (r"^num_kv_shared_layers$", upto("num_hidden_layers")),
    (r"^first_k_dense_replace$", upto("num_hidden_layers", 1)),
    (r"^(moe_layer_freq|decoder_sparse_step)$", pick(1, 1, 2, 3)),
    (r"^(num_experts|num_local_experts|n_routed_experts)$", size(4, 33, 4)),
    (r"^(num_experts_per_tok|top_k_experts)$", pick(1, 2)),
    (r"^n_shared_experts$", pick(None, 1, 2, 3)),
    (r"^(n_group|topk_group)$", pick(1)),
    (r"^(num_nextn_predict_layers|n_predict|mtp_num_hidden_layers)$", pick(0, 1)),
    (r"^topk_method$", pick("noaux_tc", "greedy")),
    (r"^scoring_func$", pick("softmax", "sigmoid")),
    (r"^mlp_only_layers$", lambda r, d: [i for i in range(d.get("num_hidden_layers", 4)) if r.random() < .3] if r.random() < .6 else []),
    (r"^layer_types$", lambda r, d: [r.choice(["sliding_attention", "full_attention"]) for _ in range(d["num_hidden_layers"])]),
    (r"(^|_)(d_conv|conv_kernel|conv_kernel_dim|conv_l_cache|short_conv_kernel_size)$", size(2, 6, 1)),
    (r"n_groups$|^mamba_ngroups$", pick(1, 2)),
    (r"(^|_)expand$", pick(1, 2)),
    (r"d_state$|^state_size$|ssm_state_size$", size(16, 129, 16)),
    (r"^linear_num_key_heads$", pick(2, 4)),
    (r"^linear_num_value_heads$", pick(4, 8)),
    (r"^linear_(key|value)_head_dim$", pick(16, 32, 64)),
    (r"^time_step_rank$|^mamba_dt_rank$", pick(8, 12, 24)),
    (r"^(attn|expert)_layer_(period|offset)$|_(interval|period|freq|frequency)$", pick(1, 2, 3)),
    (r"^layer_group_size$", pick(2, 3)),
    (r"^moe_layer_(start|end)_index$", upto("num_hidden_layers")),
    (r"^num_labels$", size(1, 9, 1)),
    (r"^use_bidirectional_attention$", pick(None, "all", "vision")),
    (r"^(patch_size|model_patch_size|conv_kernel_size|pooling_kernel_size)$", size(2, 19, 1)),
    (r"^subsampling_conv_channels$", lambda r, d: [r.randrange(8, 200, 8), r.randrange(8, 64, 8)]),
    (r"^(max_position_embeddings|n_positions)$", size(64, 900, 1)),
    (r"^vocab_size", size(1000, 90000, 1)),
    (r"lora_rank$|_rank$", size(16, 512, 16)),
    (r"^hidden_size_per_layer_input$", lambda r, d: r.choice([0, r.randrange(16, 200, 8)])),
    (r"(size|dim|dims|width|channels)$", lambda r, d: r.randrange(64, 3000, r.choice((8, 64)))),
    (r"^expert_intermediate_size$", size(64, 3000, 8)),
]
# Fields that decide no structure: left alone.
STILL = re.compile(r"token_id|token_index|eps$|dropout|initializer|use_cache|hidden_act|activation|^rope_|theta|softcap|logit_cap|sliding_window|"
                   r"pretraining_tp|scaling|attention_context|invalid_logits|residual_weight|gradient_clip|coef|beta|routed_scaling|"
                   r"norm_topk|router_aux|output_router|ep_size|time_step_(min|max|floor|limit)|chunk_size|_coefficient|z_loss|aux_loss|time_step_limit|apply_router_weight_on_input|max_window|partial_rotary|use_sliding|_config$")
# Fields beyond the declared ones that are true or false.
FLAG = re.compile(r"bias$|^(use|is|has|add|enable|apply)_|norm$|_lora$")
# Fields that a config class has no default for, by model type: always given.
BASE = {}
# Fields that the search cannot follow, by model type: facts hold for these values only, and their files say so (`only`).
# `wrapper.field`: of the sub-config of that wrapper alone (VALUES too); a value for `field.model_type` is the type of a sub-config that may be any.
PIN = {
    "mlp_projector": {"depth": 2}, "deepseek_vl_v2": {"tile_tag": "2D"}, "unlimited-ocr": {"tile_tag": "2D"}, "unlimited_ocr": {"tile_tag": "2D"},
    "kanana-1.5-v.projector_config": {"depth": 2, "mlp_depth": 2},
    "glmasr": {"text_config.model_type": "llama"}, "funaudiochat": {"text_config.model_type": "qwen3"},
    "bee": {"vision_config.model_type": "siglip_vision_model"}, "rvl": {"vision_config.model_type": "siglip_vision_model"},
    "cohere_asr_remote": {"encoder.subsampling_factor": 8, "encoder.feat_out": -1},
    "gemma3n_vision": {"architecture": "mobilenetv5_300m_enc", "model_args": None},
    "hrm_text": {"H_cycles": 2, "L_cycles": 3},
    "deepseek_v4": {"head_dim": 512, "qk_rope_head_dim": 64, "index_head_dim": 128},
    "mimo_audio": {"audio_channels": 8, "speech_vocab_size": "1025-1025-129-129-129-129-129-129"}, "molmo2_adapter": {"vit_layers": [-3, -9]},
    "parakeet_sound": {"subsampling_factor": 8, "subsampling_conv_stride": 2},
    "openpangu_vision": {"mm_unit_vision_select_layer": [-1, -3]},
    "openvla": {"timm_model_ids": ["vit_large_patch14_reg4_dinov2.lvd142m", "vit_so400m_patch14_siglip_224"]},
}
# Sub-configs that are always there: without them nothing is known.
MUST = {("moss_transcribe_diarize", "audio_config")}
# Sub-configs of any class that may be missing.
MAY = {("embedding_gemma2", "vision_config"), ("embedding_gemma2", "audio_config")}
# Whether a nullable field or an extra key is there at all. Of a config class that is remote code all fields are given, since nobody knows its defaults.
NULL, EXTRA_KEY, CHANGE = .3, .5, .75


def config(model_type, rng, extra=(), top=True, table=None, place=""):
    """A raw config; `extra` are (model type, field) that the model reads beyond the declared ones; `place` is `wrapper.field` of a sub-config."""
    p = load("configs", model_type)
    # A program may have another name than the type that files have.
    named, pinned = p.get("model_type", model_type), {**PIN.get(model_type, {}), **PIN.get(place, {})}
    d = {"model_type": named, **copy.deepcopy(BASE.get(model_type, {}))}
    fields = {f: guess(v) for f, v in p["fields"].items()}
    names = set(re.findall(r"[a-z_]\w*", " ".join(e for _, e in p.get("derive", [])))) - set(fields)
    own = {**VALUES.get(model_type, {}), **VALUES.get(place, {})}
    for n in sorted(names | {f for t, f in extra if t == named} | set(BASE.get(model_type, ())) | set(own)):
        if n in own:
            fields[n] = dict(type="any", default=fields.get(n, {}).get("default"), extra=n not in fields)
        elif n in fields:
            continue
        elif rule(n) and n != "layer_types" and n not in p.get("sub", {}) and n not in p.get("aliases", {}):
            fields[n] = dict(type="int|null", extra=True)
        elif (FLAG.search(n) or isinstance(d.get(n), bool)) and not STILL.search(n) and n not in fields:
            fields[n] = dict(type="bool", extra=True)
    # Counts first: the others refer to them.
    order = sorted(fields, key=lambda f: (next((i for i, (r, _) in enumerate(FIELDS[:3]) if re.search(r, f)), 9), f))
    for f in order:
        t, r = fields[f].get("type", "any"), own.get(f) or rule(f)
        if STILL.search(f) and not r:
            continue
        if table and f in table:
            d[f] = rng.choice(table[f])
            continue
        must = bool(re.search(FIELDS[0][0], f)) or f in own and f in p.get("words", {})
        if f in p.get("words", {}) and f not in own:
            n = next((d[c] for c in ("num_hidden_layers", "num_layers", "n_layer", "n_layers") if c in d), None)
            if n is None and not any(c in fields for c in ("num_hidden_layers", "num_layers", "n_layer", "n_layers")):
                n = rng.randint(2, 6)           # the list says how many there are
            if n is not None and rng.random() < .6:
                d[f] = [rng.choice(p["words"][f]) for _ in range(n)]
                if "linear_attention" in d[f] and rng.random() < .2:    # as older files have it
                    d[f] = [{"linear_attention": "mamba", "full_attention": "attention"}.get(x, x) for x in d[f]]
            continue
        if not must and rng.random() > (EXTRA_KEY if fields[f].get("extra") else CHANGE):
            continue
        if "null" in t.split("|") and f not in ("layer_types",) and rng.random() < NULL:
            if EXTRA_KEY < 1 or not fields[f].get("extra") or f == "q_lora_rank":
                if EXTRA_KEY == 1 or not fields[f].get("extra"):
                    d[f] = None
                continue
        value = r(rng, {**{k: v.get("default") for k, v in fields.items()}, **d}) if r else None
        if r and fits(value, t):
            d[f] = value
        elif t in ("int", "int|null") and number(fields[f].get("default")) and fields[f]["default"] >= 0:
            n = fields[f]["default"]
            d[f] = rng.randrange(16, 4 * n, 8) if n > 16 else rng.randint(0, n + 2)
        elif "bool" in t.split("|"):
            d[f] = rng.random() < .5
    settle(d, {**{f: v.get("default") for f, v in fields.items()}, **d}, rng)
    if model_type in AGREE:
        AGREE[model_type](rng, d)
    d |= {k: v for k, v in pinned.items() if "." not in k}
    for f, sub in p.get("sub", {}).items():
        t = sub["model_type"]
        if top and f not in ("text_config", "vision_config") and (model_type, f) not in MUST and rng.random() < NULL:
            d[f] = None
            continue
        d[sub.get("from", f)] = config(t, rng, extra, False, table, f"{model_type}.{f}")
    for f, sub in p.get("auto", {}).items():
        if (model_type, f) in MAY and rng.random() < NULL:
            d[f] = None
            continue
        t = sub["model_type"] or (sub["default"] or {}).get("model_type")
        others = next((ts for ts in AUTO if t in ts), [t])
        t = pinned.get(f"{f}.model_type", t)
        t = t if f"{f}.model_type" in pinned or sub.get("merge") or rng.random() < .6 else rng.choice([x for x in others if load("configs", x)] or [t])
        t = rng.choice(KINDS.get((model_type, f), [t or "llama"]))      # it has to name one
        key = sub.get("from", f)
        d[key] = config(t, rng, extra, False, table, f"{model_type}.{f}")
        named = (sub["default"] or {}).get("architectures")
        if named and t == sub["model_type"]:
            d[key]["architectures"] = named
    return d


# Sub-configs that stand for each other where any class is taken.
# What a sub-config of any class may be where few are good.
KINDS = {("ovis", "visual_tokenizer_config"): ["aimv2_visual_tokenizer", "siglip_visual_tokenizer"], ("aimv2_visual_tokenizer", "backbone_config"): ["aimv2"],
         ("siglip_visual_tokenizer", "backbone_config"): ["siglip_vision_model"], ("ovis", "text_config"): ["qwen2", "llama", "gemma2"], ("opencua", "text_config"): ["qwen2"]}
AUTO = [["llama", "qwen2", "qwen3", "mistral"], ["clip_vision_model", "siglip_vision_model", "pixtral"]]


# Number of heads, their size, and the field that says how many times as wide as the model they are together.
SSM = [("mamba_n_heads", "mamba_d_head", "mamba_expand"), ("mamba_num_heads", "mamba_head_dim", "expand"), ("num_heads", "head_dim", "expand"),
       ("n_mamba_heads", "mamba_headdim", "mamba_expand"), ("mamba_num_heads", "mamba_head_dim", "mamba_expand"), ("mamba_num_heads", "hidden_size_per_head", None)]


def settle(d, full, rng):
    """Fields that have to agree with each other."""
    for heads, dim, expand in SSM:
        if heads in full and dim in full and (expand is None or expand in full) and number(full.get("hidden_size")):
            if expand is None:
                continue
            e = full[expand] if number(full[expand]) else 2
            wide = e * full["hidden_size"]
            d[heads] = rng.choice([n for n in (2, 4, 8, 16, 32) if wide % (n * 8) == 0] or [2])
            d[dim], d[expand] = wide // d[heads], e
            if full[dim] == "auto" and rng.random() < .5:
                d[dim] = "auto"
            if "mamba_d_ssm" in full:
                d["mamba_d_ssm"] = wide
            for g in ("mamba_n_groups", "n_groups", "mamba_ngroups"):
                if g in full:
                    d[g] = rng.choice((1, 2))
            break
    for a, b in (("attn_layer_offset", "attn_layer_period"), ("expert_layer_offset", "expert_layer_period")):
        if a in full and b in full:
            d[b] = rng.choice((1, 2, 3))
            d[a] = rng.randrange(d[b])
    if number(full.get("num_kv_shared_layers")) and number(full.get("num_hidden_layers")) and full["num_kv_shared_layers"] > full["num_hidden_layers"]:
        d["num_kv_shared_layers"] = full["num_hidden_layers"] - 1
    if d.get("model_type") == "ernie4_5_vision":
        d["embed_dim"] = full["hidden_size"]
    if "n_group" in full and "topk_group" in full:      # of one kind or none, whatever the method of choice
        d["n_group"] = d["topk_group"] = 1
    if number(full.get("pad_token_id")) and full["pad_token_id"] >= 1000:
        d["pad_token_id"] = 0           # torch wants it within the vocabulary
    if "word_embed_proj_dim" in full and number(full.get("hidden_size")):
        d["word_embed_proj_dim"] = full["hidden_size"] // rng.choice((1, 2))
    if "moe_layer_end_index" in full and rng.random() < .5:
        d["moe_layer_end_index"] = -1
    if number(full.get("n_head")) and number(full.get("num_attention_heads")):      # whoever counts them
        both = math.gcd(full["n_head"], full["num_attention_heads"])
        d["num_key_value_heads"] = full["num_key_value_heads"] = rng.choice([k for k in range(1, both + 1) if both % k == 0])
    h, kv = full.get("num_attention_heads"), full.get("num_key_value_heads")
    if number(h) and number(kv) and kv and h % kv:
        d["num_key_value_heads"] = h
    if number(h) and number(full.get("hidden_size")) and full["hidden_size"] % h and "num_attention_heads" in d:
        d["hidden_size"] = h * rng.choice((16, 64)) * rng.randint(2, 24)


def guess(field):
    """The type of a field that its class does not declare, from its default."""
    if field.get("type", "any") != "any":
        return field
    d = field.get("default")
    return {**field, "type": {bool: "bool", int: "int", str: "str", list: "list"}.get(type(d), "any")}


def fits(value, t):
    """Whether transformers' strict types take it."""
    word = {type(None): "null", bool: "bool", int: "int", str: "str"}.get(type(value))
    return word is None or "any" in t.split("|") or word in t.split("|") or word == "int" and "float" in t.split("|")


def number(x):
    return isinstance(x, int) and not isinstance(x, bool)


def rule(f):
    return next((fn for r, fn in FIELDS if re.search(r, f)), None)
