"""What images are to each family of models: pixel values of which shape, and how many tokens of the prompt.

Worked out from the model's own config, so no processor is loaded and no image is read: every size that memory depends
on is a matter of shapes. One function a family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpufit.errors import UsageError

DEFAULT_IMAGES = 1
DEFAULT_IMAGE_SIZE = (448, 448)
"""Width and height in pixels, for a model that takes images of any size (a choice of gpufit's own: assumed)."""


@dataclass(frozen=True)
class Images:
    """The images of one sequence."""

    count: int
    """Images in each sequence; 0 for text alone."""
    size: tuple[int, int] | None
    """Width and height in pixels, as the model sees them."""
    placeholder: int
    """The token id that stands for one piece of an image in the prompt."""
    placeholders: int
    """So many of them an image."""
    before: tuple[int, ...]
    """Ids that open an image in the prompt."""
    after: tuple[int, ...]
    """Ids that close it."""
    reserved: tuple[int, ...]
    """Ids that mean something else than text, and so must not come up in random text."""
    pixels: tuple[int, ...]
    """Shape of one image's pixel values; images are joined along the first dimension."""
    grid: tuple[int, int, int] | None = None
    """Frames, rows and columns of patches, where the model has to be told."""
    extent: int | None = None
    """Positions that one image takes of the text's own, where rows and columns have positions of their own."""

    @property
    def tokens_each(self) -> int:
        """Tokens of the prompt that one image takes, the ids around it included."""
        return len(self.before) + self.placeholders + len(self.after)

    @property
    def tokens(self) -> int:
        """Tokens of the prompt that all images of a sequence take."""
        return self.count * self.tokens_each

    @property
    def text_shift(self) -> int:
        """How far the text after the images lies from where counting tokens would put it: 0 or less."""
        return 0 if self.extent is None else self.count * (self.extent - self.placeholders)

    @property
    def ids(self) -> list[int]:
        """Those tokens, in order."""
        return [*self.before, *[self.placeholder] * self.placeholders, *self.after] * self.count


NO_IMAGES = Images(
    count=0, size=None, placeholder=-1, placeholders=0, before=(), after=(), reserved=(), pixels=(0,), grid=None
)
"""Text alone."""


def plan_images(name: str, config: Any, count: int | None, size: tuple[int, int] | None) -> Images:
    """The images of each sequence of a model that takes some: `count` of `size`, or the defaults where None.

    Raises UsageError for a family whose images are not known here (text alone can be asked for), and for a size that
    the model does not take.
    """
    wanted = DEFAULT_IMAGES if count is None else count
    if wanted == 0:
        if size is not None:
            raise UsageError("--image-size is of no use with --images 0")
        return NO_IMAGES
    family = FAMILIES.get(str(config.model_type))
    if family is None:
        raise UsageError(
            f"{name}: gpufit does not know how {config.model_type} takes images (it knows {', '.join(FAMILIES)}); "
            "--images 0 measures it on text alone"
        )
    return family(name, config, wanted, size)


def _patches(name: str, config: Any, count: int, size: tuple[int, int] | None) -> Images:
    """Qwen2-VL and its successors: any size, cut into patches, a square of them merged into one token.

    Both sides are rounded to whole merged patches as the processor does; its limits on all pixels are not applied.
    https://github.com/huggingface/transformers/blob/main/src/transformers/models/qwen2_vl/image_processing_qwen2_vl.py
    """
    vision = config.vision_config
    patch, merge, frames = (_one(getattr(vision, key)) for key in _PATCH_KEYS)
    width, height = (max(round(side / (patch * merge)), 1) * patch * merge for side in size or DEFAULT_IMAGE_SIZE)
    rows, columns = height // patch, width // patch
    reserved = [getattr(config, key, None) for key in _QWEN_IDS]
    return Images(
        count=count,
        size=(width, height),
        placeholder=config.image_token_id,
        placeholders=rows * columns // merge**2,
        before=(config.vision_start_token_id,),
        after=(config.vision_end_token_id,),
        reserved=tuple(one for one in reserved if one is not None),
        pixels=(rows * columns, _channels(vision) * frames * patch**2),
        grid=(1, rows, columns),
        extent=max(rows, columns) // merge,
    )


_PATCH_KEYS = ("patch_size", "spatial_merge_size", "temporal_patch_size")
_QWEN_IDS = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")


def _llava(name: str, config: Any, count: int, size: tuple[int, int] | None) -> Images:
    """LLaVA: one size, a token a patch, and one more where the tower's class token is kept.

    https://github.com/huggingface/transformers/blob/main/src/transformers/models/llava/processing_llava.py
    """
    vision = config.vision_config
    if vision.model_type not in _CLASS_TOKENS:
        raise UsageError(
            f"{name}: gpufit does not know the images of a LLaVA whose vision tower is {vision.model_type}; "
            "--images 0 measures it on text alone"
        )
    kept = _CLASS_TOKENS[vision.model_type] if config.vision_feature_select_strategy == "full" else 0
    dropped = 1 - _CLASS_TOKENS[vision.model_type] if config.vision_feature_select_strategy == "default" else 0
    return Images(
        count=count,
        size=_fixed_size(name, vision, size),
        placeholder=config.image_token_id,
        placeholders=(vision.image_size // vision.patch_size) ** 2 + kept - dropped,
        before=(),
        after=(),
        reserved=(config.image_token_id,),
        pixels=(1, _channels(vision), vision.image_size, vision.image_size),
    )


_CLASS_TOKENS = {"clip_vision_model": 1, "siglip_vision_model": 0}
"""Tokens that a vision tower puts before its patches. LLaVA's strategy `default` drops the first one found, whatever
it is."""


def _gemma3(name: str, config: Any, count: int, size: tuple[int, int] | None) -> Images:
    """Gemma 3: one size, pooled to a fixed number of tokens between a begin and an end token.

    https://github.com/huggingface/transformers/blob/main/src/transformers/models/gemma3/processing_gemma3.py
    """
    vision = config.vision_config
    around = (config.boi_token_index, config.eoi_token_index)
    return Images(
        count=count,
        size=_fixed_size(name, vision, size),
        placeholder=config.image_token_id,
        placeholders=config.mm_tokens_per_image,
        before=around[:1],
        after=around[1:],
        reserved=(config.image_token_id, *around),
        pixels=(1, _channels(vision), vision.image_size, vision.image_size),
    )


FAMILIES: Mapping[str, Callable[[str, Any, int, tuple[int, int] | None], Images]] = {
    "qwen2_vl": _patches,
    "qwen2_5_vl": _patches,
    "llava": _llava,
    "gemma3": _gemma3,
}
"""How a family takes images, by transformers' name of it."""


def _fixed_size(name: str, vision: Any, size: tuple[int, int] | None) -> tuple[int, int]:
    """The one size a vision tower takes. Raises UsageError when another was asked for."""
    own = (int(vision.image_size), int(vision.image_size))
    if size is not None and size != own:
        raise UsageError(f"{name} scales every image to {own[0]} x {own[1]}: leave --image-size out")
    return own


def _channels(vision: Any) -> int:
    return int(getattr(vision, "num_channels", None) or getattr(vision, "in_channels", None) or 3)


def _one(value: Any) -> int:
    """A side that configs give as one number or as a pair of equal ones."""
    return int(math.sqrt(math.prod(value)) if isinstance(value, list | tuple) else value)
