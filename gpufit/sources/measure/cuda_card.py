"""One card as torch and its driver describe it, and the totals of device and process that no allocator knows.

Capacity is torch's `total_memory`: reading it creates no context, while `mem_get_info` takes the 256 to 426 MiB of
one (https://github.com/unslothai/unsloth-zoo/issues/1053) and is therefore asked only once the model is loaded.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gpufit.profile.environment import DeviceInfo
from gpufit.profile.peaks import DeviceReading
from gpufit.sources.measure import nvml
from gpufit.sources.measure.nvml import CardState, ProcessUse, Unavailable
from gpufit.units import MIB, format_size

SETTINGS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
"""The allocator's settings, newest name first. https://docs.pytorch.org/docs/stable/notes/cuda.html"""

IDLE_BYTES = 256 * MIB
"""What an idle card may show as used (a driver without version 2 of the reading counts its own reserve)."""

PROCESS = "nvml.process"
DEVICE = "nvml.device"
AMD_DEVICE = "amdsmi.device"
MEM_GET_INFO = "mem_get_info"


@dataclass(frozen=True)
class Use:
    """What is in use on the card at one moment, each figure with its source."""

    device_bytes: int
    device_source: str
    process_bytes: int
    process_source: str

    @property
    def readings(self) -> tuple[DeviceReading, ...]:
        """The same as readings of a phase."""
        return (
            DeviceReading(source=self.process_source, quantity="process", size_bytes=self.process_bytes),
            DeviceReading(source=self.device_source, quantity="device_used", size_bytes=self.device_bytes),
        )


class CudaCard:
    """The card that CUDA or HIP calls `index`."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._hip = torch.version.hip is not None
        self._used_before: int | None = None
        self._context_source = PROCESS

    def describe(self) -> tuple[DeviceInfo, tuple[str, ...]]:
        """What it is, and what is less than clean about it; to be asked before anything is on the card."""
        properties = torch.cuda.get_device_properties(self._index)
        state = self._state()
        self._used_before = self._device_bytes(state)[0]
        info = DeviceInfo(
            kind="rocm" if self._hip else "cuda",
            name=properties.name,
            total_bytes=properties.total_memory,
            used_before_bytes=self._used_before,
            pci_id=_text(state, "pci_id"),
            compute_capability=_architecture(properties, self._hip),
            driver=_text(state, "driver"),
            runtime=f"HIP {torch.version.hip}" if self._hip else f"CUDA {torch.version.cuda}",
        )
        return info, tuple(self._flags(state))

    def readings(self) -> tuple[DeviceReading, ...]:
        """Device and process as they stand now."""
        return self._use().readings

    def context_bytes(self) -> int | None:
        """Driver context and loaded kernels: what this process takes beyond torch's reserved blocks.

        None where what is read is less than torch itself reserved, which says that it is not of this process.
        """
        torch.cuda.synchronize(self._index)
        use = self._use()
        self._context_source = use.process_source
        context = use.process_bytes - torch.cuda.memory_reserved(self._index)
        return context if context >= 0 else None

    def notes(self) -> tuple[str, ...]:
        """How the context was measured, where the driver did not tell this process's own use."""
        if self._context_source == PROCESS:
            return ()
        return (
            f"the context is {self._context_source}, less what torch reserved: what other processes "
            "took or gave back meanwhile is in it",
        )

    def _state(self) -> CardState | Unavailable:
        if self._hip:
            return Unavailable("NVML knows no AMD cards")
        properties = torch.cuda.get_device_properties(self._index)
        uuid = getattr(properties, "uuid", None)
        return nvml.read_card(None if uuid is None else str(uuid), _bus_id(properties))

    def _use(self) -> Use:
        state = self._state()
        used, source = self._device_bytes(state)
        if used is None:
            free, total = torch.cuda.mem_get_info(self._index)
            used, source = total - free, f"{MEM_GET_INFO} ({source})"
        own = own_bytes(state, os.getpid())
        if isinstance(own, int):
            return Use(used, source, own, PROCESS)
        if self._used_before is None:
            return Use(used, source, used, f"{source}, other processes included ({own.error})")
        return Use(used, source, max(used - self._used_before, 0), f"{source} - used before ({own.error})")

    def _device_bytes(self, state: CardState | Unavailable) -> tuple[int | None, str]:
        """(in use by all processes, where that was read), or None and why it is not known without a context."""
        if self._hip:
            return _amd_bytes(self._index)
        if isinstance(state, Unavailable):
            return None, f"NVML: {state.error}"
        if isinstance(state.memory, Unavailable):
            return None, f"NVML: {state.memory.error}"
        return state.memory.used_bytes, DEVICE

    def _flags(self, state: CardState | Unavailable) -> Iterator[str]:
        for name in SETTINGS:
            if os.environ.get(name):
                yield f"{name}={os.environ[name]}: reserved memory and rounding are those of this setting"
        if self._hip:
            used, why = _amd_bytes(self._index)
            yield (
                "on ROCm no reading of this process's own use is made: the difference of the device's stands for it"
                if used is not None
                else f"the driver's own readings are not available ({why}): {MEM_GET_INFO} replaces them"
            )
        elif isinstance(state, Unavailable):
            yield (
                f"NVML is not available ({state.error}): {MEM_GET_INFO} replaces its readings, and whether others "
                "used the card, MIG and ECC are not known"
            )
        else:
            yield from card_flags(state, os.getpid())
        if "microsoft" in platform.release().lower():
            yield "under WSL the driver does not tell what a process uses: the difference of the device's stands for it"


