"""Prices of several sellers, their age and currency, and what work costs where speed was measured."""

from __future__ import annotations

import csv
import datetime
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import openpyxl
import pytest
from builders import TODAY, make_card, make_cell, make_offers, make_profile
from public_models import CONFIGS
from report_readers import Node, as_page, as_workbook

from gpufit import flows
from gpufit.catalog.offers import Offer, OfferBook
from gpufit.catalog.record import Catalog
from gpufit.memory.terms import Shape
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.record import Profile
from gpufit.report.document import FitDocument
from gpufit.report.offer_lines import cheapness, term_words
from gpufit.report.price_text import cost_rows, lines_of, price_lines, price_rows
from gpufit.report.registry import FORMATS, load_format
from gpufit.report.rows import by_arrangement
from gpufit.sources.estimate.request import EstimateRequest

SHAPE = Shape(512, 4, 4)
CARD = make_card("x1-80gb", device_names=("MAKER X1",), pci_ids=("10de:1111",))
OTHER = make_card("x2-80gb", device_names=("MAKER X2",), pci_ids=("10de:2222",))


def book(name: str, *offers: Offer, days_ago: int = 0, **fields: Any) -> OfferBook:
    given = {"seller": f"{name} Ltd", "currency": "EUR", "date": TODAY - datetime.timedelta(days=days_ago)} | fields
    priced = tuple(msgspec.structs.replace(offer, currency=given["currency"]) for offer in offers)
    return OfferBook(name=name, offers=priced, **given)


def document_of(*books: OfferBook, profile: Profile | None = None, shape: Shape = SHAPE) -> FitDocument:
    catalog = Catalog(cards=(CARD, OTHER))
    return flows.fit(profile or make_profile(), "p.json", shape, catalog, make_offers(*books))


def card_profile() -> Profile:
    """Measured on CARD: 4 sequences of 512 tokens with 4 new ones each in 0.5 s."""
    cells = [make_cell(512, concurrency) for concurrency in (1, 2, 4)]
    seconds = {1: 0.3, 2: 0.4, 4: 0.5}
    timed = tuple(
        msgspec.structs.replace(
            cell, outcome=msgspec.structs.replace(cell.outcome, wall_seconds=seconds[cell.concurrency])
        )
        for cell in cells
    )
    profile = make_profile(cells=timed)
    device = DeviceInfo(kind="cuda", name="MAKER X1", total_bytes=80 * 2**30, pci_id="10de:1111")
    return msgspec.structs.replace(
        profile, environment=msgspec.structs.replace(profile.environment, device=device), memory_model=None
    )


ACME = book("acme", Offer(card="x1-80gb", lot_size=1, price_7_days=420.0))
BULK = book("bulk", Offer(card="x1-80gb", lot_size=8, price_7_days=2400.0), Offer(card="x2-80gb", lot_size=2))


def test_each_seller_s_price_is_for_its_own_lots() -> None:
    first, second = document_of(ACME, BULK).cards
    lines = [
        (price.book, price.seller, price.term_days, price.lot_size, price.lots, price.idle_cards, price.total_price)
        for price in first.prices
        if price.total_price is not None
    ]
    assert lines == [("acme", "acme Ltd", 7, 1, 1, 0, 420.0), ("bulk", "bulk Ltd", 7, 8, 1, 7, 2400.0)]
    assert (first.lot_size, first.lots, first.idle_cards) == (1, 1, 0)
    # Nobody prices the second card: the first book's lines, blank.
    assert [(price.book, price.price_per_lot) for price in second.prices] == [("acme", None)] * 3


def test_lots_that_differ_are_said() -> None:
    assert any("sellers differ in their lots" in note for note in document_of(ACME, BULK).notes)
    assert not any("sellers differ" in note for note in document_of(ACME).notes)


