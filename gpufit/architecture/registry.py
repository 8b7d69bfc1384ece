"""Which module knows which family, and the way from a config to an architecture."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpufit.architecture.config import Config
from gpufit.architecture.record import Architecture
from gpufit.errors import UnreadableInputError

FAMILIES: dict[str, str] = {
    "llama": "llama",
}
"""transformers' `model_type` -> module in `families`."""

_DTYPES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "float64": "F64", "float8_e4m3fn": "F8_E4M3"}
"""torch's names of dtypes -> those of safetensors."""


def architecture_of(values: Mapping[str, Any], where: str) -> Architecture:
    """The architecture that a config describes; `where` is what errors call it.

    Raises UnreadableInputError for a damaged config, and for a family that no rule here knows: it is never guessed.
    """
    config = Config(values, where)
    model_type = config.text("model_type")
    if not model_type:
        raise UnreadableInputError(f"{where}: names no model_type, so nobody can tell what model it is")
    family = FAMILIES.get(model_type)
    if family is None:
        raise UnreadableInputError(
            f"{where}: gpufit has no shape rules for model_type {model_type!r}; run it on fake tensors instead: "
            "gpufit simulate"
        )
    built: Architecture = importlib.import_module(f"gpufit.architecture.families.{family}").build(config)
    names = config.items("architectures") or ()
    class_name = next((name for name in names if isinstance(name, str)), built.class_name)
    dtype = config.text("dtype", "torch_dtype", default="float32").removeprefix("torch.")
    return replace(
        built,
        model_type=model_type,
        class_name=class_name,
        dtype=_DTYPES.get(dtype, "F32") if built.dtype == "F32" else built.dtype,
    )
