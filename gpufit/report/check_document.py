"""The check document: whether a model runs here from end to end, step by step. Every format reads this alone.

JSON keys are these fields' names; sizes are whole bytes, times seconds, and what is not known is null.
"""

from __future__ import annotations

from gpufit import __version__
from gpufit.files import readable_name
from gpufit.profile.base import Count, Record, Size
from gpufit.profile.checked import Checked, CheckResult, PhaseMemory, Step
from gpufit.profile.environment import Engine, Environment
from gpufit.profile.precision import DtypeShare

SCHEMA_VERSION = 1


class CheckDocument(Record, frozen=True, kw_only=True):
    """The smallest run through the whole chain."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str = __version__
    ok: bool
    """Whether every step ended well."""
    conclusion: str
    """What it comes to, in one line."""
    notes: tuple[str, ...]
    """What a reader should know beside it, in words."""
    model: str
    source: str
    """As the user named it."""
    fingerprint: str
    revision: str | None
    architecture: str | None
    """The class that ran; null where it was not loaded, as for all that was seen afterwards."""
    device_asked: str
    """`auto`, or a device's name."""
    memory_limit_bytes: Size | None
    """The ceiling put on the device's memory; null where there was none."""
    environment: Environment | None
    engine: Engine | None
    resident: tuple[DtypeShare, ...]
    """Dtypes of the weights in memory."""
    context_tokens: Count | None
    """Tokens read."""
    steps: tuple[Step, ...]
    memory: tuple[PhaseMemory, ...]
    """Of every phase that ran, `load` first."""
    result: CheckResult | None
    """What came out of the model; null where it did not come so far."""
    result_file: str | None
    """Where it was written, and is kept; null where nobody named a folder."""


def build_check_document(checked: Checked) -> CheckDocument:
    """Put a check into the document that all formats render."""
    return CheckDocument(
        ok=checked.ok,
        conclusion=_conclusion(checked),
        notes=tuple(_notes(checked)),
        model=checked.model,
        source=readable_name(checked.source),
        fingerprint=checked.fingerprint,
        revision=checked.revision,
        architecture=checked.architecture,
        device_asked=checked.device_asked,
        memory_limit_bytes=checked.memory_limit_bytes,
        environment=checked.environment,
        engine=checked.engine,
        resident=checked.resident,
        context_tokens=checked.context_tokens,
        steps=checked.steps,
        memory=checked.memory,
        result=checked.result,
        result_file=None if checked.result_file is None else readable_name(checked.result_file),
    )


def _conclusion(checked: Checked) -> str:
    failed = checked.failed
    if failed is not None:
        return f"{failed.step.words} failed: {failed.error}"
    where = "" if checked.environment is None else f" on {checked.environment.device.name}"
    seconds = sum(step.seconds or 0.0 for step in checked.steps)
    return f"ok: {checked.model} runs from end to end{where}, in {seconds:.1f} s"


def _notes(checked: Checked) -> list[str]:
    """What is less than clean, and a card that may have been meant and was not used."""
    environment = checked.environment
    if environment is None:
        return []
    notes = list(environment.flags)
    if environment.device.kind == "cpu" and checked.device_asked == "auto":
        notes.append(
            "ran on the processor: torch sees no CUDA or ROCm card here. Where one was expected, this is a failure: "
            "--device cuda makes it one"
        )
    return notes
