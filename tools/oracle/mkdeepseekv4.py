#!/usr/bin/env python3
"""Write conformance cases of DeepSeek V4's own quantization: fp8 in blocks, experts in MXFP4, NVFP4 or fp8, and what goes wrong with them.

    mkdeepseekv4.py [--out tests/conformance/cases] good-deepseekv4forcausallm.json      without verdicts; then judge.py --record

The 16-bit case is mkfacts.py's. Names are those of the published checkpoints: `.scale` beside `.weight`.
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
from judge import save_case       # noqa: E402

LINEAR = re.compile(r"\.attn\.(wq_a|wq_b|wkv|wo_a|wo_b|indexer\.wq_b)\.weight$|\.shared_experts\.w\d\.weight$")
EXPERT = re.compile(r"\.ffn\.experts\.\d+\.w\d\.weight$")
NAMES = [(r"^model\.embed\.", "embed."), (r"\.shared_experts\.down_proj\.", ".shared_experts.w2.")]


def nvfp4(name, n, k):
    """ModelOpt's form of an expert."""
    parts = dict(weight=("U8", [n, k // 2]), weight_scale=("F8_E4M3", [n, k // 16]), weight_scale_2=("F32", []), input_scale=("F32", []))
    return [{"name": name.replace(".weight", "." + part), "dtype": dtype, "shape": shape, "fill": 1} for part, (dtype, shape) in parts.items()]


def quantized(case, experts, ignored=None):
    """The case with linears in fp8 and experts in `fp4`, `nvfp4` or `fp8`; those of one layer stay as they were."""
    c = {k: copy.deepcopy(v) for k, v in case.items() if k != "oracle"}
    exponents, rows = experts != "fp8", []
    for t in c["shards"]["model.safetensors"]["tensors"]:
        name = t["name"]
        for a, b in NAMES:
            name = re.sub(a, b, name)
        t["name"] = name
        linear, expert = LINEAR.search(name), EXPERT.search(name)
        if expert and experts == "nvfp4" and not name.startswith(f"layers.{ignored}."):
            rows += nvfp4(name, *t["shape"])
        elif linear or expert:
            n, k = t["shape"]
            packed = expert and exponents
            scale = [n, k // 32] if packed else [-(-n // 128), -(-k // 128)]
            t.update(dtype="I8" if packed else "F8_E4M3", shape=[n, k // 2] if packed else [n, k])
            rows += [t, {"name": name.replace(".weight", ".scale"), "dtype": "F8_E8M0" if exponents else "F32", "shape": scale, "fill": 1}]
        else:
            rows.append(t)
    c["shards"]["model.safetensors"]["tensors"] = rows
    c["files"]["config.json"].update(expert_dtype=experts.removeprefix("nv"), quantization_config={
        "quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128], **({"scale_fmt": "ue8m0"} if exponents else {}),
        **({"moe_quant_algo": "NVFP4"} if experts == "nvfp4" else {}), **({"ignore": [f"layers.{ignored}.ffn.experts*", "mtp.*"]} if ignored is not None else {})})
    tag = experts if ignored is None else f"{experts}-ignored"
    return {**c, "id": f"deepseekv4-{tag}", "family": "base", "description": f"DeepSeek V4, linears in fp8, experts in {experts}", "good": True}


def faults(good):
    def made(tag, what, family, change):
        c = copy.deepcopy(good)
        rows = c["shards"]["model.safetensors"]["tensors"]
        change(c["files"]["config.json"], rows)
        return {**c, "id": f"{good['id']}-{tag}", "family": family, "description": f"{good['description']}; {what}", "good": False}

    def named(rows, end):
        return next(t for t in rows if t["name"].endswith(end))

    def plain(end):
        def change(c, rows):
            t = named(rows, end + ".weight")
            for other in [x for x in rows if x["name"].rpartition(".")[0].endswith(end) and x is not t]:
                rows.remove(other)
            t.update(dtype="BF16", shape=[t["shape"][0], t["shape"][1] * (2 if t["dtype"] in ("I8", "U8") else 1)], fill=f"randn:{zlib.crc32(end.encode())}")
        return change

    def lost(end):
        return lambda c, rows: rows.remove(named(rows, end))

    def listed(entry, end):
        def change(c, rows):
            plain(end)(c, rows)
            c["quantization_config"]["ignored_layers"] = [entry]
        return change

    def retyped(dtype):
        def change(c, rows):
            for t in rows:
                if t["name"].endswith(".attn.wo_b.scale"):
                    t["dtype"] = dtype
        return change
    yield made("16bit", "one linear is in 16 bit", "16bit-not-ignored", plain("layers.1.attn.wo_b"))
    yield made("16bit-expert", "one projection of an expert is in 16 bit", "16bit-not-ignored", plain("layers.1.ffn.experts.0.w2"))
    yield made("listed", "it is listed by its name in the checkpoint", "ignore-names", listed("layers.1.attn.wo_b", "layers.1.attn.wo_b"))
    yield made("listed-vllm", "it is listed by vLLM's name", "ignore-names", listed("model.layers.1.attn.wo_b", "layers.1.attn.wo_b"))
    yield made("noscale", "scales of one linear are missing", "scales", lost("layers.0.attn.wq_b.scale"))
    four = "nvfp4" in good["id"]
    yield made("noscale-expert", "scales of one expert are missing", "scales", lost("layers.0.ffn.experts.1.w1." + ("weight_scale" if four else "scale")))
    if four:
        yield made("noglobal", "the second scale of an expert is missing", "scales", lost("layers.0.ffn.experts.1.w2.weight_scale_2"))
        yield made("noinput", "an input scale is missing", "scales", lost("layers.1.ffn.experts.1.w3.input_scale"))
        yield made("noalgo", "the config does not say so", "quant-config", lambda c, rows: c["quantization_config"].pop("moe_quant_algo"))
        yield made("lower", "in small letters", "quant-config", lambda c, rows: c["quantization_config"].update(moe_quant_algo="nvfp4"))
        yield made("otheralgo", "another algorithm in the config", "quant-config", lambda c, rows: c["quantization_config"].update(moe_quant_algo="MXFP8"))
        yield made("ignore", "all experts in `ignore`", "ignored-but-packed", lambda c, rows: c["quantization_config"].update(ignore=["*"]))
        yield made("ignoreword", "`ignore` is a word", "quant-config", lambda c, rows: c["quantization_config"].update(ignore="*"))
    yield made("noweight", "one linear is missing", "missing-tensors", lost("layers.1.attn.wkv.weight"))
    yield made("other-experts", "the config says another type of experts", "config-shapes",
               lambda c, rows: c.update(expert_dtype="fp8" if c["expert_dtype"] == "fp4" else "fp4"))
    yield made("unknown-experts", "a type of experts that there is not", "config-shapes", lambda c, rows: c.update(expert_dtype="int4"))
    yield made("sinks", "as many sinks as key heads", "shapes", lambda c, rows: named(rows, "layers.0.attn.attn_sink").update(shape=[1]))
    yield made("scaletype", "scales of another type", "scales", retyped("F32" if good["id"].endswith("fp4") else "F8_E8M0"))
    yield made("stray", "a tensor of another model", "surplus",
               lambda c, rows: rows.append({"name": "layers.1.attn.mystery.weight", "dtype": "BF16", "shape": [8, 8], "fill": "zeros"}))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("good")
    ap.add_argument("--out", default=os.path.join(HERE, "../../tests/conformance/cases"))
    a = ap.parse_args()
    with open(a.good) as f:
        case = json.load(f)
    good = quantized(case, "nvfp4", 0)
    print(save_case(os.path.join(a.out, good["id"] + ".json"), good))
    for experts in ("fp4", "nvfp4", "fp8"):
        good = quantized(case, experts)
        for c in (good, *faults(good)):
            print(save_case(os.path.join(a.out, c["id"] + ".json"), c))


if __name__ == "__main__":
    main()
