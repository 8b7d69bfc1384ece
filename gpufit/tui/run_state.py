"""How far a run has come, as one frozen record, and what each event makes of it. Knows nothing of Textual."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import msgspec

from gpufit.profile.cells import Cell, Failed, Measured, OutOfMemory, Skipped
from gpufit.profile.peaks import PhasePeak
from gpufit.sources.measure.events import (
    CellBegan,
    CellDone,
    Crashed,
    Finished,
    Interrupted,
    Now,
    Refused,
    RoundBegan,
    RunEvent,
    RunRequest,
    Started,
)
from gpufit.sources.measure.protocol import CellKey


class Stage(enum.StrEnum):
    """Where a run stands, as it reads on screen."""

    IDLE = "nothing runs"
    STARTING = "starting"
    LOADING = "loading"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
    STOPPED = "stopped"
    REFUSED = "refused"
    CRASHED = "crashed"


ALIVE = frozenset({Stage.STARTING, Stage.LOADING, Stage.RUNNING, Stage.STOPPING})
"""A process is there."""

_MAY_STOP = ALIVE - {Stage.STOPPING}


class CellState(enum.StrEnum):
    """What stands in a field of the grid: a sign that reads without colour."""

    MEASURED = "✓"
    OUT_OF_MEMORY = "✗mem"
    FAILED = "!"
    SKIPPED = "-"
    RUNNING = "▸"
    WAITING = "·"


@dataclass(frozen=True)
class RunState:
    """What is known of the run begun last."""

    stage: Stage = Stage.IDLE
    request: RunRequest | None = None
    """What was asked for; None before the first run."""
    now: str = ""
    """What happens, in the run's own words."""
    purpose: str = ""
    """What the cells of an adaptive sweep are for."""
    started: Started | None = None
    """What is known since the model was loaded."""
    cells: tuple[Cell, ...] = ()
    """Those with an outcome, an earlier run's first."""
    done: int = 0
    total: int = 0
    """Cells wanted so far; 0 while that is not known."""
    current: CellKey | None = None
    """The cell being run."""
    since: float = 0.0
    """When what happens now began, in seconds of the clock that `at` is read from."""
    reason: str = ""
    """Why it was refused, or how it crashed."""
    there: str = ""
    """The file whose being there is why it was refused; empty otherwise."""
    output: str = ""
    """The file; empty while it is not known."""

    @property
    def alive(self) -> bool:
        """Whether a process is there, which would have to be stopped."""
        return self.stage in ALIVE

    @property
    def may_stop(self) -> bool:
        """Whether it can be asked to end, and was not yet."""
        return self.stage in _MAY_STOP

    @property
    def last_measured(self) -> Cell | None:
        """The cell measured last; None before the first."""
        return next((cell for cell in reversed(self.cells) if isinstance(cell.outcome, Measured)), None)

    @property
    def peaks(self) -> tuple[PhasePeak, ...]:
        """The peaks of the cell measured last; before the first, that of loading."""
        cell = self.last_measured
        if cell is not None and isinstance(cell.outcome, Measured):
            return cell.outcome.phases
        return () if self.started is None else (self.started.load,)


def begin(request: RunRequest, at: float) -> RunState:
    """A run that was just asked for."""
    return RunState(stage=Stage.STARTING, request=request, now="starting", since=at)


def stop_asked(state: RunState) -> RunState:
    """It was asked to end, and has not yet."""
    return replace(state, stage=Stage.STOPPING) if state.may_stop else state


def apply(state: RunState, event: RunEvent, at: float) -> RunState:
    """The state after an event; nothing changes a run that has ended."""
    return _CHANGES[type(event)](state, event, at) if state.alive else state


def refused_at_once(state: RunState) -> bool:
    """Whether what was asked for could not even begin: it has to be asked otherwise."""
    return state.stage is Stage.REFUSED and state.started is None


def again(state: RunState) -> RunRequest | None:
    """What goes on with a run that was stopped or broke off, or starts it again where nothing can be gone on with; None
    where there is nothing to take up."""
    broke_off = state.stage is Stage.REFUSED and state.started is not None
    if state.request is None or not (broke_off or state.stage in (Stage.STOPPED, Stage.CRASHED)):
        return None
    asked = state.request
    if asked.profile is None:
        return asked
    if goes_on(asked):
        return msgspec.structs.replace(asked, profile=replace(asked.profile, resume=True, force=False))
    # What stands in the file was written by this run, once the model was loaded.
    return msgspec.structs.replace(
        asked, profile=replace(asked.profile, force=asked.profile.force or state.started is not None)
    )


