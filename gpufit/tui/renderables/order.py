"""What can be ordered, a line each, everything about one, and the order file as it will be written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.table import Column, Table
from rich.text import Text
from rich.theme import Theme

from gpufit.advice.verdict import Verdict
from gpufit.catalog.offers import TERMS
from gpufit.report.cells import SYMBOLS, printable
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.idle_text import hosts_words
from gpufit.report.offer_lines import day_text, money, term_words, total_text
from gpufit.report.order_document import OrderDocument, Readiness
from gpufit.report.order_text import status
from gpufit.report.plan_text import change_label
from gpufit.report.plans import ArrangementFigures, arrangement_words
from gpufit.report.price_text import COST_NOTE, cost_headers, rates_text
from gpufit.tui.order_form import in_fields
from gpufit.tui.ordering import Ordering, OrderLine
from gpufit.tui.renderables.evidence import STYLES, evidence_text
from gpufit.tui.renderables.listed import ListColumn
from gpufit.tui.renderables.palette import DIM, PLAIN, STRONG, TITLE, VERDICT_STYLES, WAIT, WARNING
from gpufit.units import counted, format_size

_LABEL_WIDTH = 14


def arranged(line: OrderLine) -> str:
    """How the card is taken, in short: `2 copies, TP 4`; where no number of it serves, the verdict on one."""
    plan = line.plan
    if plan is None:
        return SYMBOLS[line.row.verdict]
    copies = "1 copy" if plan.copies == 1 else f"{plan.copies:,} copies"
    over = [f"TP {plan.tensor_parallel_size:,}"] if plan.tensor_parallel_size > 1 else []
    over += [f"PP {plan.pipeline_parallel_size:,}"] if plan.pipeline_parallel_size > 1 else []
    return ", ".join([copies, " x ".join(over)]) if over else copies


def lots_words(line: OrderLine) -> str:
    """Lots, and the cards in each where they are several."""
    row = line.row
    if row.lots is None:
        return "-"
    return f"{row.lots:,} x {row.lot_size}" if row.lot_size > 1 else f"{row.lots:,}"


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _amount(amount: float | None) -> str:
    """Blank where it is not known, never zero."""
    return "" if amount is None else money(amount)


def _age(line: OrderLine) -> str:
    book = line.book
    if book is None or book.age_days is None or not any(price.price_per_lot is not None for price in line.row.prices):
        return ""
    return counted(book.age_days, "day")


def _seller(line: OrderLine) -> str:
    priced = [price for price in line.row.prices if price.price_per_lot is not None]
    return (priced[0].seller or priced[0].book) if priced else ""


def columns(lines: Sequence[OrderLine], ordering: Ordering) -> tuple[ListColumn[OrderLine], ...]:
    """Left to right; the term that is chosen stands in brackets, and stays where there is no room for all. A currency
    that all prices share stands above them."""
    currencies, sellers = ({of(line) for line in lines if _seller(line)} for of in (_currency, _seller))
    shared = f" {currencies.pop()}" if len(currencies) == 1 else ""
    return (
        ListColumn(title="card", text=lambda line: line.row.card, most=22, style=lambda line: STRONG),
        ListColumn(title="taken as", text=arranged, style=_style, importance=2),
        ListColumn(title="cards", text=lambda line: _count(line.row.cards_needed), right=True, importance=5),
        ListColumn(title="lots", text=lots_words, right=True),
        ListColumn(title="idle", text=lambda line: _count(line.row.idle_cards), right=True, importance=6),
        ListColumn(title="a lot", text=lambda line: _of_lot(line, ordering.term_days), right=True, importance=8),
        *(_total(days, ordering, shared) for days in TERMS),
        *(() if shared else (ListColumn(title="currency", text=_currency, importance=1),)),
        # The same card and arrangement stands there once for each of several sellers.
        ListColumn(title="seller", text=_seller, most=20, importance=4 if len(sellers) > 1 else 9),
        ListColumn(title="age", text=_age, style=_age_style, importance=10),
        ListColumn(
            title="evidence",
            text=lambda line: evidence_text(line.evidence),
            style=lambda line: STYLES[line.evidence],
            importance=3,
        ),
    )


def _style(line: OrderLine) -> str:
    return PLAIN if line.plan else VERDICT_STYLES[line.row.verdict]


def _age_style(line: OrderLine) -> str:
    return WARNING if line.book is not None and line.book.stale else PLAIN


def _of_lot(line: OrderLine, days: int) -> str:
    price = line.price(days)
    return _amount(None if price is None else price.price_per_lot)


def _total(days: int, ordering: Ordering, currency: str) -> ListColumn[OrderLine]:
    chosen = days == ordering.term_days
    return ListColumn(
        title=f"[{days} days]{currency}" if chosen else f"{days} days",
        text=lambda line: total_text(line.price(days)),
        right=True,
        style=lambda line: STRONG if chosen else PLAIN,
        importance=0 if chosen else 7,
    )


def _currency(line: OrderLine) -> str:
    first = line.row.prices[0] if line.row.prices else None
    return "" if first is None else first.currency or ""


_OTHER_BOOKS = (
    "gpufit tui --offers public-indicative has list prices, gpufit catalog offers --template writes a book to fill in"
)


def summary(document: FitDocument, lines: Sequence[OrderLine], ordering: Ordering) -> Text:
    """What the list shows, and the cheapest for the chosen term; or that nobody has a price."""
    served = [line for line in lines if line.plan is not None]
    left_out = len(lines) - len(served)
    text = Text(no_wrap=True, overflow="ellipsis")
    counted = "1 way" if len(served) == 1 else f"{len(served)} ways"
    none = f", none for {left_out} {'card' if left_out == 1 else 'cards'}" if left_out else ""
    text.append(f"{counted} to serve it{none}", STRONG)
    text.append(f" · [{ordering.term_days} days] · {ordering.sort}", STRONG)
    if not any(line.total(days) is not None for line in served for days in TERMS):
        if not served:
            return text.append(f"\nnothing to price in offer book {document.offers}", WARNING)
        return text.append(f"\nno price in offer book {document.offers}; {_OTHER_BOOKS}", WARNING)
    places = {row.card: place for place, row in enumerate(document.cards)}
    in_order = sorted(served, key=lambda line: places[line.row.card])
    for words in term_words([line.offer for line in in_order if line.offer is not None], ordering.term_days):
        text.append(f"\n{words}", WARNING if words.startswith("no ") else PLAIN)
    return text


def waiting(document: FitDocument) -> Text:
    """Until the answer is settled: what the list below, of the question before, gives way to."""
    fits = sum(row.verdict is Verdict.FITS for row in document.cards)
    alone = "1 card fits by itself" if fits == 1 else f"{fits} cards fit by themselves"
    return Text(f"{alone} · working out every way, its lots and totals {WAIT}", STRONG)


def details(document: FitDocument, line: OrderLine) -> Group:
    """Everything about one line: how the card is taken, each term's prices, from whom, and what they rest on."""
    grid = Table.grid(Column(width=_LABEL_WIDTH, style=DIM), Column(ratio=1, style=PLAIN), expand=True)
    for label, value in _facts(document, line):
        grid.add_row(Text(label), Text(printable(value)))
    head = Text.assemble((f"{line.row.card} · ", STRONG), (printable(line.row.name), TITLE))
    return Group(head, _verdict(line), grid, *_costs(document, line))


