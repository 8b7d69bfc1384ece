"""The CPU feeder: torch's profiler reports every allocation of the CPU allocator, scratch inside kernels included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch._C._profiler import _EventType, _RecordFunctionFast
from torch.profiler import ProfilerActivity, profile

from gpufit.errors import MeasurementError
from gpufit.memory.replay import Event
from gpufit.profile.peaks import DeviceReading
from gpufit.sources.measure.recording import Recording

_MARK = "gpufit-moment-"

_FACTORIES = frozenset({
    "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided",
    "aten::resize_", "aten::resize_as_",
})  # fmt: skip
"""Operations that another one calls to get memory: what they make is told by the caller's name."""


class CpuRecorder:
    """Records through `torch.profiler` with `profile_memory`; the thread that starts it is the one it sees."""

    def __init__(self) -> None:
        self._profile = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
        self._marks = 0

    def start(self) -> None:
        """Begin to record."""
        self._profile.start()

    def mark(self) -> int:
        """Name this moment by an empty annotation in the profiler's own stream.

        torch's own `record_function` says the same six times slower, and there are thousands of moments in a step.
        """
        number = self._marks
        self._marks += 1
        with _RecordFunctionFast(f"{_MARK}{number}"):
            pass
        return number

    def begin_phase(self) -> None:
        """Nothing to reset: the CPU keeps no peak counter of its own."""

    def end_phase(self) -> tuple[DeviceReading, ...]:
        """Resident memory of the process, anonymous and file-backed apart: mapped weights are the latter."""
        return process_memory()

    def stop(self) -> Recording:
        """End the recording and read its event tree."""
        self.abandon()
        tree = self._profile.profiler.kineto_results.experimental_event_tree()
        return read_event_tree(_flatten(tree), self._marks)

    def abandon(self) -> None:
        """End the recording unread."""
        self._profile.stop()


class Row(NamedTuple):
    """One line of the profiler's stream."""

    start_ns: int
    name: str
    """Of a mark, or of the operation that an allocation or free happened in; nothing outside of any."""
    address: int = 0
    change_bytes: int = 0
    total_bytes: int = 0
    """What the allocator had handed out after it."""


def _flatten(roots: list[Any]) -> list[Row]:
    """The tree's allocations, frees and marks in time order."""
    rows = []
    waiting = [(root, "") for root in reversed(roots)]
    while waiting:
        node, operation = waiting.pop()
        if node.tag == _EventType.Allocation:
            fields = node.extra_fields
            rows.append(Row(node.start_time_ns, operation, fields.ptr, fields.alloc_size, fields.total_allocated))
            continue
        if node.tag == _EventType.TorchOp:
            name = node.name
            if name.startswith(_MARK):
                rows.append(Row(node.start_time_ns, name))
            elif "::" in name and not (operation and name in _FACTORIES):  # without: an annotation, no operation
                operation = name
        waiting.extend((child, operation) for child in reversed(node.children))
    rows.sort(key=lambda row: row.start_ns)
    return rows


def read_event_tree(rows: Sequence[Row], marks: int) -> Recording:
    """Turn the profiler's rows into events and positions, checking each against the total the allocator reported.

    Files mapped into memory are reported beside the allocator's blocks, with a total of 0; they are no blocks of
    the allocator and are left out, also where one ends that was mapped before the recording.
    Raises MeasurementError when the totals do not follow from the events.
    """
    events: list[Event] = []
    operations: list[str] = []
    positions = [0] * marks
    mapped: set[int] = set()
    running: int | None = None
    for _, name, address, change, total in rows:
        if name.startswith(_MARK):
            positions[int(name.removeprefix(_MARK))] = len(events)
        elif total == 0 and (address in mapped or change > 0 or running not in (None, -change)):
            (mapped.add if change > 0 else mapped.discard)(address)
        elif running is None or running + change == total:
            running = total  # blocks of earlier recordings are still in the first total
            events.append(Event(address, max(change, 0)))
            operations.append(name)
        else:
            raise MeasurementError(
                f"torch's memory events do not add up (total {total} after a change of {change} from {running}): "
                "this version of torch cannot be measured on a CPU"
            )
    return Recording(events=events, positions=positions, operations=operations)


def process_memory() -> tuple[DeviceReading, ...]:
    """RssAnon and RssFile of this process, from /proc/self/status (Linux); nothing elsewhere."""
    names = {"RssAnon": "rss_anon", "RssFile": "rss_file"}
    status = Path("/proc/self/status")
    if not status.exists():
        return ()
    lines = status.read_text(encoding="ascii").splitlines()
    found = []
    for line in lines:
        name, _, value = line.partition(":")
        if name in names:
            size = int(value.split()[0]) * 1024
            found.append(DeviceReading(source="/proc/self/status", quantity=names[name], size_bytes=size))
    return tuple(found)
