"""Architectures and methods that vLLM knows: rules/facts/vllm/<version>/registry.json.

    python tools/facts/registry.py > rules/facts/vllm/0.32/registry.json
"""
import json

from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
from vllm.model_executor.models import registry as r

# A multimodal class is one wherever else it is listed: its config nests.
GROUPS = [("multimodal", r._MULTIMODAL_MODELS), ("text", r._TEXT_GENERATION_MODELS), ("embedding", r._EMBEDDING_MODELS),
          ("late-interaction", r._LATE_INTERACTION_MODELS), ("reward", r._REWARD_MODELS), ("token-classification", r._TOKEN_CLASSIFICATION_MODELS),
          ("sequence-classification", r._SEQUENCE_CLASSIFICATION_MODELS),
          ("speculative", r._SPECULATIVE_DECODING_MODELS), ("transformers", r._TRANSFORMERS_SUPPORTED_MODELS),
          ("transformers", r._TRANSFORMERS_BACKEND_MODELS)]
group = {}
for name, models in GROUPS:
    for a in models:
        group.setdefault(a, name)
archs = {a: {"class": m.class_name, "group": group[a]} for a, m in r.ModelRegistry.models.items()}
print(json.dumps(dict(architectures=archs, removed=dict(r._PREVIOUSLY_SUPPORTED_MODELS), plugins=dict(r._OOT_SUPPORTED_MODELS),
                      quant_methods=list(QUANTIZATION_METHODS)), indent=1))