def _verdict(line: OrderLine) -> Text:
    """That of the way in which the card is taken, which is listed because it surely serves; without one, of a card."""
    if line.plan is None:
        return Text.assemble((SYMBOLS[line.row.verdict], VERDICT_STYLES[line.row.verdict]), (" on one card", DIM))
    return Text.assemble(
        (SYMBOLS[Verdict.FITS], VERDICT_STYLES[Verdict.FITS]), (f": {arrangement_words(line.plan)}", PLAIN)
    )


def _facts(document: FitDocument, line: OrderLine) -> Iterator[tuple[str, str]]:
    row, plan = line.row, line.plan
    if plan is None:
        yield "taken as", row.no_plan or "none of the plans tried surely serves the scenario"
        yield "evidence", evidence_text(line.evidence)
    else:
        cards = f"{plan.cards_needed:,} {'card' if plan.cards_needed == 1 else 'cards'} needed"
        yield (
            "lots",
            f"{lots_words(line)}{' cards' if row.lot_size > 1 else ''} ({cards}, {_count(row.idle_cards)} idle)",
        )
    yield from _prices(line)
    if plan is not None:
        yield from _room(row, plan)
    if row.idle_cards and (hosts := hosts_words(row.idle_hosts_copies, row.idle_hosts_sequences)):
        yield "idle cards", f"could host {hosts}"
    offer = line.offer
    if offer is not None and _seller(line):
        ago = f" ({_age(line)} ago)" if _age(line) else ""
        yield "seller", offer.seller
        yield "offered on", f"{day_text(offer) or 'not dated'}{ago}"
    for price in row.prices:
        if price.odd:
            yield "odd", f"{price.term_days} days: {price.odd}"
    if row.throughput is not None:
        yield "throughput", f"{rates_text(row.throughput)} ({row.throughput.evidence})"
    for change in row.changes:
        yield change_label(row, change), change.words
    for remark in row.remarks:
        yield "remark", remark
    for note in line.book.notes if line.book is not None and _seller(line) else ():
        yield "prices", note


