"""What every feeder hands over once it has stopped, and the protocol they all meet."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpufit.memory.replay import Event, Peak
from gpufit.profile.peaks import DeviceReading, NamedSize

OUTSIDE = "outside of operations"
"""Where torch's bindings make something themselves: a Python number among arguments, a tensor of Python values."""


@dataclass(frozen=True)
class Recording:
    """A stopped recording."""

    events: Sequence[Event]
    """What the allocator did, in order."""
    positions: list[int]
    """For each moment marked: how many events had happened by then."""
    base_bytes: int = 0
    """Allocated before the recording began (0 where blocks are known one by one)."""
    operations: Sequence[str] = ()
    """For each event the operation it happened in, as torch names it (`aten::mm`), or nothing outside of any. Empty
    where the recorder cannot tell."""


def bytes_by_operation(recording: Recording, births: Iterable[int]) -> dict[str, int]:
    """Operation -> bytes of its blocks among those that these events (by index) allocated, largest first."""
    sizes: dict[str, int] = {}
    for index in births:
        name = recording.operations[index]
        sizes[name] = sizes.get(name, 0) + recording.events[index].size_bytes
    return dict(sorted(sizes.items(), key=lambda one: (-one[1], one[0])))


LARGEST = 3
"""How many operations a phase names."""


def largest_temporaries(recording: Recording, peak: Peak) -> tuple[NamedSize, ...]:
    """The operations that made most of a peak's temporaries; none where the recorder cannot tell."""
    if not recording.operations:
        return ()
    sizes = bytes_by_operation(recording, peak.temporaries)
    named = [NamedSize(name=name or OUTSIDE, size_bytes=size) for name, size in sizes.items()]
    return tuple(named[:LARGEST])


class Recorder(Protocol):
    """One way of seeing every allocation of a device between start and stop.

    The caller starts it once, marks moments from the thread that runs the model, and stops it once.
    """

    def start(self) -> None:
        """Begin to record."""
        ...

    def mark(self) -> int:
        """Name this moment."""
        ...

    def begin_phase(self) -> None:
        """Reset the device's own peak counters: a phase starts here."""
        ...

    def end_phase(self) -> tuple[DeviceReading, ...]:
        """What the device's own counters say of the phase that ends here."""
        ...

    def stop(self) -> Recording:
        """End the recording and hand it over."""
        ...

    def abandon(self) -> None:
        """End the recording unread: the run failed, and its error must not be hidden behind one of reading."""
        ...


@contextlib.contextmanager
def recorded(recorder: Recorder) -> Iterator[None]:
    """Record while the block runs; the caller stops the recorder afterwards, unless the block raised."""
    recorder.start()
    try:
        yield
    except BaseException:
        recorder.abandon()
        raise
