"""What the smallest run through the whole chain came to, step by step: frozen records, sizes in bytes."""

from __future__ import annotations

import enum

from gpufit.profile.base import Count, Record, Size
from gpufit.profile.environment import Engine, Environment
from gpufit.profile.peaks import Phase
from gpufit.profile.precision import DtypeShare


class StepName(enum.StrEnum):
    """The steps, in the order they are taken."""

    START = "start"
    """A worker process starts, imports torch and transformers, opens the device and reads the model's config."""
    LOAD = "load"
    """The weights come into the device's memory."""
    PREPROCESS = "preprocess"
    """A text becomes token ids."""
    COMPUTE = "compute"
    """Prefill and two decode steps, or one forward of a model that does not generate."""
    WRITE = "write"
    """What came out goes to a file."""
    READ_BACK = "read_back"
    """The file is read again, and holds the same."""

    @property
    def words(self) -> str:
        """As people read it."""
        return self.replace("_", " ")


class StepState(enum.StrEnum):
    """How a step ended."""

    OK = "ok"
    FAILED = "failed"
    NOT_REACHED = "not_reached"
    """A step before it failed."""


class Step(Record, frozen=True, kw_only=True):
    """One step."""

    step: StepName
    state: StepState
    seconds: float | None
    """Wall time until it ended; null where it was not reached."""
    seen: str
    """What was seen, in words; empty where it did not end well."""
    error: str | None
    """Why it failed, in one line."""


class PhaseMemory(Record, frozen=True, kw_only=True):
    """What torch held at most in one phase."""

    phase: Phase
    allocated_bytes: Size
    reserved_bytes: Size | None
    """By the allocator's counter; null on a CPU, which keeps none."""
    device_used_bytes: Size | None
    """By the driver, of all processes, as the phase ended; null where it was not read."""


class CheckResult(Record, frozen=True, kw_only=True):
    """What the model made of the text: the file that is written and read back."""

    model: str
    fingerprint: str
    text: str
    """What was to be read; no more than the first tokens of it are."""
    token_ids: tuple[int, ...]
    """What was generated, the first sequence's; empty for a model that does not generate."""
    generated: str | None
    """The same as text; null without a tokenizer."""
    output_shape: tuple[int, ...]
    """Of the outputs that were kept last: logits, hidden states."""
    output_dtype: str
    finite: bool
    """Whether every number among them is finite."""


class Checked(Record, frozen=True, kw_only=True):
    """Everything that a check found out, as far as it came."""

    model: str
    source: str
    """As the user named it."""
    fingerprint: str
    revision: str | None
    device_asked: str
    """`auto`, or a device's name."""
    memory_limit_bytes: Size | None
    """The ceiling put on the device's memory; null where there was none."""
    steps: tuple[Step, ...]
    architecture: str | None
    """The class that ran; null where it was not loaded, as for all that follows."""
    environment: Environment | None
    engine: Engine | None
    resident: tuple[DtypeShare, ...]
    """Dtypes of the weights in memory."""
    memory: tuple[PhaseMemory, ...]
    """Of every phase that ran, `load` first."""
    context_tokens: Count | None
    """Tokens read."""
    result: CheckResult | None
    """What came out of the model; null where it did not come so far."""
    result_file: str | None
    """Where it was written, and is kept; null where nobody named a folder."""

    @property
    def ok(self) -> bool:
        """Whether every step ended well."""
        return all(step.state is StepState.OK for step in self.steps)

    @property
    def failed(self) -> Step | None:
        """The step that failed; None where none did."""
        return next((step for step in self.steps if step.state is StepState.FAILED), None)
