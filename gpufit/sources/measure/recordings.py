"""One small run on a card kept whole in a file, so that tests on machines without a card can replay it.

A recording holds everything that the pure half of the measurement reads (the allocator's history, its counters, what
was known of addresses, the readings of device and process) and what that half made of it on the day. It is written
by `scripts/gpu-check`, and never by hand.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gpufit.memory.replay import Given, Label
from gpufit.memory.terms import Shape
from gpufit.profile.environment import Environment
from gpufit.profile.peaks import PhasePeak
from gpufit.sources.measure.cuda import CudaRecorder
from gpufit.sources.measure.cuda_history import Block, Counters, History
from gpufit.sources.measure.device import Device, environment
from gpufit.sources.measure.drivers.decoder import Decoder
from gpufit.sources.measure.recording import Recorder
from gpufit.sources.measure.run import PhaseSpan, RunPlan, peaks, recorded_run, timed_run
from gpufit.sources.measure.sites import site_names
from gpufit.sources.measure.storages import resident_model

FORMAT = 1
"""Version of the file."""

_KEPT = ("action", "addr", "size", "stream")
"""What is kept of an entry of the trace; the times say nothing that the order does not."""


class KeptRun(msgspec.Struct, frozen=True, kw_only=True):
    """A recording as it stands in its file. Sizes in bytes, positions in events."""

    format: int = FORMAT
    model: dict[str, Any]
    """The model's config: the weights are random and need not be kept."""
    environment: Environment
    context_tokens: int
    new_tokens: int
    concurrency: int
    before: tuple[Block, ...]
    start: Counters
    marks: tuple[Counters, ...]
    stop: Counters
    max_entries: int
    slack_bytes: int | None
    trace: dict[str, list[Any]]
    """The entries of the trace, a column a key."""
    held: tuple[Given, ...]
    """What the model held throughout."""
    labels: tuple[Label, ...]
    stretches: tuple[tuple[int, str], ...]
    """(moment, site that the run was in from then on)."""
    spans: tuple[PhaseSpan, ...]
    peaks: tuple[PhasePeak, ...]
    """What the measurement made of all this on the day."""

    @property
    def history(self) -> History:
        """The allocator's history, ready to be read again."""
        return History(
            before=self.before,
            start=self.start,
            marks=self.marks,
            stop=self.stop,
            trace=entries(self.trace),
            max_entries=self.max_entries,
            slack_bytes=self.slack_bytes,
        )


def columns(trace: Any) -> dict[str, list[Any]]:
    """The entries of a trace by column; what an entry lacks (an out-of-memory has no address) is None."""
    return {name: [entry.get(name) for entry in trace] for name in _KEPT}


def entries(kept: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """The entries again."""
    return [dict(zip(kept, row, strict=True)) for row in zip(*kept.values(), strict=True)]


def record_run(model: Any, device: Device, shape: Shape) -> KeptRun:
    """Run a model that generates once untracked and once recorded, as a cell is, and keep all of it."""
    info, flags = device.describe()
    model = model.to(device.torch_device).eval()
    recorders: list[CudaRecorder] = []

    def make_recorder() -> Recorder:
        recorder = device.make_recorder()
        assert isinstance(recorder, CudaRecorder)
        recorders.append(recorder)
        return recorder

    plan = RunPlan(
        driver=Decoder(device=device.torch_device, vocabulary=int(model.config.vocab_size), seed=0, logits_kept="last"),
        make_recorder=make_recorder,
        synchronize=device.synchronize,
        entering=lambda phase: None,
        sites=site_names(model),
    )
    timed_run(model, plan, shape)
    info = msgspec.structs.replace(info, context_bytes=device.context_bytes())
    resident = resident_model(model, device.torch_device.type)
    recording, observer, spans = recorded_run(model, plan, shape)
    labels = observer.labels(recording.positions)
    history = recorders[-1].history
    assert history is not None
    return KeptRun(
        model=model.config.to_dict(),
        environment=environment(info, (*flags, *device.notes())),
        context_tokens=shape.context_tokens,
        new_tokens=shape.new_tokens,
        concurrency=shape.concurrency,
        before=history.before,
        start=history.start,
        marks=tuple(history.marks),
        stop=history.stop,
        max_entries=history.max_entries,
        slack_bytes=history.slack_bytes,
        trace=columns(history.trace),
        held=resident.given,
        labels=tuple(labels),
        stretches=tuple(observer.stretches),
        spans=tuple(spans),
        peaks=peaks(recording, labels, observer.stretches, resident.given, spans),
    )


def save_run(kept: KeptRun, path: Path) -> None:
    """Write a recording, compressed; the same run gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(msgspec.json.encode(kept, enc_hook=str), mtime=0))


def load_run(path: Path) -> KeptRun:
    """Read a recording back."""
    return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=KeptRun)
