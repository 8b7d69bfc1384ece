"""Running a cell once untracked for time and once recorded for memory, whatever drives the model."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gpufit.memory.replay import Category, Window, replay
from gpufit.memory.terms import Shape
from gpufit.profile.record import DeviceReading, Evidence, Measured, Parts, Phase, PhasePeak
from gpufit.sources.measure.cuda_accounting import account, known_blocks
from gpufit.sources.measure.drivers.base import Driver
from gpufit.sources.measure.observer import Observer
from gpufit.sources.measure.recording import Recorder, Recording, largest_temporaries, recorded
from gpufit.sources.measure.storages import ResidentModel


@dataclass(frozen=True)
class RunPlan:
    """How to run a model's cells; the same for every cell."""

    driver: Driver
    make_recorder: Callable[[], Recorder]
    synchronize: Callable[[], None]
    entering: Callable[[Phase], None]
    """Told each phase as it begins, so that an out-of-memory can say where it struck."""


@dataclass(frozen=True)
class PhaseSpan:
    """Where one phase lies in a recording."""

    phase: Phase
    start: int
    """Moment, as the recorder numbered it."""
    end: int
    cached_tokens: int
    readings: tuple[DeviceReading, ...]


def measure_cell(model: Any, plan: RunPlan, shape: Shape, resident: ResidentModel) -> Measured:
    """Run one cell twice, for time and then for memory. Lets an out-of-memory error through to the caller."""
    first, total = timed_run(model, plan, shape)
    gc.collect()
    return Measured(
        phases=tracked_run(model, plan, shape, resident),
        inputs_completed=shape.concurrency,
        wall_seconds=total,
        time_to_first_token_seconds=first if plan.driver.generates else None,
    )


@dataclass
class _Clock:
    """The watch of a timed run: nothing but the time at which each phase ended, in seconds from the start."""

    plan: RunPlan
    begin: float
    ends: list[float] = field(default_factory=list)

    def label(self, thing: Any, category: Category) -> None:
        """Nobody asks."""

    def phase_began(self, phase: Phase) -> None:
        self.plan.entering(phase)

    def phase_ended(self, phase: Phase, cached_tokens: int) -> None:
        self.plan.synchronize()
        self.ends.append(time.perf_counter() - self.begin)


def timed_run(model: Any, plan: RunPlan, shape: Shape) -> tuple[float, float]:
    """(seconds to the end of prefill or forward, seconds in all), with nothing recorded."""
    plan.synchronize()
    clock = _Clock(plan, time.perf_counter())
    plan.driver.run(model, shape, clock)
    return clock.ends[0], clock.ends[-1]


def tracked_run(model: Any, plan: RunPlan, shape: Shape, resident: ResidentModel) -> tuple[PhasePeak, ...]:
    """The peak of every phase with its parts."""
    recording, observer, spans = recorded_run(model, plan, shape)
    return peaks(recording, observer, resident, spans)


@dataclass
class _Recorded:
    """The watch of a recorded run: labels go to the observer, phases become spans of the recording."""

    plan: RunPlan
    recorder: Recorder
    observer: Observer
    spans: list[PhaseSpan] = field(default_factory=list)
    _start: int = 0

    def label(self, thing: Any, category: Category) -> None:
        self.observer.label(thing, category)

    def phase_began(self, phase: Phase) -> None:
        self.plan.entering(phase)
        self.plan.synchronize()
        self.recorder.begin_phase()
        self._start = self.observer.moment()

    def phase_ended(self, phase: Phase, cached_tokens: int) -> None:
        self.plan.synchronize()
        end = self.observer.moment()
        self.spans.append(PhaseSpan(phase, self._start, end, cached_tokens, self.recorder.end_phase()))


def recorded_run(model: Any, plan: RunPlan, shape: Shape) -> tuple[Recording, Observer, list[PhaseSpan]]:
    """Run one cell under a recorder: what it recorded, what was known of addresses, and where each phase lies."""
    recorder = plan.make_recorder()
    observer = Observer(recorder)
    watch = _Recorded(plan, recorder, observer)
    with recorded(recorder), observer.watching():
        plan.driver.run(model, shape, watch)
    return recorder.stop(), observer, watch.spans


def peaks(
    recording: Recording, observer: Observer, resident: ResidentModel, spans: list[PhaseSpan]
) -> tuple[PhasePeak, ...]:
    """Replay a recording into the peak of each span."""
    windows = [Window(recording.positions[span.start], recording.positions[span.end]) for span in spans]
    given, labels = known_blocks(recording, resident.given, 0, observer.labels(recording.positions))
    found = replay(given, recording.events, labels, windows)
    return tuple(
        msgspec.structs.replace(
            phase_peak(span.phase, *account(recording, peak, span.readings), span.cached_tokens),
            largest_temporaries=largest_temporaries(recording, peak),
        )
        for span, peak in zip(spans, found, strict=True)
    )


def phase_peak(
    phase: Phase, composition: Any, readings: tuple[DeviceReading, ...], cached_tokens: int = 0
) -> PhasePeak:
    """A composition by category as a phase's peak."""
    parts = Parts(**{f"{category}_bytes": size for category, size in composition.items()})
    return PhasePeak(
        phase=phase,
        parts=parts,
        allocated_bytes=parts.total_bytes,
        evidence=Evidence.MEASURED,
        cached_tokens=cached_tokens,
        readings=readings,
    )
