"""Running a cell once untracked for time and once recorded for memory, whatever drives the model."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpufit.memory.replay import Category, Given, Label, Replay, Window
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import END_OF_PHASE, DeviceReading, Moment, NamedSize, Parts, Phase, PhasePeak
from gpufit.sources.measure.cuda_accounting import account, known_blocks, moment_parts
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
    sites: Mapping[Any, str] = field(default_factory=dict)
    """The place of every module of the model."""


@dataclass(frozen=True)
class PhaseSpan:
    """Where one phase lies in a recording."""

    phase: Phase
    start: int
    """Moment, as the recorder numbered it."""
    end: int
    cached_tokens: int
    readings: tuple[DeviceReading, ...]
    steps: tuple[int, ...] = ()
    """Moments at which its decode steps began."""


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

    def step_began(self) -> None:
        """Only whole phases are timed."""

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
    labels = observer.labels(recording.positions)
    return peaks(recording, labels, observer.stretches, resident.given, spans)


@dataclass
class _Recorded:
    """The watch of a recorded run: labels go to the observer, phases become spans of the recording."""

    plan: RunPlan
    recorder: Recorder
    observer: Observer
    spans: list[PhaseSpan] = field(default_factory=list)
    _start: int = 0
    _steps: list[int] = field(default_factory=list)

    def label(self, thing: Any, category: Category) -> None:
        self.observer.label(thing, category)

    def phase_began(self, phase: Phase) -> None:
        self.plan.entering(phase)
        self.plan.synchronize()
        self.recorder.begin_phase()
        self._start = self.observer.moment()
        self._steps = []

    def step_began(self) -> None:
        self._steps.append(self.observer.step_began())

    def phase_ended(self, phase: Phase, cached_tokens: int) -> None:
        self.plan.synchronize()
        end = self.observer.moment()
        readings = self.recorder.end_phase()
        self.spans.append(PhaseSpan(phase, self._start, end, cached_tokens, readings, tuple(self._steps)))


def recorded_run(model: Any, plan: RunPlan, shape: Shape) -> tuple[Recording, Observer, list[PhaseSpan]]:
    """Run one cell under a recorder: what it recorded, what was known of addresses, and where each phase lies."""
    recorder = plan.make_recorder()
    observer = Observer(recorder, plan.sites)
    watch = _Recorded(plan, recorder, observer)
    with recorded(recorder), observer.watching():
        plan.driver.run(model, shape, watch)
    return recorder.stop(), observer, watch.spans


def peaks(
    recording: Recording,
    labels: Sequence[Label],
    stretches: Sequence[tuple[int, str]],
    held: Sequence[Given],
    spans: Sequence[PhaseSpan],
) -> tuple[PhasePeak, ...]:
    """Replay a recording into the peak of each span.

    `stretches`: (moment, site that the run is in from then on), in order. `held`: what the model holds throughout.
    """
    given, known = known_blocks(recording, held, 0, labels)
    walked = Replay(given, recording.events, known)
    starts = [recording.positions[moment] for moment, _ in stretches]
    ends = [*starts[1:], len(recording.events)]
    windows = [(site, Window(*ends_of)) for (_, site), *ends_of in zip(stretches, starts, ends, strict=True)]
    return tuple(_phase_peak(recording, walked, windows, span) for span in spans)


def _phase_peak(
    recording: Recording, walked: Replay, stretches: list[tuple[str, Window]], span: PhaseSpan
) -> PhasePeak:
    """The peak of one phase, and the highest moment of the phase at every site."""
    phase = Window(recording.positions[span.start], recording.positions[span.end])
    highest: dict[str, int] = {}
    for site, window in stretches:
        inside = Window(max(window.start, phase.start), min(window.end, phase.end))
        if inside.start > inside.end or window.start < window.end <= phase.start:
            continue  # over before the phase began
        position = walked.highest(inside)
        if site not in highest or walked.live_bytes(position) >= walked.live_bytes(highest[site]):
            highest[site] = position
    site = max(highest, key=lambda name: (walked.live_bytes(highest[name]), highest[name]))
    peak = walked.at(highest[site])
    parts, readings = account(recording, peak, span.readings)
    highest[END_OF_PHASE] = phase.end
    return phase_peak(
        span.phase,
        parts,
        readings,
        cached_tokens=span.cached_tokens,
        site=site,
        moments=tuple(
            Moment(site=name, parts=parts_of(moment_parts(walked.at(position), peak, parts)))
            for name, position in highest.items()
        ),
        temporaries=largest_temporaries(recording, peak),
    )


def parts_of(composition: Mapping[str, int]) -> Parts:
    """Bytes by category as the parts of a moment."""
    return Parts(**{f"{category}_bytes": size for category, size in composition.items()})


def phase_peak(
    phase: Phase,
    composition: Mapping[str, int],
    readings: tuple[DeviceReading, ...],
    *,
    cached_tokens: int = 0,
    site: str = "",
    moments: tuple[Moment, ...] = (),
    temporaries: tuple[NamedSize, ...] = (),
) -> PhasePeak:
    """A composition by category as a phase's peak."""
    parts = parts_of(composition)
    return PhasePeak(
        phase=phase,
        parts=parts,
        allocated_bytes=parts.total_bytes,
        evidence=Evidence.MEASURED,
        site=site,
        moments=moments,
        largest_temporaries=temporaries,
        cached_tokens=cached_tokens,
        readings=readings,
    )
