from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufit.advice.terms import PURPOSES, Hours, Overheads, Volume, fewest_workers, hours_for, least_pace, shortest_term
from gpufit.advice.throughput import Throughput
from gpufit.catalog.offers import TERMS
from gpufit.errors import UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence

SHAPE = Shape(512, 100, 4)
ONE = Throughput(asked=SHAPE, cell=SHAPE, inputs_completed=4, wall_seconds=2.0)
"""Two inputs, and 200 new tokens, a second."""

BUSY = Overheads(setup_hours=0, checks_hours=0, export_hours=0, busy_share=1.0)


def rate(inputs_per_second: float) -> Throughput:
    return Throughput(asked=SHAPE, cell=SHAPE, inputs_completed=1, wall_seconds=1 / inputs_per_second)


def test_every_term_says_what_it_is_for() -> None:
    assert tuple(PURPOSES) == TERMS == (3, 7, 30)


def test_hours_of_inputs() -> None:
    """72,000 inputs at 2/s are 36,000 s = 10 h; two workers take 5 h; at 80 % busy 6.25 h; 1 + 2 + 3 h on top."""
    volume = Volume(inputs=72_000)
    assert hours_for(volume, ONE, 1, BUSY).processing_hours == pytest.approx(10)
    assert hours_for(volume, ONE, 2, BUSY).processing_hours == pytest.approx(5)
    found = hours_for(volume, ONE, 2, Overheads(1, 2, 3, 0.8))
    assert found.processing_hours == pytest.approx(6.25)
    assert found.total_hours == pytest.approx(12.25)


def test_the_least_pace_holds_the_term_and_less_does_not() -> None:
    """100,001 inputs over 2 workers are 50,001 for one; 3 days less 6 h are 66 h, of which 80 % are 190,080 s."""
    volume, overheads = Volume(inputs=100_001), Overheads(1, 2, 3, 0.8)
    pace = least_pace(volume, 2, 3, overheads)
    assert pace is not None
    assert pace.inputs_per_second == pytest.approx(50_001 / 190_080)
    assert pace.tokens_per_second is None
    assert hours_for(volume, rate(pace.inputs_per_second * 1.001), 2, overheads).within(3)
    assert not hours_for(volume, rate(pace.inputs_per_second * 0.999), 2, overheads).within(3)
    tokens = least_pace(Volume(tokens=100_001), 2, 3, overheads)
    assert tokens is not None
    assert tokens.tokens_per_second == pytest.approx(100_001 / 2 / 190_080)
    assert least_pace(volume, 2, 3, Overheads(setup_hours=72)) is None


def test_inputs_are_not_divided() -> None:
    """Of three inputs on two workers one takes two: as long as two inputs on one worker, at 2/s one second."""
    assert hours_for(Volume(inputs=3), ONE, 2, BUSY).processing_hours == pytest.approx(1 / 3600)


def test_tokens_are_those_that_are_generated_and_the_longer_of_two_volumes_counts() -> None:
    """7.2m tokens at 200/s are 10 h; 36,000 inputs at 2/s are 5 h."""
    assert hours_for(Volume(tokens=7_200_000), ONE, 1, BUSY).processing_hours == pytest.approx(10)
    assert hours_for(Volume(36_000, 7_200_000), ONE, 1, BUSY).processing_hours == pytest.approx(10)
    assert hours_for(Volume(144_000, 7_200_000), ONE, 1, BUSY).processing_hours == pytest.approx(20)


def test_a_term_is_the_shortest_that_holds_the_hours() -> None:
    """3 days are 72 h, 7 are 168, 30 are 720."""
    hours = {72.0: 3, 72.1: 7, 168.0: 7, 168.1: 30, 720.0: 30, 720.1: None}
    assert {total: shortest_term(Hours(total, BUSY, Evidence.MEASURED)) for total in hours} == hours


