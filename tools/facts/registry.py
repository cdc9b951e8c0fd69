"""Architectures and methods that vLLM knows: rules/facts/vllm/<version>/registry.json.

    python tools/facts/registry.py
"""
import ast
import inspect
import json
import re
import textwrap

import real
import where


def alone(cls):
    """Whether the constructor first of all asserts that there is a speculative config, as its source says: no config of its own helps a
    draft model that is served as the main one."""
    for c in inspect.getmro(cls):
        body = ast.parse(textwrap.dedent(inspect.getsource(c))).body[0].body if c.__module__.startswith("vllm.model_executor.models") else []
        init = next((f for f in body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
        if init is None:
            continue
        for statement in init.body:
            text = ast.unparse(statement)
            if re.match(r"assert (\w+\.)?(speculative_config|spec(_config)?) is not None", text):
                return True
            if re.match(r"super\(\).__init__\(\w", text):
                break       # the next class has the say
            if not re.match(r"(super\(\)|nn\.Module).__init__\((self)?\)|[\w.]+(: [\w| ]+)? = [\w.]+$|['\"]", text) or "draft" in text:
                return False
        else:
            return False
    return False


# `SpeculativeConfig.method` of a draft model, by its architecture; the first that matches. Models of other names need it said.
METHODS = [(r"Eagle3|Peagle|PEagle", "eagle3"), (r"DSpark", "dspark"), (r"DFlash|LiLiCorr|MuseGlimmerAssistant", "dflash"), (r"Eagle", "eagle"), (r"Medusa", "medusa"),
           (r"ExtractHiddenStates", "extract_hidden_states"), (r"MTP", "mtp")]


def drafter(arch, model):
    out = {"method": next(m for p, m in METHODS if re.search(p, arch))}
    try:
        if alone(model.load_model_cls()):
            out["alone"] = "AssertionError"
    except ImportError:     # it needs what only a GPU's wheel has
        pass
    return out


def table():
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
    from vllm.model_executor.models import registry as r
    # A multimodal class is one wherever else it is listed: its config nests.
    groups = [("multimodal", "MULTIMODAL"), ("text", "TEXT_GENERATION"), ("embedding", "EMBEDDING"), ("late-interaction", "LATE_INTERACTION"),
              ("reward", "REWARD"), ("token-classification", "TOKEN_CLASSIFICATION"), ("sequence-classification", "SEQUENCE_CLASSIFICATION"),
              ("speculative", "SPECULATIVE_DECODING"), ("transformers", "TRANSFORMERS_SUPPORTED"), ("transformers", "TRANSFORMERS_BACKEND")]
    group = {}
    for name, models in groups:
        for a in getattr(r, f"_{models}_MODELS", {}):
            group.setdefault(a, name)
    # A group that this tool does not know fails here.
    archs = {a: {"class": m.class_name, "group": group[a], **(drafter(a, m) if group[a] == "speculative" else {})} for a, m in r.ModelRegistry.models.items()}
    return dict(architectures=archs, removed=dict(r._PREVIOUSLY_SUPPORTED_MODELS), plugins=dict(getattr(r, "_OOT_SUPPORTED_MODELS", {})),
                quant_methods=[q for q in QUANTIZATION_METHODS if q != real.SPY["name"]])


def write(path, table):
    with open(path, "w") as f:
        f.write(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    real.start()        # classes of CUDA's wheel are imported
    write(f"{where.folder()}/registry.json", table())
