"""Greedy decoding by hand, shared by every kind that generates: the prompt is read, then one token a step."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Protocol

import torch

from gpufit.profile.peaks import Phase
from gpufit.sources.measure.drivers.base import Watch, cache_of

_CACHE_NAMES = ("cache", "past_key_values", "cache_params", "state")
"""What a model's forward calls its cache: the first is that of transformers since 5.20, the rest are older."""


class Prompt(Protocol):
    """What one kind of model is given, call by call."""

    @property
    def cached_tokens(self) -> int:
        """Tokens a sequence holds in its cache once the prompt has been read."""
        ...

    def read(self) -> dict[str, Any]:
        """The arguments of the call that reads it; what has to run before that call, an encoder say, runs here."""
        ...

    def step(self, token: torch.Tensor) -> dict[str, Any]:
        """The arguments of the call that goes on from `token`, shape (sequences, 1)."""
        ...


def generate(model: Any, prompt: Prompt, new_tokens: int, cache: Any | None, logits_kept: str, watch: Watch) -> None:
    """Run `prefill`, and `decode` where a second token is asked for.

    `cache` is None where the model builds its own. `logits_kept`: `last` asks for the logits of the last position
    alone, where the model can be asked for that; `all` for those of every position.
    """
    accepted = inspect.signature(model.forward).parameters
    options = {"logits_to_keep": 1} if "logits_to_keep" in accepted and logits_kept == "last" else {}
    cache_name = next((name for name in _CACHE_NAMES if name in accepted), "past_key_values")
    watch.phase_began(Phase.PREFILL)
    given = {} if cache is None else {cache_name: cache}
    output = model(**prompt.read(), **given, use_cache=True, **options)
    cache = cache_of(output)
    watch.label(output.logits, "outputs")
    watch.label(cache, "kv_cache")
    generated = [_next_token(output.logits)]
    watch.label(generated, "outputs")
    watch.phase_ended(Phase.PREFILL, prompt.cached_tokens)
    del output
    if new_tokens < 2:
        return
    watch.phase_began(Phase.DECODE)
    with _decoding(model):
        for step in range(new_tokens - 1):
            watch.step_began()
            given = prompt.step(generated[-1]) | {cache_name: cache}
            if cache_name == "cache_params" and "cache_position" in accepted:
                # Mamba of earlier releases tells a step from a prompt by this alone, and its steps take no mask.
                position = torch.tensor([prompt.cached_tokens + step], device=generated[-1].device)
                given |= {"cache_position": position, "attention_mask": None}
            output = model(**given, use_cache=True, **options)
            cache = cache_of(output)
            watch.label(output.logits, "outputs")
            watch.label(cache, "kv_cache")
            generated.append(_next_token(output.logits))
            watch.label(generated[-1], "outputs")
            del output
    watch.phase_ended(Phase.DECODE, prompt.cached_tokens + new_tokens - 1)


def _decoding(model: Any) -> contextlib.AbstractContextManager[None]:
    """What `generate()` changes for the steps: since transformers 5 experts run otherwise in them on a card
    (`_optimize_model_for_decode`)."""
    switch = getattr(model, "_optimize_model_for_decode", None)
    found: contextlib.AbstractContextManager[None] = contextlib.nullcontext() if switch is None else switch()
    return found


def _next_token(logits: torch.Tensor) -> torch.Tensor:
    """The likeliest next token of each sequence, shape (sequences, 1)."""
    return logits[:, -1, :].argmax(dim=-1, keepdim=True)
