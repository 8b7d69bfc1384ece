"""The document as Markdown: headline, cards, assumptions and notes."""

from __future__ import annotations

from tabulate import tabulate

from gpufit.report.cells import SCREEN_COLUMNS, printable
from gpufit.report.document import FitDocument
from gpufit.report.summary import growth_line, headline, peak_line, precision_lines, remark_lines

BINARY = False


def render_fit(document: FitDocument) -> bytes:
    """A pipe table of the cards between headline and remarks."""
    rows = [[_cell(column.text(document, row)) for column in SCREEN_COLUMNS] for row in document.cards]
    table = tabulate(rows, headers=[column.title for column in SCREEN_COLUMNS], tablefmt="pipe", disable_numparse=True)
    found = [*precision_lines(document.precision), growth_line(document), peak_line(document)]
    remarks = [*found, *document.assumptions, *document.notes, *remark_lines(document)]
    blocks = [
        headline(document),
        *([table] if document.cards else ()),
        "\n".join(f"- {line}" for line in remarks if line),
    ]
    return printable("\n\n".join(blocks) + "\n").encode()


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
