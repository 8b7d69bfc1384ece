"""vLLM's KV pool: how layers share it in groups, and what its start-up log says of tokens and concurrency.

Rules of https://github.com/vllm-project/vllm/blob/main/vllm/v1/core/kv_cache_utils.py and kv_cache_interface.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpufit.architecture.record import Architecture, LatentCache
from gpufit.memory.engines.vllm.layers import (
    DEFAULT_BLOCK_TOKENS,
    LayerKind,
    aligned_block_tokens,
    kinds_of,
    token_bytes,
)
from gpufit.memory.engines.vllm.settings import Batch
from gpufit.memory.engines.vllm.versions import Rules
from gpufit.memory.engines.vllm.weights import Ranks
from gpufit.units import format_size

_ALMOST_EQUAL = 1.5
"""Where the most common kind has fewer than this many times the layers of the rarest, groups take its number of layers
and the others are padded to it."""

_CHUNKED = frozenset({"llama4", "llama4_text"})
"""Families whose layers attend within chunks instead of sliding."""


@dataclass(frozen=True, slots=True)
class Group:
    """Layers with one block table; blocks of all groups come from one pool."""

    block_tokens: int
    """Tokens in one of its blocks; of a state, the length of all."""
    window: int | None = None
    state: bool = False

    def blocks(self, tokens: int, in_flight: int) -> int:
        """Blocks that one sequence of so many tokens holds at most. `in_flight`: tokens scheduled and not settled."""
        if self.state:
            return 1
        if self.window is None:
            return math.ceil(tokens / self.block_tokens)
        held = min(self.window - 1 + in_flight, tokens)
        return math.ceil(held / self.block_tokens) + 1


@dataclass(frozen=True, slots=True)
class Pool:
    """How the pool is laid out."""

    groups: tuple[Group, ...]
    """Empty where a model caches nothing."""
    block_bytes: int
    """Of one block over the layers of one group."""
    tokens_from_concurrency: bool
    batches_in_flight: int
    state_each: bool
    """Whether a start is refused without a block of state for each running sequence."""
    cache_dtype: str
    """The `--kv-cache-dtype` that holds: what the release takes for auto, where it takes another than the model's."""
    words: tuple[str, ...]

    def blocks(self, pool_bytes: int) -> int:
        """Blocks that fit into so many bytes."""
        return max(pool_bytes, 0) // self.block_bytes if self.block_bytes else 0

    def blocks_per_sequence(self, tokens: int, batched_tokens: int) -> int:
        """Blocks that a sequence of so many tokens takes, over all groups; `batched_tokens` is
        `--max-num-batched-tokens`."""
        in_flight = batched_tokens * self.batches_in_flight
        return sum(group.blocks(tokens, in_flight) for group in self.groups)

    def sequence_bytes(self, tokens: int, batched_tokens: int) -> int:
        """Bytes of the pool that such a sequence takes: vLLM starts only if one of `--max-model-len` fits."""
        return self.blocks_per_sequence(tokens, batched_tokens) * self.block_bytes

    def least_bytes(self, tokens: int, batch: Batch, *, graphs: bool) -> int:
        """Bytes that a start needs: one sequence of the longest length, and since 0.19, where graphs are captured, a
        block of state for each of `--max-num-seqs`.

        "max_num_seqs (1024) exceeds available Mamba cache blocks (614). Each decode sequence requires one Mamba cache
        block": https://github.com/kaito-project/kaito/issues/2319, https://github.com/vllm-project/vllm/pull/38270.
        """
        blocks = self.blocks_per_sequence(tokens, batch.tokens)
        if graphs and self.state_each and any(group.state for group in self.groups):
            blocks = max(blocks, batch.sequences)
        return blocks * self.block_bytes

    def concurrency(self, pool_bytes: int, tokens: int, batched_tokens: int) -> float:
        """Sequences of so many tokens that the pool holds: "Maximum concurrency for N tokens per request"."""
        needed = self.blocks_per_sequence(tokens, batched_tokens)
        return self.blocks(pool_bytes) / needed if needed else 0.0

    def printed_tokens(self, pool_bytes: int, max_model_len: int, batched_tokens: int) -> int:
        """ "GPU KV cache size: N tokens", by the rule of the release."""
        if not self.groups:
            return 0
        if self.tokens_from_concurrency:
            return int(self.concurrency(pool_bytes, max_model_len, batched_tokens) * max_model_len)
        growing = [group.block_tokens for group in self.groups if not group.state]
        return self.blocks(pool_bytes) // len(self.groups) * min(growing, default=max_model_len)


