"""A new book: it is read as it stands, and once it is filled in as its own text says."""

from __future__ import annotations

import datetime
import re

from catalog_builders import make_book, make_card, make_memory
from hypothesis import given
from hypothesis import strategies as st

from gpufit.catalog.codec import parse_offer_book
from gpufit.catalog.offers import Offer
from gpufit.catalog.store import load_folders
from gpufit.catalog.template import offer_template
from gpufit.datadir import shipped_catalog_dir

TODAY = datetime.date(2026, 11, 30)
CATALOG = load_folders([shipped_catalog_dir()])
LOTS = CATALOG.offer_book("blank")


def filled_in(text: str) -> str:
    """The text with every "# " taken off that the text says to take off, and prices 1, 2, 3, ... written."""
    numbers = iter(range(1, 1000))
    own = re.sub(r"^# (?=(seller|currency|date|note) = )", "", text, flags=re.MULTILINE)
    return re.sub(r"^# (price_\d+_days) =$", lambda found: f"{found[1]} = {next(numbers)}", own, flags=re.MULTILINE)


def test_as_written_it_is_a_blank_book_of_every_card_with_its_lot() -> None:
    book = parse_offer_book(offer_template(CATALOG.cards, LOTS, TODAY, "cfg"), "acme.toml", "acme")
    assert [offer.card for offer in book.offers] == [card.id for card in CATALOG.cards]
    assert all(offer.prices == {} for offer in book.offers)
    assert (book.seller, book.currency, book.date) == (None, None, None)
    assert {offer.card: offer.lot_size for offer in book.offers if offer.lot_size != 1} == {"b200-sxm-180gb": 2}


def test_filled_in_it_holds_what_was_written() -> None:
    text = filled_in(offer_template(CATALOG.cards, LOTS, TODAY, "cfg"))
    book = parse_offer_book(text, "acme.toml", "acme")
    assert (book.seller, book.currency, book.date) == ("Example Cloud", "EUR", TODAY)
    assert book.note == "prices without VAT"
    # Three prices a card, in the order of the text.
    for number, offer in enumerate(book.offers):
        assert offer.prices == {3: 3 * number + 1, 7: 3 * number + 2, 30: 3 * number + 3}


def test_what_is_given_is_written_in() -> None:
    text = offer_template(CATALOG.cards[:1], LOTS, TODAY, "cfg", seller='A "B" \\ Ü', currency="CHF")
    book = parse_offer_book(text, "acme.toml", "acme")
    assert (book.seller, book.currency, book.date) == ('A "B" \\ Ü', "CHF", None)
    assert len(book.offers) == 1


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_seller_s_name_survives(seller: str) -> None:
    text = offer_template(CATALOG.cards[:1], LOTS, TODAY, "cfg", seller=seller)
    assert parse_offer_book(text, "acme.toml", "acme").seller == seller


def test_a_card_says_its_name_and_memory_and_a_lot_of_several_that_the_price_is_for_all() -> None:
    card = make_card("x1-48gb", name="Maker X1", memory=make_memory(planning_torch_gib=44.42))
    text = offer_template([card, make_card("x2")], make_book("lots", Offer(card="x1-48gb", lot_size=4)), TODAY, "cfg")
    assert (
        "# Maker X1, 44.42 GiB usable\n[x1-48gb]\nlot_size = 4  # sold 4 cards a lot: the price is that of all 4"
        in text
    )
    assert "# Card x2\n[x2]\nlot_size = 1\n# price_3_days =\n" in text
