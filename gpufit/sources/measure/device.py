"""The device of a run: chosen, described, and watched."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from gpufit.errors import UsageError
from gpufit.profile.environment import DeviceInfo, Environment
from gpufit.sources.measure.recording import Recorder

_SETTINGS = (
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "CUDA_MODULE_LOADING",
    "CUBLAS_WORKSPACE_CONFIG",
    "TORCH_CUBLAS_WORKSPACE_CACHE",
    "OMP_NUM_THREADS",
)
"""Variables that change memory behaviour: recorded, never set."""

_LIBRARIES = ("torch", "transformers", "accelerate", "safetensors", "gguf", "torchao", "bitsandbytes")


class Ceiling(Protocol):
    """A limit below the device's own memory; asking for more then ends as on a smaller device."""

    def around_load(self) -> None:
        """Hold from here on, loading included. Raises UsageError where this system cannot."""
        ...

    def around_run(self, resident_bytes: int) -> None:
        """A cell is about to run, and the model takes `resident_bytes` of the limit: hold what is left."""
        ...

    def around_recording(self, resident_bytes: int) -> None:
        """The same cell is about to run once more under a recorder: allow for the recorder's own memory."""
        ...


@dataclass(frozen=True)
class Device:
    """What the worker needs of a device, whichever kind it is."""

    torch_device: torch.device
    describe: Callable[[], tuple[DeviceInfo, tuple[str, ...]]]
    """(what it is, what is less than clean about it); called before the model is loaded."""
    make_recorder: Callable[[], Recorder]
    synchronize: Callable[[], None]
    make_ceiling: Callable[[int], Ceiling]
    """A ceiling of so many bytes, not yet in force."""
    context_bytes: Callable[[], int | None]
    """Driver context and loaded kernels; asked for after a forward has run."""
    notes: Callable[[], tuple[str, ...]] = lambda: ()
    """What showed only while it was used, in words; asked for after `context_bytes`."""


def open_device(name: str) -> Device:
    """The device called `auto`, `cpu`, `cuda` or `cuda:N`. Raises UsageError when this machine has none such."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UsageError(f"--device {name}: not a device; use auto, cpu, cuda or cuda:N") from error
    if device.type == "cpu":
        return _cpu()
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise UsageError(f"--device {name}: torch sees no CUDA or ROCm card here; use --device cpu")
        from gpufit.sources.measure.cuda import open_cuda

        return open_cuda(device.index or 0)
    raise UsageError(f"--device {name}: gpufit measures on cpu and cuda (NVIDIA or ROCm) devices")


def _cpu() -> Device:
    from gpufit.sources.measure.ceiling import CpuCeiling
    from gpufit.sources.measure.cpu import CpuRecorder

    return Device(
        torch_device=torch.device("cpu"),
        describe=_describe_cpu,
        make_recorder=CpuRecorder,
        synchronize=lambda: None,
        make_ceiling=CpuCeiling,
        context_bytes=lambda: None,
    )


def _describe_cpu() -> tuple[DeviceInfo, tuple[str, ...]]:
    import psutil

    memory = psutil.virtual_memory()
    info = DeviceInfo(
        kind="cpu",
        name=processor_name(),
        total_bytes=memory.total,
        used_before_bytes=memory.total - memory.available,
    )
    return info, ()


def processor_name() -> str:
    """The processor's own name where the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine() or "CPU"


def environment(info: DeviceInfo, flags: tuple[str, ...]) -> Environment:
    """The whole surroundings of a run."""
    from importlib import metadata

    versions = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    versions["torch"] = str(torch.__version__)
    return Environment(
        device=info,
        versions=versions,
        settings={name: os.environ[name] for name in _SETTINGS if name in os.environ},
        host=f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, {torch.get_num_threads()} threads",
        flags=flags,
    )
