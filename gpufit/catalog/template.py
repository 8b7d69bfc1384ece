"""An offer book to fill in: complete, commented, and readable as it stands. Pure."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence

from gpufit.catalog.offers import TERMS, OfferBook
from gpufit.catalog.record import Card
from gpufit.units import GIB

_HEAD = """\
# Offer book: what one seller asks. The file's name, without .toml, is the book's name.
#
#   1. Take the "# " off the lines below that have one, and put in your seller's.
#   2. Under each card you were quoted, take the "# " off the terms you know, and write the price of ONE LOT for the
#      WHOLE term, without a currency sign: price_7_days = 1234.50
#   3. Correct lot_size where the seller's lots differ. A lot cannot be split: three cards in lots of two are two lots.
#   4. Put the file into offers/ of your catalog folder ({folder}), or name it with
#      --offers FILE. `gpufit catalog check` then says what is wrong with it, if anything.
#
# A price you do not know stays commented out: 0 is refused, since no card is free, and so is a misspelt key.
# Cards you delete keep the usual lot size and have no price. One currency holds for the whole book.

schema_version = 1
"""


def offer_template(
    cards: Sequence[Card],
    lots: OfferBook,
    today: datetime.date,
    folder: str,
    seller: str | None = None,
    currency: str | None = None,
) -> str:
    """A book of these cards with the lot sizes of `lots` and no price; what is not given is left to take the "# " off.

    `folder` is where it says that the file belongs.
    """
    own = (
        _line("seller", _text(seller or "Example Cloud"), given=seller is not None),
        _line("currency", _text(currency or "EUR"), given=currency is not None),
        _line("date", str(today), given=False) + "  # the day on which the prices were read",
        _line("note", _text("prices without VAT"), given=False) + "  # anything that holds for all of them",
    )
    tables = (_table(card, lots) for card in cards)
    return "\n\n".join([_HEAD.format(folder=folder) + "\n".join(own), *tables]) + "\n"


def _table(card: Card, lots: OfferBook) -> str:
    offer = lots.offer(card.id)
    usable = "" if card.capacity_bytes is None else f", {card.capacity_bytes / GIB:.2f} GiB usable"
    lines = [f"# {card.name}{usable}", f"[{card.id}]", f"lot_size = {offer.lot_size}"]
    if offer.lot_size > 1:
        lines[-1] += f"  # sold {offer.lot_size} cards a lot: the price is that of all {offer.lot_size}"
    return "\n".join([*lines, *(f"# price_{days}_days =" for days in TERMS)])


def _line(key: str, value: str, given: bool) -> str:
    return f"{key} = {value}" if given else f"# {key} = {value}"


def _text(value: str) -> str:
    """A basic string of TOML: what JSON escapes, TOML escapes alike, but for DEL (https://toml.io/en/v1.0.0#string)."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
