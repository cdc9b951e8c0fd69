"""Architectures and methods that vLLM knows: rules/facts/vllm/<version>/registry.json.

    python tools/facts/registry.py > rules/facts/vllm/0.32/registry.json
"""
import ast
import inspect
import json
import re
import textwrap

import real

real.start()        # classes of CUDA's wheel are imported

from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS     # noqa: E402
from vllm.model_executor.models import registry as r        # noqa: E402

# A multimodal class is one wherever else it is listed: its config nests.
GROUPS = [("multimodal", r._MULTIMODAL_MODELS), ("text", r._TEXT_GENERATION_MODELS), ("embedding", r._EMBEDDING_MODELS),
          ("late-interaction", r._LATE_INTERACTION_MODELS), ("reward", r._REWARD_MODELS), ("token-classification", r._TOKEN_CLASSIFICATION_MODELS),
          ("sequence-classification", r._SEQUENCE_CLASSIFICATION_MODELS),
          ("speculative", r._SPECULATIVE_DECODING_MODELS), ("transformers", r._TRANSFORMERS_SUPPORTED_MODELS),
          ("transformers", r._TRANSFORMERS_BACKEND_MODELS)]


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
    if alone(model.load_model_cls()):
        out["alone"] = "AssertionError"
    return out


group = {}
for name, models in GROUPS:
    for a in models:
        group.setdefault(a, name)
archs = {a: {"class": m.class_name, "group": group[a], **(drafter(a, m) if group[a] == "speculative" else {})} for a, m in r.ModelRegistry.models.items()}
print(json.dumps(dict(architectures=archs, removed=dict(r._PREVIOUSLY_SUPPORTED_MODELS), plugins=dict(r._OOT_SUPPORTED_MODELS),
                      quant_methods=[q for q in QUANTIZATION_METHODS if q != real.SPY["name"]]), indent=1))
