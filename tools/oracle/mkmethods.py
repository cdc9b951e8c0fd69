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

SHARE = {"llama": 70}     # per cent of the faults for each form, by base
OTHERS = 11
GPU = "cuda:90"
F8, BF, F32, I32, U8, F16 = "F8_E4M3", "BF16", "F32", "I32", "U8", "F16"


class Form:
    """One way to store a linear of out x in."""

    def __init__(self, tag, tensors, config, key, platform=GPU, bases=None, pick=None, prepare=None, needs=(1, 1)):
        self.tag, self.tensors, self.config, self.key = tag, tensors, config, key
        self.platform, self.bases, self.pick, self.prepare, self.needs = platform, bases, pick, prepare, needs

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
        if self.key is None:
            return d
        q[self.key] = list(q.get(self.key) or []) + list(entries)
        return d

    def unlist(self, d, *entries):
        q = self.holder(d)
        q[self.key] = [e for e in need(q.get(self.key)) if e not in need(entries)]
        return d


def ceil(a, b):
    return -(-a // b)


FORMS = [
    Form("fp8", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(F32, ())),
         lambda ig: dict(quant_method="fp8", activation_scheme="dynamic", modules_to_not_convert=ig), "modules_to_not_convert"),
    Form("fp8static", lambda o, i: dict(weight=(F8, (o, i)), weight_scale=(F32, (1,)), input_scale=(F32, (1,))),
         lambda ig: dict(quant_method="fp8", activation_scheme="static", ignored_layers=ig), "ignored_layers"),
    Form("fp8block", lambda o, i: dict(weight=(F8, (o, i)), weight_scale_inv=(F32, (ceil(o, 128), ceil(i, 128)))),
         lambda ig: dict(quant_method="fp8", activation_scheme="dynamic", fmt="e4m3", weight_block_size=[128, 128], modules_to_not_convert=ig),
         "modules_to_not_convert"),
    Form("fp8block16", lambda o, i: dict(weight=(F8, (o, i)), weight_scale_inv=(F32, (ceil(o, 16), ceil(i, 16)))),
         lambda ig: dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[16, 16], modules_to_not_convert=ig),
         "modules_to_not_convert"),
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
    ("kv", "kv-cache", "k_scale and v_scale on the attention", True,
     lambda f, w, d: [d.add(o_proj(w)[: -len(o_proj(w).split(".")[-1])] + n, F32, [1]) for n in ("k_scale", "v_scale")] and d),
    ("kv-proj", "kv-cache", "k_proj.k_scale and v_proj.v_scale", True,
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


# Faults of one form, by its tag.
OWN = {
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


def chosen(short, *words):
    return zlib.crc32("/".join([short, *words]).encode()) % 100 < SHARE.get(short, OTHERS)


def cases(form, short):
    w = Wide(short, unfused(Draft(f"{short}-base-bf16" if short == "llama" else f"{short}-wide-bf16")))
    form.sizes = {n[:-7]: list(w.d.get(n)["shape"]) for n in w.d.names() if n.endswith(".weight") and len(w.d.get(n)["shape"]) == 2}
    try:
        d = form.make(w)
    except Skip:
        return
    case = dict(arch=ARCHS.get(short, "LlamaForCausalLM"), family="base", platform=form.platform)
    yield dict(id=f"{short}-{form.tag}", **case, description=f"tiny, {form.tag}, exact list", good=True, expect=[], **parts(d))
    for tag, family, what, good, change in FAULTS + OWN.get(form.tag, []):
        if not chosen(short, form.tag, tag):
            continue
        v = copy.deepcopy(w)
        try:
            x = change(form, v, d.copy())
        except (Skip, AssertionError):      # it does not apply: Draft asserts that it found what to change
            continue
        except Exception as e:
            raise SystemExit(f"{short} {form.tag} {tag}: {type(e).__name__} {e}") from e
        yield dict(id=f"{short}-{form.tag}-{tag}", **(case | dict(family=family)), description=f"{form.tag}: {what}", good=good, expect=[], **parts(x))


BASES = ["llama", "qwen3", "qwen3moe", "mixtral", "gemma3mm", "qwen25vl", "phi3", "deepseekv3", "glm4moe"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--only", default="")
    ap.add_argument("--forms", nargs="*", default=[])
    a = ap.parse_args()
    made = []
    for form in FORMS:
        if a.forms and form.tag not in a.forms:
            continue
        for short in form.bases or BASES:
            for case in cases(form, short):
                mkwide.write(case, a.only, made)
    print("\n".join(made))
    print(len(made), "cases", file=sys.stderr)


if __name__ == "__main__":
    main()
