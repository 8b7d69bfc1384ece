"""Decoders of tokens: greedy decoding by hand, prefill and then one token a step, the mask growing as in generate()."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch

from gpufit.memory.terms import Shape
from gpufit.profile.record import Phase
from gpufit.sources.measure.drivers.base import PROBE_TOKENS, Watch, cache_of, random_tokens


@dataclass(frozen=True)
class Decoder:
    """Runs `prefill` and `decode` of a causal language model."""

    device: torch.device
    vocabulary: int
    seed: int
    logits_kept: str
    """`last`: logits of the last position, where the model can be asked for them alone; `all`: of every position."""
    generates: bool = True

    @property
    def probe(self) -> Shape:
        """A few tokens of one sequence, prefill alone."""
        return Shape(PROBE_TOKENS, 1, 1)

    def run(self, model: Any, shape: Shape, watch: Watch) -> None:
        """Both phases; prefill alone where no second token is asked for."""
        with torch.no_grad():
            tokens = random_tokens(self.vocabulary, shape.concurrency, shape.context_tokens, self.seed, self.device)
            mask = torch.ones_like(tokens)
            watch.label([tokens, mask], "inputs")
            self._generate(model, shape, tokens, mask, watch)

    def _generate(self, model: Any, shape: Shape, tokens: torch.Tensor, mask: torch.Tensor, watch: Watch) -> None:
        options = _forward_options(model, self.logits_kept)
        cache_name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
        watch.phase_began(Phase.PREFILL)
        output = model(input_ids=tokens, attention_mask=mask, use_cache=True, **options)
        cache = cache_of(output)
        watch.label(output.logits, "outputs")
        watch.label(cache, "kv_cache")
        generated = [_next_token(output.logits)]
        watch.label(generated, "outputs")
        watch.phase_ended(Phase.PREFILL, shape.context_tokens)
        del output
        if shape.new_tokens < 2:
            return
        watch.phase_began(Phase.DECODE)
        for _ in range(shape.new_tokens - 1):
            mask = torch.cat([mask, mask.new_ones((mask.shape[0], 1))], dim=-1)
            watch.label([mask, generated[-1]], "inputs")
            output = model(
                input_ids=generated[-1], attention_mask=mask, use_cache=True, **{cache_name: cache}, **options
            )
            cache = cache_of(output)
            watch.label(output.logits, "outputs")
            watch.label(cache, "kv_cache")
            generated.append(_next_token(output.logits))
            watch.label(generated[-1], "outputs")
            del output
        watch.phase_ended(Phase.DECODE, shape.cached_tokens)


def _next_token(logits: torch.Tensor) -> torch.Tensor:
    """The likeliest next token of each sequence, shape (sequences, 1)."""
    return logits[:, -1, :].argmax(dim=-1, keepdim=True)


def _forward_options(model: Any, logits_kept: str) -> dict[str, Any]:
    """`logits_to_keep=1` where the model takes it and only the last position's logits are wanted."""
    takes = "logits_to_keep" in inspect.signature(model.forward).parameters
    return {"logits_to_keep": 1} if takes and logits_kept == "last" else {}
