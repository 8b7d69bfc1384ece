"""What recording a run costs: a recorded run beside an untracked one of the same cell, as a ratio and as counts.

    python benchmarks/overhead.py [MODEL] [--context 512] [--new-tokens 32] [--repeats 5]

Runs alternate and the shortest of each kind counts, since the machine may be busy; processor seconds stand beside wall
seconds for the same reason. Starting the recorder, and what is read and replayed once the run has ended, stand by
themselves. Nothing in the test suite depends on a time. The budget is 1.3.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gpufit.memory.terms import Shape
from gpufit.sources.measure.device import open_device
from gpufit.sources.measure.drivers.decoder import Decoder
from gpufit.sources.measure.recording import Recorder, Recording
from gpufit.sources.measure.run import RunPlan, peaks, recorded_run, timed_run
from gpufit.sources.measure.sites import site_names
from gpufit.sources.measure.storages import resident_model

REPOSITORY = Path(__file__).resolve().parent.parent
BUDGET = 1.3


def load(path: Path) -> Any:
    """The model in bfloat16, as `gpufit profile` loads it."""
    import transformers

    where = {"gguf_file": path.name} if path.suffix == ".gguf" else {}
    folder = path.parent if where else path
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, **where).eval()


def seconds(action: Callable[[], object], collect: bool = True) -> tuple[float, float]:
    """(wall, processor) seconds of an action, garbage of earlier ones collected before it."""
    if collect:
        gc.collect()
    wall, processor = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - processor


class TimedRecorder:
    """A recorder that tells how long it took before the run began and after it had ended."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.starting = self.reading = (0.0, 0.0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)

    def start(self) -> None:
        self.starting = seconds(self._recorder.start, collect=False)

    def stop(self) -> Recording:
        stopped: list[Recording] = []
        self.reading = seconds(lambda: stopped.append(self._recorder.stop()), collect=False)
        return stopped[0]

    def of_the_run(self, whole: tuple[float, float]) -> tuple[float, float]:
        """(wall, processor) seconds of the run alone."""
        return whole[0] - self.starting[0] - self.reading[0], whole[1] - self.starting[1] - self.reading[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="what recording a run costs")
    parser.add_argument("model", nargs="?", type=Path, default=REPOSITORY / "models/SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    model = load(given.model)
    device = open_device("cpu")
    recorders: list[TimedRecorder] = []

    def make_recorder() -> Any:
        recorders.append(TimedRecorder(device.make_recorder()))
        return recorders[-1]

    plan = RunPlan(
        driver=Decoder(device=device.torch_device, vocabulary=model.config.vocab_size, seed=0, logits_kept="last"),
        make_recorder=make_recorder,
        synchronize=device.synchronize,
        entering=lambda phase: None,
        sites=site_names(model),
    )
    shape = Shape(given.context, given.new_tokens, 1)
    resident = resident_model(model, "cpu")
    timed_run(model, plan, Shape(16, 2, 1))
    plain, tracked = [], []
    for _ in range(given.repeats):
        plain.append(seconds(lambda: timed_run(model, plan, shape)))
        whole = seconds(lambda: recorded_run(model, plan, shape))
        tracked.append(recorders[-1].of_the_run(whole))
    recording, observer, spans = recorded_run(model, plan, shape)
    replayed = seconds(
        lambda: peaks(recording, observer.labels(recording.positions), observer.stretches, resident.given, spans)
    )
    print(f"prefill {given.context} + {given.new_tokens} new tokens, best of {given.repeats}")
    for name, column in (("wall", 0), ("processor", 1)):
        before, after = (min(run[column] for run in runs) for runs in (plain, tracked))
        ratio = f"{after / before:.2f} (budget {BUDGET})"
        print(f"{name:10} untracked {before:7.3f} s   recorded {after:7.3f} s   ratio {ratio}")
    print(
        f"{len(recording.events):,} memory events, {len(recording.positions):,} moments marked, "
        f"{len({site for _, site in observer.stretches})} sites; "
        f"started in {recorders[-1].starting[1]:.2f} processor s, afterwards read in {recorders[-1].reading[1]:.2f} "
        f"and replayed in {replayed[1]:.2f}"
    )


if __name__ == "__main__":
    main()
