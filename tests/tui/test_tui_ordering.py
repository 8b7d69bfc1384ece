"""What can be ordered: lines, their order, and the form; all without Textual."""

from __future__ import annotations

import datetime

import pytest
from builders import make_card, make_layout, make_offers, make_profile
from tui_builders import CATALOG, plain

from gpufit import flows
from gpufit.advice.plan import Ask, AskError
from gpufit.advice.terms import Overheads, Volume
from gpufit.advice.verdict import Verdict
from gpufit.catalog.offers import Offer, OfferBook
from gpufit.memory.terms import Shape
from gpufit.report.cells import SYMBOLS
from gpufit.report.document import FitDocument
from gpufit.report.plan_text import change_label
from gpufit.report.plans import arrangement_words
from gpufit.tui.order_form import FIELDS, first_texts, in_fields, read_ask
from gpufit.tui.ordering import Ordering, OrderSort, move, next_sort, next_term, order_lines, place_of, put
from gpufit.tui.renderables import order
from gpufit.tui.state import Event
from gpufit.units import format_size

CARDS = ("l4-24gb", "l40s-48gb", "h100-sxm-80gb")
DAY = datetime.date(2026, 11, 30)


def book(name: str, currency: str, prices: dict[str, float | None], **fields: object) -> OfferBook:
    """A week of each card, a card a lot."""
    offers = tuple(
        Offer(card=card, lot_size=1, price_7_days=price, currency=currency) for card, price in prices.items()
    )
    return OfferBook(name=name, seller=name.title(), currency=currency, date=DAY, offers=offers, **fields)  # type: ignore[arg-type]


EURO = book("acme", "EUR", {"l4-24gb": 75.0, "l40s-48gb": 60.0})
DOLLAR = book("other", "USD", {"h100-sxm-80gb": 5.0})
PUBLIC = book("public", "EUR", {"l4-24gb": 1.0}, indicative=True)


def document(*books: OfferBook) -> FitDocument:
    """The default profile on three cards, each of which holds it alone."""
    cards = tuple(next(one for one in CATALOG.cards if one.id == name) for name in CARDS)
    return flows.fit(make_profile(), "p.json", Shape(512, 4, 4), CATALOG, make_offers(*books, today=DAY), cards)


def listed(found: FitDocument, ordering: Ordering) -> list[tuple[str, str | None, float | None]]:
    lines = order_lines(found, found.cards, ordering)
    return [(line.row.card, line.book.name if line.book else None, line.total(7)) for line in lines]


WEEK = Ordering(term_days=7)
CHEAPEST = Ordering(term_days=7, sort=OrderSort.TOTAL)


