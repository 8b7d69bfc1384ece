"""A server's start in words: parts of a rank with their intervals, the KV pool, what decides, and the command."""

from __future__ import annotations

import math

from gpufit.advice.verdict import Verdict
from gpufit.report.cells import SYMBOLS, scenario_prefix
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.plans import ArrangementFigures, arrangement_words
from gpufit.report.start_figures import CountFigures, StartFigures
from gpufit.units import format_size, format_tokens

TITLES = {
    "weights": "weights",
    "lora": "LoRA slots",
    "activation": "activation",
    "non_torch": "outside torch",
    "cuda_graphs": "CUDA graphs",
}
"""Parts of a start as they read on screen."""

PART_HEADERS = ("a rank", "likely", "between", "how it came about")

MOST_DETAILED = 3
"""Cards up to which each gets its parts; beyond, the table of cards is the answer."""


def detailed_rows(document: FitDocument) -> tuple[tuple[CardRow, StartFigures], ...]:
    """The rows whose parts are shown."""
    found = tuple((row, row.start) for row in document.cards if row.start is not None)
    return found if len(document.cards) <= MOST_DETAILED else ()


def detail_hint(document: FitDocument) -> str:
    """Where to find the parts of many cards; empty where they are shown."""
    if not document.serves or len(document.cards) <= MOST_DETAILED:
        return ""
    return f"parts, intervals and the command of each: --json, or name up to {MOST_DETAILED} cards with --card"


def start_headline(document: FitDocument) -> str:
    """What the numbers hold for, the question, and the answer."""
    scenario = document.scenario
    new = f" ({scenario.new_tokens} of them new)" if scenario.new_tokens else ""
    fits = sum(row.verdict is Verdict.FITS for row in document.cards)
    answer = SYMBOLS[document.cards[0].verdict] if len(document.cards) == 1 else f"fits {fits} of {len(document.cards)}"
    return two_lines(
        document.holds_for,
        f"{scenario_prefix(document)}sequences of {format_tokens(scenario.context_tokens)} tokens{new} x "
        f"{scenario.concurrency} at once: {answer} · evidence: {document.evidence}",
    )


def two_lines(first: str, second: str) -> str:
    """A headline of exactly two lines, whatever the names in it hold."""
    return "\n".join(line.replace("\n", " ") for line in (first, second))


def part_rows(start: StartFigures) -> list[list[str]]:
    """Parts, and the KV pool that they leave, each with its interval and how it came about."""
    rows = [
        [
            TITLES.get(part.name, part.name),
            format_size(part.size_bytes),
            _between(part.lower_bytes, part.upper_bytes),
            f"{'; '.join(part.words)} ({part.evidence})",
        ]
        for part in start.parts
    ]
    left = f"left of the budget of {format_size(start.budget_bytes)}, {start.gpu_memory_utilization:g} of the card"
    return [*rows, ["KV pool", room_text(start.kv_pool_bytes), _rooms(start), "; ".join((left, *start.pool))]]


def room_text(size_bytes: int) -> str:
    """What a budget leaves for the KV pool, or by how much it is short before there is any."""
    return f"{format_size(-size_bytes)} short" if size_bytes < 0 else format_size(size_bytes)


def _rooms(start: StartFigures) -> str:
    lower, upper = start.kv_pool_lower_bytes, start.kv_pool_upper_bytes
    if upper < 0:
        return f"{format_size(-upper)} to {format_size(-lower)} short"
    return f"{room_text(lower)} to {room_text(upper)}"


def answer_lines(document: FitDocument, row: CardRow, start: StartFigures) -> list[str]:
    """Tokens and sequences that the pool holds, how many sequences run at once, and what decides."""
    scenario = document.scenario
    length = format_tokens(scenario.context_tokens)
    pool, at_once = start.pool_concurrency, start.max_concurrency
    each = format_size(start.sequence_bytes)
    lines = [
        f"KV cache: {_counts(start.kv_tokens, 0)} tokens; a sequence of {length} takes {each}",
        f"concurrency at {length}: {_counts(pool, 1)}, by the pool alone, as vLLM's log prints it",
        f"at once: {math.floor(at_once.lower)} surely, never more than {start.max_num_seqs} (--max-num-seqs); asked "
        f"for: {scenario.concurrency}",
    ]
    if start.kv_pool_upper_bytes < 0:
        size = f"{each} each" if start.sequence_bytes else "nothing cached"
        lines = [f"no KV pool is left; asked for: {scenario.concurrency} x {length}, {size}"]
    elif not start.sequence_bytes:
        lines = [f"nothing is cached: {start.max_num_seqs} sequences run at once; asked for: {scenario.concurrency}"]
    lines.append(f"{SYMBOLS[row.verdict]}: {start.binding}")
    if start.least_gpu_memory_utilization is not None:
        lines.append(
            f"the least that surely serves this: --gpu-memory-utilization {start.least_gpu_memory_utilization:g}"
        )
    if row.arrangements:
        lots = f", in lots of {row.lot_size}: {row.lots}" if row.lot_size > 1 else ""
        lines.append(f"for all {scenario.concurrency}: {_taken(row.arrangements[0])}{lots}")
    return lines


def start_lines(document: FitDocument) -> list[str]:
    """The same for every row as plain lines, for places without a table."""
    lines = []
    for row, start in detailed_rows(document):
        lines.append(start.holds_for)
        lines += [f"{name}: {likely} ({between}): {words}" for name, likely, between, words in part_rows(start)]
        lines += answer_lines(document, row, start)
        lines += [line for titled in commands(row, start) for line in titled]
    return lines


def commands(row: CardRow, start: StartFigures) -> list[tuple[str, str]]:
    """(what it starts, the command) of each arrangement, the best first, and of a start that may serve as it is."""
    plans = row.arrangements
    found = [(_title(row, one, start, len(plans) == 1), one.serve_command) for one in plans]
    if start.serve_command and start.serve_command not in [command for _, command in found]:
        found.append(("or a single copy, which may not be enough:" if plans else "start it with:", start.serve_command))
    return found


def _title(row: CardRow, plan: ArrangementFigures, start: StartFigures, only: bool) -> str:
    what = "start it with:" if plan.copies == 1 else "start each copy with:"
    if plan.copies > 1 and row.verdict is Verdict.TOO_CLOSE and plan.serve_command == start.serve_command:
        what = "start each copy with this, or a single one, which may not be enough:"
    ranks = (start.tensor_parallel_size, start.pipeline_parallel_size)
    told = only and (plan.tensor_parallel_size, plan.pipeline_parallel_size) == ranks
    return what if told else f"{_taken(plan)}; {what}"


def _taken(plan: ArrangementFigures) -> str:
    """How many cards, and as what: `4 cards: 2 copies, each over 2 (tensor parallel)`."""
    cards = "1 card" if plan.cards_needed == 1 else f"{plan.cards_needed} cards"
    return cards if plan.arrangement == "single" else f"{cards}: {arrangement_words(plan)}"


def _between(lower: int, upper: int) -> str:
    return "exactly" if lower == upper else f"{format_size(lower)} to {format_size(upper)}"


def _counts(count: CountFigures, digits: int) -> str:
    return f"{count.point:,.{digits}f} ({count.lower:,.{digits}f} to {count.upper:,.{digits}f})"
