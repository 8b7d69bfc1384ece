"""Encoder-decoders of tokens: the encoder reads the context, the decoder writes from its start token on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from gpufit.memory.terms import Shape
from gpufit.sources.measure.caches import DEFAULT, CacheChoice
from gpufit.sources.measure.drivers.base import PROBE_TOKENS, Watch, token_ids
from gpufit.sources.measure.drivers.generation import generate


@dataclass(frozen=True)
class EncoderDecoder:
    """Runs `prefill` (the encoder and the decoder's first token) and `decode` (its further tokens).

    A shape's context is what the encoder reads. The decoder begins with one start token, as in generate().
    """

    device: torch.device
    vocabulary: int
    seed: int
    cache: CacheChoice = DEFAULT
    generates: bool = True
    prompt: tuple[int, ...] = ()
    """Ids of a text to read in place of random ones."""

    @property
    def probe(self) -> Shape:
        """A few tokens of one sequence for the encoder, one for the decoder."""
        return Shape(PROBE_TOKENS, 1, 1)

    def run(self, model: Any, shape: Shape, watch: Watch) -> None:
        """Both phases; prefill alone where no second token is asked for."""
        with torch.no_grad():
            tokens = token_ids(self, shape)
            start = torch.full_like(tokens[:, :1], start_token(model))
            masked = {"attention_mask": torch.ones_like(tokens)}
            prompt = EncodedPrompt(
                model, {"input_ids": tokens, **masked}, masked, start, watch, shape.context_tokens + 1
            )
            cache = self.cache.build_pair(model.get_decoder().config, max(shape.new_tokens, 1), shape.context_tokens)
            generate(model, prompt, shape.new_tokens, cache, "last", watch)


@dataclass
class EncodedPrompt:
    """What an encoder reads once, and the token ids that the decoder begins with."""

    model: Any
    encoder_inputs: dict[str, torch.Tensor]
    beside: dict[str, torch.Tensor]
    """What every call of the decoder is given beside what the encoder found: the mask over what it read."""
    start: torch.Tensor
    """Token ids, shape (sequences, tokens)."""
    watch: Watch
    cached_tokens: int
    found: Any = field(init=False, default=None)
    """The encoder's output, kept by the caller until the last token as in generate()."""

    def __post_init__(self) -> None:
        self.watch.label([self.encoder_inputs, self.start], "inputs")

    def read(self) -> dict[str, Any]:
        """The encoder runs; then the decoder's first tokens."""
        self.found = self.model.get_encoder()(**self.encoder_inputs)
        self.watch.label(dict(self.found), "outputs")
        return self._given(self.start)

    def step(self, token: torch.Tensor) -> dict[str, Any]:
        """The last token."""
        self.watch.label(token, "inputs")
        return self._given(token)

    def _given(self, tokens: torch.Tensor) -> dict[str, Any]:
        return {"encoder_outputs": self.found, "decoder_input_ids": tokens, **self.beside}


def start_token(model: Any) -> int:
    """The id that the model's decoder begins with; 0 where its files name none (no size depends on it)."""
    for config in (getattr(model, "generation_config", None), model.config):
        found = getattr(config, "decoder_start_token_id", None)
        if isinstance(found, int):
            return found
    return 0
