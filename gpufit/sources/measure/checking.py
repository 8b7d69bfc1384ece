"""The smallest run through the whole chain: load, preprocess, compute, write a result, read it back.

The model runs in the worker of a measurement, one cell of a few tokens, on a text in place of random ids.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gpufit.errors import GpufitError, MeasurementError, UnreadableInputError, UsageError
from gpufit.files import check_writable, write_atomically
from gpufit.profile.cells import Cell, Failed, Measured, OutOfMemory
from gpufit.profile.checked import Checked, CheckResult, PhaseMemory, Step, StepName, StepState
from gpufit.profile.peaks import PhasePeak
from gpufit.sources.measure.installed import check_installed
from gpufit.sources.measure.protocol import CellKey, Job, Loaded, Made, Planned, Prepared, Prompt
from gpufit.sources.measure.quantization import check_quantization
from gpufit.sources.measure.request import ProfileRequest, job_of
from gpufit.sources.measure.supervisor import Sweep
from gpufit.sources.model_files.find import find_model
from gpufit.sources.model_files.record import ModelFiles
from gpufit.units import format_size

TEXT = "Which card holds this model, how many of them does the work take, and for how long are they rented?"
"""What the model reads: twenty-odd tokens in most vocabularies, of which the first are taken."""

CONTEXT_TOKENS = 16
"""Tokens of the prompt, beside those of images."""

NEW_TOKENS = 3
"""Prefill's own and two decode steps."""

RESULT_FILE = "gpufit-check.json"


@dataclass(frozen=True)
class CheckRequest:
    """What to check and how; the settings are those of a measurement."""

    settings: ProfileRequest
    """Of these count what is said of loading and of the device."""
    folder: Path | None = None
    """Where the result goes and stays; None: a temporary folder, removed at the end."""


@dataclass(frozen=True)
class CheckListener:
    """Who is told how it goes."""

    progress: Callable[[str], None] = lambda text: None
    """What happens now, in words."""
    ended: Callable[[Step], None] = lambda step: None
    """A step has ended."""
    folder: Callable[[Path], None] = lambda folder: None
    """The folder of the result was missing and has been made."""


def check(request: CheckRequest, listener: CheckListener) -> Checked:
    """Take every step, or those up to the one that fails.

    Raises UsageError for a request that cannot be met, UnreadableInputError for a model that cannot be read or a folder
    that cannot be written.
    """
    check_installed()
    files = find_model(request.settings.model, request.settings.revision)
    check_quantization(request.settings.quantization, files)
    if request.folder is not None:
        made = check_writable(request.folder / RESULT_FILE)
        if made is not None:
            listener.folder(made)
    run = _Check(request, files, listener)
    run.take_steps()
    return run.checked()


