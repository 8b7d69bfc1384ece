"""The growth document: how a cache grows with a sequence, and what one more of either costs at a scenario.

JSON keys are these fields' names; sizes are whole bytes, and what is not known is null.
"""

from __future__ import annotations

from gpufit import __version__
from gpufit.errors import UsageError
from gpufit.memory.adapt import Predicts
from gpufit.memory.growth import CacheGrowth
from gpufit.memory.positions import longest_context
from gpufit.memory.terms import Shape
from gpufit.profile.base import Record
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.evidence import Evidence, weakest
from gpufit.profile.record import Profile
from gpufit.report.document import FitDocument, Scenario

SCHEMA_VERSION = 1

POINTS = 64
"""Stretches that a curve is drawn in."""
MORE_TOKENS = 1024
"""What a longer context is priced by, tokens a sequence."""


class GrowthPoint(Record, frozen=True, kw_only=True):
    """What one sequence holds at a length."""

    tokens: int
    cache_bytes: int
    evidence: Evidence
    """That of the growth; `scaled` beyond the longest sequence that was run."""


class GrowthStep(Record, frozen=True, kw_only=True):
    """What more of something costs at the scenario: the difference of the highest peaks, all phases considered."""

    what: str
    """`1 more sequence`, `1k more tokens a sequence`."""
    allocated_bytes: int
    kv_cache_bytes: int
    """Of it, in the KV cache; the rest is what the step takes in activations, temporaries and the like."""
    evidence: Evidence


class GrowthDocument(Record, frozen=True, kw_only=True):
    """How memory grows with use."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str = __version__
    profile: str
    """The file it was read from."""
    measured_on: str
    model: ModelInfo
    engine: Engine
    holds_for: str
    evidence: Evidence
    """The weakest in the document."""
    scenario: Scenario
    growth: CacheGrowth | None
    why_none: str
    """Why no growth is known, in words; empty where it is."""
    sequence_bytes: int | None
    """What the cache of one sequence holds at the end of the scenario."""
    all_sequences_bytes: int | None
    sequence_evidence: Evidence | None
    """Of both; null where they are."""
    points: tuple[GrowthPoint, ...]
    """One sequence, from none to the longest that is drawn; with the knee among them."""
    steps: tuple[GrowthStep, ...]
    notes: tuple[str, ...]


def build_growth_document(predictor: Predicts, document: FitDocument) -> GrowthDocument:
    """The growth behind an answer."""
    scenario, growth = document.scenario, document.kv_cache_growth
    shape = Shape(scenario.context_tokens, scenario.new_tokens, scenario.concurrency)
    sequence = None if growth is None else cache_of(growth, shape.cached_tokens)
    everything = None
    if growth is not None and sequence is not None:
        everything = growth.shared_bytes + shape.concurrency * sequence
    steps = _steps(predictor, shape)
    return GrowthDocument(
        profile=document.profile,
        measured_on=document.measured_on,
        model=document.model,
        engine=document.engine,
        holds_for=document.holds_for,
        evidence=weakest([document.evidence, *(step.evidence for step in steps)]),
        scenario=scenario,
        growth=growth,
        why_none="" if growth is not None else why_none(predictor.profile),
        sequence_bytes=sequence,
        all_sequences_bytes=everything,
        sequence_evidence=None if growth is None else _evidence(growth, predictor.profile, shape.cached_tokens),
        points=() if growth is None else _points(growth, predictor.profile, shape),
        steps=steps,
        notes=document.notes,
    )


def cache_of(growth: CacheGrowth, tokens: int) -> int:
    """What one sequence of so many tokens holds, in bytes: state + tokens x slope, steeper up to the knee."""
    within = min(tokens, growth.knee_tokens or 0) * growth.bytes_per_token_within_knee
    return growth.state_bytes_per_sequence + tokens * growth.bytes_per_token + within


def why_none(profile: Profile) -> str:
    """Why a profile does not tell how its cache grows."""
    if profile.memory_model is None:
        return (
            f"the profile has too few measured cells ({len(profile.measured_cells)}) to tell: measure at least two "
            "contexts and two concurrencies (gpufit profile --resume with more of each)"
        )
    if not profile.precision.kv:
        return f"{profile.model.name} keeps no cache: nothing is held for a sequence once it is done"
    return "the profile does not say what its cache held at the end of a phase (an older one): measure it again"


def _points(growth: CacheGrowth, profile: Profile, shape: Shape) -> tuple[GrowthPoint, ...]:
    """To twice the scenario, the knee or what was run, whichever is most; no further than the model's positions."""
    longest = profile.memory_model.max_cached_tokens if profile.memory_model else 0
    end = 2 * max(shape.cached_tokens, growth.knee_tokens or 0, longest, 64)
    limit = longest_context(profile.model.position_limit, profile.model.decodes_apart, 1)
    end = end if limit is None else min(end, max(limit, shape.cached_tokens))
    places = {end * at // POINTS for at in range(POINTS + 1)} | {growth.knee_tokens or 0, shape.cached_tokens}
    return tuple(
        GrowthPoint(tokens=at, cache_bytes=cache_of(growth, at), evidence=_evidence(growth, profile, at))
        for at in sorted(places)
        if at <= end
    )


def _evidence(growth: CacheGrowth, profile: Profile, tokens: int) -> Evidence:
    """That of the growth at a length: rules reach as far as one likes, runs as far as they went."""
    model = profile.memory_model
    beyond = model is not None and not model.untested and tokens > model.max_cached_tokens
    return weakest([growth.evidence, Evidence.SCALED]) if beyond else growth.evidence


def _steps(predictor: Predicts, shape: Shape) -> tuple[GrowthStep, ...]:
    """Nothing for what the profile cannot answer, or the model's positions do not allow."""
    model = predictor.profile.model
    limit = longest_context(model.position_limit, model.decodes_apart, shape.new_tokens)
    wanted = [("1 more sequence", Shape(shape.context_tokens, shape.new_tokens, shape.concurrency + 1))]
    longer = Shape(shape.context_tokens + MORE_TOKENS, shape.new_tokens, shape.concurrency)
    if limit is None or longer.context_tokens <= limit:
        wanted.append(("1k more tokens a sequence", longer))
    steps = []
    for what, more in wanted:
        try:
            after, before = predictor.at(more), predictor.at(shape)
        except UsageError:  # only the cells that were run answer
            continue
        highest = max(after, key=lambda one: one.allocated_bytes)
        lower = max(before, key=lambda one: one.allocated_bytes)
        steps.append(
            GrowthStep(
                what=what,
                allocated_bytes=highest.allocated_bytes - lower.allocated_bytes,
                kv_cache_bytes=highest.parts.kv_cache_bytes - lower.parts.kv_cache_bytes,
                evidence=highest.evidence,
            )
        )
    return tuple(steps)
