"""The sheet of several cards: each way to take a card as often as it needs, and what would make one, or fewer, do."""

from __future__ import annotations

from gpufit.report.document import FitDocument
from gpufit.report.plan_rows import PLAN_COLUMNS, Figure, changed, planned
from gpufit.report.workbook.order_formulas import idle_formula, lots_formula
from gpufit.report.workbook.paper import Paper
from gpufit.report.workbook.places import cell
from gpufit.report.workbook.prices import PriceTable

SHEET = "arrangements"


def write_plans(paper: Paper, document: FitDocument, table: PriceTable) -> None:
    """A row a card and arrangement, sizes in GiB, lots by the first seller's; below them the changes, a row each."""
    columns = [one for one in PLAN_COLUMNS if document.serves or one.key != "serve_command"]
    titles = [f"{one.title} (GiB)" if one.key.endswith("_bytes") else one.title for one in columns]
    paper.header(0, titles, words={at for at, one in enumerate(columns) if one.words})
    keys = [one.key for one in columns]
    at = 0
    for at, (row, plan) in enumerate(planned(document), start=1):
        formulas = _formulas(table, at, keys) if row.prices else {}
        for column, one in enumerate(columns):
            value = one.value(row, plan)
            if one.key in formulas and isinstance(value, int):
                paper.formula(at, column, formulas[one.key], "count", value)
            else:
                _write(paper, at, column, value, one.key)
    paper.header(at + 2, ["card", "what would make a single one do, or fewer"], words=(0, 1))
    for number, (row, words) in enumerate(changed(document), start=at + 3):
        paper.text(number, 0, row.card)
        paper.text(number, 1, words, measured=False)
    paper.sheet.freeze_panes(1, 1)
    paper.fit_columns()
    paper.landscape(0)


def _write(paper: Paper, at: int, column: int, value: Figure, key: str) -> None:
    if isinstance(value, str):
        paper.text(at, column, value)
    elif key.endswith("_bytes"):
        paper.gib(at, column, value)
    else:
        paper.count(at, column, value)


def _formulas(table: PriceTable, at: int, keys: list[str]) -> dict[str, str]:
    """The columns that follow the lots of the card's first seller."""
    card, needed, lots = (cell(at, keys.index(key), fixed=True) for key in ("card", "cards_needed", "lots"))
    size = table.first_input("lot_size", card)
    return {"lots": lots_formula(needed, size), "idle_cards": idle_formula(needed, size, lots)}