def pool_of(
    architecture: Architecture,
    ranks: Ranks,
    rules: Rules,
    *,
    kv_cache_dtype: str = "auto",
    block_tokens: int = DEFAULT_BLOCK_TOKENS,
    one_pool: bool = False,
) -> Pool:
    """The layout of the pool for a model; `one_pool` is `--disable-hybrid-kv-cache-manager`, which connectors that
    carry caches elsewhere imply. Raises UsageError for caches that no rule covers."""
    sparse = any(isinstance(one, LatentCache) and one.indexer_dim for one in architecture.caches)
    dtype = "fp8" if sparse and kv_cache_dtype == "auto" and rules.sparse_latent_fp8 else kv_cache_dtype
    kinds = kinds_of(architecture, ranks, dtype)
    tokens = aligned_block_tokens(kinds, block_tokens)
    by_kind = rules.chunked_pools if architecture.model_type in _CHUNKED else rules.hybrid_pools
    grouped = len(kinds) > 1 and ((by_kind and not one_pool) or any(one.state_bytes for one in kinds))
    same_reach = len({(one.window, one.grows) for one in kinds}) == 1
    if not kinds:
        return _pool((), 0, rules, dtype, ("the model caches nothing",))
    if not grouped or same_reach:
        window = kinds[0].window if same_reach and rules.hybrid_pools else None
        group = Group(tokens, window, state=not kinds[0].grows)
        a_block = sum(one.layers * (one.token_bytes * tokens or one.state_bytes) for one in kinds)
        return _pool((group,), a_block, rules, dtype, (_plainly(kinds),))
    return _shared(kinds, tokens, rules, dtype)


def _shared(kinds: tuple[LayerKind, ...], tokens: int, rules: Rules, dtype: str) -> Pool:
    """Groups of as many layers as the rarest kind has, each with its blocks in the same pool."""
    page = max(one.token_bytes * tokens or one.state_bytes for one in kinds)
    counts = [one.layers for one in kinds]
    size = max(counts) if max(counts) < min(counts) * _ALMOST_EQUAL else min(counts)
    groups: list[Group] = []
    for one in kinds:
        # A layer with smaller entries takes more tokens into a block, so that all blocks are of one size.
        of_block = page // one.token_bytes if one.grows else 0
        groups.extend([Group(of_block, one.window, state=not one.grows)] * math.ceil(one.layers / size))
    words = (
        f"{len(groups)} groups of {size} layers share one pool; a block is {page:,} B a layer, {tokens} tokens or more",
        _plainly(kinds),
    )
    return _pool(tuple(groups), page * size, rules, dtype, words)


def _pool(groups: tuple[Group, ...], block_bytes: int, rules: Rules, dtype: str, words: tuple[str, ...]) -> Pool:
    return Pool(
        groups=groups,
        block_bytes=block_bytes,
        tokens_from_concurrency=rules.tokens_from_concurrency,
        batches_in_flight=rules.batches_in_flight,
        state_each=rules.version.at_least(0, 19),
        cache_dtype=dtype,
        words=words,
    )


def _plainly(kinds: tuple[LayerKind, ...]) -> str:
    said = f"{token_bytes(kinds):,} B a token over all layers"
    states = sum(one.layers * one.state_bytes for one in kinds)
    return f"{said}, {format_size(states)} of state a sequence" if states else said
