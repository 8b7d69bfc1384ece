"""Decoders of tokens: prefill and then one token a step, the mask growing as in generate()."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from gpufit.memory.terms import Shape
from gpufit.sources.measure.caches import DEFAULT, CacheChoice
from gpufit.sources.measure.drivers.base import PROBE_TOKENS, Watch, token_ids
from gpufit.sources.measure.drivers.generation import generate


@dataclass(frozen=True)
class Decoder:
    """Runs `prefill` and `decode` of a causal language model."""

    device: torch.device
    vocabulary: int
    seed: int
    logits_kept: str
    """`last`: logits of the last position, where the model can be asked for them alone; `all`: of every position."""
    cache: CacheChoice = DEFAULT
    generates: bool = True
    prompt: tuple[int, ...] = ()
    """Ids of a text to read in place of random ones."""

    @property
    def probe(self) -> Shape:
        """A few tokens of one sequence, prefill alone."""
        return Shape(PROBE_TOKENS, 1, 1)

    def run(self, model: Any, shape: Shape, watch: Watch) -> None:
        """Both phases; prefill alone where no second token is asked for."""
        with torch.no_grad():
            tokens = token_ids(self, shape)
            prompt = TokenPrompt(tokens, watch)
            cache = self.cache.build(model.config, shape.cached_tokens)
            generate(model, prompt, shape.new_tokens, cache, self.logits_kept, watch)


@dataclass
class TokenPrompt:
    """Token ids, shape (sequences, tokens), with a mask that grows by a column a step."""

    tokens: torch.Tensor
    watch: Watch
    beside: dict[str, torch.Tensor] = field(default_factory=dict)
    """What else the call that reads the prompt takes."""
    mask: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.mask = torch.ones_like(self.tokens)
        self.watch.label([self.tokens, self.mask, self.beside], "inputs")

    @property
    def cached_tokens(self) -> int:
        """Every token of the prompt."""
        return int(self.tokens.shape[1])

    def read(self) -> dict[str, Any]:
        """All at once."""
        return {"input_ids": self.tokens, "attention_mask": self.mask, **self.beside}

    def step(self, token: torch.Tensor) -> dict[str, Any]:
        """The last token, with a mask over all of them."""
        self.mask = torch.cat([self.mask, self.mask.new_ones((self.mask.shape[0], 1))], dim=-1)
        self.watch.label([self.mask, token], "inputs")
        return {"input_ids": token, "attention_mask": self.mask}
