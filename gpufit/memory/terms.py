"""The physical terms that memory grows by, and the shape they are evaluated at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpufit.profile.memory_model import TermName
from gpufit.profile.peaks import FIRST_STEP, Phase
from gpufit.profile.record import Profile


@dataclass(frozen=True)
class Shape:
    """A question to the memory model: how long, how many."""

    context_tokens: int
    """Prompt length of each sequence."""
    new_tokens: int
    """Tokens generated, the one that prefill yields included."""
    concurrency: int
    """Sequences at once."""

    @property
    def cached_tokens(self) -> int:
        """Tokens a sequence holds in its cache at the end: the last generated token is never fed back."""
        return self.context_tokens + max(self.new_tokens - 1, 0)

    def tokens_in(self, phase: Phase) -> int:
        """Sequence length that rules a phase: the prompt, or in decode all cached tokens."""
        return self.cached_tokens if phase is Phase.DECODE else self.context_tokens

    @property
    def total_tokens(self) -> int:
        """Tokens of all sequences together at the end."""
        return self.cached_tokens * self.concurrency


@dataclass(frozen=True)
class Knees:
    """What a run's growth depends on beside its shape; 0 where it has no such place."""

    window: int = 0
    """Tokens a sliding layer sees."""
    chunk: int = 0
    """Tokens a layer works on at once, the last piece padded."""
    tiled_on_cpu: bool = False
    """Whether attention may run in torch's CPU kernel, whose scratch is one tile a thread."""

    static_cache: bool = False
    """Whether the cache is made for all tokens of a sequence, new ones included, before the first is read."""

    @classmethod
    def of(cls, profile: Profile) -> Knees:
        """The knees of what was profiled."""
        return cls(
            window=profile.model.sliding_window or 0,
            chunk=profile.model.chunk_tokens or 0,
            tiled_on_cpu=profile.environment.device.kind == "cpu",
            static_cache=profile.workload.cache_implementation == "static",
        )


