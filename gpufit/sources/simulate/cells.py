"""One cell on fake tensors: the recorded run of a few layers and a few steps, cut at the steps that are wanted."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from gpufit.memory.replay import Label
from gpufit.memory.terms import Shape
from gpufit.profile.record import FIRST_STEP, Evidence, Phase, PhasePeak
from gpufit.sources.measure.recording import Recording
from gpufit.sources.measure.run import PhaseSpan, RunPlan, peaks, recorded_run
from gpufit.sources.measure.storages import ResidentModel
from gpufit.sources.simulate.extend import Further, Phases, extend, replaced

FEWEST_TOKENS = 5
"""New tokens of a run that stands for any more: prefill's, the first step, which is unlike the others, a second one, and
two further ones that each follow one of their own kind, whose difference is what a step adds."""


@dataclasses.dataclass(frozen=True)
class Run:
    """What one run of a cell showed."""

    phases: Phases
    before: Phases | None = None
    """The same as if it had ended one step earlier; None where that was not asked for."""


def run_cell(model: Any, plan: RunPlan, shape: Shape, resident: ResidentModel) -> Run:
    """Run a model at a shape, with no more than FEWEST_TOKENS new tokens."""
    short = dataclasses.replace(shape, new_tokens=min(shape.new_tokens, FEWEST_TOKENS))
    recording, observer, spans = recorded_run(model, plan, short)
    labels = observer.labels(recording.positions)
    phases = peaks(recording, labels, observer.stretches, resident.given, spans)
    if short == shape or not spans[-1].steps:
        return Run(_simulated(phases))
    end = spans[-1].steps[-1]
    cut, known = _until(recording, labels, end)
    stretches = [one for one in observer.stretches if one[0] < end]
    earlier = peaks(cut, known, stretches, resident.given, [*spans[:-1], _ended(spans[-1], end)])
    return Run(_simulated(phases), _simulated(earlier))


def all_steps(run: Run, shape: Shape) -> Phases:
    """The phases at all new tokens of the shape: every later step adds what the last one did."""
    if run.before is None:
        return run.phases  # all of them were run
    steps = shape.new_tokens - FEWEST_TOKENS + 1
    later = extend(run.before, [Further(run.phases, steps)], only=is_later_step)
    return with_later_steps(replaced(later, run.phases, is_first_step), steps)


def crossing_steps(shape: Shape, context_steps: tuple[int, ...]) -> Shape | None:
    """Where a sequence grows past a sliding window or a chunk while it decodes: the shape of as many tokens in all,
    most of them in the prompt, whose later steps are the same. None where each step is like the last.

    A later step depends on what the cache holds, however it came to hold it.
    """
    if shape.new_tokens <= FEWEST_TOKENS:
        return None
    if not any(shape.context_tokens <= step + 1 and shape.cached_tokens >= step - 1 for step in context_steps):
        return None
    longer = shape.context_tokens + shape.new_tokens - FEWEST_TOKENS
    return dataclasses.replace(shape, context_tokens=longer, new_tokens=FEWEST_TOKENS)


def is_later_step(phase: Phase, site: str) -> bool:
    """A moment of decoding after its first step, or its end."""
    return phase is Phase.DECODE and not site.startswith(FIRST_STEP)


def is_first_step(phase: Phase, site: str) -> bool:
    """A moment of the first decode step."""
    return phase is Phase.DECODE and site.startswith(FIRST_STEP)


def _until(recording: Recording, labels: list[Label], moment: int) -> tuple[Recording, list[Label]]:
    """A recording as if it had been stopped at that moment, with what was known by then."""
    end = recording.positions[moment]
    cut = Recording(
        events=recording.events[:end],
        positions=[min(position, end) for position in recording.positions],
        base_bytes=recording.base_bytes,
    )
    return cut, [one for one in labels if one.position <= end]


def _ended(span: PhaseSpan, end: int) -> PhaseSpan:
    return dataclasses.replace(span, end=end)


def _simulated(phases: tuple[PhasePeak, ...]) -> Phases:
    return tuple(msgspec.structs.replace(peak, evidence=Evidence.SIMULATED) for peak in phases)


def with_later_steps(phases: Phases, steps: int) -> Phases:
    """The phases with so many tokens more in the cache when decoding ends."""
    return tuple(
        msgspec.structs.replace(peak, cached_tokens=peak.cached_tokens + steps) if peak.phase is Phase.DECODE else peak
        for peak in phases
    )
