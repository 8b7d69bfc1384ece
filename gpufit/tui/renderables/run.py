"""How a run stands, its grid of cells, the parts of the cell measured last, and what each cell came to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from gpufit.advice.verdict import Verdict
from gpufit.profile.cells import Cell, Measured
from gpufit.profile.peaks import Parts, PhasePeak
from gpufit.report.run_text import cell_line
from gpufit.sources.measure.events import RunRequest
from gpufit.tui import run_state
from gpufit.tui.renderables.evidence import evidence_mark
from gpufit.tui.renderables.palette import DIM, GROUPS, PLAIN, STRONG, TITLE, VERDICT_STYLES, FilledGroup
from gpufit.tui.run_asked import in_form_words
from gpufit.tui.run_state import CellState, RunState, Stage
from gpufit.units import format_size, format_tokens

_GOOD, _WARNING, _BAD = (VERDICT_STYLES[one] for one in (Verdict.FITS, Verdict.TOO_CLOSE, Verdict.DOES_NOT_FIT))

_STAGE_STYLES = {
    Stage.FINISHED: _GOOD,
    Stage.STOPPING: _WARNING,
    Stage.STOPPED: _WARNING,
    Stage.REFUSED: _BAD,
    Stage.CRASHED: _BAD,
}

_STAGE_SIGNS = {
    Stage.FINISHED: "✓ ",
    Stage.STOPPED: "! ",
    Stage.REFUSED: "✗ ",
    Stage.CRASHED: "✗ ",
}

CELL_STYLES = {
    CellState.MEASURED: _GOOD,
    CellState.OUT_OF_MEMORY: _BAD,
    CellState.FAILED: _WARNING,
    CellState.SKIPPED: DIM,
    CellState.RUNNING: STRONG,
    CellState.WAITING: DIM,
}

CELL_WORDS = {
    CellState.MEASURED: "done",
    CellState.OUT_OF_MEMORY: "out of memory",
    CellState.FAILED: "failed",
    CellState.SKIPPED: "left out",
    CellState.RUNNING: "now",
    CellState.WAITING: "waits",
}

_BAR_WIDTH = 32
_MOST_CELL_LINES = 12


def status(state: RunState, at: float, width: int) -> Text:
    """Where the run stands, in a line of its own; below it how far it has come and what happens next."""
    text = Text()
    sign, what = _STAGE_SIGNS.get(state.stage, ""), _reason(state) or _what_happens(state)
    text.append(f"{sign}{state.stage}", _STAGE_STYLES.get(state.stage, STRONG))
    if what.startswith(f"{state.stage} "):  # `loading the model` says of itself what stage it is
        text.append(what.removeprefix(str(state.stage)), PLAIN)
    elif what:
        text.append(f": {what}", PLAIN)
    if state.alive and state.stage is not Stage.STARTING:
        text.append(f"  {duration(at - state.since)}", DIM)
    if state.total:
        text.append("\n").append_text(progress(state.done, state.total, min(width, 60)))
    if state.purpose:
        text.append(f"\nadaptive: {state.purpose}", DIM)
    for line in _next_lines(state):
        text.append(f"\n{line}", PLAIN)
    return text


def _reason(state: RunState) -> str:
    """Why it was refused, in the words of the form that asked for it; or how it crashed."""
    if state.stage is Stage.REFUSED and state.request is not None:
        return in_form_words(state.request, state.reason, state.there)
    return state.reason


def _what_happens(state: RunState) -> str:
    if state.alive and state.current is not None:
        return f"context {format_tokens(state.current.context_tokens)} x {state.current.concurrency}"
    return state.now if state.alive and state.now != str(state.stage) else ""


def _next_lines(state: RunState) -> Iterable[str]:
    """What can be done now."""
    if state.stage is Stage.IDLE:
        yield "tab goes into the form, ctrl+s starts what it asks for"
        yield "cells, parts and outcomes come here, and every other screen answers for the profile as it grows"
    elif state.stage is Stage.STOPPING:
        yield "the worker is asked to end; finished cells stay"
    elif state.alive and state.last_measured is not None:
        yield f"{state.output} grows: the other screens answer for the cells it has (o opens it)"
    elif state.stage is Stage.FINISHED:
        yield f"{state.output} (o opens its cards)"
    if state.request is not None and run_state.again(state) is not None:
        yield again_words(state, state.request)


def again_words(state: RunState, request: RunRequest) -> str:
    """What taking a run up again does, in words."""
    if not run_state.goes_on(request):
        return "u starts it again from the beginning"
    kept = "" if not state.output else f": finished cells are in {state.output}"
    return f"u goes on with it{kept}"


def progress(done: int, total: int, width: int) -> Text:
    """`[██████----] 3 of 7 cells`, at most `width` cells."""
    said = f" {done} of {total} cells"
    room = max(width - len(said) - 2, 4)
    filled = room * min(done, total) // total
    return Text.assemble(("[", DIM), ("█" * filled, _GOOD), ("-" * (room - filled), DIM), ("]", DIM), (said, STRONG))


def duration(seconds: float) -> str:
    """`9 s`, `2 min 05 s`, `1 h 03 min`."""
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def cell_grid(state: RunState, width: int) -> Table:
    """A field for each context and number of sequences at once: its sign, and its highest peak where there is room."""
    contexts, many = run_state.grid_axes(state)
    sized = _has_room_for_peaks(state, width)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    for _ in many:
        table.add_column(no_wrap=True)
    table.add_row(Text("context", DIM), *(Text(f"x {format_tokens(one)}", DIM) for one in many))
    for context in contexts:
        table.add_row(
            Text(format_tokens(context), PLAIN), *(_field(state, context, concurrency, sized) for concurrency in many)
        )
    return table


def _has_room_for_peaks(state: RunState, width: int) -> bool:
    """Whether a field has room for a peak beside its sign."""
    return width >= 9 + 15 * len(run_state.grid_axes(state)[1])


def _field(state: RunState, context: int, concurrency: int, sized: bool) -> Text:
    sign, cell = run_state.cell_state(state, context, concurrency)
    peak = f" {format_size(_highest(cell))}" if sized and cell is not None and sign is CellState.MEASURED else ""
    return Text.assemble((str(sign), CELL_STYLES[sign]), (peak, PLAIN))


def _highest(cell: Cell) -> int:
    phases = cell.outcome.phases if isinstance(cell.outcome, Measured) else ()
    return max((peak.allocated_bytes for peak in phases), default=0)


def grid_legend(state: RunState) -> Text:
    """What the signs in the grid mean, in one line."""
    contexts, many = run_state.grid_axes(state)
    used = {run_state.cell_state(state, context, one)[0] for context in contexts for one in many}
    entries = ((f"{sign} ", CELL_STYLES[sign], words) for sign, words in CELL_WORDS.items() if sign in used)
    return Text("  ").join(Text.assemble((sign, style), (words, DIM)) for sign, style, words in entries)


def _title(words: str, state: RunState) -> Text:
    """A title, with the evidence of the figures below it."""
    mark = Text() if state.started is None else evidence_mark(state.started.evidence)
    return Text.assemble((words, TITLE), "  ", mark)


def cells_section(state: RunState, width: int) -> Group:
    """The grid under its title."""
    return Group(
        _title(f"Cells{', each with its highest peak' if _has_room_for_peaks(state, width) else ''}", state),
        Padding(cell_grid(state, width), (0, 0, 0, 1)),
        grid_legend(state),
    )


def parts_section(state: RunState) -> Group:
    """The parts at each peak of the cell measured last, all on one scale; before it, those of loading."""
    peaks, cell = state.peaks, state.last_measured
    what = "loading" if cell is None else f"context {format_tokens(cell.context_tokens)} x {cell.concurrency}"
    return Group(
        _title(f"Parts at the peak: {what}", state), Padding(Group(_bars(peaks), "", _parts_table(peaks)), (0, 0, 0, 1))
    )


def _bars(peaks: Sequence[PhasePeak]) -> Table:
    """A bar for each phase."""
    largest = max((peak.allocated_bytes for peak in peaks), default=0)
    table = Table.grid(padding=(0, 2, 0, 0))
    for peak in peaks:
        table.add_row(Text(peak.phase, STRONG), parts_bar(peak.parts, largest, _BAR_WIDTH))
    return table


def _parts_table(peaks: Sequence[PhasePeak]) -> Table:
    """What the fills stand for, with their sizes."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for _ in peaks:
        table.add_column(justify="right", no_wrap=True)
    table.add_row("", *(Text(peak.phase, DIM) for peak in peaks))
    for group in GROUPS:
        sizes = [group_bytes(group, peak.parts) for peak in peaks]
        if any(sizes):
            title = Text.assemble((f"{group.fill} ", group.colour), (group.title, DIM))
            table.add_row(title, *(Text(format_size(size), PLAIN) for size in sizes))
    table.add_row(Text("allocated", DIM), *(Text(format_size(peak.allocated_bytes), STRONG) for peak in peaks))
    return table