def allocator_settings() -> str:
    """The allocator's settings as they stand in the environment, of whichever name."""
    return ",".join(os.environ[name] for name in SETTINGS if os.environ.get(name))


def own_bytes(state: CardState | Unavailable, pid: int) -> int | Unavailable:
    """What NVML says this process uses, or why it does not say."""
    if isinstance(state, Unavailable):
        return state
    if isinstance(state.processes, Unavailable):
        return state.processes
    own = [one.size_bytes for one in state.processes if one.pid == pid]
    if not own:
        return Unavailable("this process is not among those that NVML lists, as in a container")
    return Unavailable("the driver does not tell what a process uses") if own[0] is None else own[0]


def card_flags(state: CardState, pid: int) -> Iterator[str]:
    """What makes a card less than clean, in words."""
    others = [] if isinstance(state.processes, Unavailable) else [one for one in state.processes if one.pid != pid]
    if others:
        yield f"the card is shared: {_told(others)} on it before this run"
    elif isinstance(state.memory, nvml.CardMemory) and state.memory.used_bytes > IDLE_BYTES:
        yield f"{format_size(state.memory.used_bytes)} of the card were in use before this run, by nobody visible here"
    if isinstance(state.memory, Unavailable):
        yield f"NVML does not tell the card's use ({state.memory.error}): {MEM_GET_INFO} replaces it"
    if state.mig is True:
        yield "MIG is on: this is a slice of a card, and NVML's device reading may be the whole card's"
    if state.ecc is False:
        yield "ECC is off: with it on, a card of this kind may offer less memory"


def _told(others: list[ProcessUse]) -> str:
    count = f"{len(others)} other process{'es' if len(others) > 1 else ''}"
    known = [one.size_bytes for one in others if one.size_bytes is not None]
    return f"{count} with {format_size(sum(known))}" if len(known) == len(others) else f"{count} of unknown size"


def _amd_bytes(index: int) -> tuple[int | None, str]:
    """amdsmi's reading through torch, which finds the card under HIP_VISIBLE_DEVICES."""
    try:
        return int(torch.cuda.device_memory_used(index)), AMD_DEVICE
    except (ImportError, RuntimeError) as error:
        return None, f"amdsmi: {type(error).__name__}"


def _architecture(properties: Any, hip: bool) -> str:
    """`9.0`, or `gfx942` on ROCm."""
    return str(properties.gcnArchName).split(":")[0] if hip else f"{properties.major}.{properties.minor}"


def _bus_id(properties: Any) -> str | None:
    """`00000000:1b:00.0`; None for a torch whose properties do not tell."""
    numbers = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    if any(number is None for number in numbers):
        return None
    domain, bus, device = numbers
    return f"{domain:08x}:{bus:02x}:{device:02x}.0"


def _text(state: CardState | Unavailable, name: str) -> str | None:
    value = None if isinstance(state, Unavailable) else getattr(state, name)
    return value if isinstance(value, str) else None
