#!/usr/bin/env python3
"""Write one good conformance case for each architecture that transformers does not have: names and shapes as the facts say, judged by the real vLLM.

    mkfacts.py [--platform cpu|cuda:N] [--out tests/conformance/cases] ARCH...

Fused modules are stored in parts, under the names before vLLM's mappers. A case is written if vLLM loads it and reads every tensor in it; else a line says what
happened. Where the model type is remote code, the folder has a config class of that name that keeps what config.json says, and the run trusts it.
"""
import argparse
import copy
import json
import os
import re
import sys
import traceback
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../facts")]
from _oracle import boot       # noqa: E402
from mkpending import fewest, in_child   # noqa: E402

LARGEST = 40_000
CODE = 'from transformers import {imports}\n\n\nclass {name}({parent}):\n    model_type = "{type}"\n{init}'
INIT = "\n    def __init__(self, {args}, **rest):\n{body}        super().__init__(**rest)\n"
# What every config class has, and no published file says of itself.
COMMON = ("transformers_version", "_name_or_path", "id2label", "label2id", "problem_type", "output_hidden_states", "output_attentions", "return_dict",
          "chunk_size_feed_forward", "is_encoder_decoder", "torch_dtype")
# Fewer than the tiny config's, so that a case stays small.
FEW = dict(num_experts=2, num_local_experts=2, n_routed_experts=2, moe_num_experts=2, num_experts_per_tok=1, moe_k=1, top_k_experts=1, vocab_size=128,
           intermediate_size=64, moe_intermediate_size=32, shared_expert_intermediate_size=32, moe_shared_expert_intermediate_size=32, ffn_hidden_size=64)
# Fields that these files have, and the config that stands in for them has not.
SET = {
    "ExaoneForCausalLM": {"num_layers": 2},
    "ColBERTJinaRobertaModel": {"colbert_dim": 32},
    "DeepseekV4ForCausalLM": {"num_attention_heads": 64, "o_groups": 16, "vocab_size": 128, "o_lora_rank": 16, "moe_intermediate_size": 128},      # fewer heads are padded
}


# Names of published files, where a mapper takes others too.
PUBLISHED = {
    "DotsOCRForCausalLM": [(".attn.qkv_proj.", ".attn.qkv."), (".attn.out_proj.", ".attn.proj.")],
}


def own_type(arch):
    """The model type of the architecture's own config class; none when that is remote code."""
    from _configs import borrowed, model_type_of
    from _remote import REMOTE
    from vllm.transformers_utils.config import _CONFIG_REGISTRY
    base = REMOTE.get(model_type_of(arch), {}).get("_base")
    if base in _CONFIG_REGISTRY:            # vLLM has the published class
        return base
    return None if borrowed(arch) else model_type_of(arch)


def stem(arch):
    return re.sub(r"(ForCausalLM|ForRewardModel|ForSequenceClassification|Model)$", "", arch)


def config(arch, layers):
    from _configs import config_dict, tiny, walk
    mt, c = config_dict(arch)
    tiny(c, max(layers, 1))
    if not layers:
        fewest(c)
    for d in walk(c):
        for k, v in FEW.items():
            if isinstance(d.get(k), int) and not isinstance(d[k], bool) and d[k] > v:
                d[k] = v
        for k, v in list(d.items()):
            if isinstance(k, str) and k.endswith(("_token_id", "token_index")) and isinstance(v, int) and v >= 128:
                d[k] = 7
    c.update(SET.get(arch, {}))
    for d in walk(c):
        for k in COMMON:
            d.pop(k, None)
    c["dtype"] = "bfloat16"
    return c


def stored(name, rows):
    """The name before a mapper's substitutions: the first that gives it."""
    for kind in ("prefix", "substr", "suffix"):
        for old, new in rows.get(kind) or []:
            if new and kind == "prefix" and name.startswith(new):
                return old + name[len(new):]
            if new and kind == "substr" and new in name:
                name = name.replace(new, old)
            if new and kind == "suffix" and name.endswith(new):
                return name[:-len(new)] + old
    return name


