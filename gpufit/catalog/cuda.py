"""Which CUDA a torch wheel brings, and which driver a CUDA and a card take at least. Facts with their sources; pure.

All of it is for Linux. A release or a CUDA that is not listed is not known, and nothing is guessed from its neighbours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpufit.catalog.record import Card

DRIVERS_SOURCE = "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"
"""The least driver of a CUDA major release, whichever minor release of it a wheel was built with."""

TOOLKITS_SOURCE = "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html"
"""The driver that came with a CUDA toolkit, and the three-part versions of the least ones."""

_LEAST_DRIVERS = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
"""CUDA major release -> least driver (DRIVERS_SOURCE: 450, 525 and 580; TOOLKITS_SOURCE has them in full)."""

_TOOLKIT_DRIVERS = {"11.8": "520.61.05", "12.8": "570.26", "12.9": "575.51.03", "13.0": "580.65.06"}
"""CUDA toolkit -> the driver that came with it (TOOLKITS_SOURCE): those that are the first to target some card."""

_WHEELS = {
    "2.4": "12.1",
    "2.5": "12.4",
    "2.6": "12.4",
    "2.7": "12.6",
    "2.8": "12.8",
    "2.9": "12.8",
    "2.10": "12.8",
    "2.11": "13.0",
    "2.12": "13.0",
    "2.13": "13.0",
    "2.14": "13.0",
}
"""torch release -> CUDA of its wheel on PyPI: the `nvidia-cuda-runtime-cu12` or `cuda-toolkit` that its `requires_dist`
pins (`wheel_source`)."""

_OLDER_BINARIES = {"sm_103": "12.8"}
"""Build target -> the CUDA before its own that it still runs the code of: sm_103 runs that for sm_100
(https://docs.nvidia.com/cuda/blackwell-compatibility-guide/)."""

_ARM_FROM = (2, 11)
"""The first release whose pin is not for x86-64 alone."""

_ARM_HOST = "Grace"
"""In `host_link.kind` of a card whose host is an Arm processor."""

_ANY = 99
"""A minor release beyond all of a major one."""

_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?(?:\+(.+))?")
_CUDA_BUILD = re.compile(r"cu(\d\d)(\d)")
_CUDA = re.compile(r"(?:CUDA )?(\d+)\.(\d+|x)(?:\.\d+)*")


@dataclass(frozen=True, order=True)
class Cuda:
    """A CUDA release."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


def parse_cuda(text: str | None) -> Cuda | None:
    """The release in `12.8`, `CUDA 12.8` or `12.8.90`, and 12.0 for `12.x`; None where there is none (HIP, a CPU)."""
    found = _CUDA.fullmatch(text or "")
    return None if found is None else Cuda(int(found[1]), 0 if found[2] == "x" else int(found[2]))


def wheel_cuda(torch: str, card: Card) -> Cuda | None:
    """The CUDA of a torch release: of the build its local version names (`+cu128`), else of the wheel that PyPI has of
    it for the host of a card (in place of `+cpu`, too); None for a release that is not listed, and any other build."""
    found = _RELEASE.fullmatch(torch)
    if found is None:
        return None
    major, minor, build = found.groups()
    if built := _CUDA_BUILD.fullmatch(build or ""):
        return Cuda(int(built[1]), int(built[2]))
    if build not in (None, "cpu"):
        return None
    if has_arm_host(card) and (int(major), int(minor)) < _ARM_FROM:
        return None
    return parse_cuda(_WHEELS.get(f"{major}.{minor}"))


def wheel_source(torch: str) -> str:
    """Where a torch release says which CUDA it brings."""
    return f"https://pypi.org/pypi/torch/{torch.partition('+')[0]}/json"


def has_arm_host(card: Card) -> bool:
    """Whether the card's host is an Arm processor, for which other wheels are made."""
    return card.host_link is not None and _ARM_HOST in card.host_link.kind


def takes(card: Card, cuda: Cuda) -> bool:
    """Whether a card runs software of a CUDA, as far as its row says."""
    software = card.software
    least = parse_cuda(_OLDER_BINARIES.get(software.arch or "", software.min_cuda))
    most = parse_cuda(software.max_cuda)
    return (least is None or cuda >= least) and (most is None or cuda.major <= most.major)


@dataclass(frozen=True)
class LeastDriver:
    """The oldest driver that will do."""

    version: str
    why: str
    """In words: what asks for it."""
    source: str


def least_drivers(card: Card) -> dict[int, LeastDriver]:
    """The oldest driver for each CUDA major release that the card takes, for software whose CUDA is not known."""
    found = {major: least_driver(Cuda(major, 0), card) for major in _LEAST_DRIVERS if takes(card, Cuda(major, _ANY))}
    return {major: one for major, one in found.items() if one is not None}


def least_driver(cuda: Cuda | None, card: Card) -> LeastDriver | None:
    """The oldest driver for software of a CUDA on a card: the later of the one that this CUDA takes and of the one that
    came with the first CUDA that targets the card. None where neither is known."""
    found = []
    if cuda is not None and cuda.major in _LEAST_DRIVERS:
        found.append(LeastDriver(_LEAST_DRIVERS[cuda.major], f"for CUDA {cuda.major}.x", DRIVERS_SOURCE))
    first = card.software.min_cuda
    if first in _TOOLKIT_DRIVERS:
        why = f"it came with CUDA {first}, the first that targets this card"
        found.append(LeastDriver(_TOOLKIT_DRIVERS[first], why, TOOLKITS_SOURCE))
    return max(found, key=lambda one: tuple(map(int, one.version.split("."))), default=None)
