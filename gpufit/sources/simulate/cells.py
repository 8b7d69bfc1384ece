"""One cell on fake tensors in a few steps, however many tokens it generates.

A decode step depends on what the cache holds, however it came to hold it. So the last steps of a long answer are those
after a prompt that is longer by the tokens generated before them; only the first step is unlike, for it still holds
what prefill left. A decoder with an encoder beside it has no such prompt: its steps are extended in a straight line.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from gpufit.memory.replay import Window
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import FIRST_STEP, Phase, PhasePeak
from gpufit.sources.measure.recording import Recording
from gpufit.sources.measure.run import PhaseSpan, RunPlan, peaks, recorded_run
from gpufit.sources.measure.storages import ResidentModel
from gpufit.sources.simulate.extend import Phases, extended_steps, with_moments
from gpufit.sources.simulate.reserved import Windows

FEW_TOKENS = 3
"""New tokens of a run that shows how decoding begins or ends: prefill's, that of the first step, and one further."""
LINE_TOKENS = 5
"""New tokens of a run whose steps are extended: prefill's, the first step, a second one, and two that each follow one
of their own kind, whose difference is what a step adds."""


@dataclasses.dataclass(frozen=True)
class Run:
    """What one run of a cell showed."""

    phases: Phases
    before: Phases | None = None
    """The same as if it had ended one step earlier; None where that was not asked for."""
    recording: Recording | None = None
    windows: Windows = dataclasses.field(default_factory=dict)
    """Where in the recording each phase lies."""


def run_cell(model: Any, plan: RunPlan, shape: Shape, resident: ResidentModel, one_step_less: bool = False) -> Run:
    """Run a model at a shape as it is; `one_step_less`: also tell what it had been with one new token less."""
    recording, observer, spans = recorded_run(model, plan, shape)
    labels = observer.labels(recording.positions)
    phases = _simulated(peaks(recording, labels, observer.stretches, resident.given, spans))
    windows = {one.phase: Window(recording.positions[one.start], recording.positions[one.end]) for one in spans}
    if not one_step_less:
        return Run(phases, recording=recording, windows=windows)
    end = spans[-1].steps[-1]
    earlier = peaks(
        _until(recording, end),
        observer.labels(recording.positions, before=end),
        [one for one in observer.stretches if one[0] < end],
        resident.given,
        [*spans[:-1], _one_step_less(spans[-1], end)],
    )
    return Run(phases, _simulated(earlier), recording, windows)


def beginning(shape: Shape) -> Shape:
    """The shape to run for all but the later steps; the shape itself where it has hardly any."""
    return dataclasses.replace(shape, new_tokens=min(shape.new_tokens, FEW_TOKENS))


def ending(shape: Shape) -> Shape:
    """The shape to run for the later steps: as many tokens in all, nearly all of them in the prompt."""
    earlier = shape.new_tokens - FEW_TOKENS
    return dataclasses.replace(shape, context_tokens=shape.context_tokens + earlier, new_tokens=FEW_TOKENS)


def joined(begun: Phases, ended: Phases) -> Phases:
    """The phases of a cell from runs of its beginning and its ending."""
    (decode,) = (peak for peak in ended if peak.phase is Phase.DECODE)
    first = {one.site: one for peak in begun if peak.phase is Phase.DECODE for one in peak.moments}
    moments = [first[one.site] if one.site.startswith(FIRST_STEP) else one for one in decode.moments]
    return tuple(with_moments(decode, moments) if peak.phase is Phase.DECODE else peak for peak in begun)


def line(shape: Shape) -> Shape:
    """The shape to run where steps are extended."""
    return dataclasses.replace(shape, new_tokens=min(shape.new_tokens, LINE_TOKENS))


def on_the_line(run: Run, shape: Shape) -> Phases:
    """The phases at all new tokens of the shape: every further step adds what the last one did."""
    if run.before is None:
        return run.phases  # all of them were run
    return extended_steps(run.before, run.phases, shape.new_tokens - LINE_TOKENS + 1)


def _until(recording: Recording, moment: int) -> Recording:
    """A recording as if it had been stopped at that moment."""
    end = recording.positions[moment]
    return Recording(recording.events[:end], [min(position, end) for position in recording.positions])


def _one_step_less(span: PhaseSpan, end: int) -> PhaseSpan:
    return dataclasses.replace(span, end=end, cached_tokens=span.cached_tokens - 1)


def _simulated(phases: tuple[PhasePeak, ...]) -> Phases:
    return tuple(msgspec.structs.replace(peak, evidence=Evidence.SIMULATED) for peak in phases)
