#!/usr/bin/env python3
"""Three faults of each good case that is named: a tensor is missing, one has another shape, one is of another model.

    mkfaults.py [--out tests/conformance/cases] good-ARCH.json...        without verdicts; then judge.py --record

Which tensor it is depends on the name of the architecture, so that the kinds of tensors take turns.
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


def faults(case):
    arch = case["arch"].lower()
    turn = zlib.crc32(arch.encode())
    rows = case["shards"]["model.safetensors"]["tensors"]
    layers = [i for i, t in enumerate(rows) if re.search(r"(layers?|h|blocks)\.\d+\.", t["name"])] or list(range(len(rows)))
    matrices = [i for i in layers if len(rows[i]["shape"]) == 2] or layers

    def made(tag, what, family, change):
        c = {k: copy.deepcopy(v) for k, v in case.items() if k not in ("oracle", "good")}
        change(c["shards"]["model.safetensors"]["tensors"])
        return {**c, "id": f"{arch}-{tag}", "family": family, "description": f"{case['description']}; {what}", "good": False, "expect": []}

    def lost(t):
        del t[layers[turn % len(layers)]]

    def longer(t):
        row = t[matrices[turn // 7 % len(matrices)]]
        row["shape"] = [row["shape"][0] + 8, *row["shape"][1:]]

    def stray(t):
        t.append({"name": rows[layers[-1]]["name"].rsplit(".", 2)[0] + ".mystery.weight", "dtype": "BF16", "shape": [8, 8], "fill": "zeros"})
    yield made("lost", f"without {rows[layers[turn % len(layers)]]['name']}", "missing-tensors", lost)
    yield made("longer", f"{rows[matrices[turn // 7 % len(matrices)]]['name']} is longer", "shapes", longer)
    yield made("stray", "a tensor of another model", "surplus", stray)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("good", nargs="+")
    ap.add_argument("--out", default=os.path.join(HERE, "../../tests/conformance/cases"))
    a = ap.parse_args()
    for p in a.good:
        with open(p) as f:
            case = json.load(f)
        for c in faults(case):
            print(save_case(os.path.join(a.out, c["id"] + ".json"), c))


if __name__ == "__main__":
    main()
