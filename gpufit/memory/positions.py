"""How long a prompt a model's own positions allow: another question than how much memory it takes. Pure."""

from __future__ import annotations

from gpufit.memory.terms import Shape


def longest_context(position_limit: int | None, decodes_apart: bool, new_tokens: int) -> int | None:
    """The longest prompt, in tokens, beside which so many new tokens have positions; None without a limit.

    In one sequence the last new token is never fed back, so it needs no position. An encoder-decoder counts both ends
    apart, and its decoder begins with a token of its own. 0 or less: not even the new tokens have room.
    """
    if position_limit is None:
        return None
    if decodes_apart:
        return position_limit if new_tokens <= position_limit else 0
    return position_limit - max(new_tokens - 1, 0)


def beyond_positions(name: str, position_limit: int | None, decodes_apart: bool, shape: Shape) -> str | None:
    """Why a shape is longer than the model's positions, in one sentence; None when it is not."""
    longest = longest_context(position_limit, decodes_apart, shape.new_tokens)
    if longest is None or shape.context_tokens <= longest:
        return None
    asked = f"context {shape.context_tokens} with {shape.new_tokens} new tokens is"
    if decodes_apart:
        return (
            f"{name} reads at most {position_limit} tokens and writes as many (its own position limit, not memory); "
            f"{asked} more: ask for less"
        )
    return (
        f"{name} takes at most {position_limit} tokens (its own position limit, not memory); {asked} "
        f"{shape.cached_tokens}: ask for less"
    )


def too_short_for_images(name: str, context_tokens: int, images: int, image_tokens: int) -> str | None:
    """Why a prompt cannot hold its images and a token of text, in one sentence; None when it can."""
    if context_tokens > image_tokens:
        return None
    what = "1 image takes" if images == 1 else f"{images} images take"
    return (
        f"{name}: {what} {image_tokens} tokens of each prompt, so a context of {context_tokens} is too short: ask for "
        f"{image_tokens + 1} or more"
    )
