"""Whether a card takes what loading asks for at most: 16-bit weights that vLLM quantises once they are there."""

from __future__ import annotations

from gpufit.memory.engines.base import Amount, Outcome, Part
from gpufit.memory.engines.vllm.settings import Device
from gpufit.memory.engines.vllm.versions import Rules
from gpufit.units import format_size

_STREAMED = (0, 14)
"""From here on layers may be quantised one by one as they arrive (https://github.com/vllm-project/vllm/pull/31914,
merged in January 2026), while the docs go on asking for room for the whole model: neither is promised."""


_FP8_BEFOREHAND = "compressed-tensors-fp8"
"""What gpufit calls such a checkpoint in FP8, in `architecture.quantization.registry`."""


def limited_by_loading(outcome: Outcome, parts: tuple[Part, ...], device: Device, rules: Rules) -> Outcome:
    """The outcome of a start, no better than its loading allows: on the whole card, whatever share the start gets."""
    if outcome is Outcome.DOES_NOT_FIT:
        return outcome
    needed, free = _while_loading(parts), device.total_bytes - device.context_bytes
    if needed is None or needed.upper_bytes <= free:
        return outcome
    streamed = rules.version.at_least(*_STREAMED)
    return Outcome.DOES_NOT_FIT if needed.lower_bytes > free and not streamed else Outcome.TOO_CLOSE


def loading_words(parts: tuple[Part, ...], device: Device, rules: Rules) -> str | None:
    """What is in the way of loading, in words; None where nothing is."""
    needed, free = _while_loading(parts), device.total_bytes - device.context_bytes
    if needed is None or needed.upper_bytes <= free:
        return None
    said = "weights are loaded in 16 bit before they are quantised"
    if rules.version.at_least(*_STREAMED):
        said = (
            "by vLLM's docs all weights are loaded in 16 bit before they are quantised (layer by layer is not promised)"
        )
    return (
        f"{said}: {format_size(needed.point_bytes)} (at most {format_size(needed.upper_bytes)}) where "
        f"{format_size(free)} are free; a checkpoint quantised beforehand loads without (ask for one: --quantization "
        f"{_FP8_BEFOREHAND})"
    )


def _while_loading(parts: tuple[Part, ...]) -> Amount | None:
    """The peak of loading with what lies outside torch by then; None where loading takes no more than what stays."""
    peak = next((part.peak for part in parts if part.peak is not None), None)
    if peak is None:
        return None
    return peak + next(part.amount for part in parts if part.name == "non_torch")
