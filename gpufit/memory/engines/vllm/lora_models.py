"""Which models take adapters, by the classes that vLLM runs them with, and which of them outside their linear layers.

From `SupportsLoRA`, `embedding_modules` and `is_3d_moe_weight` in vllm/model_executor/models of the releases 0.8.0,
0.8.5, 0.9.2, 0.10.2, 0.11.0, 0.11.2, 0.12.0, 0.14.0, 0.17.0, 0.20.0 and 0.29.0. Where one of them has a thing and the
one before has not, the releases between are taken to have it: that refuses nothing that may run, and counts no less.
"""

from __future__ import annotations

import re

from gpufit.memory.engines.base import Version

Release = tuple[int, int, int]

_HEAD = re.compile(r"(For[A-Z]\w*|LMHeadModel|ChatModel|Model)$")

_NEVER = frozenset(
    {
        "Bert",
        "Bloom",
        "CLIP",
        "Dbrx",
        "Falcon",
        "FalconMamba",
        "GPT2",
        "GPTJ",
        "GPTNeoX",
        "KimiK25",
        "KimiLinear",
        "LlavaOnevision",
        "MPT",
        "Mamba",
        "Mamba2",
        "MiMoV2Flash",
        "MiniMax",
        "Mllama",
        "ModernBert",
        "Mpt",
        "NomicBert",
        "Phi3V",
        "Qwen2Audio",
        "Roberta",
        "Siglip",
        "StableLm",
        "Starcoder2",
        "XLMRoberta",
    }
)
"""Families without in all of them."""

_NOT_YET: dict[str, Release] = {
    "Deepseek": (0, 9, 2),
    "DeepseekV2": (0, 9, 2),
    "DeepseekV3": (0, 9, 2),
    "Dots1": (0, 9, 2),
    "Ernie4_5_Moe": (0, 9, 2),
    "GptOss": (0, 11, 0),
    "HunYuanMoEV1": (0, 9, 2),
    "InternVL": (0, 8, 5),
    "Llama4": (0, 11, 0),
    "Llava": (0, 12, 0),
    "LlavaNext": (0, 20, 0),
    "MiniMaxM2": (0, 14, 0),
    "Mistral3": (0, 8, 5),
    "OPT": (0, 11, 0),
    "Olmo": (0, 9, 2),
    "Olmo2": (0, 9, 2),
    "Olmoe": (0, 11, 0),
    "PaliGemma": (0, 12, 0),
    "Qwen2Moe": (0, 9, 2),
    "Qwen2_5Omni": (0, 9, 2),
    "Qwen3Moe": (0, 9, 2),
    "Qwen3OmniMoe": (0, 20, 0),
}
"""Family -> the last release that was seen without."""

_EMBEDDINGS_AND_HEAD = frozenset(
    {
        "Apertus",
        "Bamba",
        "Cwm",
        "DeciLM",
        "Ernie4_5",
        "Exaone",
        "Exaone4",
        "FalconH1",
        "GPTBigCode",
        "Glm",
        "Granite",
        "GraniteMoe",
        "GraniteMoeHybrid",
        "GraniteMoeShared",
        "GraniteSWA",
        "InternLM3",
        "Jamba",
        "Lfm2",
        "Lfm2Moe",
        "Llama",
        "Llama4",
        "MiniCPM",
        "MiniCPM3",
        "Mistral",
        "Mixtral",
        "Nemotron",
        "NemotronH",
        "Phi3",
        "SmolLM3",
    }
)
"""Families whose adapters may change embeddings and head, too."""
_SINCE: dict[str, Release] = {
    "Llava": (0, 12, 0),
    "Qwen3": (0, 14, 1),
    "Qwen3Moe": (0, 14, 1),
    "Qwen3VL": (0, 14, 1),
    "Qwen3VLMoe": (0, 14, 1),
    "Qwen3_5": (0, 20, 1),
    "Qwen3_5Moe": (0, 20, 1),
}
"""Families that joined them, and from which release on (of models that see, by their language model's class)."""
_UNTIL: dict[str, Release] = {"GPTBigCode": (0, 9, 2), "Mistral": (0, 17, 0), "SmolLM3": (0, 11, 2)}
"""Families that left them, and from which release on."""
_EMBEDDINGS_ALONE = frozenset({"Cohere", "Cohere2"})
_ONE_MODULE_WHERE_TIED = frozenset({"Qwen3"})
"""Families whose tied head is the module of the embeddings itself, which gets a second set of buffers so."""

_GATE_AND_UP_AT_ONCE: dict[str, Release] = {
    "GptOss": (0, 11, 3),
    "Qwen3OmniMoe": (0, 20, 1),
    "Qwen3VLMoe": (0, 11, 3),
    "Qwen3_5Moe": (0, 17, 1),
}
"""Family -> since which release its experts have one pair for gate and up together, not one for each."""


def stem_of(class_name: str) -> str:
    """A class without its head, which decides nothing here: `Qwen3` of `Qwen3ForCausalLM`."""
    return _HEAD.sub("", class_name)


def takes_adapters(class_name: str, version: Version) -> bool:
    """Whether vLLM runs such a model with `--enable-lora`; families that nothing is known of are taken to."""
    stem = stem_of(class_name)
    return stem not in _NEVER and (stem not in _NOT_YET or not _up_to(version, _NOT_YET[stem]))


def adapts_embeddings(class_name: str, version: Version) -> bool:
    """Whether the embeddings get buffers."""
    return stem_of(class_name) in _EMBEDDINGS_ALONE or adapts_head(class_name, version)


def adapts_head(class_name: str, version: Version) -> bool:
    """Whether the head (vLLM's logits processor) gets buffers."""
    stem = stem_of(class_name)
    if stem in _SINCE:
        return version.at_least(*_SINCE[stem])
    return stem in _EMBEDDINGS_AND_HEAD and (stem not in _UNTIL or not version.at_least(*_UNTIL[stem]))


def adapts_embeddings_twice(class_name: str) -> bool:
    """Whether a tied head gets the embeddings' buffers once more."""
    return stem_of(class_name) in _ONE_MODULE_WHERE_TIED


def pairs_gate_and_up(class_name: str, version: Version) -> bool:
    """Whether the gate and up projections of its experts have one pair together."""
    since = _GATE_AND_UP_AT_ONCE.get(stem_of(class_name))
    return since is not None and version.at_least(*since)


def _up_to(version: Version, last: Release) -> bool:
    major, minor, patch = last
    return not version.at_least(major, minor, patch + 1)
