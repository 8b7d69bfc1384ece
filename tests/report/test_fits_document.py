"""The document of several questions, over rows with every hard value."""

from __future__ import annotations

import csv
import io
from typing import Any

import msgspec
import pytest
from report_builders import DOES_NOT_FIT, FITS, TOO_CLOSE, UNKNOWN, hard_document

from gpufit.profile.evidence import Evidence
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.fits_document import FitsDocument, build_fits_document, named
from gpufit.report.fits_text import all_in_turn, matrices, matrices_in_cards, to_order, verdict_lines
from gpufit.report.prices import Price
from gpufit.report.registry import FORMATS, load_format


def asked(name: str | None, *cards: CardRow, profile: str = "profiles/a.json", **changes: Any) -> FitDocument:
    return msgspec.structs.replace(named(hard_document(), name), cards=cards, profile=profile, **changes)


def row(row: CardRow, card: str, **changes: Any) -> CardRow:
    return msgspec.structs.replace(row, card=card, **changes)


def test_a_card_for_all_is_sized_by_the_scenario_that_needs_most() -> None:
    chat = asked("chat", row(FITS, "x"), row(FITS, "y"), row(FITS, "z"))
    rag = asked("rag", row(TOO_CLOSE, "x"), row(FITS, "y", need_upper_bytes=1), row(DOES_NOT_FIT, "z"))
    (answer,) = build_fits_document([chat, rag]).profiles
    x, y, z = answer.cards_for_all
    # Three copies in lots of two are two lots with one card idle.
    assert (x.fits_every_scenario, x.tightest_scenario, x.cards_needed, x.lots, x.idle_cards) == (False, "rag", 3, 2, 1)
    # One card serves both; chat's upper bound is the higher.
    assert (y.fits_every_scenario, y.tightest_scenario, y.cards_needed, y.lots) == (True, "chat", 1, 1)
    assert (z.fits_every_scenario, z.tightest_scenario, z.cards_needed, z.lots) == (False, "rag", None, None)
    assert [card.card for card in answer.fitting] == ["y"]


def test_the_evidence_is_the_weakest() -> None:
    strong, weak = asked("a", FITS, evidence=Evidence.SCALED), asked("b", FITS, evidence=Evidence.ASSUMED)
    assert build_fits_document([strong, weak]).evidence is Evidence.ASSUMED
    assert build_fits_document([strong, asked("b", FITS, evidence=Evidence.COMPUTED)]).evidence is Evidence.SCALED


def test_profiles_of_one_file_name_are_told_apart_by_their_folders() -> None:
    documents = [asked("s", FITS, profile=where) for where in ("a/x.json", "b/x.json", "c/y.json", "org/model-1.5")]
    labels = [answer.label for answer in build_fits_document(documents).profiles]
    assert labels == ["a/x.json", "b/x.json", "y", "model-1.5"]


def test_the_column_of_what_decides_is_there_where_that_differs() -> None:
    same = build_fits_document([asked("chat", row(FITS, "x")), asked("rag", row(TOO_CLOSE, "x"))])
    (matrix,) = matrices(same)
    assert matrix.headers == ("card", "chat", "rag", "all, in turn")
    assert matrix.rows == (("x", "✓ 1 x 2 (1 idle)", "≈ 2 x 2 (1 idle, replicas)", "2 x 2 (1 idle)"),)
    assert "rag decides on every card" in verdict_lines(same)
    differing = build_fits_document(
        [asked("chat", row(FITS, "x"), row(TOO_CLOSE, "y")), asked("rag", row(TOO_CLOSE, "x"), row(FITS, "y"))]
    )
    (matrix,) = matrices(differing)
    assert matrix.headers[-1] == "decided by"
    assert [line[-1] for line in matrix.rows] == ["rag", "chat"]


