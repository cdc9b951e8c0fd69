#!/usr/bin/env python3
"""Write conformance cases for many architectures: one tiny good checkpoint each, and the same faults for all.

    mkwide.py --bases [ARCH...]      the good ones in 16 bit, named and shaped by transformers (needs the venv)
    mkwide.py [--only TEXT]          W4A16 and FP8 forms of them, and the faults (standard library and numpy)

A fault that does not apply to an architecture is left out, and of the others a fixed share, so that all kinds meet all
architectures without a thousand files. The verdict is left to `judge.py --record`; `good` marks what its maker means to
be right, and vLLM has the last word: a good case that it refuses is a mistake of this file.
"""
import argparse
import copy
import json
import os
import re
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import mkcases
from judge import save_case
from mkcases import CASES, Draft

SHARE = 42      # per cent of the faults for each architecture
SHARE_BACKEND = {"olmo2": 20, "hunyuanmoe": 20, "gptneox": 12, "phi": 12, "gptbigcode": 12}      # of those in BACKEND; else
SHARE_EACH = 6
ARCHS = {
    "gemma2": "Gemma2ForCausalLM", "gemma3": "Gemma3ForCausalLM", "gemma3mm": "Gemma3ForConditionalGeneration", "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "qwen3moe": "Qwen3MoeForCausalLM",
    "qwen25vl": "Qwen2_5_VLForConditionalGeneration", "qwen3vl": "Qwen3VLForConditionalGeneration", "phi3": "Phi3ForCausalLM",
    "granite": "GraniteForCausalLM", "llama4": "Llama4ForConditionalGeneration", "llama4text": "Llama4ForCausalLM",
    "deepseekv3": "DeepseekV3ForCausalLM", "gptoss": "GptOssForCausalLM", "glm4moe": "Glm4MoeForCausalLM",
}
# What vLLM serves through its Transformers backend: one class of many trees.
BACKEND = {
    "olmo2": "Olmo2ForCausalLM", "olmo3": "Olmo3ForCausalLM", "smollm3": "SmolLM3ForCausalLM", "starcoder2": "Starcoder2ForCausalLM",
    "phi": "PhiForCausalLM", "gptneox": "GPTNeoXForCausalLM", "gptbigcode": "GPTBigCodeForCausalLM", "seedoss": "SeedOssForCausalLM",
    "glm": "GlmForCausalLM", "hunyuandense": "HunYuanDenseV1ForCausalLM", "hunyuanmoe": "HunYuanMoEV1ForCausalLM", "arcee": "ArceeForCausalLM",
    "cwm": "CwmForCausalLM", "flexolmo": "FlexOlmoForCausalLM", "jais2": "Jais2ForCausalLM", "mellum": "MellumForCausalLM",
    "nanbeige": "NanbeigeForCausalLM", "olmo": "OlmoForCausalLM", "vaultgemma": "VaultGemmaForCausalLM",
}
ARCHS |= BACKEND
QUANTIZED = {"olmo2", "smollm3", "hunyuanmoe"}      # of these, in W4A16, FP8 and INT8 too
TOWER = re.compile(r"(^|\.)(visual|vision_tower|vision_model|multi_modal_projector|audio_tower)\.")
LINEAR = re.compile(r"(_proj|_proj_with_mqa|\.w[123])\.weight$")
# Linears that stay 16 bit in a quantized checkpoint: vLLM's classes build them so, or everyone leaves them.
PLAIN = re.compile(r"(^|\.)(lm_head|gate|router|shared_expert_gate)\.weight$|kv_b_proj\.weight$")


def base(short):
    import hfnames
    arch = ARCHS[short]
    saved = SAVED_BY.get(arch, arch)
    config = hfnames.config(arch, True, SET.get(short, []))
    sd, c = hfnames.tensors(saved, config)
    d = json.loads(json.dumps(c.to_diff_dict(), default=str))
    d["architectures"], d["dtype"] = [arch], "bfloat16"
    tensors = [{"name": n, "dtype": {"bfloat16": "BF16", "float32": "F32"}[str(t.dtype)[6:]], "shape": list(t.shape),
                "fill": f"randn:{zlib.crc32(n.encode()) % 2**31}"} for n, t in sd.items()]
    return dict(id=f"{short}-wide-bf16", arch=arch, family="base", description="tiny, as transformers saves it", good=True, expect=[],
                files={"config.json": d}, shards={"model.safetensors": {"metadata": {"format": "pt"}, "tensors": tensors}})


# Changes to the tiny config that vLLM needs.
SET = {"glm4moe": ["head_dim=64"]}
# The class of transformers that saves what the architecture of another name loads.
SAVED_BY = {"NanbeigeForCausalLM": "LlamaForCausalLM"}


