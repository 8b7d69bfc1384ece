"""The sheet of several cards: each way to take a card as often as it needs, and what would make one, or fewer, do."""

from __future__ import annotations

from gpufit.report.document import FitDocument
from gpufit.report.plan_rows import PLAN_COLUMNS, changed, planned
from gpufit.report.workbook.paper import Paper

SHEET = "arrangements"


def write_plans(paper: Paper, document: FitDocument) -> None:
    """A row a card and arrangement, sizes in GiB; below them the changes, a row each."""
    columns = [one for one in PLAN_COLUMNS if document.serves or one.key != "serve_command"]
    titles = [f"{one.title} (GiB)" if one.key.endswith("_bytes") else one.title for one in columns]
    paper.header(0, titles, words={at for at, one in enumerate(columns) if one.words})
    at = 0
    for at, (row, plan) in enumerate(planned(document), start=1):
        for column, one in enumerate(columns):
            value = one.value(row, plan)
            if isinstance(value, str):
                paper.text(at, column, value)
            elif one.key.endswith("_bytes"):
                paper.gib(at, column, value)
            else:
                paper.count(at, column, value)
    paper.header(at + 2, ["card", "what would make a single one do, or fewer"], words=(0, 1))
    for number, (row, words) in enumerate(changed(document), start=at + 3):
        paper.text(number, 0, row.card)
        paper.text(number, 1, words, measured=False)
    paper.sheet.freeze_panes(1, 1)
    paper.fit_columns()
    paper.landscape(0)
