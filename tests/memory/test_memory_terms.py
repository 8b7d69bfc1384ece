from __future__ import annotations

import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufit.memory.terms import BASE, TERMS, Extent, Knees, Shape, base_terms, further_terms
from gpufit.profile.memory_model import TermName
from gpufit.profile.peaks import Phase

counts = st.integers(1, 2**24)


@pytest.mark.parametrize(
    ("context", "new", "concurrency", "cached", "total"),
    [
        (128, 0, 1, 128, 128),  # an encoder
        (128, 1, 1, 128, 128),  # the one new token comes out of prefill and is never fed back
        (128, 4, 2, 131, 262),
    ],
)
def test_the_last_token_is_never_in_the_cache(
    context: int, new: int, concurrency: int, cached: int, total: int
) -> None:
    shape = Shape(context, new, concurrency)
    assert (shape.cached_tokens, shape.total_tokens) == (cached, total)
    assert shape.tokens_in(Phase.PREFILL) == shape.tokens_in(Phase.FORWARD) == context
    assert shape.tokens_in(Phase.DECODE) == cached


KNEES = Knees(window=256, chunk=64, tiled_on_cpu=True)


@pytest.mark.parametrize(
    ("term", "units"),
    [
        ("constant", 1),
        ("per_sequence", 3),
        ("per_position", 1000),
        ("per_token", 3 * 1000),
        ("per_past_token", 3 * 999),
        ("per_prompt_token", 3 * 1000),
        ("per_reserved_token", 3 * 1007),
        ("per_token_in_window", 3 * 256),
        ("per_token_in_chunks", 3 * 1024),  # 16 chunks of 64
        ("per_token_squared", 3 * 1000 * 1000),
        ("mask", 1000 * 1000),
        ("per_token_beyond_window", 3 * 1000),
        ("per_token_squared_beyond_window", 3 * 1000 * 1000),
        ("mask_beyond_window", 1000 * 1000),
        ("tile", 256 * 512),
        ("tile_row", 256),
    ],
)
def test_prefill_of_three_sequences_of_a_thousand_tokens(term: TermName, units: int) -> None:
    assert TERMS[term](Extent.of(Shape(1000, 8, 3), Phase.PREFILL, KNEES)) == units


@pytest.mark.parametrize(
    ("term", "units"),
    [
        ("per_token", 3 * 1007),  # 8 new tokens, the last of which is never fed back
        ("per_past_token", 3 * 1006),
        ("per_prompt_token", 3 * 1000),
        ("per_token_in_window", 3 * 256),
        ("tile", 512),
        ("tile_row", 1),
    ],
)
def test_decode_of_the_same(term: TermName, units: int) -> None:
    assert TERMS[term](Extent.of(Shape(1000, 8, 3), Phase.DECODE, KNEES)) == units


@pytest.mark.parametrize(
    ("tokens", "rows", "columns"),
    [(20, 20, 20), (191, 32, 191), (192, 64, 192), (767, 64, 512), (768, 256, 512), (10**6, 256, 512)],
)
def test_a_tile_of_the_cpu_kernel_steps_at_192_and_768_queries(tokens: int, rows: int, columns: int) -> None:
    extent = Extent.of(Shape(tokens, 1, 1), Phase.PREFILL, KNEES)
    assert (extent.tile_rows, extent.tile_columns) == (rows, columns)


@pytest.mark.parametrize("term", [term for term in TERMS if "window" in term])
def test_a_sequence_that_does_not_fill_the_window_is_all_inside(term: TermName) -> None:
    inside, filling = (Extent.of(Shape(tokens, 1, 2), Phase.PREFILL, KNEES) for tokens in (255, 256))
    assert TERMS[term](inside) == (510 if term == "per_token_in_window" else 0)
    assert TERMS[term](filling) > TERMS[term](inside)


@pytest.mark.parametrize("phase", [Phase.PREFILL, Phase.DECODE])
@pytest.mark.parametrize("term", sorted(TERMS))
@given(counts, counts, counts, counts, counts, st.integers(0, 2**20), st.integers(0, 2**20))
def test_no_term_shrinks_with_more_sequences_or_longer_ones(
    phase: Phase, term: TermName, batch: int, tokens: int, new: int, more: int, other: int, window: int, chunk: int
) -> None:
    knees = Knees(window, chunk, tiled_on_cpu=True)

    def units(shape: Shape) -> int:
        return TERMS[term](Extent.of(shape, phase, knees))

    base = units(Shape(tokens, new, batch))
    assert base >= 0
    assert units(Shape(tokens, new, batch + more)) >= base
    assert units(Shape(tokens + more, new, batch)) >= base
    assert units(Shape(tokens, new + other, batch)) >= base


def test_every_term_that_a_profile_may_name_can_be_evaluated() -> None:
    assert set(typing.get_args(TermName)) == set(TERMS)


def named(phase: Phase, knees: Knees, curved: bool = True) -> set[TermName]:
    return {term for group in further_terms(phase, knees, curved) for term in group}


def test_only_a_model_with_a_window_or_chunks_on_a_cpu_has_terms_for_them() -> None:
    plain = named(Phase.PREFILL, Knees())
    assert plain == {"per_position", "mask", "per_token_squared"}
    assert named(Phase.PREFILL, Knees(chunk=64)) - plain == {"per_token_in_chunks"}
    assert named(Phase.PREFILL, Knees(tiled_on_cpu=True)) - plain == {"tile", "tile_row"}
    assert named(Phase.PREFILL, Knees(window=64)) - plain == {term for term in TERMS if "window" in term}


def test_a_decode_step_has_no_square() -> None:
    assert named(Phase.DECODE, KNEES).isdisjoint({"mask", "per_token_squared", "per_token_in_chunks"})


def test_two_contexts_leave_squares_out() -> None:
    assert not any("mask" in term or "squared" in term for term in named(Phase.PREFILL, KNEES, curved=False))


def test_prompts_that_fill_their_chunks_are_taken_for_padded() -> None:
    assert "per_token_in_chunks" in base_terms("activations_bytes", Phase.PREFILL, Knees(chunk=64), [128, 512])
    assert base_terms("activations_bytes", Phase.PREFILL, Knees(chunk=64), [128, 500]) == BASE
    assert base_terms("activations_bytes", Phase.DECODE, Knees(chunk=64), [128, 512]) == BASE


def test_a_static_cache_is_as_large_as_all_tokens_from_the_first_on() -> None:
    knees = Knees(static_cache=True)
    assert base_terms("kv_cache_bytes", Phase.PREFILL, knees, [128, 512]) == (
        "constant", "per_sequence", "per_reserved_token",
    )  # fmt: skip
    assert base_terms("activations_bytes", Phase.PREFILL, knees, [128, 512]) == BASE
