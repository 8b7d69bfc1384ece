"""The profiles document: which profiles there are, with evidence, device, date and how their cells ended.

JSON keys are these fields' names; sizes are whole bytes, and what is not known is null.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gpufit import __version__
from gpufit.files import readable_name
from gpufit.memory.terms import Shape
from gpufit.profile.base import Record
from gpufit.profile.cells import Failed, Measured, OutOfMemory, Skipped
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.precision import Precision
from gpufit.profile.record import Profile
from gpufit.report.document import Scenario

SCHEMA_VERSION = 1


class ProfileRow(Record, frozen=True, kw_only=True):
    """One profile."""

    profile: str
    """The file it was read from."""
    model: ModelInfo
    engine: Engine
    precision: Precision
    evidence: Evidence
    device: str
    """What it ran on."""
    device_kind: str
    """`cuda`, `rocm`, `cpu`, or `none`: fake tensors or arithmetic, on no device."""
    device_total_bytes: int | None
    created_at: str
    """ISO 8601, UTC."""
    complete: bool
    """Whether every cell that was asked for has an outcome."""
    cells_completed: int
    """Cells that ran to their end: measured, or simulated, as the evidence says."""
    cells_out_of_memory: int
    cells_failed: int
    cells_skipped: int
    starts_at: Scenario | None
    """The scenario that it is asked about first; null while it cannot answer."""
    why_not: str
    """Why it cannot answer, and what to do about it; empty where it can."""
    notes: tuple[str, ...]

    @property
    def cells(self) -> int:
        """All that have an outcome."""
        return self.cells_completed + self.cells_out_of_memory + self.cells_failed + self.cells_skipped

    @property
    def unfinished(self) -> bool:
        """Whether more of it can still be run."""
        return not self.complete or self.starts_at is None


class ProfilesDocument(Record, frozen=True, kw_only=True):
    """The profiles there are."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str = __version__
    profiles: tuple[ProfileRow, ...]


class Listed(NamedTuple):
    """A profile, and what it can be asked."""

    profile: Profile
    where: str
    start: Shape | None
    """The scenario that it starts from; None where it has none."""
    why_not: str = ""


def build_profiles_document(listed: Iterable[Listed]) -> ProfilesDocument:
    """These profiles, in their order."""
    return ProfilesDocument(profiles=tuple(map(_row, listed)))


def _row(one: Listed) -> ProfileRow:
    profile, start = one.profile, one.start
    device = profile.environment.device
    ended = [type(cell.outcome) for cell in profile.cells]
    return ProfileRow(
        profile=readable_name(one.where),
        model=profile.model,
        engine=profile.engine,
        precision=profile.precision,
        evidence=profile.evidence,
        device=device.name,
        device_kind=device.kind,
        device_total_bytes=device.total_bytes or None,
        created_at=profile.created_at,
        complete=profile.complete,
        cells_completed=ended.count(Measured),
        cells_out_of_memory=ended.count(OutOfMemory),
        cells_failed=ended.count(Failed),
        cells_skipped=ended.count(Skipped),
        starts_at=None if start is None else _scenario(start),
        why_not=one.why_not,
        notes=(*profile.environment.flags, *profile.notes),
    )


def _scenario(shape: Shape) -> Scenario:
    return Scenario(
        context_tokens=shape.context_tokens,
        new_tokens=shape.new_tokens,
        concurrency=shape.concurrency,
        cached_tokens=shape.cached_tokens,
    )
