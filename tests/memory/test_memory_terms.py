from __future__ import annotations

import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufit.memory.terms import CURVES, TERMS, Shape, terms_for
from gpufit.profile.record import Parts, Phase, TermName

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


@pytest.mark.parametrize(
    ("term", "units"),
    [
        ("constant", 1),
        ("per_sequence", 3),
        ("per_token", 3 * 1000),
        ("per_token_in_window", 3 * 256),
        ("per_token_squared", 3 * 1000 * 1000),
        ("mask", 1000 * 1000),
    ],
)
def test_three_sequences_of_a_thousand_tokens_with_a_window_of_256(term: TermName, units: int) -> None:
    assert TERMS[term](3, 1000, 256) == units


def test_a_sequence_shorter_than_the_window_is_all_inside_it() -> None:
    assert TERMS["per_token_in_window"](2, 100, 256) == 200


@pytest.mark.parametrize("term", sorted(TERMS))
@given(counts, counts, counts, counts, st.integers(0, 2**20))
def test_no_term_shrinks_with_more_sequences_or_longer_ones(
    term: TermName, batch: int, tokens: int, more_batch: int, more_tokens: int, window: int
) -> None:
    units = TERMS[term]
    assert units(batch + more_batch, tokens, window) >= units(batch, tokens, window) >= 0
    assert units(batch, tokens + more_tokens, window) >= units(batch, tokens, window)


def test_every_term_that_a_profile_may_name_can_be_evaluated() -> None:
    assert set(typing.get_args(TermName)) == set(TERMS)


@pytest.mark.parametrize("curve", CURVES)
def test_weights_and_buffers_do_not_grow(curve: tuple[TermName, ...]) -> None:
    for part in ("weights_bytes", "buffers_bytes"):
        assert terms_for(part, 256, curve) == ("constant",)


def test_a_curve_adds_its_own_terms_and_no_others() -> None:
    straight = terms_for("temporaries_bytes", None)
    assert straight == ("constant", "per_sequence", "per_token")
    for curve in CURVES:
        assert terms_for("temporaries_bytes", None, curve) == (*straight, *curve)


@pytest.mark.parametrize("part", Parts.NAMES[2:])
def test_only_a_model_with_a_window_has_a_term_for_it(part: str) -> None:
    assert "per_token_in_window" not in terms_for(part, None)
    assert "per_token_in_window" in terms_for(part, 4096)
