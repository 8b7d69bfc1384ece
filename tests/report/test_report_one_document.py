"""One document feeds all: each format, read back by itself, says the same of every card."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from report_builders import hard_document
from report_readers import (
    BOOK,
    Node,
    as_csv,
    as_json,
    as_page,
    as_workbook,
    divided_document,
    real_document,
    served_document,
)

from gpufit.report.cells import SYMBOLS
from gpufit.report.columns import screen_columns_of
from gpufit.report.document import FitDocument
from gpufit.report.plan_text import MOST_CARDS
from gpufit.report.plans import ArrangementFigures, arrangement_words
from gpufit.report.registry import load_format
from gpufit.units import format_size

GIB = 2**30

Figures = dict[str, object]
"""What a format says of one card, as its column's key -> value; sizes in bytes."""


def from_json(document: FitDocument) -> list[Figures]:
    return as_json(document)["cards"]  # type: ignore[no-any-return]


def from_csv(document: FitDocument) -> list[Figures]:
    """The first row of each card: that of its best arrangement."""
    rows = {row["card"]: row for row in reversed(as_csv(document))}
    return [{key: _number(text) for key, text in row.items()} for row in reversed(rows.values())]


def _number(text: str) -> object:
    if not text:
        return None
    return int(text) if re.fullmatch(r"-?\d+", text) else text.removeprefix("'")


def from_workbook(document: FitDocument) -> list[Figures]:
    keys = list(as_csv(document)[0])
    _, *rows = as_workbook(document, values=True)["cards"].iter_rows(values_only=True)
    found = [dict(zip(keys, row, strict=True)) for row in rows]
    return [
        {key: value * GIB if key.endswith("_bytes") and value is not None else value for key, value in row.items()}
        for row in found
    ]


def from_page(document: FitDocument) -> list[Figures]:
    keys = [column.key for column in screen_columns_of(document)][1:]
    found = []
    for line in as_page(document).section("Verdicts").all("tbody")[0].all("tr"):
        exact = {}
        for key, cell in zip(keys, line.all("td"), strict=True):
            values = [node.attributes["value"] for node in cell.all("data")]
            exact[key] = _number(values[0] if values else cell.text.removesuffix(" B"))
        (card,) = line.all("th")
        found.append(exact | {"card": card.children[0]})
    return found


def documents(folder: Path) -> list[FitDocument]:
    return [hard_document(), real_document(BOOK), served_document(folder, "h100-sxm", "b200", "t4", "h100-sxm-64gb")]


@pytest.mark.parametrize("read", [from_csv, from_workbook, from_page])
def test_machine_readable_formats_say_what_the_json_says(
    read: Callable[[FitDocument], list[Figures]], tmp_path: Path
) -> None:
    for document in documents(tmp_path):
        expected, found = from_json(document), read(document)
        assert [row["card"] for row in found] == [row["card"] for row in expected]
        for shown, row in zip(found, expected, strict=True):
            for key in ("capacity_bytes", "need_bytes", "need_upper_bytes", "headroom_bytes", "max_concurrency"):
                if key not in shown:  # a page of a server's starts shows other columns
                    assert document.serves
                    continue
                if row[key] is None:
                    assert shown[key] is None
                else:
                    assert shown[key] == pytest.approx(row[key], rel=1e-15)
            assert shown["evidence"] == row["evidence"]


@pytest.mark.parametrize("name", ["table", "markdown", "html"])
def test_readable_formats_show_every_card_s_figures_and_evidence_in_one_line(name: str, tmp_path: Path) -> None:
    for document in documents(tmp_path):
        text = load_format(name).render_fit(document).decode()
        if name == "html":
            lines = [line.text for line in as_page(document).section("Verdicts").all("tr")]
        else:
            lines = [line.replace("\\", "") for line in text.splitlines()]
        for row in document.cards:
            (line,) = (one for one in lines if row.card in one and SYMBOLS[row.verdict] in one)
            assert str(row.evidence) in line
            assert row.capacity_bytes is None or format_size(row.capacity_bytes) in line
            assert document.serves or format_size(row.need_bytes) in line


def test_every_format_says_each_assumption_and_note(tmp_path: Path) -> None:
    for document in documents(tmp_path):
        said = [*document.assumptions, *document.notes]
        assert said
        sheet = {row[6] for row in as_workbook(document)["evidence"].iter_rows(values_only=True)}
        page = {node.text for node in as_page(document).root.all("li")}
        table, markdown = (
            " ".join(load_format(name).render_fit(document).decode().replace("\\", "").split())
            for name in ("table", "markdown")
        )
        for sentence in said:
            assert sentence in sheet
            assert sentence in page
            assert " ".join(sentence.split()) in table
            assert " ".join(sentence.split()) in markdown


