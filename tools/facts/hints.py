"""What the source of a class says that the search does not find by itself. Nothing here is believed: an expression gets into a class file
only where it explains what was built, in every sample and in new configs."""

import random


def indices(rng: random.Random, d):
    """Indices of layers as a text, some of them beyond the last."""
    n = d.get("num_hidden_layers") or 4
    return ",".join(str(i) for i in sorted(rng.sample(range(n + 2), rng.randint(1, n)))) if rng.random() < .8 else None


# Class → expressions over its config (and `layer`), tried beside the fields.
EXPRESSIONS = {
    "Step3TextForCausalLM": ["layer in (ints(moe_layers_enum) if moe_layers_enum != null else range(1, num_hidden_layers, 1))"],
    "Step3VLForConditionalGeneration": ["layer in (ints(text_config.moe_layers_enum) if text_config.moe_layers_enum != null else "
                                        "range(1, text_config.num_hidden_layers, 1))"],
    # Text models.
    # Embedding, ranking.
    # Multimodal, A to K.
    # Multimodal, L to Z.
}

# Model type → field → value, a function of a random generator and the config so far: fields whose name does not tell what they may hold.
VALUES = {
    "step3_text": {"moe_layers_enum": indices},
    # Text models.
    # Embedding, ranking.
    # Multimodal, A to K.
    # Multimodal, L to Z.
}
