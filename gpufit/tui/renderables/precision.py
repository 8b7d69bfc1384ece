"""The precision screen: what is stored, held and computed in which dtype, and what the switches would make of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from gpufit.memory.held import Cache, Compute, Held, Weights
from gpufit.report.precision import PrecisionDocument, SwitchChoice
from gpufit.report.summary import precision_lines
from gpufit.tui.renderables.evidence import evidence_mark, evidence_text
from gpufit.tui.renderables.palette import DIM, PLAIN, SELECTED_BACKGROUND, STRONG, TITLE
from gpufit.units import format_size

KEYS = {"weights": "w", "compute": "c", "kv_cache": "v"}
"""Of each switch."""
CHOSEN, OPEN, CLOSED = "[x]", "[ ]", " - "
_EVIDENCE_WIDTH = 11


def columns(document: PrecisionDocument) -> Group:
    """The four columns as they were found, and where a switch is set as they would be."""
    parts: list[Text | Table] = [*_columns("as found in the run", precision_lines(document.as_profiled))]
    if document.now != document.as_profiled:
        parts += [Text(), *_columns("as switched: worked out, never measured", precision_lines(document.now))]
    if document.rules:
        parts += [Text(), *_lines("by these rules", document.rules)]
    return Group(*parts)


def _columns(title: str, lines: Sequence[str]) -> tuple[Text, Table]:
    grid = Table.grid(Column(width=11, style=DIM), Column(ratio=1, style=PLAIN), expand=True)
    for line in lines:
        name, words = line[:10].strip(), line[10:].strip()
        if line.startswith("finding: "):
            name, words = "finding", line.removeprefix("finding: ")
        grid.add_row(Text(name), Text(words))
    return Text(title, TITLE), grid


def _lines(title: str, lines: Sequence[str]) -> tuple[Text, Table]:
    grid = Table.grid(Column(width=2, style=DIM), Column(ratio=1, style=PLAIN), expand=True)
    for line in lines:
        grid.add_row(Text("·"), Text(line))
    return Text(title, TITLE), grid


def switches(document: PrecisionDocument, width: int) -> tuple[Text, tuple[Held | None, ...]]:
    """The three switches with what each position would come to, in lines of so many columns; and for each line what a
    click on it chooses."""
    text, chosen = Text(no_wrap=True, overflow="ellipsis"), held_of(document)
    text.append(f"{_heading(width)}\n", DIM)
    rows: list[Held | None] = [None]
    for switch, key in KEYS.items():
        positions = document.of(switch)
        text.append(f"{positions[0].title} ", TITLE).append(f"{key}\n", STRONG)
        rows.append(None)
        for one in positions:
            line = _position(one, width)
            if one.chosen:
                line.stylize(f"bold on {SELECTED_BACKGROUND}")
            line.truncate(width, overflow="ellipsis")
            text.append_text(line).append("\n")
            rows.append(None if one.why_not else _with(chosen, one))
        text.append("\n")
        rows.append(None)
    text.append("allocated: at the highest peak; a card adds its driver context", DIM)
    return text, (*rows, None)


def held_of(document: PrecisionDocument) -> Held:
    """The switches as a document has them set."""
    values = {one.switch: one.value for one in document.choices if one.chosen}
    return Held(Weights(values["weights"]), Compute(values["compute"]), Cache(values["kv_cache"]))


def _with(held: Held, one: SwitchChoice) -> Held:
    """The switches with one set to a position of its own."""
    match one.switch:
        case "weights":
            return replace(held, weights=Weights(one.value))
        case "compute":
            return replace(held, compute=Compute(one.value))
        case _:
            return replace(held, kv_cache=Cache(one.value))


def _heading(width: int) -> str:
    """What stands in each column of a position, as far as there is room."""
    text = f"{'':16}{'allocated':>10} {'evidence':<{_EVIDENCE_WIDTH}}"
    for words in _more("lower", "upper", "peak in"):
        text += words if len(text) + len(words) <= width else ""
    return text.rstrip()


def _more(lower: str, upper: str, phase: str) -> tuple[str, str]:
    """The columns that only a wide screen has room for: the bounds, then the phase."""
    bounds = f"{lower:>10} .. {upper}"
    return f"{bounds:<25}", f" {phase}"


def _position(one: SwitchChoice, width: int) -> Text:
    """One line: what it would come to with its evidence, then the bounds and the phase as far as there is room."""
    sign = CLOSED if one.why_not else CHOSEN if one.chosen else OPEN
    text = Text.assemble((f"{sign} ", STRONG), (f"{one.value:<12}", DIM if one.why_not else PLAIN))
    if one.allocated_bytes is None or one.allocated_lower_bytes is None or one.allocated_upper_bytes is None:
        short = len(text) + len(one.why_not) <= width
        return text.append(one.why_not if short else "does not apply: why is said below", DIM)
    text.append(f"{format_size(one.allocated_bytes):>10} ", PLAIN)
    if one.evidence is not None:
        text.append_text(evidence_mark(one.evidence))
        text.append(" " * max(_EVIDENCE_WIDTH - len(evidence_text(one.evidence)), 0))
    lower, upper = format_size(one.allocated_lower_bytes), format_size(one.allocated_upper_bytes)
    for words in _more(lower, upper, str(one.phase)):
        if len(text) + len(words) <= width:
            text.append(words, DIM)
    return text


def reasons(document: PrecisionDocument) -> Group:
    """Why a position cannot be chosen, in full."""
    named: dict[str, list[str]] = {}
    for one in document.choices:
        if one.why_not:
            named.setdefault(one.why_not, []).append(f"{one.title} {one.value}")
    found = [f"{', '.join(names)}: {why_not}" for why_not, names in named.items()]
    return Group(*_lines("what cannot be switched, and why", found)) if found else Group()
