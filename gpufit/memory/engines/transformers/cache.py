"""The KV cache in a forward pass: what it takes, and how a layer's part of it takes new keys and values.

Sources: cache_utils.py of each release, and the modelling files named below.
"""

from __future__ import annotations

from gpufit.architecture.record import Architecture, AttentionCache, Cache, CrossAttentionCache, LatentCache, StateCache
from gpufit.memory.engines.tape import Size
from gpufit.memory.engines.transformers.passes import SINGLE, Forward
from gpufit.memory.engines.transformers.rules import Rules
from gpufit.profile.memory_model import TermName

WIDENED = 5
"""Copies of a layer's keys or values in the compute dtype while a quantised cache takes a step: both dequantised, both
with the new token behind them, and one on its way to fewer bits (`Fp8QuantizedLayer` in cache_utils.py)."""
COPIES_KV = ("falcon",)
"""Families that copy grouped keys and values to every head before they cache them (`_split_heads` in
modeling_falcon.py); one KV head for all stays one."""


def elements_per_token(kind: Cache, model: Architecture, rules: Rules) -> int:
    """Elements a token takes in a kind of cache that grows, over its layers."""
    if isinstance(kind, AttentionCache):
        copied = model.heads // kind.kv_heads if model.model_type in COPIES_KV and kind.kv_heads > 1 else 1
        return kind.elements_per_token * copied
    if isinstance(kind, LatentCache):
        if rules.latent_cache:
            return kind.elements_per_token + kind.layers * kind.indexer_dim
        return kind.layers * (model.heads * model.head_dim + all_values_width(model))
    return 0


def all_values_width(model: Architecture) -> int:
    """Values of all heads: the inputs of the output projection."""
    columns = [one.shape[1] for one in model.weights if one.name.endswith("self_attn.o_proj.weight")]
    return max(columns, default=model.heads * model.head_dim)


def cache_size(
    forward: Forward, kind: Cache, term: TermName | None, share: float = 1.0, *, after: bool = False
) -> Size:
    """Bytes of a kind of cache, over its layers or a share of them; `term` counts the tokens of full attention,
    `after` says that the pass has been there."""
    run, layers = forward.run, kind.layers
    if isinstance(kind, StateCache):
        size = kind.convolution_elements * run.element_bytes + kind.recurrent_elements * SINGLE
        return Size.of("per_sequence", share * layers * size)
    if isinstance(kind, CrossAttentionCache):
        each = share * 2 * layers * kind.kv_heads * kind.head_dim * run.element_bytes
        fixed = kind.source_tokens
        return Size.of("per_prompt_token", each) if fixed is None else Size.of("per_sequence", each * fixed)
    if term is None:
        return Size()
    if isinstance(kind, AttentionCache) and kind.window is not None and run.rules.sliding_cache:
        term = forward.extent.left_in_window if after else forward.extent.in_window
    return Size.of(term, share * elements_per_token(kind, forward.model, run.rules) * run.kv_element_bytes)


def whole_cache(forward: Forward) -> list[int]:
    """The cache of all layers, as it is when the pass has been through them."""
    cached = forward.extent.cached
    return [forward.tape.new(cache_size(forward, kind, cached), "kv_cache_bytes") for kind in forward.model.caches]


def other_layers(forward: Forward, kind: Cache | None) -> list[int]:
    """The cache of every layer but the one that runs, and what the caller still holds of the step before."""
    tape, extent = forward.tape, forward.extent
    made = []
    for one in forward.model.caches:
        share = 1 - 1 / one.layers if one is kind else 1.0
        made.append(tape.new(cache_size(forward, one, extent.cached, share), "kv_cache_bytes"))
        if forward.run.rules.whole_cache_twice and extent.past is not None:
            made.append(tape.new(cache_size(forward, one, extent.past, share), "kv_cache_bytes"))
    return made


def update(forward: Forward, kind: Cache, fresh: list[int]) -> list[int]:
    """The running layer's cache takes the new keys and values; what then holds them."""
    tape, extent, rules = forward.tape, forward.extent, forward.run.rules
    if isinstance(kind, (StateCache, CrossAttentionCache)):
        tape.free(*fresh)
        return [tape.new(cache_size(forward, kind, None, 1 / kind.layers), "kv_cache_bytes")]
    if extent.past is None and not rules.first_update_copies:
        for block in fresh:
            tape.become(block, "kv_cache_bytes")
        return fresh
    share = 1 / (2 * kind.layers)
    if forward.run.kv_element_bytes < forward.run.element_bytes:
        # A quantised cache gives back keys and values in the compute dtype, and takes them anew.
        widened = cache_size(
            forward, kind, extent.cached, share * forward.run.element_bytes / forward.run.kv_element_bytes
        )
        with tape.held(*[widened] * WIDENED):
            pass
    old = [tape.new(cache_size(forward, kind, extent.past, share), "kv_cache_bytes") for _ in range(2)]
    made = []
    # A sliding layer makes both copies before it gives up what they are copied from (`DynamicSlidingWindowLayer`).
    slides = isinstance(kind, AttentionCache) and kind.window is not None and rules.sliding_cache
    keeps_old = rules.whole_cache_twice or slides
    for before in old:
        # Until the cache adopts it, the longer copy is a temporary beside what it is copied from.
        longer = tape.new(cache_size(forward, kind, extent.cached, share, after=True))
        if not keeps_old:
            tape.free(before)
            tape.become(longer, "kv_cache_bytes")
        made.append(longer)
    if slides:
        tape.free(*old)
    for block in made:
        tape.become(block, "kv_cache_bytes")
    tape.free(*fresh)
    return [*made, *(old if rules.whole_cache_twice else ())]