def test_several_copies_are_priced_by_the_lots_they_need() -> None:
    """40 sequences of 4k tokens, 25,016 B each, are 4.1 GB; a card of 2 GiB holds a few, so several are needed."""
    small = make_card("x1-80gb", 2.5)
    priced = book("bulk", Offer(card="x1-80gb", lot_size=2, price_3_days=10.0))
    document = flows.fit(
        make_profile(), "p", Shape(4096, 4, 40), Catalog(cards=(small,)), make_offers(priced), (small,)
    )
    (row,) = document.cards
    assert row.cards_needed is not None
    assert row.cards_needed > 2
    lots = -(-row.cards_needed // 2)
    assert (row.prices[0].lots, row.prices[0].total_price) == (lots, 10.0 * lots)


def test_the_cheapest_is_named_in_each_currency_by_itself() -> None:
    dollars = book("usd", Offer(card="x2-80gb", lot_size=1, price_7_days=10.0), currency="USD")
    document = document_of(ACME, BULK, dollars)
    assert price_lines(document) == [
        "cheapest offer in EUR, 7 days: x1-80gb at 420.00 EUR (acme Ltd)",
        "cheapest offer in USD, 7 days: x2-80gb at 10.00 USD (usd Ltd)",
        "no EUR price for 3 and 30 days",
        "no USD price for 3 and 30 days",
        # Seven of a lot of eight, at 2,400.00.
        "x1-80gb: 7 of 8 cards paid for lie idle, 88% of the price (2,100.00 for 7 days, EUR, bulk Ltd)",
    ]
    assert "prices in EUR and USD are never added up or ranked against each other" in document.notes


def test_the_runner_up_says_by_how_much_it_lost() -> None:
    # 420 for the one lot of a card that x1 needs, 630 for the one that x2 needs: half as much again.
    both = book(
        "both",
        Offer(card="x1-80gb", lot_size=1, price_7_days=420.0),
        Offer(card="x2-80gb", lot_size=1, price_7_days=630.0),
    )
    assert price_lines(document_of(both))[0] == (
        "cheapest, 7 days: x1-80gb at 420.00 EUR (both Ltd); then x2-80gb at 630.00 (+50%)"
    )


def test_a_stale_or_odd_price_says_so_where_it_is_the_cheapest() -> None:
    """29 days of old prices: fresh. 74 days: stale. 420 for 7 days and 419 for 30 are odd: the longer costs less."""
    old = book(
        "old",
        Offer(card="x1-80gb", lot_size=1, price_7_days=420.0, price_30_days=419.0),
        Offer(card="x2-80gb", lot_size=1, price_7_days=630.0, price_30_days=800.0),
        days_ago=74,
    )
    document = document_of(old)
    assert price_lines(document) == [
        "cheapest, 7 days: x1-80gb at 420.00 EUR (old Ltd, stale); then x2-80gb at 630.00 (+50%, stale)",
        "cheapest, 30 days: x1-80gb at 419.00 EUR (old Ltd, stale, odd); then x2-80gb at 800.00 (stale)",
        "no EUR price for 3 days",
        "odd, ask before you count on it: x1-80gb, 30 days of old Ltd, 419.00 a lot (less than for 7 days)",
    ]
    (first, _) = price_rows(document)
    assert first[5] == "419.00, odd"
    cell = as_page(document).section("Prices").all("tbody")[0].all("tr")[0].all("td")[-1]
    assert cell.text == "419.00 EURodd: less than for 7 days"
    for sheet in ("summary", "prices", "cards"):
        cells = [one for line in as_workbook(document)[sheet].iter_rows(values_only=True) for one in line]
        assert "30 days: less than for 7 days" in cells


def test_the_summary_of_the_workbook_says_whose_prices_in_what_currency() -> None:
    """420 of acme against 2,400 of bulk, first in the list or not: both stand there with seller, currency and date."""
    dollars = book("usd", Offer(card="x2-80gb", lot_size=1, price_7_days=10.0), currency="USD", days_ago=74)
    for order in ((ACME, BULK, dollars), (dollars, BULK, ACME)):
        rows = list(as_workbook(document_of(*order), values=True)["summary"].iter_rows(values_only=True))
        heads = next(row for row in rows if "seller" in row)
        titles = ("card", "lots", "idle cards", "total, 7 days", "currency", "seller", "offered on", "stale")
        found = {tuple(row[heads.index(one)] for one in titles) for row in rows[rows.index(heads) + 1 :] if row[1]}
        today, then = datetime.datetime(2026, 3, 1), datetime.datetime(2025, 12, 17)
        assert found == {
            ("x1-80gb", 1, 0, 420.0, "EUR", "acme Ltd", today, None),
            ("x1-80gb", 1, 7, 2400.0, "EUR", "bulk Ltd", today, None),
            ("x2-80gb", 1, 0, 10.0, "USD", "usd Ltd", then, "stale"),
        }


def test_what_nobody_offers_is_never_the_cheapest_of_what_somebody_does() -> None:
    public = book("public", Offer(card="x1-80gb", lot_size=1, price_7_days=10.0), indicative=True)
    assert price_lines(document_of(ACME, BULK, public))[:2] == [
        "cheapest offer in EUR, 7 days: x1-80gb at 420.00 EUR (acme Ltd)",
        "cheapest public figure in EUR, 7 days: x1-80gb at 10.00 EUR (public Ltd)",
    ]


def test_one_price_is_not_called_the_cheapest_and_what_has_none_is_named() -> None:
    assert price_lines(document_of(ACME)) == [
        "no EUR price for 3 and 30 days",
        "no price, and so not compared: x2-80gb",
    ]
    assert price_lines(document_of()) == []
    assert price_rows(document_of()) == []


@pytest.mark.parametrize("order", [("x1-80gb", "x2-80gb", "x3-80gb"), ("x3-80gb", "x2-80gb", "x1-80gb")])
def test_of_equal_totals_fewer_cards_come_first_then_more_headroom_then_the_catalogs_order(
    order: tuple[str, ...],
) -> None:
    """600 for each: a lot of one card of 80 GiB, one of 40 GiB, and for a card of 2.5 GiB as many as it needs."""
    cards = {"x1-80gb": CARD, "x2-80gb": make_card("x2-80gb", 40.0), "x3-80gb": make_card("x3-80gb", 2.5)}
    offers = [Offer(card=name, lot_size=1, price_7_days=600.0) for name in ("x1-80gb", "x2-80gb")]
    lots_of_many = Offer(card="x3-80gb", lot_size=1_000, price_7_days=600.0)
    catalog = Catalog(cards=tuple(cards[name] for name in order))
    document = flows.fit(
        make_profile(), "p", Shape(4096, 4, 40), catalog, make_offers(book("acme", *offers, lots_of_many))
    )
    taken = {row.card: row.cards_needed for row in document.cards}
    assert (taken["x1-80gb"], taken["x2-80gb"]) == (1, 1)
    assert (taken["x3-80gb"] or 0) > 1
    lines = sorted(lines_of(document), key=lambda line: cheapness(line, 7))
    assert [line.card for line in lines] == ["x1-80gb", "x2-80gb", "x3-80gb"]
    assert price_lines(document)[0] == (
        "cheapest, 7 days: x1-80gb at 600.00 EUR (acme Ltd); then x2-80gb at 600.00 (+0%)"
    )


def test_alike_in_all_the_catalogs_order_stays() -> None:
    same = book("acme", *(Offer(card=name, lot_size=1, price_7_days=600.0) for name in ("x1-80gb", "x2-80gb")))
    for cards in ((CARD, OTHER), (OTHER, CARD)):
        document = flows.fit(make_profile(), "p", SHAPE, Catalog(cards=cards), make_offers(same))
        assert price_lines(document)[0].startswith(f"cheapest, 7 days: {cards[0].id} at 600.00 EUR")


def test_a_term_that_a_currency_has_no_price_for_says_so() -> None:
    """EUR for 7 days, USD for 7 and 30 days: of 30 days only USD has a cheapest."""
    dollars = book(
        "usd", Offer(card="x2-80gb", lot_size=1, price_7_days=10.0, price_30_days=40.0), currency="USD", indicative=True
    )
    lines = lines_of(document_of(ACME, dollars))
    assert list(term_words(lines, 30)) == [
        "cheapest public figure in USD, 30 days: x2-80gb at 40.00 USD (usd Ltd)",
        "no EUR price for 30 days",
    ]
    assert list(term_words(lines, 3)) == ["no EUR price for 3 days", "no USD public figure for 3 days"]
    assert [words for words in term_words(lines, 7) if words.startswith("no ")] == []
    assert list(term_words(lines_of(document_of()), 7)) == []


def test_a_card_that_nobody_prices_has_no_seller_and_no_currency_in_any_format() -> None:
    """acme prices x1-80gb alone, and 74 days ago: nothing of that is said of x2-80gb."""
    old = book("acme", Offer(card="x1-80gb", lot_size=1, price_7_days=420.0), days_ago=74, indicative=True)
    document = document_of(old)
    unpriced = document.cards[1]
    assert {(price.seller, price.currency, price.offered_on) for price in unpriced.prices} == {(None, None, None)}
    found = {name: load_format(name).render_fit(document) for name in ("csv", "json", "xlsx", "html", "markdown")}
    row = list(csv.DictReader(io.StringIO(found["csv"].decode())))[1]
    assert row["card"] == "x2-80gb"
    assert {row[key] for key in ("seller", "currency", "offered_on", "price_age_days", "price_notes")} == {""}
    priced, blank = json.loads(found["json"])["cards"]
    assert {(one["seller"], one["currency"]) for one in priced["prices"]} == {("acme Ltd", "EUR")}
    assert {(one["seller"], one["currency"]) for one in blank["prices"]} == {(None, None)}
    workbook = openpyxl.load_workbook(io.BytesIO(found["xlsx"]))
    for name in ("summary", "prices", "cards"):
        cells = [[cell.value for cell in line] for line in workbook[name].iter_rows() if line[0].value == "x2-80gb"]
        for values in cells:
            assert not {"acme Ltd", "EUR", "public figures", "stale"} & set(values), name
    assert [line for line in found["markdown"].decode().splitlines() if "x2-80gb" in line and "acme" in line] == []
    rows = as_page(document).section("Prices").all("tbody")[0].all("tr")
    assert [line.all("th")[0].text for line in rows] == ["x1-80gb"]


def test_a_stale_price_is_flagged_in_every_format() -> None:
    """1 March less 74 days is 17 December of the year before: 31 - 17 + 31 + 28 + 1 = 74."""
    old = book("acme", Offer(card="x1-80gb", lot_size=1, price_7_days=420.0), days_ago=74)
    said = "prices of acme are 74 days old (2025-12-17): ask again"
    document = document_of(old)
    assert said in document.notes
    found = {name: load_format(name).render_fit(document) for name in FORMATS}
    workbook = openpyxl.load_workbook(io.BytesIO(found.pop("xlsx")))
    in_cells = [cell.value for sheet in workbook for row in sheet.iter_rows() for cell in row]
    assert said in in_cells
    for name in ("csv", "json", "markdown", "table"):
        assert said in found[name].decode(), name
    row = next(csv.DictReader(io.StringIO(found["csv"].decode())))
    assert (row["offered_on"], row["price_age_days"], row["price_notes"]) == ("2025-12-17", "74", said)
    (stored,) = json.loads(found["json"])["offer_books"]
    assert (stored["offered_on"], stored["age_days"], stored["stale"]) == ("2025-12-17", 74, True)
    assert "2025-12-17, stale" in found["table"].decode()
    assert "2025-12-17, stale" in found["html"].decode()
    assert "stale" in in_cells
    assert datetime.datetime(2025, 12, 17) in in_cells


def test_a_price_of_thirty_days_is_not_flagged_and_one_of_tomorrow_is() -> None:
    for days_ago, said in ((30, None), (-1, "prices of acme are dated 2026-03-02, a day still to come")):
        aged = book("acme", Offer(card="x1-80gb", lot_size=1, price_7_days=420.0), days_ago=days_ago)
        flagged = [note for note in document_of(aged).notes if "prices of acme" in note]
        assert bool(flagged) == (said is not None)
        assert said is None or flagged[0].startswith(said)


def test_a_book_without_a_price_for_these_cards_says_nothing() -> None:
    elsewhere = book("acme", Offer(card="x9", lot_size=1, price_7_days=1.0), days_ago=99, note="no VAT")
    assert not any("acme" in note for note in document_of(elsewhere).notes)


def test_csv_has_a_row_for_each_seller_of_a_card() -> None:
    text = load_format("csv").render_fit(document_of(ACME, BULK)).decode()
    rows = [
        (row["card"], row["seller"], row["lots"], row["total_price_7_days"])
        for row in csv.DictReader(io.StringIO(text))
    ]
    assert rows == [
        ("x1-80gb", "acme Ltd", "1", "420.0"),
        ("x1-80gb", "bulk Ltd", "1", "2400.0"),
        ("x2-80gb", "", "1", ""),
    ]


def test_csv_has_a_row_for_each_arrangement_and_of_those_for_each_seller(tmp_path: Path) -> None:
    """70.6 x 10^9 parameters of two bytes are 131 GiB: several cards of 80 GiB."""
    model = tmp_path / "llama-70b"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(CONFIGS["meta-llama/Meta-Llama-3.1-70B"]))
    profile = flows.estimate(EstimateRequest(model=str(model), context_tokens=8192, concurrency=8))
    card = make_card("x1-80gb")
    single = book("acme", Offer(card="x1-80gb", lot_size=1, price_7_days=100.0))
    eights = book("bulk", Offer(card="x1-80gb", lot_size=8, price_7_days=720.0))
    document = flows.fit(profile, "p", Shape(8192, 1, 8), Catalog(cards=(card,)), make_offers(single, eights), (card,))
    plans = document.cards[0].arrangements
    assert {one.arrangement for one in plans} == {"sharded", "pipeline"}
    text = load_format("csv").render_fit(document).decode()
    found = [
        [row[key] for key in ("arrangement", "seller", "cards_needed", "lots", "idle_cards", "total_price_7_days")]
        for row in csv.DictReader(io.StringIO(text))
    ]
    expected = []
    for one in plans:
        cards = one.cards_needed
        assert cards <= 8
        expected += [
            [one.arrangement, "acme Ltd", str(cards), str(cards), "0", str(100.0 * cards)],
            [one.arrangement, "bulk Ltd", str(cards), "1", str(8 - cards), "720.0"],
        ]
    assert found == expected
    lines = as_page(document).section("Prices").all("tbody")[0].all("tr")
    assert [line.all("td")[4].text for line in lines] == [
        shown for one in plans for shown in (f"{100 * one.cards_needed:,.2f} EUR100.00 EUR a lot", "720.00 EUR")
    ], "what a lot costs stands below the total of several"