def test_fewest_workers_by_hand() -> None:
    """8 h of 72 are fixed by default, 64 h remain; at 90 % busy 57.6 h = 207,360 s, at 2/s 414,720 inputs a worker."""
    assert fewest_workers(Volume(inputs=414_720), ONE, 3, Overheads()) == 1
    assert fewest_workers(Volume(inputs=414_721), ONE, 3, Overheads()) == 2
    assert fewest_workers(Volume(inputs=1_000_000), ONE, 3, Overheads()) == 3


def test_no_number_of_workers_shortens_what_is_not_work() -> None:
    assert fewest_workers(Volume(inputs=1), ONE, 3, Overheads(setup_hours=72)) is None
    # An input of 100 h does not become shorter by more workers.
    assert fewest_workers(Volume(inputs=5), rate(1 / 360_000), 3, Overheads()) is None


@given(
    inputs=st.integers(1, 10**7),
    per_second=st.floats(0.001, 1000),
    workers=st.integers(1, 500),
    more=st.integers(1, 500),
    busy=st.floats(0.1, 1),
)
def test_hours_grow_with_the_work_and_never_with_workers(
    inputs: int, per_second: float, workers: int, more: int, busy: float
) -> None:
    one, overheads = rate(per_second), Overheads(busy_share=busy)
    few = hours_for(Volume(inputs=inputs), one, workers, overheads).total_hours
    assert hours_for(Volume(inputs=inputs), one, workers + more, overheads).total_hours <= few
    assert hours_for(Volume(inputs=inputs + more), one, workers, overheads).total_hours >= few
    assert hours_for(Volume(inputs, inputs * 100), one, workers, overheads).total_hours >= few
    assert few >= overheads.fixed_hours


@given(inputs=st.integers(1, 10**8), per_second=st.floats(0.01, 100), days=st.sampled_from(TERMS))
def test_the_fewest_workers_hold_and_one_fewer_do_not(inputs: int, per_second: float, days: int) -> None:
    volume, one, overheads = Volume(inputs=inputs), rate(per_second), Overheads()
    workers = fewest_workers(volume, one, days, overheads)
    assert workers is not None  # a single input takes 100 s at most
    assert hours_for(volume, one, workers, overheads).within(days)
    assert workers == 1 or not hours_for(volume, one, workers - 1, overheads).within(days)


@given(total=st.floats(0, 2000))
def test_no_shorter_term_holds(total: float) -> None:
    hours = Hours(total, BUSY, Evidence.MEASURED)
    days = shortest_term(hours)
    assert all(hours.within(term) == (days is not None and term >= days) for term in TERMS)


@pytest.mark.parametrize(
    "wrong", [{"setup_hours": -1.0}, {"export_hours": math.inf}, {"busy_share": 0.0}, {"busy_share": 1.1}]
)
def test_hours_and_shares_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="must be"):
        Overheads(**wrong)


@pytest.mark.parametrize(("volume", "workers"), [(Volume(), 1), (Volume(inputs=1), 0)])
def test_hours_need_a_volume_and_a_worker(volume: Volume, workers: int) -> None:
    with pytest.raises(ValueError, match="volume and at least one worker"):
        hours_for(volume, ONE, workers, BUSY)


@pytest.mark.parametrize(
    ("cell", "workers", "evidence", "at_most"),
    [
        (ONE.asked, 1, Evidence.MEASURED, False),
        (ONE.asked, 2, Evidence.SCALED, False),  # what two share was not measured
        (Shape(1024, 100, 1), 1, Evidence.SCALED, True),  # a cell that is no easier: as fast as that, or faster
    ],
)
def test_hours_say_what_their_rate_is_worth(cell: Shape, workers: int, evidence: Evidence, at_most: bool) -> None:
    hours = hours_for(Volume(inputs=100), replace(ONE, cell=cell), workers, BUSY)
    assert (hours.evidence, hours.at_most) == (evidence, at_most)
