"""Crossings worked out by hand from the formula of tests/builders, and what holds for every card."""

from __future__ import annotations

import msgspec
import pytest
from builders import make_card, make_memory_model, make_profile
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufit.advice.curve import SAMPLES, Axis, ceiling_of, crossing, domain, first_place, last_place, places
from gpufit.advice.verdict import Verdict, judge
from gpufit.memory.carry import carrier_to
from gpufit.memory.predict import Predictor
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, OutOfMemory
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.peaks import Phase

GIB = 2**30
SHAPE = Shape(512, 4, 4)
CARD = make_card(capacity_gib=2.0)
FIXED = 524_288_000 + 99_000_000 + 33_554_432 + 256_004_000 + 1_000_000
"""Driver context, loaded kernels, cuBLAS' workspace, weights and buffers, temporaries that do not grow."""
A_SEQUENCE, A_TOKEN = 100_000, 25_016
"""In prefill: logits; cache, inputs, activations and temporaries."""


def test_the_estimate_crosses_where_the_arithmetic_says() -> None:
    """2 GiB = FIXED + 4 x (100,000 + n x 25,016) at n = 12,324.5; 2 GiB = FIXED + c x 12,908,192 at c = 95.6."""
    assert (2 * GIB - FIXED - 4 * A_SEQUENCE) // (4 * A_TOKEN) == 12_324
    assert (2 * GIB - FIXED) // (A_SEQUENCE + 512 * A_TOKEN) == 95
    predictor = Predictor(make_profile())
    along = crossing(predictor, CARD, SHAPE, Axis.CONTEXT, same_card=False)
    across = crossing(predictor, CARD, SHAPE, Axis.CONCURRENCY, same_card=False)
    assert along is not None
    assert across is not None
    assert (along.estimate, across.estimate) == (12_324, 95)


@settings(deadline=None, max_examples=40)
@given(st.integers(900, 4096), st.integers(1, 4096), st.integers(1, 64), st.sampled_from(Axis))
def test_the_verdict_turns_where_the_curve_says(mib: int, context: int, concurrency: int, axis: Axis) -> None:
    """At `possibly` it is not yet sure that it does not fit, one further it is; and what surely fits is no more."""
    predictor, card, shape = (
        Predictor(make_profile()),
        make_card(capacity_gib=mib / 1024),
        Shape(context, 4, concurrency),
    )
    found = crossing(predictor, card, shape, axis, same_card=False)
    row = judge(predictor, card, shape, 1)
    surely = row.max_context_tokens if axis is Axis.CONTEXT else row.max_concurrency
    assert found is not None
    assert surely is not None
    assert surely <= found.estimate <= found.possibly
    if found.possibly:
        assert judge(predictor, card, axis.at(shape, found.possibly), 1).verdict is not Verdict.DOES_NOT_FIT
    if found.possibly != last_place(predictor.profile, axis, 4):
        assert judge(predictor, card, axis.at(shape, found.possibly + 1), 1).verdict is Verdict.DOES_NOT_FIT
    if found.estimate:
        headroom = judge(predictor, card, axis.at(shape, found.estimate), 1).headroom_bytes
        assert headroom is not None
        assert headroom >= 0


@pytest.mark.parametrize("phase", [Phase.PREFILL, Phase.DECODE])
def test_what_is_allocated_crosses_the_ceiling_exactly_where_the_need_crosses_the_capacity(phase: Phase) -> None:
    predictor = Predictor(make_profile())
    carrier = carrier_to(CARD, predictor.profile, same_card=False)
    assert ceiling_of(carrier, 2 * GIB) == 2 * GIB - 524_288_000 - 99_000_000 - 33_554_432
    one = next(one for one in predictor.at(SHAPE) if one.phase is phase)
    assert 2 * GIB - carrier.need(one).need_bytes == ceiling_of(carrier, 2 * GIB) - one.allocated_bytes


def test_what_ran_out_of_memory_on_the_very_card_ends_its_curve() -> None:
    device = DeviceInfo(kind="cuda", name="Card", total_bytes=2 * GIB, context_bytes=500_000_000)
    profile = make_profile()
    profile = msgspec.structs.replace(
        profile,
        environment=msgspec.structs.replace(profile.environment, device=device),
        cells=(
            *profile.cells,
            Cell(context_tokens=4096, new_tokens=4, concurrency=4, outcome=OutOfMemory(phase=None, message="killed")),
        ),
    )
    on_it = crossing(Predictor(profile), CARD, SHAPE, Axis.CONTEXT, same_card=True)
    elsewhere = crossing(Predictor(profile), CARD, SHAPE, Axis.CONTEXT, same_card=False)
    assert on_it is not None
    assert elsewhere is not None
    assert (on_it.estimate, on_it.possibly) == (4095, 4095)
    assert elsewhere.estimate > 4095


def test_nothing_crosses_an_unknown_memory_or_without_a_memory_model() -> None:
    unknown = make_card(capacity_gib=None)
    assert crossing(Predictor(make_profile()), unknown, SHAPE, Axis.CONTEXT, same_card=False) is None
    few = Predictor(make_profile(memory_model=None))
    assert crossing(few, CARD, SHAPE, Axis.CONTEXT, same_card=False) is None


def test_the_context_ends_at_the_position_limit_and_concurrency_nowhere() -> None:
    profile = make_profile()
    assert last_place(profile, Axis.CONTEXT, 4) == 32_768 - 3
    assert last_place(profile, Axis.CONCURRENCY, 4) is None
    images = msgspec.structs.replace(profile.workload, images=1, image_tokens=576)
    assert first_place(msgspec.structs.replace(profile, workload=images), Axis.CONTEXT) == 577
    assert first_place(profile, Axis.CONCURRENCY) == 1


class TestDomain:
    """Run: 515 cached tokens, 4 sequences, 2060 tokens in all."""

    def test_along_each_axis(self) -> None:
        profile = make_profile(memory_model=make_memory_model(min_context_tokens=128))
        assert domain(profile, SHAPE, Axis.CONTEXT) == (128, 512)
        assert domain(profile, SHAPE, Axis.CONCURRENCY) == (1, 4)

    def test_half_as_many_tokens_in_all_halve_it(self) -> None:
        profile = make_profile(memory_model=make_memory_model(max_total_tokens=1030))
        assert domain(profile, SHAPE, Axis.CONTEXT) == (1, 1030 // 4 - 3)
        assert domain(profile, SHAPE, Axis.CONCURRENCY) == (1, 2)

    def test_there_is_none_beyond_what_was_run_and_of_arithmetic(self) -> None:
        assert domain(make_profile(), Shape(512, 4, 5), Axis.CONTEXT) is None
        assert domain(make_profile(), Shape(513, 4, 1), Axis.CONCURRENCY) is None
        assert domain(make_profile(memory_model=make_memory_model(untested=True)), SHAPE, Axis.CONTEXT) is None
        assert domain(make_profile(memory_model=None), SHAPE, Axis.CONTEXT) is None


def test_places_hold_both_ends_and_all_that_have_a_name_within() -> None:
    found = places(100, 10_000, [777, 50, 20_000])
    assert (found[0], found[-1]) == (100, 10_000)
    assert 777 in found
    assert SAMPLES <= len(found) <= SAMPLES + 1
    assert places(8, 8, []) == (8,)
