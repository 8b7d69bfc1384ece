"""The verify document: a profile's prediction beside a repeat of one of its cells. Every format reads this alone.

JSON keys are these fields' names; sizes are whole bytes, differences are measured less predicted, and what is not known
is null.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit import __version__
from gpufit.advice.differences import Difference
from gpufit.advice.verdict import Verdict
from gpufit.advice.verification import CardCeiling, ContextPair, Ending, PhasePair, Verification
from gpufit.files import readable_name
from gpufit.memory.terms import Shape
from gpufit.profile.base import Record, Size
from gpufit.profile.cells import Measured, OutOfMemory
from gpufit.profile.environment import Engine, Environment
from gpufit.profile.evidence import Evidence, weakest
from gpufit.profile.record import Profile
from gpufit.report.document import Scenario
from gpufit.units import format_size

SCHEMA_VERSION = 1


class Predicted(Record, frozen=True, kw_only=True):
    """The profile."""

    profile: str
    """The file it was read from."""
    evidence: Evidence
    created_at: str
    """ISO 8601, UTC."""
    model: str
    fingerprint: str
    measured_on: str
    """The device it is of."""
    engine: Engine
    ran_this_cell: bool
    """Whether it ran the cell itself; else the cell is one it was not made of."""
    wall_seconds: float | None
    """How long the cell took then; null where it did not run."""


class RanHere(Record, frozen=True, kw_only=True):
    """The repeat."""

    source: str
    """The model, as it was named."""
    environment: Environment
    engine: Engine
    wall_seconds: float | None
    """How long the cell took; null where it did not come to its end."""


class VerifyDocument(Record, frozen=True, kw_only=True):
    """Predicted against measured."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str = __version__
    ok: bool
    """Whether it ran to its end with every phase inside its interval."""
    ending: Ending
    conclusion: str
    """What it comes to, in one line."""
    evidence: Evidence
    """The weakest of the prediction; what stands beside it was measured."""
    expected: Verdict
    """What the prediction said of the memory that the run had."""
    room_bytes: Size | None
    """That memory: the limit put on the run, or what the device had free; null where the model was not loaded."""
    ceiling: CardCeiling | None
    """The card whose memory was the limit; null where none was named."""
    memory_limit_bytes: Size | None
    """The limit put on the run; null where there was none."""
    scenario: Scenario
    predicted: Predicted
    here: RanHere | None
    """Null where the model could not even be loaded."""
    differences: tuple[Difference, ...]
    """What the profile (a) and this run (b) record differently and what bears on memory, in the order to look."""
    phases: tuple[PhasePair, ...]
    context: ContextPair | None
    """Driver context and loaded kernels; null where they were not measured or are not known of this card."""
    out_of_memory: OutOfMemory | None
    """Where memory ran out; null where it did not."""


@dataclass(frozen=True)
class Held:
    """What a document is built from."""

    profile: Profile
    where: str
    """The profile's file."""
    shape: Shape
    source: str
    """The model that was run, as it was named."""
    verification: Verification
    repeat: Profile | None
    """The cell's own profile; None where the model could not even be loaded."""
    out_of_memory: OutOfMemory | None
    differences: tuple[Difference, ...]
    ceiling: CardCeiling | None
    memory_limit_bytes: int | None


def build_verify_document(held: Held) -> VerifyDocument:
    """Put a verification into the document that all formats render."""
    found, profile, shape = held.verification, held.profile, held.shape
    return VerifyDocument(
        ok=found.ending is Ending.INSIDE,
        ending=found.ending,
        conclusion=conclusion(held),
        evidence=weakest(one.evidence for one in found.phases),
        expected=found.expected,
        room_bytes=found.room_bytes,
        ceiling=held.ceiling,
        memory_limit_bytes=held.memory_limit_bytes,
        scenario=Scenario(
            context_tokens=shape.context_tokens,
            new_tokens=shape.new_tokens,
            concurrency=shape.concurrency,
            cached_tokens=shape.cached_tokens,
        ),
        predicted=Predicted(
            profile=readable_name(held.where),
            evidence=profile.evidence,
            created_at=profile.created_at,
            model=profile.model.name,
            fingerprint=profile.model.fingerprint,
            measured_on=profile.environment.device.name,
            engine=profile.engine,
            ran_this_cell=_cell(profile, shape) is not None,
            wall_seconds=_wall_seconds(profile, shape),
        ),
        here=None
        if held.repeat is None
        else RanHere(
            source=readable_name(held.source),
            environment=held.repeat.environment,
            engine=held.repeat.engine,
            wall_seconds=_wall_seconds(held.repeat, shape),
        ),
        differences=held.differences,
        phases=found.phases,
        context=found.context,
        out_of_memory=held.out_of_memory,
    )


def conclusion(held: Held) -> str:
    """What a verification comes to, in one line."""
    found = held.verification
    if held.out_of_memory is not None:
        return _out_of_memory(held.out_of_memory, found)
    off = [_outside(one) for one in found.phases if not one.inside]
    if found.context is not None and not found.context.inside:
        above = found.context.measured_bytes - found.context.predicted_upper_bytes
        off.append(f"the driver context is {format_size(above)} above what was assumed at most")
    return f"not as predicted: {'; '.join(off)}" if off else f"as predicted: {_inside(found)}"


def _inside(found: Verification) -> str:
    peak = max(found.phases, key=lambda one: one.predicted_bytes)
    names = ", ".join(one.phase for one in found.phases)
    return f"{names} inside their intervals; the peak, {peak.phase}, takes {format_size(peak.measured_bytes or 0)}"


def _outside(one: PhasePair) -> str:
    if one.measured_bytes is None:
        return f"{one.phase} was predicted and did not run"
    takes = f"{one.phase} takes {format_size(one.measured_bytes)}"
    if one.measured_bytes > one.predicted_upper_bytes:
        return f"{takes}, {format_size(one.measured_bytes - one.predicted_upper_bytes)} above its interval"
    return f"{takes}, {format_size(one.predicted_lower_bytes - one.measured_bytes)} below its interval"


def _out_of_memory(ended: OutOfMemory, found: Verification) -> str:
    where = "" if ended.phase is None else f" in {ended.phase}"
    within = "" if found.room_bytes is None else f" within {format_size(found.room_bytes)}"
    least = max(one.predicted_lower_bytes for one in found.phases)
    most = max(one.predicted_upper_bytes for one in found.phases)
    said = {
        Verdict.FITS: f"not as predicted: a fit was predicted ({format_size(most)} at most)",
        Verdict.DOES_NOT_FIT: f"as predicted: at least {format_size(least)} were expected",
        Verdict.TOO_CLOSE: f"not decided by the prediction ({format_size(least)} to {format_size(most)})",
        Verdict.UNKNOWN: f"the prediction was {format_size(least)} to {format_size(most)}",
    }
    return f"out of memory{where}{within}, {said[found.expected]}"


def _cell(profile: Profile, shape: Shape) -> Measured | None:
    key = (shape.context_tokens, shape.new_tokens, shape.concurrency)
    outcomes = (cell.outcome for cell in profile.measured_cells if cell.key == key)
    return next((one for one in outcomes if isinstance(one, Measured)), None)


def _wall_seconds(profile: Profile, shape: Shape) -> float | None:
    cell = _cell(profile, shape)
    return None if cell is None else cell.wall_seconds
