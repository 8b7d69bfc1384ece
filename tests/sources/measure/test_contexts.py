"""Which contexts are measured when none are asked for, and which cannot be."""

from __future__ import annotations

import pytest

from gpufit.errors import UsageError
from gpufit.sources.measure.contexts import contexts_of
from gpufit.sources.measure.protocol import Planned
from gpufit.sources.measure.request import ProfileRequest


def contexts(new_tokens: int = 8, asked: tuple[int, ...] | None = None, **planned: object) -> tuple[int, ...]:
    settings: dict[str, object] = {"architecture": "A", "generates": True, "position_limit": None}
    return contexts_of(ProfileRequest(model="m", contexts=asked), Planned(**(settings | planned)), new_tokens)


def test_the_default_contexts_go_as_far_as_the_positions() -> None:
    default = (256, 512, 768, 1024, 1536)
    assert contexts() == default
    assert contexts(position_limit=1543) == default  # 1536 + 8, less the last one, which is never fed back
    assert contexts(position_limit=1536, decodes_apart=True) == default


def test_they_stand_beside_the_images() -> None:
    assert contexts(images=1, image_tokens=258) == (514, 770, 1026, 1282, 1794)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((128,), (64, 256, 512, 768, 1024, 1536)),
        ((512,), (256, 512, 768, 1024, 1536)),
        ((1024,), (256, 512, 768, 1024, 1536, 2048)),
        ((4096,), (256, 512, 768, 1024, 1536, 4096, 6144, 8192)),
        ((8192,), (256, 512, 768, 1024, 1536, 8192)),  # 12288 would take hours on a processor
        ((128_000,), (256, 512, 768, 1024, 1536)),
        ((128, 1024), (64, 256, 512, 768, 1024, 1536, 2048)),
    ],
)
def test_one_lies_below_a_window_and_three_fill_it(steps: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert contexts(context_steps=steps) == expected


def test_so_they_do_beside_images_and_within_few_positions() -> None:
    # Half of 512 is less than the image's 258 tokens and one of text.
    assert contexts(context_steps=(512,), images=1, image_tokens=258) == (259, 514, 770, 1026, 1282, 1794)
    assert contexts(context_steps=(128,), position_limit=1024) == (64, 254, 508, 635, 762, 1017)


def test_a_model_of_few_positions_gets_as_many_spread_over_them() -> None:
    # Whisper's decoder takes 448 tokens: 441 beside eight new ones. 2, 4, 5, 6 and 8 eighths of them.
    assert contexts(position_limit=448) == (110, 220, 275, 330, 441)
    assert contexts(position_limit=1030) == (255, 511, 639, 767, 1023)
    # 77 positions less 7, less 58 of the image: 12 of text.
    assert contexts(position_limit=77, images=1, image_tokens=58) == (61, 64, 65, 67, 70)
    assert contexts(position_limit=1, new_tokens=1) == (1,)


@pytest.mark.parametrize(
    ("asked", "planned", "said"),
    [
        ((1025,), {"position_limit": 1031}, "m takes at most 1031 tokens .* 1025 with 8 new tokens is 1032"),
        ((1025,), {"position_limit": 1024, "decodes_apart": True}, "m reads at most 1024 tokens and writes as many"),
        ((512, 258), {"images": 1, "image_tokens": 258}, "m: 1 image takes 258 tokens of each prompt, so a context of"),
        (None, {"position_limit": 5}, "m takes at most 5 tokens .* context 1 with 8 new tokens is 8"),
        (None, {"position_limit": 64, "images": 1, "image_tokens": 64}, "m takes at most 64 tokens"),
    ],
)
def test_a_context_that_the_model_cannot_take_is_refused(
    asked: tuple[int, ...] | None, planned: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        contexts(asked=asked, **planned)