class TestLines:
    def test_a_card_has_a_line_for_each_seller_and_keeps_its_place(self) -> None:
        assert listed(document(EURO, DOLLAR, PUBLIC), WEEK) == [
            ("l4-24gb", "acme", 75.0),
            ("l4-24gb", "public", 1.0),
            ("l40s-48gb", "acme", 60.0),
            ("h100-sxm-80gb", "other", 5.0),
        ]

    def test_currencies_are_never_ranked_together_nor_public_figures_with_offers(self) -> None:
        # 5 USD is less than 60 EUR as a number, and 1 EUR that nobody asks is less than both.
        assert listed(document(EURO, DOLLAR, PUBLIC), CHEAPEST) == [
            ("l40s-48gb", "acme", 60.0),
            ("l4-24gb", "acme", 75.0),
            ("h100-sxm-80gb", "other", 5.0),
            ("l4-24gb", "public", 1.0),
        ]

    def test_a_blank_price_is_no_low_price(self) -> None:
        found = document(book("acme", "EUR", {"l4-24gb": None, "l40s-48gb": 60.0, "h100-sxm-80gb": 50.0}))
        assert [total for _, _, total in listed(found, CHEAPEST)] == [50.0, 60.0, None]
        # Nothing is priced for three days.
        assert {line.total(3) for line in order_lines(found, found.cards, CHEAPEST)} == {None}

    def test_every_way_to_take_a_card_has_a_line_fewest_cards_first(self) -> None:
        shape = Shape(30_000, 4, 64)
        cards = [card for card in CATALOG.cards if card.id == "l4-24gb"]
        profile = make_profile(layout=make_layout())
        found = flows.fit(profile, "p.json", shape, CATALOG, make_offers(EURO, today=DAY), cards)
        lines = order_lines(found, found.cards, WEEK)
        plans = found.cards[0].arrangements
        assert len(plans) > 1
        assert [(line.plan.cards_needed if line.plan else None) for line in lines] == [
            plan.cards_needed for plan in plans
        ]

    def test_what_does_not_serve_stands_last(self) -> None:
        shape = Shape(30_000, 4, 1)
        small = make_card("small-1gb", 1.0)
        cards = (small, *(card for card in CATALOG.cards if card.id == "l40s-48gb"))
        found = flows.fit(make_profile(), "p.json", shape, CATALOG, make_offers(EURO, today=DAY), cards)
        lines = order_lines(found, found.cards, WEEK)
        assert [line.plan is None for line in lines] == [False, True]
        assert lines[-1].row.card == "small-1gb"
        assert lines[-1].total(7) is None

    def test_of_equal_totals_the_first_is_the_headlines_cheapest_whatever_the_order_of_the_cards(self) -> None:
        """60 for each, a card each: of 24, 48 and 80 GB the last has the most headroom."""
        found = document(book("acme", "EUR", dict.fromkeys(CARDS, 60.0)))
        expected = ["h100-sxm-80gb", "l40s-48gb", "l4-24gb"]
        for rows in (found.cards, found.cards[::-1]):
            lines = order_lines(found, rows, CHEAPEST)
            assert [line.row.card for line in lines] == expected
            said = order.summary(found, lines, CHEAPEST).plain.split("\n")[1]
            assert said == "cheapest, 7 days: h100-sxm-80gb at 60.00 EUR (Acme); then l40s-48gb at 60.00 (+0%)"
            assert order.summary(found, order_lines(found, rows, WEEK), WEEK).plain.split("\n")[1] == said

    def test_a_term_without_a_price_is_said(self) -> None:
        found = document(EURO, DOLLAR)
        said = order.summary(found, order_lines(found, found.cards, Ordering(term_days=30)), Ordering(term_days=30))
        assert said.plain.split("\n")[1:] == ["no EUR price for 30 days", "no USD price for 30 days"]

    def test_the_way_a_card_is_taken_has_a_verdict_capacity_and_headroom_of_its_own(self) -> None:
        """Two L4 hold what one does not: the headroom is the capacity less what each of them needs."""
        cards = [card for card in CATALOG.cards if card.id == "l4-24gb"]
        profile = make_profile(layout=make_layout())
        found = flows.fit(profile, "p.json", Shape(30_000, 4, 64), CATALOG, make_offers(EURO, today=DAY), cards)
        line = order_lines(found, found.cards, WEEK)[0]
        assert line.row.verdict is not Verdict.FITS
        assert line.plan is not None
        assert line.row.capacity_bytes is not None
        text = plain(order.details(found, line), 120)
        first, second, third = text.splitlines()[:3]
        assert first.startswith("l4-24gb")
        assert second.rstrip() == f"✓ fits: {arrangement_words(line.plan)}"
        assert third.startswith("lots")
        # 75 EUR a lot of one card; only 7 days are priced.
        total = f"{75 * line.plan.cards_needed:,.2f}"
        facts = {one[:14].strip(): one[14:].strip() for one in text.splitlines()[2:]}
        assert facts["total, EUR"] == f"3 days - · 7 days {total} · 30 days -"
        assert facts["a lot, EUR"] == "3 days - · 7 days 75.00 · 30 days -"
        assert facts["capacity"] == format_size(line.row.capacity_bytes)
        of = {
            name: format_size(line.row.capacity_bytes - needed)
            for name, needed in (
                ("point", line.plan.need_bytes),
                ("least", line.plan.need_upper_bytes),
                ("most", line.plan.need_lower_bytes),
            )
        }
        assert facts["headroom"] == f"{of['point']} ({of['least']} to {of['most']})"
        said = [one[14:].strip() for one in text.splitlines() if one.startswith("one card ")]
        assert said[0] == SYMBOLS[line.row.verdict]

    def test_fewer_cards_are_not_called_one_card(self) -> None:
        cards = [card for card in CATALOG.cards if card.id == "l4-24gb"]
        profile = make_profile(layout=make_layout())
        found = flows.fit(profile, "p.json", Shape(30_000, 4, 64), CATALOG, make_offers(EURO, today=DAY), cards)
        row = found.cards[0]
        fewer = [change for change in row.changes if change.cards_paid is not None]
        one = [change for change in row.changes if change.cards_paid is None]
        assert {change_label(row, change) for change in fewer} <= {"fewer cards"}
        assert {change_label(row, change) for change in one} <= {"one card"}
        assert fewer
        lines = plain(order.details(found, order_lines(found, [row], WEEK)[0]), 300).splitlines()
        for change in row.changes:
            (said,) = [line for line in lines if change.words in line]
            assert said.startswith("one card" if change.cards_paid is None else "fewer cards")


