"""Experts as `generate()` runs them on a card: a fake run on no device would run them as on a CPU."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

_PROMPT, _STEP = "grouped_mm", "batched_mm"


def decode_as_on_a_card(model: Any) -> None:
    """Let the steps of a model gather the weights of every token's experts, as `_optimize_model_for_decode` does on any
    device but a CPU (https://github.com/huggingface/transformers/blob/main/src/transformers/generation/utils.py)."""
    if hasattr(model, "_optimize_model_for_decode"):
        model._optimize_model_for_decode = functools.partial(_gathering, model)


@contextlib.contextmanager
def _gathering(model: Any) -> Iterator[None]:
    usual = _experts_of(model)
    switches = _PROMPT in usual.values()
    if switches:
        model.set_experts_implementation({part: _STEP if how == _PROMPT else how for part, how in usual.items()})
    try:
        yield
    finally:
        if switches:
            model.set_experts_implementation(usual)


def _experts_of(model: Any) -> dict[str, str | None]:
    """How the experts of each part of a model run; in the first releases of transformers 5, which have no word for the
    parts, of all of it."""
    if hasattr(model, "get_experts_implementation"):
        found: dict[str, str | None] = model.get_experts_implementation()
        return found
    return {"": model.config._experts_implementation}
