"""The order as a workbook: `order` to read and print, `terms` with the prices to fill in, then workers, job,
environment, checks and notes. Numbers are numbers; totals are formulas, so that a price typed into `terms` reaches all
of them."""

from __future__ import annotations

import datetime
import io
from collections.abc import Iterable, Sequence
from typing import Any

import xlsxwriter

from gpufit.report.basis import evidence_text
from gpufit.report.cells import printable
from gpufit.report.order_document import OrderDocument, Readiness
from gpufit.report.order_text import (
    binding_words,
    declared,
    evidence_words,
    price_words,
    purpose_lines,
    status,
    term_holds,
    title,
)
from gpufit.units import GIB

BINARY = True

Value = str | int | float | datetime.date | None

_FIRST_YEAR = 1900
"""The first that a sheet has dates in."""

_EPOCH = datetime.datetime(2000, 1, 1)

_FORMATS: dict[str, dict[str, Any]] = {
    "title": {"bold": True, "font_size": 14},
    "head": {"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"},
    "bold": {"bold": True, "text_wrap": True, "valign": "top"},
    "text": {"text_wrap": True, "valign": "top", "align": "left"},
    "code": {"font_name": "Courier New", "text_wrap": True, "valign": "top"},
    "count": {"num_format": "#,##0", "align": "left", "valign": "top"},
    "decimal": {"num_format": "#,##0.00", "align": "left", "valign": "top"},
    "small": {"num_format": "0.00000", "align": "left", "valign": "top"},
    "tiny": {"num_format": "0.00E+00", "align": "left", "valign": "top"},
    "money": {"num_format": "#,##0.00", "align": "left"},
    "share": {"num_format": "0%", "align": "left"},
    "price": {"num_format": "#,##0.00", "bg_color": "#FFF2CC", "border": 1},
    "sum": {"num_format": "#,##0.00"},
    "right": {"align": "right", "valign": "top"},
    "date": {"num_format": "yyyy-mm-dd", "align": "left", "valign": "top"},
    "given count": {"num_format": "#,##0", "align": "left", "valign": "top", "bg_color": "#FFF2CC", "border": 1},
    "cell": {"num_format": "#,##0", "valign": "top"},
    "good": {"bold": True, "bg_color": "#C6EFCE"},
    "open": {"bold": True, "bg_color": "#FFEB9C"},
    "bad": {"bold": True, "bg_color": "#FFC7CE"},
}

_SHADES = {Readiness.READY: "good", Readiness.READY_UNPROVEN: "open", Readiness.NOT_READY: "bad"}


def render_order(document: OrderDocument) -> bytes:
    """Seven sheets; the same document always gives the same bytes."""
    buffer = io.BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": False}
    with xlsxwriter.Workbook(buffer, options) as book:
        # A fixed date: the same document gives the same file, whenever it is written.
        book.set_properties({"created": _EPOCH, "title": title(document)})
        formats = {name: book.add_format(spec) for name, spec in _FORMATS.items()}
        lot_size = _order(_Sheet(book, "order", (32, 90), formats), document)
        _terms(_Sheet(book, "terms", (8, 8, 46, 14, 10, 8, 8, 16, 16), formats), document, lot_size)
        _workers(_Sheet(book, "workers", (10, 12, 10, 14, 14, 14), formats), document)
        _job(_Sheet(book, "job", (120,), formats), document)
        _environment(_Sheet(book, "environment", (22, 30, 12, 70, 20), formats), document)
        _checks(_Sheet(book, "checks", (24, 76, 64), formats), document)
        _notes(_Sheet(book, "notes", (18, 110), formats), document)
    return buffer.getvalue()


_WRAPPED = ("text", "code", "head")
_LINE_POINTS = 15
"""The height of a line, in points."""
_SLACK = 4
"""Characters of a line that wrapping at words may leave empty."""


