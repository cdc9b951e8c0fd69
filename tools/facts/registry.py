"""Architectures and methods that vLLM knows: rules/facts/vllm/<version>/registry.json.

    python tools/facts/registry.py
"""
import json

import where


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
    archs = {a: {"class": m.class_name, "group": group[a]} for a, m in r.ModelRegistry.models.items()}
    return dict(architectures=archs, removed=dict(r._PREVIOUSLY_SUPPORTED_MODELS), plugins=dict(getattr(r, "_OOT_SUPPORTED_MODELS", {})),
                quant_methods=list(QUANTIZATION_METHODS))


def write(path, table):
    with open(path, "w") as f:
        f.write(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    write(f"{where.folder()}/registry.json", table())
