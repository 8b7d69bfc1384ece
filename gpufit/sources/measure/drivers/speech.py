"""Speech models: an encoder reads half a minute of sound, a decoder goes on from a prompt of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from gpufit.memory.terms import Shape
from gpufit.sources.measure.caches import DEFAULT, CacheChoice
from gpufit.sources.measure.drivers.base import PROBE_TOKENS, Watch, token_ids
from gpufit.sources.measure.drivers.encoder_decoder import EncodedPrompt
from gpufit.sources.measure.drivers.generation import generate

FRAMES_A_POSITION = 2
"""Frames that the encoder's convolutions fold into one position: strides of 1 and 2
(https://github.com/openai/whisper/blob/main/whisper/model.py, AudioEncoder)."""


@dataclass(frozen=True)
class Speech:
    """Runs `prefill` (the encoder over all its frames, the decoder over its prompt) and `decode`.

    A shape's context is the decoder's prompt; the sound is the same for every sequence, since the encoder takes no
    other length.
    """

    device: torch.device
    vocabulary: int
    seed: int
    mel_bins: int
    source_positions: int
    """Positions of the encoder."""
    cache: CacheChoice = DEFAULT
    generates: bool = True
    prompt: tuple[int, ...] = ()
    """Ids of a text to read in place of random ones."""

    @property
    def probe(self) -> Shape:
        """A few tokens of one sequence, prefill alone."""
        return Shape(PROBE_TOKENS, 1, 1)

    @property
    def frames(self) -> int:
        """Frames of sound that the encoder takes."""
        return self.source_positions * FRAMES_A_POSITION

    def run(self, model: Any, shape: Shape, watch: Watch) -> None:
        """Both phases; prefill alone where no second token is asked for."""
        with torch.no_grad():
            sound = torch.zeros((shape.concurrency, self.mel_bins, self.frames), dtype=model.dtype, device=self.device)
            tokens = token_ids(self, shape)
            prompt = EncodedPrompt(model, {"input_features": sound}, {}, tokens, watch, shape.context_tokens)
            cache = self.cache.build_pair(model.get_decoder().config, shape.cached_tokens, self.source_positions)
            generate(model, prompt, shape.new_tokens, cache, "last", watch)
