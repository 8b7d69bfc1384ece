"""How a model's cache grows: a state, a slope, and a knee where layers slide. Pure."""

from __future__ import annotations

from gpufit.memory.terms import Knees
from gpufit.profile.base import Record, Size
from gpufit.profile.evidence import Evidence
from gpufit.profile.memory_model import MomentModel, TermName
from gpufit.profile.peaks import END_OF_PHASE, Phase
from gpufit.profile.record import Profile


class CacheGrowth(Record, frozen=True, kw_only=True):
    """What a cache holds at the end of a phase: shared + sequences x (state + tokens x slope), the slope steeper
    up to the knee."""

    phase: Phase
    """The phase after which it was seen: decode, where one was measured. After prefill alone a sliding layer may still
    hold the whole prompt."""
    evidence: Evidence
    """That of the run it was fitted to."""
    shared_bytes: Size
    """Held once, however many sequences (counters)."""
    state_bytes_per_sequence: Size
    """Held by every sequence whatever its length: Mamba and linear-attention state, a cross-attention cache of fixed
    length."""
    bytes_per_token: Size
    """Held by every token of a sequence, at any length."""
    knee_tokens: int | None
    """Where the slope changes: the sliding window; None where it never does."""
    bytes_per_token_within_knee: Size
    """Held in addition by every token up to the knee."""

    @property
    def grows(self) -> bool:
        """Whether a longer sequence holds more."""
        return bool(self.bytes_per_token or self.bytes_per_token_within_knee)


def cache_growth(profile: Profile) -> CacheGrowth | None:
    """The growth of a profile's cache, from what stays at the end of its last phase that holds one.

    None without a memory model, for a model without a cache, and for runs whose moments nobody looked at.
    """
    for one in reversed(profile.memory_model.phases if profile.memory_model else ()):
        found = _held_at_the_end(one.moments)
        if found is not None:
            return _growth(one.phase, profile.evidence, found, Knees.of(profile))
    return None


def _held_at_the_end(moments: tuple[MomentModel, ...]) -> dict[TermName, int] | None:
    for moment in moments:
        for part in moment.parts:
            if moment.site == END_OF_PHASE and part.part == "kv_cache_bytes":
                return {one.term: round(one.bytes_per_unit) for one in part.coefficients}
    return None


def _growth(phase: Phase, evidence: Evidence, terms: dict[TermName, int], knees: Knees) -> CacheGrowth:
    within = terms.get("per_token_in_window", 0)
    return CacheGrowth(
        phase=phase,
        evidence=evidence,
        shared_bytes=terms.get("constant", 0),
        state_bytes_per_sequence=terms.get("per_sequence", 0),
        bytes_per_token=sum(terms.get(name, 0) for name in _PER_TOKEN),
        knee_tokens=knees.window if within else None,
        bytes_per_token_within_knee=within,
    )


_PER_TOKEN: tuple[TermName, ...] = (
    "per_token", "per_past_token", "per_prompt_token", "per_reserved_token", "per_token_in_chunks",
)  # fmt: skip
"""Terms of which every token of a long sequence has one unit."""
