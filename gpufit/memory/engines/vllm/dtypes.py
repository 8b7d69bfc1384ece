"""Dtypes as vLLM takes them: which 16-bit one it runs a model in (bfloat16 is up to the card, float16 up to the model),
and torch's names of what it keeps."""

from __future__ import annotations

from gpufit.memory.engines.vllm.settings import Device

BFLOAT16_FROM = 8.0
"""vLLM refuses bfloat16 below this compute capability (vllm/platforms/cuda.py); half takes as many bytes."""

_UNSTABLE_IN_FLOAT16 = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4", "plamo2"})
"""Model types that vLLM refuses in float16, for numerical instability: _FLOAT16_NOT_SUPPORTED_MODELS in
https://github.com/vllm-project/vllm/blob/main/vllm/config/model.py."""

_TORCH_NAMES = {
    "BF16": "bfloat16",
    "F16": "float16",
    "F32": "float32",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "U8": "uint8",
    "I8": "int8",
    "I32": "int32",
    "I64": "int64",
}


def torch_name(dtype: str) -> str:
    """Torch's name of a dtype that safetensors files name; the files' own where torch has none."""
    return _TORCH_NAMES.get(dtype, dtype)


_CACHES = {"fp8": "float8_e4m3fn", "fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2"}
"""`--kv-cache-dtype` -> what a cache of a byte an element holds, by torch's name."""


def cache_dtype(kv_cache_dtype: str, dtype: str) -> str:
    """Torch's name of what the KV cache holds by `--kv-cache-dtype`; auto is the model's own, as safetensors names
    it."""
    return torch_name(dtype) if kv_cache_dtype == "auto" else _CACHES.get(kv_cache_dtype, kv_cache_dtype)


def lacks_bfloat16(device: Device) -> bool:
    """Whether vLLM starts on this card in half only."""
    return device.compute_capability is not None and device.compute_capability < BFLOAT16_FROM


def refuses_float16(model_type: str) -> bool:
    """Whether vLLM runs no model of this type in float16."""
    return model_type in _UNSTABLE_IN_FLOAT16


def refused_on(model_type: str, device: Device) -> str | None:
    """Why a card runs a model in no 16-bit dtype, in words; None where it does. float32, which is left, takes twice as
    much, and no rule here covers it."""
    if lacks_bfloat16(device) and refuses_float16(model_type):
        return (
            f"vLLM refuses float16 for {model_type} (numerical instability), and this card has no bfloat16: no 16-bit "
            "start"
        )
    return None
