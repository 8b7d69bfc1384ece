"""Which columns a document has: those of every document, and those of an engine that sizes a KV pool as it starts."""

from __future__ import annotations

from collections.abc import Callable

from gpufit.advice.verdict import Verdict
from gpufit.report.cells import COLUMNS, SCREEN_COLUMNS, Column, Value
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.fits_document import FitsDocument, scenario_title
from gpufit.report.start_figures import StartFigures
from gpufit.report.start_text import room_text
from gpufit.units import format_size


def _start(key: str, title: str, value: Callable[[StartFigures], Value], text: Callable[[Value], str] = str) -> Column:
    """A column of a row's start; blank where it has none."""

    def read(document: FitDocument, row: CardRow) -> Value:
        return None if row.start is None else value(row.start)

    def show(document: FitDocument, row: CardRow) -> str:
        found = read(document, row)
        return "" if found is None else text(found)

    return Column(key, title, read, show)


def _size(value: Value) -> str:
    return format_size(value) if isinstance(value, int) else ""


def _room(value: Value) -> str:
    return room_text(value) if isinstance(value, int) else ""


def _count(value: Value) -> str:
    return f"{value:,}" if isinstance(value, int) else ""


def _command(row: CardRow) -> str | None:
    """What starts a copy of the row's arrangement; of a start that may serve, where no arrangement surely does."""
    if row.arrangements:
        return row.arrangements[0].serve_command or None
    return None if row.start is None else row.start.serve_command


def _why_not(document: FitDocument, row: CardRow) -> str:
    """What is in the way of a start that does not surely serve, in short; the notes and details say more."""
    start = row.start
    if start is None:
        return "memory not known"
    if row.verdict is Verdict.FITS:
        return ""
    if start.kv_pool_bytes < 0:
        part = max(start.parts, key=lambda one: one.size_bytes)
        return f"{part.name.replace('_', ' ')}: {format_size(-start.kv_pool_bytes)} short"
    if start.kv_pool_bytes < start.kv_needed_bytes:
        return f"KV pool: {format_size(start.kv_needed_bytes - start.kv_pool_bytes)} short"
    if start.max_num_seqs < document.scenario.concurrency:
        return f"{start.max_num_seqs:,} sequences a step"
    if start.kv_pool_lower_bytes < start.kv_needed_bytes:
        return f"KV pool: up to {format_size(start.kv_needed_bytes - start.kv_pool_lower_bytes)} short"
    return "not the pool: see notes"


START_COLUMNS: tuple[Column, ...] = (
    Column("why_not", "why not", _why_not, _why_not),
    _start("start_tensor_parallel_size", "ranks of the start", lambda one: one.tensor_parallel_size, _count),
    _start("gpu_memory_utilization", "utilization", lambda one: one.gpu_memory_utilization),
    _start("least_gpu_memory_utilization", "least utilization", lambda one: one.least_gpu_memory_utilization),
    _start("budget_bytes", "budget", lambda one: one.budget_bytes, _size),
    _start("kv_pool_bytes", "KV pool", lambda one: one.kv_pool_bytes, _room),
    _start("kv_pool_lower_bytes", "KV pool, lower", lambda one: one.kv_pool_lower_bytes, _room),
    _start("kv_pool_upper_bytes", "KV pool, upper", lambda one: one.kv_pool_upper_bytes, _room),
    _start("kv_needed_bytes", "KV pool needed", lambda one: one.kv_needed_bytes, _size),
    _start("kv_tokens", "KV tokens", lambda one: int(one.kv_tokens.point), _count),
    _start("sequence_bytes", "a sequence", lambda one: one.sequence_bytes, _size),
    _start("max_num_seqs", "sequences a step", lambda one: one.max_num_seqs),
    _start("max_num_batched_tokens", "tokens a step", lambda one: one.max_num_batched_tokens),
    Column("serve_command", "command", lambda document, row: _command(row), lambda document, row: _command(row) or ""),
)
"""What rows with a start have beside the columns of every document."""


def _question(key: str, read: Callable[[FitDocument], str]) -> Column:
    """A column that is the same for all cards of a document."""
    return Column(key, key, lambda document, row: read(document), lambda document, row: read(document))


_QUESTION_COLUMNS: tuple[Column, ...] = (
    _question("profile", lambda document: document.profile),
    _question("scenario", scenario_title),
)

_ON_SCREEN = (
    "card",
    "verdict",
    "capacity_bytes",
    "weights_bytes",
    "kv_pool_bytes",
    "headroom_bytes",
    "why_not",
    "max_concurrency",
    "max_context_tokens",
    "lots",
    "evidence",
)
"""What people see of a server's starts."""


def columns_of(document: FitDocument) -> tuple[Column, ...]:
    """Every column of a document, in the order of its CSV."""
    return (*COLUMNS, *START_COLUMNS) if document.serves else COLUMNS


def question_columns_of(documents: FitsDocument) -> tuple[Column, ...]:
    """The columns of several questions: which question a row answers, and all that any of the documents has."""
    of_all = (column for document in documents.documents for column in columns_of(document))
    return (*_QUESTION_COLUMNS, *{column.key: column for column in of_all}.values())


def screen_columns_of(document: FitDocument) -> tuple[Column, ...]:
    """The columns that people see in a terminal."""
    if not document.serves:
        return SCREEN_COLUMNS
    by_key = {column.key: column for column in columns_of(document)}
    return tuple(by_key[key] for key in _ON_SCREEN)


_WORDS = ("card", "verdict", "binding", "why_not", "evidence")


def reads_left(column: Column) -> bool:
    """Whether a column of the screen holds words, which stand left; numbers stand right."""
    return column.key in _WORDS
