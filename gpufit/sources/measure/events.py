"""What a run in a process of its own is asked, and what it tells, each a JSON line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from gpufit.profile.base import Record
from gpufit.profile.cells import Cell
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import PhasePeak
from gpufit.profile.workload import Workload
from gpufit.sources.estimate.request import EstimateRequest
from gpufit.sources.measure.protocol import CellKey
from gpufit.sources.measure.request import ProfileRequest


class RunRequest(Record, frozen=True, kw_only=True):
    """One of the two is asked for."""

    profile: ProfileRequest | None = None
    """Measure a model, or run it on fake tensors."""
    estimate: EstimateRequest | None = None
    """Compute a profile."""
    estimate_output: Path | None = None
    """Where the computed profile goes; None: `profiles/<model>.json`."""
    estimate_force: bool = False
    """Replace the file that is there."""


class Started(Record, frozen=True, kw_only=True, tag_field="event", tag="started"):
    """The model is in memory, and the cells are known."""

    output: str
    """The file that is written after every cell."""
    model: str
    device: str
    evidence: Evidence
    workload: Workload
    load: PhasePeak
    cells: tuple[Cell, ...]
    """Those that an earlier run did."""
    done: int
    """Cells that are done of those wanted."""
    total: int


class RoundBegan(Record, frozen=True, kw_only=True, tag_field="event", tag="round"):
    """An adaptive sweep wants more cells."""

    purpose: str
    total: int


class Now(Record, frozen=True, kw_only=True, tag_field="event", tag="now"):
    """What happens now, in words."""

    text: str


class CellBegan(Record, frozen=True, kw_only=True, tag_field="event", tag="cell_began"):
    """A cell is being run."""

    key: CellKey


class CellDone(Record, frozen=True, kw_only=True, tag_field="event", tag="cell_done"):
    """A cell has its outcome, and is on disk."""

    cell: Cell


class Finished(Record, frozen=True, kw_only=True, tag_field="event", tag="finished"):
    """The whole profile is on disk."""

    output: str


class Refused(Record, frozen=True, kw_only=True, tag_field="event", tag="refused"):
    """It cannot be done, and the sentence that tells the user why."""

    reason: str
    exit_code: int
    """2 usage, 3 unreadable input, 4 measurement failed: what the command would have ended with."""
    there: str = ""
    """The file that would have been written over; empty where that is not why."""


class Interrupted(Record, frozen=True, kw_only=True, tag_field="event", tag="interrupted"):
    """It was stopped; finished cells are on disk."""


class Crashed(Record, frozen=True, kw_only=True, tag_field="event", tag="crashed"):
    """The process ended without a word of how; said by who was listening to it."""

    reason: str


RunEvent = Started | RoundBegan | Now | CellBegan | CellDone | Finished | Refused | Interrupted | Crashed

LAST_EVENTS = (Finished, Refused, Interrupted, Crashed)
"""One of these ends every run."""

_DECODER = msgspec.json.Decoder(RunEvent)


def encode(record: RunRequest | RunEvent) -> bytes:
    """One line, its end included."""
    return msgspec.json.encode(record, enc_hook=str) + b"\n"


def decode_request(line: bytes) -> RunRequest:
    """The request in a line that `encode` made."""
    return msgspec.json.decode(line, type=RunRequest, dec_hook=_path)


def decode_event(line: bytes) -> RunEvent:
    """The event in a line. Raises msgspec.ValidationError or msgspec.DecodeError for one that has none."""
    event: RunEvent = _DECODER.decode(line)
    return event


def _path(kind: type, value: Any) -> Path:
    assert kind is Path, "no other type of a request is foreign to JSON"
    return Path(value)
