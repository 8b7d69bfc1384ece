"""What stands first on a page of several questions: the matrix, each cell coloured by its verdict, and what it says."""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.report.document import FitDocument
from gpufit.report.fits_document import FitsDocument
from gpufit.report.fits_text import LEGEND, Matrix, all_in_turn, fits_headline, matrices, verdict_lines
from gpufit.report.markup import Markup, element
from gpufit.report.page_parts import bullets, section, table
from gpufit.report.page_prices import orders_of_page

SUMMARY_ID = "summary"
"""What reports refer to as the way back."""


def report_id(number: int) -> str:
    """The id of a question's report, and the beginning of all ids in it; counted from 0."""
    return f"question-{number}"


def summary_of(documents: FitsDocument) -> Markup:
    """How many questions and which, the matrices, and which cards serve all scenarios."""
    counted, *asked = fits_headline(documents)
    said, orders = verdict_lines(documents), all_in_turn(documents)
    tables = [_matrix(documents, one) for one in matrices(documents)]
    return element(
        "article",
        element("header", element("h1", "Which cards, for every question"), element("p", counted, class_="dim")),
        section("The questions", bullets(asked)),
        section("Cards and scenarios", *tables),
        *([section("What to order for all scenarios", *map(orders_of_page, orders))] if orders else ()),
        *([section("What serves them", bullets(said))] if said else ()),
        id=SUMMARY_ID,
    )


def _matrix(documents: FitsDocument, matrix: Matrix) -> Markup:
    columns = len(matrix.questions)
    links = [
        element("a", title, href=f"#{report_id(_place(documents, one))}")
        for title, one in zip(matrix.headers[1 : 1 + columns], matrix.questions, strict=True)
    ]
    titles: list[str | Markup] = [matrix.headers[0], *links, *matrix.headers[1 + columns :]]
    rows = [element("tr", *_cells(matrix, row)) for row in matrix.rows]
    caption = f"{matrix.title}: {LEGEND}." if matrix.title else f"{LEGEND}."
    return table(caption, [element("th", title, scope="col", class_="left") for title in titles], rows)


def _place(documents: FitsDocument, question: FitDocument) -> int:
    return next(number for number, one in enumerate(documents.documents) if one is question)


def _cells(matrix: Matrix, row: tuple[str, ...]) -> Iterator[Markup]:
    """The card, then a verdict a question, then what the matrix says beside them."""
    card, *texts = row
    yield element("th", card, scope="row")
    for at, text in enumerate(texts, start=1):
        answer = matrix.answer(card, at)
        yield element("td", text, class_="left" if answer is None else f"verdict {answer}")