def test_the_page_and_the_workbook_have_a_line_for_each_seller_with_its_own_lots() -> None:
    document = document_of(BULK, ACME)
    lines = as_page(document).section("Prices").all("tbody")[0].all("tr")
    shown = [[node.text for node in line.children if isinstance(node, Node)] for line in lines]
    assert [(line[0], line[2], line[3], line[5]) for line in shown] == [
        ("x1-80gb", "1 x 8 (7 idle)", "bulk Ltd2026-03-01", "2,400.00 EUR"),
        ("x1-80gb", "1", "acme Ltd2026-03-01", "420.00 EUR"),
    ]
    heads, *rows = as_workbook(document, values=True)["prices"].iter_rows(min_row=4, values_only=True)
    titles = ("card", "lot size (cards)", "lots", "idle cards", "seller", "price of a lot, 7 days", "total, 7 days")
    assert [[row[heads.index(one)] for one in titles] for row in rows] == [
        ["x1-80gb", 8, 1, 7, "bulk Ltd", 2400, 2400],
        ["x1-80gb", 1, 1, 0, "acme Ltd", 420, 420],
        ["x2-80gb", 2, 1, 1, None, None, None],
    ]
    cards = as_workbook(document, values=True)["cards"]
    titles = [head.value for head in cards[1]]
    assert [cards[2][titles.index(one)].value for one in ("lots", "idle cards", "price, 7 days")] == [1, 7, 2400]


