"""llama.cpp's KV buffers: cells for every token of the context, or of the window, and states of linear layers.

https://github.com/ggml-org/llama.cpp (src/llama-kv-cache.cpp, llama-kv-cache-iswa.cpp, llama-memory-recurrent.cpp). It
prints them as it starts: "KV self size", "CUDA0 KV buffer size", "RS buffer size". Built for releases of 2025 and 2026.
"""

from __future__ import annotations

from fractions import Fraction

from gpufit.architecture.record import Architecture, AttentionCache, LatentCache, StateCache
from gpufit.errors import UsageError

CACHE_TYPES: dict[str, Fraction] = {
    "f32": Fraction(4),
    "f16": Fraction(2),
    "bf16": Fraction(2),
    "q8_0": Fraction(34, 32),
    "q5_1": Fraction(24, 32),
    "q5_0": Fraction(22, 32),
    "q4_1": Fraction(20, 32),
    "q4_0": Fraction(18, 32),
}
"""`--cache-type-k`/`-v` -> bytes an element: blocks of 32 with a 16-bit scale, and a 16-bit minimum in the `_1` types
(ggml/src/ggml-common.h)."""

CELL_STEP = 256
"""Cells of a sliding cache are padded to a multiple of this."""
DEFAULT_MICRO_BATCH = 512
"""`--ubatch-size`."""
_STATE_BYTES = 4
"""States and the inputs that a short convolution keeps are float32, whatever the cache's type."""
_CONVOLUTION_KEPT = Fraction(3, 4)
"""It keeps kernel - 1 inputs; these families' kernels have 4."""


def token_bytes(architecture: Architecture, cache_type: str = "f16", *, window: bool = False) -> int:
    """Bytes of one cell over the layers that see everything, or (`window`) over those that slide.

    Raises UsageError for an unknown cache type.
    """
    if cache_type not in CACHE_TYPES:
        raise UsageError(f"cache type {cache_type!r} is none of {', '.join(CACHE_TYPES)}")
    elements = 0
    for cache in architecture.caches:
        slides = isinstance(cache, AttentionCache) and cache.window is not None
        if isinstance(cache, AttentionCache | LatentCache) and slides == window:
            elements += cache.elements_per_token
    return int(elements * CACHE_TYPES[cache_type])


def full_bytes(architecture: Architecture, cells: int, cache_type: str = "f16") -> int:
    """The buffer of layers that see everything: a cell a token of the whole context, all sequences together."""
    return cells * token_bytes(architecture, cache_type)


def sliding_cells(window: int, cells: int, *, sequences: int = 1, micro_batch: int = DEFAULT_MICRO_BATCH) -> int:
    """Cells of a sliding layer: a window for every sequence and the batch being read, padded, at most the context's.

    `--swa-full` keeps the context's instead.
    """
    needed = min(window * sequences + micro_batch, cells)
    return -(-needed // CELL_STEP) * CELL_STEP


def sliding_bytes(
    architecture: Architecture,
    cells: int,
    cache_type: str = "f16",
    *,
    sequences: int = 1,
    micro_batch: int = DEFAULT_MICRO_BATCH,
) -> int:
    """The buffer of sliding layers; 0 where none slides."""
    window = architecture.sliding_window
    if window is None:
        return 0
    held = sliding_cells(window, cells, sequences=sequences, micro_batch=micro_batch)
    return held * token_bytes(architecture, cache_type, window=True)


def state_bytes(architecture: Architecture, sequences: int = 1) -> int:
    """The states of linear-attention and state-space layers, for so many sequences."""
    found = 0
    for cache in architecture.caches:
        if isinstance(cache, StateCache):
            kept = int(cache.convolution_elements * _CONVOLUTION_KEPT) + cache.recurrent_elements
            found += cache.layers * kept * _STATE_BYTES
    return found * sequences