class TestKeys:
    def test_terms_and_orders_go_round(self) -> None:
        assert [next_term(Ordering(term_days=days)).term_days for days in (3, 7, 30)] == [7, 30, 3]
        once = next_sort(Ordering(cursor=5))
        assert (once.sort, once.cursor) == (OrderSort.TOTAL, 0)
        assert next_sort(once).sort is OrderSort.CARDS

    def test_the_cursor_stays_in_the_list(self) -> None:
        assert move(Ordering(cursor=2), Event.PAGE_DOWN, 10, 5).cursor == 4
        assert put(Ordering(), 9, 5).cursor == 4
        assert put(Ordering(cursor=3), 3, 0).cursor == 0

    def test_a_cards_first_line(self) -> None:
        lines = order_lines(found := document(EURO, PUBLIC), found.cards, WEEK)
        assert place_of(lines, "l40s-48gb") == 2
        assert place_of(lines, "nothing") == 0


class TestForm:
    def test_what_stands_there_at_first_is_what_the_command_line_takes(self) -> None:
        assert read_ask(first_texts(7)) == Ask(term_days=7)

    def test_an_emptied_field_asks_nothing(self) -> None:
        assert read_ask({one.name: " " for one in FIELDS}) == Ask()

    def test_reads_what_was_typed(self) -> None:
        texts = first_texts(3) | {
            "term": "30", "inputs": "1k", "tokens": "0.2M", "workers": "3", "piece-inputs": "50",
            "setup-hours": "1.5", "checks-hours": "0", "export-hours": "4", "busy-share": "0.5",
        }  # fmt: skip
        overheads = Overheads(setup_hours=1.5, checks_hours=0, export_hours=4, busy_share=0.5)
        assert read_ask(texts) == Ask(30, Volume(1000, 200_000), 3, 50, overheads)

    def test_what_the_command_line_calls_options_goes_by_the_names_of_fields(self) -> None:
        assert in_fields("--workers 3: lower --concurrency, or leave --workers out") == (
            "'workers' 3: lower 'at once', or leave 'workers' out"
        )
        assert in_fields("name one with --term (--inputs N)") == "name one with 'term, days' ('inputs' N)"
        assert in_fields("--workers-of-old, gpufit order --json") == "--workers-of-old, gpufit order --json"

    @pytest.mark.parametrize(
        ("name", "text", "said"),
        [
            ("term", "5", "term, days must be 3, 7 or 30 days, not '5'"),
            ("inputs", "many", "inputs must be a whole number of at least 1"),
            ("workers", "0", "workers must be a whole number of at least 1"),
            ("setup-hours", "-1", "set-up, hours must be hours from 0"),
            ("busy-share", "nan", "busy share must be above 0"),
        ],
    )
    def test_what_is_not_of_its_kind_is_named(self, name: str, text: str, said: str) -> None:
        with pytest.raises(AskError) as raised:
            read_ask(first_texts(7) | {name: text})
        assert str(raised.value).startswith(said)
        assert raised.value.option == name
