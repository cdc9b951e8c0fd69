"""What a class is beyond its tree, into its class file: `pooling`, `base`, `listed`, `foreign`.

    python tools/facts/traits.py [ARCH...]

`pooling`: vLLM's own pooling model, which no adapter changes. `base`: neither that nor one that generates text. `listed`: its loader makes a list of all tensors first.

`foreign`: whoever cuts the towers off and leaves `architectures` as it was gives a wrapper the config of a language model. Its constructor then asks for an
attribute that such a config lacks, or its processing info for its own class. Which one, the real vLLM tells here: each wrapper gets the configs of
some language models, and the file says what they all failed on (`reads`; `early`: before the constructor), or what class was expected and which model types have it (`expects`).
"""
import json
import logging
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../oracle"))
SIZES = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=256, head_dim=16, max_position_embeddings=128)
OTHERS = ("qwen2", "llama", "gemma3_text", "qwen3_moe", "mistral")
LACKS = re.compile(r"'(\w+)' object has no attribute '(\w+)'$")
EXPECTED = re.compile(r"Invalid type of HuggingFace config\. Expected type: <class '([\w.]+)'>, but found type: <class '[\w.]+'>$")


def main():
    from _oracle import boot, inspect_here
    boot("cpu")
    logging.disable(logging.ERROR)
    inspect_here()
    import extract
    import where
    from plan import load
    from vllm.model_executor.models.registry import ModelRegistry
    seen = set()
    for arch in sys.argv[1:] or ModelRegistry.models:
        cls = extract.file_of(arch)
        if cls in seen or load("classes", cls) is None:
            continue
        seen.add(cls)
        own(cls, ModelRegistry.models[arch])
        if not extract.arch_is_wrapper(arch):
            continue
        said = [raised(arch, t) for t in OTHERS]
        fact = of(said)
        print(cls, json.dumps(fact or [f"{stage}: {text[:150]}" for stage, text in said]), flush=True)
        put(cls, "foreign", fact)


def own(cls, model):
    """What the Python class says."""
    import inspect
    from vllm.model_executor.models.interfaces_base import is_pooling_model, is_text_generation_model
    try:
        c = model.load_model_cls()
        source = inspect.getsource(c.load_weights)
        helpers = re.findall(r"self\.(_load\w+)\(", source)
        listed = any("list(weights)" in x for x in [source, *(inspect.getsource(getattr(c, h)) for h in helpers)])
    except Exception as e:      # noqa: BLE001  a package that is not here
        print(f"{cls}: {type(e).__name__}")
        return
    put(cls, "pooling", is_pooling_model(c) or None)
    put(cls, "base", not (is_pooling_model(c) or is_text_generation_model(c)) or None)
    put(cls, "listed", listed or None)


def put(cls, key, fact):
    """The fact into the file of a class, in front of the tree; some files are kept by hand, and stay as they are."""
    import where
    path = where.folder(f"classes/{cls}.json")
    if not os.path.exists(path):        # another release's, which has to say the same
        return
    with open(path) as f:
        lines = [x for x in f if not x.startswith(f' "{key}":')]
    if fact:
        at = next(i for i, x in enumerate(lines) if x.startswith(' "tree":'))
        lines.insert(at, f' "{key}": {json.dumps(fact)},\n')
    with open(path, "w") as f:
        f.writelines(lines)


def of(said):
    """What all of them failed on; some wrappers want a tokenizer first, which there is none of here."""
    said = [(s, t) for s, t in said if "skip_tokenizer_init" not in t]
    if len(said) < 2:
        return None
    stages = {s for s, _ in said}
    lacks, expected = ({m[i] if m else None for m in (pattern.match(t) for _, t in said)} for pattern, i in ((LACKS, 2), (EXPECTED, 1)))
    if len(stages) > 1:
        return None
    if len(lacks) == 1 and None not in lacks:
        return {"reads": lacks.pop(), **({"early": True} if stages == {"config"} else {})}
    if len(expected) == 1 and None not in expected:
        name = expected.pop()
        return {"expects": name, "types": types_of(name)}
    return None


def types_of(name):
    """Model types whose class is this one or made of it."""
    import importlib
    import where
    from configs import class_of
    wanted, out = getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2]), []
    base = where.base(where.folder())
    folders = [where.folder("configs"), *([where.folder("configs", base["base"])] if base else [])]
    for file in sorted({f for folder in folders for f in os.listdir(folder)}):
        try:
            c = class_of(file.removesuffix(".json"))
        except Exception:       # noqa: BLE001  a class of another release
            continue
        if issubclass(c, wanted):
            out.append(file.removesuffix(".json"))
    return out


def raised(arch, model_type):
    """(stage, text of the exception) for the config of a language model."""
    import torch
    from _configs import write_dir
    from _oracle import engine_config, parallel_groups
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader.utils import initialize_model
    with tempfile.TemporaryDirectory() as d:
        config = dict(SIZES, model_type=model_type, architectures=[arch])
        extra = write_dir(d, arch, config)
        with open(f"{d}/config.json", "w") as o:       # nothing that the wrapper would like to have
            json.dump(config, o)
        stage = "config"
        try:
            vc = engine_config(d, dtype="bfloat16", load_format="dummy", **extra)
            parallel_groups()
            stage = "init"
            with set_current_vllm_config(vc), torch.device("meta"):
                initialize_model(vllm_config=vc)
        except Exception as e:      # noqa: BLE001  that is what we want to know
            return stage, f"{e}"
    return "none", ""


if __name__ == "__main__":
    main()
