#!/usr/bin/env python3
"""Write conformance cases for the quantization methods: good checkpoints of every form, and the same faults for all.

    mkmethods.py [--only TEXT] [--forms FORM...]      standard library only; bases are the 16-bit cases of mkwide.py

A form is what a tool writes: the tensors of one linear, the quantization config, the key of the list of modules that stay in
16 bit. A fault that does not apply to a form or a base is left out, and of the others a fixed share. As in mkwide.py, vLLM has
the last word: `judge.py --record` writes the verdicts, on the platform that the form asks for.
"""
import argparse
import copy
import os
import re
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import mkwide
from mkcases import Draft
from mkwide import ARCHS, Skip, Wide, attn, drop, m_down, need, norm, of_expert, parts, reshape, retype, unfused

SHARE = {"llama": 50}     # per cent of the faults for each form, by base
OTHERS = 8
GPU = "cuda:90"
F8, BF, F32, I32, U8, F16 = "F8_E4M3", "BF16", "F32", "I32", "U8", "F16"


class Form:
    """One way to store a linear of out x in."""
    odd = ()        # faults of all forms that are good elsewhere and not here

    def __init__(self, tag, tensors, config, key, platform=GPU, bases=None, pick=None, prepare=None, needs=(1, 1), share=None, good=True,
                 value=None):
        self.tag, self.tensors, self.config, self.key = tag, tensors, config, key
        self.platform, self.bases, self.pick, self.prepare, self.needs, self.value = platform, bases, pick, prepare, needs, value
        self.good = good        # whether vLLM takes what the form makes
        self.share = share      # per cent of the faults of all forms, when not the base's; its own then all, on the first base

    def base(self, draft):
        return unfused(draft)

    def make(self, w):
        d = w.d.copy()
        d.config["quantization_config"] = self.config([])
        if self.prepare:
            self.prepare(w, d)
        done = []
        for m in w.linears:
            if self.pick and not self.pick(m):
                continue
            o, i = d.get(m + ".weight")["shape"]
            if o % self.needs[0] or i % self.needs[1]:
                raise Skip
            self.store(d, m)
            done.append(m)
        w.linears = need(done)
        skip = [n[:-7] for n in d.names() if re.search(r"\.(gate|router|kv_b_proj|shared_expert_gate)\.weight$", n) and n[:-7] not in done]
        skip += sorted({n[:-7] for n in w.tower if n.endswith(".weight") and len(d.get(n)["shape"]) == 2})
        self.list(d, ["lm_head", *skip])
        return d

    def store(self, d, m):
        t = d.get(m + ".weight")
        o, i = t["shape"]
        file = next(f for f, x in d.all() if x is t)
        d.drop("^" + re.escape(m) + r"\.weight$")
        for name, (dtype, shape) in self.tensors(o, i).items():
            d.add(f"{m}.{name}", dtype, list(shape), file=file)

    def plain(self, d, m):
        """The module back in 16 bit."""
        old = [t for _, t in d.all() if t["name"].rpartition(".")[0] == m and not t["name"].endswith(".bias")]
        d.drop(*["^" + re.escape(t["name"]) + "$" for t in old])
        file = next(iter(d.shards))
        d.add(m + ".weight", BF, list(self.sizes[m]), file=file)
        return d

    def holder(self, d):
        q = d.files.get("hf_quant_config.json", d.config).get("quantization_config") or d.files["hf_quant_config.json"]["quantization"]
        return q

    def list(self, d, entries):
        q = self.holder(d)
        if self.key is None or q is None:
            return d
        if self.value is not None:
            q[self.key] = {**(q.get(self.key) or {}), **{e: dict(self.value) for e in entries}}
            return d
        q[self.key] = list(q.get(self.key) or []) + list(entries)
        return d

    def unlist(self, d, *entries):
        q = self.holder(d)
        if self.value is not None:
            q[self.key] = {k: v for k, v in need(q.get(self.key)).items() if k not in need(entries)}
            return d
        q[self.key] = [e for e in need(q.get(self.key)) if e not in need(entries)]
        return d


