"""The list of cards as text: the same cells as the command line's table, as many columns as there is room for."""

from __future__ import annotations

import pytest
from tui_builders import GB, make_document, make_row

from gpufit.advice.verdict import Verdict
from gpufit.memory.terms import Shape
from gpufit.report.cells import COLUMNS, SYMBOLS
from gpufit.report.document import FitDocument
from gpufit.tui.renderables.cards import POINTER, card_line, heading, interval_text, layout_for

CELL = {column.key: column.text for column in COLUMNS}
DOCUMENT = make_document()
HEAVY = make_document(Shape(32_000, 4, 4096))


def keys(width: int) -> list[str]:
    return [one.column.key for one in layout_for(width, DOCUMENT).columns]


def test_eighty_columns_hold_card_verdict_headroom_and_a_bar() -> None:
    assert keys(76) == ["card", "verdict", "headroom_bytes", "sign"]
    assert layout_for(76, DOCUMENT).bar_width >= 14


def test_more_room_shows_more_columns_and_a_longer_bar() -> None:
    assert keys(100) == ["card", "verdict", "need_bytes", "headroom_bytes", "sign"]
    assert keys(156) == [
        "card",
        "verdict",
        "capacity_bytes",
        "need_bytes",
        "headroom_bytes",
        "interval",
        "lots",
        "evidence",
    ]
    assert layout_for(200, DOCUMENT).bar_width > layout_for(156, DOCUMENT).bar_width


@pytest.mark.parametrize("width", [76, 90, 110, 156, 220])
@pytest.mark.parametrize("document", [DOCUMENT, HEAVY])
def test_every_line_fits_the_width_and_no_figure_is_cut(width: int, document: FitDocument) -> None:
    layout = layout_for(width, document)
    assert heading(layout).cell_len <= width
    for row in document.cards:
        line = card_line(document, row, layout, selected=False)
        assert line.cell_len <= width
        for one in layout.columns:
            assert one.column.text(document, row) in line.plain


def test_without_room_for_a_bar_the_figures_stay() -> None:
    layout = layout_for(60, DOCUMENT)
    line = card_line(DOCUMENT, DOCUMENT.cards[0], layout, selected=False)
    assert "│" not in line.plain
    assert CELL["headroom_bytes"](DOCUMENT, DOCUMENT.cards[0]) in line.plain
    assert "▾" not in heading(layout).plain


def test_cells_are_the_command_lines() -> None:
    layout = layout_for(200, DOCUMENT)
    for row in DOCUMENT.cards:
        line = card_line(DOCUMENT, row, layout, selected=False).plain
        for key in ("card", "verdict", "capacity_bytes", "need_bytes", "headroom_bytes", "lots", "evidence"):
            assert CELL[key](DOCUMENT, row) in line


def test_the_heading_marks_the_column_of_the_ceiling() -> None:
    for width in (76, 110, 156, 220):
        layout = layout_for(width, DOCUMENT)
        line = card_line(DOCUMENT, DOCUMENT.cards[0], layout, selected=False)
        assert heading(layout).plain.index("▾") == line.plain.index("│")


def test_the_selected_card_shows_without_colour() -> None:
    layout = layout_for(76, DOCUMENT)
    assert card_line(DOCUMENT, DOCUMENT.cards[0], layout, selected=True).plain.startswith(POINTER)
    assert POINTER not in card_line(DOCUMENT, DOCUMENT.cards[0], layout, selected=False).plain


@pytest.mark.parametrize("width", [76, 156])
def test_too_close_never_looks_like_fits(width: int) -> None:
    layout = layout_for(width, DOCUMENT)
    close, fits = make_row(80 * GB, 79 * GB, 2 * GB), make_row(80 * GB, 77 * GB, 2 * GB)
    assert (close.verdict, fits.verdict) == (Verdict.TOO_CLOSE, Verdict.FITS)
    close_line, fits_line = (card_line(DOCUMENT, row, layout, selected=False).plain for row in (close, fits))
    assert SYMBOLS[Verdict.TOO_CLOSE] in close_line
    assert SYMBOLS[Verdict.FITS] in fits_line
    assert "fits" not in close_line
    assert close_line.rstrip().endswith("░")
    assert fits_line.rstrip().endswith("│")


def test_an_interval_says_a_shared_unit_once() -> None:
    row = make_row(80 * GB, 40 * GB, 2 * GB)
    assert interval_text(DOCUMENT, row) == "35.39 .. 39.12 GiB"
    assert interval_text(DOCUMENT, make_row(40 * GB, 40 * GB, 50_000_000)) == "-47.7 .. 47.7 MiB"
    assert interval_text(DOCUMENT, make_row(41 * GB, 40 * GB, GB)) == "0 B .. 1.86 GiB"
    assert interval_text(DOCUMENT, make_row(None)) == ""
