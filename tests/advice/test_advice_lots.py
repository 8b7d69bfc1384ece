from __future__ import annotations

import pytest
from builders import TODAY
from hypothesis import given
from hypothesis import strategies as st

from gpufit.advice.lots import lots_for
from gpufit.catalog.store import load_folders
from gpufit.datadir import shipped_catalog_dir


@pytest.mark.parametrize(
    ("cards", "lot_size", "lots", "paid", "idle"),
    [
        (1, 1, 1, 1, 0),
        (3, 1, 3, 3, 0),
        (1, 2, 1, 2, 1),  # one B200 needed, a lot of two paid
        (2, 2, 1, 2, 0),
        (3, 2, 2, 4, 1),
        (8, 8, 1, 8, 0),
        (9, 8, 2, 16, 7),
    ],
)
def test_cards_are_paid_by_whole_lots(cards: int, lot_size: int, lots: int, paid: int, idle: int) -> None:
    found = lots_for(cards, lot_size)
    assert (found.lots, found.cards, found.idle_cards, found.lot_size) == (lots, paid, idle, lot_size)


def test_one_b200_of_the_shipped_book_costs_two() -> None:
    book = load_folders([shipped_catalog_dir()]).offers(TODAY)
    assert lots_for(1, book.lot_size("b200-sxm-180gb")).cards == 2
    assert lots_for(3, book.lot_size("b200-sxm-180gb")).cards == 4
    assert lots_for(1, book.lot_size("h100-sxm-80gb")).cards == 1


@given(st.integers(1, 10**9), st.integers(1, 10**4))
def test_the_lots_cover_the_cards_and_one_lot_fewer_would_not(cards: int, lot_size: int) -> None:
    found = lots_for(cards, lot_size)
    assert found.cards >= cards > (found.lots - 1) * lot_size
    assert found.cards - found.idle_cards == cards
    assert 0 <= found.idle_cards < lot_size


@pytest.mark.parametrize(("cards", "lot_size"), [(0, 1), (-1, 1), (1, 0), (1, -2)])
def test_no_cards_and_empty_lots_are_an_error(cards: int, lot_size: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        lots_for(cards, lot_size)


@pytest.mark.parametrize(
    ("of_one", "lots", "total"),
    [
        (194.33, 5, 971.65),  # as floats 971.6500000000001
        (485.825, 1, 485.83),
        (0.1, 3, 0.3),
        (1e12, 7, 7e12),
        (0.001, 2, 0.002),
    ],
)
def test_the_price_of_all_lots_is_to_the_cent_and_never_zero(of_one: float, lots: int, total: float) -> None:
    assert lots_for(lots, 1).price(of_one) == total
