"""The profile: one model on one device with one engine, the whole result of a run."""

from __future__ import annotations

from gpufit.profile.base import Record
from gpufit.profile.cells import Cell, Measured
from gpufit.profile.environment import Engine, Environment, ModelInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.layout import Layout
from gpufit.profile.memory_model import MemoryModel
from gpufit.profile.peaks import PhasePeak
from gpufit.profile.precision import Precision
from gpufit.profile.workload import Workload

SCHEMA_VERSION = 2
"""Version of the profile file. A reader refuses a higher one and still reads every lower one."""


class Profile(Record, frozen=True, kw_only=True):
    """One model on one device with one engine: the whole result of a run, and all that later steps need."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str
    created_at: str
    """ISO 8601, UTC."""
    evidence: Evidence
    model: ModelInfo
    engine: Engine
    precision: Precision
    environment: Environment
    workload: Workload
    load: PhasePeak
    cells: tuple[Cell, ...]
    memory_model: MemoryModel | None = None
    """Absent until enough cells are measured."""
    complete: bool = False
    """True once every cell of the workload has an outcome."""
    notes: tuple[str, ...] = ()
    """What a reader should know about this run, in words."""
    layout: Layout | None = None
    """Absent in older profiles, and where no shape rule knows the architecture."""

    @property
    def measured_cells(self) -> tuple[Cell, ...]:
        """The cells that ran to their end."""
        return tuple(cell for cell in self.cells if isinstance(cell.outcome, Measured))
