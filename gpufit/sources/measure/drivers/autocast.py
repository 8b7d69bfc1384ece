"""Any driver's run under `torch.autocast`: the weights keep their dtype, most products are computed in another.

Autocast keeps a copy of every float32 weight that it has cast until its context closes, so the context is held
around a whole run, as a user's own would be (https://docs.pytorch.org/docs/stable/amp.html).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from gpufit.memory.terms import Shape
from gpufit.sources.measure.drivers.base import Driver, Watch


@dataclass(frozen=True)
class Autocast:
    """Drives a model as `driver` does, under autocast."""

    driver: Driver
    device_type: str
    dtype: torch.dtype

    @property
    def generates(self) -> bool:
        """As the driver does."""
        return self.driver.generates

    @property
    def probe(self) -> Shape:
        """The driver's own."""
        return self.driver.probe

    def run(self, model: Any, shape: Shape, watch: Watch) -> None:
        """The driver's run, all its phases in one context: what autocast keeps lives until the last of them ends."""
        with torch.autocast(self.device_type, self.dtype):
            self.driver.run(model, shape, watch)
