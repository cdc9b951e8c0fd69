#!/usr/bin/env python3
"""Write conformance cases for Llama and the Gemma 4 classes: faults and their repaired twins.

    mkcases.py [--list] [--only TEXT] [OUTDIR]        OUTDIR: tests/conformance/cases beside this file's repository

Every case is an older case with a change made to it; random values depend on the case's and the tensor's name
alone, so the files come out the same every time.  The verdict is left to `judge.py --record`; a case whose
file exists keeps its recorded verdict if nothing else about it changed.
"""
import argparse
import base64
import copy
import fnmatch
import glob
import json
import os
import re
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from judge import save_case
from materialize import SIZES, load_case, numel, record, tensor_bytes, verdicts

CASES = os.path.join(HERE, "..", "..", "tests", "conformance", "cases")
INDEX = "model.safetensors.index.json"


# ---------------------------------------------------------------- a checkpoint in hand

class Draft:
    def __init__(self, source):
        old = load_case(glob.glob(os.path.join(CASES, glob.escape(source) + ".json*"))[0])
        self.arch, self.files, self.shards, self.raw = old["arch"], old["files"], old["shards"], old.get("raw") or {}
        self.args = {}

    def copy(self):
        return copy.deepcopy(self)

    @property
    def config(self):
        return self.files["config.json"]

    @property
    def text(self):
        return self.config.get("text_config") or self.config

    @property
    def quant(self):
        return self.config["quantization_config"]

    def all(self):
        for file, s in self.shards.items():
            for t in s["tensors"]:
                yield file, t

    def names(self):
        return [t["name"] for _, t in self.all()]

    def get(self, name):
        return next(t for _, t in self.all() if t["name"] == name)

    def drop(self, *patterns):
        n = 0
        for s in self.shards.values():
            keep = [t for t in s["tensors"] if not any(re.search(p, t["name"]) for p in patterns)]
            n += len(s["tensors"]) - len(keep)
            s["tensors"] = keep
        assert n, patterns
        return self

    def add(self, name, dtype, shape, fill=None, file=None):
        s = self.shards[file or list(self.shards)[-1]]
        s["tensors"].append({"name": name, "dtype": dtype, "shape": shape,
                             "fill": fill if fill is not None else f"randn:{zlib.crc32(name.encode()) % 2**31}"})
        return self

    def rename(self, pattern, new):
        n = 0
        for _, t in self.all():
            name = re.sub(pattern, new, t["name"])
            n += name != t["name"]
            t["name"] = name
            if isinstance(t["fill"], str) and t["fill"].startswith("same-as:"):
                t["fill"] = "same-as:" + re.sub(pattern, new, t["fill"][8:])
        assert n, pattern
        return self

    def plain(self, module):
        """The module's weight as 16 bits, whatever it was."""
        if any(n == module + ".weight_packed" for n in self.names()):
            shape = self.get(module + ".weight_shape")["fill"]
            file = next(f for f, t in self.all() if t["name"] == module + ".weight_packed")
        else:
            shape = self.get(module + ".weight")["shape"]
            file = next(f for f, t in self.all() if t["name"] == module + ".weight")
        self.drop("^" + re.escape(module) + r"\.weight(_packed|_scale|_shape)?$")
        return self.add(module + ".weight", "BF16", list(shape), file=file)

    def pack(self, module, group=32):
        """The module's 16-bit weight as W4A16, pack-quantized."""
        n, k = self.get(module + ".weight")["shape"]
        file = next(f for f, t in self.all() if t["name"] == module + ".weight")
        self.drop("^" + re.escape(module) + r"\.weight$")
        self.add(module + ".weight_packed", "I32", [n, k // 8], file=file)
        self.add(module + ".weight_scale", "BF16", [n, k // group], file=file)
        return self.add(module + ".weight_shape", "I64", [2], [n, k], file=file)

    def set(self, **kw):
        self.config.update(kw)
        return self

    def tie(self, top, text=...):
        self.config["tie_word_embeddings"] = top
        if text is not ... and "text_config" in self.config:
            self.config["text_config"]["tie_word_embeddings"] = text
        return self

    def ignore(self, *entries):
        self.quant["ignore"] = self.quant["ignore"] + list(entries)
        return self

    def unignore(self, *entries):
        have = self.quant["ignore"]
        assert all(e in have for e in entries), (entries, have)
        self.quant["ignore"] = [e for e in have if e not in entries]
        return self

    def shard(self, *patterns):
        """Split into as many shards as there are patterns, the first match deciding; with an index."""
        everything = [t for _, t in self.all()]
        meta = next(iter(self.shards.values()))["metadata"]
        n = len(patterns)
        out = {f"model-{i + 1:05}-of-{n:05}.safetensors": {"metadata": meta, "tensors": []} for i in range(n)}
        weight_map = {}
        for t in everything:
            i = next(i for i, p in enumerate(patterns) if re.search(p, t["name"]))
            file = list(out)[i]
            out[file]["tensors"].append(t)
            weight_map[t["name"]] = file
        self.shards = out
        size = sum(numel(t["shape"]) * SIZES[t["dtype"]] for t in everything)
        self.files[INDEX] = {"metadata": {"total_size": size}, "weight_map": dict(sorted(weight_map.items()))}
        return self

    @property
    def weight_map(self):
        return self.files[INDEX]["weight_map"]

    def bytes_of(self, file):
        """(header, data) of a shard, to be written by hand."""
        header, data = {}, b""
        if self.shards[file]["metadata"] is not None:
            header["__metadata__"] = self.shards[file]["metadata"]
        for t in self.shards[file]["tensors"]:
            b = tensor_bytes(t, None)
            header[t["name"]] = {"dtype": t["dtype"], "shape": t["shape"], "data_offsets": [len(data), len(data) + len(b)]}
            data += b
        return header, data

    def by_hand(self, file, header, data, length=None, pad=b" "):
        """Replace a (small) shard by these bytes; header: object or text."""
        h = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
        h += pad * (-len(h) % 8)
        self.shards.pop(file)
        whole = (len(h) if length is None else length).to_bytes(8, "little") + h + data
        self.raw[file] = {"base64": base64.b64encode(whole).decode()}
        return self


MADE = {}


def case(id, family, description, draft, good=False, twin_of=None):
    assert id not in MADE, id
    out = dict(id=id, arch=(draft.config.get("architectures") or [draft.arch])[0] if isinstance(draft.config, dict) else draft.arch,
               family=family, description=description, good=good, expect=[])
    if twin_of:
        out["twin_of"] = twin_of
    if draft.args:
        out["args"] = draft.args
    out.update(files=draft.files, shards=draft.shards)
    if draft.raw:
        out["raw"] = draft.raw
    MADE[id] = out


# ---------------------------------------------------------------- the good ones that the rest starts from

def bases():
    b = {}
    b["llama"] = d = Draft("llama-geom-headdim16-bf16")
    d.set(head_dim=32)
    b["llama-w4"] = d = Draft("llama-recipe-beside")
    del d.files["recipe.yaml"]
    b["llama-fp8"] = Draft("llama-base-fp8dyn")
    b["gemma4"] = Draft("gemma4-base-bf16")
    b["gemma4-w4"] = Draft("gemma4-lmhead-tied-notignored").ignore("lm_head")
    b["gemma4-fp8"] = Draft("gemma4-base-fp8dyn")
    b["gemma4mm"] = Draft("gemma4mm-tieflag-toptrue-textfalse-head").drop(r"lm_head").tie(True, True)
    b["gemma4mm-w4"] = Draft("gemma4mm-16bit-audrelk").ignore(
        *[f"model.audio_tower.layers.{i}.self_attn.relative_k_proj" for i in (0, 1)])
    b["gemma4uni"] = Draft("gemma4uni-tieflag-toptrue-textfalse-nohead").tie(True, True)
    d = Draft("gemma4uni-16bit-qk1")
    for p in "qk":
        d.pack(f"model.language_model.layers.1.self_attn.{p}_proj")
    b["gemma4uni-w4"] = d
    return b


# architecture → (short id, where its text layers are in the checkpoint, where vLLM has them)
PLACES = [("llama", "model.", "model."), ("gemma4", "model.", "model."),
          ("gemma4mm", "model.language_model.", "language_model.model."),
          ("gemma4uni", "model.language_model.", "language_model.model.")]


def base_cases(B):
    for key, what in (("llama", "bf16"), ("llama-w4", "w4a16"), ("gemma4-w4", "w4a16"), ("gemma4mm", "bf16"),
                      ("gemma4mm-w4", "w4a16"), ("gemma4uni", "bf16"), ("gemma4uni-w4", "w4a16")):
        case(f"{key.split('-')[0]}-base-{what}", "base", "as saved, exact ignore list" if "w4" in what else "as saved, 16 bit",
             B[key].copy(), good=True)
    case("llama-base-sharded-bf16", "base", "three shards and an index", sharded(B["llama"]), good=True)
    case("llama-base-sharded-w4a16", "base", "W4A16 in three shards and an index", sharded(B["llama-w4"]), good=True)
    case("gemma4uni-base-sharded-w4a16", "base", "W4A16, layers and rest in shards of their own",
         B["gemma4uni-w4"].copy().shard(r"layers\.0\.", r"layers\.1\.", r""), good=True)


def sharded(d):
    return d.copy().shard(r"lm_head|embed_tokens|layers\.0\.(mlp|self)", r"layers\.1\.(mlp|self)", r"norm")


# ---------------------------------------------------------------- quant

def quant_cases(B):
    for key, at, vllm in PLACES:
        w4 = B[key + "-w4"]
        mod = at + "layers.1.mlp.down_proj"
        plain = w4.copy().plain(mod)
        bad = f"{key}-unlisted-down1"
        if key != "llama":          # llama-16bit-down1
            case(bad, "16bit-not-ignored", "layer 1 down_proj stored 16-bit, not in ignore", plain.copy())
        case(f"{key}-listed-down1", "16bit-not-ignored", "repaired: layer 1 down_proj stored 16-bit and in ignore",
             plain.copy().ignore(mod), good=True, twin_of="llama-16bit-down1" if key == "llama" else bad)
        if key in ("gemma4mm", "gemma4uni"):
            case(f"{key}-ignpacked-down1", "ignored-but-packed", "layer 1 down_proj in ignore, stored packed", w4.copy().ignore(mod))
        for tag, entry, what in (
                ("noprefix", "layers.1.mlp.down_proj", "without any prefix"),
                ("vllmname", vllm + "layers.1.mlp.down_proj", "by vLLM's own name"),
                ("textname", "model.layers.1.mlp.down_proj", "by the text model's name"),
                ("re-noanchor", r"re:mlp\.down_proj$", "by a regex that does not match from the start"),
                ("re-anchored", r"re:.*layers\.1\.mlp\.down_proj$", "by a regex that matches from the start"),
                ("re-vllmname", "re:" + re.escape(vllm) + r"layers\.1\.mlp\.down_proj$", "by a full regex over vLLM's names"),
                ("re-exactlayer", "re:" + re.escape(at) + r"layers\.1\.mlp\.down_proj$", "by a full regex"),
                ("dotweight", mod + ".weight", "with .weight at the end"),
                ("trailspace", mod + " ", "with a space at the end"),
                ("class", "RowParallelLinear", "by vLLM's class name"),
                ("parent", at + "layers.1.mlp", "by its parent module"),
                ("upper", mod.replace("down", "Down"), "in other letter case")):
            if entry == mod or (tag in ("textname", "re-vllmname") and at == "model."):
                continue
            case(f"{key}-igentry-{tag}", "ignore-syntax", f"layer 1 down_proj is 16-bit; ignored {what}: {entry!r}",
                 plain.copy().ignore(entry), good=tag == "re-anchored" or tag == "re-exactlayer" and at == vllm)
        case(f"{key}-igentry-fused-name", "ignore-syntax", "gate and up 16-bit; ignored as gate_up_proj, the fused name",
             w4.copy().plain(at + "layers.1.mlp.gate_proj").plain(at + "layers.1.mlp.up_proj").ignore(at + "layers.1.mlp.gate_up_proj"))
        case(f"{key}-igentry-fused-parts", "ignore-syntax", "repaired: gate and up 16-bit, both parts ignored",
             w4.copy().plain(at + "layers.1.mlp.gate_proj").plain(at + "layers.1.mlp.up_proj").ignore(
                 at + "layers.1.mlp.gate_proj", at + "layers.1.mlp.up_proj"), good=True, twin_of=f"{key}-igentry-fused-name")
        case(f"{key}-igentry-dead", "ignore-syntax", "clean W4A16 with entries that match nothing",
             w4.copy().ignore(at + "layers.99.mlp.down_proj", "foo", r"re:.*\.router$"))
        # shards of one fused layer that disagree
        case(f"{key}-disagree-q-listed", "partial-fused-ignore", "q_proj 16-bit and listed, its siblings packed",
             w4.copy().plain(at + "layers.0.self_attn.q_proj").ignore(at + "layers.0.self_attn.q_proj"))
        d = w4.copy()
        for p in "qkv":
            d.plain(at + f"layers.0.self_attn.{p}_proj").ignore(at + f"layers.0.self_attn.{p}_proj")
        case(f"{key}-agree-qkv-listed", "partial-fused-ignore", "repaired: q, k and v 16-bit and listed", d, good=True,
             twin_of=f"{key}-disagree-q-listed")
        case(f"{key}-unlisted-up0", "16bit-not-ignored", "up_proj of layer 0 16-bit, not listed, gate packed",
             w4.copy().plain(at + "layers.0.mlp.up_proj"))
        # tensors and config that do not belong together
        d = w4.copy()
        del d.config["quantization_config"]
        if key != "gemma4":         # gemma4-qc-absent
            case(f"{key}-qc-gone", "quant-config", "packed tensors, no quantization config", d)
        d = B[key].copy()
        d.config["quantization_config"] = copy.deepcopy(w4.quant)
        case(f"{key}-qc-onplain", "quant-config", "16-bit tensors, a W4A16 quantization config", d)
        d = w4.copy().drop("^" + re.escape(at) + r"layers\.0\.mlp\.up_proj\.weight_scale$")
        case(f"{key}-missing-scale-up0", "missing-tensors", "weight_scale of layer 0 up_proj not stored", d)
        d = w4.copy().drop("^" + re.escape(at) + r"layers\.0\.mlp\.up_proj\.weight_packed$")
        case(f"{key}-missing-packed-up0", "missing-tensors", "weight_packed of layer 0 up_proj not stored", d)
        case(f"{key}-missing-shapes", "missing-tensors", "no weight_shape stored anywhere", w4.copy().drop(r"weight_shape$"))
    for key in ("llama", "gemma4"):
        d = B[key].copy()
        d.config["quantization_config"] = copy.deepcopy(B[key + "-fp8"].quant)
        case(f"{key}-qc-fp8onplain", "quant-config", "16-bit tensors, an FP8 quantization config", d)
        d = B[key + "-fp8"].copy()
        del d.config["quantization_config"]
        case(f"{key}-qc-fp8gone", "quant-config", "FP8 tensors with scales, no quantization config", d)
        case(f"{key}-qc-fp8gone-noscales", "dtype", "FP8 tensors without scales, no quantization config",
             d.copy().drop(r"weight_scale$"))
    m = "model.layers.1.mlp.down_proj"
    d = B["llama-fp8"].copy().plain(m)
    case("llama-listed-down1-fp8", "16bit-not-ignored", "repaired: FP8, layer 1 down_proj 16-bit and listed", d.ignore(m), good=True,
         twin_of="llama-16bit-down1-fp8")
    # the failures of the Gemma 4 QAT uploads
    for tag, names in (("patchdense", ["model.vision_embedder.patch_dense"]), ("embedvision", ["model.embed_vision.embedding_projection"]),
                       ("embedaudio", ["model.embed_audio.embedding_projection"]),
                       ("allrest", ["model.vision_embedder.patch_dense", "model.embed_vision.embedding_projection",
                                    "model.embed_audio.embedding_projection"])):
        case(f"gemma4uni-unlisted-{tag}", "16bit-not-ignored", f"{' and '.join(names)} stored 16-bit, not in ignore",
             B["gemma4uni-w4"].copy().unignore(*names))
    case("gemma4uni-unlisted-lmhead", "16bit-not-ignored", "tied, no head stored, lm_head not in ignore",
         B["gemma4uni-w4"].copy().unignore("lm_head"), good=True)
    mm = B["gemma4mm-w4"]
    for tag, word in (("visiontower", "vision_tower"), ("audiotower", "audio_tower"), ("embedvision", "embed_vision"), ("ple", "per_layer")):
        names = [e for e in mm.quant["ignore"] if word in e]
        if names:
            case(f"gemma4mm-unlisted-{tag}", "16bit-not-ignored", f"{len(names)} 16-bit modules of {word} not in ignore",
                 mm.copy().unignore(*names))
    names = [e for e in mm.quant["ignore"] if "audio_tower" in e]
    case("gemma4mm-listed-audiotower-re", "16bit-not-ignored", "repaired: the audio tower ignored by one regex",
         mm.copy().unignore(*names).ignore(r"re:.*audio_tower.*"), good=True, twin_of="gemma4mm-unlisted-audiotower")
    for tag, name in (("patchdense", "model.vision_embedder.patch_dense"), ("embedvision", "model.embed_vision.embedding_projection")):
        case(f"gemma4uni-packed-{tag}", "towers", f"{name} packed, not in ignore", B["gemma4uni-w4"].copy().unignore(name).pack(name))
        case(f"gemma4uni-packed-{tag}-ignored", "ignored-but-packed", f"{name} packed, in ignore", B["gemma4uni-w4"].copy().pack(name))
    # where the config is
    for key in ("gemma4mm", "gemma4uni"):
        d = B[key + "-w4"].copy()
        d.config["text_config"]["quantization_config"] = d.config.pop("quantization_config")
        case(f"{key}-qc-intext", "quant-config", "quantization_config only inside text_config", d)
    for tag, value in (("null", None), ("string", "lm_head")):
        d = B["llama-w4"].copy()
        d.quant["ignore"] = value
        case(f"llama-qc-ignore-{tag}", "quant-config", f"ignore is {json.dumps(value)}", d)
    d = B["llama-w4"].copy()
    del d.quant["ignore"]
    case("llama-qc-ignore-absent", "quant-config", "no ignore key", d)
    d = B["llama-w4"].copy()
    d.quant["quantization_status"] = "frozen"
    case("llama-qc-status-frozen", "quant-config", "quantization_status frozen", d)
    d = B["llama-w4"].copy()
    d.files["quantization_config.json"] = d.config.pop("quantization_config")
    case("llama-qc-ownfile", "quant-config", "the quantization config in a file of its own name", d)
    d = B["llama-w4"].copy()
    d.quant["quant_method"] = "compressed_tensors"
    case("llama-qc-method-underscore", "quant-config", "quant_method compressed_tensors", d)
    d = B["llama-w4"].copy()
    d.args = {"quantization": "fp8"}
    case("llama-qc-arg-fp8", "quant-config", "W4A16 checkpoint, --quantization fp8", d)
    d = B["llama"].copy()
    d.args = {"quantization": "compressed-tensors"}
    case("llama-qc-arg-ctonplain", "quant-config", "16-bit checkpoint, --quantization compressed-tensors", d)
    # layout
    d = B["gemma4uni-w4"].copy()
    d.quant["config_groups"]["group_0"]["weights"]["group_size"] = 64
    case("gemma4uni-groupsize-cfg64", "quant-layout", "config says groups of 64, tensors have 32", d)
    d = B["gemma4uni-w4"].copy()
    d.quant["config_groups"]["group_0"]["weights"]["num_bits"] = 8
    case("gemma4uni-bits8-cfg4", "quant-layout", "config says 8 bits, tensors have 4", d)
    d = B["llama-w4"].copy()
    t = d.get("model.layers.1.mlp.down_proj.weight_packed")
    t["shape"] = t["shape"][::-1]
    case("llama-packed-transposed", "quant-layout", "one weight_packed transposed", d)
    d = B["llama-w4"].copy()
    for s in ("packed", "scale", "shape"):
        d.get("model.layers.1.mlp.down_proj.weight_scale")["dtype"] = "F16"
    case("llama-scale-f16", "quant-layout", "one weight_scale is F16", d)
    d = B["llama-w4"].copy()
    d.get("model.layers.1.mlp.down_proj.weight_packed")["dtype"] = "U32"
    case("llama-packed-u32", "dtype", "one weight_packed is U32", d)
    d = B["llama-w4"].copy()
    d.get("model.layers.1.mlp.down_proj.weight_packed")["dtype"] = "F32"
    case("llama-packed-f32", "dtype", "one weight_packed is F32", d)
    d = B["llama-w4"].copy()
    d.get("model.layers.1.mlp.down_proj.weight_packed").update(dtype="I64", fill=5)
    case("llama-packed-i64", "dtype", "one weight_packed is I64", d)
    for dtype in ("I32", "I8", "BOOL", "F32", "F64", "F16"):
        d = B["llama"].copy()
        d.get("model.layers.1.mlp.up_proj.weight").update(dtype=dtype)
        case(f"llama-dtype-{dtype.lower()}-up1", "dtype", f"one weight is {dtype}", d)
    d = B["gemma4uni"].copy()
    d.get("model.language_model.layers.1.layer_scalar").update(dtype="I64", fill=1)
    case("gemma4uni-dtype-i64-layerscalar", "dtype", "one layer_scalar is I64", d)
    # packed embedding and head
    group = ["Linear", "re:.*embed_tokens$"]
    for key, at, _ in PLACES:
        d = B[key + "-w4"].copy()
        if key == "llama":
            d.drop(r"^lm_head").tie(True)
        d.pack(at + "embed_tokens")
        case(f"{key}-embed-packed-tied-untargeted", "embeddings-packed", "tied, embedding packed, targets Linear only", d.copy())
        d.quant["config_groups"]["group_0"]["targets"] = list(group)
        case(f"{key}-embed-packed-tied", "embeddings-packed", "tied, embedding packed and targeted, lm_head in ignore", d.copy())
        case(f"{key}-embed-packed-tied-headfree", "embeddings-packed", "tied, embedding packed and targeted, lm_head not in ignore",
             d.copy().unignore("lm_head"))
        d.add("lm_head.weight", "BF16", [128, 64])
        case(f"{key}-embed-packed-head16", "embeddings-packed", "tied flag, embedding packed and targeted, a 16-bit head stored", d)
    d = B["llama-w4"].copy().pack("lm_head")
    case("llama-head-packed-ignored", "lm-head", "untied, head packed but in ignore", d.copy())
    d.unignore("lm_head")
    case("llama-head-packed-untargeted", "lm-head", "untied, head packed, not in ignore, targets Linear only", d.copy())
    d.quant["config_groups"]["group_0"]["targets"] = ["Linear", "re:.*lm_head"]
    case("llama-head-packed-targeted", "lm-head", "repaired: untied, head packed and targeted", d, good=True,
         twin_of="llama-head-packed-ignored")


# ---------------------------------------------------------------- tie

def tie_cases(B):
    embed = {k: at + "embed_tokens.weight" for k, at, _ in PLACES}
    for key, at, _ in PLACES:
        for kind in ("", "-w4"):
            tag = "w4a16" if kind else "bf16"
            d = B[key + kind].copy()
            if key == "llama":
                d.drop(r"^lm_head")
            d.tie(True, True)
            if key == "llama":
                case(f"llama-tie-nohead-{tag}", "lm-head", "tied, no head stored", d.copy(), good=True)
            if not (key == "gemma4" and not kind):
                case(f"{key}-tie-samehead-{tag}", "lm-head", "tied, identical lm_head.weight stored",
                     d.copy().add("lm_head.weight", "BF16", [128, 64], "same-as:" + embed[key]))
            if not (key == "gemma4" and kind):
                case(f"{key}-tie-otherhead-{tag}", "lm-head", "tied, different lm_head.weight stored",
                     d.copy().add("lm_head.weight", "BF16", [128, 64]))
        d = B[key].copy()
        if key == "llama":
            d.drop(r"^lm_head")
        d.tie(True, True)
        case(f"{key}-tie-strayhead", "tie-flag", "tied, no head of its own, a stray talker.lm_head.weight stored",
             d.copy().add("talker.lm_head.weight", "BF16", [128, 64]))
        case(f"{key}-tie-strayhead-mtp", "tie-flag", "tied, no head of its own, a stray mtp.lm_head.weight stored",
             d.copy().add("mtp.lm_head.weight", "BF16", [128, 64]))
        case(f"{key}-tie-suffixhead", "tie-flag", "tied, a stray my_lm_head.weight stored",
             d.copy().add("my_lm_head.weight", "BF16", [128, 64]))
        case(f"{key}-tie-headinmodel", "lm-head", "tied, identical model.lm_head.weight stored",
             d.copy().add("model.lm_head.weight", "BF16", [128, 64], "same-as:" + embed[key]))
        if key != "llama":
            case(f"{key}-untied-nohead", "lm-head", "untied, no head stored", d.copy().tie(False, False))
            u = d.copy().tie(False, False).add("lm_head.weight", "BF16", [128, 64])
            case(f"{key}-untied-ownhead", "lm-head", "repaired: untied, its own head stored", u, good=True, twin_of=f"{key}-untied-nohead")
            case(f"{key}-untied-samehead", "lm-head", "untied, the head identical to the embedding",
                 d.copy().tie(False, False).add("lm_head.weight", "BF16", [128, 64], "same-as:" + embed[key]))
    for key in ("gemma4mm", "gemma4uni"):
        for top in (True, False, None, "absent"):
            for text in (True, False, "absent"):
                for head in (False, True):
                    if key == "gemma4mm" and (head or top is None):     # big files; gemma4uni has them all
                        continue
                    if (top, text) in ((True, True), (False, False)):
                        continue
                    d = B[key].copy()
                    for where, v in ((d.config, top), (d.config["text_config"], text)):
                        if v == "absent":
                            where.pop("tie_word_embeddings", None)
                        else:
                            where["tie_word_embeddings"] = v
                    id = f"{key}-tie-top{str(top).lower()}-text{str(text).lower()}-{'head' if head else 'nohead'}"
                    if head:
                        d.add("lm_head.weight", "BF16", [128, 64])
                    case(id, "tie-flag", f"tie_word_embeddings top level {top}, text_config {text}, lm_head {'stored' if head else 'absent'}", d)
    for key, name in (("gemma4", "model.vision_tower.lm_head.weight"), ("gemma4uni", "model.vision_tower.lm_head.weight")):
        case(f"{key}-tie-towerhead", "tie-flag", f"tied, no head of its own, {name} left over",
             B[key].copy().add(name, "BF16", [128, 64]))
    for kind in ("", "-w4"):
        d = sharded(B["llama" + kind].copy()).drop(r"^lm_head").tie(True)
        d.weight_map.pop("lm_head.weight")
        d.shards["extra.safetensors"] = {"metadata": {"format": "pt"}, "tensors": [
            {"name": "lm_head.weight", "dtype": "BF16", "shape": [128, 64], "fill": "randn:4711"}]}
        case(f"llama-tie-unlistedhead-{'w4a16' if kind else 'bf16'}", "tie-flag",
             "tied, an lm_head.weight only in a file that the index does not know", d)
    d = B["llama"].copy().drop(r"^lm_head").set(tie_word_embeddings=None)
    case("llama-tie-null-nohead", "tie-flag", "tie_word_embeddings null, no head stored", d)
    d = B["llama-w4"].copy().tie(True).pack("lm_head").unignore("lm_head")
    d.quant["config_groups"]["group_0"]["targets"] = ["Linear", "re:.*lm_head"]
    case("llama-tie-packedhead", "lm-head", "tied, a packed head of its own stored and targeted", d)


# ---------------------------------------------------------------- towers

def tower_cases(B):
    mm, mmw, uni, uniw = B["gemma4mm"], B["gemma4mm-w4"], B["gemma4uni"], B["gemma4uni-w4"]
    towers = r"vision_tower|audio_tower|embed_vision|embed_audio|vision_embedder"

    d = mm.copy()
    d.files["config.json"] = dict(d.config["text_config"], architectures=["Gemma4ForCausalLM"])
    case("gemma4-mmnames-leftover", "towers", "text class and config, multimodal names, towers stored", d.copy())
    case("gemma4-mmnames-cut", "towers", "text class and config, multimodal names, towers cut", d.copy().drop(towers))
    t = d.copy().drop(towers).rename(r"^model\.language_model\.", "model.")
    case("gemma4-textnames-cut", "towers", "repaired: text class, config and names, towers cut", t, good=True, twin_of="gemma4-mmnames-leftover")
    case("gemma4-onetower", "towers", "text class and names, one vision tensor left over",
         t.copy().add("model.vision_tower.patch_embedder.input_proj.weight", "BF16", [64, 768]))
    d = mm.copy().drop(towers).rename(r"^model\.language_model\.", "model.")
    case("gemma4mm-textnames", "towers", "multimodal class and config, text names, no towers", d)
    d = mm.copy().rename(r"^model\.language_model\.", "model.")
    case("gemma4mm-textnames-towers", "towers", "multimodal class and config, text names, towers stored", d)
    d = uni.copy().rename(r"^model\.language_model\.", "model.")
    case("gemma4uni-textnames-towers", "towers", "unified class and config, text names, rest stored", d)

    for key, plain, w4 in (("gemma4mm", mm, mmw), ("gemma4uni", uni, uniw)):
        case(f"{key}-notowers-bf16" if key == "gemma4uni" else f"{key}-notowers2-bf16", "towers",
             "towers configured, none of their tensors stored, 16 bit", plain.copy().drop(towers))
        case(f"{key}-notowers-w4a16", "towers", "towers configured, none of their tensors stored, W4A16", w4.copy().drop(towers))
        for kind, d0 in (("bf16", plain), ("w4a16", w4)):
            d = d0.copy().drop(towers)
            d.args = {"language_model_only": True}
            case(f"{key}-lmonly-notowers-{kind}", "towers", "no tower tensors stored, --language-model-only", d)
            d = d0.copy()
            d.args = {"language_model_only": True}
            case(f"{key}-lmonly-towers-{kind}", "towers", "towers stored, --language-model-only", d)
        for what, gone, entry in (("audio", r"audio", "audio_config"), ("vision", r"vision", "vision_config")):
            d = w4.copy().drop(gone)
            d.config[entry] = None
            case(f"{key}-cut-{what}-staleignore", "towers", f"{entry} null, its tensors gone, its ignore entries left", d.copy())
            d.quant["ignore"] = [e for e in d.quant["ignore"] if what not in e]
            case(f"{key}-cut-{what}-clean", "towers", f"repaired: {entry} null, its tensors and ignore entries gone", d,
                 good=what == "audio", twin_of=f"{key}-cut-{what}-staleignore")
            d = w4.copy().drop(gone)
            case(f"{key}-configured-{what}-gone-w4a16", "towers", f"{entry} stands, its tensors gone, W4A16", d)
        d = plain.copy()
        d.config.pop("audio_config")
        case(f"{key}-audiocfg-absent", "towers", "no audio_config key, audio tensors stored", d)
    case("gemma4uni-othertower", "towers", "vision_tower tensors of the other class left over",
         uni.copy().add("model.vision_tower.patch_embedder.input_proj.weight", "BF16", [64, 768]))
    case("gemma4uni-mmconfig", "towers", "unified config and tensors, architectures names the text class",
         uni.copy().set(architectures=["Gemma4ForCausalLM"]))
    case("gemma4-uniarch", "towers", "text config and tensors, architectures names the unified class",
         B["gemma4"].copy().set(architectures=["Gemma4UnifiedForConditionalGeneration"]))
    case("gemma4mm-textarch", "towers", "multimodal config and tensors, architectures names the text class",
         mm.copy().set(architectures=["Gemma4ForCausalLM"]))


# ---------------------------------------------------------------- load

def load_cases(B):
    for key, at, _ in PLACES:
        a = "^" + re.escape(at)
        plain, w4 = B[key], B[key + "-w4"]
        for part, tag in ((r"mlp\.gate_proj", "gate1"), (r"self_attn\.q_proj", "q1"), (r"self_attn\.k_proj", "k1")):
            for kind, d in (("bf16", plain), ("w4a16", w4)):
                case(f"{key}-missing-{tag}-{kind}", "missing-tensors", f"layer 1 {part.split('.')[-1]} not stored, {kind}",
                     d.copy().drop(a + r"layers\.1\." + part))
        n = 4 if key in ("gemma4", "gemma4mm") else 2
        d = plain.copy()
        for _, t in list(d.all()):
            if t["name"].startswith(at + f"layers.{n - 1}."):
                d.add(t["name"].replace(f"layers.{n - 1}.", f"layers.{n}."), t["dtype"], t["shape"])
        case(f"{key}-extralayer", "leftovers", f"layer {n} stored, num_hidden_layers {n}", d)
        case(f"{key}-missing-lastlayer", "missing-tensors", f"layer {n - 1} not stored, 16 bit", plain.copy().drop(a + rf"layers\.{n - 1}\."))
        case(f"{key}-missing-lastlayer-w4a16", "missing-tensors", f"layer {n - 1} not stored, W4A16", w4.copy().drop(a + rf"layers\.{n - 1}\."))
        case(f"{key}-missing-norm-bf16", "missing-tensors", "final norm not stored, 16 bit", plain.copy().drop(a + r"norm\.weight$"))
        if key != "llama":
            case(f"{key}-missing-norm-w4a16", "missing-tensors", "final norm not stored, W4A16", w4.copy().drop(a + r"norm\.weight$"))
            case(f"{key}-missing-layerscalars", "missing-tensors", "no layer_scalar stored, 16 bit", plain.copy().drop(r"layers\.\d+\.layer_scalar$"))
            case(f"{key}-missing-qnorm", "missing-tensors", "q_norm of layer 1 not stored, 16 bit", plain.copy().drop(a + r"layers\.1\.self_attn\.q_norm"))
        case(f"{key}-missing-embed", "missing-tensors", "embed_tokens not stored, 16 bit", plain.copy().drop(a + r"embed_tokens\.weight"))
        for wrap in ("module.", "_orig_mod.", "base_model.model.", "transformer."):
            if key == "llama" and wrap == "base_model.model." or key == "gemma4mm" and wrap != "module.":
                continue
            case(f"{key}-wrapped-{wrap.replace('.', '')}", "name-prefix", f"every name starts with {wrap!r}", plain.copy().rename("^", wrap))
        d = plain.copy()
        d.add(at + "layers.1.mlp.extra.weight", "BF16", [64])
        case(f"{key}-extra-inlayer", "leftovers", "an unknown tensor in layer 1", d)
        d = plain.copy().add(at + "layers.1.mlp.down_proj.bias", "BF16", [64])
        case(f"{key}-extra-bias", "bias", "a bias that the config does not have", d)
        d = plain.copy().add("optimizer.step", "I64", [1], 7)
        case(f"{key}-extra-top", "leftovers", "an unknown tensor at the top", d)
        if key == "gemma4mm":
            continue
        d = plain.copy()
        t = d.get(at + "layers.1.mlp.down_proj.weight")
        t["shape"] = t["shape"][::-1]
        case(f"{key}-shape-down-transposed", "shape-mismatch", "layer 1 down_proj transposed", d)
        d = plain.copy()
        d.get(at + "layers.1.mlp.up_proj.weight")["shape"] = [192, 64]
        case(f"{key}-shape-up-taller", "shape-mismatch", "layer 1 up_proj has 192 rows, config says 128", d)
        d = plain.copy()
        d.get(at + "layers.1.mlp.up_proj.weight")["shape"] = [64, 64]
        case(f"{key}-shape-up-shorter", "shape-mismatch", "layer 1 up_proj has 64 rows, config says 128", d)
        d = plain.copy()
        d.get(at + "layers.1.mlp.up_proj.weight")["shape"] = [128, 32]
        case(f"{key}-shape-up-narrower", "shape-mismatch", "layer 1 up_proj has 32 columns, config says 64", d)
        d = plain.copy()
        d.get(at + "norm.weight")["shape"] = [1, 64]
        case(f"{key}-shape-norm-2d", "shape-mismatch", "final norm is [1, 64]", d)
        d = plain.copy()
        d.get(at + "embed_tokens.weight")["shape"] = [120, 64]
        case(f"{key}-shape-embed-shorter", "shape-mismatch", "embedding has 120 rows, config says 128", d)
        d = plain.copy()
        d.get(at + "embed_tokens.weight")["shape"] = [192, 64]
        case(f"{key}-shape-embed-taller", "shape-mismatch", "embedding has 192 rows, config says 128", d)
    case("gemma4uni-wrapped-languagemodel", "name-prefix", "every name starts with 'language_model.'",
         B["gemma4uni"].copy().rename("^", "language_model."))
    case("gemma4uni-vllmnames", "name-prefix", "vLLM's own names",
         B["gemma4uni"].copy().rename(r"^model\.language_model\.", "language_model.model.").rename(r"^model\.", ""))
    case("llama-nomodel", "name-prefix", "names without model.", B["llama"].copy().rename(r"^model\.", ""))
    case("llama-prefixed-model", "name-prefix", "names with model. twice", B["llama"].copy().rename(r"^model\.", "model.model."))


# ---------------------------------------------------------------- files, index, headers

LAST = "model-00003-of-00003.safetensors"


def file_cases(B):
    s, w = sharded(B["llama"]), sharded(B["llama-w4"])
    tied = sharded(B["llama"].copy()).drop(r"^lm_head").tie(True)
    tied.weight_map.pop("lm_head.weight")
    case("llama-files-sharded-tied", "files", "three shards and an index, tied", tied.copy(), good=True)
    pointer = base64.b64encode(b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0123456789abcdef" * 4 + b"\nsize 4976698672\n").decode()

    def put(d, file, b64):
        d.shards.pop(file, None)
        d.raw[file] = {"base64": b64}
        return d
    for tag, d0 in (("", s), ("-tied", tied), ("-w4a16", w)):
        case(f"llama-files-lfs-one{tag}", "files", "the last shard is a Git LFS pointer", put(d0.copy(), LAST, pointer))
        case(f"llama-files-empty{tag}", "files", "the last shard has no bytes", put(d0.copy(), LAST, ""))
    d = s.copy()
    for f in list(d.shards):
        put(d, f, pointer)
    case("llama-files-lfs-all", "files", "every shard is a Git LFS pointer", d)
    d = B["llama"].copy().drop(r"^lm_head").tie(True)
    case("llama-files-lfs-single-tied", "files", "model.safetensors is a Git LFS pointer, tied", put(d, "model.safetensors", pointer))
    for tag, r, what in (("truncated-data", {"truncate_by": 100}, "100 bytes short"), ("trailing", {"append_base64": "AAAAAAAAAAA="}, "8 bytes too long"),
                         ("truncated-header", {"truncate": 60}, "cut inside its header")):
        d = s.copy()
        d.raw[LAST] = r
        case(f"llama-files-{tag}", "files", f"the last shard is {what}", d)
        d = tied.copy()
        d.raw[LAST] = r
        case(f"llama-files-{tag}-tied", "files", f"the last shard is {what}, tied", d)
    h, data = s.bytes_of(LAST)
    names = [n for n in h if n != "__metadata__"]

    def edit(fn):
        x = copy.deepcopy(h)
        return fn(x) or x

    def header(tag, description, head, bytes_=data, **k):
        case(f"llama-header-{tag}", "header", description, s.copy().by_hand(LAST, head, bytes_, **k))
    case("llama-header-asis", "header", "the last shard written by hand, nothing wrong", s.copy().by_hand(LAST, h, data), good=True)
    text = json.dumps(h, separators=(",", ":"))
    header("notjson", "the header is no JSON", text[:-1].encode() + b" ]")
    header("notutf8", "the header is no UTF-8", text.replace("model.norm.weight", "model.norm.w\x00ight").encode().replace(b"\x00", b"\xff"))
    header("array", "the header is a JSON array", b"[]")
    header("toolong", "header length larger than the file", h, length=1 << 20)
    header("huge", "header length of 200 MB", h, length=200 << 20)
    header("zero", "header length 0", h, length=0)
    header("newlines", "header padded with newlines", h, pad=b"\n")
    header("unpadded", "header length no multiple of 8", json.dumps(h).encode() + b" " * 3, pad=b"")
    header("leadspace", "header starts with a space", b" " + text.encode())

    def hole(x):
        a, b = x[names[-1]]["data_offsets"]
        x[names[-1]]["data_offsets"] = [a + 16, b + 16]
    header("hole", "16 bytes between two tensors belong to none", edit(hole), data[:-128] + b"\0" * 16 + data[-128:])

    def overlap(x):
        a, b = x[names[-1]]["data_offsets"]
        x[names[-1]]["data_offsets"] = [a - 16, b - 16]
    header("overlap", "two tensors share 16 bytes", edit(overlap), data[:-16])

    def same(x):
        x[names[-1]]["data_offsets"] = list(x[names[0]]["data_offsets"])
    header("sharedspan", "two tensors share one span", edit(same), data[:-128])

    def swap(x):
        x[names[-1]]["data_offsets"] = x[names[-1]]["data_offsets"][::-1]
    header("backwards", "a tensor's end before its start", edit(swap))

    def span(x):
        x[names[-1]]["shape"] = [65]
    header("span", "a shape larger than its bytes", edit(span))
    for dt, what in (("BFLOAT16", "unknown"), ("bf16", "in lower case"), ("C64", "complex")):
        def bad(x, dt=dt):
            x[names[-1]]["dtype"] = dt
            if dt == "C64":
                x[names[-1]]["shape"] = [16]
        header(f"dtype-{dt}", f"dtype {dt} ({what})", edit(bad))

    def negative(x):
        x[names[-1]]["shape"] = [-64]
    header("negative", "a negative dimension", edit(negative))

    def floating(x):
        x[names[-1]]["shape"] = [64.0]
    header("floatshape", "a dimension written 64.0", edit(floating))

    def nooffsets(x):
        del x[names[-1]]["data_offsets"]
    header("nooffsets", "a tensor without data_offsets", edit(nooffsets))

    def extra(x):
        x[names[-1]]["note"] = "hello"
    header("extrakey", "a tensor with a key of its own", edit(extra))

    def number(x):
        x["__metadata__"] = {"format": "pt", "step": 5}
    header("metanumber", "a number in __metadata__", edit(number))

    def nometa(x):
        del x["__metadata__"]
    header("nometa", "no __metadata__", edit(nometa))

    def tf(x):
        x["__metadata__"] = {"format": "tf"}
    header("metaformat-tf", "__metadata__ says format tf", edit(tf))
    # duplicate keys: the same name twice in one header
    one = json.dumps({names[-1]: h[names[-1]]})[1:-1]
    header("dupkey-same", "one tensor named twice, same span", (text[:-1] + "," + one + "}").encode())
    d2 = dict(h[names[-1]], data_offsets=[len(data), len(data) + 128])
    header("dupkey-other", "one tensor named twice, two spans",
           (text[:-1] + "," + json.dumps({names[-1]: d2})[1:-1] + "}").encode(), data + data[:128])
    renamed = text.replace('"model.layers.0.input_layernorm.weight"', '"model.layers.1.input_layernorm.weight"', 1)
    header("dupkey-lost", "a tensor's name given twice, another's missing", renamed.encode())
    # the index
    for tag, value, what in (("nomap", {"metadata": {"total_size": 1}}, "has no weight_map"), ("notjson", '{"weight_map": {', "is no JSON"),
                             ("empty", "", "is an empty file"), ("list", [], "is a JSON array"), ("mapnull", {"weight_map": None}, "has weight_map null"),
                             ("maplist", {"weight_map": ["model-00001-of-00003.safetensors"]}, "has a list for weight_map"),
                             ("lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0123456789abcdef" * 4 + "\nsize 12345\n", "is a Git LFS pointer")):
        d = s.copy()
        d.files[INDEX] = value
        case(f"llama-index-{tag}", "index", f"the index {what}", d)
    for tag, path in (("dotdot", "../outside.safetensors"), ("absolute", "/outside.safetensors"), ("subfolder", "sub/" + LAST), ("dot", "./" + LAST),
                      ("upper", LAST.upper()), ("number", 3)):
        d = s.copy()
        for n in d.weight_map:
            if d.weight_map[n] == LAST:
                d.weight_map[n] = path
        if tag == "subfolder":
            d.shards["sub/" + LAST] = d.shards.pop(LAST)
        case(f"llama-index-path-{tag}", "index", f"the index places tensors in {path!r}", d)
    d = s.copy()
    d.weight_map["model.layers.7.mlp.up_proj.weight"] = LAST
    case("llama-index-ghost", "index", "the index lists a tensor that no shard has", d)
    d = s.copy()
    d.weight_map.pop("model.norm.weight")
    case("llama-index-omits", "index", "the index omits a tensor that a listed shard has", d)
    d = s.copy()
    d.files[INDEX]["metadata"]["total_size"] = 1
    case("llama-index-totalsize", "index", "total_size is wrong", d)
    d = s.copy()
    d.files[INDEX].pop("metadata")
    case("llama-index-nometadata", "index", "no metadata in the index", d, good=False)
    d = s.copy()
    d.files.pop(INDEX)
    case("llama-index-none", "index", "three shards, no index", d)
    d = s.copy()
    d.files.pop(INDEX)
    d.shards.pop(LAST)
    case("llama-files-shardgone-noindex-bf16", "files", "a shard and the index missing, 16 bit", d)
    d = w.copy()
    d.files.pop(INDEX)
    d.shards.pop(LAST)
    case("llama-files-shardgone-noindex-w4a16", "files", "a shard and the index missing, W4A16", d)
    d = s.copy()
    for n in [n for n, f in d.weight_map.items() if f == LAST]:
        d.weight_map.pop(n)
    case("llama-index-shardunlisted-bf16", "index", "a shard that the index does not know, 16 bit", d)
    d = B["llama"].copy()
    d.files[INDEX] = s.copy().files[INDEX]
    case("llama-index-stale-single", "index", "one whole file, the index of another set of shards", d)
    # more than one set of weights
    d = s.copy()
    d.shards["model.safetensors"] = copy.deepcopy(B["llama"].shards["model.safetensors"])
    case("llama-files-both-index", "files", "shards with an index, and the whole in model.safetensors", d.copy())
    d.files.pop(INDEX)
    case("llama-files-both-noindex", "files", "shards without an index, and the whole in model.safetensors", d)
    d = s.copy()
    d.shards["consolidated.safetensors"] = copy.deepcopy(B["llama"].shards["model.safetensors"])
    case("llama-files-consolidated-hfnames", "files", "shards with an index, consolidated.safetensors with the same names", d.copy())
    d.args = {"load_format": "hf"}
    case("llama-files-consolidated-hf", "files", "the same, --load-format hf", d)
    d = s.copy()
    d.shards["original/consolidated.00.safetensors"] = copy.deepcopy(B["llama"].shards["model.safetensors"])
    case("llama-files-consolidated-sub", "files", "shards with an index, original/consolidated.00.safetensors", d.copy())
    d.args = {"load_format": "safetensors"}
    case("llama-files-consolidated-sub-safetensors", "files", "the same, --load-format safetensors", d)
    d = s.copy()
    d.files["original/params.json"] = {"dim": 64}
    case("llama-files-original-params", "files", "shards with an index, original/params.json", d)
    d = s.copy()
    d.shards[LAST]["tensors"].append({"name": "lm_head.weight", "dtype": "BF16", "shape": [128, 64], "fill": "same-as:lm_head.weight"})
    case("llama-files-dup-same", "files", "lm_head.weight in two shards, identical", d)
    d = s.copy().add("lm_head.weight", "BF16", [128, 64], "randn:4711", LAST)
    case("llama-files-dup-other", "files", "lm_head.weight in two shards, different", d)
    d = B["llama"].copy()
    d.shards["adapter_model.safetensors"] = {"metadata": {"format": "pt"}, "tensors": [
        {"name": "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", "dtype": "BF16", "shape": [8, 64], "fill": "randn:1"}]}
    case("llama-files-adapter", "files", "a LoRA adapter beside the model, no index", d)
    d = s.copy()
    d.shards["adapter_model.safetensors"] = {"metadata": {"format": "pt"}, "tensors": [
        {"name": "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", "dtype": "BF16", "shape": [8, 64], "fill": "randn:1"}]}
    case("llama-files-adapter-index", "files", "a LoRA adapter beside the model, with an index", d)
    d = B["llama"].copy()
    d.raw["pytorch_model.bin"] = {"base64": "AAAA"}
    case("llama-files-bin-beside", "files", "a broken pytorch_model.bin beside model.safetensors", d)
    d = B["llama"].copy()
    d.shards = {"weights.safetensors": d.shards["model.safetensors"]}
    case("llama-files-othername", "files", "the whole in weights.safetensors", d)
    d = B["llama"].copy()
    d.shards = {}
    case("llama-files-none", "files", "no weights at all", d)
    d = B["llama"].copy().add("model.extra", "BF16", [0])
    case("llama-files-emptytensor", "files", "an unknown tensor of no elements", d)
    # config.json
    for tag, fn, what in (("dupkey", lambda c: json.dumps(c)[:-1] + ', "vocab_size": 256}', "vocab_size twice, the last one wrong"),
                          ("bom", lambda c: "\ufeff" + json.dumps(c), "starts with a byte order mark"),
                          ("empty", lambda c: "", "is an empty file"), ("array", lambda c: "[]", "is a JSON array"),
                          ("comment", lambda c: "// model\n" + json.dumps(c), "has a comment"),
                          ("noarch", lambda c: {k: v for k, v in c.items() if k != "architectures"}, "has no architectures"),
                          ("archnull", lambda c: dict(c, architectures=None), "has architectures null"),
                          ("archempty", lambda c: dict(c, architectures=[]), "has architectures []"),
                          ("archunknown", lambda c: dict(c, architectures=["FooForCausalLM"]), "has an unknown architecture"),
                          ("notype", lambda c: {k: v for k, v in c.items() if k != "model_type"}, "has no model_type")):
        d = B["llama"].copy()
        d.files["config.json"] = fn(d.config)
        case(f"llama-config-{tag}", "config", f"config.json {what}", d)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("outdir", nargs="?", default=CASES)
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--only", default="*", help="a glob over ids")
    a = ap.parse_args()
    B = bases()
    for make in (base_cases, quant_cases, tie_cases, tower_cases, load_cases, file_cases):
        make(B)
    fresh = 0
    for id, c in MADE.items():
        if not fnmatch.fnmatch(id, a.only):
            continue
        if a.list:
            print(id, c["family"], "good" if c["good"] else "", c["description"], sep="\t")
            continue
        have = glob.glob(os.path.join(a.outdir, glob.escape(id) + ".json")) + glob.glob(os.path.join(a.outdir, glob.escape(id) + ".json.gz"))
        if have:
            old = load_case(have[0])
            c["expect"] = old.get("expect", [])
            c["good"] = old.get("good", c["good"])
            if all(old.get(k) == c.get(k) for k in ("files", "shards", "raw", "args")) :
                record(c, *verdicts(old).values())
        path = save_case(have[0] if have else os.path.join(a.outdir, id + ".json"), c)
        if "oracle" not in c:
            fresh += 1
            print(os.path.normpath(path))
    print(f"{len(MADE)} cases, {fresh} without a verdict", file=sys.stderr)


if __name__ == "__main__":
    main()
