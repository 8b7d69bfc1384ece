"""What every engine's estimate takes from a model's headers alike: its identity, and the dtype that it is loaded in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from gpufit.architecture.record import Architecture
from gpufit.errors import UsageError
from gpufit.profile.environment import ModelInfo
from gpufit.sources.estimate.request import ALIASES, DTYPES
from gpufit.sources.model_files.record import ModelHeaders, StoredTensor

TORCH_NAMES = {file: torch for torch, (file, _) in DTYPES.items()}
"""The files' names of dtypes that models are computed in -> torch's."""


def loaded_dtype(asked: str, headers: ModelHeaders, model: Architecture) -> str:
    """The dtype that weights are loaded in, by torch's name; for `auto` the checkpoint's own."""
    if asked != "auto":
        return ALIASES.get(asked, asked)
    if headers.format == "gguf":
        return "bfloat16"
    stored = next((one.dtype for one in headers.stored if one.dtype in TORCH_NAMES), None)
    if names_dtype(headers):
        if model.dtype == "F64":
            raise UsageError(f"{headers.name}: in float64, which no rule here computes in; name another with --dtype")
        return TORCH_NAMES.get(model.dtype, "bfloat16")
    if stored is not None:
        return TORCH_NAMES[stored]
    return "bfloat16" if model.generates else "float32"


def names_dtype(headers: ModelHeaders) -> bool:
    """Whether the config, or that of its text model, says what dtype the weights are in."""
    text = headers.config.get("text_config")
    sections = (headers.config, text if isinstance(text, Mapping) else {})
    return any(one.get(key) is not None for one in sections for key in ("dtype", "torch_dtype"))


def model_info(source: str, headers: ModelHeaders, model: Architecture) -> ModelInfo:
    """Which model it is; `source` is what the user named it by."""
    return ModelInfo(
        name=headers.name,
        source=source,
        fingerprint=headers_fingerprint(headers.config, headers.tensors),
        architecture=model.class_name,
        model_type=model.model_type,
        parameters=model.parameters,
        generates=model.generates,
        decodes_apart=model.decodes_apart,
        position_limit=model.position_limit,
        sliding_window=model.sliding_window,
        revision=headers.revision,
    )


def headers_fingerprint(config: Mapping[str, Any], tensors: Iterable[StoredTensor]) -> str:
    """SHA-256 over the config and every tensor's name, dtype and shape: what an estimate is made from."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
    for tensor in tensors:
        digest.update(f"{tensor.name}\0{tensor.dtype}\0{tensor.shape}\0".encode())
    return digest.hexdigest()
