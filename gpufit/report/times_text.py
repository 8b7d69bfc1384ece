"""Times and rates of a cell as people read them."""

from __future__ import annotations

from typing import Any


def seconds_text(value: Any) -> str:
    """Seconds."""
    return f"{value:.3f} s" if value < 10 else f"{value:,.1f} s"


def inputs_rate_text(value: Any) -> str:
    """Inputs a second, which may be far below one: four figures, so that a column of them stands even."""
    return f"{value:#.4g}" if value < 1000 else f"{value:,.0f}"


def tokens_rate_text(value: Any) -> str:
    """Tokens a second."""
    return f"{value:,.1f}"
