"""The sheet of what stands behind the figures: each with its evidence, then assumptions and notes in words."""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.report.document import FitDocument
from gpufit.report.evidence import MEANINGS, figures_of, used_evidence
from gpufit.report.start_text import start_lines
from gpufit.report.summary import peak_line, precision_lines, remark_lines
from gpufit.report.workbook.paper import Paper

_TITLES = ("what", "for", "likely (GiB)", "lower (GiB)", "upper (GiB)", "evidence", "in words")

_WORDS_WIDTH = 100
"""Characters; longer words are wrapped."""


def write_evidence(paper: Paper, document: FitDocument) -> None:
    """A row a figure, then a row a sentence, in one table to filter."""
    paper.header(0, _TITLES, words=(0, 1, 5, 6))
    figures = figures_of(document)
    for at, figure in enumerate(figures, start=1):
        paper.text(at, 0, figure.what, "top")
        paper.text(at, 1, figure.where, "top")
        for column, size in enumerate((figure.size_bytes, figure.lower_bytes, figure.upper_bytes), start=2):
            paper.gib(at, column, size, "top gib")
        paper.text(at, 5, str(figure.evidence), "top")
        paper.wrapped(at, 6, figure.words, _WORDS_WIDTH)
    at = len(figures)
    for at, (what, words) in enumerate(_sentences(document), start=len(figures) + 1):
        paper.text(at, 0, what, "top")
        paper.wrapped(at, 6, words, _WORDS_WIDTH)
    paper.sheet.freeze_panes(1, 0)
    paper.sheet.autofilter(0, 0, at, len(_TITLES) - 1)
    paper.fit_columns()
    paper.sheet.set_column(6, 6, _WORDS_WIDTH)
    paper.landscape(0)


def _sentences(document: FitDocument) -> Iterator[tuple[str, str]]:
    """What kind of sentence, and the sentence."""
    yield from (("precision", line) for line in precision_lines(document.precision))
    if peak := peak_line(document):
        yield "peak", peak
    yield from (("start", line) for line in start_lines(document))
    yield from (("assumed", line) for line in document.assumptions)
    yield from (("note", line) for line in (*document.notes, *remark_lines(document)))
    yield from (("word", f"{kind}: {MEANINGS[kind]}") for kind in used_evidence(document))
    yield "made by", f"gpufit {document.gpufit_version}, document schema {document.schema_version}"