def test_the_page_has_the_cheapest_and_the_cost_of_work() -> None:
    section = as_page(document_of(ACME, BULK, profile=card_profile())).section("Prices")
    said = [node.text for node in section.all("li")]
    assert said == price_lines(document_of(ACME, BULK, profile=card_profile()))
    _, costs = section.all("table")
    assert [node.text for node in costs.all("tbody")[0].all("td")][:3] == ["acme Ltd", "7 days", "21.70"]


def test_speed_stands_at_the_arrangement_it_was_measured_of_alone() -> None:
    first, *_ = document_of(ACME, profile=card_profile()).cards
    assert first.throughput is not None
    other = msgspec.structs.replace(first.arrangements[0], arrangement="replicas", cards_needed=2, prices=())
    row = msgspec.structs.replace(first, arrangements=(*first.arrangements, other))
    one, two = by_arrangement(row)
    assert (one.arrangement, one.throughput, one.prices) == ("single", first.throughput, first.prices)
    assert (two.arrangement, two.throughput, two.cards_needed) == ("replicas", None, 2)


def test_speed_and_cost_stand_at_the_measured_card_alone() -> None:
    """8 inputs a second for 7 days are 4,838,400, and 4 tokens each 19,353,600: for 420.00, a thousand inputs cost
    420 / 4838.4 = 0.086806, and a million tokens 420 / 19.3536 = 21.7014."""
    first, second = document_of(ACME, profile=card_profile()).cards
    assert first.throughput is not None
    assert first.throughput.inputs_per_second == pytest.approx(8.0)
    assert first.throughput.generated_tokens_per_second == pytest.approx(32.0)
    assert (first.throughput.evidence, first.throughput.lower_bound) == (Evidence.MEASURED, False)
    (priced,) = [price for price in first.prices if price.total_price is not None]
    assert priced.cost_per_thousand_inputs == pytest.approx(420 / 4838.4)
    assert priced.cost_per_million_tokens == pytest.approx(420 / 19.3536)
    blank = [price for price in first.prices if price.total_price is None]
    assert all(price.cost_per_million_tokens is None for price in blank)
    assert second.throughput is None
    assert all(price.cost_per_thousand_inputs is None for price in second.prices)
    assert cost_rows(document_of(ACME, profile=card_profile())) == [
        ["x1-80gb", "acme Ltd", "7 days", "21.70", "0.08681", "EUR", "measured"]
    ]


def test_idle_cards_of_a_lot_are_paid_by_the_work() -> None:
    (line,) = [price for price in document_of(BULK, profile=card_profile()).cards[0].prices if price.total_price]
    assert line.idle_cards == 7
    assert line.cost_per_thousand_inputs == pytest.approx(2400 / 4838.4)


def test_a_scenario_without_a_timed_cell_says_so_at_the_measured_card() -> None:
    first, second = document_of(ACME, profile=msgspec.structs.replace(card_profile(), memory_model=None)).cards
    assert not any("no throughput" in remark for remark in first.remarks)
    profile = msgspec.structs.replace(card_profile(), memory_model=make_profile().memory_model)
    first, second = document_of(ACME, profile=profile, shape=Shape(1024, 4, 4)).cards
    assert any("no timed cell has 1k tokens of context or more" in remark for remark in first.remarks)
    assert not any("no throughput" in remark for remark in second.remarks)


def test_a_cpu_and_a_simulation_have_no_speed_to_tell() -> None:
    for profile in (make_profile(), msgspec.structs.replace(card_profile(), evidence=Evidence.SIMULATED)):
        assert [row.throughput for row in document_of(ACME, profile=profile).cards] == [None, None]
