"""The CUDA and ROCm feeder: torch's caching allocator keeps the history, its counters and the driver the totals.

The allocator's history sees every allocation that passes through torch, workspaces inside libraries included
(https://docs.pytorch.org/docs/stable/torch_cuda_memory.html); it does not see what libraries take from the driver
by themselves (NCCL, cuBLAS handles, kernels' own code): those are in the totals only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from gpufit.errors import MeasurementError, UsageError
from gpufit.profile.peaks import DeviceReading
from gpufit.sources.measure.cpu import process_memory
from gpufit.sources.measure.cuda_accounting import ALLOCATED, COUNTER, slack_bytes
from gpufit.sources.measure.cuda_card import SETTINGS, CudaCard, allocator_settings
from gpufit.sources.measure.cuda_history import (
    Block,
    Counters,
    CudaRecording,
    History,
    counters_of,
    live_blocks,
    read_history,
)
from gpufit.sources.measure.device import Device

MAX_ENTRIES = 5_000_000
"""Entries the allocator keeps before it overwrites the oldest. Each takes about 200 bytes of host memory without a
stack trace, and several times that for the moment in which it is read as a Python dictionary."""

_PEAKS = {
    "requested": "requested_bytes",
    ALLOCATED: "allocated_bytes",
    "reserved": "reserved_bytes",
    "active": "active_bytes",
    "inactive_split": "inactive_split_bytes",
}
"""Name of a reading: name of the counter whose peak it is."""

_TALLIES = ("num_alloc_retries", "num_ooms")
"""Counters that only grow; a phase reports by how much (a count, not bytes)."""


def open_cuda(index: int) -> Device:
    """The card that CUDA or HIP calls `index`.

    Raises UsageError when there is none such, or when torch's own caching allocator is switched off: only that
    allocator keeps a history.
    """
    count = torch.cuda.device_count()
    if not 0 <= index < count:
        raise UsageError(f"--device cuda:{index}: torch sees {count} card(s) here; the highest is cuda:{count - 1}")
    backend = torch.cuda.get_allocator_backend()
    if backend != "native":
        raise UsageError(f"the allocator {backend} keeps no history; unset backend: in {' / '.join(SETTINGS)}")
    if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"):
        raise UsageError("PYTORCH_NO_CUDA_MEMORY_CACHING switches the caching allocator off; unset it to measure")
    card = CudaCard(index)
    return Device(
        torch_device=torch.device("cuda", index),
        describe=card.describe,
        make_recorder=lambda: CudaRecorder(index, lambda: (*card.readings(), *process_memory())),
        synchronize=lambda: torch.cuda.synchronize(index),
        make_ceiling=lambda limit_bytes: CudaCeiling(index, limit_bytes),
        context_bytes=card.context_bytes,
        notes=card.notes,
    )


class CudaCeiling:
    """A limit on what torch's allocator reserves on one card, its free blocks included.

    The driver's context and what libraries take by themselves are outside of it, as they are outside of the allocator
    (https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.set_per_process_memory_fraction.html).
    """

    def __init__(self, index: int, limit_bytes: int) -> None:
        self._index = index
        self._limit_bytes = limit_bytes

    def around_load(self) -> None:
        """Tell the allocator; it holds from here on."""
        total = torch.cuda.get_device_properties(self._index).total_memory
        torch.cuda.set_per_process_memory_fraction(self._limit_bytes / total, self._index)

    def around_run(self, resident_bytes: int) -> None:
        """Nothing to do: the allocator counts what the model takes itself."""

    def around_recording(self, resident_bytes: int) -> None:
        """Nothing to do: a recorder takes the host's memory."""


class CudaRecorder:
    """Records through the caching allocator's history. Every thread's allocations are seen.

    A recording begins with the allocator's free blocks given back and cuBLAS's workspaces dropped: so the first
    matrix product allocates them anew within the recording, where they are temporaries, instead of standing there
    from an earlier run without a name, and `reserved` is what this run made the allocator take.
    """

    def __init__(self, index: int, readings: Callable[[], tuple[DeviceReading, ...]] = tuple) -> None:
        """`readings`: the totals of device and process, asked for at the end of each phase."""
        self._index = index
        self._readings = readings
        self._before: tuple[Block, ...] = ()
        self._start: Counters | None = None
        self._marks: list[Counters] = []
        self._tallies: dict[str, int] = {}
        self.history: History | None = None
        """What was recorded, once stopped."""

    def start(self) -> None:
        """Begin to record."""
        torch.cuda.init()  # before this the allocator has no device to keep a history of
        if torch.cuda.current_device() != self._index:
            torch.cuda.set_device(self._index)  # some kernels launch on the current device, wherever their data is
        torch.cuda.synchronize(self._index)
        # No public name exists for this: https://docs.pytorch.org/docs/stable/notes/cuda.html#cublas-workspaces
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
        self._before = live_blocks(torch.cuda.memory._snapshot(), self._index)
        torch.cuda.memory._record_memory_history(
            enabled="all", context=None, stacks="python", max_entries=MAX_ENTRIES, clear_history=True
        )
        self._start = self._counters()

    def mark(self) -> int:
        """Name this moment by the allocator's own count of allocations and frees: no clock is involved."""
        self._marks.append(self._counters())
        return len(self._marks) - 1

    def begin_phase(self) -> None:
        """Wait for the card, then let the peaks start from what is allocated now."""
        torch.cuda.synchronize(self._index)
        torch.cuda.reset_peak_memory_stats(self._index)
        stats = self._stats()
        self._tallies = {name: stats[name] for name in _TALLIES}

    def end_phase(self) -> tuple[DeviceReading, ...]:
        """The peaks of the phase by torch's counters; device and process as they stand now, at its end."""
        torch.cuda.synchronize(self._index)
        stats = self._stats()
        peaks = [_reading(name, stats[counter]["all"]["peak"]) for name, counter in _PEAKS.items()]
        tallies = [_tally(name, stats[name] - before) for name, before in self._tallies.items()]
        return (*peaks, *tallies, *self._readings())

    def stop(self) -> CudaRecording:
        """End the recording and hand it over. Raises MeasurementError for a history that cannot be trusted."""
        if self._start is None:
            raise MeasurementError("a recording on a card was stopped before it was started")
        try:
            stop, snapshot = self._counters(), torch.cuda.memory._snapshot()
        finally:
            self.abandon()
        self.history = History(
            before=self._before,
            start=self._start,
            marks=self._marks,
            stop=stop,
            trace=snapshot["device_traces"][self._index],
            max_entries=MAX_ENTRIES,
            slack_bytes=slack_bytes(allocator_settings()),
        )
        return read_history(self.history)

    def abandon(self) -> None:
        """End the recording unread. Nothing is synchronised: after a failed kernel that would raise, too."""
        torch.cuda.memory._record_memory_history(enabled=None)

    def _counters(self) -> Counters:
        return counters_of(self._stats())

    def _stats(self) -> dict[str, Any]:
        stats: dict[str, Any] = torch.cuda.memory_stats_as_nested_dict(self._index)
        return stats


def _reading(quantity: str, size_bytes: int) -> DeviceReading:
    return DeviceReading(source=COUNTER, quantity=quantity, size_bytes=size_bytes)


def _tally(quantity: str, count: int) -> DeviceReading:
    """A count beside the readings in bytes, with words where it spoils them."""
    if quantity == "num_alloc_retries" and count:
        source = f"{COUNTER}: the card was full and the allocator emptied its cache, so reserved says little"
        return DeviceReading(source=source, quantity=quantity, size_bytes=count)
    return _reading(quantity, count)
