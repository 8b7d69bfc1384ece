"""The times document: how long each cell that ran took. Speed is never carried to another card.

JSON keys are these fields' names; times are seconds, and what is not known is null.
"""

from __future__ import annotations

from gpufit import __version__
from gpufit.files import readable_name
from gpufit.profile.base import Record
from gpufit.profile.cells import Cell, Failed, Measured, OutOfMemory
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.precision import Precision
from gpufit.profile.record import Profile
from gpufit.report.workload import workload_words

SCHEMA_VERSION = 1

NEVER_CARRIED = "speed is never carried to another card: memory follows from shapes, speed does not"


class TimeRow(Record, frozen=True, kw_only=True):
    """One cell."""

    context_tokens: int
    new_tokens: int
    concurrency: int
    outcome: str
    """`measured`, `out of memory`, `failed` or `skipped`."""
    time_to_first_token_seconds: float | None
    """Of the untracked prefill of all sequences together."""
    wall_seconds: float | None
    """Of the untracked run: prefill and all decode steps."""
    inputs_completed: int | None
    inputs_per_second: float | None
    """inputs / wall time."""
    generated_tokens_per_second: float | None
    """New tokens of all inputs / wall time, the time for the prompts included; null where none are generated."""
    prompt_tokens_per_second: float | None
    """Prompt tokens of all inputs / wall time, the time for the new tokens included."""
    evidence: Evidence | None
    """Null where nothing was timed."""


class TimesDocument(Record, frozen=True, kw_only=True):
    """What a run took."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str = __version__
    profile: str
    """The file it was read from."""
    model: ModelInfo
    engine: Engine
    device: str
    """What it ran on: the times are this device's alone."""
    precision: Precision
    evidence: Evidence
    rows: tuple[TimeRow, ...]
    why_none: str
    """Why nothing was timed, in words; empty where something was."""
    notes: tuple[str, ...]
    """What was run beside the shapes, and what of the device may have changed its times."""

    @property
    def timed(self) -> bool:
        """Whether any cell has a time."""
        return any(row.wall_seconds is not None for row in self.rows)


def build_times_document(profile: Profile, where: str) -> TimesDocument:
    """The times of a profile's cells, shortest context first."""
    cells = sorted(profile.cells, key=lambda cell: cell.key)
    rows = tuple(_row(profile, cell) for cell in cells)
    timed = any(row.wall_seconds is not None for row in rows)
    return TimesDocument(
        profile=readable_name(where),
        model=profile.model,
        engine=profile.engine,
        device=profile.environment.device.name,
        precision=profile.precision,
        evidence=profile.evidence,
        rows=rows,
        why_none="" if timed else _why_none(profile),
        notes=(*workload_words(profile.workload), *profile.notes, *profile.environment.flags),
    )


def _row(profile: Profile, cell: Cell) -> TimeRow:
    outcome = cell.outcome
    wall = first = inputs = rate = None
    if isinstance(outcome, Measured):
        wall, first, inputs = outcome.wall_seconds, outcome.time_to_first_token_seconds, outcome.inputs_completed
        rate = inputs / wall if wall else None
    return TimeRow(
        context_tokens=cell.context_tokens,
        new_tokens=cell.new_tokens,
        concurrency=cell.concurrency,
        outcome=_word(cell),
        time_to_first_token_seconds=first,
        wall_seconds=wall,
        inputs_completed=inputs,
        inputs_per_second=rate,
        generated_tokens_per_second=rate * cell.new_tokens if rate is not None and cell.new_tokens else None,
        prompt_tokens_per_second=rate * cell.context_tokens if rate is not None else None,
        evidence=None if wall is None else profile.evidence,
    )


def _word(cell: Cell) -> str:
    outcome = cell.outcome
    if isinstance(outcome, Measured):
        return "measured"
    if isinstance(outcome, OutOfMemory):
        return "out of memory"
    return "failed" if isinstance(outcome, Failed) else "skipped"


def _why_none(profile: Profile) -> str:
    if profile.evidence is Evidence.MEASURED:
        return "no cell of this run was timed"
    return (
        f"nothing ran: the profile is {profile.evidence}, and only a run on a device takes time (gpufit profile MODEL "
        "there)"
    )
