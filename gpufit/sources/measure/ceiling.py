"""A ceiling on a process's own memory, so that a CPU runs out of it where a smaller device would. Linux, glibc.

Of the limits that Linux has, RLIMIT_DATA comes nearest to what torch allocates: since Linux 4.7 it counts every private
writable mapping (https://man7.org/linux/man-pages/man2/getrlimit.2.html), which is where tensors live. RLIMIT_AS also
counts files mapped into memory, libraries, and address space that malloc only reserves (64 MiB for each thread's
arena), so it would refuse a tensor long before the limit.

torch asks malloc for its blocks, and malloc keeps what was freed for later: the process would then hold more than its
live tensors. With a fixed threshold every larger block is a mapping of its own and goes back at once
(https://man7.org/linux/man-pages/man3/mallopt.3.html), which also makes allocating slower.
"""

from __future__ import annotations

import ctypes
import gc
import resource
from pathlib import Path

from gpufit.errors import UsageError
from gpufit.units import KIB, MIB

OWN_BLOCKS_FROM = 128 * KIB
"""Blocks from this size on are mappings of their own: malloc's initial threshold, kept from growing."""

LOADING_EXTRA = 512 * MIB
"""What importing a model's code and recording its load may take beside the tensors, beyond the limit. Measured:
240 MiB for a Llama with transformers 5.24 and torch 2.13."""

RECORDING_EXTRA = 1024 * MIB
"""What the recorder's own notes may take beside the tensors. Measured: about 2 MiB a decode step of a Llama of four
layers, most of it in Python objects."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Numbers of malloc.h, glibc."""

_STATUS = Path("/proc/self/status")


class CpuCeiling:
    """A limit on tensors, as a limit on how much the process may grow from here."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes

    def around_load(self) -> None:
        """Hold the load, roughly: what it imports is allowed for by LOADING_EXTRA."""
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is None or not _STATUS.exists():
            raise UsageError("--memory-limit on a CPU needs Linux with glibc; on a card it works everywhere")
        for setting in (_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD):
            mallopt(setting, OWN_BLOCKS_FROM)
        _grow_at_most(self._limit_bytes + LOADING_EXTRA)

    def around_run(self, resident_bytes: int) -> None:
        """Hold a run: beside what stands now, the process may take what the model leaves of the limit."""
        gc.collect()
        _grow_at_most(max(self._limit_bytes - resident_bytes, 0))

    def around_recording(self, resident_bytes: int) -> None:
        """Hold a recorded run, of whose tensors the run before it has shown that they fit; more loosely."""
        gc.collect()
        _grow_at_most(max(self._limit_bytes - resident_bytes, 0) + RECORDING_EXTRA)


def private_bytes() -> int:
    """Private writable memory of this process, touched or not: VmData, what RLIMIT_DATA is compared with."""
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "VmData":
            return int(value.split()[0]) * KIB
    raise UsageError(f"{_STATUS} names no VmData, so --memory-limit cannot be held here")


def _grow_at_most(size_bytes: int) -> None:
    """Set the soft limit; the hard one stays, or bounds it."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = private_bytes() + size_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))
