"""Names, shapes and dtypes of a Hub checkpoint for an architecture, from transformers itself.

    python hfnames.py ARCH...                    one JSON line each: {arch, tensors: {name: [shape, dtype]}}, default config
    python hfnames.py --tiny ARCH...             the same for a tiny config
    python hfnames.py --make DIR ARCH...         write DIR/ARCH: a tiny random checkpoint (config.json, model.safetensors)
    python hfnames.py --check [--platform cuda:90] ARCH...   make it, load it with the real vLLM, report what stays unwritten
    --set text_config.tie_word_embeddings=true   changes the config first (repeatable)

save_pretrained's own steps are followed (tied weights left out, weight conversions reverted), so per-expert tensors
come out as on the Hub.
"""
import argparse
import json
import os
import re
import sys
import tempfile

from _oracle import boot, inspect_here
from _configs import config_dict, fill, tiny


def hf_model(arch, config):
    import torch
    import transformers
    cls = getattr(transformers, arch, None)
    if cls is None:
        raise LookupError("transformers has no such class")
    c = cls.config_class.from_dict({k: v for k, v in config.items() if k not in ("quantization_config", "_filled")})
    old = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device("meta"):
            return cls(c), c
    finally:
        torch.set_default_dtype(old)


def tensors(arch, config):
    """{name: meta tensor} as save_pretrained would write it, and the config object."""
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import PrefixChange, revert_weight_conversion
    from transformers.modeling_utils import remove_tied_weights_from_state_dict
    model, c = hf_model(arch, config)
    sd = model.state_dict()
    for k in list(sd):
        if any(re.search(p, k) for p in (model._keys_to_ignore_on_save or [])):
            del sd[k]
    sd = remove_tied_weights_from_state_dict(sd, model)
    # A model made from a config drops every PrefixChange on save, one loaded from the Hub keeps those that its
    # files needed: the prefixes of sub-models (vision_tower.vision_model) are on the Hub, so keep those.
    model._weight_conversions = [w for w in get_model_conversion_mapping(model, add_legacy=False)
                                 if not isinstance(w, PrefixChange) or w.scope_prefix] or None
    for w in model._weight_conversions or []:
        for op in getattr(w, "operations", []):
            if getattr(op, "check_dims", False):       # Qwen3-VL-MoE: transformers 5 saves its own layout, the Hub has
                op.check_dims = False                  # (and vLLM reads) the transposed one
    # A renaming that both a class and the model inside it have (Qwen2-Audio and those like it) is reverted twice.
    out = revert_weight_conversion(model, sd)
    return {re.sub(r"^language_model\.model\.model\.", "language_model.model.", n): t for n, t in out.items()}, c


def config(arch, small, edits=()):
    c = config_dict(arch)[1]
    if small:
        tiny(c)
    for edit in edits:
        key, _, value = edit.partition("=")
        *path, last = key.split(".")
        d = c
        for p in path:
            d = d.setdefault(p, {})
        d[last] = json.loads(value)
    return c


def make(arch, path, config):
    import torch
    from safetensors.torch import save_file
    sd, c = tensors(arch, config)
    os.makedirs(path, exist_ok=True)
    g = torch.Generator().manual_seed(0)
    out = {n: (torch.randn(t.shape, generator=g).mul_(0.02).to(t.dtype) if t.is_floating_point() else torch.zeros(t.shape, dtype=t.dtype))
           for n, t in sd.items()}
    save_file(out, path + "/model.safetensors", metadata={"format": "pt"})
    d = c.to_dict()
    d["architectures"], d["dtype"] = [arch], "bfloat16"
    json.dump(d, open(path + "/config.json", "w"), indent=1, default=str)
    return len(out)


def check(arch, config, platform):
    from judge import verdict
    for _ in range(20):
        with tempfile.TemporaryDirectory() as d:
            n = make(arch, d, config)
            v = verdict(lambda _: d, platform, {"dtype": "bfloat16"}, 120)
        m = re.match(r"'(\w+)' object has no attribute '(\w+)'", v["message"] or "")
        if not m or v["stage"] == "load" or not fill(config, *m.groups()):
            break
    v.update(arch=arch, checkpoint_tensors=n, config_filled=config.get("_filled", {}))
    return v


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("archs", nargs="+")
    ap.add_argument("--tiny", action="store_true")
    ap.add_argument("--make", metavar="DIR")
    ap.add_argument("--check", action="store_true")
    ap.add_argument("--platform", default="cuda:90")
    ap.add_argument("--set", action="append", default=[], metavar="KEY=JSON", help="change a config field (dotted path)")
    a = ap.parse_args()
    boot(a.platform if a.check else "cpu")
    if a.check:                       # imports shared by the children
        import judge
        import vllm.model_executor.models.qwen2_5_vl, vllm.model_executor.models.mixtral  # noqa: E401,F401
        inspect_here()
        judge.stand_ins()
    for arch in a.archs:
        sys.stdout.flush()
        if a.check:
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
                continue
        try:
            if a.check:
                out = check(arch, config(arch, True, a.set), a.platform)
            elif a.make:
                out = dict(arch=arch, dir=f"{a.make}/{arch}", checkpoint_tensors=make(arch, f"{a.make}/{arch}", config(arch, True, a.set)))
            else:
                sd, _ = tensors(arch, config(arch, a.tiny, a.set))
                out = dict(arch=arch, tensors={n: [list(t.shape), str(t.dtype)[6:]] for n, t in sd.items()})
        except Exception as e:
            out = {"arch": arch, "class": None, "stage": "make", "error_type": type(e).__name__, "message": str(e)[:1000]}
        print(json.dumps(out), flush=True)
        if a.check:
            os._exit(0)


if __name__ == "__main__":
    main()
