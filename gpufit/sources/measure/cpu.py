"""The CPU feeder: torch's profiler reports every allocation of the CPU allocator, scratch inside kernels included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile, record_function

from gpufit.errors import MeasurementError
from gpufit.memory.replay import Event
from gpufit.profile.record import DeviceReading
from gpufit.sources.measure.recording import Recording

_MARK = "gpufit-moment-"


class CpuRecorder:
    """Records through `torch.profiler` with `profile_memory`; the thread that starts it is the one it sees."""

    def __init__(self) -> None:
        self._profile = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
        self._marks = 0

    def start(self) -> None:
        """Begin to record."""
        self._profile.start()

    def mark(self) -> int:
        """Name this moment by an empty annotation in the profiler's own stream."""
        number = self._marks
        self._marks += 1
        with record_function(f"{_MARK}{number}"):
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


def _flatten(roots: list[Any]) -> list[tuple[int, str, int, int, int]]:
    """(start, mark name or empty, address, change in bytes, allocator total after it), in time order."""
    rows = []
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node.tag == _EventType.Allocation:
            fields = node.extra_fields
            rows.append((node.start_time_ns, "", fields.ptr, fields.alloc_size, fields.total_allocated))
        elif node.name.startswith(_MARK):
            rows.append((node.start_time_ns, node.name, 0, 0, 0))
        waiting.extend(node.children)
    rows.sort(key=lambda row: row[0])
    return rows


def read_event_tree(rows: list[tuple[int, str, int, int, int]], marks: int) -> Recording:
    """Turn the profiler's rows into events and positions, checking each against the total the allocator reported.

    Files mapped into memory are reported beside the allocator's blocks, with a total of 0; they are no blocks of
    the allocator and are left out. Raises MeasurementError when the totals do not follow from the events.
    """
    events: list[Event] = []
    positions = [0] * marks
    mapped: set[int] = set()
    running: int | None = None
    for _, name, address, change, total in rows:
        if name:
            positions[int(name.removeprefix(_MARK))] = len(events)
        elif total == 0 and (address in mapped or change > 0):
            (mapped.add if change > 0 else mapped.discard)(address)
        elif running is None or running + change == total:
            running = total  # blocks of earlier recordings are still in the first total
            events.append(Event(address, max(change, 0)))
        else:
            raise MeasurementError(
                f"torch's memory events do not add up (total {total} after a change of {change} from {running}): "
                "this version of torch cannot be measured on a CPU"
            )
    return Recording(events=events, positions=positions)


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
