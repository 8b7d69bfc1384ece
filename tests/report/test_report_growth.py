"""The growth document by arithmetic: a cache with a state, a slope and a knee, and what one more costs."""

from __future__ import annotations

import json

import msgspec
from builders import KV_PER_TOKEN, make_cell, make_memory_model, make_offers, make_profile

from gpufit import flows
from gpufit.catalog.record import Catalog
from gpufit.flows_curve import growth
from gpufit.memory.growth import CacheGrowth
from gpufit.memory.held import Cache, Held
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import END_OF_PHASE, Phase
from gpufit.profile.record import Profile
from gpufit.report.growth import GrowthDocument, cache_of

SHAPE = Shape(512, 4, 4)
GROWTH = CacheGrowth(
    phase=Phase.DECODE,
    evidence=Evidence.MEASURED,
    shared_bytes=40,
    state_bytes_per_sequence=1_000,
    bytes_per_token=100,
    knee_tokens=384,
    bytes_per_token_within_knee=50,
)


def with_end(profile: Profile | None = None) -> Profile:
    """The default profile with the end of each phase among its moments."""
    model = make_memory_model()
    phases = tuple(
        msgspec.structs.replace(one, moments=(*one.moments, msgspec.structs.replace(one.moments[0], site=END_OF_PHASE)))
        for one in model.phases
    )
    return msgspec.structs.replace(
        profile or make_profile(), memory_model=msgspec.structs.replace(model, phases=phases)
    )


def make_growth(profile: Profile | None = None, shape: Shape = SHAPE, held: Held | None = None) -> GrowthDocument:
    profile = profile or with_end()
    answer = flows.judge_cards(profile, "p.json", shape, Catalog(cards=()), make_offers(), (), held)
    return growth(profile, answer, held)


def test_a_sequence_holds_its_state_its_tokens_and_more_up_to_the_knee() -> None:
    assert cache_of(GROWTH, 0) == 1_000
    assert cache_of(GROWTH, 384) == 1_000 + 384 * 150
    assert cache_of(GROWTH, 1_000) == 1_000 + 384 * 150 + 616 * 100
    assert cache_of(msgspec.structs.replace(GROWTH, knee_tokens=None, bytes_per_token_within_knee=0), 10) == 2_000


def test_the_scenario_holds_its_sequences() -> None:
    """512 + 3 tokens of 20,000 B in each of 4 sequences."""
    document = make_growth()
    assert document.sequence_bytes == 515 * KV_PER_TOKEN
    assert document.all_sequences_bytes == 4 * 515 * KV_PER_TOKEN
    by_tokens = {point.tokens: point.cache_bytes for point in document.points}
    assert by_tokens[0] == 0
    assert by_tokens[515] == 515 * KV_PER_TOKEN
    assert max(by_tokens) == 1_030, "twice the scenario"


def test_one_more_sequence_and_a_longer_context_cost_what_the_peak_grows_by() -> None:
    """In prefill a sequence of 512 takes 512 x 25,016 B and logits of 100,000 B, of which 512 x 20,000 B are cache."""
    more, longer = make_growth().steps
    assert (more.what, longer.what) == ("1 more sequence", "1k more tokens a sequence")
    assert more.allocated_bytes == 512 * 25_016 + 100_000
    assert more.kv_cache_bytes == 512 * KV_PER_TOKEN
    assert longer.allocated_bytes == 4 * 1_024 * 25_016
    assert longer.kv_cache_bytes == 4 * 1_024 * KV_PER_TOKEN
    assert more.evidence is Evidence.SCALED, "five sequences are one more than was run"


def test_no_longer_context_than_the_model_takes() -> None:
    assert [step.what for step in make_growth(shape=Shape(32_000, 4, 1)).steps] == ["1 more sequence"]


def test_in_fp8_a_token_costs_half() -> None:
    document = make_growth(held=Held(kv_cache=Cache.FP8))
    assert document.sequence_bytes == 515 * KV_PER_TOKEN // 2
    assert document.steps[0].kv_cache_bytes == 512 * KV_PER_TOKEN // 2
    assert document.growth is not None
    assert document.growth.evidence is Evidence.SCALED


def test_where_none_is_known_it_says_why() -> None:
    few = make_growth(make_profile(memory_model=None, cells=(make_cell(512, 4), make_cell(128, 4))))
    assert few.growth is None
    assert "too few measured cells (2)" in few.why_none
    assert few.steps == few.points == ()
    older = make_growth(make_profile())
    assert "does not say what its cache held at the end" in older.why_none
    precision = msgspec.structs.replace(make_profile().precision, kv=())
    assert "keeps no cache" in make_growth(make_profile(precision=precision)).why_none


def test_the_document_is_plain_json() -> None:
    assert json.loads(msgspec.json.encode(make_growth()))["growth"]["bytes_per_token"] == KV_PER_TOKEN
