"""The switches of every family, set one way and the other on small models, against transformers' own tensors."""

import json
from typing import Any

import pytest
from model_variants import VARIANTS
from public_models import CONFIGS, built_on_meta, by_shape, tensors_of, tensors_of_model
from releases import needs_release_read

from gpufit.architecture.registry import FAMILIES, architecture_of

REMOTE = {
    "baichuan",
    "chatglm",
    "deepseek",
    "internlm2",
    "internvl_chat",
    "kimi_k2",
    "minicpm",
    "minicpmv",
    "nemotron-nas",
    "phi-msft",
    "phi3_v",
    "qwen",
}
"""Families whose code comes with the checkpoint, or whose config is another's under a name of its own."""


@needs_release_read
@pytest.mark.parametrize(
    ("family", "class_name", "settings"), VARIANTS, ids=[f"{row[1]}-{number}" for number, row in enumerate(VARIANTS)]
)
def test_switches_change_what_they_change_in_transformers(
    family: str, class_name: str, settings: dict[str, Any]
) -> None:
    import transformers

    config = transformers.AutoConfig.for_model(family, **settings)
    values = json.loads(json.dumps(config.to_dict())) | {"architectures": [class_name]}
    architecture = architecture_of(values, family)
    part = getattr(config, "thinker_config", config)
    ours, theirs = tensors_of(architecture), tensors_of_model(built_on_meta(part, class_name))
    if family == "kimi_k25":
        # transformers renames layers on their way in and does not find back.
        ours, theirs = by_shape(ours), by_shape(theirs)
    assert ours - theirs == {}
    assert theirs - ours == {}


def test_every_family_is_compared_with_transformers() -> None:
    compared = {row[0] for row in VARIANTS} | {
        values.get("model_type", "qwen3_omni_moe") for values in CONFIGS.values()
    }
    # MiniMax's first family stores computed tables as buffers in transformers, which its checkpoints do not hold.
    assert set(FAMILIES) - compared - REMOTE <= {"minimax", "gpt2", "qwen3_omni_moe", "mt5", "glm5_next_text"}
