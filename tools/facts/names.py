"""Names that transformers and vLLM's config parser know: rules/facts/vllm/<version>/names.json.

    python tools/facts/names.py

model_types: every model type that does not end in "does not recognize this architecture".
classes: model classes of transformers (they may run through vLLM's Transformers backend).
incompatible: those of them that vLLM has no class of its own for, and the backend does not take.
own: model types whose config class vLLM chooses, whatever `auto_map` says; by_architecture: the model type where config.json names none.
base: the architecture that stands in when config.json names none (model type -> class).
causal: the same for the language model inside a wrapper (`VllmConfig.with_hf_config`).
"""
import registry
import where


def incompatible(name):
    """Whether `_try_resolve_transformers` finds a class and does not take it."""
    import transformers
    from vllm.model_executor.models.registry import ModelRegistry
    if name in ModelRegistry.models:
        return False
    cls = getattr(transformers, name, None)
    return isinstance(cls, type) and issubclass(cls, transformers.PreTrainedModel) and not (cls.is_backend_compatible() or cls._can_set_attn_implementation())


def table():
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
    from transformers.models.auto import modeling_auto
    from vllm.transformers_utils import config
    by_architecture = getattr(config, "_ARCHITECTURE_TO_MODEL_TYPE", {})        # 0.30 has none
    types = sorted(set(CONFIG_MAPPING_NAMES) | set(config._CONFIG_REGISTRY))
    base = {k: v if isinstance(v, str) else v[0] for k, v in sorted(modeling_auto.MODEL_MAPPING_NAMES.items())}
    causal = dict(sorted(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items()))
    classes = sorted({c for k, v in vars(modeling_auto).items() if k.endswith('_MAPPING_NAMES') for n in v.values()
                      for c in ((n,) if isinstance(n, str) else n) if isinstance(c, str)})
    own = sorted({*config._CONFIG_REGISTRY, *by_architecture.values()})
    return dict(model_types=types, base=base, causal=causal, classes=classes, incompatible=[c for c in classes if incompatible(c)], own=own,
                by_architecture=by_architecture)


if __name__ == "__main__":
    registry.write(f"{where.folder()}/names.json", table())
