"""What a release of vLLM is installed with: the torch that it pins."""

from __future__ import annotations

from gpufit.memory.engines.base import parse_version

PINS: tuple[tuple[str, str], ...] = (
    ("0.6.0", "2.4.0"),
    ("0.6.4", "2.5.1"),
    ("0.8.0", "2.6.0"),
    ("0.9.0", "2.7.0"),
    ("0.10.0", "2.7.1"),
    ("0.10.2", "2.8.0"),
    ("0.11.1", "2.9.0"),
    ("0.14.0", "2.9.1"),
    ("0.17.0", "2.10.0"),
    ("0.20.0", "2.11.0"),
    ("0.27.0", "2.13.0"),
    ("0.33.0", "2.14.0"),
)
"""From which release on which torch is pinned: `torch==` in the `requires_dist` of the release's wheel on PyPI
(`pin_source`), as `requirements/cuda.txt` of its tag has it (https://github.com/vllm-project/vllm)."""

_LAST = "0.33.0"
"""The newest release whose pin was read; of later ones nothing is said."""


def pinned_torch(version: str) -> str | None:
    """The torch that a release of vLLM pins; None before 0.6 and for releases newer than the last that was read.

    Raises UsageError for a version that is none.
    """
    release = parse_version(version)
    if release > parse_version(_LAST):
        return None
    return next((torch for since, torch in reversed(PINS) if release >= parse_version(since)), None)


def pin_source(version: str) -> str:
    """Where the pin of a release stands."""
    return f"https://pypi.org/pypi/vllm/{version}/json"