def taken_apart(nodes, path):
    """Whether a loader on the way puts parts into this fused module: others want it stored whole."""
    parts = path.split(".")
    for i in range(len(parts)):
        loader = (nodes.get(".".join(parts[:i])) or {}).get("loader")
        if loader and (loader["kind"] != "auto" or any(parts[-1] in row[1][0].strip(".").split(".") for row in (loader.get("mapper") or {}).get("stacked") or [])):
            return True
    return False


def tensors(cls, c):
    """[(name, shape, dtype)], in the order of the tree."""
    import plan
    nodes, ties = plan.tree(cls, c, quant=None)
    out = []

    def add(path, leaf, shape, dtype=None):
        name = f"{path}.{leaf}" if path else leaf
        parts = path.split(".")
        for i in range(len(parts), -1, -1):         # outer loaders have renamed before
            at = ".".join(parts[:i])
            head, loader = at + "." if at else "", (nodes.get(at) or {}).get("loader") or {}
            if name.startswith(head):
                name = head + stored(name[len(head):], loader.get("mapper") or {})
        for vllms, published in PUBLISHED.get(cls, []):
            name = name.replace(vllms, published)
        out.append((name, shape, {"float32": "F32", "int64": "I64", "int32": "I32"}.get(dtype, "BF16")))
    for path, n in nodes.items():
        if "same" in n:
            continue
        up, _, last = path.rpartition(".")
        if n["kind"] in ("qkv", "merged"):
            parts = n["parts"]
            if parts[0][0].startswith(last + ".") or len({p for p, _ in parts}) < len(parts) or not taken_apart(nodes, path):
                parts = [[last, sum(s for _, s in parts)]]
            for p, size in parts:
                add(f"{up}.{p}" if up else p, "weight", [size, n["in"]])
                if n["bias"]:
                    add(f"{up}.{p}" if up else p, "bias", [size])
        elif n["kind"] == "experts":
            for i in range(n["count"]):
                for p, shape in zip(n["names"], ([n["out"], n["in"]], [n["in"], n["out"]], [n["out"], n["in"]])):
                    if p:
                        add(f"{path}.{i}.{p}", "weight", shape)
        elif "out" in n and ties.get(path) is None:
            shape = [n["out"], n["in"]]
            add(path, "weight", [n["out"], 1, n["in"]] if n.get("unsqueezed") else shape)
            if n["bias"]:
                add(path, "bias", [n["out"]])
        for k in ("params", "buffers"):
            for leaf, (shape, dtype) in n[k].items():
                add(path, leaf, shape, dtype)
    return sorted(out)


def remote(arch, mt, c):
    """(name of the class, its code, what the code makes of the config): sub-configs become objects, as in src/vllm/remote.rs."""
    import plan
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from _mocks import is_sub
    from _remote import NAMES, RAW, REMOTE
    base = REMOTE.get(mt, {}).get("_base")
    name = NAMES.get(mt) or f"{stem(arch)}Config"
    parent = CONFIG_MAPPING[base].__name__ if base else "PretrainedConfig"
    value = copy.deepcopy(c)
    subs = {k: v.get("model_type") for k, v in c.items() if isinstance(v, dict) and is_sub(k, v) and k not in RAW.get(mt, ())}
    known = {k: t for k, t in subs.items() if t in CONFIG_MAPPING}
    body = "".join(f"        self.{k} = {f'AutoConfig.for_model(**({k} or dict(model_type={known[k]!r})))' if k in known else f'PretrainedConfig(**({k} or dict()))'}\n"
                   for k in subs).replace("'", '"')
    imports = ", ".join(sorted({parent} | ({"AutoConfig"} if known else set()) | ({"PretrainedConfig"} if set(subs) - set(known) else set())))
    code = CODE.format(imports=imports, name=name, parent=parent, type=mt, init=INIT.format(args=", ".join(f"{k}=None" for k in subs), body=body) if subs else "")
    if base:
        own = plan.resolve({**c, "model_type": base})
        value = {k: v for k, v in own.items() if k in c or k not in re.findall(r"\w+", code)}
    for k, v in value.items():
        if k.endswith("_config") and isinstance(v, dict) and plan.load("configs", v.get("model_type") or ""):
            value[k] = plan.resolve(v)
    if "llm_config" in value:
        value.setdefault("text_config", value["llm_config"])
    return name, code, value


