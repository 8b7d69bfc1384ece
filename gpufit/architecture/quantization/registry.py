"""Which module knows which method of quantisation, and the way from a model's config to its method."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, cast

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.method import Method
from gpufit.errors import UnreadableInputError, UsageError

METHODS: dict[str, tuple[str, str]] = {
    "gptq": ("gptq", "of_config"),
    "auto-round": ("gptq", "of_auto_round"),
    "awq": ("awq", "of_config"),
    "bitsandbytes": ("bitsandbytes", "of_config"),
    "fp8": ("fp8", "of_config"),
    "mxfp8": ("fp8", "of_config"),
    "fbgemm_fp8": ("fp8", "of_fbgemm"),
    "mxfp4": ("mxfp4", "of_config"),
    "modelopt": ("modelopt", "of_config"),
    "modelopt_fp4": ("modelopt", "of_config"),
    "torchao": ("weight_only", "of_torchao"),
    "quanto": ("weight_only", "of_quanto"),
    "hqq": ("weight_only", "of_hqq"),
    "eetq": ("weight_only", "of_eetq"),
}
"""`quant_method` of a config -> module here and the function that reads the rest; compressed-tensors is apart."""

_COMPRESSED_TENSORS = "compressed-tensors"
_GGUF = "gguf"

NAMED: dict[str, Mapping[str, Any]] = {
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 128},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 128},
    "fp8": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "fbgemm_fp8": {"quant_method": "fbgemm_fp8"},
    "compressed-tensors-fp8": {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {
            "group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}
        },
        "ignore": ["lm_head"],
    },
    "mxfp4": {"quant_method": "mxfp4"},
    "bitsandbytes-nf4": {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
    "bitsandbytes-fp4": {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "fp4"},
    "bitsandbytes-int8": {"quant_method": "bitsandbytes", "load_in_8bit": True},
    "torchao-int8wo": {"quant_method": "torchao", "quant_type": "Int8WeightOnlyConfig"},
    "torchao-float8wo": {"quant_method": "torchao", "quant_type": "Float8WeightOnlyConfig"},
    "torchao-int4wo": {"quant_method": "torchao", "quant_type": "Int4WeightOnlyConfig"},
    "quanto-int8": {"quant_method": "quanto", "weights": "int8"},
    "quanto-int4": {"quant_method": "quanto", "weights": "int4"},
    "hqq-int4": {"quant_method": "hqq", "nbits": 4, "group_size": 64},
}
"""What can be asked for on the command line, with the method's usual settings.

compressed-tensors-fp8 is llm-compressor's FP8_DYNAMIC, with which vLLM's docs make FP8 checkpoints:
https://docs.vllm.ai/en/stable/features/quantization/llm_compressor/fp8/
"""

CHECKPOINT = "QUANTISED_CHECKPOINT"
"""What stands in a command for a model quantised beforehand, wherever it will lie."""

_ALSO = {
    "bitsandbytes": "bitsandbytes-nf4",
    "bitsandbytes-4bit": "bitsandbytes-nf4",
    "bitsandbytes-8bit": "bitsandbytes-int8",
    "nf4": "bitsandbytes-nf4",
    "int8": "bitsandbytes-int8",
}
"""Other names that people use for them."""


def declared(values: Mapping[str, Any], where: str) -> Config | None:
    """What a model's config says of its quantisation; None where it says nothing. Raises UnreadableInputError."""
    config = Config(values, where)
    text = config.section("text_config", "llm_config")
    for one in (config, text):
        found = one.section("quantization_config", "compression_config") if one is not None else None
        if found is not None:
            # DeepSeek V4 names the experts' format beside the section, not in it.
            outer = {"expert_dtype": config.values["expert_dtype"]} if config.has("expert_dtype") else {}
            return Config({**outer, **found.values}, found.where)
    return None


def method_name(config: Config) -> str:
    """The `quant_method` that a quantisation config names, or implies. Raises UnreadableInputError."""
    name = config.text("quant_method").lower().replace("auto_round", "auto-round").replace("intel/", "")
    if name in ("bitsandbytes_4bit", "bitsandbytes_8bit"):
        return "bitsandbytes"
    if name:
        return name
    if config.has("load_in_4bit", "load_in_8bit"):
        return "bitsandbytes"
    if config.has("quant_algo"):
        return "modelopt"
    if config.has("config_groups"):
        return _COMPRESSED_TENSORS
    raise UnreadableInputError(f"{config.where}: names no quant_method")


def method_of(config: Config | None, dtype: str) -> Method | None:
    """The method that a quantisation config describes, for a model of `dtype`; None for none, and for GGUF's blocks.

    Raises UnreadableInputError for a damaged config, and for a method that no rule here knows: it is never guessed.
    """
    if config is None:
        return None
    name = method_name(config)
    if name == _GGUF:
        return None
    if name == _COMPRESSED_TENSORS:
        from gpufit.architecture.quantization import compressed_tensors

        return compressed_tensors.of_config(config, dtype)
    if name == "auto-round" and "awq" in config.text("packing_format"):
        name = "awq"
    if name not in METHODS:
        raise UnreadableInputError(
            f"{config.where}: gpufit does not know the sizes of quantisation {name!a}; it knows "
            f"{', '.join(sorted((*METHODS, _COMPRESSED_TENSORS)))}"
        )
    module, function = METHODS[name]
    read = getattr(importlib.import_module(f"gpufit.architecture.quantization.{module}"), function)
    return cast(Method, read(config))


def full_name(name: str) -> str:
    """The name in `NAMED` that a name on the command line means. Raises UsageError for an unknown one."""
    found = _ALSO.get(name, name)
    if found not in NAMED:
        raise UsageError(f"--quantization {name}: not a name that is known here; use one of {', '.join(NAMED)}")
    return found


def named(name: str) -> Config:
    """The quantisation config that a name on the command line stands for. Raises UsageError for an unknown one."""
    return Config(NAMED[full_name(name)], f"--quantization {name}")


def at_load(name: str, found: Config | None, model: str) -> Config:
    """The quantisation to apply to a model that is asked for by name, where its own config says `found`.

    A checkpoint of the same method keeps its own settings. Raises UsageError for one that is quantised otherwise.
    """
    asked = named(name)
    if found is None:
        return asked
    if method_name(found) != method_name(asked):
        raise UsageError(
            f"--quantization {name}: {model} is quantised already ({method_name(found)}); leave the option out"
        )
    return found
