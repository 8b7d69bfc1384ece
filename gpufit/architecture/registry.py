"""Which module knows which family, and the way from a config to an architecture."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace

from gpufit.architecture.config import Config
from gpufit.architecture.heads import with_head_of
from gpufit.architecture.record import Architecture
from gpufit.errors import UnreadableInputError

_MODULES: dict[str, tuple[str, ...]] = {
    "llama": (
        "llama",
        "mistral",
        "ministral",
        "ministral3",
        "granite",
        "seed_oss",
        "smollm3",
        "helium",
        "ernie4_5",
        "stablelm",
        "internlm3",
        "minicpm",
        "cwm",
    ),
    "qwen": ("qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "olmoe"),
    "qwen3_next": ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"),
    "gemma": ("gemma", "gemma2", "gemma3_text"),
    "olmo": ("olmo", "olmo2", "olmo3", "exaone4", "cohere", "cohere2"),
    "deepseek": (
        "deepseek",
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "kimi_k2",
        "glm_moe_dsa",
        "glm4_moe_lite",
        "mistral4",
        "minicpm3",
    ),
    "plain": ("arcee", "bitnet", "exaone", "granite_swa", "apertus", "baichuan"),
    "kimi_linear": ("kimi_linear",),
    "glm_vl": ("glm4v", "glm4v_moe"),
    "glm_next": ("glm5_next", "glm5_next_text"),
    "minicpm_v": ("minicpmv",),
    "mixtral": ("mixtral", "minimax", "minimax_m2", "phimoe"),
    "gpt_oss": ("gpt_oss",),
    "mimo": ("mimo_v2_flash",),
    "llama4": ("llama4", "llama4_text"),
    "mllama": ("mllama", "mllama_text_model"),
    "phi": ("phi", "phi-msft", "starcoder2", "nemotron"),
    "phi3": ("phi3", "phi3_v"),
    "gpt2": ("gpt2", "gpt_bigcode", "gpt_neo", "gptj", "codegen"),
    "falcon": ("falcon", "bloom", "gpt_neox", "mpt"),
    "opt": ("opt",),
    "gemma4": ("gemma4", "gemma4_text"),
    "nemotron_h": ("nemotron_h",),
    "nemotron_nas": ("nemotron-nas",),
    "glm": ("glm", "glm4", "chatglm", "qwen"),
    "whisper": ("whisper",),
    "bart": ("bart", "mbart", "pegasus", "marian"),
    "t5": ("t5", "mt5", "umt5"),
    "bert": ("bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "mpnet", "deberta-v2"),
    "modernbert": ("modernbert", "nomic_bert"),
    "qwen_vl": (
        "qwen2_vl",
        "qwen2_5_vl",
        "qwen3_vl",
        "qwen3_vl_moe",
        "qwen3_5",
        "qwen3_5_moe",
        "qwen3_omni_moe",
        "qwen2_5_omni",
    ),
    "kimi_vl": ("kimi_k25",),
    "qwen_audio": ("qwen2_audio", "voxtral"),
    "llava": (
        "llava",
        "llava_next",
        "llava_onevision",
        "gemma3",
        "mistral3",
        "paligemma",
        "internvl",
        "idefics3",
        "smolvlm",
    ),
    "deepseek_v4": ("deepseek_v4",),
    "mamba": ("mamba", "falcon_mamba", "mamba2"),
    "hybrid": ("jamba", "bamba", "falcon_h1", "granitemoehybrid"),
    "granite_moe": ("granitemoe", "granitemoeshared", "dbrx"),
    "griffin": ("recurrent_gemma", "lfm2", "lfm2_moe"),
    "glm_moe": ("glm4_moe", "dots1", "ernie4_5_moe", "hunyuan_v1_moe", "hunyuan_v1_dense"),
    "internlm": ("internlm2", "internvl_chat"),
    "clip": ("clip", "siglip"),
}
"""Module in `families` -> transformers' `model_type`s that it knows."""

FAMILIES: dict[str, str] = {family: module for module, families in _MODULES.items() for family in families}
"""transformers' `model_type` -> module in `families`."""

_CLASSES: dict[str, str] = {"Qwen3OmniMoeForConditionalGeneration": "qwen3_omni_moe"}
"""Classes whose configs have been published without a `model_type`."""

_ACTIVATION_KEYS = ("hidden_act", "activation_function", "hidden_activation", "dense_act_fn")

_DTYPES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "float64": "F64", "float8_e4m3fn": "F8_E4M3"}
"""torch's names of dtypes -> those of safetensors."""


def architecture_of(values: object, where: str) -> Architecture:
    """The architecture that a config, as JSON reads it, describes; `where` is what errors call it.

    Raises UnreadableInputError for a damaged config, and for a family that no rule here knows: it is never guessed.
    """
    if not isinstance(values, Mapping):
        raise UnreadableInputError(f"{where}: holds no object, so it is no config")
    config = Config(values, where)
    named = config.texts("architectures") or ()
    model_type = config.text("model_type") or next((_CLASSES[one] for one in named if one in _CLASSES), "")
    if not model_type:
        raise UnreadableInputError(f"{where}: names no model_type, so nobody can tell what model it is")
    built = build_family(config.with_values(model_type=model_type))
    built = with_head_of(built, named[0], config) if named else built
    named_dtype = config.text("dtype", "torch_dtype").removeprefix("torch.")
    if named_dtype not in ("", "auto", *_DTYPES):
        raise config.wrong("dtype" if config.has("dtype") else "torch_dtype", "a dtype that weights come in")
    dtype = _DTYPES.get(named_dtype) or _DTYPES.get(built.dtype, built.dtype)
    return replace(built, model_type=model_type, dtype=dtype, activation=_activation(config))


def _activation(config: Config) -> str:
    """The name of the MLP's activation, in the config or in its text model's; empty where neither has one."""
    text = config.section("text_config", "llm_config")
    found = (one.text(*_ACTIVATION_KEYS) for one in (config, text) if one is not None)
    return next((one for one in found if one), "")


def build_family(config: Config) -> Architecture:
    """The architecture of a config, or of a part of one, by its `model_type`."""
    model_type = config.text("model_type")
    module = FAMILIES.get(model_type)
    if model_type == "ministral3" and config.has("vision_config"):
        # Ministral 3's configs name the text model's type for the whole.
        module = "llava"
    if module is None:
        raise UnreadableInputError(
            f"{config.where}: gpufit has no shape rules for model_type {model_type!r}; run it on fake tensors instead: "
            "gpufit simulate"
        )
    built: Architecture = importlib.import_module(f"gpufit.architecture.families.{module}").build(config)
    return built
