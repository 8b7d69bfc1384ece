"""Speeds as people read them."""

from __future__ import annotations

import pytest

from gpufit.report.times_text import inputs_rate_text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0.76969, "0.7697"), (6.06, "6.060"), (34.1, "34.10"), (262.95, "262.9"), (1234.5, "1,234"), (12345.6, "12,346")],
)
def test_four_figures_stand_even(rate: float, text: str) -> None:
    assert inputs_rate_text(rate) == text
