from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufit.advice.plan import Ask, Site, make_plan
from gpufit.advice.terms import Overheads, Volume
from gpufit.advice.throughput import NoThroughput, Throughput
from gpufit.errors import UsageError
from gpufit.memory.terms import Shape

SHAPE = Shape(512, 100, 4)
RATE = Throughput(asked=SHAPE, cell=SHAPE, inputs_completed=4, wall_seconds=2.0)
"""Two inputs a second."""
NO_RATE = NoThroughput("no throughput: measured on a CPU")


def site(copies: int = 1, ranks: int = 1, devices: int = 1, lot_size: int = 1, each: int | None = 10) -> Site:
    return Site(copies, ranks, devices, lot_size, each)


@pytest.mark.parametrize(
    ("place", "needed", "lots", "paid", "idle", "more_copies"),
    [
        (site(1, lot_size=2), 1, 1, 2, 1, 1),  # need 1 B200, pay 2
        (site(3, lot_size=2), 3, 2, 4, 1, 1),  # need 3, pay 4
        (site(2, lot_size=2), 2, 1, 2, 0, 0),
        (site(1, ranks=2, lot_size=2), 2, 1, 2, 0, 0),  # both cards of the lot carry one copy
        (site(3, ranks=2, lot_size=8), 6, 1, 8, 2, 1),  # two cards left: one more copy over two ranks
        (site(1, ranks=3, lot_size=4), 3, 1, 4, 1, 0),  # one card left: too few for a copy over three
        (site(3, devices=2), 2, 2, 2, 0, 1),  # three copies on two cards of two devices: one device left
    ],
)
def test_cards_lots_and_what_lies_idle(
    place: Site, needed: int, lots: int, paid: int, idle: int, more_copies: int
) -> None:
    plan = make_plan(Ask(term_days=7), place, NO_RATE)
    assert (plan.lots.cards - plan.lots.idle_cards, plan.lots.lots, plan.lots.cards) == (needed, lots, paid)
    left = plan.remainder
    assert (left.cards, left.copies, left.sequences) == (idle, more_copies, 10 * more_copies)
    assert left.cost_share == pytest.approx(idle / paid)


def test_what_one_copy_serves_may_not_be_known() -> None:
    assert make_plan(Ask(term_days=7), site(lot_size=2, each=None), NO_RATE).remainder.sequences is None


def test_the_term_follows_from_the_work() -> None:
    """400,000 inputs at 2/s and 90 % busy are 61.7 h, with 8 h on top 69.7: 3 days. Twice as many 131.5 h: 7 days."""
    assert make_plan(Ask(volume=Volume(inputs=400_000)), site(), RATE).term_days == 3
    assert make_plan(Ask(volume=Volume(inputs=800_000)), site(), RATE).term_days == 7
    assert make_plan(Ask(volume=Volume(inputs=800_000), workers=2), site(), RATE).term_days == 3


def test_where_no_term_holds_the_work_the_longest_is_planned_and_says_so() -> None:
    """10m inputs at 2/s and 90 % busy are 1,543 h; 30 days are 720 h, of which 712 are work: three workers."""
    plan = make_plan(Ask(volume=Volume(inputs=10_000_000)), site(lot_size=2), RATE)
    assert (plan.term_days, plan.holds) == (30, False)
    last = plan.options[-1]
    assert last.lots is not None
    assert (last.days, last.workers, last.lots.cards) == (30, 3, 4)


def test_a_term_that_was_named_stays() -> None:
    plan = make_plan(Ask(term_days=3, volume=Volume(inputs=800_000)), site(), RATE)
    assert (plan.term_days, plan.holds) == (3, False)
    assert [option.holds for option in plan.options] == [False, True, True]
    assert [option.workers for option in plan.options] == [2, 1, 1]


def test_no_fewer_workers_than_the_concurrency_needs() -> None:
    plan = make_plan(Ask(volume=Volume(inputs=10)), site(copies=3), RATE)
    assert [option.workers for option in plan.options] == [3, 3, 3]
    with pytest.raises(UsageError, match="--workers 2: 3 copies of the model are needed"):
        make_plan(Ask(term_days=3, workers=2), site(copies=3), RATE)


def test_a_slip_of_the_keyboard_is_no_order() -> None:
    assert make_plan(Ask(term_days=3, workers=100_000), site(), RATE).workers == 100_000
    for place, ask in ((site(), Ask(term_days=3, workers=100_001)), (site(copies=2**40), Ask(term_days=3))):
        with pytest.raises(UsageError, match="more than an order lists"):
            make_plan(ask, place, RATE)


def test_without_a_throughput_no_hours_are_claimed() -> None:
    plan = make_plan(Ask(term_days=30, volume=Volume(inputs=10)), site(), NO_RATE)
    assert plan.hours is None
    assert plan.holds is None
    assert {option.holds for option in plan.options} == {None}
    assert {option.workers for option in plan.options} == {None}


@pytest.mark.parametrize(
    ("ask", "rate", "why"),
    [
        (Ask(volume=Volume(inputs=10)), NO_RATE, "measured on a CPU"),
        (Ask(), RATE, "no volume of work was stated"),
    ],
)
def test_a_term_is_never_guessed(ask: Ask, rate: Throughput | NoThroughput, why: str) -> None:
    with pytest.raises(UsageError, match=f"no term follows: .*{why}.*; name one with --term, days: 3 \\(install"):
        make_plan(ask, site(), rate)


@given(
    copies=st.integers(1, 40),
    ranks=st.integers(1, 8),
    devices=st.integers(1, 2),
    lot_size=st.integers(1, 8),
    inputs=st.integers(1, 10**8),
)
def test_an_option_holds_the_work_with_its_workers_on_its_cards(
    copies: int, ranks: int, devices: int, lot_size: int, inputs: int
) -> None:
    place, volume = site(copies, ranks, devices, lot_size), Volume(inputs=inputs)
    for option in make_plan(Ask(volume=volume, term_days=3), place, RATE).options:
        assert option.workers is not None
        assert option.lots is not None
        assert option.workers >= copies
        assert option.lots.cards * devices >= option.workers * ranks
        again = make_plan(Ask(option.days, volume, option.workers, overheads=Overheads()), place, RATE)
        assert again.holds
        # What is left never holds as many ranks as another copy has, beyond the copies it is said to hold.
        left = again.lots.cards * devices - option.workers * ranks
        assert left - again.remainder.copies * ranks in range(ranks)
