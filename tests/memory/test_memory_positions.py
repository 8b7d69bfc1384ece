from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufit.memory.positions import beyond_positions, longest_context, too_short_for_images
from gpufit.memory.terms import Shape

counts = st.integers(1, 10_000)


@pytest.mark.parametrize(
    ("apart", "new_tokens", "longest"),
    [
        (False, 0, 1024),
        (False, 1, 1024),
        (False, 8, 1024 - 7),  # the eighth is never fed back
        (True, 8, 1024),
        (True, 1024, 1024),
        (True, 1025, 0),  # the decoder itself has not so many positions
    ],
)
def test_the_longest_prompt_beside_new_tokens(apart: bool, new_tokens: int, longest: int) -> None:
    assert longest_context(1024, apart, new_tokens) == longest
    assert longest_context(None, apart, new_tokens) is None


@given(counts, counts, counts, st.booleans())
def test_a_prompt_is_too_long_exactly_beyond_the_longest(limit: int, context: int, new: int, apart: bool) -> None:
    longest = longest_context(limit, apart, new)
    assert longest is not None
    assert (beyond_positions("m", limit, apart, Shape(context, new, 1)) is not None) == (context > longest)


def test_the_sentence_says_what_is_too_long() -> None:
    assert beyond_positions("m", 512, False, Shape(510, 8, 1)) == (
        "m takes at most 512 tokens (its own position limit, not memory); context 510 with 8 new tokens is 517: "
        "ask for less"
    )
    assert beyond_positions("m", 512, True, Shape(513, 8, 1)) == (
        "m reads at most 512 tokens and writes as many (its own position limit, not memory); context 513 with 8 new "
        "tokens is more: ask for less"
    )


def test_a_context_needs_a_token_beside_its_images() -> None:
    assert too_short_for_images("m", 259, 1, 258) is None
    assert too_short_for_images("m", 1, 0, 0) is None
    assert too_short_for_images("m", 258, 1, 258) == (
        "m: 1 image takes 258 tokens of each prompt, so a context of 258 is too short: ask for 259 or more"
    )
    assert "2 images take 516 tokens" in (too_short_for_images("m", 128, 2, 516) or "")
