"""The columns of the cards table: one list that table, CSV, Markdown, XLSX and the TUI all take their cells from."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

from gpufit.advice.verdict import Verdict
from gpufit.catalog.offers import TERMS
from gpufit.profile.peaks import Parts
from gpufit.profile.precision import Precision
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.plans import ArrangementFigures
from gpufit.report.precision_words import compute_words, computed_in, dtypes_of
from gpufit.report.prices import BookFigures, Price, ThroughputFigures
from gpufit.units import format_size, format_tokens

Value = str | int | float | None

SYMBOLS: dict[Verdict, str] = {
    Verdict.FITS: "✓ fits",
    Verdict.TOO_CLOSE: "≈ too close",
    Verdict.DOES_NOT_FIT: "✗ does not fit",
    Verdict.UNKNOWN: "? unknown",
}
"""Verdicts as they read on screen: the sign alone tells them apart, without colour."""

PART_TITLES: dict[str, str] = {
    "weights_bytes": "weights",
    "buffers_bytes": "buffers",
    "kv_cache_bytes": "KV cache",
    "inputs_bytes": "inputs",
    "outputs_bytes": "outputs",
    "activations_bytes": "activations",
    "temporaries_bytes": "temporaries",
    "rounding_bytes": "rounding",
    "unexplained_bytes": "unexplained",
    "context_bytes": "driver context",
    "other_bytes": "other",
}
"""Parts as they read on screen."""


@dataclass(frozen=True)
class Column:
    """One column: a stable key for machines, a title for people, a value, and the text people see."""

    key: str
    """Header in CSV, unit included."""
    title: str
    value: Callable[[FitDocument, CardRow], Value]
    text: Callable[[FitDocument, CardRow], str]
    on_screen: bool = True
    """False for columns that only machines get."""


def _plain(value: Value) -> str:
    return "" if value is None else str(value)


def _gib(size: int | None) -> str:
    return "" if size is None else format_size(size)


def _size_column(key: str, title: str, on_screen: bool = True) -> Column:
    def read(document: FitDocument, row: CardRow) -> int | None:
        size: int | None = getattr(row, key)
        return size

    return Column(key, title, read, lambda document, row: _gib(read(document, row)), on_screen)


def _column(key: str, title: str, value: Callable[[FitDocument, CardRow], Value], on_screen: bool = True) -> Column:
    return Column(key, title, value, lambda document, row: _plain(value(document, row)), on_screen)


_CONTROL = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in (*range(0x20), *range(0x7F, 0xA0), 0xFFFE, 0xFFFF)  # the last two are no characters of XML
    if chr(code) != "\n"
}


def printable(text: str) -> str:
    """Text with its control characters made visible: a name in somebody's file must not steer a terminal."""
    return text.translate(_CONTROL)


def scenario_prefix(document: FitDocument) -> str:
    """What the scenario was called, before its shape; nothing where it has no name."""
    return f"{document.scenario.name}: " if document.scenario.name else ""


def binding_place(row: CardRow) -> str:
    """What binds: part and phase, or what keeps the card from fitting where no bytes are missing."""
    if row.reason is not None:
        return row.reason.partition(":")[0]
    return f"{PART_TITLES[row.binding.part]} in {row.binding.phase}"


def binding_text(row: CardRow) -> str:
    """What binds, in words: part, phase, and by how much it is likely short."""
    text = binding_place(row)
    return text if not row.binding.short_bytes else f"{text}, likely short by {format_size(row.binding.short_bytes)}"


def max_context_text(row: CardRow) -> str:
    """The longest context, marked where the model's own limit and not memory sets it."""
    if row.max_context_tokens is None:
        return ""
    mark = " (limit)" if row.max_context_is_position_limit else ""
    return format_tokens(row.max_context_tokens) + mark


def lots_text(row: CardRow) -> str:
    """What to order: lots, cards in a lot, idle cards, and how the cards share the work."""
    return order_words(row.lots, row.lot_size, row.idle_cards, *shared_words(row))


def shared_words(row: CardRow) -> list[str]:
    """How a row's cards share the work, and whether its copies span machines; nothing of a single card."""
    shared = [] if row.arrangement in (None, "single") else [str(row.arrangement)]
    return [*shared, "spans machines"] if row.arrangements and row.arrangements[0].spans_machines else shared


def order_words(lots: int | None, lot_size: int, idle_cards: int | None, *more: str) -> str:
    """`2 x 2 (1 idle)`, in brackets what else is said of it; `-` where no number of lots serves."""
    if lots is None:
        return "-"
    text = f"{lots} x {lot_size}" if lot_size > 1 else str(lots)
    remarks = [*([f"{idle_cards} idle"] if idle_cards else ()), *more]
    return f"{text} ({', '.join(remarks)})" if remarks else text


def _held_for(document: FitDocument, row: CardRow) -> str:
    """What a row's numbers are for: its start, or what the document's are for."""
    return document.holds_for if row.start is None else row.start.holds_for


