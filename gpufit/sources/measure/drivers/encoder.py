"""Encoders of tokens: one forward, no cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from gpufit.memory.terms import Shape
from gpufit.profile.peaks import Phase
from gpufit.sources.measure.drivers.base import PROBE_TOKENS, Watch, token_ids


@dataclass(frozen=True)
class Encoder:
    """Runs `forward` over token ids and keeps all that the model returns."""

    device: torch.device
    vocabulary: int
    seed: int
    generates: bool = False
    prompt: tuple[int, ...] = ()
    """Ids of a text to read in place of random ones."""

    @property
    def probe(self) -> Shape:
        """A few tokens of one sequence."""
        return Shape(PROBE_TOKENS, 0, 1)

    def run(self, model: Any, shape: Shape, watch: Watch) -> None:
        """The one phase, `forward`."""
        with torch.no_grad():
            tokens = token_ids(self, shape)
            mask = torch.ones_like(tokens)
            watch.label([tokens, mask], "inputs")
            watch.phase_began(Phase.FORWARD)
            kept = model(input_ids=tokens, attention_mask=mask)
            watch.label(dict(kept), "outputs")
            watch.phase_ended(Phase.FORWARD, 0)
