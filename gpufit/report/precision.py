"""The precision document: the four columns as found and as switched, and what each switch would make of the peak.

JSON keys are these fields' names; sizes are whole bytes, and what is not known is null.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from gpufit import __version__
from gpufit.memory.choices import Choice, Position, choices
from gpufit.memory.held import TITLES, Held
from gpufit.memory.otherwise import Otherwise, predictor_of
from gpufit.memory.predict import Predictor
from gpufit.memory.terms import Shape
from gpufit.profile.base import Record
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.evidence import Evidence, weakest
from gpufit.profile.peaks import Phase
from gpufit.profile.precision import Precision
from gpufit.profile.record import Profile
from gpufit.report.document import FitDocument, Scenario

SCHEMA_VERSION = 1


class SwitchChoice(Record, frozen=True, kw_only=True):
    """One position of one switch, the others as they are set."""

    switch: str
    """`weights`, `compute` or `kv_cache`."""
    value: str
    chosen: bool
    why_not: str
    """Why it says nothing of this profile; empty where it can be chosen."""
    phase: Phase | None = None
    """The phase with the highest peak; null where it cannot be chosen, as are its sizes."""
    allocated_bytes: int | None = None
    """At that peak."""
    allocated_lower_bytes: int | None = None
    allocated_upper_bytes: int | None = None
    evidence: Evidence | None = None

    @property
    def title(self) -> str:
        """The switch as it reads on screen."""
        return TITLES[self.switch]


class PrecisionDocument(Record, frozen=True, kw_only=True):
    """In which dtypes a model is stored, held and computed, and what others would come to."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str = __version__
    evidence: Evidence
    """The weakest in the document."""
    profile: str
    """The file it was read from."""
    measured_on: str
    model: ModelInfo
    engine: Engine
    holds_for: str
    scenario: Scenario
    as_profiled: Precision
    profile_evidence: Evidence
    """Of what was found in the profile."""
    now: Precision
    """With the switches as they are set."""
    choices: tuple[SwitchChoice, ...]
    rules: tuple[str, ...]
    """How what is switched was worked out, a sentence each."""
    notes: tuple[str, ...]

    def of(self, switch: str) -> tuple[SwitchChoice, ...]:
        """The positions of one switch."""
        return tuple(one for one in self.choices if one.switch == switch)


def build_precision_document(profile: Profile, document: FitDocument, held: Held) -> PrecisionDocument:
    """The precision behind an answer, which was given for the profile held so."""
    scenario = document.scenario
    shape = Shape(scenario.context_tokens, scenario.new_tokens, scenario.concurrency)
    found = choices(profile)
    every = (
        *(_position(profile, shape, "weights", one, replace(held, weights=one.value), held) for one in found.weights),
        *(_position(profile, shape, "compute", one, replace(held, compute=one.value), held) for one in found.compute),
        *(
            _position(profile, shape, "kv_cache", one, replace(held, kv_cache=one.value), held)
            for one in found.kv_cache
        ),
    )
    return PrecisionDocument(
        evidence=weakest([document.evidence, *(one.evidence for one in every if one.evidence is not None)]),
        profile=document.profile,
        measured_on=document.measured_on,
        model=document.model,
        engine=document.engine,
        holds_for=document.holds_for,
        scenario=scenario,
        as_profiled=profile.precision,
        profile_evidence=profile.evidence,
        now=document.precision,
        choices=every,
        rules=() if held.as_profiled else Otherwise(Predictor(profile), held).words,
        notes=document.notes,
    )


def _position(
    profile: Profile, shape: Shape, switch: str, one: Choice[Position], held: Held, chosen: Held
) -> SwitchChoice:
    """A position, with what the profile comes to where it is `held` so; `chosen`: as the switches are set."""
    title = SwitchChoice(switch=switch, value=str(one.value), chosen=held == chosen, why_not=one.why_not)
    if one.why_not:
        return title
    predicted = predictor_of(profile, held).at(shape)
    peak = max(predicted, key=lambda phase: phase.allocated_bytes)
    return msgspec.structs.replace(
        title,
        phase=peak.phase,
        allocated_bytes=peak.allocated_bytes,
        allocated_lower_bytes=max(phase.lower_bytes for phase in predicted),
        allocated_upper_bytes=max(phase.upper_bytes for phase in predicted),
        evidence=peak.evidence,
    )