def _room(row: CardRow, plan: ArrangementFigures) -> Iterator[tuple[str, str]]:
    """What each card has and needs as it is taken, and how one by itself would do."""
    between = f"{format_size(plan.need_lower_bytes)} to {format_size(plan.need_upper_bytes)}"
    yield "need of each", f"{format_size(plan.need_bytes)} ({between}, {evidence_text(plan.evidence)})"
    if row.capacity_bytes is not None:
        least, most = row.capacity_bytes - plan.need_upper_bytes, row.capacity_bytes - plan.need_lower_bytes
        yield "capacity", format_size(row.capacity_bytes)
        between = f"{format_size(least)} to {format_size(most)}"
        yield "headroom", f"{format_size(row.capacity_bytes - plan.need_bytes)} ({between})"
    if plan.arrangement != "single":
        yield "one card", SYMBOLS[row.verdict]


def _prices(line: OrderLine) -> Iterator[tuple[str, str]]:
    """What every term of the seller costs; that there is no price, where nobody names one."""
    priced = [price for price in line.row.prices if price.price_per_lot is not None]
    if not priced:
        yield "price", "none: it stays blank until a seller names one"
        return
    currency = priced[0].currency or "currency not named"
    of_terms = [(price.term_days, total_text(price)) for price in line.row.prices]
    if line.plan is not None:
        yield f"total, {currency}", " · ".join(f"{days} days {total or '-'}" for days, total in of_terms)
    of_lots = [(price.term_days, _amount(price.price_per_lot)) for price in line.row.prices]
    yield f"a lot, {currency}", " · ".join(f"{days} days {asked or '-'}" for days, asked in of_lots)


def _costs(document: FitDocument, line: OrderLine) -> Iterator[Table | Text]:
    """What work costs in each term, where speed was measured."""
    prices = line.row.prices
    if all(price.cost_per_million_tokens is None for price in prices):
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=DIM)
    for header in ("term", *(f"{one}, {_currency(line)}" for one in cost_headers(document)[3:5])):
        table.add_column(header, justify="left" if header == "term" else "right", style=PLAIN)
    for price in prices:
        costs = (price.cost_per_million_tokens, price.cost_per_thousand_inputs)
        table.add_row(f"{price.term_days} days", *map(_amount, costs))
    yield table
    yield Text(COST_NOTE, DIM)


_READY_STYLES = {
    Readiness.READY: VERDICT_STYLES[Verdict.FITS],
    Readiness.READY_UNPROVEN: STRONG,
    Readiness.NOT_READY: WARNING,
}


def order_head(line: OrderLine, document: OrderDocument | None, words: str, wrong: bool) -> Text:
    """Above the form: the card and how it is taken, whether it can be ordered as it stands and what speaks against it,
    or why there is no order."""
    text = Text.assemble((f"{line.row.card} · ", STRONG), (printable(line.row.name), TITLE))
    if line.plan is not None:
        text.append(f" · {arrangement_words(line.plan)}", DIM)
    if document is not None:
        text.append(f"\n{status(document)}", _READY_STYLES[document.readiness])
        text.append(f" {evidence_text(document.evidence)}", STYLES[document.evidence])
        for blocker in document.blockers:
            text.append(f"\n! {printable(in_fields(blocker))}", WARNING)
    if words:
        text.append(f"\n! {printable(words)}" if wrong else f"\n{words}", WARNING if wrong else DIM)
    return text


_AMOUNT = re.compile(r"[\d,]+\.\d\d \w+")


class _Tables(TableElement):
    """A table without titles, as lines with a label have, has no room kept for them; what is too long wraps."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                table.show_header = any(str(column.header).strip() for column in table.columns)
                for column in table.columns:
                    column.overflow = "fold"
                    # An amount stays beside its currency; other columns give way.
                    column.no_wrap = any(_AMOUNT.fullmatch(str(cell).strip()) for cell in column.cells)
            yield table


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "table_open": _Tables}


class OrderPage:
    """The order file as it will be written, laid out."""

    def __init__(self, markdown: str) -> None:
        self._markdown = _Markdown(markdown, code_theme="ansi_dark")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """In the colours of the other screens."""
        with console.use_theme(_PAGE):
            yield from console.render(self._markdown, options)


_PAGE = Theme(
    {
        "markdown.paragraph": PLAIN,
        "markdown.item": PLAIN,
        "markdown.item.bullet": DIM,
        "markdown.item.number": DIM,
        "markdown.strong": STRONG,
        "markdown.code": STRONG,
        "markdown.code_block": PLAIN,
        "markdown.h1": TITLE,
        "markdown.h1.border": DIM,
        "markdown.h2": TITLE,
        "markdown.h2.border": DIM,
        "markdown.table.header": DIM,
        "markdown.table.border": DIM,
    }
)