def test_a_total_price_is_the_same_wherever_prices_are_shown() -> None:
    document = real_document(BOOK)
    csv_rows = {row["card"]: row for row in reversed(as_csv(document))}
    page = {
        line.all("th")[0].text: [node.attributes["value"] for node in line.all("data")]
        for line in as_page(document).section("Prices").all("tbody")[0].all("tr")
    }
    heads, *sheet = as_workbook(document, values=True)["prices"].iter_rows(min_row=4, values_only=True)
    of_term = [heads.index(f"total, {days} days") for days in (3, 7, 30)]
    totals = {row[0]: tuple(row[at] for at in of_term) for row in sheet}
    for row in document.cards:
        for number, price in enumerate(row.prices):
            shown = csv_rows[row.card][f"total_price_{price.term_days}_days"]
            assert shown == ("" if price.total_price is None else str(price.total_price))
            assert totals[row.card][number] == price.total_price
            assert price.total_price is None or str(price.total_price) in page[row.card]
    # 2 x 1500.25 for three B200 is what a lot that cannot be split costs; here one card, one lot of two.
    assert totals["b200-sxm-180gb"] == (None, 1500.25, 5600.0)


def test_every_format_shows_the_same_arrangements(tmp_path: Path) -> None:
    """Cards, lots, sequences a copy and the upper bound of a device, of each way to take several of a card."""
    for document in (hard_document(), divided_document(tmp_path, "l40s", "h100-sxm-80gb", "h200-sxm", "b200")):
        plans = [(row.card, one) for row in document.cards for one in row.arrangements if one.arrangement != "single"]
        assert plans
        in_csv = {(row["card"].removeprefix("'"), row["arrangement"]): row for row in as_csv(document)}
        head, *lines = as_workbook(document, values=True)["arrangements"].iter_rows(values_only=True)
        sheet = {(line[0], line[1]): dict(zip(head, line, strict=True)) for line in lines}
        rows = as_page(document).section("Several cards").all("tbody")[0].all("tr")
        page = [[node.text for node in row.children if isinstance(node, Node)] for row in rows]
        texts = [load_format(name).render_fit(document).decode() for name in ("table", "markdown")]
        table, markdown = (" ".join(text.replace("\\", "").split()) for text in texts)
        for (card, one), shown in zip(plans, page, strict=True):
            of_csv, of_sheet = in_csv[card, one.arrangement], sheet[card, one.arrangement]
            assert [int(of_csv[key]) for key in ("cards_needed", "lots", "idle_cards", "sequences_per_copy")] == [
                of_sheet[title] for title in ("cards", "lots", "idle cards", "sequences a copy")
            ]
            assert int(of_csv["device_need_upper_bytes"]) == one.need_upper_bytes
            assert of_sheet["at most (GiB)"] == pytest.approx(one.need_upper_bytes / GIB)
            assert of_csv["arrangement_evidence"] == of_sheet["evidence"] == shown[-1] == one.evidence
            words, size = arrangement_words(one), format_size(one.need_upper_bytes)
            assert {card, words, f"{one.cards_needed:,}", f"{one.lots:,}", size} <= set(shown)
            if one in _told(document):
                for text in (table, markdown):
                    assert f"{words}, at most {size} each" in text


def _told(document: FitDocument) -> list[ArrangementFigures]:
    """Those of the cards that a table and Markdown tell of one by one: the nearest."""
    rows = [row for row in document.cards if row.verdict != "fits" and (row.arrangements or row.changes)]
    nearest = sorted(rows, key=lambda row: -(row.headroom_bytes or 0))[:MOST_CARDS]
    return [one for row in nearest for one in row.arrangements]


def test_every_format_but_the_csv_says_what_would_make_one_card_do() -> None:
    document = hard_document()
    changes = [(row.card, " ".join(one.words.split())) for row in document.cards for one in row.changes]
    assert len(changes) == 6
    sheet = [
        (line[0], " ".join(line[1].split()))
        for line in as_workbook(document)["arrangements"].iter_rows(values_only=True)
        if isinstance(line[1], str)
    ]
    items = [" ".join(node.text.split()) for node in as_page(document).section("Several cards").all("li")]
    markdown = " ".join(load_format("markdown").render_fit(document).decode().replace("\\", "").split())
    table = "".join(load_format("table").render_fit(document).decode().split())  # a long name is broken over lines
    for card, words in changes:
        assert (card, words) in sheet
        assert any(item.startswith(f"{card}: ") and words in item for item in items)
        assert words in markdown
        assert "".join(words.split()) in table
    assert [one["words"] for row in as_json(document)["cards"] for one in row["changes"]] == [
        one.words for row in document.cards for one in row.changes
    ]
