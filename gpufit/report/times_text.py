"""Times and rates of a cell as people read them."""

from __future__ import annotations

from typing import Any


def seconds_text(value: Any) -> str:
    """Seconds."""
    return f"{value:.3f} s" if value < 10 else f"{value:,.1f} s"


def inputs_rate_text(value: Any) -> str:
    """Inputs a second, which may be far below one."""
    return f"{value:.4g}"


def tokens_rate_text(value: Any) -> str:
    """Tokens a second."""
    return f"{value:,.1f}"
