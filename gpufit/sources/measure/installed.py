"""Whether what runs models is installed."""

from __future__ import annotations

import importlib.util

from gpufit.errors import MeasurementError


def check_installed() -> None:
    """Raise MeasurementError when what runs models is not installed; looking does not import it."""
    needed = ("torch", "transformers", "accelerate", "scipy")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise MeasurementError(
            f"measuring needs {', '.join(missing)}, which this installation lacks: pip install 'gpufit[measure]'"
        )