class Extent(NamedTuple):
    """How large one phase of a shape is, as its terms see it."""

    sequences: int
    tokens: int
    """Of a sequence: the prompt, or in decode all that its cache holds at the end."""
    prompt: int
    """Of a sequence, in any phase."""
    reserved: int
    """Of a sequence: prompt and new tokens, in any phase."""
    queries: int
    """Tokens of a sequence that one forward computes: the prompt, or in decode one."""
    knees: Knees

    @classmethod
    def of(cls, shape: Shape, phase: Phase, knees: Knees) -> Extent:
        """The extent of a phase at a shape."""
        tokens = shape.tokens_in(phase)
        queries = 1 if phase is Phase.DECODE else tokens
        return cls(shape.concurrency, tokens, shape.context_tokens, shape.cached_tokens, queries, knees)

    @property
    def beyond(self) -> int:
        """1 where a sequence fills the window, else 0.

        Below, full and sliding attention see the same, and transformers makes no mask (`_ignore_causal_mask_sdpa` in
        https://github.com/huggingface/transformers/blob/main/src/transformers/masking_utils.py).
        """
        return int(self.tokens >= self.knees.window)

    @property
    def padded(self) -> int:
        """Tokens rounded up to whole chunks."""
        chunk = self.knees.chunk
        return -(-self.tokens // chunk) * chunk if chunk else self.tokens

    @property
    def tile_rows(self) -> int:
        """Rows of a tile of torch's CPU attention kernel: by the number of queries 32, from 192 on 64, from 768 on 256.

        Source: `flash_attention_kernel_impl` in
        https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/cpu/FlashAttentionKernel.cpp
        """
        return min(self.queries, 256 if self.queries >= 768 else 64 if self.queries >= 192 else 32)

    @property
    def tile_columns(self) -> int:
        """Columns of the same tile: at most 512 keys (same source)."""
        return min(self.tokens, 512)


TERMS: Mapping[TermName, Callable[[Extent], int]] = {
    "constant": lambda one: 1,
    "per_sequence": lambda one: one.sequences,
    "per_position": lambda one: one.tokens,
    "per_token": lambda one: one.sequences * one.tokens,
    "per_past_token": lambda one: one.sequences * max(one.tokens - 1, 0),
    "per_prompt_token": lambda one: one.sequences * one.prompt,
    "per_reserved_token": lambda one: one.sequences * one.reserved,
    "per_token_in_window": lambda one: one.sequences * min(one.tokens, one.knees.window),
    "per_token_in_chunks": lambda one: one.sequences * one.padded,
    "per_token_squared": lambda one: one.sequences * one.tokens**2,
    "mask": lambda one: one.tokens**2,
    "per_token_beyond_window": lambda one: one.sequences * one.tokens * one.beyond,
    "per_token_squared_beyond_window": lambda one: one.sequences * one.tokens**2 * one.beyond,
    "mask_beyond_window": lambda one: one.tokens**2 * one.beyond,
    "tile": lambda one: one.tile_rows * one.tile_columns,
    "tile_row": lambda one: one.tile_rows,
}
"""Every term by its name in a profile, as units of an extent. All of them grow, or stay, with more sequences and with
longer ones.

`per_position` is what all sequences share, token by token (rotary tables); `mask` a square of the prompt that they
share. What is `beyond_window` is there only when a prompt fills the window. In decode `per_past_token` is what a cache
held before the step, and `per_prompt_token` what stays as prefill left it. A static cache has its `per_reserved_token`
in any phase. `tile` and `tile_row` are scratch of a CPU kernel.
"""

Units = Mapping[TermName, int]
"""Units of every term at one extent."""


@dataclass(frozen=True)
class ShapeUnits:
    """Units of every term in one phase of a shape."""

    usual: Units
    first_step: Units
    """The same for moments of the first decode step, whatever else is generated after it."""

    def of(self, site: str) -> Units:
        """The units for a moment at this site."""
        return self.first_step if site.startswith(FIRST_STEP) else self.usual


def units_at(shape: Shape, phase: Phase, knees: Knees) -> ShapeUnits:
    """Units of every term in one phase of a shape."""
    usual = _units(shape, phase, knees)
    return ShapeUnits(usual, usual if phase is not Phase.DECODE else _units(first_step_of(shape), phase, knees))


def first_step_of(shape: Shape) -> Shape:
    """The shape as the first decode step sees it."""
    return replace(shape, new_tokens=min(shape.new_tokens, 2))


def _units(shape: Shape, phase: Phase, knees: Knees) -> Units:
    extent = Extent.of(shape, phase, knees)
    return {name: term(extent) for name, term in TERMS.items()}


BASE: tuple[TermName, ...] = ("constant", "per_sequence", "per_token")
"""What any part may grow by."""


CURVES: tuple[TermName, ...] = ("mask", "per_token_squared")
"""What grows with tokens squared: a mask that all sequences share, or the scores of each."""


def base_terms(part: str, phase: Phase, knees: Knees, lengths: Iterable[int]) -> tuple[TermName, ...]:
    """What a part of a phase may grow by, first of all.

    Prompts that all fill their chunks cannot tell padded tokens from tokens; they are then taken for padded, which
    never promises too little. Nor can cells of one number of new tokens tell what a static cache reserves for them.
    """
    if part == "kv_cache_bytes" and knees.static_cache:
        return ("constant", "per_sequence", "per_reserved_token")
    chunked = knees.chunk and phase is not Phase.DECODE and all(length % knees.chunk == 0 for length in lengths)
    return ("constant", "per_sequence", "per_token_in_chunks") if chunked else BASE


def further_terms(phase: Phase, knees: Knees, curved: bool) -> tuple[tuple[TermName, ...], ...]:
    """What a part of this phase may grow by beyond that, likeliest first, terms that only occur together as one.

    `curved`: terms in tokens squared are among them (a decode step has one row of a mask or of scores a sequence).
    """
    terms: list[tuple[TermName, ...]] = [("per_position",)]
    if knees.window:
        terms += [("per_token_in_window",), ("per_token_beyond_window",)]
    if phase is Phase.DECODE:
        terms += [("per_past_token",), ("per_prompt_token",)]
    else:
        if knees.chunk:
            terms.append(("per_token_in_chunks",))
        if curved:
            terms += [(curve,) for curve in CURVES]
            if knees.window:
                terms += [("mask_beyond_window",), ("per_token_squared_beyond_window",)]
    if knees.tiled_on_cpu:
        terms.append(("tile", "tile_row"))
    return tuple(terms)
