"""The contexts of a run: those asked for, or as many as tell how the model grows. Pure."""

from __future__ import annotations

from collections.abc import Sequence, Set

from gpufit.errors import UsageError
from gpufit.memory.positions import beyond_positions, longest_context, too_short_for_images
from gpufit.memory.terms import Shape
from gpufit.sources.measure.protocol import Planned
from gpufit.sources.measure.request import ProfileRequest

LONGEST_STEP_CONTEXT = 8192
"""A context added for the sake of a step (a sliding window, a chunk) is no longer than this: on a processor it would
take hours. Beyond, contexts have to be asked for."""


def contexts_of(request: ProfileRequest, planned: Planned, new_tokens: int) -> tuple[int, ...]:
    """The contexts asked for, or the default ones that the model can take. Raises UsageError for others."""
    contexts = request.contexts or _default_contexts(request, planned, new_tokens)
    for context in contexts:
        shape = Shape(context, new_tokens, 1)
        wrong = beyond_positions(request.model, planned.position_limit, planned.decodes_apart, shape) or (
            too_short_for_images(request.model, context, planned.images, planned.image_tokens)
        )
        if wrong is not None:
            raise UsageError(wrong)
    return contexts


def _default_contexts(request: ProfileRequest, planned: Planned, new_tokens: int) -> tuple[int, ...]:
    """The default contexts beside the images of each sequence, as far as the model's positions go.

    Where they do not all fit, as many spread over what the model takes.
    """
    longest = longest_context(planned.position_limit, planned.decodes_apart, new_tokens)
    contexts = {planned.image_tokens + one for one in request.default_contexts}
    if longest is not None and max(contexts) > longest:
        room = longest - planned.image_tokens
        contexts = {planned.image_tokens + max(room * eighths // 8, 1) for eighths in (2, 4, 5, 6, 8)}
    shortest = planned.image_tokens + 1
    farthest = max(LONGEST_STEP_CONTEXT, *request.default_contexts)
    return _on_both_sides(contexts, planned.context_steps, shortest, min(longest or farthest, farthest))


def _on_both_sides(contexts: Set[int], steps: Sequence[int], shortest: int, longest: int) -> tuple[int, ...]:
    """The contexts, with one below every step and three that reach it, as far as `shortest` and `longest` let them.

    What begins at a step may grow with tokens or with their square: two contexts tell which, a third tests it.
    """
    found = set(contexts)
    for step in steps:
        below = max(step // 2, shortest)
        if min(found) >= step > below:
            found.add(below)
        for further in (step, step * 3 // 2, step * 2):
            if sum(context >= step for context in found) < 3 and further <= longest:
                found.add(further)
    return tuple(sorted(found))