class Wide:
    """What a fault needs to know of a base."""

    def __init__(self, short, draft):
        self.short, self.d = short, draft
        names = draft.names()
        layers = [m for n in names if (m := re.match(r"(.*?(?:layers|\bh)\.)(\d+)\.", n)) and not TOWER.search(n)]
        self.at = layers[0].group(1)
        self.n = 1 + max(int(m.group(2)) for m in layers if m.group(1) == self.at)
        self.last = f"{self.at}{self.n - 1}."
        self.linears = [n[:-7] for n in names if LINEAR.search(n) and not PLAIN.search(n) and not TOWER.search(n)
                        and len(draft.get(n)["shape"]) == 2]
        self.tower = sorted({n for n in names if TOWER.search(n)})
        self.experts = [n for n in names if re.search(r"experts\.\d+\.", n)]
        self.text = draft.text

    def pick(self, *ends):
        """A linear of the last layer that ends so, else of any."""
        for e in ends:
            for pool in ([m for m in self.linears if m.startswith(self.last)], self.linears):
                hit = [m for m in pool if m.endswith(e)]
                if hit:
                    return hit[-1]
        raise Skip


def unfused(d):
    """Experts one by one, as quantizers write them: of `[experts, in, out]` banks."""
    for f, t in list(d.all()):
        m = re.match(r"(.*\.experts)\.(gate_up_proj|down_proj)$", t["name"])
        if not m:
            continue
        d.drop("^" + re.escape(t["name"]) + "$")
        e, k, n = t["shape"]
        for i in range(e):
            for p in ("gate_proj", "up_proj") if m.group(2) == "gate_up_proj" else ("down_proj",):
                d.add(f"{m.group(1)}.{i}.{p}.weight", t["dtype"], [n // 2 if p != "down_proj" else n, k], file=f)
    return d


class Skip(Exception):
    pass


def need(x):
    if not x:
        raise Skip
    return x


def w4(w):
    d = w.d.copy()
    for m in w.linears:
        n, k = d.get(m + ".weight")["shape"]
        if k % 32 or n % 8:
            raise SystemExit(f"{w.short}: {m} is {n} x {k}")
        d.pack(m)
    d.config["quantization_config"] = ct("pack-quantized", dict(num_bits=4, type="int", symmetric=True, strategy="group", group_size=32))
    return ignoring(w, d)


def ct(fmt, weights, acts=None):
    return dict(quant_method="compressed-tensors", format=fmt, quantization_status="compressed", ignore=[],
                config_groups=dict(group_0=dict(targets=["Linear"], weights=weights, input_activations=acts, output_activations=None)))


def ignoring(w, d):
    ig = ["lm_head"]
    if w.tower:
        ig += sorted({f"re:.*{m.group(2)}.*" for n in w.tower if (m := TOWER.search(n))})
    ig += sorted({n[:-7] for n in d.names() if re.search(r"\.(gate|gate\.wg|router|kv_b_proj)\.weight$", n) and not TOWER.search(n)})
    d.config["quantization_config"]["ignore"] = ig
    return d


def eight(w, dtype, fmt, kind):
    """8 bits a weight by channel, 8 bits an activation by token."""
    d = w.d.copy()
    for m in w.linears:
        t = d.get(m + ".weight")
        t["dtype"] = dtype
        d.add(m + ".weight_scale", "BF16", [t["shape"][0], 1])
    d.config["quantization_config"] = ct(fmt, dict(num_bits=8, type=kind, symmetric=True, strategy="channel", dynamic=False),
                                         dict(num_bits=8, type=kind, symmetric=True, strategy="token", dynamic=True))
    return ignoring(w, d)


# ---------------------------------------------------------------- faults of 16-bit checkpoints: (tag, family, what, change)

def norm(w):
    return need([n for n in w.d.names() if n.startswith(w.last) and re.search(r"norm\.weight$", n)])[0]


def reshape(d, name, f):
    t = d.get(name)
    t["shape"] = f(list(t["shape"]))
    return d


def set_text(w, d, **kw):
    d.text.update(kw)
    return d


def drop(d, *names):
    return d.drop(*["^" + re.escape(n) + "$" for n in names])


def fused(w, *ends):
    return need([m for m in w.linears if m.endswith(ends) and "expert" not in m])[0] + ".weight"


def copy_layer(w, d):
    for f, t in list(d.all()):
        if t["name"].startswith(w.last):
            d.add(f"{w.at}{w.n}." + t["name"][len(w.last):], t["dtype"], list(t["shape"]), file=f)
    return d


def layers(w, d, n):
    key = next(k for k in ("num_hidden_layers", "n_layer") if k in d.text)
    d.text[key] = d.text[key] + n
    return d


def layer_types(w, d, n):
    need("layer_types" in d.text)
    d.text["layer_types"] = (d.text["layer_types"] * 3)[:len(d.text["layer_types"]) + n]
    return d


def tie(w, d):
    stored = any(n.endswith("lm_head.weight") for n in d.names())
    d.config["tie_word_embeddings"] = stored
    if "text_config" in d.config:
        d.text["tie_word_embeddings"] = stored
    return d


def head(w, d):
    need(not any(n.endswith("lm_head.weight") for n in d.names()))
    e = d.get(embed(w))
    return d.add("lm_head.weight" if e["name"].startswith("model.") else e["name"].replace("model.embed_tokens", "lm_head"), "BF16", list(e["shape"]))


def retype(d, pattern, dtype):
    hits = need([t for _, t in d.all() if re.search(pattern, t["name"])])
    for t in hits:
        t["dtype"] = dtype
    return d



def of_expert(w, i, ends=("",)):
    last = [n for n in w.experts if f"experts.{i}." in n and any(e in n for e in ends)]
    layer = need([re.match(r".*?layers\.\d+\.", n).group(0) for n in last])[-1]
    return need([n for n in last if n.startswith(layer)])


def extra_expert(w, d):
    n = 1 + max(int(re.search(r"experts\.(\d+)\.", x).group(1)) for x in need(w.experts))
    for name in of_expert(w, 0):
        d.add(re.sub(r"experts\.0\.", f"experts.{n}.", name), "BF16", list(d.get(name)["shape"]))
    return d


def embed(w):
    return need([n for n in w.d.names() if n.endswith(("embed_tokens.weight", "embed_in.weight", "wte.weight"))])[0]


SIXTEEN = [
    ("nonorm", "missing-tensors", "a norm of the last layer is missing", lambda w, d: drop(d, norm(w))),
    ("nofinal", "missing-tensors", "the final norm is missing", lambda w, d: drop(d, need([n for n in d.names() if n.endswith("model.norm.weight") and not TOWER.search(n)
                                                                                        or n.endswith("language_model.norm.weight")])[0])),
    ("noembed", "missing-tensors", "no word embedding", lambda w, d: drop(d, embed(w))),
    ("noup", "missing-tensors", "up_proj of a dense layer is missing, half of a fused pair", lambda w, d: drop(d, fused(w, "up_proj"))),
    ("noq", "missing-tensors", "q_proj is missing", lambda w, d: drop(d, fused(w, "q_proj", "q_a_proj"))),
    ("nov", "missing-tensors", "v_proj is missing", lambda w, d: drop(d, fused(w, "v_proj"))),
    ("noo", "missing-tensors", "o_proj is missing", lambda w, d: drop(d, fused(w, "o_proj"))),
    ("nolast", "missing-tensors", "the last layer is missing", lambda w, d: d.drop("^" + re.escape(w.last))),
    ("onemore", "layers", "one layer more than the config has", copy_layer),
    ("config-plus1", "layers", "the config has one layer more", lambda w, d: layers(w, d, 1)),
    ("config-minus1", "layers", "the config has one layer less", lambda w, d: layers(w, d, -1)),
    ("config-plus1-types", "layers", "the config has one layer more, in its list too", lambda w, d: layer_types(w, layers(w, d, 1), 1)),
    ("types-short", "config", "layer_types is one short", lambda w, d: layer_types(w, d, -1)),
    ("types-word", "config", "an unknown layer type", lambda w, d: need("layer_types" in d.text) and set_text(w, d, layer_types=["full"] * len(d.text["layer_types"]))),
    ("klong", "shapes", "k_proj has twice its rows", lambda w, d: reshape(d, fused(w, "k_proj"), lambda s: [2 * s[0], s[1]])),
    ("kshort", "shapes", "k_proj has half its rows", lambda w, d: reshape(d, fused(w, "k_proj"), lambda s: [s[0] // 2, s[1]])),
    ("olong", "shapes", "o_proj has more rows", lambda w, d: reshape(d, fused(w, "o_proj"), lambda s: [s[0] + 16, s[1]])),
    ("owide", "shapes", "o_proj has more columns", lambda w, d: reshape(d, fused(w, "o_proj"), lambda s: [s[0], s[1] + 32])),
    ("downturned", "shapes", "down_proj is transposed", lambda w, d: reshape(d, w.pick("down_proj", "w2", "o_proj") + ".weight", lambda s: s[::-1])),
    ("normlong", "shapes", "a norm is longer", lambda w, d: reshape(d, norm(w), lambda s: [s[0] + 8])),
    ("vocabshort", "shapes", "the embedding lacks 64 rows", lambda w, d: reshape(d, embed(w), lambda s: [s[0] - 64, s[1]])),
    ("vocabconfig", "config", "the config has 64 words more", lambda w, d: set_text(w, d, vocab_size=d.get(embed(w))["shape"][0] + 64)),
    ("intermediate", "config", "intermediate_size doubled", lambda w, d: need(isinstance(d.text.get("intermediate_size"), int))
        and set_text(w, d, intermediate_size=2 * d.text["intermediate_size"])),
    ("hidden", "config", "hidden_size doubled", lambda w, d: need(isinstance(d.text.get("hidden_size"), int)) and set_text(w, d, hidden_size=2 * d.text["hidden_size"])),
    ("kvheads", "config", "one key-value head", lambda w, d: need(d.text.get("num_key_value_heads", 1) != 1) and set_text(w, d, num_key_value_heads=1)),
    ("kvheads3", "config", "three key-value heads", lambda w, d: set_text(w, d, num_key_value_heads=3)),
    ("headdim", "config", "head_dim doubled", lambda w, d: need(isinstance(d.text.get("head_dim"), int)) and set_text(w, d, head_dim=2 * d.text["head_dim"])),
    ("hiddentext", "config", "hidden_size is a string", lambda w, d: set_text(w, d, hidden_size="256")),
    ("layersnull", "config", "num_hidden_layers is null", lambda w, d: set_text(w, d, num_hidden_layers=None)),
    ("ropetext", "config", "rope_parameters is a string", lambda w, d: set_text(w, d, rope_parameters="linear")),
    ("ropetype", "config", "an unknown rope type", lambda w, d: set_text(w, d, rope_parameters={"rope_type": "spiral", "rope_theta": 1e4})),
    ("ropenofactor", "config", "yarn without a factor", lambda w, d: set_text(w, d, rope_parameters={"rope_type": "yarn", "rope_theta": 1e4})),
    ("modeltype", "config", "an unknown model_type", lambda w, d: d.set(model_type="nomodel")),
    ("notype", "config", "no model_type", lambda w, d: d.config.pop("model_type") and d),
    ("noarch", "config", "no architectures", lambda w, d: d.config.pop("architectures") and d),
    ("peft", "prefix", "names with base_model.model.", lambda w, d: d.rename(r"^", "base_model.model.")),
    ("compiled", "prefix", "names with _orig_mod.", lambda w, d: d.rename(r"^", "_orig_mod.")),
    ("doubled", "prefix", "a doubled first segment", lambda w, d: d.rename(r"^(\w+)\.", r"\1.\1.")),
    ("f32", "dtype", "stored as F32", lambda w, d: retype(d, "", "F32")),
    ("f16norm", "dtype", "norms as F16", lambda w, d: retype(d, r"norm\.weight$", "F16")),
    ("i8down", "dtype", "a weight as I8 without a quantization config", lambda w, d: retype(d, re.escape(w.pick("down_proj", "w2", "o_proj")) + r"\.weight$", "I8")),
    ("tie", "tie", "tie_word_embeddings contradicts the head", tie),
    ("strayhead", "tie", "tied, and a head is stored", head),
    ("leftover", "towers", "a vision tower's tensors, no tower", lambda w, d: need(not w.tower) and d.add("vision_tower.blocks.0.attn.qkv.weight", "BF16", [64, 64])),
    ("cuttower", "towers", "the tower's tensors are missing", lambda w, d: need(w.tower) and drop(d, *w.tower)),
    ("nulltower", "towers", "the tower is null in the config and its tensors are gone", lambda w, d: need(w.tower) and drop(d, *w.tower).set(vision_config=None)),
    ("halftower", "towers", "one tensor of the tower is missing", lambda w, d: need(w.tower) and drop(d, w.tower[len(w.tower) // 2])),
    ("towershape", "towers", "a tensor of the tower has another shape", lambda w, d: reshape(d, need([n for n in w.tower if len(d.get(n)["shape"]) == 2])[0], lambda s: [s[0] // 2, s[1]])),
    ("noexpert", "experts", "expert 1 is missing", lambda w, d: drop(d, *of_expert(w, 1))),
    ("noexpert0", "experts", "expert 0 is missing", lambda w, d: drop(d, *of_expert(w, 0))),
    ("nodown", "experts", "down projection of an expert is missing", lambda w, d: drop(d, *of_expert(w, 1, ("down_proj", "w2")))),
    ("expertmore", "experts", "one expert more than the config has", extra_expert),
    ("expertshape", "experts", "an expert is half as wide", lambda w, d: reshape(d, of_expert(w, 1, ("down_proj", "w2"))[0], lambda s: [s[0], s[1] // 2])),
    ("norouter", "experts", "a router is missing", lambda w, d: drop(d, need([n for n in d.names() if re.search(r"\.(gate|router)\.weight$", n)])[-1])),
    ("nobias", "missing-tensors", "a bias is missing", lambda w, d: drop(d, need([n for n in d.names() if n.endswith("_proj.bias") and not TOWER.search(n)])[0])),
    ("morebias", "surplus", "a bias that the model has not", lambda w, d: d.add(fused(w, "o_proj")[:-7] + ".bias", "BF16", [8])),
    ("stray", "surplus", "a tensor of another model", lambda w, d: d.add(w.last + "mystery.weight", "BF16", [8, 8])),
    ("two-norm-extra", "two-faults", "a norm is missing and a stray tensor is there", lambda w, d: drop(d, norm(w)).add(w.last + "mystery.weight", "BF16", [8, 8])),
]


# ---------------------------------------------------------------- faults of W4A16 checkpoints

def group(d):
    return d.quant["config_groups"]["group_0"]


def weights(d, **kw):
    group(d)["weights"].update(kw)
    return d


def m_down(w):
    return w.pick("down_proj", "w2", "o_proj")


def attn(w, *ends):
    return need([m for m in w.linears if m.endswith(ends) and ("attn" in m)])[0]


FOUR = [
    ("unlisted", "16bit-not-ignored", "one linear 16-bit, not in ignore", False, lambda w, d: d.plain(m_down(w))),
    ("unlisted-o", "16bit-not-ignored", "o_proj 16-bit, not in ignore", False, lambda w, d: d.plain(attn(w, "o_proj"))),
    ("unlisted-q", "16bit-not-ignored", "q_proj 16-bit, not in ignore", False, lambda w, d: d.plain(attn(w, "q_proj", "qkv_proj", "q_a_proj"))),
    ("listed-o", "16bit-not-ignored", "repaired: o_proj 16-bit and in ignore", True, lambda w, d: d.plain(attn(w, "o_proj")).ignore(attn(w, "o_proj"))),
    ("listed-re", "ignore-syntax", "all o_proj 16-bit, by one regex", True,
     lambda w, d: [d.plain(m) for m in need([m for m in w.linears if m.endswith("o_proj")])] and d.ignore(r"re:.*o_proj$")),
    ("listed-unanchored", "ignore-syntax", "o_proj 16-bit, by a regex that does not match from the start", False,
     lambda w, d: d.plain(attn(w, "o_proj")).ignore(r"re:self_attn\.o_proj$")),
    ("listed-weight", "ignore-syntax", "o_proj 16-bit, listed with .weight", False, lambda w, d: d.plain(attn(w, "o_proj")).ignore(attn(w, "o_proj") + ".weight")),
    ("listed-noprefix", "ignore-syntax", "o_proj 16-bit, listed from layers on", False,
     lambda w, d: d.plain(attn(w, "o_proj")).ignore(attn(w, "o_proj")[attn(w, "o_proj").index("layers."):])),
    ("packed-ignored", "ignored-but-packed", "packed and in ignore", False, lambda w, d: d.ignore(m_down(w))),
    ("packed-ignored-q", "ignored-but-packed", "q_proj packed and in ignore, its siblings not", False, lambda w, d: d.ignore(attn(w, "q_proj", "qkv_proj"))),
    ("q-plain-listed", "partial-fused-ignore", "q_proj 16-bit and listed, its siblings packed", False, lambda w, d: d.plain(attn(w, "q_proj")).ignore(attn(w, "q_proj"))),
    ("fusedname", "ignore-syntax", "q, k, v 16-bit, ignored by the fused name", False,
     lambda w, d: [d.plain(attn(w, "q_proj")[:-6] + p) for p in ("q_proj", "k_proj", "v_proj")] and d.ignore(attn(w, "q_proj")[:-6] + "qkv_proj")),
    ("noscale", "missing-tensors", "a weight_scale is missing", False, lambda w, d: drop(d, m_down(w) + ".weight_scale")),
    ("nopacked", "missing-tensors", "a weight_packed is missing", False, lambda w, d: drop(d, attn(w, "o_proj") + ".weight_packed")),
    ("noscale-o", "missing-tensors", "the weight_scale of o_proj is missing", False, lambda w, d: drop(d, attn(w, "o_proj") + ".weight_scale")),
    ("noshapes", "missing-tensors", "no weight_shape anywhere", False, lambda w, d: d.drop(r"weight_shape$")),
    ("zeropoint", "surplus", "a zero point of a symmetric scheme", False, lambda w, d: d.add(attn(w, "o_proj") + ".weight_zero_point", "I32", [8, 8])),
    ("group64", "scheme", "group_size 64 in the config, 32 in the files", False, lambda w, d: weights(d, group_size=64)),
    ("bits8", "scheme", "8 bits in the config, 4 in the files", False, lambda w, d: weights(d, num_bits=8)),
    ("bits3", "scheme", "3 bits", False, lambda w, d: weights(d, num_bits=3)),
    ("asymmetric", "scheme", "asymmetric in the config, no zero points", False, lambda w, d: weights(d, symmetric=False)),
    ("channel", "scheme", "strategy channel in the config, groups in the files", False, lambda w, d: weights(d, strategy="channel", group_size=None)),
    ("tensor", "scheme", "strategy tensor in the config", False, lambda w, d: weights(d, strategy="tensor", group_size=None)),
    ("actorder", "scheme", "actorder group, no g_idx", False, lambda w, d: weights(d, actorder="group")),
    ("strategyword", "scheme", "an unknown strategy", False, lambda w, d: weights(d, strategy="row")),
    ("typeword", "scheme", "an unknown type", False, lambda w, d: weights(d, type="nf")),
    ("formatint", "scheme", "format int-quantized", False, lambda w, d: d.quant.update(format="int-quantized") or d),
    ("formatnone", "scheme", "no format", False, lambda w, d: d.quant.pop("format") and d),
    ("formatword", "scheme", "an unknown format", False, lambda w, d: d.quant.update(format="squeezed") or d),
    ("acts4", "scheme", "4-bit activations", False, lambda w, d: group(d).update(input_activations=dict(num_bits=4, type="int", symmetric=True, strategy="token", dynamic=True)) or d),
    ("noweights", "scheme", "a group without weights", False, lambda w, d: group(d).update(weights=None) or d),
    ("nogroups", "quant-config", "no config_groups", False, lambda w, d: d.quant.pop("config_groups") and d),
    ("noconfig", "quant-config", "packed, no quantization config", False, lambda w, d: d.config.pop("quantization_config") and d),
    ("method", "quant-config", "quant_method is an unknown word", False, lambda w, d: d.quant.update(quant_method="compressedtensors") or d),
    ("nomethod", "quant-config", "no quant_method", False, lambda w, d: d.quant.pop("quant_method") and d),
    ("targets-mlp", "targets", "targets reach no attention, which is packed", False, lambda w, d: group(d).update(targets=[r"re:.*(mlp|feed_forward|block_sparse_moe).*"]) or d),
    ("targets-none", "targets", "targets that match nothing", False, lambda w, d: group(d).update(targets=["re:.*nothing.*"]) or d),
    ("targets-broken", "targets", "a target that is no regex", False, lambda w, d: group(d).update(targets=["re:.*("]) or d),
    ("ignore-broken", "ignore-syntax", "an ignore entry that is no regex", False, lambda w, d: d.ignore("re:*o_proj")),
    ("ignore-dead", "ignore-syntax", "ignore entries that match nothing", False, lambda w, d: d.ignore("foo", r"re:.*\.nothing$")),
    ("router", "towers", "the router is not in ignore", False, lambda w, d: need([e for e in d.quant["ignore"] if e.endswith(("gate", "router"))])
        and d.unignore(*[e for e in d.quant["ignore"] if e.endswith(("gate", "router"))])),
    ("tower", "towers", "the tower is not in ignore", False, lambda w, d: need(w.tower) and d.unignore(*[e for e in d.quant["ignore"] if e.startswith("re:")])),
    ("headpacked", "lm-head", "lm_head packed, not in ignore", False,
     lambda w, d: need([n for n in d.names() if n == "lm_head.weight"]) and d.pack("lm_head").unignore("lm_head")),
    ("headnotignored", "lm-head", "lm_head 16-bit, not in ignore", False, lambda w, d: d.unignore("lm_head")),
    ("scaleshort", "shapes", "a scale has half its groups", False, lambda w, d: reshape(d, attn(w, "o_proj") + ".weight_scale", lambda s: [s[0], s[1] // 2])),
    ("scalerows", "shapes", "a scale has half its rows", False, lambda w, d: reshape(d, m_down(w) + ".weight_scale", lambda s: [s[0] // 2, s[1]])),
    ("scalef32", "dtype", "scales as F32", False, lambda w, d: retype(d, r"weight_scale$", "F32")),
    ("packedf16", "dtype", "a packed weight as F16", False, lambda w, d: retype(d, re.escape(attn(w, "o_proj")) + r"\.weight_packed$", "F16")),
    ("expert-plain", "experts", "one expert 16-bit, not in ignore", False,
     lambda w, d: [d.plain(n[:-7]) for n in of_expert(w, 1) if n.endswith(".weight")] and d),
    ("expert0-plain-listed", "experts", "expert 0 16-bit and in ignore, the others packed", False,
     lambda w, d: [d.plain(n[:-7]).ignore(n[:-7]) for n in of_expert(w, 0) if n.endswith(".weight")] and d),
    ("kvscheme", "kv-cache", "a kv_cache_scheme without scales", False,
     lambda w, d: d.quant.update(kv_cache_scheme=dict(num_bits=8, type="float", symmetric=True, strategy="tensor", dynamic=False)) or d),
    ("gptqnames", "names", "tensors under GPTQ's names", False, lambda w, d: d.rename(r"weight_packed$", "qweight").rename(r"weight_scale$", "scales")),
    ("two-unlisted-norm", "two-faults", "a linear 16-bit and unlisted, a norm missing", False, lambda w, d: drop(d.plain(attn(w, "o_proj")), norm(w))),
    ("two-scale-dead", "two-faults", "a scale missing, a dead entry", False, lambda w, d: drop(d, m_down(w) + ".weight_scale").ignore("foo")),
]

EIGHT = [
    ("fp8-noscale", "missing-tensors", "FP8, a scale missing", lambda w, d: drop(d, m_down(w) + ".weight_scale")),
    ("fp8-unlisted", "16bit-not-ignored", "FP8, o_proj 16-bit and not in ignore", lambda w, d: drop(retype(d, re.escape(attn(w, "o_proj")) + r"\.weight$", "BF16"), attn(w, "o_proj") + ".weight_scale")),
    ("fp8-scalar", "shapes", "FP8, a scale of one value", lambda w, d: reshape(d, attn(w, "o_proj") + ".weight_scale", lambda s: [1])),
    ("fp8-static", "scheme", "FP8, static activations without scales", lambda w, d: group(d)["input_activations"].update(dynamic=False, strategy="tensor") or d),
    ("fp8-tensor", "scheme", "FP8, strategy tensor in the config, channels in the files", lambda w, d: weights(d, strategy="tensor")),
    ("fp8-block", "scheme", "FP8, strategy block in the config, channels in the files", lambda w, d: weights(d, strategy="block", block_structure=[128, 128])),
    ("fp8-i8", "dtype", "FP8 config, one weight as I8", lambda w, d: retype(d, re.escape(attn(w, "o_proj")) + r"\.weight$", "I8")),
]


# ---------------------------------------------------------------- what starts and cannot talk

WORDS = {"tokenizer.json": {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
                            "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}}
TALK = {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": "{{ messages }}"}}


def serve(made, only):
    def put(id, family, what, d, good, **files):
        d.files.update(copy.deepcopy(files))
        write(dict(id=id, arch=(d.config.get("architectures") or [d.arch])[0], family=family, description=what, good=good, expect=[], **parts(d)), only, made)
    llama = lambda: Draft("llama-base-bf16")
    vl = lambda: Draft("qwen25vl-wide-bf16")
    put("llama-serve-whole", "serve", "weights, config, tokenizer and template", llama(), True, **WORDS, **TALK)
    put("llama-serve-novocab", "serve", "a tokenizer config, no vocabulary", llama(), False, **TALK)
    put("llama-serve-notemplate", "serve", "a vocabulary, no chat template", llama(), False, **WORDS)
    opt = {"producer": {"name": "modelopt", "version": "0.29.0"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": None, "exclude_modules": ["lm_head"]}}
    put("llama-unread-hfquant", "quant-config", "W4A16, and a hf_quant_config.json of another tool", Draft("llama-base-w4a16"), False,
        **{"hf_quant_config.json": opt})
    put("llama-unread-quantize", "quant-config", "16 bit, and a quantize_config.json", llama(), False,
        **{"quantize_config.json": {"bits": 4, "group_size": 128, "desc_act": False, "sym": True}})
    put("llama-arch-removed", "architecture", "an architecture that vLLM had once", llama().set(architectures=["Phi3SmallForCausalLM"]), False)
    d = Draft("llama4-wide-bf16")
    d.files["config.json"] = {**d.config["vision_config"], "model_type": "llama4_vision_model"}
    put("llama4-arch-none", "architecture", "the config of the tower alone", d, False)
    put("llama-arch-draft", "architecture", "a draft model by itself", llama().set(architectures=["EagleLlamaForCausalLM"]), False)
    drafters(made, only)
    d = llama().set(eos_token_id=[2, 128009])
    put("llama-serve-eosoutside", "serve", "an end of text outside of the vocabulary", d, False, **WORDS, **TALK)
    d = llama().set(auto_map={"AutoConfig": "configuration_custom.CustomConfig"})
    put("llama-serve-nocode", "serve", "auto_map names a file that is not there", d, False, **WORDS, **TALK)
    put("qwen25vl-serve-noprocessor", "serve", "a tokenizer, no processor config", vl(), False, **WORDS, **TALK)
    put("qwen25vl-serve-whole", "serve", "a tokenizer and a processor config", vl(), True, **WORDS, **TALK,
        **{"preprocessor_config.json": {"image_processor_type": "Qwen2VLImageProcessor"}})


# Draft models, by the base whose config theirs is like.
DRAFTERS = {
    "llama-base": ["Eagle3LlamaForCausalLM", "LlamaForCausalLMEagle3", "PEagleDraftModel", "EagleMiniCPMForCausalLM", "ExtractHiddenStatesModel", "MLPSpeculatorPreTrainedModel",
                   "MedusaModel", "ErnieMTPModel"],
    "qwen3-wide": ["Eagle3Qwen3ForCausalLM", "DFlashDraftModel", "LiLiCorrDraftModel", "Qwen3DSparkModel"],
    "mistral-wide": ["EagleMistralForCausalLM"], "qwen2-wide": ["MiMoMTPModel"], "qwen3moe-wide": ["Qwen3NextMTP"],
    "deepseekv3-wide": ["DeepSeekMTPModel", "EagleDeepSeekMTPModel", "Eagle3DeepseekV3ForCausalLM"], "glm4moe-wide": ["Glm4MoeMTPModel"],
}


def drafters(made, only):
    for base, archs in DRAFTERS.items():
        for arch in archs:
            d = Draft(f"{base}-bf16").set(architectures=[arch])
            write(dict(id=f"{base.split('-')[0]}-drafter-{arch.lower()}", arch=arch, family="architecture", description="a draft model by itself", good=False,
                       expect=[], **parts(d)), only, made)
    medusa = dict(architectures=["MedusaModel"], model_type="medusa", hidden_size=256, vocab_size=512, num_heads=2, num_hidden_layers=1)
    d = Draft("llama-base-bf16")
    d.files["config.json"] = medusa
    write(dict(id="medusa-drafter-typed", arch="MedusaModel", family="architecture", description="a draft model by itself, with its own model type", good=False, expect=[],
               **parts(d)), only, made)


def backend(made, only):
    """What only the Transformers backend does: names in other shapes, layers of a drafter, a bias of the head that comes late."""
    def put(id, family, what, d, good):
        write(dict(id=id, arch=d.config["architectures"][0], family=family, description=what, good=good, expect=[], **parts(d)), only, made)
    olmo, neox, phi, code = (lambda short=short: Draft(f"{short}-wide-bf16") for short in ("olmo2", "gptneox", "phi", "gptbigcode"))
    put("olmo2-backend-bare", "prefix", "names without `model.`, as a base model saves them", olmo().rename(r"^model\.", ""), False)
    put("olmo2-backend-deep", "prefix", "the head inside of the model", olmo().rename(r"^lm_head", "model.lm_head"), False)
    w = Wide("olmo2", olmo())
    put("olmo2-backend-drafter", "layers", "a layer of a drafter behind the last one", copy_layer(w, olmo()).set(num_nextn_predict_layers=1), False)
    put("olmo2-backend-drafter0", "layers", "a layer behind the last one, none of a drafter", copy_layer(w, olmo()).set(num_nextn_predict_layers=0), False)
    put("olmo2-backend-headbias", "surplus", "a bias of the head, which gets its place when it comes", olmo().add("lm_head.bias", "BF16", [olmo().config["vocab_size"]]), False)
    put("olmo2-backend-headbias-short", "shapes", "a bias of the head, too short", olmo().add("lm_head.bias", "BF16", [8]), False)
    put("phi-backend-headbias-none", "missing-tensors", "no bias of the head", phi().drop(r"^lm_head\.bias$"), False)
    put("gptneox-backend-head", "names", "the head under its new name", neox().rename(r"^embed_out", "lm_head"), False)
    put("gptneox-backend-buffers", "surplus", "the masks that older files hold", neox()
        .add("gpt_neox.layers.0.attention.bias", "BOOL", [1, 1, 8, 8]).add("gpt_neox.layers.0.attention.masked_bias", "F32", []), True)
    put("gptneox-backend-bare", "prefix", "names without `gpt_neox.`", neox().rename(r"^gpt_neox\.", ""), False)
    put("gptbigcode-backend-multihead", "config", "multi_query is false, the files are of true", code().set(multi_query=False), False)
    put("gptbigcode-backend-model", "prefix", "`model.` for `transformer.`", code().rename(r"^transformer\.", "model."), False)


def write(case, only, made):
    if only and only not in case["id"]:
        return
    path = os.path.join(CASES, case["id"] + ".json")
    for p in (path, path + ".gz"):
        if os.path.exists(p):
            old = mkcases.load_case(p)
            if all(old.get(k) == case.get(k) for k in case if not k.startswith("oracle")):
                mkcases.record(case, *mkcases.verdicts(old).values())
            path = p
    case = {k: v for k, v in case.items() if v is not None}
    made.append(save_case(path, case))


def chosen(short, tag):
    share = SHARE_BACKEND.get(short, SHARE_EACH) if short in BACKEND else SHARE
    return zlib.crc32(f"{short}/{tag}".encode()) % 100 < share


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bases", nargs="*")
    ap.add_argument("--only", default="")
    a = ap.parse_args()
    made = []
    if a.bases is not None:
        from _oracle import boot
        boot("cpu")
        for short in a.bases or ARCHS:
            write(base(short), "", made)
            print(short, file=sys.stderr)
        return
    for short, arch in ARCHS.items():
        if short in BACKEND and not os.path.exists(os.path.join(CASES, f"{short}-wide-bf16.json")):
            continue
        w = Wide(short, Draft(f"{short}-wide-bf16"))
        u = Wide(short, unfused(Draft(f"{short}-wide-bf16")))
        forms = {"w4": lambda: w4(u), "fp8": lambda: eight(u, "F8_E4M3", "float-quantized", "float"),
                 "int8": lambda: eight(u, "I8", "int-quantized", "int")}
        if short == "gptoss" or short in BACKEND and short not in QUANTIZED:
            forms = {}
        made_forms = {}
        for tag, make in forms.items():
            made_forms[tag] = make()
            write(dict(id=f"{short}-wide-{tag}", arch=arch, family="base", description=f"tiny, {tag}, exact ignore list", good=True, expect=[],
                       **parts(made_forms[tag])), a.only, made)
        rows = [(w, t, f, x, False, c, w.d) for t, f, x, c in SIXTEEN]
        if made_forms:
            rows += [(u, t, f, x, g, c, made_forms["w4"]) for t, f, x, g, c in FOUR] + [(u, t, f, x, False, c, made_forms["fp8"]) for t, f, x, c in EIGHT]
        for v, tag, family, what, good, change, source in rows:
            if not chosen(short, tag):
                continue
            try:
                d = change(v, source.copy())
            except Skip:
                continue
            except Exception as e:
                raise SystemExit(f"{short} {tag}: {type(e).__name__} {e}") from e
            write(dict(id=f"{short}-wide-{tag}", arch=arch, family=family, description=what, good=good, expect=[], **parts(d)), a.only, made)
    serve(made, a.only)
    backend(made, a.only)
    print(len(made), "cases", file=sys.stderr)


def parts(d):
    return dict(args=d.args or None, files=copy.deepcopy(d.files), shards=copy.deepcopy(d.shards), raw=d.raw or None)


if __name__ == "__main__":
    main()