@dataclass
class _Check:
    """One check being carried out."""

    request: CheckRequest
    files: ModelFiles
    listener: CheckListener
    steps: list[Step] = field(default_factory=list)
    loaded: Loaded | None = None
    cell: Cell | None = None
    key: CellKey | None = None
    made: Made | None = None
    result: CheckResult | None = None
    _began: float = field(default_factory=time.monotonic)

    def take_steps(self) -> None:
        """One after the other, until one fails."""
        try:
            self._run_model()
            self._write()
        except (UsageError, UnreadableInputError):
            raise
        except MeasurementError as error:
            self._end(StepState.FAILED, error=" ".join(str(error).split()))

    def _run_model(self) -> None:
        Sweep(
            job=self._job(),
            cell_seconds=self.request.settings.cell_seconds,
            on_planned=self._planned,
            next_cells=self._next_cells,
            on_loaded=self._loaded,
            on_cell=self._cell_ended,
            on_progress=self.listener.progress,
            on_sample=self._sampled,
        ).run()

    def _job(self) -> Job:
        job = job_of(self.request.settings, self.files)
        prompt = Prompt(text=TEXT, tokenizer_path=job.model_path, gguf_file=job.gguf_file)
        return msgspec.structs.replace(job, prompt=prompt)

    def _planned(self, planned: Planned) -> None:
        self.key = CellKey(
            context_tokens=planned.image_tokens + CONTEXT_TOKENS,
            new_tokens=NEW_TOKENS if planned.generates else 0,
            concurrency=1,
        )
        self._end(StepState.OK, f"torch and transformers run, the config names {planned.architecture}")

    def _next_cells(self, done: Sequence[Cell]) -> tuple[CellKey, ...]:
        return () if self.key is None else (self.key,)

    def _loaded(self, loaded: Loaded) -> None:
        self.loaded = loaded
        weights = ", ".join(f"{format_size(one.size_bytes)} {one.dtype}" for one in loaded.precision.resident)
        self._end(StepState.OK, f"weights {weights} on {loaded.environment.device.name}")

    def _sampled(self, message: Prepared | Made) -> None:
        if isinstance(message, Prepared):
            self._end(StepState.OK, message.how)
        else:
            self.made = message

    def _cell_ended(self, cell: Cell) -> None:
        self.cell = cell
        match cell.outcome:
            case Measured() if self.made is not None and self.made.finite:
                self._computed(self.made)
            case Measured():
                raise MeasurementError("the model's outputs are not finite numbers (NaN or infinite)")
            case OutOfMemory(phase=phase, message=message, limit_bytes=limit):
                where = "" if phase is None else f" in {phase}"
                within = "" if limit is None else f" within {format_size(limit)}"
                raise MeasurementError(f"memory ran out{where}{within}: {message}")
            case Failed(error=error):
                raise MeasurementError(error)

    def _computed(self, made: Made) -> None:
        self.result = CheckResult(
            model=self.files.name,
            fingerprint=self.files.fingerprint,
            text=TEXT,
            token_ids=made.token_ids,
            generated=made.text,
            output_shape=made.output_shape,
            output_dtype=made.output_dtype,
            finite=made.finite,
        )
        self._end(StepState.OK, f"{made_words(made)}; all outputs finite")

    def _write(self) -> None:
        """Write what came out, and read it back. Raises MeasurementError where one of the two does not work."""
        assert self.result is not None  # the model ran to its end
        with self._folder() as folder:
            path = folder / RESULT_FILE
            content = msgspec.json.format(msgspec.json.encode(self.result), indent=1) + b"\n"
            with _as_measurement():
                write_atomically(content, path)
            self._end(StepState.OK, f"{len(content)} bytes to {path if self.request.folder else 'a temporary folder'}")
            try:
                same = msgspec.json.decode(path.read_bytes(), type=CheckResult) == self.result
            except (OSError, msgspec.DecodeError) as error:
                raise MeasurementError(f"{path}: cannot be read back: {error}") from error
            if not same:
                raise MeasurementError(f"{path}: holds something else than was written")
            self._end(StepState.OK, "the same")

    @contextlib.contextmanager
    def _folder(self) -> Iterator[Path]:
        if self.request.folder is not None:
            yield self.request.folder
            return
        with tempfile.TemporaryDirectory(prefix="gpufit-check-") as folder:
            yield Path(folder)

    def _end(self, state: StepState, seen: str = "", error: str | None = None) -> None:
        """The step that is under way has ended; the next one begins now."""
        now = time.monotonic()
        step = Step(
            step=list(StepName)[len(self.steps)], state=state, seconds=now - self._began, seen=seen, error=error
        )
        self._began = now
        self.steps.append(step)
        self.listener.ended(step)

    def checked(self) -> Checked:
        """All that was found out."""
        files, loaded, kept = self.files, self.loaded, self.request.folder
        written = any(step.step is StepName.WRITE and step.state is StepState.OK for step in self.steps)
        phases = self.cell.outcome.phases if self.cell and isinstance(self.cell.outcome, Measured) else ()
        peaks = () if loaded is None else (loaded.load, *phases)
        return Checked(
            model=files.name,
            source=self.request.settings.model,
            fingerprint=files.fingerprint,
            revision=files.revision,
            device_asked=self.request.settings.device,
            memory_limit_bytes=self.request.settings.memory_limit_bytes,
            steps=(*self.steps, *map(_not_reached, list(StepName)[len(self.steps) :])),
            architecture=None if loaded is None else loaded.model.architecture,
            environment=None if loaded is None else loaded.environment,
            engine=None if loaded is None else loaded.engine,
            resident=() if loaded is None else loaded.precision.resident,
            memory=tuple(map(phase_memory, peaks)),
            context_tokens=None if loaded is None or self.key is None else self.key.context_tokens,
            result=self.result,
            result_file=str(kept / RESULT_FILE) if kept is not None and written else None,
        )


def _not_reached(name: StepName) -> Step:
    return Step(step=name, state=StepState.NOT_REACHED, seconds=None, seen="", error=None)


@contextlib.contextmanager
def _as_measurement() -> Iterator[None]:
    """The file that could be written before the run can no longer be: that is the step's failure."""
    try:
        yield
    except GpufitError as error:
        raise MeasurementError(str(error)) from error


def phase_memory(peak: PhasePeak) -> PhaseMemory:
    """What a phase's peak and the counters read in it say."""
    read = {one.quantity: one.size_bytes for one in peak.readings}
    return PhaseMemory(
        phase=peak.phase,
        allocated_bytes=peak.allocated_bytes,
        reserved_bytes=read.get("reserved"),
        device_used_bytes=read.get("device_used"),
    )


def made_words(made: Made) -> str:
    """`3 tokens made, " how many of"`; `an output of 1 x 384 float32`."""
    if not made.token_ids:
        return f"an output of {' x '.join(map(str, made.output_shape))} {made.output_dtype}"
    return f"{len(made.token_ids)} tokens made" + ("" if made.text is None else f', "{" ".join(made.text.split())}"')
