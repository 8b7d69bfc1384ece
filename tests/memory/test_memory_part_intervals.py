"""The interval of a single part: its own misses, and what the cells do not rule out.

Bytes by arithmetic over the default profile: 512 x 4 tokens are its largest cell, of 40,960,000 B of cache and
6,144,000 B of activations in prefill.
"""

from __future__ import annotations

import msgspec
import pytest
from builders import make_memory_model, make_profile

from gpufit.memory.part_intervals import PartInterval, part_interval
from gpufit.memory.predict import observed, predict
from gpufit.memory.terms import Shape
from gpufit.profile.memory_model import Coefficient, PartModel
from gpufit.profile.peaks import Phase
from gpufit.profile.record import Profile

INSIDE = Shape(300, 4, 2)
"""600 tokens of prompt."""


def of(profile: Profile, shape: Shape, part: str) -> PartInterval:
    answer = next(one for one in predict(profile, shape) if one.phase is Phase.PREFILL)
    return part_interval(profile, shape, answer, part)


def test_a_part_that_was_always_met_is_trusted_to_two_percent_of_its_largest() -> None:
    assert of(make_profile(), INSIDE, "kv_cache_bytes") == PartInterval(12_000_000 - 819_200, 12_000_000 + 819_200)
    assert of(make_profile(), INSIDE, "activations_bytes") == PartInterval(1_800_000 - 122_880, 1_800_000 + 122_880)


@pytest.mark.parametrize("part", ["weights_bytes", "buffers_bytes"])
def test_weights_and_buffers_have_none(part: str) -> None:
    found = of(make_profile(), INSIDE, part)
    assert found.lower_bytes == found.upper_bytes


def test_what_was_seen_has_none() -> None:
    shape = Shape(512, 4, 4)
    answers = observed(make_profile(), shape)
    assert answers is not None
    for answer in answers:
        found = part_interval(make_profile(), shape, answer, "kv_cache_bytes")
        assert found.lower_bytes == found.upper_bytes == answer.parts.kv_cache_bytes


def test_beyond_what_was_measured_it_widens_with_the_distance() -> None:
    """Eight sequences are twice the most that was measured, 4,096 tokens of 20,000 B twice its bytes: 2 % of the
    largest, twice for the bytes and twice for the distance (4,120 tokens held, 2,060 at most)."""
    found = of(make_profile(), Shape(512, 4, 8), "kv_cache_bytes")
    assert found.upper_bytes - 81_920_000 == 2 * 2 * 819_200


def test_terms_that_the_cells_do_not_rule_out_raise_the_upper_bound() -> None:
    """Temporaries of 100,000 B a token in place of 2,000: 60,000,000 B for 600 tokens and 2 % of the largest that was
    seen, 1,000,000 + 2,000 x 2,048 B, times how often that goes into it."""
    model = make_memory_model()
    prefill, decode = model.phases
    steep = PartModel(part="temporaries_bytes", coefficients=(Coefficient(term="per_token", bytes_per_unit=100_000),))
    model = msgspec.structs.replace(model, phases=(msgspec.structs.replace(prefill, alternatives=((steep,),)), decode))
    found = of(make_profile(memory_model=model), INSIDE, "temporaries_bytes")
    largest = 1_000_000 + 2_000 * 2_048
    assert found.upper_bytes == 60_000_000 + round(0.02 * largest * 60_000_000 / largest)
    assert found.lower_bytes == 2_200_000 - round(0.02 * largest)


def test_a_prompt_shorter_than_any_seen_may_take_what_the_shortest_did() -> None:
    """64 tokens where 128 are the fewest that ran: activations of 3,000 B a token, for 64 at least, for 128 at most."""
    profile = make_profile(memory_model=make_memory_model(min_context_tokens=128))
    found = of(profile, Shape(64, 4, 1), "activations_bytes")
    assert found == PartInterval(64 * 3_000 - 122_880, 128 * 3_000 + 122_880)


def test_intervals_exclude_each_other_where_they_do_not_meet() -> None:
    low, high = PartInterval(0, 10), PartInterval(11, 20)
    assert low.excludes(high)
    assert high.excludes(low)
    assert not PartInterval(0, 11).excludes(high)
