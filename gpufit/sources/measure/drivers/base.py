"""What every driver is told and tells: a shape to run, and a watch that learns of phases and of what tensors are."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from gpufit.memory.replay import Category
from gpufit.memory.terms import Shape
from gpufit.profile.peaks import Phase


class Watch(Protocol):
    """Who is told how a run goes. A timed run's watch reads the clock, a recorded run's marks the recording."""

    def label(self, thing: Any, category: Category) -> None:
        """Every tensor within `thing` is of this category."""
        ...

    def phase_began(self, phase: Phase) -> None:
        """From here on."""
        ...

    def step_began(self) -> None:
        """One decode step begins; the one before it is over."""
        ...

    def phase_ended(self, phase: Phase, cached_tokens: int) -> None:
        """Up to here, with so many tokens a sequence in the cache."""
        ...


class Driver(Protocol):
    """Runs one kind of model at a shape; the same inputs for the same shape and seed, every time."""

    @property
    def generates(self) -> bool:
        """Whether it decodes; else its one phase is `forward`."""
        ...

    @property
    def probe(self) -> Shape:
        """A shape as small as the model takes, to look at its precisions with."""
        ...

    def run(self, model: Any, shape: Shape, watch: Watch) -> None:
        """Run every phase once; the errors of the model come through."""
        ...


PROBE_TOKENS = 16
"""Tokens of a probe, where the model does not ask for more."""


class TokenSource(Protocol):
    """Where a driver's token ids come from."""

    @property
    def device(self) -> torch.device:
        """Where they go."""
        ...

    @property
    def vocabulary(self) -> int:
        """Ids are below this."""
        ...

    @property
    def seed(self) -> int:
        """Of random ids."""
        ...

    @property
    def prompt(self) -> tuple[int, ...]:
        """The ids of a text, which stands again and again up to the length asked for; empty: random ids."""
        ...


def token_ids(source: TokenSource, shape: Shape) -> torch.Tensor:
    """What each sequence of a shape reads, shape (sequences, tokens)."""
    sequences, tokens = shape.concurrency, shape.context_tokens
    if not source.prompt:
        return random_tokens(source.vocabulary, sequences, tokens, source.seed, source.device)
    repeated = (source.prompt * -(-tokens // len(source.prompt)))[:tokens]
    return torch.tensor([repeated] * sequences).to(source.device)


def random_tokens(vocabulary: int, sequences: int, tokens: int, seed: int, device: torch.device) -> torch.Tensor:
    """Token ids, shape (sequences, tokens), the same for the same seed on every device."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(vocabulary, (sequences, tokens), generator=generator).to(device)


def cache_of(output: Any) -> Any:
    """The cache in a model's output, under whatever name its family gives it; None for a model without one."""
    for name in ("cache", "past_key_values", "cache_params", "state"):
        cache = getattr(output, name, None)
        if cache is not None:
            return cache
    return None
