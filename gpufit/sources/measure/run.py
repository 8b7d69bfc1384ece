"""Driving a model the way `generate()` does, once untracked for time and once recorded for memory."""

from __future__ import annotations

import gc
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gpufit.memory.replay import Category, Window, replay
from gpufit.memory.terms import Shape
from gpufit.profile.record import DeviceReading, Evidence, Measured, Parts, Phase, PhasePeak
from gpufit.sources.measure.cuda_accounting import account, known_blocks
from gpufit.sources.measure.observer import Observer
from gpufit.sources.measure.recording import Recorder, Recording, recorded
from gpufit.sources.measure.storages import ResidentModel

Labeller = Callable[[Any, Category], None]


@dataclass(frozen=True)
class RunPlan:
    """How to drive a model; the same for every cell."""

    device: torch.device
    generates: bool
    vocabulary: int
    seed: int
    logits_kept: str
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
        time_to_first_token_seconds=first if plan.generates else None,
    )


def timed_run(model: Any, plan: RunPlan, shape: Shape) -> tuple[float, float]:
    """(seconds to the end of prefill or forward, seconds in all), with nothing recorded."""
    plan.synchronize()
    begin = time.perf_counter()
    ends: list[float] = []

    def phase_ended(phase: Phase, cached_tokens: int) -> None:
        plan.synchronize()
        ends.append(time.perf_counter() - begin)

    _drive(model, plan, shape, lambda thing, category: None, plan.entering, phase_ended)
    return ends[0], ends[-1]


def tracked_run(model: Any, plan: RunPlan, shape: Shape, resident: ResidentModel) -> tuple[PhasePeak, ...]:
    """The peak of every phase with its parts."""
    recording, observer, spans = recorded_run(model, plan, shape)
    return peaks(recording, observer, resident, spans)


def recorded_run(model: Any, plan: RunPlan, shape: Shape) -> tuple[Recording, Observer, list[PhaseSpan]]:
    """Run one cell under a recorder: what it recorded, what was known of addresses, and where each phase lies."""
    recorder = plan.make_recorder()
    observer = Observer(recorder)
    spans: list[PhaseSpan] = []
    starts: dict[Phase, int] = {}

    def phase_began(phase: Phase) -> None:
        plan.entering(phase)
        plan.synchronize()
        recorder.begin_phase()
        starts[phase] = observer.moment()

    def phase_ended(phase: Phase, cached_tokens: int) -> None:
        plan.synchronize()
        spans.append(PhaseSpan(phase, starts[phase], observer.moment(), cached_tokens, recorder.end_phase()))

    with recorded(recorder), observer.watching():
        _drive(model, plan, shape, observer.label, phase_began, phase_ended)
    return recorder.stop(), observer, spans


def peaks(
    recording: Recording, observer: Observer, resident: ResidentModel, spans: list[PhaseSpan]
) -> tuple[PhasePeak, ...]:
    """Replay a recording into the peak of each span."""
    windows = [Window(recording.positions[span.start], recording.positions[span.end]) for span in spans]
    given, labels = known_blocks(recording, resident.given, 0, observer.labels(recording.positions))
    found = replay(given, recording.events, labels, windows)
    return tuple(
        phase_peak(span.phase, *account(recording, peak, span.readings), span.cached_tokens)
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


def _drive(
    model: Any,
    plan: RunPlan,
    shape: Shape,
    label: Labeller,
    phase_began: Callable[[Phase], None],
    phase_ended: Callable[[Phase, int], None],
) -> None:
    generator = torch.Generator().manual_seed(plan.seed)
    size = (shape.concurrency, shape.context_tokens)
    with torch.no_grad():
        tokens = torch.randint(plan.vocabulary, size, generator=generator).to(plan.device)
        mask = torch.ones_like(tokens)
        label([tokens, mask], "inputs")
        if not plan.generates:
            phase_began(Phase.FORWARD)
            kept = model(input_ids=tokens, attention_mask=mask)
            label(dict(kept), "outputs")
            phase_ended(Phase.FORWARD, 0)
            return
        _generate(model, plan, shape, (tokens, mask), label, phase_began, phase_ended)


def _generate(
    model: Any,
    plan: RunPlan,
    shape: Shape,
    prompt: tuple[torch.Tensor, torch.Tensor],
    label: Labeller,
    phase_began: Callable[[Phase], None],
    phase_ended: Callable[[Phase, int], None],
) -> None:
    """Greedy decoding by hand: prefill, then one token a step, the mask growing as in generate()."""
    tokens, mask = prompt
    options = _forward_options(model, plan.logits_kept)
    cache_name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    phase_began(Phase.PREFILL)
    output = model(input_ids=tokens, attention_mask=mask, use_cache=True, **options)
    cache = cache_of(output)
    label(output.logits, "outputs")
    label(cache, "kv_cache")
    generated = [_next_token(output.logits)]
    label(generated, "outputs")
    phase_ended(Phase.PREFILL, shape.context_tokens)
    del output
    if shape.new_tokens < 2:
        return
    phase_began(Phase.DECODE)
    for _ in range(shape.new_tokens - 1):
        mask = torch.cat([mask, mask.new_ones((mask.shape[0], 1))], dim=-1)
        label([mask, generated[-1]], "inputs")
        output = model(input_ids=generated[-1], attention_mask=mask, use_cache=True, **{cache_name: cache}, **options)
        cache = cache_of(output)
        label(output.logits, "outputs")
        label(cache, "kv_cache")
        generated.append(_next_token(output.logits))
        label(generated[-1], "outputs")
        del output
    phase_ended(Phase.DECODE, shape.cached_tokens)


def _next_token(logits: torch.Tensor) -> torch.Tensor:
    """The likeliest next token of each sequence, shape (sequences, 1)."""
    return logits[:, -1, :].argmax(dim=-1, keepdim=True)


def _forward_options(model: Any, logits_kept: str) -> dict[str, Any]:
    """`logits_to_keep=1` where the model takes it and only the last position's logits are wanted."""
    takes = "logits_to_keep" in inspect.signature(model.forward).parameters
    return {"logits_to_keep": 1} if takes and logits_kept == "last" else {}


def cache_of(output: Any) -> Any:
    """The cache in a model's output, under whatever name its family gives it."""
    for name in ("cache", "past_key_values", "cache_params", "state"):
        cache = getattr(output, name, None)
        if cache is not None:
            return cache
    return None
