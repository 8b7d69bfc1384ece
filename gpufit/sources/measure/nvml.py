"""What NVIDIA's management library says of one card, each reading or the name of the error it ended in.

The card is found by UUID or PCI bus id, never by index: NVML counts every card of the machine, CUDA only those
that CUDA_VISIBLE_DEVICES leaves, in that order. https://docs.nvidia.com/deploy/nvml-api/
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Unavailable:
    """A reading that NVML does not give here."""

    error: str
    """The error's name, `NVMLError_NotSupported`."""


@dataclass(frozen=True)
class CardMemory:
    """The memory of a card, in bytes."""

    total_bytes: int
    used_bytes: int
    """In use by all processes; without the driver's own reserve where `reserved_bytes` is known."""
    reserved_bytes: int | None
    """Kept back by the driver; None where the driver is too old to tell it apart."""


@dataclass(frozen=True)
class ProcessUse:
    """One process on a card."""

    pid: int
    size_bytes: int | None
    """None where the driver does not say (Windows' WDDM, WSL)."""


@dataclass(frozen=True)
class CardState:
    """One card at one moment."""

    driver: str | Unavailable
    pci_id: str | Unavailable
    """Vendor and device, `10de:2335`."""
    memory: CardMemory | Unavailable
    processes: tuple[ProcessUse, ...] | Unavailable
    ecc: bool | Unavailable
    mig: bool | Unavailable


def read_card(uuid: str | None, bus_id: str | None) -> CardState | Unavailable:
    """The state of the card with this UUID (as CUDA writes it, without a prefix) or this PCI bus id."""
    try:
        import pynvml
    except ImportError:
        return Unavailable("nvidia-ml-py is not installed")
    with _library(pynvml) as error:
        if error is not None:
            return error
        handle = _find(pynvml, uuid, bus_id)
        if isinstance(handle, Unavailable):
            return handle
        return _state(pynvml, handle)


@contextlib.contextmanager
def _library(pynvml: Any) -> Iterator[Unavailable | None]:
    opened = _ask(pynvml, pynvml.nvmlInit)
    if isinstance(opened, Unavailable):
        yield opened
        return
    try:
        yield None
    finally:
        _ask(pynvml, pynvml.nvmlShutdown)


def _ask(pynvml: Any, question: Callable[..., Answer], *arguments: Any) -> Answer | Unavailable:
    try:
        return question(*arguments)
    except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError) as error:
        return Unavailable(type(error).__name__)


def _find(pynvml: Any, uuid: str | None, bus_id: str | None) -> Any:
    """The card's handle. A MIG slice answers to its own UUID, so both prefixes are tried."""
    found: Any = Unavailable("torch names neither its UUID nor its PCI bus id")
    for name in (f"GPU-{uuid}", f"MIG-{uuid}") if uuid else ():
        found = _ask(pynvml, pynvml.nvmlDeviceGetHandleByUUID, name)
        if not isinstance(found, Unavailable):
            return found
    if bus_id:
        found = _ask(pynvml, pynvml.nvmlDeviceGetHandleByPciBusId, bus_id)
    return found


def _state(pynvml: Any, handle: Any) -> CardState:
    slice_of = _ask(pynvml, pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, handle)
    card = handle if isinstance(slice_of, Unavailable) else slice_of
    mig = _ask(pynvml, pynvml.nvmlDeviceGetMigMode, card)
    ecc = _ask(pynvml, pynvml.nvmlDeviceGetEccMode, card)
    return CardState(
        driver=_ask(pynvml, pynvml.nvmlSystemGetDriverVersion),
        pci_id=_pci_id(_ask(pynvml, pynvml.nvmlDeviceGetPciInfo, card)),
        memory=_memory(pynvml, handle),
        processes=_processes(pynvml, handle),
        ecc=ecc if isinstance(ecc, Unavailable) else bool(ecc[0]),
        mig=mig if isinstance(mig, Unavailable) else bool(mig[0]),
    )


def _pci_id(info: Any) -> str | Unavailable:
    return info if isinstance(info, Unavailable) else pci_id(info.pciDeviceId)


def pci_id(combined: int) -> str:
    """NVML's `pciDeviceId`, device in the upper and vendor in the lower 16 bits, as `vendor:device`."""
    return f"{combined & 0xFFFF:04x}:{combined >> 16:04x}"


def _memory(pynvml: Any, handle: Any) -> CardMemory | Unavailable:
    """Version 2 keeps the driver's reserve apart; version 1 counts it as used."""
    found = _ask(pynvml, pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    if not isinstance(found, Unavailable):
        return CardMemory(found.total, found.used, found.reserved)
    found = _ask(pynvml, pynvml.nvmlDeviceGetMemoryInfo, handle)
    return found if isinstance(found, Unavailable) else CardMemory(found.total, found.used, None)


def _processes(pynvml: Any, handle: Any) -> tuple[ProcessUse, ...] | Unavailable:
    """Every process once: one that both computes and draws is in both lists with the same figure."""
    compute = _ask(pynvml, pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
    graphics = _ask(pynvml, pynvml.nvmlDeviceGetGraphicsRunningProcesses, handle)
    if isinstance(compute, Unavailable):
        return compute
    drawing = [] if isinstance(graphics, Unavailable) else graphics
    uses = {one.pid: ProcessUse(one.pid, one.usedGpuMemory) for one in [*drawing, *compute]}
    return tuple(uses.values())
