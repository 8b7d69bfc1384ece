"""What profiling images takes: vLLM fills the encoder's budget with dummy images of the largest size.

https://github.com/vllm-project/vllm/blob/main/vllm/multimodal/encoder_budget.py, profile_run in gpu_model_runner.py.
The images' sizes are in processor files that are not read here, so they are assumed, and the bounds are wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpufit.architecture.record import Architecture, Component, Kind
from gpufit.units import GIB

_ITEM_BYTES = 2
_PIXEL_BYTES = 4
"""Dummy images are kept in float32."""
_MORE = 3.0
_MORE_BYTES = 1 * GIB
"""How much higher than its point the encoder's peak may be: times, and beside that."""


@dataclass(frozen=True, slots=True)
class _Images:
    """The largest image of a family."""

    tokens: int
    """What the decoder sees of it."""
    patches: int
    """What the encoder sees of it."""


_LARGEST = {
    "gemma3": _Images(256, 4096),
    "qwen2_vl": _Images(16384, 65536),
    "qwen2_5_vl": _Images(16384, 65536),
    "qwen3_vl": _Images(16384, 65536),
    "qwen3_vl_moe": _Images(16384, 65536),
    "qwen3_5": _Images(16384, 65536),
    "qwen3_5_moe": _Images(16384, 65536),
}
"""Gemma 3: 896 x 896 pixels in patches of 14, pooled to 256 tokens; Qwen: up to 16,384 tokens (max_pixels), each of
2 x 2 patches. https://github.com/huggingface/transformers/tree/main/src/transformers/models"""
_OTHER = _Images(4096, 4 * 4096)


@dataclass(frozen=True, slots=True)
class EncoderProfile:
    """What the encoder's dummy run takes on one rank."""

    peak_bytes: int
    """While it runs."""
    kept_bytes: int
    """Inputs and outputs that stay while the decoder's step is profiled."""
    upper_bytes: int
    """The most that the peak is taken to be."""


def encoder_profile(architecture: Architecture, batched_tokens: int) -> EncoderProfile | None:
    """The encoder's dummy run for a model with a vision tower; None for one without."""
    tower = [one for one in architecture.weights if one.component is Component.VISION]
    if not tower:
        return None
    images = _LARGEST.get(architecture.model_type, _OTHER)
    count = max(batched_tokens // images.tokens, 1)
    patches, tokens = images.patches * count, images.tokens * count
    matrices = [one for one in tower if one.kind is Kind.LINEAR and len(one.shape) == 2]
    widest = max((one.shape[0] for one in matrices), default=0)
    width = min((one.shape[0] for one in matrices), default=0)
    pixels = max((math.prod(one.shape[1:]) for one in tower if one.kind is Kind.CONVOLUTION), default=0)
    kept = patches * pixels * _PIXEL_BYTES + tokens * architecture.hidden * _ITEM_BYTES
    peak = kept + patches * _ITEM_BYTES * (2 * widest + 3 * width)
    return EncoderProfile(peak, kept, int(peak * _MORE) + _MORE_BYTES)