def sold_by(name: str, currency: str, lot_size: int, cards: int, a_lot: float) -> tuple[Price, ...]:
    """A seller's price of 7 days, and what so many cards come to."""
    lots = -(-cards // lot_size)
    return tuple(
        Price(
            term_days=days,
            currency=currency,
            price_per_lot=a_lot if days == 7 else None,
            total_price=a_lot * lots if days == 7 else None,
            book=name,
            seller=name,
            lot_size=lot_size,
            lots=lots,
            idle_cards=lots * lot_size - cards,
        )
        for days in (3, 7, 30)
    )


def two_sellers() -> FitsDocument:
    """One card serves chat and three serve rag: bulk sells eight a lot, pair two a lot, and abroad one in USD."""

    def of(cards: int) -> tuple[Price, ...]:
        return (
            *sold_by("bulk", "EUR", 8, cards, 800.0),
            *sold_by("pair", "EUR", 2, cards, 150.0),
            *sold_by("abroad", "USD", 1, cards, 90.0),
        )

    chat = asked("chat", row(FITS, "x", prices=of(1), lot_size=8, lots=1, idle_cards=7))
    rag = asked("rag", row(TOO_CLOSE, "x", prices=of(3), lot_size=8, lots=1, idle_cards=5))
    return build_fits_document([chat, rag])


def test_the_matrix_has_the_lots_of_each_seller_where_they_differ() -> None:
    (matrix,) = matrices(two_sellers())
    assert matrix.rows == (
        (
            "x",
            "✓ 1 x 8 (7 idle) or 1 x 2 (1 idle) or 1",
            "≈ 1 x 8 (5 idle) or 2 x 2 (1 idle) or 3 (replicas)",
            "1 x 8 (5 idle) or 2 x 2 (1 idle) or 3",
        ),
    )
    (in_cards,) = matrices_in_cards(two_sellers())
    assert in_cards.rows == (("x", "✓ 1", "≈ 3 (replicas)", "3"),)


def test_all_scenarios_in_turn_have_a_total_of_each_seller() -> None:
    """Three cards: one lot of eight at 800, two lots of two at 150 each, three single ones at 90 USD."""
    (orders,) = all_in_turn(two_sellers())
    found = [(line.seller, line.lots, line.of(7).total_price) for line in orders.lines]  # type: ignore[union-attr]
    assert found == [("bulk", "1 x 8 (5 idle)", 800.0), ("pair", "2 x 2 (1 idle)", 300.0), ("abroad", "3", 270.0)]
    for name in ("table", "markdown", "html"):
        text = load_format(name).render_fits(two_sellers()).decode()
        assert "cheapest offer in EUR, 7 days: x at 300.00 EUR (pair)" in text
        assert "cheapest offer in USD, 7 days: x at 270.00 USD (abroad)" in text


def test_what_work_costs_is_left_to_the_scenarios() -> None:
    """A card for all has totals and no cost of work: that depends on the scenario."""
    (answer,) = build_fits_document([asked("chat", row(FITS, "x")), asked("rag", row(FITS, "x"))]).profiles
    costs = [price.cost_per_million_tokens for price in FITS.prices]
    assert any(cost is not None for cost in costs)
    (card,) = answer.cards_for_all
    assert [price.total_price for price in card.prices] == [price.total_price for price in FITS.prices]
    assert {price.cost_per_million_tokens for price in card.prices} == {None}


def test_one_scenario_has_no_turns() -> None:
    one = build_fits_document([asked("chat", row(FITS, "x"), profile=where) for where in ("a.json", "b.json")])
    assert all_in_turn(one) == []
    assert [orders.title for orders in to_order(one)] == ["a: to order", "b: to order"]


@pytest.mark.parametrize(
    ("fitting", "said"),
    [
        ("", "no card (0 of 4)"),
        ("a", "a (1 of 4)"),
        ("ab", "a, b (2 of 4)"),
        ("abd", "all but c (3 of 4)"),
        ("abcd", "each card (4 of 4)"),
    ],
)
def test_what_fits_is_named_in_the_shorter_way(fitting: str, said: str) -> None:
    cards = [row(FITS if card in fitting else UNKNOWN, card) for card in "abcd"]
    document = build_fits_document([asked("one", *cards), asked("two", *cards)])
    assert verdict_lines(document)[0] == f"every scenario fits: {said}"


def hard_questions() -> FitsDocument:
    cards = (FITS, DOES_NOT_FIT, UNKNOWN, TOO_CLOSE)
    return build_fits_document(
        [
            asked(name, *cards, profile=profile)
            for profile in ("profiles/=1+1|ü.json", "\x1b[31mred")
            for name in ("=größer|✓", "-2")
        ]
    )


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"xlsx"}))
def test_hard_names_harm_no_text_format(name: str) -> None:
    text = load_format(name).render_fits(hard_questions()).decode()
    assert "\x1b" not in text
    assert "größer" in text
    if name == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        assert len(rows) == 1 + 2 * 2 * (4 + 2)  # the last card has three arrangements
        assert {len(line) for line in rows} == {len(rows[0])}
        assert {line[1] for line in rows[1:]} == {"'=größer|✓", "'-2"}
    if name == "markdown":
        lines = text.splitlines()
        first = next(number for number, line in enumerate(lines) if line.startswith("| card"))
        matrix = [line for line in lines[first : first + 6] if line.startswith("|")]
        columns = {line.replace("\\|", "").count("|") for line in matrix}
        assert columns == {5 if "decided" not in matrix[0] else 6}


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_same_questions_give_the_same_bytes(name: str) -> None:
    render = load_format(name).render_fits
    assert render(hard_questions()) == render(hard_questions())


def test_json_reads_back_as_the_document() -> None:
    rendered = load_format("json").render_fits(hard_questions())
    assert msgspec.json.decode(rendered, type=FitsDocument) == hard_questions()