def goes_on(request: RunRequest) -> bool:
    """Whether a run that was stopped keeps its cells: one on a device; on fake tensors they are made anew."""
    return request.profile is not None and request.profile.simulation is None


def cell_state(state: RunState, context_tokens: int, concurrency: int) -> tuple[CellState, Cell | None]:
    """What stands in one field of the grid, and its cell where it has an outcome."""
    key = state.current
    if key is not None and state.alive and (key.context_tokens, key.concurrency) == (context_tokens, concurrency):
        return CellState.RUNNING, None
    for cell in reversed(state.cells):
        if (cell.context_tokens, cell.concurrency) == (context_tokens, concurrency):
            return outcome_of(cell), cell
    # A run that has come to its end has no cell left that waits: those without an outcome it could do without.
    return CellState.SKIPPED if state.stage is Stage.FINISHED else CellState.WAITING, None


def outcome_of(cell: Cell) -> CellState:
    """How a cell ended."""
    return _OUTCOMES[type(cell.outcome)]


def grid_axes(state: RunState) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The contexts and concurrencies that a run has fields for, of its cells too; none before it is loaded."""
    workload = None if state.started is None else state.started.workload
    contexts = {*(() if workload is None else workload.contexts_tokens), *(one.context_tokens for one in state.cells)}
    many = {*(() if workload is None else workload.concurrencies), *(one.concurrency for one in state.cells)}
    return tuple(sorted(contexts)), tuple(sorted(many))


_OUTCOMES: Mapping[type, CellState] = {
    Measured: CellState.MEASURED,
    OutOfMemory: CellState.OUT_OF_MEMORY,
    Failed: CellState.FAILED,
    Skipped: CellState.SKIPPED,
}


def _going(state: RunState, stage: Stage) -> Stage:
    """The stage that an event tells of; one that was asked to end stays so until it has."""
    return state.stage if state.stage is Stage.STOPPING else stage


def _now(state: RunState, event: Now, at: float) -> RunState:
    if state.stage is Stage.RUNNING and state.current is not None:
        return state  # the cell itself says it
    stage = _going(state, Stage.LOADING if state.started is None else state.stage)
    return replace(state, stage=stage, now=event.text, since=at)


def _started(state: RunState, event: Started, at: float) -> RunState:
    return replace(
        state,
        stage=_going(state, Stage.RUNNING),
        started=event,
        cells=event.cells,
        done=event.done,
        total=event.total,
        output=event.output,
        now="",
        since=at,
    )


def _round(state: RunState, event: RoundBegan, at: float) -> RunState:
    return replace(state, purpose=event.purpose, total=event.total)


def _cell_began(state: RunState, event: CellBegan, at: float) -> RunState:
    return replace(state, stage=_going(state, Stage.RUNNING), current=event.key, since=at)


def _cell_done(state: RunState, event: CellDone, at: float) -> RunState:
    kept = tuple(cell for cell in state.cells if cell.key != event.cell.key)
    return replace(state, cells=(*kept, event.cell), done=state.done + 1, current=None, now="", since=at)


def _finished(state: RunState, event: Finished, at: float) -> RunState:
    return replace(_over(state, at), stage=Stage.FINISHED, output=event.output)


def _refused(state: RunState, event: Refused, at: float) -> RunState:
    return replace(_over(state, at), stage=Stage.REFUSED, reason=event.reason, there=event.there)


def _interrupted(state: RunState, event: Interrupted, at: float) -> RunState:
    return replace(_over(state, at), stage=Stage.STOPPED)


def _crashed(state: RunState, event: Crashed, at: float) -> RunState:
    return replace(_over(state, at), stage=Stage.CRASHED, reason=event.reason)


def _over(state: RunState, at: float) -> RunState:
    return replace(state, current=None, now="", since=at)


_CHANGES: Mapping[type, Callable[..., RunState]] = {
    Now: _now,
    Started: _started,
    RoundBegan: _round,
    CellBegan: _cell_began,
    CellDone: _cell_done,
    Finished: _finished,
    Refused: _refused,
    Interrupted: _interrupted,
    Crashed: _crashed,
}
