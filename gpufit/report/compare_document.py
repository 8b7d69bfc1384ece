"""The compare document: two profiles at one shape. Every format reads this alone.

JSON keys are these fields' names; sizes are whole bytes, differences are B less A, and what is not known is null.
"""

from __future__ import annotations

from gpufit import __version__
from gpufit.advice.comparison import Comparison, PhaseDifference
from gpufit.advice.differences import Difference
from gpufit.files import readable_name
from gpufit.memory.terms import Shape
from gpufit.profile.base import Record
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.evidence import Evidence, weakest
from gpufit.profile.precision import Precision
from gpufit.profile.record import Profile
from gpufit.report.conclusion import conclusion
from gpufit.report.document import Scenario

SCHEMA_VERSION = 1


class Compared(Record, frozen=True, kw_only=True):
    """One of the two."""

    profile: str
    """The file it was read from, or the model that was estimated."""
    evidence: Evidence
    created_at: str
    """ISO 8601, UTC."""
    measured_on: str
    model: ModelInfo
    engine: Engine
    precision: Precision


class CompareDocument(Record, frozen=True, kw_only=True):
    """What differs between two profiles, and what accounts for it."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str = __version__
    evidence: Evidence
    """The weakest in the document."""
    same: bool
    """Whether both hold the same in all but the time they were made."""
    scenario: Scenario
    """The shape both were asked about."""
    a: Compared
    b: Compared
    conclusion: tuple[str, ...]
    """What it comes to, in words."""
    differences: tuple[Difference, ...]
    """What the two record differently, in the order to look: the model first, the device last."""
    phases: tuple[PhaseDifference, ...]


def build_compare_document(
    a: Profile, b: Profile, where: tuple[str, str], shape: Shape, comparison: Comparison
) -> CompareDocument:
    """Put a comparison into the document that all formats render."""
    sides = [side for phase in comparison.phases for side in (phase.a, phase.b) if side is not None]
    return CompareDocument(
        evidence=weakest(side.evidence for side in sides),
        same=comparison.same,
        scenario=Scenario(
            context_tokens=shape.context_tokens,
            new_tokens=shape.new_tokens,
            concurrency=shape.concurrency,
            cached_tokens=shape.cached_tokens,
        ),
        a=_compared(a, where[0]),
        b=_compared(b, where[1]),
        conclusion=tuple(conclusion(comparison)),
        differences=comparison.differences,
        phases=comparison.phases,
    )


def _compared(profile: Profile, where: str) -> Compared:
    return Compared(
        profile=readable_name(where),
        evidence=profile.evidence,
        created_at=profile.created_at,
        measured_on=profile.environment.device.name,
        model=profile.model,
        engine=profile.engine,
        precision=profile.precision,
    )