class _Sheet:
    """A sheet that grows downwards; text is never taken for a formula."""

    def __init__(self, book: Any, name: str, widths: Sequence[int], formats: dict[str, Any]) -> None:
        self._sheet = book.add_worksheet(name)
        self._formats, self._widths = formats, widths
        self.row = 0
        """The next row, from 0."""
        for index, width in enumerate(widths):
            self._sheet.set_column(index, index, width)
        self._sheet.set_landscape()
        self._sheet.set_paper(9)  # A4
        self._sheet.fit_to_pages(1, 0)

    def one_page(self) -> None:
        """Print it upright on a single page."""
        self._sheet.set_portrait()
        self._sheet.fit_to_pages(1, 1)

    def line(self, values: Iterable[Value], formats: Sequence[str]) -> int:
        """A row of cells, each in its format; what is None stays blank. The result is its number, from 1."""
        lines = 1
        for index, (value, name) in enumerate(zip(values, formats, strict=True)):
            self._write(index, value, self._formats[name])
            if isinstance(value, str) and name in _WRAPPED:
                lines = max(lines, -(-len(value) // (self._widths[index] - _SLACK)))
        if lines > 1:  # not every reader finds the height of wrapped text by itself
            self._sheet.set_row(self.row, lines * _LINE_POINTS)
        self.row += 1
        return self.row

    def _write(self, index: int, value: Value, form: Any) -> None:
        if value is None:
            self._sheet.write_blank(self.row, index, None, form)
        elif isinstance(value, str):
            self._sheet.write_string(self.row, index, printable(value), form)
        elif isinstance(value, datetime.date) and value.year < _FIRST_YEAR:
            self._sheet.write_string(self.row, index, value.isoformat(), form)
        elif isinstance(value, datetime.date):
            self._sheet.write_datetime(self.row, index, value, form)
        else:
            self._sheet.write_number(self.row, index, value, form)

    def formula(self, index: int, text: str, form: str, value: float | None) -> None:
        """A formula in the row before the next, with what it comes to now."""
        shown = "" if value is None else value
        self._sheet.write_formula(self.row - 1, index, text, self._formats[form], shown)

    def header(self, titles: Sequence[str]) -> None:
        """Column titles, which stay in view."""
        self.line(titles, ["head"] * len(titles))
        self._sheet.freeze_panes(self.row, 0)

    def skip(self) -> None:
        """An empty row."""
        self.row += 1


def _order(sheet: _Sheet, document: OrderDocument) -> str:
    """The sheet to read and print; the result is its cell of the cards in a lot, which lots follow."""
    sheet.one_page()
    sheet.line([title(document)], ["title"])
    sheet.line([status(document)], [_SHADES[document.readiness]])
    for blocker in document.blockers:
        sheet.line(["because", blocker], ["bold", "text"])
    for words in filter(None, (document.spread, evidence_words(document))):
        sheet.line([None, words], ["text", "text"])
    sheet.skip()
    lot_size = _ordered(sheet, document)
    sheet.skip()
    for label, words in purpose_lines(document):
        sheet.line([label, words], ["bold", "text"])
    sheet.skip()
    _hours(sheet, document)
    sheet.skip()
    _margin(sheet, document)
    return lot_size


def _ordered(sheet: _Sheet, document: OrderDocument) -> str:
    card, cost, idle = document.card, document.cost, document.idle
    sheet.line(["card", card.name], ["bold", "text"])
    sheet.line(["card, catalog id", card.card], ["bold", "text"])
    sheet.line(["arrangement", card.arrangement], ["bold", "text"])
    needed = sheet.line(["cards needed", card.cards_needed], ["bold", "count"])
    if card.ranks > 1:
        sheet.line(["devices that share a layer", card.tensor_parallel_size], ["bold", "count"])
        sheet.line(["stages of a pipeline", card.pipeline_parallel_size], ["bold", "count"])
        sheet.line(["machines, at least", card.machines], ["bold", "count"])
        sheet.line(["cards a machine, at most", card.cards_per_machine], ["bold", "count"])
    lots = sheet.line(["lots", None], ["bold", "count"])
    size = lots + 1
    if card.lots is not None:
        sheet.formula(1, f"=ROUNDUP(B{needed}/B{size},0)", "count", card.lots)
    sheet.line(["cards a lot", card.lot_size], ["bold", "given count"])
    lot_size = f"order!$B${size}"
    if card.lots is None:
        return lot_size
    paid = sheet.line(["cards paid for", None], ["bold", "count"])
    sheet.formula(1, f"=B{lots}*B{size}", "count", card.cards_paid)
    left = sheet.line(["idle cards", None], ["bold", "count"])
    sheet.formula(1, f"=B{paid}-B{needed}", "count", card.idle_cards)
    share = sheet.line(["idle share of the price", None], ["bold", "share"])
    sheet.formula(1, f"=B{left}/B{paid}", "share", 0.0 if idle is None else idle.cost_share)
    if idle is not None:
        sheet.line(["idle cards host: copies", idle.copies], ["bold", "count"])
        sheet.line(["idle cards host: sequences", idle.sequences], ["bold", "count"])
    sheet.line(["term, days", document.term_days], ["bold", "count"])
    sheet.line(["term is for", document.term_purpose], ["bold", "text"])
    sheet.line(["currency", cost.currency], ["bold", "text"])
    price = sheet.line(["price a lot (from terms)", None], ["bold", "money"])
    source = f"terms!H{2 + [term.days for term in document.terms].index(document.term_days or 0)}"
    sheet.formula(1, f'=IF(ISNUMBER({source}),{source},"")', "money", cost.price_per_lot)
    total = sheet.line(["price", None], ["bold", "money"])
    sheet.formula(1, f'=IF(ISNUMBER(B{price}),ROUND(B{price}*B{lots},2),"")', "money", cost.total_price)
    sheet.line(["of that for idle cards", None], ["bold", "money"])
    of_idle = None if cost.total_price is None else 0.0 if idle is None else idle.price
    sheet.formula(1, f'=IF(ISNUMBER(B{total}),ROUND(B{total}*B{share},2),"")', "money", of_idle)
    if cost.total_price is None or cost.stale or cost.indicative or cost.odd:
        sheet.line(["about the price", price_words(document)], ["bold", "text"])
    sheet.line(["seller", cost.seller], ["bold", "text"])
    sheet.line(["prices of", cost.date], ["bold", "date"])
    sheet.line(["offer book", cost.book], ["bold", "text"])
    return lot_size


def _hours(sheet: _Sheet, document: OrderDocument) -> None:
    work = document.work
    sheet.line(["inputs", work.inputs], ["bold", "count"])
    sheet.line(["tokens", work.tokens], ["bold", "count"])
    least, most = ", at least" if work.throughput_lower_bound else "", ", at most" if work.hours_upper_bound else ""
    sheet.line([f"inputs/s of a worker{least}", work.inputs_per_second], ["bold", _rate(work.inputs_per_second)])
    sheet.line([f"tokens/s of a worker{least}", work.tokens_per_second], ["bold", _rate(work.tokens_per_second)])
    sheet.line(["evidence of these rates", work.throughput_evidence], ["bold", "text"])
    first = sheet.line([f"work, h{most}", work.processing_hours], ["bold", _rate(work.processing_hours)])
    sheet.line(["set-up, h", work.setup_hours], ["bold", "decimal"])
    sheet.line(["checks, h", work.checks_hours], ["bold", "decimal"])
    last = sheet.line(["export, h", work.export_hours], ["bold", "decimal"])
    sheet.line([f"hours in all{most}", None], ["bold", "decimal"])
    sheet.formula(1, f'=IF(ISNUMBER(B{first}),SUM(B{first}:B{last}),"")', "decimal", work.total_hours)
    sheet.line(["evidence of the hours", work.hours_evidence], ["bold", "text"])


def _rate(value: float | None) -> str:
    """The format of a rate or a time: below one, in as many decimals as show three digits of it."""
    return "decimal" if value is None or value >= 1 else "small" if value >= 0.001 else "tiny"


def _margin(sheet: _Sheet, document: OrderDocument) -> None:
    margin = document.margin
    sheet.line(["verdict", str(margin.verdict).replace("_", " ")], ["bold", "text"])
    if margin.reason is not None:
        sheet.line(["verdict, because", margin.reason], ["bold", "text"])
    sheet.line(["at once on a worker", margin.at_once], ["bold", "count"])
    sizes = (
        ("need (GiB)", margin.need_bytes),
        ("need, lower (GiB)", margin.need_lower_bytes),
        ("need, upper (GiB)", margin.need_upper_bytes),
        ("capacity (GiB)", margin.capacity_bytes),
        ("headroom (GiB)", margin.headroom_bytes),
        ("headroom, lower (GiB)", margin.headroom_lower_bytes),
        ("headroom, upper (GiB)", margin.headroom_upper_bytes),
    )
    for label, size in sizes:
        sheet.line([label, None if size is None else size / GIB], ["bold", "decimal"])
    sheet.line(["most sequences that fit", margin.max_concurrency], ["bold", "count"])
    if margin.reason is None:
        sheet.line(["binds", binding_words(margin)], ["bold", "text"])
    sheet.line(["evidence", evidence_text(margin.evidence, document.scenario_ran)], ["bold", "text"])


def _terms(sheet: _Sheet, document: OrderDocument, lot_size: str) -> None:
    money = f" ({document.cost.currency})" if document.cost.currency else ""
    sheet.header(
        ["days", "hours", "for", "holds the work", "workers", "lots", "cards", f"price a lot{money}", f"price{money}"]
    )
    planned = None if document.work.total_hours is not None else len(document.workers)
    for term in document.terms:
        workers = term.workers if planned is None else planned
        number = sheet.line(
            [
                term.days,
                term.hours,
                term.purpose,
                term_holds(document, term),
                workers,
                term.lots,
                term.cards,
                term.price_per_lot,
            ],
            ["cell", "cell", "text", "text", "cell", "cell", "cell", "price"],
        )
        if term.lots is not None:
            # A card of several devices holds as many ranks, those of two workers among them.
            cards = f"ROUNDUP(E{number}*{document.card.ranks}/{document.card.devices_per_card},0)"
            sheet.formula(5, f"=ROUNDUP({cards}/{lot_size},0)", "cell", term.lots)
            sheet.formula(6, f"=F{number}*{lot_size}", "cell", term.cards)
        text = f'=IF(AND(ISNUMBER(H{number}),ISNUMBER(F{number})),ROUND(H{number}*F{number},2),"")'
        sheet.formula(8, text, "sum", term.total_price)


def _workers(sheet: _Sheet, document: OrderDocument) -> None:
    sheet.header(["worker", "devices", "at once", "first input", "last input", "inputs"])
    for one in document.workers:
        sheet.line(
            [one.worker, one.devices, one.at_once, one.first_input, one.last_input, one.inputs],
            ["cell", "right", "cell", "cell", "cell", "cell"],
        )
    first, last = 2, sheet.row
    if document.work.inputs is not None and document.workers:
        sheet.line(["all", None, None, None, None, None], ["bold", "cell", "cell", "cell", "cell", "cell"])
        sheet.formula(5, f"=SUM(F{first}:F{last})", "cell", document.work.inputs)


def _job(sheet: _Sheet, document: OrderDocument) -> None:
    if document.pieces is None or document.completion is None:
        return
    sheet.line(["a finished piece"], ["head"])
    for number, step in enumerate(document.pieces.steps, start=1):
        sheet.line([f"{number}. {step}"], ["text"])
    sheet.line([f"the marker of {document.pieces.example_piece}:"], ["text"])
    sheet.line([document.pieces.example_marker], ["code"])
    sheet.skip()
    sheet.line(["the whole job is complete if"], ["head"])
    for condition in document.completion.conditions:
        sheet.line([condition], ["text"])
    sheet.line(["run in the folder of the outputs (Python):"], ["text"])
    for text in document.completion.script.splitlines():
        sheet.line([text], ["code"])


def _environment(sheet: _Sheet, document: OrderDocument) -> None:
    sheet.header(["component", "figures made with", "origin", "needed on the card", "source"])
    for one in document.environment:
        sheet.line(
            [one.component, *declared(one), one.needed or "not known", one.source if one.needed else None], ["text"] * 5
        )


def _checks(sheet: _Sheet, document: OrderDocument) -> None:
    sheet.header(["check on arrival", "command", "what has to come out"])
    for number, one in enumerate(document.checks, start=1):
        decides = " (decides)" if one.decides else ""
        sheet.line([f"{number}. {one.title}{decides}", one.command, one.expect], ["text", "code", "text"])
    sheet.skip()
    sheet.line(["save at the end", "how", None], ["head", "head", "head"])
    for saved in document.save:
        sheet.line([saved.what, saved.how, None], ["text", "text", "text"])


def _notes(sheet: _Sheet, document: OrderDocument) -> None:
    for label, lines in (("assumed", document.assumptions), ("note", document.notes)):
        for line in lines:
            sheet.line([label, line], ["text", "text"])
    sheet.line(["gpufit", f"{document.gpufit_version}, order schema {document.schema_version}"], ["text", "text"])
