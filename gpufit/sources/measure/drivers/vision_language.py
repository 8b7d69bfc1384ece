"""Models that read images among their tokens: a decoder whose prompt begins with the images of each sequence."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch

from gpufit.memory.terms import Shape
from gpufit.sources.measure.caches import DEFAULT, CacheChoice
from gpufit.sources.measure.drivers.base import PROBE_TOKENS, Watch, token_ids
from gpufit.sources.measure.drivers.decoder import TokenPrompt
from gpufit.sources.measure.drivers.generation import generate
from gpufit.sources.measure.images import NO_IMAGES, Images

_TYPE_NAMES = ("mm_token_type_ids", "token_type_ids")
"""What a forward calls the tensor that says which tokens are an image's: 1 for those, 0 for text."""


@dataclass(frozen=True)
class VisionLanguage:
    """Runs `prefill` (the vision tower and the whole prompt) and `decode`.

    A shape's context is the whole prompt, its images' tokens included.
    """

    device: torch.device
    vocabulary: int
    seed: int
    logits_kept: str
    images: Images
    cache: CacheChoice = DEFAULT
    generates: bool = True
    prompt: tuple[int, ...] = ()
    """Ids of a text to read in place of random ones."""

    @property
    def probe(self) -> Shape:
        """One sequence with its images and a few tokens of text, prefill alone."""
        return Shape(self.images.tokens + PROBE_TOKENS, 1, 1)

    def run(self, model: Any, shape: Shape, watch: Watch) -> None:
        """Both phases; prefill alone where no second token is asked for."""
        with torch.no_grad():
            tokens = self._tokens(shape)
            prompt = ImagePrompt(tokens, watch, self._beside(model, tokens), images=self.images)
            cache = self.cache.build(model.config, shape.cached_tokens)
            generate(model, prompt, shape.new_tokens, cache, self.logits_kept, watch)

    def _tokens(self, shape: Shape) -> torch.Tensor:
        """The images' tokens and then random text, shape (sequences, tokens)."""
        tokens = token_ids(self, shape)
        reserved = torch.tensor(self.images.reserved, dtype=tokens.dtype, device=tokens.device)
        plain = next(one for one in range(self.vocabulary) if one not in self.images.reserved)
        tokens[torch.isin(tokens, reserved)] = plain
        tokens[:, : self.images.tokens] = torch.tensor(self.images.ids, dtype=tokens.dtype, device=tokens.device)
        return tokens

    def _beside(self, model: Any, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        """Pixel values as processors make them, in float32, and what says where they belong."""
        if not self.images.count:
            return {}
        images = self.images.count * tokens.shape[0]
        first, *rest = self.images.pixels
        beside = {"pixel_values": torch.zeros((images * first, *rest), dtype=torch.float32, device=self.device)}
        if self.images.grid is not None:
            beside["image_grid_thw"] = torch.tensor([self.images.grid] * images, device=self.device)
        accepted = inspect.signature(model.forward).parameters
        for name in _TYPE_NAMES:
            if name in accepted:
                beside[name] = (tokens == self.images.placeholder).to(tokens.dtype)
        return beside


@dataclass
class ImagePrompt(TokenPrompt):
    """Token ids among which images stand."""

    images: Images = NO_IMAGES

    def step(self, token: torch.Tensor) -> dict[str, Any]:
        """The last token, with its position where time, rows and columns have positions of their own.

        generate() hands these positions over, too: such a model, given the mask alone, would work out those of every
        token (`compute_3d_position_ids` in
        https://github.com/huggingface/transformers/blob/main/src/transformers/models/qwen2_5_vl/modeling_qwen2_5_vl.py).
        """
        given = super().step(token)
        if self.images.extent is None:
            return given
        position = self.mask.shape[1] - 1 + self.images.text_shift
        positions = torch.full((3, *token.shape), position, dtype=token.dtype, device=token.device)
        self.watch.label(positions, "inputs")
        return given | {"position_ids": positions}