def _of_first_price(value: Callable[[Price], Value]) -> Callable[[FitDocument, CardRow], Value]:
    """What all prices of a row's first seller share; None where it has none."""
    return lambda document, row: value(row.prices[0]) if row.prices else None


def _of_first_book(value: Callable[[BookFigures], Value]) -> Callable[[FitDocument, CardRow], Value]:
    """What holds for the book of a row's first seller; None where the row has no price."""

    def read(document: FitDocument, row: CardRow) -> Value:
        priced = any(price.price_per_lot is not None for price in row.prices)
        books = [book for book in document.offer_books if priced and book.name == row.prices[0].book]
        return value(books[0]) if books else None

    return read


def _of_plan(value: Callable[[ArrangementFigures], Value]) -> Callable[[FitDocument, CardRow], Value]:
    """What holds for the row's arrangement; None where no number of its cards serves the scenario."""
    return lambda document, row: value(row.arrangements[0]) if row.arrangements else None


def _tensor_parallel_size(document: FitDocument, row: CardRow) -> Value:
    """The ranks of a copy: those of its arrangement, or where none serves of a server's start."""
    if row.arrangements:
        return row.arrangements[0].tensor_parallel_size
    return None if row.start is None else row.start.tensor_parallel_size


def _device_column(key: str, title: str) -> Column:
    """A size of the fullest device of the row's arrangement."""

    def read(document: FitDocument, row: CardRow) -> int | None:
        size: int | None = getattr(row.arrangements[0], key) if row.arrangements else None
        return size

    return Column(f"device_{key}", title, read, lambda document, row: _gib(read(document, row)), on_screen=False)


def _of_throughput(value: Callable[[ThroughputFigures], Value]) -> Callable[[FitDocument, CardRow], Value]:
    return lambda document, row: None if row.throughput is None else value(row.throughput)


def _term_column(key: str, title: str, days: int, value: Callable[[Price], Value]) -> Column:
    """A column of one term of a row's first seller; blank where that is not priced."""

    def read(document: FitDocument, row: CardRow) -> Value:
        first = [price for price in row.prices if price.book == row.prices[0].book]
        return next((value(price) for price in first if price.term_days == days), None)

    return _column(f"{key}_{days}_days", f"{title}, {days} days", read, on_screen=False)


PRICE_COLUMNS: tuple[Column, ...] = (
    _column("currency", "currency", _of_first_price(lambda price: price.currency), on_screen=False),
    _column("seller", "seller", _of_first_price(lambda price: price.seller), on_screen=False),
    _column("offer_book", "offer book", _of_first_price(lambda price: price.book), on_screen=False),
    _column("offered_on", "offered on", _of_first_book(lambda book: _day(book.offered_on)), on_screen=False),
    _column("price_age_days", "price age (days)", _of_first_book(lambda book: book.age_days), on_screen=False),
    _column("price_notes", "price notes", _of_first_book(lambda book: "; ".join(book.notes)), on_screen=False),
    *(_term_column("total_price", "price", days, lambda price: price.total_price) for days in TERMS),
    _column("odd_prices", "odd prices", lambda document, row: _odd_prices(row), on_screen=False),
    *(_term_column("idle_price", "price of idle cards", days, lambda price: price.idle_price) for days in TERMS),
    _column("inputs_per_second", "inputs/s", _of_throughput(lambda one: one.inputs_per_second), on_screen=False),
    _column(
        "generated_tokens_per_second",
        "generated tokens/s",
        _of_throughput(lambda one: one.generated_tokens_per_second),
        on_screen=False,
    ),
    _column(
        "prompt_tokens_per_second",
        "prompt tokens/s",
        _of_throughput(lambda one: one.prompt_tokens_per_second),
        on_screen=False,
    ),
    _column("throughput_how", "throughput from", _of_throughput(lambda one: one.how), on_screen=False),
    _column(
        "throughput_evidence", "throughput evidence", _of_throughput(lambda one: str(one.evidence)), on_screen=False
    ),
    *(
        _term_column(
            "cost_per_million_tokens", "cost per million tokens", days, lambda one: one.cost_per_million_tokens
        )
        for days in TERMS
    ),
    *(
        _term_column("cost_per_thousand_inputs", "cost per 1000 inputs", days, lambda one: one.cost_per_thousand_inputs)
        for days in TERMS
    ),
)
"""Prices, speed and cost: of the row's first seller; `rows.by_seller` gives a row for each."""


def _of_precision(key: str, title: str, value: Callable[[Precision], Value]) -> Column:
    return _column(key, title, lambda document, row: value(document.precision), on_screen=False)


PRECISION_COLUMNS: tuple[Column, ...] = (
    _of_precision("stored_dtype", "stored", lambda one: dtypes_of(one.stored)),
    _of_precision("resident_dtype", "resident", lambda one: dtypes_of(one.resident)),
    _of_precision("compute_dtype", "compute", compute_words),
    _of_precision("kv_dtype", "KV dtype", lambda one: dtypes_of(one.kv)),
    _of_precision(
        "quantization", "quantised", lambda one: None if one.quantization is None else one.quantization.method
    ),
)
"""What the files hold, what is held in memory, what operations run in and what the cache holds, each by itself."""


