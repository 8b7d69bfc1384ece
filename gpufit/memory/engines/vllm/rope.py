"""Tables of rotary positions: built once a distinct rope, whole on every rank, and part of what loading prints.

https://github.com/vllm-project/vllm/tree/main/vllm/model_executor/layers/rotary_embedding
"""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.architecture.record import Architecture, AttentionCache

_MULTIMODAL_POSITIONS = 4
"""Multimodal ropes (time, height, width) prepare for four times the positions (mrope.py)."""

_MULTIMODAL = frozenset(
    {
        "qwen2_vl",
        "qwen2_5_vl",
        "qwen2_5_omni",
        "qwen3_vl",
        "qwen3_vl_moe",
        "qwen3_omni_moe",
        "qwen3_5",
        "qwen3_5_text",
        "qwen3_5_moe",
        "qwen3_5_moe_text",
    }
)
"""Families with such a rope, even where only their language model is loaded: Qwen3.6-35B-A3B printed 64.69 GiB, of
which 128 MiB are its table (262,144 x 4 x 64 x 2 B)."""
_TWO_BASES = frozenset({"gemma3", "gemma3_text", "gemma3n", "gemma4", "gemma4_text"})
"""Families whose sliding layers rotate by another base than the others: a table each, as wide as their heads."""
_LINEAR_FACTOR = {"gemma3": 8}
"""Families whose positions beyond those trained are divided by a factor (rope_scaling of type linear): that table holds
as many times the positions (linear_scaling_rope.py). Gemma-3-4b printed 8.58 GiB, of which 512 MiB are this table
(https://github.com/vllm-project/vllm/pull/21489)."""


def rope_table_sizes(architecture: Architecture, item_bytes: int) -> tuple[int, ...]:
    """Sizes in bytes of the tables of cosines and sines: positions x rotated dimensions x bytes an element.

    Found from printed figures: 32 MiB for Llama-3.1 (131,072 x 128 x 2 B), 2 MiB for Llama-3, 8 MiB for Mistral.
    """
    rotary, positions = architecture.rotary, architecture.position_limit
    if rotary is None or not rotary.dim or positions is None:
        return ()
    if architecture.model_type in _TWO_BASES:
        return tuple(_by_base(architecture, positions * item_bytes))
    times = _MULTIMODAL_POSITIONS if architecture.model_type in _MULTIMODAL else 1
    return (positions * times * rotary.dim * item_bytes,)


def _by_base(architecture: Architecture, column_bytes: int) -> Iterator[int]:
    """One table a kind of layer; `column_bytes` is what one rotated dimension takes over all positions."""
    factor = _LINEAR_FACTOR.get(architecture.model_type, 1)
    for cache in architecture.caches:
        if isinstance(cache, AttentionCache):
            yield column_bytes * cache.key_dim * (factor if cache.window is None else 1)
