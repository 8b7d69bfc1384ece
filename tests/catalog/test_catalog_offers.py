"""Which books are used, and how old their prices are."""

from __future__ import annotations

import datetime

import pytest
from catalog_builders import make_book

from gpufit.catalog.offers import STALE_DAYS, Offer, OfferBook, Offers
from gpufit.catalog.record import Catalog
from gpufit.errors import UsageError

TODAY = datetime.date(2026, 11, 30)
A = make_book("a", Offer(card="x1", lot_size=2, price_7_days=10.0), Offer(card="x3", lot_size=4), seller="A")
B = make_book("b", Offer(card="x1", lot_size=1, price_7_days=6.0), Offer(card="x2", lot_size=8, price_3_days=1.0))
BLANK = make_book("blank", Offer(card="x2", lot_size=2))
PUBLIC = make_book("public", Offer(card="x1", lot_size=1, price_7_days=1.0), indicative=True)


def names(books: tuple[OfferBook, ...]) -> list[str]:
    return [book.name for book in books]


def test_the_user_s_own_books_are_used_together_and_else_the_blank_one() -> None:
    assert names(Catalog(cards=(), offer_books=(BLANK, PUBLIC, A, B)).default_books) == ["a", "b"]
    assert names(Catalog(cards=(), offer_books=(BLANK, PUBLIC)).default_books) == ["blank"]
    assert Catalog(cards=(), offer_books=(PUBLIC,)).default_books == ()


def test_named_books_come_in_the_order_named_each_once_and_public_figures_only_so() -> None:
    catalog = Catalog(cards=(), offer_books=(BLANK, PUBLIC, A, B))
    assert names(catalog.offers(TODAY).books) == ["a", "b"]
    assert names(catalog.offers(TODAY, ["public", "b", "public"]).books) == ["public", "b"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("theirs", "no offer book 'theirs'; there is: blank, public (gpufit catalog offers lists them)"),
        ("publik", "no offer book 'publik'; did you mean public? (gpufit catalog offers lists them)"),
    ],
)
def test_a_book_that_is_not_there_is_said_with_those_that_are(name: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Catalog(cards=(), offer_books=(BLANK, PUBLIC)).offers(TODAY, [name])
    assert str(caught.value) == said


def test_every_seller_with_a_price_for_a_card_is_asked_and_its_own_lot_counts() -> None:
    offers = Offers((A, B), TODAY)
    assert [(book.name, offer.lot_size) for book, offer in offers.of("x1")] == [("a", 2), ("b", 1)]
    # Only b prices it: the row's lot is that of the seller who sells it.
    assert [(book.name, offer.lot_size) for book, offer in offers.of("x2")] == [("b", 8)]
    assert offers.lot_size("x2") == 8
    # Nobody prices it: the first book's lot, and no price.
    assert [(book.name, offer.lot_size, offer.prices) for book, offer in offers.of("x3")] == [("a", 4, {})]


def test_without_any_book_there_is_no_lot_to_tell() -> None:
    with pytest.raises(UsageError, match="no offer book; gpufit catalog offers --template writes one"):
        Offers((), TODAY).lot_size("x1")


def dated(date: datetime.date | None, price: float | None = 1.0) -> OfferBook:
    return make_book("a", Offer(card="x1", lot_size=1, price_3_days=price), date=date)


def test_a_price_is_stale_from_the_31st_day_on() -> None:
    assert STALE_DAYS == 30
    # 31 October is 30 days before 30 November, 30 October 31.
    edge, over = dated(datetime.date(2026, 10, 31)), dated(datetime.date(2026, 10, 30))
    offers = Offers((edge, over), TODAY)
    assert (offers.age_days(edge), offers.is_stale(edge)) == (30, False)
    assert (offers.age_days(over), offers.is_stale(over)) == (31, True)


def test_what_has_no_date_or_no_price_or_is_yet_to_come_is_not_stale() -> None:
    undated, unpriced = dated(None), dated(datetime.date(2020, 1, 1), None)
    future = dated(datetime.date(2026, 12, 1))
    offers = Offers((undated, unpriced, future), TODAY)
    assert [offers.is_stale(book) for book in offers.books] == [False, False, False]
    assert (offers.age_days(undated), offers.age_days(future)) == (None, -1)
