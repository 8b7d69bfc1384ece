"""What a set of engine rules answers with: bytes between two bounds, with words and evidence; versions; outcomes."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass

from gpufit.errors import UsageError
from gpufit.profile.evidence import Evidence, weakest

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")


class Outcome(enum.StrEnum):
    """Whether an engine would start; the words are those of the verdict for a card."""

    FITS = "fits"
    """It starts even when every part is at its upper bound."""
    TOO_CLOSE = "too_close"
    """Somewhere between the bounds it stops starting."""
    DOES_NOT_FIT = "does_not_fit"
    """It does not start even when every part is at its lower bound."""


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A release of an engine."""

    major: int
    minor: int
    patch: int = 0

    def at_least(self, major: int, minor: int, patch: int = 0) -> bool:
        """Whether this release is that one or later."""
        return (self.major, self.minor, self.patch) >= (major, minor, patch)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def parse_version(text: str) -> Version:
    """Read `0.11.0`, `v0.11`, `0.8.5.post1` or `0.19.2rc1.dev134`. Raises UsageError for what is no release.

    A development build counts as the release it leads to.
    """
    match = _VERSION.match(text.strip())
    if match is None:
        raise UsageError(f"engine version {text!r} is not a release such as 0.11.0")
    major, minor, patch = match.groups(default="0")
    return Version(int(major), int(minor), int(patch))


@dataclass(frozen=True, slots=True)
class Amount:
    """Bytes on one rank: between two bounds, most likely the point."""

    lower_bytes: int
    point_bytes: int
    upper_bytes: int

    def __post_init__(self) -> None:
        if not self.lower_bytes <= self.point_bytes <= self.upper_bytes:
            raise ValueError(f"bounds out of order: {self}")

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.lower_bytes + other.lower_bytes,
            self.point_bytes + other.point_bytes,
            self.upper_bytes + other.upper_bytes,
        )

    def contains(self, size_bytes: float) -> bool:
        """Whether a size lies between the bounds."""
        return self.lower_bytes <= size_bytes <= self.upper_bytes


@dataclass(frozen=True, slots=True)
class Part:
    """One part of what an engine takes, on one rank."""

    name: str
    """`weights`, `lora`, `activation`, `non_torch`, `cuda_graphs`."""
    amount: Amount
    evidence: Evidence
    words: tuple[str, ...]
    """How the figure came about, ready for a report."""
    peak: Amount | None = None
    """What it takes on the way there, where that may be more than what stays."""
    on_top: Amount | None = None
    """What it takes beyond the share of the card that the engine accounts for; None where nothing."""


def exactly(size_bytes: int) -> Amount:
    """An amount without doubt."""
    return Amount(size_bytes, size_bytes, size_bytes)


def around(point_bytes: int, less: float, more: float) -> Amount:
    """An amount that may be a share `less` smaller or a share `more` larger."""
    return Amount(int(point_bytes * (1 - less)), point_bytes, int(point_bytes * (1 + more)) + 1)


def total(parts: Iterable[Part]) -> Amount:
    """The sum of some parts."""
    added = exactly(0)
    for part in parts:
        added = added + part.amount
    return added


def evidence_of(parts: Iterable[Part]) -> Evidence:
    """The weakest evidence among some parts."""
    return weakest([part.evidence for part in parts])
