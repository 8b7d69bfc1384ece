"""Which torch a release of vLLM pins, by `requires_dist` of its wheel on PyPI (read on 30 November 2026)."""

from __future__ import annotations

import pytest

from gpufit.errors import UsageError
from gpufit.memory.engines.base import parse_version
from gpufit.memory.engines.vllm import CURRENT
from gpufit.memory.engines.vllm.releases import PINS, pinned_torch


@pytest.mark.parametrize(
    ("release", "torch"),
    [
        ("0.6.3", "2.4.0"),
        ("0.7.3", "2.5.1"),
        ("0.8.5.post1", "2.6.0"),
        ("0.9.2", "2.7.0"),
        ("0.10.1.1", "2.7.1"),
        ("0.10.2", "2.8.0"),
        ("0.11.0", "2.8.0"),
        ("0.11.1", "2.9.0"),
        ("0.13.0", "2.9.0"),
        ("0.16.0", "2.9.1"),
        ("0.19.1", "2.10.0"),
        ("0.21.0", "2.11.0"),
        ("0.26.0", "2.11.0"),
        ("0.29.0", "2.13.0"),
        ("0.33.0", "2.14.0"),
        ("0.33.1", None),  # nobody has read it
        ("0.5.5", None),
    ],
)
def test_a_release_pins_its_torch(release: str, torch: str | None) -> None:
    assert pinned_torch(release) == torch


def test_the_pins_are_in_order_and_reach_the_current_rules() -> None:
    since = [parse_version(release) for release, _ in PINS]
    assert since == sorted(since)
    assert pinned_torch(CURRENT) is not None
    with pytest.raises(UsageError):
        pinned_torch("latest")