def parts_bar(parts: Parts, largest_bytes: int, width: int) -> Text:
    """The parts stacked, `width` cells standing for `largest_bytes`; what is there at all shows in a cell."""
    text = Text(no_wrap=True)
    reached = 0
    drawn = 0
    for group in GROUPS:
        reached += group_bytes(group, parts)
        end = -(-reached * width // largest_bytes) if largest_bytes else 0
        text.append(group.fill * (end - drawn), group.colour)
        drawn = end
    return text


def group_bytes(group: FilledGroup, parts: Parts) -> int:
    """The bytes of a group among parts inside the allocator."""
    return sum(getattr(parts, name) for name in group.parts if name in Parts.NAMES)


def outcome_lines(state: RunState, width: int, most: int = _MOST_CELL_LINES) -> Group:
    """What the cells came to, the last one first, in the command's own words."""
    grid = Table.grid(Column(width=5), Column(ratio=1, style=PLAIN), expand=True)
    for cell in list(reversed(state.cells))[:most]:
        sign = run_state.outcome_of(cell)
        grid.add_row(Text(str(sign), CELL_STYLES[sign]), Text(_at_commas(cell_line(cell), width - 5)))
    if len(state.cells) > most:
        grid.add_row("", Text(f"and {len(state.cells) - most} before", DIM))
    return Group(_title("Outcomes, the last one first", state), grid)


def _at_commas(line: str, width: int) -> str:
    """A line in lines of at most `width` cells that end behind a comma, so that no number loses its unit."""
    lines: list[str] = []
    for piece in line.split(", "):
        if lines and len(lines[-1]) + len(piece) + 3 <= width:
            lines[-1] += f", {piece}"
        else:
            lines = [*lines[:-1], f"{lines[-1]},", piece] if lines else [piece]
    return "\n".join(lines)


def summary(lines: Sequence[str]) -> Group:
    """What came of a finished run, a paragraph each, as the command says it."""
    grid = Table.grid(Column(width=2, style=DIM), Column(ratio=1, style=PLAIN), expand=True)
    for line in lines:
        grid.add_row("·", Text(line))
    return Group(Text("What came of it", TITLE), grid)