def case(arch, c):
    import plan
    from vllm.model_executor.models.registry import ModelRegistry
    cls = ModelRegistry.models[arch].class_name
    mt = own_type(arch)
    files, args = {}, {}
    raw = {k: v for k, v in c.items() if k != "_filled"}
    if mt is None:
        from _configs import REMOTE_ARCHS
        t = REMOTE_ARCHS.get(arch) or stem(arch).lower()
        module = "configuration_" + re.sub(r"\W", "_", t)
        raw |= {"model_type": t}
        name, code, resolved = remote(arch, t, raw)
        raw |= {"auto_map": {"AutoConfig": f"{module}.{name}"}}
        files[f"{module}.py"] = code
        args = {"args": {"trust_remote_code": True}}
    else:
        raw["model_type"] = mt
        resolved = plan.resolve(raw)
    rows = [{"name": n, "dtype": t, "shape": s, "fill": f"randn:{zlib.crc32(n.encode()) % 2**31}" if t not in ("I64", "I32") else "zeros"} for n, s, t in tensors(cls, resolved)]
    return dict(id=f"good-{arch.lower()}", arch=arch, family="base", description="tiny, named as the facts say", good=True, expect=[], **args,
                files={"config.json": raw, **files}, shards={"model.safetensors": {"metadata": {"format": "pt"}, "tensors": rows}})


def read_by(arch):
    """Words of the class's facts."""
    import plan
    from vllm.model_executor.models.registry import ModelRegistry
    return set(re.findall(r"\w+", json.dumps(plan.load("classes", ModelRegistry.models[arch].class_name))))


def give(c, field):
    from _configs import FILL, TINY
    v = FILL[field]
    try:
        v = v(c) if callable(v) else v
    except KeyError:            # made of fields that only a sub-config has
        return
    for small in (TINY, FEW):
        if isinstance(v, int) and not isinstance(v, bool) and v > small.get(field, v):
            v = small[field]
    c[field] = v


def judged(arch, platform, layers):
    from _configs import FILL
    from judge import verdict
    from materialize import materialize
    c = config(arch, layers)
    for field in read_by(arch) & set(FILL) - set(c):
        give(c, field)
    for _ in range(30):
        made = case(arch, c)
        v = verdict(lambda d: (materialize(made, d), d)[1], platform, made.get("args", {}), 120)
        m = re.search(r"'\w+' object has no attribute '(\w+)'", v["message"] or "")
        if not m or v["stage"] == "load" or m.group(1) not in FILL or m.group(1) in c:
            break
        give(c, m.group(1))
    made["oracle"] = v
    if platform != "cpu":
        made["platform"] = platform
    return made


def one(arch, a):
    from judge import save_case
    try:
        for layers in (2, 1, 0):
            c = judged(arch, a.platform, layers)
            v = c["oracle"]
            if v["class"] != "loads" or v.get("unused"):
                save_case(os.path.join("/tmp", "bad-" + c["id"] + ".json"), c) if a.debug else None
                return "{class} {stage} {error_type} {message}".format(**{**v, "message": " ".join((v["message"] or "").split())[:300]}) + \
                    "".join(f" {k}={json.dumps(v[k][:4])}" for k in ("damage", "unused") if v.get(k))
            size = len(json.dumps(c, separators=(",", ":")))
            if size <= LARGEST:
                save_case(os.path.join(a.out, c["id"] + ".json"), c)
                return f"ok {size} bytes, {len(c['shards']['model.safetensors']['tensors'])} tensors"
        return f"loads, too large: {size} bytes"
    except Exception as e:              # noqa: BLE001
        if a.debug:
            traceback.print_exc()
        return f"not made: {type(e).__name__}: {' '.join(str(e).split())[:200]}"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("archs", nargs="+")
    ap.add_argument("--platform", default="cpu")
    ap.add_argument("--out", default=os.path.join(HERE, "../../tests/conformance/cases"))
    ap.add_argument("--debug", action="store_true", help="keep what vLLM does not take in /tmp")
    a = ap.parse_args()
    boot(a.platform)
    import judge
    judge.preload()
    import vllm.model_executor.models.registry as registry
    registry._LazyRegisteredModel.inspect_model_cls = lambda self: registry._ModelInfo.from_model_cls(self.load_model_cls())
    for arch in a.archs:
        print(arch, in_child(lambda: one(arch, a)) or "died", flush=True)


if __name__ == "__main__":
    main()
