"""The words and rows of a comparison that the table and Markdown share."""

from __future__ import annotations

from collections.abc import Mapping

from gpufit.advice.accounts import TermDifference
from gpufit.advice.comparison import PartDifference, PhaseDifference, PhaseSide
from gpufit.profile.memory_model import TermName
from gpufit.profile.peaks import Phase
from gpufit.report.cells import PART_TITLES
from gpufit.report.compare_document import Compared, CompareDocument
from gpufit.report.conclusion import signed_size
from gpufit.units import format_size, format_tokens

PART_HEADERS = ("part", "A", "B", "B - A", "what accounts for it")
DIFFERENCE_HEADERS = ("about", "what", "A", "B")


def side_lines(document: CompareDocument) -> list[str]:
    """Which two, and the shape they are compared at."""
    scenario = document.scenario
    new = f" + {scenario.new_tokens} new" if scenario.new_tokens > 1 else ""
    return [
        f"A = {_side(document.a)}",
        f"B = {_side(document.b)}",
        f"at context {format_tokens(scenario.context_tokens)}{new} x {scenario.concurrency} at once{_ran(document)} · "
        f"evidence: {document.evidence}",
    ]


def _side(one: Compared) -> str:
    return (
        f"{one.model.name} · {one.engine.name} {one.engine.version} ({one.engine.attention}) · {one.evidence}, "
        f"{one.measured_on} · {one.profile}"
    )


def _ran(document: CompareDocument) -> str:
    """Which of the two ran this very cell."""
    beside_load = [phase for phase in document.phases if phase.phase is not Phase.LOAD]
    a = any(phase.a is not None and phase.a.ran for phase in beside_load)
    b = any(phase.b is not None and phase.b.ran for phase in beside_load)
    who = "both" if a and b else "A" if a else "B" if b else "neither"
    return f", which {who} ran"


def difference_rows(document: CompareDocument) -> list[list[str]]:
    """What the two record differently, a topic's name once."""
    rows, topic = [], ""
    for one in document.differences:
        rows.append(["" if one.topic == topic else str(one.topic), one.what, one.a, one.b])
        topic = one.topic
    return rows


def phase_title(phase: PhaseDifference) -> str:
    """`prefill: 473.0 MiB against 801.7 MiB: B takes +328.7 MiB`, with intervals where there are any."""
    if phase.a is None or phase.b is None:
        side, name = (phase.a, "A") if phase.b is None else (phase.b, "B")
        return f"{phase.phase}: {name} alone, {_allocated(side)}"
    text = f"{phase.phase}: {_allocated(phase.a)} against {_allocated(phase.b)}"
    if not phase.difference_bytes:
        return f"{text}: the same"
    beyond = "beyond the intervals" if phase.beyond_intervals else "no difference beyond the intervals"
    return f"{text}: {signed_size(phase.difference_bytes)}, {beyond}"


def _allocated(side: PhaseSide | None) -> str:
    if side is None:
        return ""
    text = format_size(side.allocated_bytes)
    if side.allocated_lower_bytes == side.allocated_upper_bytes:
        return text
    between = f"{format_size(side.allocated_lower_bytes)} to {format_size(side.allocated_upper_bytes)}"
    return f"{text} ({between}, {side.evidence})"


def peak_line(phase: PhaseDifference) -> str:
    """Where both peak; empty where nobody looked."""
    places = [(name, side.site) for name, side in (("A", phase.a), ("B", phase.b)) if side is not None and side.site]
    if not places:
        return ""
    if len(places) == 2 and places[0][1] == places[1][1]:
        return f"both peak in {places[0][1]}"
    return "; ".join(f"{name} peaks in {site}" for name, site in places)


def part_rows(phase: PhaseDifference) -> list[list[str]]:
    """The parts that either of them has, then the counters of their devices; none where all of them are the same."""
    counters = _counters(phase)
    if all(one.difference_bytes == 0 for one in phase.parts) and all(row[3] == _SAME for row in counters):
        return []
    return [*(_part(one) for one in phase.parts if one.a_bytes or one.b_bytes), *counters]


_SAME = "same"


def _counters(phase: PhaseDifference) -> list[list[str]]:
    """What the devices' own counters said, where any of them was read."""
    a, b = ({} if side is None else side.counters for side in (phase.a, phase.b))
    rows = []
    for name in dict.fromkeys([*a, *b]):
        one, other = a.get(name), b.get(name)
        difference = "" if one is None or other is None else _difference(other - one)
        sizes = ["" if size is None else format_size(size) for size in (one, other)]
        rows.append([name, *sizes, difference, "a counter, not a part"])
    return rows


def _difference(size_bytes: int) -> str:
    return signed_size(size_bytes) if size_bytes else _SAME


def _part(one: PartDifference) -> list[str]:
    return [
        PART_TITLES[one.part],
        "" if one.a_bytes is None else format_size(one.a_bytes),
        "" if one.b_bytes is None else format_size(one.b_bytes),
        "" if one.difference_bytes is None else _difference(one.difference_bytes),
        "; ".join(accounts_words(one)),
    ]


def accounts_words(one: PartDifference) -> list[str]:
    """What accounts for a part's difference, then how its growth differs, where that is more than the intervals."""
    all_of_it = len(one.terms) == 1 and one.terms[0].term == "constant"  # its bytes stand beside it as A and B
    growth = one.terms if one.beyond_intervals and not all_of_it else ()
    return [*(account.words for account in one.accounts), *filter(None, map(_term, growth))]


def _term(one: TermDifference) -> str:
    """`23,040 B against 46,080 B a token`, `92 B a token in B alone`; empty where both read alike."""
    if one.term == "constant":
        a, b = format_size(one.a_bytes), format_size(one.b_bytes)
    else:
        a, b = _rate(one.a_bytes_per_unit), _rate(one.b_bytes_per_unit)
    words = TERM_WORDS[one.term]
    if not one.a_bytes or not one.b_bytes:
        return f"{a} {words} in A alone" if one.a_bytes else f"{b} {words} in B alone"
    return "" if a == b else f"{a} against {b} {words}"


def _rate(size: float) -> str:
    whole = round(size)
    return f"{whole:,} B" if whole >= 10 or abs(size - whole) < 0.005 else f"{size:.2g} B"


TERM_WORDS: Mapping[TermName, str] = {
    "constant": "at any shape",
    "per_sequence": "a sequence",
    "per_position": "a position, once for all sequences",
    "per_token": "a token",
    "per_past_token": "a token held before the step",
    "per_prompt_token": "a token of the prompt",
    "per_reserved_token": "a token, new ones reserved from the start",
    "per_token_in_window": "a token within the sliding window",
    "per_token_in_chunks": "a token, in whole chunks",
    "per_token_squared": "a pair of tokens of a sequence",
    "mask": "a pair of tokens, once for all sequences",
    "per_token_beyond_window": "a token, once the window is full",
    "per_token_squared_beyond_window": "a pair of tokens of a sequence, once the window is full",
    "mask_beyond_window": "a pair of tokens, once for all sequences and once the window is full",
    "tile": "an element of the CPU kernel's tile",
    "tile_row": "a row of the CPU kernel's tile",
}
"""What a term of the memory model counts, after `B`."""
