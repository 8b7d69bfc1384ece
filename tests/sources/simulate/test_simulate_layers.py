"""Which layers are run and what they stand for, and the straight line through their runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufit.errors import MeasurementError
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import END_OF_PHASE, FIRST_STEP, Moment, Parts, Phase, PhasePeak
from gpufit.sources.simulate.extend import Further, extend, extended_steps
from gpufit.sources.simulate.layers import FEWEST_REPEATS, Pattern, pattern_of


@pytest.mark.parametrize(
    ("kinds", "pattern"),
    [
        # A pattern: layers in all, those before it, those of one repetition, and how often it is repeated.
        ("aaaaaaaa", Pattern(8, 1, 1, 7)),
        ("dddmmmmmmmm", Pattern(11, 3, 1, 8)),
        ("ssssfssssfssssfssssfssssfss", Pattern(27, 1, 5, 5)),
        ("abababababab", Pattern(12, 1, 2, 5)),
        ("ffffffffb", Pattern(9, 1, 1, 7)),
        ("aaaa", None),  # two runs of two and three layers are five
        ("abcdefgh", None),
        ("", None),
    ],
)
def test_the_pattern_of_a_stack(kinds: str, pattern: Pattern | None) -> None:
    assert pattern_of(list(kinds)) == pattern


def test_a_shallow_stack_keeps_what_lies_before_and_behind_the_pattern() -> None:
    pattern = pattern_of(list("ssssfssssfssssfssssfssssfss"))
    assert pattern is not None
    assert pattern.places(1) == (0, 1, 2, 3, 4, 5, 26)
    assert pattern.places(2) == (*range(11), 26)
    assert pattern.places(pattern.repeats) == tuple(range(27))


@given(
    st.text("abc", max_size=4), st.text("abc", min_size=1, max_size=3), st.integers(2, 8), st.text("abc", max_size=3)
)
def test_what_a_layer_stands_for_is_of_its_kind(before: str, period: str, repeats: int, behind: str) -> None:
    kinds = before + period * repeats + behind
    pattern = pattern_of(list(kinds))
    if pattern is None:
        return
    for count in (FEWEST_REPEATS, FEWEST_REPEATS + 1):
        places = pattern.places(count)
        assert len(places) == pattern.layers_at(count)
        assert list(places) == sorted(set(places))
        # Each repetition left out is the same as the one before it, so the shallow row goes on as the whole one does.
        row = [kinds[place] for place in places]
        kept = pattern.before + count * pattern.period
        assert row[:kept] == list(kinds[:kept])
    assert len(pattern.places(1)) + len(pattern.places(2)) < len(kinds)


def peak(phase: Phase, *moments: tuple[str, int, int], cached: int = 0) -> PhasePeak:
    made = tuple(Moment(site=site, parts=Parts(weights_bytes=w, kv_cache_bytes=kv)) for site, w, kv in moments)
    highest = max(made, key=lambda one: one.parts.total_bytes)
    return PhasePeak(
        phase=phase,
        parts=highest.parts,
        allocated_bytes=highest.parts.total_bytes,
        evidence=Evidence.SIMULATED,
        site=highest.site,
        moments=made,
        cached_tokens=cached,
    )


def test_each_direction_adds_its_own_difference_and_another_moment_may_be_the_highest() -> None:
    base = peak(Phase.PREFILL, ("a", 10, 9), ("b", 10, 5), (END_OF_PHASE, 10, 5))
    deeper = peak(Phase.PREFILL, ("a", 14, 9), ("b", 14, 6), (END_OF_PHASE, 14, 6))
    wider = peak(Phase.PREFILL, ("a", 11, 9), ("b", 11, 9), (END_OF_PHASE, 11, 5))
    (whole,) = extend((base,), [Further((deeper,), 3), Further((wider,), 2)])
    # a: 10 + 3 x 4 + 2 x 1 of weights and 9 of cache; b: 5 + 3 x 1 + 2 x 4 of cache.
    assert [(one.site, one.parts.weights_bytes, one.parts.kv_cache_bytes) for one in whole.moments] == [
        ("a", 24, 9), ("b", 24, 16), (END_OF_PHASE, 24, 8)
    ]  # fmt: skip
    assert (whole.site, whole.allocated_bytes) == ("b", 40)


def test_later_steps_are_extended_and_the_first_is_not() -> None:
    first = f"{FIRST_STEP}a"
    before = peak(Phase.DECODE, (first, 1, 9), ("a", 1, 3), (END_OF_PHASE, 1, 2), cached=10)
    last = peak(Phase.DECODE, (first, 1, 9), ("a", 1, 5), (END_OF_PHASE, 1, 3), cached=11)
    (whole,) = extended_steps((before,), (last,), 4)
    assert [(one.site, one.parts.kv_cache_bytes) for one in whole.moments] == [
        (first, 9), ("a", 11), (END_OF_PHASE, 6)
    ]  # fmt: skip
    assert (whole.site, whole.cached_tokens) == ("a", 14)


def test_what_does_not_lie_on_a_line_is_refused() -> None:
    base = peak(Phase.PREFILL, ("a", 10, 5))
    with pytest.raises(MeasurementError, match="kv_cache_bytes at a does not grow in a straight line"):
        extend((base,), [Further((peak(Phase.PREFILL, ("a", 10, 3)),), 3)])
    with pytest.raises(MeasurementError, match="not every run passes a"):
        extend((base,), [Further((peak(Phase.PREFILL, ("b", 10, 3)),), 3)])