def _odd_prices(row: CardRow) -> str | None:
    """Which of the first seller's prices are hardly meant, and why."""
    odd = [price for price in row.prices if price.book == row.prices[0].book and price.odd]
    return "; ".join(f"{price.term_days} days: {price.odd}" for price in odd) or None


def _day(day: datetime.date | None) -> str | None:
    return None if day is None else day.isoformat()


COLUMNS: tuple[Column, ...] = (
    _column("model", "model", lambda document, row: document.model.name, on_screen=False),
    _column("engine", "engine", lambda document, row: document.engine.name, on_screen=False),
    _column("context_tokens", "context", lambda document, row: document.scenario.context_tokens, on_screen=False),
    _column("new_tokens", "new tokens", lambda document, row: document.scenario.new_tokens, on_screen=False),
    _column("concurrency", "concurrency", lambda document, row: document.scenario.concurrency, on_screen=False),
    _column("card", "card", lambda document, row: row.card),
    _column("name", "name", lambda document, row: row.name, on_screen=False),
    Column("verdict", "verdict", lambda document, row: str(row.verdict), lambda document, row: SYMBOLS[row.verdict]),
    _size_column("capacity_bytes", "capacity"),
    _size_column("need_bytes", "need"),
    _size_column("need_lower_bytes", "need, lower", on_screen=False),
    _size_column("need_upper_bytes", "at most"),
    _size_column("headroom_bytes", "headroom"),
    _size_column("headroom_lower_bytes", "headroom, lower", on_screen=False),
    _size_column("headroom_upper_bytes", "headroom, upper", on_screen=False),
    Column("binding", "binds", lambda document, row: binding_text(row), lambda document, row: binding_place(row)),
    *(
        Column(
            name,
            PART_TITLES[name],
            lambda document, row, name=name: getattr(row.parts, name),  # type: ignore[misc]
            lambda document, row, name=name: _gib(getattr(row.parts, name)),  # type: ignore[misc]
            on_screen=False,
        )
        for name in Parts.NAMES
    ),
    _size_column("context_bytes", "driver context", on_screen=False),
    _size_column("other_bytes", "other", on_screen=False),
    _column("max_concurrency", "max conc.", lambda document, row: row.max_concurrency),
    Column(
        "max_context_tokens",
        "max context",
        lambda document, row: row.max_context_tokens,
        lambda document, row: max_context_text(row),
    ),
    _column("arrangement", "arrangement", lambda document, row: row.arrangement, on_screen=False),
    _column("tensor_parallel_size", "tensor parallel", _tensor_parallel_size, on_screen=False),
    _column("pipeline_parallel_size", "pipeline", _of_plan(lambda one: one.pipeline_parallel_size), on_screen=False),
    _column("copies", "copies", _of_plan(lambda one: one.copies), on_screen=False),
    _column("sequences_per_copy", "sequences a copy", _of_plan(lambda one: one.sequences_per_copy), on_screen=False),
    _device_column("need_bytes", "need of a device"),
    _device_column("need_lower_bytes", "need of a device, lower"),
    _device_column("need_upper_bytes", "need of a device, at most"),
    _column("arrangement_evidence", "arrangement evidence", _of_plan(lambda one: str(one.evidence)), on_screen=False),
    Column(
        "cards_needed",
        "cards",
        lambda document, row: row.cards_needed,
        lambda document, row: "-" if row.cards_needed is None else str(row.cards_needed),
        on_screen=False,
    ),
    _column("lot_size_cards", "lot size", lambda document, row: row.lot_size, on_screen=False),
    Column("lots", "lots", lambda document, row: row.lots, lambda document, row: lots_text(row)),
    _column("idle_cards", "idle cards", lambda document, row: row.idle_cards, on_screen=False),
    _column("idle_hosts_copies", "idle could host (copies)", lambda document, row: row.idle_hosts_copies, False),
    _column(
        "idle_hosts_sequences", "idle could host (sequences)", lambda document, row: row.idle_hosts_sequences, False
    ),
    _column("machines", "machines", _of_plan(lambda one: one.machines), on_screen=False),
    *PRICE_COLUMNS,
    _column("engine_version", "version", lambda document, row: document.engine.version, on_screen=False),
    _column("attention", "attention", lambda document, row: document.engine.attention, on_screen=False),
    _column("dtype", "dtype", lambda document, row: computed_in(document.precision), on_screen=False),
    *PRECISION_COLUMNS,
    _column("holds_for", "holds for", lambda document, row: _held_for(document, row), on_screen=False),
    _column("remarks", "remarks", lambda document, row: "; ".join(row.remarks), on_screen=False),
    _column("evidence", "evidence", lambda document, row: str(row.evidence)),
)
"""Every column, in the order of the CSV."""

SCREEN_COLUMNS: tuple[Column, ...] = tuple(column for column in COLUMNS if column.on_screen)
"""The columns people see in a terminal."""
