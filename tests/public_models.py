"""Public models' configs and counts, and the same models as transformers builds them, without memory.

`facts/configs.json` holds what shapes memory in the configs of public models, one a line, each with the file it was
read from; `facts/published_counts.json` how many elements their publishers' checkpoints hold.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpufit.architecture.record import Architecture, Component

FACTS = Path(__file__).parent / "facts"
CONFIGS: dict[str, dict[str, Any]] = {
    row["name"]: row["config"] for row in json.loads((FACTS / "configs.json").read_text(encoding="utf-8"))
}
COUNTS: dict[str, int] = {
    row["name"]: row["stored_elements"]
    for row in json.loads((FACTS / "published_counts.json").read_text(encoding="utf-8"))
}

Tensors = Counter[tuple[str, tuple[int, ...]]]
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)|^\d+(?=\.)|(?<=\.)\d+$")
_SAME_WITHOUT_NAME = {"kimi_k2": "deepseek_v3"}
_EXPERT_KEYS = ("num_experts", "n_routed_experts", "num_local_experts")


def fewer_experts(values: Mapping[str, Any], most: int = 8) -> dict[str, Any]:
    """The same config with no more than a few experts: all are alike, and thousands of tensors are slow to compare."""
    found = {key: fewer_experts(one, most) if isinstance(one, dict) else one for key, one in values.items()}
    if any(isinstance(found.get(key), int) for key in _EXPERT_KEYS):
        found |= {key: min(found[key], most) for key in _EXPERT_KEYS if isinstance(found.get(key), int)}
        found |= {key: 2 for key in ("num_experts_per_tok", "top_k_experts") if isinstance(found.get(key), int)}
        found |= {key: 1 for key in ("n_group", "topk_group") if isinstance(found.get(key), int)}
    return found


def config_of(values: Mapping[str, Any]) -> Any:
    """transformers' config of these values, without quantisation."""
    import transformers

    left = dict(values)
    family = left.pop("model_type", None)
    for key in ("quantization_config", "architectures", "transformers_version"):
        left.pop(key, None)
    if family == "ministral3" and "vision_config" in left:
        family = "mistral3"
    if family == "phi-msft":
        renamed = {"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads"}
        left = {renamed[key]: one for key, one in left.items() if key in renamed} | {
            "vocab_size": left["vocab_size"],
            "tie_word_embeddings": left["tie_word_embeddings"],
            "intermediate_size": 4 * left["n_embd"],
        }
        family = "phi"
    if family is None:
        return transformers.Qwen3OmniMoeConfig(**left).thinker_config
    return transformers.AutoConfig.for_model(_SAME_WITHOUT_NAME.get(family, family), **left)


def built_on_meta(config: Any, class_name: str) -> Any:
    """The model on torch's meta device: shapes alone."""
    import torch
    import transformers

    if not hasattr(config, "tie_word_embeddings"):
        # Some configs of nested models have no such key, yet their classes read it when they tie weights.
        config.tie_word_embeddings = False
    # Of an Omni the thinker alone is told, which has a class of its own.
    name = re.sub("Omni(Moe)?For", r"Omni\1ThinkerFor", class_name)
    with torch.device("meta"):
        return getattr(transformers, name)._from_config(config, dtype=torch.bfloat16)


def tensors_of_model(model: Any) -> Tensors:
    """Names and shapes of a model's checkpoint, as transformers would publish it: tied weights once, experts apart."""
    from transformers.core_model_loading import revert_weight_conversion

    parameters = dict(model.named_parameters(remove_duplicate=False))
    tied = getattr(model, "all_tied_weights_keys", None) or {}
    seen: set[int] = set()
    kept: dict[str, Any] = {}
    for name, tensor in model.state_dict().items():
        identity = id(parameters.get(name, tensor))
        if name in tied or identity in seen:
            continue
        seen.add(identity)
        kept[name] = tensor
    published = revert_weight_conversion(model, kept)
    return _counted((name, tuple(tensor.shape), 1) for name, tensor in published.items())


def tensors_of(architecture: Architecture) -> Tensors:
    """Names and shapes of an architecture, without what transformers leaves unloaded and recomputes."""
    return _counted(
        (one.name.replace("{layer}", "0").replace("{expert}", "0"), one.shape, one.copies)
        for one in architecture.weights
        if one.component is not Component.PREDICTOR and not one.name.endswith("inv_freq")
    )


def by_shape(tensors: Tensors) -> Tensors:
    """The same tensors without their names, where a checkpoint's are not those that transformers would write."""
    found: Tensors = Counter()
    for (_, shape), copies in tensors.items():
        found["", shape] += copies
    return found


def _counted(rows: Any) -> Tensors:
    found: Tensors = Counter()
    for name, shape, copies in rows:
        key = re.sub(r"^thinker\.", "", _NUMBER.sub("#", name))
        # Published towers keep CLIP's and SigLIP's names behind `vision_model.`, which transformers 5 no longer writes.
        key = key.replace("vision_tower.vision_model.", "vision_tower.")
        # Kimi Linear's checkpoints name a dense layer's MLP apart, which transformers reads as one of the mixture's.
        key = re.sub(r"block_sparse_moe\.(gate|up|down)_proj", r"mlp.\1_proj", key)
        if ".experts." in key and len(shape) == 3:
            # Stacked experts: some checkpoints have inputs before outputs, and transformers turns them as it loads.
            shape = (shape[0], *sorted(shape[1:]))
        found[(key, shape)] += copies
    return found
