#!/usr/bin/env python3
"""Write one good conformance case for each architecture: a tiny checkpoint, named and shaped as transformers saves it.

    mkgood.py [--out tests/conformance/cases] ARCH...        good-<arch>.json, without verdict; then judge.py --record

An architecture that transformers does not have, or whose case would be too large, is said to be left out.
"""
import argparse
import json
import os
import re
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from judge import save_case

# Changes to the tiny config that vLLM or transformers need.
SET = {
    "Glm4MoeForCausalLM": ["head_dim=64"],
    "AfmoeForCausalLM": ["route_norm=true", "n_group=1", "topk_group=1"],
    "FalconForCausalLM": ["ffn_hidden_size=1024"],
    "Lfm2ForCausalLM": ["block_dim=256"],
    "Lfm2MoeForCausalLM": ["block_dim=256"],
    "XLMRobertaModel": ['position_embedding_type="absolute"'],
    "GraniteMoeHybridForCausalLM": ["mamba_n_heads=8", "mamba_d_head=64"],
    "Mamba2ForCausalLM": ["num_heads=8", "head_dim=64"],
    "FalconH1ForCausalLM": ["mamba_d_ssm=512", "mamba_n_heads=8", "mamba_d_head=64"],
}
# What vLLM's CPU platform lacks: sparse attention, experts without a gate.
PLATFORM = {"NemotronHForCausalLM": "cuda:90", "DeepseekV32ForCausalLM": "cuda:90", "GlmMoeDsaForCausalLM": "cuda:90"}
# Files of the BERT family hold this buffer.
POSITIONS = re.compile(r"^(Bert|Roberta|XLMRoberta)")
# The class of transformers that saves what the architecture of another name loads.
SAVED_BY = {}
LARGEST = 40_000


def case(arch):
    import hfnames
    edits = SET.get(arch, [])
    config = hfnames.config(arch, True, edits)
    small(config)
    sd, c = hfnames.tensors(SAVED_BY.get(arch, arch), config)
    d = json.loads(json.dumps(c.to_diff_dict(), default=str))
    full = json.loads(json.dumps(c.to_dict(), default=str))
    # What vLLM reads, and the class of transformers does not declare.
    d |= {k: v for k, v in config.items() if k in full and k not in d and k in required(arch)}
    d["architectures"], d["dtype"] = [arch], "bfloat16"
    d.pop("transformers_version", None)
    kinds = {"bfloat16": "BF16", "float32": "F32", "int64": "I64", "float16": "F16"}
    tensors = [{"name": n, "dtype": kinds[str(t.dtype)[6:]], "shape": list(t.shape),
                "fill": f"randn:{zlib.crc32(n.encode()) % 2**31}" if t.is_floating_point() else "zeros"} for n, t in sd.items()]
    if POSITIONS.search(arch):
        at = next((t["name"][:-len("word_embeddings.weight")] for t in tensors if t["name"].endswith("word_embeddings.weight")), None)
        if at is not None:
            tensors.insert(0, {"name": at + "position_ids", "dtype": "I64", "shape": [1, config["max_position_embeddings"]], "fill": "zeros"})
    where = {"platform": PLATFORM[arch]} if arch in PLATFORM else {}
    return dict(**where, id=f"good-{arch.lower()}", arch=arch, family="base", description="tiny, as transformers saves it", good=True, expect=[],
                files={"config.json": d}, shards={"model.safetensors": {"metadata": {"format": "pt"}, "tensors": tensors}})


def required(arch):
    from _configs import FIXES, EXTRA, model_type_of
    t = model_type_of(arch)
    return {k for k in {**FIXES.get(t, {}), **EXTRA.get(arch, (t, {}))[1]} if not k.startswith("-")}


# Smaller than `_configs.tiny` makes them, where vLLM does not mind.
SMALL = dict(vocab_size=128, intermediate_size=64, moe_intermediate_size=32, shared_expert_intermediate_size=32, n_inner=64, ffn_dim=64)


def small(c):
    for k, v in SMALL.items():
        if isinstance(c.get(k), int) and c[k] > v:
            c[k] = v
    for k, v in list(c.items()):
        if isinstance(k, str) and k.endswith(("_token_id", "token_index")) and (isinstance(v, list) or isinstance(v, int) and v >= 128):
            c[k] = 7


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("archs", nargs="+")
    ap.add_argument("--out", default=f"{HERE}/../../tests/conformance/cases")
    a = ap.parse_args()
    for arch in a.archs:
        try:
            c = case(arch)
        except Exception as e:      # noqa: BLE001  one architecture less
            print(f"{arch}: left out: {type(e).__name__}: {str(e)[:200]}", flush=True)
            continue
        size = len(json.dumps(c))
        if size > LARGEST:
            print(f"{arch}: left out: {size} bytes")
            continue
        save_case(f"{a.out}/{c['id']}.json", c)
        print(f"{arch}: {size} bytes, {len(c['shards']['model.safetensors']['tensors'])} tensors", flush=True)


if __name__ == "__main__":
    main()