def ceil(a, b):
    return -(-a // b)


def gptq(o, i, bits, g=32):
    pf = 32 // bits
    return dict(qweight=(I32, (i // pf, o)), qzeros=(I32, (i // g, o // pf)), scales=(F16, (i // g, o)), g_idx=(I32, (i,)))


def awq(o, i, g=32):
    return dict(qweight=(I32, (i, o // 8)), qzeros=(I32, (i // g, o // 8)), scales=(F16, (i // g, o)))


FORMS = [
    Form("fp8", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(F32, ())),
         lambda ig: dict(quant_method="fp8", activation_scheme="dynamic", modules_to_not_convert=ig), "modules_to_not_convert"),
    Form("fp8static", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(F32, (1,)), input_scale=(F32, (1,))),
         lambda ig: dict(quant_method="fp8", activation_scheme="static", ignored_layers=ig), "ignored_layers"),
    Form("fp8block", lambda o, i: dict(weight=(F8, (o, i)), weight_scale_inv=(F32, (ceil(o, 128), ceil(i, 128)))),
         lambda ig: dict(quant_method="fp8", activation_scheme="dynamic", fmt="e4m3", weight_block_size=[128, 128], modules_to_not_convert=ig),
         "modules_to_not_convert", bases=["qwen3moe", "mixtral", "deepseekv3", "glm4moe", "qwen25vl", "gemma3mm"]),
    Form("fp8block16", lambda o, i: dict(weight=(F8, (o, i)), weight_scale_inv=(F32, (ceil(o, 16), ceil(i, 16)))),
         lambda ig: dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[16, 16], modules_to_not_convert=ig),
         "modules_to_not_convert"),
    Form("gptq", lambda o, i: gptq(o, i, 4), lambda ig: dict(quant_method="gptq", bits=4, group_size=32, desc_act=False, sym=True, lm_head=False,
                                                            checkpoint_format="gptq"), None, needs=(8, 32)),
    Form("gptq8", lambda o, i: gptq(o, i, 8), lambda ig: dict(quant_method="gptq", bits=8, group_size=32, desc_act=False, sym=True), None, needs=(8, 32),
         bases=["llama", "mixtral", "qwen25vl"]),
    Form("gptqmods", lambda o, i: gptq(o, i, 4), lambda ig: dict(quant_method="gptq", bits=4, group_size=32, desc_act=False, sym=True,
                                                                 modules_in_block_to_quantize=[["q_proj", "k_proj", "v_proj"], ["o_proj"], ["up_proj", "gate_proj", "down_proj"]]),
         None, needs=(8, 32), bases=["llama", "qwen3"]),
    Form("awq", lambda o, i: awq(o, i), lambda ig: dict(quant_method="awq", bits=4, group_size=32, zero_point=True, version="gemm",
                                                        modules_to_not_convert=ig), "modules_to_not_convert", needs=(8, 32)),
    Form("awqbare", lambda o, i: awq(o, i), lambda ig: dict(quant_method="awq", w_bit=4, q_group_size=32, zero_point=True, version="gemm"), None, needs=(8, 32),
         bases=["llama", "qwen3moe", "qwen25vl", "gemma3mm", "phi3"]),
    Form("inc", lambda o, i: {k: v for k, v in gptq(o, i, 4).items() if k != "g_idx"},
         lambda ig: dict(quant_method="auto-round", bits=4, group_size=32, sym=True, data_type="int", packing_format="auto_round:auto_gptq",
                         block_name_to_quantize="model.layers", autoround_version="0.8.0"), "extra_config", needs=(8, 32), value={"bits": 16},
         bases=["llama", "qwen3", "qwen3moe", "phi3"]),
    Form("incawq", lambda o, i: awq(o, i),
         lambda ig: dict(quant_method="auto-round", bits=4, group_size=32, sym=False, packing_format="auto_round:auto_awq"), "extra_config", needs=(8, 32),
         value={"bits": 16}, bases=["llama", "mixtral", "qwen25vl"]),
]

# ---------------------------------------------------------------- faults of all forms: (tag, family, what, good, change)


def o_proj(w):
    return attn(w, "o_proj", "out_proj", "dense")


def q_proj(w):
    return attn(w, "q_proj", "q_a_proj")


def qkv(w):
    return [q_proj(w)[:-6] + p for p in ("q_proj", "k_proj", "v_proj")]


def plain(f, d, *modules):
    for m in modules:
        f.plain(d, m)
    return d


def stored(d, m):
    return [t["name"].rpartition(".")[2] for _, t in d.all() if t["name"].rpartition(".")[0] == m and not t["name"].endswith(".bias")]


def main_name(d, m):
    """The tensor that holds the values."""
    return m + "." + need([n for n in stored(d, m) if n in ("weight", "qweight", "weight_packed", "blocks")])[0]


def scale_name(d, m, nth=0):
    names = sorted(n for n in stored(d, m) if "scale" in n and "input" not in n)
    if len(names) <= nth:
        raise Skip
    return m + "." + names[nth]


def other_name(d, m, *which):
    return m + "." + need([n for n in stored(d, m) if n in which])[0]


FAULTS = [
    ("unlisted", "16bit-not-ignored", "one linear 16-bit, not in the list", False, lambda f, w, d: plain(f, d, m_down(w))),
    ("unlisted-o", "16bit-not-ignored", "o_proj 16-bit, not in the list", False, lambda f, w, d: plain(f, d, o_proj(w))),
    ("unlisted-q", "16bit-not-ignored", "q_proj 16-bit, not in the list", False, lambda f, w, d: plain(f, d, q_proj(w))),
    ("listed-o", "16bit-not-ignored", "repaired: o_proj 16-bit and in the list", True, lambda f, w, d: f.list(plain(f, d, o_proj(w)), [o_proj(w)])),
    ("listed-qkv", "16bit-not-ignored", "repaired: q, k and v 16-bit and in the list", True, lambda f, w, d: f.list(plain(f, d, *qkv(w)), qkv(w))),
    ("listed-q", "partial-fused-ignore", "q_proj 16-bit and in the list, its siblings quantized", False, lambda f, w, d: f.list(plain(f, d, q_proj(w)), [q_proj(w)])),
    ("listed-fused", "ignore-syntax", "q, k, v 16-bit, listed by the fused name", False, lambda f, w, d: f.list(plain(f, d, *qkv(w)), [q_proj(w)[:-6] + "qkv_proj"])),
    ("listed-re", "ignore-syntax", "all o_proj 16-bit, listed by a regex", False,
     lambda f, w, d: f.list(plain(f, d, *[m for m in w.linears if m.endswith("o_proj")]), [r"re:.*o_proj$"])),
    ("listed-glob", "ignore-syntax", "all o_proj 16-bit, listed with a star", False,
     lambda f, w, d: f.list(plain(f, d, *[m for m in w.linears if m.endswith("o_proj")]), ["*o_proj*"])),
    ("listed-bare", "ignore-syntax", "all o_proj 16-bit, listed as o_proj", False,
     lambda f, w, d: f.list(plain(f, d, *need([m for m in w.linears if m.endswith("o_proj")])), ["o_proj"])),
    ("listed-attn", "ignore-syntax", "one attention 16-bit, listed by its parent", False,
     lambda f, w, d: f.list(plain(f, d, *[m for m in w.linears if m.startswith(q_proj(w).rpartition(".")[0] + ".")]), [q_proj(w).rpartition(".")[0]])),
    ("listed-weight", "ignore-syntax", "o_proj 16-bit, listed with .weight", False, lambda f, w, d: f.list(plain(f, d, o_proj(w)), [o_proj(w) + ".weight"])),
    ("listed-dead", "ignore-syntax", "entries that match nothing", False, lambda f, w, d: f.list(d, ["foo", "model.layers.99.mlp"])),
    ("quant-listed", "ignored-but-packed", "quantized and in the list", False, lambda f, w, d: f.list(d, [m_down(w)])),
    ("quant-listed-q", "ignored-but-packed", "q_proj quantized and in the list, its siblings not", False, lambda f, w, d: f.list(d, [q_proj(w)])),
    ("quant-listed-all", "ignored-but-packed", "q, k, v quantized and in the list", False, lambda f, w, d: f.list(d, qkv(w))),
    ("nolist", "towers", "no list at all", False, lambda f, w, d: need(f.key) and f.holder(d).pop(f.key, None) is not None and d),
    ("listnull", "quant-config", "the list is null", True, lambda f, w, d: need(f.key and not w.tower and not w.experts) and f.holder(d).update({f.key: None}) or d),
    ("listword", "quant-config", "the list is a string", False, lambda f, w, d: need(f.key) and f.holder(d).update({f.key: "lm_head"}) or d),
    ("listnumber", "quant-config", "the list is a number", False, lambda f, w, d: need(f.key) and f.holder(d).update({f.key: 5}) or d),
    ("noscale", "missing-tensors", "a scale is missing", False, lambda f, w, d: drop(d, scale_name(d, m_down(w)))),
    ("noscale-o", "missing-tensors", "a scale of o_proj is missing", False, lambda f, w, d: drop(d, scale_name(d, o_proj(w)))),
    ("noscale-q", "missing-tensors", "a scale of q_proj is missing", False, lambda f, w, d: drop(d, scale_name(d, q_proj(w)))),
    ("noscale2", "missing-tensors", "the second scale of o_proj is missing", False, lambda f, w, d: drop(d, scale_name(d, o_proj(w), 1))),
    ("noweight", "missing-tensors", "the values of o_proj are missing", False, lambda f, w, d: drop(d, main_name(d, o_proj(w)))),
    ("noinput", "missing-tensors", "an input scale is missing", False, lambda f, w, d: drop(d, other_name(d, o_proj(w), "input_scale", "input_global_scale"))),
    ("nozeros", "missing-tensors", "zero points of o_proj are missing", False, lambda f, w, d: drop(d, other_name(d, o_proj(w), "qzeros", "weight_zero_point"))),
    ("noscales", "missing-tensors", "no scale anywhere", False, lambda f, w, d: need([n for n in d.names() if "scale" in n]) and d.drop(r"scale")),
    ("nonorm", "missing-tensors", "a norm is missing", False, lambda f, w, d: drop(d, norm(w))),
    ("input-surplus", "surplus", "an input scale of o_proj that the scheme has not", False,
     lambda f, w, d: need("input_scale" not in stored(d, o_proj(w))) and d.add(o_proj(w) + ".input_scale", F32, [1])),
    ("scale-renamed", "surplus", "scales under another tool's name", False,
     lambda f, w, d: need([n for n in d.names() if n.endswith(".weight_scale")]) and d.rename(r"\.weight_scale$", ".scale")),
    ("inv-renamed", "surplus", "weight_scale where the method has weight_scale_inv, or the other way", False,
     lambda f, w, d: d.rename(r"weight_scale_inv$", "weight_scale") if any(n.endswith("scale_inv") for n in d.names())
     else need([n for n in d.names() if n.endswith(".weight_scale")]) and d.rename(r"weight_scale$", "weight_scale_inv")),
    ("zeropoint", "surplus", "a zero point that the scheme has not", False, lambda f, w, d: d.add(o_proj(w) + ".weight_zero_point", I32, [8, 8])),
    ("bias", "surplus", "a bias that the model has not", False, lambda f, w, d: d.add(o_proj(w) + ".bias", BF, [8])),
    ("scaleshort", "shapes", "a scale has half its last dimension", False,
     lambda f, w, d: need(d.get(scale_name(d, o_proj(w)))["shape"]) and reshape(d, scale_name(d, o_proj(w)), lambda s: [*s[:-1], max(1, s[-1] // 2)])),
    ("scalelong", "shapes", "a scale has more rows", False,
     lambda f, w, d: need(d.get(scale_name(d, m_down(w)))["shape"]) and reshape(d, scale_name(d, m_down(w)), lambda s: [s[0] + 4, *s[1:]])),
    ("scalewide-q", "shapes", "a scale of q_proj has more columns", False,
     lambda f, w, d: need(len(d.get(scale_name(d, q_proj(w)))["shape"]) > 1) and reshape(d, scale_name(d, q_proj(w)), lambda s: [s[0], s[1] + 4])),
    ("scalevector", "shapes", "a scale a row where there should be one, or one where there should be many", False,
     lambda f, w, d: reshape(d, scale_name(d, o_proj(w)), lambda s: [16] if len(s) < 2 else [1])),
    ("scalevector-q", "shapes", "the same of q_proj", False,
     lambda f, w, d: reshape(d, scale_name(d, q_proj(w)), lambda s: [16, 1] if len(s) < 2 else [])),
    ("weightshort", "shapes", "the values of o_proj have half their rows", False, lambda f, w, d: reshape(d, main_name(d, o_proj(w)), lambda s: [s[0] // 2, *s[1:]])),
    ("weightwide", "shapes", "the values of down_proj have more columns", False, lambda f, w, d: reshape(d, main_name(d, m_down(w)), lambda s: [s[0], s[1] + 8])),
    ("weighttall-q", "shapes", "the values of q_proj have more rows", False, lambda f, w, d: reshape(d, main_name(d, q_proj(w)), lambda s: [s[0] + 16, *s[1:]])),
    ("scalebf16", "dtype", "scales as BF16", False, lambda f, w, d: retype(d, r"scales?(_inv|_2)?$", BF)),
    ("scalef16", "dtype", "scales as F16", False, lambda f, w, d: retype(d, r"scales?(_inv|_2)?$", F16)),
    ("weightbf16", "dtype", "the values of one linear as BF16, its scale stays", False, lambda f, w, d: retype(d, "^" + re.escape(main_name(d, o_proj(w))) + "$", BF)),
    ("weighti8", "dtype", "the values of one linear as I8", False, lambda f, w, d: retype(d, "^" + re.escape(main_name(d, o_proj(w))) + "$", "I8")),
    ("f16", "dtype", "what stays in 16 bit is F16", True, lambda f, w, d: retype(d, r"norm\.weight$|embed_tokens\.weight$", F16)),
    ("method-word", "quant-config", "quant_method is an unknown word", False, lambda f, w, d: f.holder(d).update(quant_method="int9") or d),
    ("method-upper", "quant-config", "quant_method in capitals", True, lambda f, w, d: need(f.holder(d).get("quant_method"))
     and f.holder(d).update(quant_method=f.holder(d)["quant_method"].upper()) or d),
    ("method-none", "quant-config", "no quant_method", False, lambda f, w, d: f.holder(d).pop("quant_method", None) and d or need(None)),
    ("noconfig", "quant-config", "quantized, no quantization config", False, lambda f, w, d: d.config.pop("quantization_config", None) and d or need(None)),
    ("head", "lm-head", "lm_head quantized and not in the list", False,
     lambda f, w, d: need("lm_head.weight" in d.names()) and (f.store(d, "lm_head"), f.key and f.unlist(d, "lm_head"))[0] or d),
    ("head-listed", "lm-head", "lm_head quantized and in the list", False, lambda f, w, d: need("lm_head.weight" in d.names()) and f.store(d, "lm_head") or d),
    ("head-plain", "lm-head", "lm_head 16-bit and not in the list", False, lambda f, w, d: need("lm_head.weight" in d.names() and f.key) and f.unlist(d, "lm_head")),
    ("embedding", "lm-head", "the embedding quantized", False, lambda f, w, d: f.store(d, mkwide.embed(w)[:-7]) or d),
    ("kv", "kv-cache", "k_scale and v_scale on the attention", False,
     lambda f, w, d: [d.add(o_proj(w)[: -len(o_proj(w).split(".")[-1])] + n, F32, [1]) for n in ("k_scale", "v_scale")] and d),
    ("kv-proj", "kv-cache", "k_proj.k_scale and v_proj.v_scale", False,
     lambda f, w, d: [d.add(q_proj(w)[:-6] + n, F32, []) for n in ("k_proj.k_scale", "v_proj.v_scale")] and d),
    ("kv-output", "kv-cache", "k_proj.output_scale and v_proj.output_scale", False,
     lambda f, w, d: [d.add(q_proj(w)[:-6] + n, F32, []) for n in ("k_proj.output_scale", "v_proj.output_scale")] and d),
    ("kv-two", "kv-cache", "a k_scale of two values", False, lambda f, w, d: d.add(q_proj(w)[:-6] + "k_scale", F32, [2])),
    ("router", "towers", "the router is not in the list", False,
     lambda f, w, d: f.unlist(d, *[e for e in f.holder(d).get(f.key) or [] if e.endswith((".gate", ".router"))])),
    ("tower", "towers", "the tower is not in the list", False, lambda f, w, d: need(w.tower) and f.unlist(d, *[n[:-7] for n in w.tower])),
    ("tower-parent", "towers", "the tower is listed by its first component", False,
     lambda f, w, d: need(w.tower) and f.list(f.unlist(d, *[n[:-7] for n in w.tower]), sorted({m.group(2) for n in w.tower if (m := mkwide.TOWER.search(n))}))),
    ("expert-plain", "experts", "one expert 16-bit, not in the list", False,
     lambda f, w, d: plain(f, d, *sorted({n.rpartition(".")[0] for n in of_expert(w, 1)} & set(w.linears)))),
    ("expert0-plain", "experts", "expert 0 16-bit, not in the list", False,
     lambda f, w, d: plain(f, d, *sorted({n.rpartition(".")[0] for n in of_expert(w, 0)} & set(w.linears)))),
    ("experts-listed", "experts", "repaired: the experts of one layer 16-bit and in the list", True,
     lambda f, w, d: (lambda c: f.list(plain(f, d, *need([m for m in w.linears if m.startswith(c + ".")])), [m for m in w.linears if m.startswith(c + ".")]))(
         of_expert(w, 0)[0].partition(".experts.")[0] + ".experts")),
    ("experts-container", "experts", "the experts of one layer 16-bit, the container in the list", False,
     lambda f, w, d: (lambda c: f.list(plain(f, d, *need([m for m in w.linears if m.startswith(c + ".")])), [c]))(
         of_expert(w, 0)[0].partition(".experts.")[0] + ".experts")),
    ("expert-noscale", "experts", "a scale of an expert is missing", False, lambda f, w, d: drop(d, scale_name(d, need(sorted({n.rpartition(".")[0] for n in of_expert(w, 1)} & set(w.linears)))[0]))),
    ("expert-scaleshape", "experts", "a scale of an expert has another shape", False,
     lambda f, w, d: reshape(d, scale_name(d, need(sorted({n.rpartition(".")[0] for n in of_expert(w, 1)} & set(w.linears)))[-1]), lambda s: [2] if len(s) < 2 else [s[0] + 1, s[1]])),
    ("expert-more", "experts", "one expert more than the config has", False, lambda f, w, d: more(w, d)),
    ("two-norm-unlisted", "two-faults", "a linear 16-bit and unlisted, a norm missing", False, lambda f, w, d: drop(plain(f, d, o_proj(w)), norm(w))),
    ("two-scale-dead", "two-faults", "a scale missing, a dead entry", False, lambda f, w, d: f.list(drop(d, scale_name(d, m_down(w))), ["foo"])),
]


def more(w, d):
    n = 1 + max(int(re.search(r"experts\.(\d+)\.", x).group(1)) for x in need(w.experts))
    first = of_expert(w, 0)[0].partition(".experts.")[0]
    for _, t in list(d.all()):
        if t["name"].startswith(first + ".experts.0."):
            d.add(t["name"].replace(".experts.0.", f".experts.{n}."), t["dtype"], list(t["shape"]))
    return d


def config(**kw):
    """Sets keys of the quantization config; `...` takes one away."""
    def change(f, w, d):
        q = f.holder(d)
        for k, v in kw.items():
            if v is ...:
                q.pop(k, None)
            else:
                q[k] = v
        return d
    return change


GPTQ = [
    ("order", "quant-config", "desc_act", False, config(desc_act=True)),
    ("order-channel", "quant-config", "desc_act, one group a column", False, config(desc_act=True, group_size=-1)),
    ("asymmetric", "scheme", "asymmetric", False, config(sym=False)),
    ("bits3", "scheme", "3 bits", False, config(bits=3)),
    ("bits8", "scheme", "8 bits in the config, 4 in the files", False, config(bits=8)),
    ("bits0", "quant-config", "no bits at all", False, config(bits=0)),
    ("nobits", "quant-config", "bits missing", False, config(bits=...)),
    ("nogroup", "quant-config", "group_size missing", False, config(group_size=...)),
    ("nosym", "quant-config", "sym missing", False, config(sym=...)),
    ("noorder", "quant-config", "desc_act missing", False, config(desc_act=...)),
    ("group64", "scheme", "groups of 64 in the config, of 32 in the files", False, config(group_size=64)),
    ("group16", "scheme", "groups of 16, which no kernel has", False, config(group_size=16)),
    ("group128", "scheme", "groups of 128, which do not fill a layer", False, config(group_size=128)),
    ("channel", "scheme", "one group a column in the config, groups in the files", False, config(group_size=-1)),
    ("rule-o", "16bit-not-ignored", "o_proj 16-bit, excluded by a rule", True,
     lambda f, w, d: config(dynamic={"-:.*\\.o_proj$": {}})(f, w, plain(f, d, *[m for m in w.linears if m.endswith("o_proj")]))),
    ("rule-packed", "ignored-but-packed", "o_proj quantized, excluded by a rule", False, config(dynamic={"-:.*\\.o_proj$": {}})),
    ("rule-end", "ignore-syntax", "a rule that matches only further on", False, config(dynamic={"-:self_attn": {}})),
    ("rule-bits", "scheme", "a rule with 8 bits, 4 in the files", False, config(dynamic={"+:.*\\.o_proj$": {"bits": 8}})),
    ("rule-bits3", "scheme", "a rule with 3 bits", False, config(dynamic={".*\\.o_proj$": {"bits": 3}})),
    ("rule-order", "quant-config", "a rule with desc_act", False, config(dynamic={".*\\.o_proj$": {"desc_act": True}})),
    ("rule-broken", "ignore-syntax", "a rule that is no regex", False, config(dynamic={"-:*o_proj": {}})),
    ("rule-null", "quant-config", "dynamic is null", True, config(dynamic=None)),
    ("noindex", "missing-tensors", "no g_idx", True, lambda f, w, d: d.drop(r"g_idx$")),
    ("head-flag", "lm-head", "lm_head true, and not quantized", False, config(lm_head=True)),
    ("head-quantized", "lm-head", "lm_head true, and quantized", True, lambda f, w, d: need("lm_head.weight" in d.names()) and (f.store(d, "lm_head"), config(lm_head=True)(f, w, d))[1]),
    ("modules", "ignore-syntax", "modules_in_block_to_quantize without o_proj, which is quantized", False,
     config(modules_in_block_to_quantize=[["q_proj", "k_proj", "v_proj"], ["up_proj", "gate_proj", "down_proj", "experts"]])),
    ("modules-half", "partial-fused-ignore", "modules_in_block_to_quantize with q_proj alone", False, config(modules_in_block_to_quantize=["q_proj", "o_proj", "down_proj"])),
    ("expertbias", "experts", "a bias of an expert", False, lambda f, w, d: d.add(of_expert(w, 1)[0].rpartition(".")[0] + ".bias", BF, [8])),
]

AWQ = [
    ("bits8", "scheme", "8 bits", False, config(bits=8, w_bit=8)),
    ("nozero", "quant-config", "zero_point missing", False, config(zero_point=...)),
    ("zerofalse", "scheme", "zero_point false, zero points in the files", False, config(zero_point=False)),
    ("nogroup", "quant-config", "no group size", False, config(group_size=..., q_group_size=...)),
    ("group64", "scheme", "groups of 64 in the config, of 32 in the files", False, config(group_size=64, q_group_size=64)),
    ("group16", "scheme", "groups of 16", False, config(group_size=16, q_group_size=16)),
    ("group48", "scheme", "groups of 48", False, config(group_size=48, q_group_size=48)),
    ("gptqlike", "scheme", "o_proj packed along the input", False,
     lambda f, w, d: reshape(d, o_proj(w) + ".qweight", lambda s: [s[0] // 8, s[1] * 8])),
    ("head-flag", "lm-head", "lm_head true, and not quantized", False, config(lm_head=True)),
    ("head-quantized", "lm-head", "lm_head true, and quantized", False, lambda f, w, d: need("lm_head.weight" in d.names()) and (f.store(d, "lm_head"), config(lm_head=True)(f, w, d))[1]),
    ("gate-substring", "ignore-syntax", "`gate` in the list, which also hits gate_proj", False, lambda f, w, d: f.list(d, ["gate"])),
    ("self-substring", "ignore-syntax", "`self_attn` in the list, and quantized", False, lambda f, w, d: f.list(d, ["self_attn"])),
]

INC = [
    ("bits3", "scheme", "9 bits", False, config(bits=9)),
    ("asymmetric", "scheme", "the other symmetry in the config", False, lambda f, w, d: config(sym=not f.holder(d)["sym"])(f, w, d)),
    ("bits8", "scheme", "8 bits in the config, 4 in the files", False, config(bits=8)),
    ("group64", "scheme", "groups of 64 in the config, of 32 in the files", False, config(group_size=64)),
    ("group16", "scheme", "groups of 16", False, config(group_size=16)),
    ("grouplist", "quant-config", "a group of two sizes", False, config(group_size=[32, 32])),
    ("groupword", "quant-config", "a group that is a word", False, config(group_size="32")),
    ("format", "quant-config", "an unknown packing format", False, config(packing_format="auto_round:other")),
    ("formatcut", "quant-config", "packing format auto_gptq", False, config(packing_format="auto_gptq")),
    ("formatnone", "quant-config", "no packing format", False, config(packing_format=...)),
    ("backend", "quant-config", "an unknown backend", False, config(backend="fast")),
    ("nobits", "quant-config", "bits missing", False, config(bits=...)),
    ("blocks", "ignore-syntax", "only the first layer named as quantized", False, config(block_name_to_quantize="model.layers.0")),
    ("blockslist", "quant-config", "the blocks as a list", False, config(block_name_to_quantize=["model.layers.0", "model.layers.1"])),
    ("pattern", "16bit-not-ignored", "o_proj 16-bit, by a pattern", False,
     lambda f, w, d: f.list(plain(f, d, *need([m for m in w.linears if m.endswith("o_proj")])), [".*o_proj$"])),
    ("width-o", "scheme", "o_proj with 8 bits by its own entry, 4 in the files", False,
     lambda f, w, d: f.holder(d)["extra_config"].update({o_proj(w): {"bits": 8}}) or d),
    ("width-q", "partial-fused-ignore", "q_proj with 8 bits by its own entry", False,
     lambda f, w, d: f.holder(d)["extra_config"].update({q_proj(w): {"bits": 8}}) or d),
    ("method-inc", "quant-config", "quant_method inc", False, config(quant_method="inc")),
    ("method-intel", "quant-config", "quant_method intel/auto-round", False, config(quant_method="intel/auto-round")),
]

# Faults of one form, by its tag.
OWN = {
    "inc": INC, "incawq": INC[:6],
    "gptq": GPTQ, "gptq8": GPTQ[:6], "gptqmods": GPTQ[:2] + GPTQ[14:21], "awq": AWQ, "awqbare": AWQ,
    "fp8": [
        ("noscheme", "quant-config", "no activation_scheme", False, config(activation_scheme=...)),
        ("schemeword", "quant-config", "an unknown activation_scheme", False, config(activation_scheme="lazy")),
        ("schemenull", "quant-config", "activation_scheme null", False, config(activation_scheme=None)),
        ("static", "scheme", "static in the config, no input scales", False, config(activation_scheme="static")),
        ("blocks", "scheme", "blocks in the config, per tensor in the files", False, config(weight_block_size=[128, 128])),
        ("both-lists", "ignore-syntax", "both lists, vLLM reads the first", False, lambda f, w, d: config(ignored_layers=[o_proj(w)])(f, w, plain(f, d, o_proj(w)))),
        ("e5m2", "dtype", "weights as F8_E5M2", False, lambda f, w, d: retype(d, "^" + re.escape(main_name(d, o_proj(w))) + "$", "F8_E5M2")),
    ],
    "fp8static": [
        ("dynamic", "scheme", "dynamic in the config, input scales in the files", False, config(activation_scheme="dynamic")),
        ("blocks", "scheme", "static with blocks", False, config(weight_block_size=[128, 128])),
    ],
    "fp8block": [
        ("block3", "quant-config", "three sizes of a block", False, config(weight_block_size=[128, 128, 128])),
        ("blockword", "quant-config", "a block that is a number", False, config(weight_block_size=128)),
        ("block64", "scheme", "blocks of 64 in the config, of 128 in the files", False, config(weight_block_size=[64, 64])),
        ("noblock", "scheme", "no block in the config", False, config(weight_block_size=...)),
        ("block100", "scheme", "blocks of 96, which divide nothing", False, config(weight_block_size=[96, 96])),
        ("e8m0", "dtype", "scales as F8_E8M0", False, lambda f, w, d: retype(d, r"scale_inv$", "F8_E8M0")),
    ],
}


# ---------------------------------------------------------------- mxfp4, quark, and the methods that nobody writes any more


class Banks(Form):
    """gpt-oss: the experts of a layer in one tensor, in blocks of 32; all else stays in 16 bit."""

    def base(self, draft):
        return draft

    def make(self, w):
        d = w.d.copy()
        d.config["quantization_config"] = self.config([])
        if self.prepare:
            self.prepare(w, d)
        for name in need([n for n in d.names() if re.search(r"experts\.(gate_up|down)_proj$", n)]):
            t = d.get(name)
            file = next(f for f, x in d.all() if x is t)
            e, i, o = t["shape"]
            d.drop("^" + re.escape(name) + "$")
            for part, shape in self.tensors(e, o, i).items():
                d.add(name + part, U8, list(shape), file=file)
        return d


class Apart(Banks):
    """gpt-oss as Quark writes it: each expert by itself, gate and up in one tensor."""

    def make(self, w):
        d = w.d.copy()
        attention = [n[:-7] for n in d.names() if re.search(r"(self_attn\.[qkvo]_proj|router)\.weight$", n)]
        d.config["quantization_config"] = self.config(["lm_head", *attention])
        for name in need([n for n in d.names() if re.search(r"experts\.(gate_up|down)_proj$", n)]):
            bias, (e, i, o) = d.get(name + "_bias"), d.get(name)["shape"]
            file = next(f for f, x in d.all() if x is bias)
            d.drop("^" + re.escape(name) + "(_bias)?$")
            stem, leaf = name.rsplit(".", 1)
            for n in range(e):
                for part, (dtype, shape) in (self.tensors(o, i) | dict(bias=(BF, (o,)))).items():
                    d.add(f"{stem}.{n}.{leaf}.{part}", dtype, list(shape), file=file)
        return d


class Online(Form):
    """A 16-bit checkpoint, and a method's word in the argument or the config."""

    def make(self, w):
        d = w.d.copy()
        q = self.config([])
        if q is None:
            d.args = {"quantization": self.tag.split("-")[0]}
        else:
            d.config["quantization_config"] = q
        return d


def quark(weight, inputs=None, **kw):
    def make(ig):
        layer = dict(weight=weight, input_tensors=inputs, output_tensors=None, bias=None, target_device=None)
        return dict(quant_method="quark", algo_config=None, exclude=ig, export=dict(kv_cache_group=[], min_kv_scale=0.0, pack_method="reorder",
                    weight_format="real_quantized", weight_merge_groups=None), global_quant_config=layer, layer_quant_config={},
                    layer_type_quant_config={}, quant_mode="eager_mode", softmax_quant_spec=None, version="0.10") | kw
    return make


def spec(dtype, qscheme, dynamic=False, **kw):
    return dict(dtype=dtype, qscheme=qscheme, is_dynamic=dynamic, ch_axis=None, group_size=None, symmetric=True, round_method="half_even",
                scale_type="float", observer_cls="PerTensorMinMaxObserver") | kw


def everywhere(d, pattern, change):
    for t in need([t for _, t in d.all() if re.search(pattern, t["name"])]):
        change(t)
    return d


def sizes(w, d):
    """gpt-oss with sizes that vLLM rounds up, as the published ones are."""
    old = {256: 288, 512: 480, 1024: 960}
    for _, t in d.all():
        if "experts" in t["name"] or "router" in t["name"] or "norm" in t["name"] or "embed" in t["name"] or "lm_head" in t["name"]:
            t["shape"] = t["shape"][:1] + [old.get(x, x) for x in t["shape"][1:]] if "embed" in t["name"] or "lm_head" in t["name"] else [old.get(x, x) for x in t["shape"]]
        elif "self_attn" in t["name"] and t["name"].endswith("weight"):
            t["shape"] = [288, t["shape"][1]] if "o_proj" in t["name"] else [t["shape"][0], 288]
        elif t["name"].endswith("o_proj.bias"):
            t["shape"] = [288]
    d.config.update(hidden_size=288, intermediate_size=480)


def quark4(o, i, g=32, zeros=False):
    """Weight-only integers of 4 bit, the input dimension first."""
    made = dict(weight=(I32, (i, o // 8)), weight_scale=(BF, (i // g, o)))
    return made | dict(weight_zero_point=(I32, (i // g, o // 8))) if zeros else made


def int4(dtype, g=32):
    return spec(dtype, "per_group", group_size=g, ch_axis=1, symmetric=dtype == "int4")


def mxfp(bits):
    """auto-round's MXFP8 and MXFP4."""
    return lambda ig: dict(quant_method="auto-round", bits=bits, group_size=32, sym=True, data_type="mx_fp", packing_format="auto_round:llm_compressor", act_bits=bits,
                           act_data_type="mx_fp", act_group_size=32, act_sym=True, act_dynamic=True, autoround_version="0.10.0")


MX = dict(group_size=32, scale_format="e8m0", scale_type="float", ch_axis=-1, observer_cls="PerBlockMXObserver")
MXFP4 = spec("fp4", "per_group", **MX)
BLOCKS = lambda e, o, i: dict(_blocks=(e, o, i // 32, 16), _scales=(e, o, i // 32))
OSS = lambda ig: dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"])
LISTED = "exclude"
DENSE = dict(bases=["llama"])
FORMS += [
    Banks("mxfp4", BLOCKS, OSS, "modules_to_not_convert", bases=["gptoss"], share=0),
    Banks("mxfp4odd", BLOCKS, OSS, "modules_to_not_convert", bases=["gptoss"], share=0, prepare=sizes),
    Apart("quarkoss", lambda o, i: dict(weight=(U8, (o, i // 2)), weight_scale=(U8, (o, i // 32)), input_scale=(F32, ())),
          quark(MXFP4, spec("fp8_e4m3", "per_tensor")), LISTED, bases=["gptoss"], share=0),
    Apart("quarkossa16", lambda o, i: dict(weight=(U8, (o, i // 2)), weight_scale=(U8, (o, i // 32))), quark(MXFP4), LISTED, bases=["gptoss"], share=0),
    Apart("quarkossfp8", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(F32, ()), input_scale=(F32, ())),
          quark(spec("fp8_e4m3", "per_tensor"), spec("fp8_e4m3", "per_tensor")), LISTED, bases=["gptoss"], share=0),
    Apart("quarkossptpc", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(F32, (o,))),
          quark(spec("fp8_e4m3", "per_channel", ch_axis=0), spec("fp8_e4m3", "per_channel", True, ch_axis=1)), LISTED, bases=["gptoss"], share=0),
    Banks("quarkossbanks", BLOCKS, lambda ig: quark(MXFP4)(["re:.*self_attn.*", "re:.*attn.*_proj", "re:.*router", "lm_head"]), LISTED, bases=["gptoss"], share=0),
    Form("mxfp4e", lambda o, i: dict(weight=(U8, (o, i // 2)), weight_scale=(U8, (o, i // 32))), lambda ig: dict(quant_method="mxfp4"), None,
         bases=["qwen3moe"], pick=lambda m: ".experts." in m, share=30),
    Form("quarkfp8", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(F32, ()), input_scale=(F32, ())),
         quark(spec("fp8_e4m3", "per_tensor"), spec("fp8_e4m3", "per_tensor")), LISTED, bases=["llama", "qwen3moe", "gemma3mm"], share=18),
    Form("quarkptpc", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(F32, (o,))),
         quark(spec("fp8_e4m3", "per_channel", ch_axis=0), spec("fp8_e4m3", "per_channel", True, ch_axis=1)), LISTED, bases=["mixtral", "qwen3"], share=8),
    Form("quarkblock", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(F32, (ceil(o, 128), ceil(i, 128)))),
         quark(spec("fp8_e4m3", "per_block", block_size=[128, 128]), spec("fp8_e4m3", "per_group", True, group_size=128)), LISTED,
         bases=["qwen3moe"], share=0),
    Form("quarkint8", lambda o, i: dict(weight=("I8", (o, i)), weight_scale=(F32, (o,)), weight_zero_point=("I8", (o,))),
         quark(spec("int8", "per_channel", ch_axis=0), spec("int8", "per_channel", True, ch_axis=1)), LISTED, bases=["qwen3"], share=8),
    Form("quarkmx", lambda o, i: dict(weight=(U8, (o, i // 2)), weight_scale=(U8, (o, i // 32))), quark(MXFP4, spec("fp4", "per_group", True, **MX)),
         LISTED, bases=["qwen3moe", "llama", "deepseekv3"], share=10),
    Form("quarkuint4", lambda o, i: quark4(o, i, zeros=True), quark(int4("uint4")), LISTED, needs=(8, 32), bases=["llama", "qwen3moe", "mixtral", "qwen25vl"],
         share={"llama": 22, "qwen3moe": 14, "": 3}),
    # vLLM makes zero points for symmetric ones, too, and nobody writes them.
    Form("quarkint4", quark4, quark(int4("int4")), LISTED, needs=(8, 32), bases=["llama", "qwen3moe"], share=6, good=False),
    Form("quarkint4z", lambda o, i: quark4(o, i, 64, zeros=True), quark(int4("int4", 64)), LISTED, needs=(8, 64), bases=["mixtral", "qwen3"], share=2),
    Form("quarkuint4g128", lambda o, i: quark4(o, i, 128, zeros=True), quark(int4("uint4", 128)), LISTED, needs=(8, 128), bases=["qwen3", "qwen3moe", "deepseekv3"], share=3),
    Form("incmxfp8", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(U8, (o, i // 32))), mxfp(8), "extra_config", needs=(1, 32), value={"bits": 16},
         bases=["llama", "qwen3moe", "mixtral", "qwen25vl"], share={"llama": 14, "qwen3moe": 8, "": 2}),
    Form("incmxfp4", lambda o, i: dict(weight_packed=(U8, (o, i // 2)), weight_scale=(U8, (o, i // 32))), mxfp(4), "extra_config", needs=(1, 32), value={"bits": 16},
         bases=["llama", "qwen3moe", "qwen3"], share={"llama": 14, "qwen3moe": 8, "": 2}),
    Form("incfp8", lambda o, i: dict(weight=(F8, (o, i)), weight_scale_inv=(F32, (ceil(o, 128), ceil(i, 128)))),
         lambda ig: dict(quant_method="auto-round", bits=8, group_size=[128, 128], sym=True, data_type="fp", packing_format="auto_round:fp8", act_bits=8,
                         act_data_type="fp", act_group_size=128, act_sym=True, act_dynamic=True, activation_scheme="dynamic", fmt="e4m3",
                         autoround_version="0.10.0"), "extra_config", value={"bits": 16}, bases=["qwen3", "qwen25vl"], share={"qwen3": 12, "": 3}),
    Form("fbgemm", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(F32, (o, 1))),
         lambda ig: dict(quant_method="fbgemm_fp8", activation_scale_ub=1200.0, modules_to_not_convert=ig), "modules_to_not_convert", **DENSE, share=0, good=False),
    Form("fpquant", lambda o, i: dict(qweight=(U8, (o, i // 2)), scales=(U8, (o, i // 32)), weight_global_scale=(F32, (1,)), act_global_scale=(F32, (1,))),
         lambda ig: dict(quant_method="fp_quant", forward_dtype="mxfp4", forward_method="quest", hadamard_group_size=32, modules_to_not_convert=ig),
         "modules_to_not_convert", **DENSE, share=0, good=False),
    # Refused by their words; what the other words of vLLM do while they load is done by kernels that the oracle has not.
    *[Online(f"{word}-arg", None, lambda ig: None, None, bases=["llama" if word == "online" else "qwen3"], share=0, good=False)
      for word in ("online", "quark", "fp_quant")],
    *[Online(f"{word}-word", None, lambda ig, word=word: dict(quant_method=word), None, bases=["llama"], share=0)
      for word in ("experts_int8", "gpt_oss_mxfp4")],
    *[Online(f"{word}-word", None, lambda ig, word=word: dict(quant_method=word), None, bases=["llama"], share=0, good=False)
      for word in ("fp8_per_tensor", "fp8_per_block", "int8_per_channel_weight_only", "nvfp4_per_token", "online",
                   "bitsandbytes", "gguf", "hqq", "aqlm", "eetq", "quanto", "higgs", "vptq", "spqr", "exl2", "fp8_e5m2")],
]


def layer(name, value):
    """A key of the specification of all layers."""
    return lambda f, w, d: f.holder(d)["global_quant_config"].update({name: value}) or d


def weights(which="weight", **kw):
    return lambda f, w, d: f.holder(d)["global_quant_config"][which].update(kw) or d


def per_layer(names, **kw):
    """Layers of their own, all by the same specification."""
    def change(f, w, d):
        q = f.holder(d)
        q["layer_quant_config"] = {n: copy.deepcopy(q["global_quant_config"]) | kw for n in names(w)}
        return d
    return change


def kv_group(dtype="fp8_e4m3", qscheme="per_tensor", group=("*k_proj", "*v_proj"), keys=("*k_proj", "*v_proj")):
    """As Quark writes an 8-bit KV cache."""
    def change(f, w, d):
        q = f.holder(d)
        q["export"]["kv_cache_group"] = list(group)
        out = spec(dtype, qscheme)
        q["layer_quant_config"] = {k: copy.deepcopy(q["global_quant_config"]) | dict(output_tensors=copy.deepcopy(out)) for k in keys}
        for n in w.linears:
            if n.endswith(("k_proj", "v_proj")):
                d.add(n + ".output_scale", F32, [])
        return d
    return change


def bank(end, layer=1):
    return lambda d: need([n for n in d.names() if f"layers.{layer}." in n and n.endswith(end)])[0]


def oss(end, change):
    return lambda f, w, d: reshape(d, bank(end)(d), change)


def split(f, w, d):
    """The experts one by one."""
    for _, t in list(d.all()):
        if m := re.match(r"(.*experts)\.((gate_up|down)_proj_(blocks|scales|bias))$", t["name"]):
            d.drop("^" + re.escape(t["name"]) + "$")
            for i in range(t["shape"][0]):
                d.add(f"{m.group(1)}.{i}.{m.group(2)}", t["dtype"], list(t["shape"][1:]))
    return d


def both(*changes):
    def change(f, w, d):
        for c in changes:
            d = c(f, w, d)
        return d
    return change


OSS_FAULTS = [
    ("noconfig", "quant-config", "quantized, no quantization config", False, lambda f, w, d: d.config.pop("quantization_config") and d),
    ("ownword", "quant-config", "quant_method is vLLM's own word", True, config(quant_method="gpt_oss_mxfp4")),
    ("upper", "quant-config", "quant_method in capitals", False, config(quant_method="MXFP4")),
    ("nolist", "quant-config", "no list, which nothing reads", True, config(modules_to_not_convert=...)),
    ("fp8word", "quant-config", "quant_method fp8", False, config(quant_method="fp8")),
    ("arg", "argument", "--quantization mxfp4", True, lambda f, w, d: setattr(d, "args", {"quantization": "mxfp4"}) or d),
    ("arg-other", "argument", "--quantization fp8", False, lambda f, w, d: setattr(d, "args", {"quantization": "fp8"}) or d),
    ("dtype", "config", "dtype float16", False, lambda f, w, d: d.set(dtype="float16")),
    ("noscales", "missing-tensors", "scales of down_proj are missing", False, lambda f, w, d: drop(d, bank("down_proj_scales")(d))),
    ("noblocks", "missing-tensors", "blocks of gate_up_proj are missing", False, lambda f, w, d: drop(d, bank("gate_up_proj_blocks")(d))),
    ("nobias", "missing-tensors", "a bias of the experts is missing", False, lambda f, w, d: drop(d, bank("down_proj_bias")(d))),
    ("nosinks", "missing-tensors", "sinks are missing", False, lambda f, w, d: drop(d, bank("sinks")(d))),
    ("nonorm", "missing-tensors", "a norm is missing", False, lambda f, w, d: drop(d, norm(w))),
    ("noo", "missing-tensors", "o_proj is missing", False, lambda f, w, d: drop(d, bank("o_proj.weight")(d))),
    ("flat", "shapes", "blocks without the dimension of 16", True, lambda f, w, d: everywhere(d, "_blocks$", lambda t: t.update(shape=[*t["shape"][:2], t["shape"][2] * 16]))),
    ("scalesshort", "shapes", "scales have half their columns", False, oss("gate_up_proj_scales", lambda s: [*s[:2], s[2] // 2])),
    ("scaleslong", "shapes", "scales have more columns", False, oss("gate_up_proj_scales", lambda s: [*s[:2], s[2] + 4])),
    ("downscaleslong", "shapes", "scales of down_proj have more columns", False, oss("down_proj_scales", lambda s: [*s[:2], s[2] + 4])),
    ("scales2d", "shapes", "scales with two dimensions", False, oss("gate_up_proj_scales", lambda s: [s[0], s[1] * s[2]])),
    ("scalesrows", "shapes", "scales have more rows", False, oss("gate_up_proj_scales", lambda s: [s[0], s[1] + 8, s[2]])),
    ("blocksshort", "shapes", "blocks have half their rows", False, oss("gate_up_proj_blocks", lambda s: [s[0], s[1] // 2, *s[2:]])),
    ("downshort", "shapes", "blocks of down_proj have half their rows", False, oss("down_proj_blocks", lambda s: [s[0], s[1] // 2, *s[2:]])),
    ("downlong", "shapes", "blocks of down_proj have more rows", False, oss("down_proj_blocks", lambda s: [s[0], s[1] + 32, *s[2:]])),
    ("blocksodd", "shapes", "blocks that do not divide", False, oss("gate_up_proj_blocks", lambda s: [s[0], s[1] - 1, *s[2:]])),
    ("experts", "shapes", "scales of three experts of four", False, oss("gate_up_proj_scales", lambda s: [3, *s[1:]])),
    ("oneexpert", "shapes", "scales of one expert", False, oss("gate_up_proj_scales", lambda s: [1, *s[1:]])),
    ("biasshort", "shapes", "a bias has half its length", False, oss("gate_up_proj_bias", lambda s: [s[0], s[1] // 2])),
    ("biaslong", "shapes", "a bias is longer", False, oss("gate_up_proj_bias", lambda s: [s[0], s[1] + 8])),
    ("downbiaslong", "shapes", "a bias of down_proj is longer", False, oss("down_proj_bias", lambda s: [s[0], s[1] + 8])),
    ("sinksshort", "shapes", "sinks are short", False, oss("sinks", lambda s: [s[0] - 1])),
    ("count", "config", "the config has more experts", False, lambda f, w, d: d.set(num_local_experts=8)),
    ("intermediate", "config", "intermediate_size doubled", False, lambda f, w, d: d.set(intermediate_size=1024)),
    ("layers", "layers", "the config has one layer less", False, lambda f, w, d: d.set(num_hidden_layers=1, layer_types=["sliding_attention"])),
    ("plain", "16bit-not-ignored", "the experts of one layer in 16 bit", False,
     lambda f, w, d: drop(d, *[bank(f"{p}_proj_{x}")(d) for p in ("gate_up", "down") for x in ("blocks", "scales")])
     .add("model.layers.1.mlp.experts.gate_up_proj", BF, [4, 256, 1024]).add("model.layers.1.mlp.experts.down_proj", BF, [4, 512, 256])),
    ("attention8", "surplus", "an attention weight in 8 bit, with its scale", False,
     lambda f, w, d: retype(d, "layers.1.self_attn.o_proj.weight$", F8).add("model.layers.1.self_attn.o_proj.weight_scale", F32, [1])),
    ("scalesf32", "dtype", "scales as F32", False, lambda f, w, d: retype(d, "layers.1.*gate_up_proj_scales$", F32)),
    ("scalese8", "dtype", "scales as F8_E8M0", False, lambda f, w, d: retype(d, "_scales$", "F8_E8M0")),
    ("blocksi8", "dtype", "blocks as I8", False, lambda f, w, d: retype(d, "layers.1.*down_proj_blocks$", "I8")),
    ("biasf32", "dtype", "a bias as F32", False, lambda f, w, d: retype(d, "layers.1.*down_proj_bias$", F32)),
    ("split", "experts", "one tensor an expert", False, split),
    ("split-short", "experts", "one tensor an expert, one with fewer rows", False, both(split, lambda f, w, d: reshape(d, bank("0.gate_up_proj_blocks")(d), lambda s: [s[0] // 2, *s[1:]]))),
    ("split-scalewide", "experts", "one tensor an expert, wider scales", False, both(split, lambda f, w, d: reshape(d, bank("0.down_proj_scales")(d), lambda s: [s[0], s[1] + 4]))),
    ("expert4", "experts", "an expert beyond the last one", False, both(split, lambda f, w, d: d.add("model.layers.1.mlp.experts.4.gate_up_proj_bias", BF, [1024]))),
    ("stray", "surplus", "a tensor of another model", False, lambda f, w, d: d.add("model.layers.1.mystery.weight", BF, [8, 8])),
    ("suffix", "prefix", "blocks with .weight at the end", False, lambda f, w, d: d.rename(r"layers\.1\.(.*)_blocks$", r"layers.1.\1_blocks.weight")),
]


def packing(word):
    return lambda f, w, d: f.holder(d)["export"].update(pack_method=word) or d


def width(of, **kw):
    """An entry of its own in extra_config."""
    return lambda f, w, d: f.holder(d).setdefault("extra_config", {}).update({of(w): kw}) or d


def oss_drop(end):
    return lambda f, w, d: drop(d, bank(end)(d))


def kv_oss(f, d):
    """As Quark writes an 8-bit KV cache of gpt-oss, its attention in 16 bit."""
    q = f.holder(d)
    q["export"]["kv_cache_group"] = ["*k_proj", "*v_proj"]
    none = dict(weight=None, input_tensors=None, output_tensors=spec("fp8_e4m3", "per_tensor"), bias=None, target_device=None)
    q["layer_quant_config"] = {"*k_proj": none, "*v_proj": copy.deepcopy(none)}
    for n in range(2):
        for p in "kv":
            d.add(f"model.layers.{n}.self_attn.{p}_proj.output_scale", F32, [])
    return d


def ungrouped(key):
    return lambda f, w, d: f.holder(d)["global_quant_config"]["weight"].pop(key) is not None and d or d


QUARK4 = [
    ("order", "scheme", "packed in order", True, packing("order")),
    ("packnone", "quant-config", "pack_method null", False, packing(None)),
    ("packword", "quant-config", "an unknown pack_method", False, packing("awq")),
    ("nopack", "quant-config", "no pack_method", False, lambda f, w, d: f.holder(d)["export"].pop("pack_method") and d),
    ("symmetric", "scheme", "symmetric in the config, zero points in the files", False, weights(symmetric=True)),
    ("asym-int4", "scheme", "int4, asymmetric", True, weights(dtype="int4")),
    ("nosym", "quant-config", "symmetric missing", False, ungrouped("symmetric")),
    ("symnull", "quant-config", "symmetric null", False, weights(symmetric=None)),
    ("symword", "quant-config", "symmetric is a word", False, weights(symmetric="no")),
    ("nogroup", "quant-config", "group_size missing", False, ungrouped("group_size")),
    ("groupnull", "quant-config", "group_size null", False, weights(group_size=None)),
    ("groupword", "quant-config", "group_size is a word", False, weights(group_size="32")),
    ("groupfloat", "quant-config", "group_size is no integer", False, weights(group_size=32.0)),
    ("grouptrue", "quant-config", "group_size true", False, weights(group_size=True)),
    ("channel", "quant-config", "one group a column", False, weights(group_size=-1)),
    ("group16", "scheme", "groups of 16", False, weights(group_size=16)),
    ("group32", "scheme", "groups of 32 in the config, of 64 in the files", False, weights(group_size=32)),
    ("group48", "scheme", "groups of 48", False, weights(group_size=48)),
    ("group64", "scheme", "groups of 64 in the config, others in the files", False, weights(group_size=64)),
    ("group96", "scheme", "groups of 96", False, weights(group_size=96)),
    ("group256", "scheme", "groups wider than a layer", False, weights(group_size=256)),
    ("inputs", "scheme", "with activations of 8 bit", False, layer("input_tensors", spec("int8", "per_tensor", True))),
    ("tensor", "scheme", "qscheme per_tensor", True, weights(qscheme="per_tensor")),
    ("block", "scheme", "qscheme per_block without a size", False, weights(qscheme="per_block")),
    ("dynamic", "scheme", "is_dynamic", True, weights(is_dynamic=True)),
    ("listweight", "scheme", "the specification in a list", True, lambda f, w, d: layer("weight", [f.holder(d)["global_quant_config"]["weight"]])(f, w, d)),
    ("two", "scheme", "two specifications in a list", False, lambda f, w, d: layer("weight", [f.holder(d)["global_quant_config"]["weight"]] * 2)(f, w, d)),
    ("perlayer", "scheme", "layers of their own, alike", True, per_layer(lambda w: ["*mlp*", "*self_attn*"])),
    ("perlayer-fp8", "scheme", "o_proj in 8 bit by its own specification", True,
     lambda f, w, d: per_layer(lambda w: ["*o_proj"], weight=spec("fp8_e4m3", "per_tensor"), input_tensors=spec("fp8_e4m3", "per_tensor", True))(f, w, [
         f.plain(d, m).add(m + ".weight_scale", F32, []) and retype(d, "^" + re.escape(m) + r"\.weight$", F8) for m in w.linears if m.endswith("o_proj")] and d)),
    ("float", "dtype", "scales as F32", True, lambda f, w, d: retype(d, "weight_scale$", F32)),
    ("turned", "shapes", "o_proj with the output dimension first", False, lambda f, w, d: reshape(d, o_proj(w) + ".weight", lambda s: [s[1] * 8, s[0] // 8])),
    ("alongk", "shapes", "o_proj packed along the input", False, lambda f, w, d: reshape(d, o_proj(w) + ".weight", lambda s: [s[0] // 8, s[1] * 8])),
    ("scalerow", "shapes", "scales of o_proj in one row", False, lambda f, w, d: reshape(d, o_proj(w) + ".weight_scale", lambda s: [1, s[1]])),
    ("scaleturned", "shapes", "scales of down_proj turned", False, lambda f, w, d: reshape(d, m_down(w) + ".weight_scale", lambda s: s[::-1])),
    ("scaleturned-q", "shapes", "scales of q_proj turned", False, lambda f, w, d: reshape(d, q_proj(w) + ".weight_scale", lambda s: s[::-1])),
    ("scalevector-k", "shapes", "scales of k_proj a vector", False, lambda f, w, d: reshape(d, qkv(w)[1] + ".weight_scale", lambda s: s[1:])),
    ("scalescalar", "shapes", "one scale of o_proj", False, lambda f, w, d: reshape(d, o_proj(w) + ".weight_scale", lambda s: [])),
    ("scalewide-o", "shapes", "scales of o_proj have more columns", False, lambda f, w, d: reshape(d, o_proj(w) + ".weight_scale", lambda s: [s[0], s[1] + 8])),
    ("zerosturned", "shapes", "zero points of o_proj turned", False, lambda f, w, d: reshape(d, o_proj(w) + ".weight_zero_point", lambda s: s[::-1])),
    ("zerosu8", "dtype", "zero points as U8", False, lambda f, w, d: everywhere(d, "weight_zero_point$", lambda t: t.update(dtype=U8, shape=[t["shape"][0], t["shape"][1] * 4]))),
    ("expert-nozeros", "experts", "zero points of an expert are missing", False, lambda f, w, d: drop(d, of_expert(w, 1)[0].rpartition(".")[0] + ".weight_zero_point")),
    ("expert-weightturned", "experts", "an expert packed along the input", False,
     lambda f, w, d: reshape(d, of_expert(w, 1)[0].rpartition(".")[0] + ".weight", lambda s: [s[0] // 8, s[1] * 8])),
]
QUARK_OSS = [
    ("unlisted", "16bit-not-ignored", "o_proj 16-bit, not in the list", False, lambda f, w, d: f.unlist(d, "model.layers.1.self_attn.o_proj")),
    ("unlisted-q", "16bit-not-ignored", "q_proj 16-bit, not in the list, its siblings are", False, lambda f, w, d: f.unlist(d, "model.layers.1.self_attn.q_proj")),
    ("excluded", "ignored-but-packed", "the experts of a layer quantized and in the list", False, lambda f, w, d: f.list(d, ["model.layers.1.mlp.experts"])),
    ("arg", "argument", "--quantization mxfp4", False, lambda f, w, d: setattr(d, "args", {"quantization": "mxfp4"}) or d),
    ("noweight", "missing-tensors", "the values of an expert are missing", False, oss_drop("1.gate_up_proj.weight")),
    ("noscale", "missing-tensors", "a scale of an expert is missing", False, oss_drop("1.down_proj.weight_scale")),
    ("noinput", "missing-tensors", "an input scale of an expert is missing", False, oss_drop("1.gate_up_proj.input_scale")),
    ("noinputs", "missing-tensors", "no input scales", False, lambda f, w, d: d.drop("input_scale$")),
    ("nobias", "missing-tensors", "a bias of an expert is missing", False, oss_drop("1.down_proj.bias")),
    ("nosinks", "missing-tensors", "sinks are missing", False, lambda f, w, d: drop(d, bank("sinks")(d))),
    ("weightcut", "shapes", "the values of an expert have half their rows", False, oss("1.gate_up_proj.weight", lambda s: [s[0] // 2, s[1]])),
    ("weightlong", "shapes", "the values of an expert have more rows", False, oss("1.gate_up_proj.weight", lambda s: [s[0] + 64, s[1]])),
    ("weightwide", "shapes", "the values of an expert have more columns", False, oss("1.gate_up_proj.weight", lambda s: [s[0], s[1] + 16])),
    ("weightflat", "shapes", "the values of an expert in one row", False, oss("1.gate_up_proj.weight", lambda s: [s[0] * s[1]])),
    ("weight3d", "shapes", "the values of an expert in blocks", False, oss("1.gate_up_proj.weight", lambda s: [s[0], s[1] // 16, 16])),
    ("downlong", "shapes", "the values of down_proj have more columns", False, oss("1.down_proj.weight", lambda s: [s[0], s[1] + 16])),
    ("scalelong", "shapes", "scales of an expert have more rows", False, oss("1.gate_up_proj.weight_scale", lambda s: [s[0] + 8, *s[1:]])),
    ("scalecut", "shapes", "scales of an expert have half their rows", False, oss("1.down_proj.weight_scale", lambda s: [s[0] // 2, *s[1:]])),
    ("scaletwo", "shapes", "two scales of gate and up", False, oss("1.gate_up_proj.weight_scale", lambda s: [2])),
    ("downscaletwo", "shapes", "two scales of down_proj", False, oss("1.down_proj.weight_scale", lambda s: [2])),
    ("inputtwo", "shapes", "two input scales", False, oss("1.gate_up_proj.input_scale", lambda s: [2])),
    ("inputone", "shapes", "an input scale with a dimension", False, oss("1.gate_up_proj.input_scale", lambda s: [1])),
    ("biaslong", "shapes", "a bias is longer", False, oss("1.gate_up_proj.bias", lambda s: [s[0] + 8])),
    ("biascut", "shapes", "a bias is short", False, oss("1.down_proj.bias", lambda s: [s[0] - 8])),
    ("downbiaslong", "shapes", "a bias of down_proj is longer", False, oss("1.down_proj.bias", lambda s: [s[0] + 8])),
    ("expert4", "experts", "an expert beyond the last one", False, lambda f, w, d: d.add("model.layers.1.mlp.experts.4.down_proj.bias", BF, [256])),
    ("layer2", "layers", "the config has one layer less", False, lambda f, w, d: d.set(num_hidden_layers=1, layer_types=["sliding_attention"])),
    ("numbers", "surplus", "a name with three numbers", False, lambda f, w, d: d.add("model.layers.1.mlp.experts.1.down_proj.0.weight", U8, [8])),
    ("stray", "surplus", "a parameter of experts that there is not", False, lambda f, w, d: d.add("model.layers.1.mlp.experts.1.down_proj.zero_point", U8, [8])),
    ("strayinput", "surplus", "an input scale of a name that there is not", False, lambda f, w, d: d.add("model.layers.1.mlp.experts.1.q_input_scale", F32, [1])),
    ("odd", "config", "sizes that are no blocks", False, lambda f, w, d: d.set(intermediate_size=496)),
    ("kv", "kv-cache", "an 8-bit KV cache", True, lambda f, w, d: kv_oss(f, d)),
    ("scalef32", "dtype", "scales of experts as F32", False, lambda f, w, d: retype(d, "layers.1.*_proj.weight_scale$", F32)),
    ("biasf32", "dtype", "biases of experts as F32", True, lambda f, w, d: retype(d, "experts.*_proj.bias$", F32)),
]
MXFP = [
    ("bits6", "quant-config", "6 bits", False, config(bits=6)),
    ("asymmetric", "quant-config", "asymmetric", False, config(sym=False)),
    ("group64", "quant-config", "groups of 64", False, config(group_size=64)),
    ("group2", "quant-config", "a group of two sizes", False, config(group_size=[32, 32])),
    ("formatnone", "quant-config", "no packing format", True, config(packing_format=...)),
    ("formatgptq", "quant-config", "packing format of integers", False, config(packing_format="auto_round:auto_gptq")),
    ("backend", "quant-config", "a backend", False, config(backend="marlin")),
    ("nodata", "quant-config", "no data_type", False, config(data_type=...)),
    ("dataword", "quant-config", "an unknown data_type", False, config(data_type="nv_fp")),
    ("datalong", "quant-config", "data_type with the element's name", True, lambda f, w, d: config(data_type="mx_fp%d" % f.holder(d)["bits"])(f, w, d)),
    ("datalong-16", "quant-config", "data_type with the element's name, groups of 16", False, config(data_type="mx_fp4e2m1", group_size=16)),
    ("width-o", "scheme", "o_proj of the other width by its own entry", False, lambda f, w, d: width(o_proj, bits=12 - f.holder(d)["bits"])(f, w, d)),
    ("width-6", "scheme", "o_proj with 6 bits by its own entry", False, width(o_proj, bits=6)),
    ("width-q", "partial-fused-ignore", "q_proj with bits of its own", False, lambda f, w, d: width(q_proj, bits=12 - f.holder(d)["bits"])(f, w, d)),
    ("act4", "quant-config", "activations of 4 bit", False, config(act_bits=4)),
    ("act16", "quant-config", "activations of 16 bit", False, config(act_bits=16)),
    ("actword", "quant-config", "activations of another type", False, config(act_data_type="fp8")),
    ("actstatic", "quant-config", "static activations", False, config(act_dynamic=False)),
    ("noact", "quant-config", "no activations in the config", True, config(act_bits=..., act_data_type=..., act_group_size=..., act_sym=..., act_dynamic=...)),
    ("scale-e8m0", "dtype", "scales as F8_E8M0", False, lambda f, w, d: retype(d, "weight_scale$", "F8_E8M0")),
    ("head-own", "lm-head", "lm_head quantized by its own entry", True,
     lambda f, w, d: need("lm_head.weight" in d.names()) and (f.store(d, "lm_head"), width(lambda w: "lm_head", bits=f.holder(d)["bits"])(f, w, d))[1]),
    ("dtype", "config", "dtype float16", False, lambda f, w, d: d.set(dtype="float16")),
    ("blocks", "ignore-syntax", "only the first layer named as quantized", False, config(block_name_to_quantize="model.layers.0")),
]
OWN.update({
    "mxfp4": OSS_FAULTS,
    "mxfp4odd": [x for x in OSS_FAULTS if x[0] in ("flat", "split", "scalesshort", "noscales", "biasshort")],
    "mxfp4e": [
        ("list", "ignore-syntax", "a list, which nothing reads", False, lambda f, w, d: config(modules_to_not_convert=[m_down(w)], ignored_layers=["lm_head"])(f, w, d)),
        ("dtype", "config", "dtype float16", False, lambda f, w, d: d.set(dtype="float16")),
        ("scale-e8m0", "dtype", "scales as F8_E8M0", False, lambda f, w, d: retype(d, "weight_scale$", "F8_E8M0")),
    ],
    "quarkfp8": [
        ("noexport", "quant-config", "no export", False, config(export=...)),
        ("nogroup", "quant-config", "no kv_cache_group", False, lambda f, w, d: f.holder(d)["export"].pop("kv_cache_group") is not None and d),
        ("exportword", "quant-config", "export is a word", False, config(export="yes")),
        ("noglobal", "quant-config", "no global_quant_config", False, config(global_quant_config=...)),
        ("notypes", "quant-config", "no layer_type_quant_config", False, config(layer_type_quant_config=...)),
        ("noperlayer", "quant-config", "no layer_quant_config", True, config(layer_quant_config=...)),
        ("types", "quant-config", "layer_type_quant_config that nothing matches", True, config(layer_type_quant_config={"LlamaMLP": {}})),
        ("dtypeword", "scheme", "an unknown dtype", False, weights(dtype="fp7")),
        ("qscheme", "scheme", "an unknown qscheme", False, weights(qscheme="per_row")),
        ("output", "scheme", "output_tensors of all layers", False, layer("output_tensors", spec("fp8_e4m3", "per_tensor"))),
        ("weightonly", "scheme", "no input_tensors", False, layer("input_tensors", None)),
        ("dynamic", "scheme", "dynamic in the config, input scales in the files", False, weights("input_tensors", is_dynamic=True)),
        ("channel", "scheme", "channels in the config, one scale in the files", False, weights(qscheme="per_channel")),
        ("nowords", "scheme", "a block without a size", False, weights(qscheme="per_block")),
        ("listweight", "scheme", "the specification in a list", True, lambda f, w, d: layer("weight", [f.holder(d)["global_quant_config"]["weight"]])(f, w, d)),
        ("perlayer", "scheme", "layers of their own, alike", True, per_layer(lambda w: ["*mlp*", "*self_attn*"])),
        ("perlayer-name", "scheme", "a layer by its name", True, per_layer(lambda w: [m_down(w)])),
        ("perlayer-q", "scheme", "q_proj of its own", False, both(per_layer(lambda w: ["*q_proj"], input_tensors=None))),
        ("exclude-re", "ignore-syntax", "all o_proj 16-bit, by a broken regex", False,
         lambda f, w, d: f.list(plain(f, d, *[m for m in w.linears if m.endswith("o_proj")]), [r"re:.*(o_proj$"])),
        ("kvgroup", "kv-cache", "an 8-bit KV cache", True, kv_group()),
        ("kvgroup-int8", "kv-cache", "a KV cache of int8", False, kv_group("int8")),
        ("kvgroup-channel", "kv-cache", "a KV cache by channel", False, kv_group(qscheme="per_channel")),
        ("kvgroup-none", "kv-cache", "kv_cache_group and no layer of it", False, kv_group(keys=("*o_proj",))),
    ],
    "quarkmx": [
        ("group16", "scheme", "groups of 16", False, weights(group_size=16)),
        ("noformat", "scheme", "no scale_format", False, weights(scale_format=None)),
        ("a8", "scheme", "dynamic 8-bit activations", False, layer("input_tensors", spec("fp8_e4m3", "per_tensor", True))),
        ("a16", "scheme", "no activations", True, layer("input_tensors", None)),
        ("a5", "scheme", "activations of an unknown type", False, weights("input_tensors", dtype="fp5")),
        ("static", "scheme", "static activations of 4 bit", False, weights("input_tensors", is_dynamic=False)),
        ("static8", "scheme", "static activations of 8 bit", False, layer("input_tensors", spec("fp8_e4m3", "per_tensor"))),
        ("fp6", "scheme", "fp6 in the config, fp4 in the files", False, weights(dtype="fp6_e3m2")),
        ("scale-e8m0", "dtype", "scales as F8_E8M0", False, lambda f, w, d: retype(d, "weight_scale$", "F8_E8M0")),
    ],
    "quarkoss": QUARK_OSS,
    "quarkossa16": [x for x in QUARK_OSS if x[0] in ("weightcut", "odd")],
    "quarkossfp8": [x for x in QUARK_OSS if x[0] in ("noscale", "noinput", "scaletwo", "weightlong", "downlong", "weightflat", "expert4", "layer2", "inputtwo", "downscaletwo")],
    "quarkossptpc": [x for x in QUARK_OSS if x[0] in ("scalelong", "scalecut", "noscale")],
    "quarkossbanks": [x for x in OSS_FAULTS if x[0] in ("noscales", "flat", "scalesshort", "scaleslong", "scales2d", "blocksshort", "blocksodd", "oneexpert", "experts", "biaslong",
                                                        "biasshort", "downbiaslong", "intermediate", "plain", "count")],
    "quarkuint4": QUARK4,
    "quarkint4": [
        ("order", "scheme", "packed in order", False, packing("order")),
        ("zeros", "surplus", "zero points of o_proj alone", False, lambda f, w, d: d.add(o_proj(w) + ".weight_zero_point", I32, [2, 8])),
    ],
    "quarkint4z": [x for x in QUARK4 if x[0] in ("group32", "group48", "order")],
    "quarkuint4g128": [x for x in QUARK4 if x[0] in ("group64", "group96", "float")],
    "incmxfp8": MXFP,
    "incmxfp4": MXFP[:12] + [
        ("unpacked", "surplus", "the values as weight", False, lambda f, w, d: d.rename("weight_packed$", "weight")),
        ("noact", "quant-config", "no activations in the config", True, config(act_bits=..., act_data_type=..., act_group_size=..., act_sym=..., act_dynamic=...)),
        ("act16", "quant-config", "activations of 16 bit", True, config(act_bits=16)),
    ],
    "incfp8": [
        ("bits4", "quant-config", "4 bits", False, config(bits=4)),
        ("asymmetric", "quant-config", "asymmetric", False, config(sym=False)),
        ("group128", "quant-config", "one size of a group", False, config(group_size=128)),
        ("group-flat", "quant-config", "one size of a group, no packing format", False, config(group_size=128, packing_format=...)),
        ("group64", "scheme", "blocks of 64 in the config, of 128 in the files", False, config(group_size=[64, 64])),
        ("group3", "quant-config", "a block of three sizes", False, config(group_size=[128, 128, 128])),
        ("group0", "quant-config", "a block without columns", False, config(group_size=[128, 0])),
        ("formatnone", "quant-config", "no packing format", True, config(packing_format=...)),
        ("formatgptq", "quant-config", "packing format of integers", False, config(packing_format="auto_round:auto_gptq")),
        ("backend", "quant-config", "a backend", False, config(backend="marlin")),
        ("fp8word", "quant-config", "data_type fp8", True, config(data_type="fp8")),
        ("int", "quant-config", "data_type int", False, config(data_type="int")),
        ("static", "quant-config", "static activations", False, config(activation_scheme="static")),
        ("e5m2", "quant-config", "fmt e5m2", False, config(fmt="e5m2")),
        ("actgroup", "quant-config", "another group of the activations", False, config(act_group_size=32)),
        ("actnull", "quant-config", "act_dynamic null", False, config(act_dynamic=None)),
        ("noact", "quant-config", "no activations in the config", True, config(act_bits=..., act_data_type=..., act_group_size=..., act_sym=..., act_dynamic=...)),
        ("width-o", "scheme", "o_proj with 4 bits by its own entry", False, width(o_proj, bits=4)),
        ("width-sym", "scheme", "o_proj asymmetric by its own entry", False, width(o_proj, sym=False)),
        ("width-group", "scheme", "o_proj with a group of its own", False, width(o_proj, group_size=128)),
        ("width-block", "scheme", "down_proj with blocks of its own", False, width(m_down, group_size=[64, 128])),
        ("pattern", "16bit-not-ignored", "o_proj 16-bit, by a pattern", True,
         lambda f, w, d: f.list(plain(f, d, *need([m for m in w.linears if m.endswith("o_proj")])), [".*o_proj$"])),
    ],
    "quarkint8": [
        ("static", "scheme", "static activations", False, layer("input_tensors", spec("int8", "per_tensor"))),
        ("tensor", "scheme", "one scale a linear in the config", False, weights(qscheme="per_tensor")),
        ("column", "shapes", "scales as a column", False, lambda f, w, d: everywhere(d, "weight_scale$", lambda t: t.update(shape=[*t["shape"], 1]))),
    ],
    "quarkptpc": [
        ("column", "shapes", "scales as a column", False, lambda f, w, d: everywhere(d, "weight_scale$", lambda t: t.update(shape=[*t["shape"], 1]))),
        ("tensor", "scheme", "static activations by tensor", False, layer("input_tensors", spec("fp8_e4m3", "per_tensor"))),
    ],
    "quarkblock": [
        ("unlisted", "16bit-not-ignored", "one linear 16-bit, not in the list", False, lambda f, w, d: plain(f, d, m_down(w))),
        ("block64", "scheme", "blocks of 64", False, weights(block_size=[64, 64])),
        ("noscale", "missing-tensors", "a scale is missing", False, lambda f, w, d: drop(d, scale_name(d, o_proj(w)))),
    ],
    "fbgemm": [
        ("nobound", "quant-config", "no activation_scale_ub", False, config(activation_scale_ub=...)),
    ],
})


def chosen(short, *words):
    return zlib.crc32("/".join([short, *words]).encode()) % 100 < SHARE.get(short, OTHERS)


def taken(form, short, tag):
    own = tag in (x[0] for x in OWN.get(form.tag, []))
    if form.share is None:
        return chosen(short, form.tag, tag) or own and short == "llama"
    if isinstance(form.share, dict):
        share = form.share.get(short, form.share[""])
        return own and short == (form.bases or BASES)[0] or zlib.crc32("/".join([short, form.tag, tag]).encode()) % 100 < share
    if own:
        return short == form.bases[0]
    return zlib.crc32("/".join([short, form.tag, tag]).encode()) % 100 < form.share


def cases(form, short):
    w = Wide(short, form.base(Draft(f"{short}-base-bf16" if short == "llama" else f"{short}-wide-bf16")))
    form.sizes = {n[:-7]: list(w.d.get(n)["shape"]) for n in w.d.names() if n.endswith(".weight") and len(w.d.get(n)["shape"]) == 2}
    try:
        d = form.make(w)
    except Skip:
        return
    case = dict(arch=ARCHS.get(short, "LlamaForCausalLM"), family="base", platform=form.platform)
    yield dict(id=f"{short}-{form.tag}", **case, description=f"tiny, {form.tag}, exact list", good=form.good, expect=[], **parts(d))
    own = OWN.get(form.tag, [])
    for tag, family, what, good, change in [x for x in FAULTS if x[0] not in {o[0] for o in own}] + own:
        if not taken(form, short, tag):
            continue
        v = copy.deepcopy(w)
        try:
            x = change(form, v, d.copy())
        except (Skip, AssertionError):      # it does not apply: Draft asserts that it found what to change
            continue
        except Exception as e:
            raise SystemExit(f"{short} {form.tag} {tag}: {type(e).__name__} {e}") from e
        listed = form.key is not None or not tag.startswith(("listed", "experts-listed"))    # no list, no repair
        yield dict(id=f"{short}-{form.tag}-{tag}", **(case | dict(family=family)), description=f"{form.tag}: {what}", good=good and form.good and listed and tag not in form.odd, expect=[], **parts(x))


BASES = ["llama", "qwen3", "qwen3moe", "mixtral", "gemma3mm", "qwen25vl", "phi3", "deepseekv3", "glm4moe"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--only", default="")
    ap.add_argument("--forms", nargs="*", default=[])
    a = ap.parse_args()
    import mkmodelopt
    OWN.update(mkmodelopt.OWN)
    made = []
    for form in FORMS + mkmodelopt.FORMS:
        if a.forms and form.tag not in a.forms:
            continue
        for short in form.bases or BASES:
            for case in cases(form, short):
                mkwide.write(case, a.only, made)
    print("\n".join(made))
    print(len(made), "cases", file=sys.stderr)


if __name__ == "__main__":
    main()
