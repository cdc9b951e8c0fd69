#!/usr/bin/env python3
"""Write one good conformance case for each architecture: tiny, named and shaped as transformers saves it, judged by the real vLLM.

    mkpending.py [--platform cpu|cuda:N] [--out tests/conformance/pending] [ARCH...]       no ARCH: multimodal ones that transformers has

A case is written if vLLM loads it and has a place for every tensor, but for parts of vision towers that it leaves out; else a line says what happened.  `--keep` leaves what is there.
"""
import argparse
import json
import os
import re
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from _oracle import boot, inspect_here       # noqa: E402

LIMIT = 12_000
# Fewer than the tiny config's, so that a case stays small.
FEW = dict(num_experts=2, num_local_experts=2, n_routed_experts=2, moe_num_experts=2, num_experts_per_tok=1, moe_k=1, top_k_experts=1)


# What transformers saves for parts of a vision tower that vLLM leaves out.
LEFT_OUT = re.compile(r"post_layernorm|(^|\.)head\.|pooler|image_newline|vision\w*\.(\w+\.)*layers\.\d+\.")


def fewest(c):
    """One layer of each kind, in place."""
    from _configs import LAYERS, walk
    for d in walk(c):
        kinds = d.get("layer_types")
        count = next((k for k in LAYERS if isinstance(kinds, list) and d.get(k) == len(kinds)), None)
        if count:
            keep = [kinds.index(k) for k in dict.fromkeys(kinds)]
            for k, v in list(d.items()):
                if isinstance(v, list) and len(v) == d[count]:
                    d[k] = [v[i] for i in keep]
            d[count] = len(keep)


def case(arch, layers):
    import hfnames
    from _configs import config_dict, tiny, walk
    from _remote import REMOTE
    mt, config = config_dict(arch)
    if mt in REMOTE:
        raise LookupError("vLLM reads the config of remote code, transformers saves another")
    tiny(config, max(layers, 1))
    if not layers:
        fewest(config)
    for d in walk(config):
        for k, v in FEW.items():
            if isinstance(d.get(k), int) and d[k] > v:
                d[k] = v
    return config, lambda: finished(arch, hfnames, config)


def finished(arch, hfnames, config):
    sd, c = hfnames.tensors(arch, config)
    if (n := sum(t.numel() for t in sd.values())) > 40_000_000:
        raise ValueError(f"tiny config has {n} weights")
    d = json.loads(json.dumps(c.to_diff_dict(), default=str))
    d["architectures"], d["dtype"] = [arch], "bfloat16"
    for extra in config.get("_filled", {}):
        *path, last = extra.split(".")
        at, src = d, config
        for p in path:
            at, src = at.setdefault(p, {}), src[p]
        at.setdefault(last, src[last])
    tensors = [{"name": n, "dtype": {"bfloat16": "BF16", "float32": "F32", "int64": "I64", "bool": "BOOL"}[str(t.dtype)[6:]], "shape": list(t.shape),
                "fill": f"randn:{zlib.crc32(n.encode()) % 1000}" if t.is_floating_point() else "zeros"} for n, t in sd.items()]
    return dict(id=f"good-{arch}", arch=arch, family="base", description="tiny, as transformers saves it", good=True, expect=[],
                files={"config.json": d}, shards={"model.safetensors": {"metadata": {"format": "pt"}, "tensors": tensors}})


def judged(arch, platform, layers):
    from _configs import fill
    from judge import verdict
    from materialize import materialize
    config, make = case(arch, layers)
    for _ in range(20):
        c = make()
        v = verdict(lambda d: (materialize(c, d), d)[1], platform, {}, 120)
        m = re.match(r"'(\w+)' object has no attribute '(\w+)'", v["message"] or "")
        if not m or v["stage"] == "load" or not fill(config, *m.groups()):
            break
    c["oracle"] = v
    if platform != "cpu":
        c["platform"] = platform
    return c


def one(arch, a):
    """In a child: the case in its file, or a reason."""
    from judge import save_case
    try:
        for layers in (2, 1, 0):
            c = judged(arch, a.platform, layers)
            v = c["oracle"]
            if v["class"] != "loads" or not all(LEFT_OUT.search(n) for n in v.get("unused", ())):
                return "{class} {stage} {error_type} {message}".format(**{**v, "message": " ".join((v["message"] or "").split())[:200]}) + \
                    "".join(f" {k}={json.dumps(v[k][:3])}" for k in ("damage", "unused") if v.get(k))
            size = len(json.dumps(c, separators=(",", ":")))
            if size <= LIMIT:
                save_case(os.path.join(a.out, c["id"] + ".json"), c)
                return f"ok {size} bytes, {len(c['shards']['model.safetensors']['tensors'])} tensors" + (f" unused={v['unused']}" if v.get("unused") else "")
        return f"loads, too large: {size} bytes"
    except Exception as e:              # noqa: BLE001
        return f"not made: {type(e).__name__}: {' '.join(str(e).split())[:200]}"


def in_child(work):
    """What `work()` says, from a process of its own: nothing of one architecture reaches the next."""
    r, w = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.close(r)
        os.write(w, work().encode()[:4000])
        os._exit(0)
    os.close(w)
    with os.fdopen(r) as f:
        said = f.read()
    os.waitpid(pid, 0)
    return said


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("archs", nargs="*")
    ap.add_argument("--platform", default="cpu")
    ap.add_argument("--out", default=os.path.join(HERE, "../../tests/conformance/pending"))
    ap.add_argument("--keep", action="store_true", help="leave out architectures that have a case there")
    a = ap.parse_args()
    boot(a.platform)
    import judge
    judge.preload()
    import transformers
    import vllm.model_executor.models.registry as registry
    inspect_here()
    os.makedirs(a.out, exist_ok=True)
    for arch in a.archs or sorted(x for x in registry._MULTIMODAL_MODELS if hasattr(transformers, x)):
        if a.keep and os.path.exists(f"{a.out}/good-{arch}.json"):
            continue
        print(arch, in_child(lambda: one(arch, a)) or "died", flush=True)


if __name__ == "__main__":
    main()
