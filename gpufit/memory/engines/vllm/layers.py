"""What one layer of each kind writes into vLLM's KV pool, on one rank."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from gpufit.architecture.record import Architecture, AttentionCache, CrossAttentionCache, LatentCache, StateCache
from gpufit.errors import UsageError
from gpufit.memory.engines.vllm.weights import Ranks, kv_heads_per_rank

KV_ITEM_BYTES = {"auto": 2, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}
"""`--kv-cache-dtype` -> bytes an element; auto is the model's own 16 bit."""

DEFAULT_BLOCK_TOKENS = 16
"""Tokens in a block where no backend and no page alignment asks for more (CacheConfig.DEFAULT_BLOCK_SIZE)."""

_SPARSE_LATENT_BYTES = 656
"""A token of fp8 latent where a sparse-attention indexer reads it: 512 B of values, 16 B of scales, 128 B of rotary
part in 16 bit (fp8_ds_mla, https://github.com/vllm-project/vllm/pull/25896)."""
_INDEXER_SCALE_BYTES = 4
"""The indexer's key is FP8 with one float32 scale for 128 elements, whatever the cache's dtype."""
_CONVOLUTION_KEPT = Fraction(3, 4)
"""vLLM keeps the last kernel - 1 inputs of a short convolution (mamba_utils.py), transformers all kernel of them; the
kernels of these families have 4."""


@dataclass(frozen=True, slots=True)
class LayerKind:
    """Layers that cache alike."""

    layers: int
    token_bytes: int
    """Of a token in one layer; 0 for a state, which does not grow."""
    window: int | None = None
    """Tokens a sliding layer sees."""
    state_bytes: int = 0
    """Of a sequence in one layer, whatever its length."""

    @property
    def grows(self) -> bool:
        """Whether it takes more for a longer sequence."""
        return not self.state_bytes


def kinds_of(architecture: Architecture, ranks: Ranks, kv_cache_dtype: str = "auto") -> tuple[LayerKind, ...]:
    """The kinds of layers of a model. KV heads are divided down to one, a latent is whole on every rank, a state is
    divided. Raises UsageError for a dtype or a cache that no rule covers."""
    if kv_cache_dtype not in KV_ITEM_BYTES:
        raise UsageError(f"kv cache dtype {kv_cache_dtype!r} is none of {', '.join(KV_ITEM_BYTES)}")
    item = KV_ITEM_BYTES[kv_cache_dtype]
    found: list[LayerKind] = []
    for cache in architecture.caches:
        if isinstance(cache, AttentionCache):
            heads = kv_heads_per_rank(cache.kv_heads, ranks.tensor)
            found.append(LayerKind(cache.layers, heads * (cache.key_dim + cache.value_dim) * item, cache.window))
        elif isinstance(cache, LatentCache):
            found.extend(_latent(cache, item))
        elif isinstance(cache, StateCache):
            found.append(_state(cache, ranks))
        elif isinstance(cache, CrossAttentionCache):
            raise UsageError(f"no memory rule for vLLM with cross-attention ({architecture.model_type})")
        else:
            raise UsageError(f"no memory rule for vLLM with the caches of {architecture.model_type}")
    return _merged(found)


def token_bytes(kinds: Iterable[LayerKind]) -> int:
    """Bytes of one token over all layers, sliding ones counted as if they saw everything."""
    return sum(one.layers * one.token_bytes for one in kinds)


def aligned_block_tokens(kinds: Iterable[LayerKind], asked: int = DEFAULT_BLOCK_TOKENS) -> int:
    """Tokens of a block: grown until a block of attention holds a state, in steps of the block asked for.

    vLLM prints it: "Setting attention block size to 1056 tokens to ensure that attention page size is >= mamba page
    size" (https://github.com/vllm-project/vllm/blob/main/vllm/platforms/interface.py).
    """
    kinds = tuple(kinds)
    state = max((one.state_bytes for one in kinds), default=0)
    a_token = max((one.token_bytes for one in kinds), default=0)
    if not state or not a_token:
        return asked
    return asked * max(math.ceil(state / (asked * a_token)), 1)


def _latent(cache: LatentCache, item: int) -> list[LayerKind]:
    if not cache.indexer_dim:
        return [LayerKind(cache.layers, (cache.latent_dim + cache.rope_dim) * item)]
    latent = _SPARSE_LATENT_BYTES if item == 1 else (cache.latent_dim + cache.rope_dim) * item
    indexer = cache.indexer_dim + _INDEXER_SCALE_BYTES * math.ceil(cache.indexer_dim / 128)
    return [LayerKind(cache.layers, latent + indexer)]


def _state(cache: StateCache, ranks: Ranks) -> LayerKind:
    convolution = int(cache.convolution_elements * _CONVOLUTION_KEPT) * 2
    recurrent = cache.recurrent_elements * (4 if cache.recurrent_float32 else 2)
    for size in (convolution, recurrent):
        if size % ranks.tensor:
            raise UsageError(f"the state of a linear-attention layer cannot be divided over {ranks.tensor} ranks")
    return LayerKind(cache.layers, 0, state_bytes=(convolution + recurrent) // ranks.tensor)


def _merged(kinds: list[LayerKind]) -> tuple[LayerKind, ...]:
    """Kinds that are the same, as one."""
    layers: dict[tuple[int, int | None, int], int] = {}
    for one in kinds:
        key = (one.token_bytes, one.window, one.state_bytes)
        layers[key] = layers.get(key, 0) + one.layers
    return tuple(LayerKind(count, a_token, window, state) for (a_token, window, state), count in layers.items())
