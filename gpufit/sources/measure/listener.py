"""Who is told how a run goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpufit.profile.cells import Cell
from gpufit.profile.workload import Workload
from gpufit.sources.measure.protocol import CellKey


@dataclass(frozen=True)
class Listener:
    """What is called as it happens; by default nobody listens."""

    folder: Callable[[Path], None] = lambda folder: None
    """The folder of the profile was missing and has been made."""
    started: Callable[[Workload, int, int], None] = lambda workload, done, total: None
    """What was asked for, and its cells done and wanted so far, once the model is loaded."""
    round: Callable[[str, int], None] = lambda purpose, total: None
    """What the next cells of an adaptive sweep are for, and how many are wanted with them."""
    progress: Callable[[str], None] = lambda text: None
    """What happens now, in words."""
    cell_began: Callable[[CellKey], None] = lambda key: None
    """A cell is being run; should it be lost with its worker, it is still told as ended."""
    cell: Callable[[Cell], None] = lambda cell: None
    """A cell has ended."""
