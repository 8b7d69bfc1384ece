"""Laws of the allocator on random streams, and the default rules against a slow model that keeps lists only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufit.memory.allocator import Settings, least_capacity, parse_settings, simulate
from gpufit.memory.allocator.blocks import Block
from gpufit.memory.allocator.caching import Allocator
from gpufit.memory.replay import Event, Given, Window
from gpufit.sources.measure.cuda_accounting import most_rounding, slack_bytes
from gpufit.units import KIB, MIB

SIZES = st.one_of(
    st.integers(1, 4 * KIB),
    st.integers(MIB - KIB, MIB + KIB),
    st.integers(1, 12 * MIB),
    st.integers(8 * MIB, 48 * MIB),
    st.sampled_from([MIB, 2 * MIB, 10 * MIB, 20 * MIB, 20 * MIB + 512]),
)
STREAMS = st.lists(st.builds(Event, st.integers(1, 8), st.just(0) | SIZES), max_size=40)
CAPACITIES = st.integers(0, 120 * MIB)
CONFIGURATIONS = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:20",
    "max_split_size_mb:32,max_non_split_rounding_mb:24",
    "roundup_power2_divisions:4",
    "garbage_collection_threshold:0.4",
]
every_configuration = pytest.mark.parametrize("text", CONFIGURATIONS)


@dataclass
class Slow:
    """The default rules with nothing but lists: segments of [size, address or None], searched from end to end."""

    capacity: int
    segments: list[tuple[bool, list[list[int | None]]]] = field(default_factory=list)

    def reserved(self) -> int:
        return sum(size or 0 for _, blocks in self.segments for size, _ in blocks)

    def free(self, address: int) -> None:
        for _, blocks in self.segments:
            for block in blocks:
                if block[1] == address:
                    block[1] = None
            merged: list[list[int | None]] = []
            for size, owner in blocks:
                if owner is None and merged and merged[-1][1] is None:
                    merged[-1][0] = (merged[-1][0] or 0) + (size or 0)
                else:
                    merged.append([size, owner])
            blocks[:] = merged

    def allocate(self, address: int, asked: int) -> bool:
        self.free(address)
        need = (asked + 511) // 512 * 512
        small = need <= MIB
        for attempt in ("cache", "driver", "after giving back"):
            if attempt == "after giving back":
                self.segments = [(kind, blocks) for kind, blocks in self.segments if blocks != [[blocks[0][0], None]]]
            if attempt != "cache":
                segment = (
                    2 * MIB if small else 20 * MIB if need < 10 * MIB else (need + 2 * MIB - 1) // MIB // 2 * 2 * MIB
                )
                if self.reserved() + segment > self.capacity:
                    continue
                self.segments.append((small, [[segment, None]]))
            fitting = [
                (size, number, index)
                for number, (kind, blocks) in enumerate(self.segments)
                for index, (size, owner) in enumerate(blocks)
                if owner is None and kind == small and size is not None and size >= need
            ]
            if fitting:
                size, number, index = min(fitting)
                rest = size - need
                split = rest > 0 if small else rest > MIB
                blocks = self.segments[number][1]
                blocks[index : index + 1] = [[need, address], [rest, None]] if split else [[size, address]]
                return True
        return False


@settings(max_examples=400)
@given(STREAMS, CAPACITIES)
def test_the_default_rules_are_those_of_a_slow_model(events: list[Event], capacity: int) -> None:
    slow = Slow(capacity)
    allocated, reserved, failed = [0], [0], None
    for position, (address, size) in enumerate(events):
        if size == 0:
            slow.free(address)
        elif not slow.allocate(address, size):
            failed = position
            break
        allocated.append(sum(size or 0 for _, bs in slow.segments for size, owner in bs if owner is not None))
        reserved.append(slow.reserved())
    result = simulate(events, capacity_bytes=capacity, windows=[Window(n, n) for n in range(len(events) + 1)])
    assert (result.out_of_memory.position if result.out_of_memory else None) == failed
    reached = [one for one in result.windows if one is not None]
    assert [one.allocated_bytes for one in reached] == allocated
    assert [one.reserved_bytes for one in reached] == reserved


@every_configuration
@settings(max_examples=100)
@given(events=STREAMS)
def test_requested_is_at_most_allocated_is_at_most_reserved(text: str, events: list[Event]) -> None:
    result = simulate(events, (), parse_settings(text), windows=[Window(n, n) for n in range(len(events) + 1)])
    for usage in result.windows:
        assert usage is not None
        assert usage.requested_bytes <= usage.allocated_bytes <= usage.reserved_bytes
        assert usage.reserved_bytes % (2 * MIB) == 0
    assert result.peak.reserved_bytes >= max((one.size_bytes for one in events), default=0)


@every_configuration
@settings(max_examples=100)
@given(events=STREAMS, capacity=CAPACITIES)
def test_blocks_never_overlap_and_all_memory_comes_back(text: str, events: list[Event], capacity: int) -> None:
    allocator = Allocator(parse_settings(text), capacity)
    live: dict[int, Block] = {}
    for address, size in events:
        if address in live:
            allocator.free(live.pop(address))
        block = allocator.allocate(size) if size else None
        if block is not None:
            live[address] = block
        assert allocator.reserved_bytes <= capacity
        assert allocator.allocated_bytes == sum(one.size_bytes for one in live.values())
        for pool in (allocator.small, allocator.large):
            inside = [one for one in live.values() if one.pool is pool] + [one for _, _, one in pool.free]
            ordered = sorted(inside, key=lambda one: one.address)
            for low, high in pairwise(ordered):
                assert low.address + low.size_bytes <= high.address
            assert [entry[:2] for entry in pool.free] == [(one.size_bytes, one.address) for *_, one in pool.free]
    pools = (allocator.small, allocator.large)
    free = sum(size for pool in pools for size, _, _ in pool.free)
    assert allocator.reserved_bytes == allocator.allocated_bytes + free
    for block in live.values():
        allocator.free(block)
    allocator.empty_cache()
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (0, 0)
    assert not any(pool.free for pool in pools)


@pytest.mark.parametrize("text", ["", "expandable_segments:True"])
@settings(max_examples=100)
@given(events=STREAMS)
def test_rounding_is_within_the_bounds_that_the_measurement_uses(text: str, events: list[Event]) -> None:
    slack = slack_bytes(text)
    assert slack is not None
    live: dict[int, int] = {}
    result = simulate(events, (), parse_settings(text), windows=[Window(n, n) for n in range(1, len(events) + 1)])
    for (address, size), usage in zip(events, result.windows, strict=True):
        live[address] = size
        alive = [one for one in live.values() if one]
        assert usage is not None
        least = sum((one + 511) // 512 * 512 for one in alive)
        assert usage.requested_bytes == sum(alive)
        assert least <= usage.allocated_bytes <= sum(alive) + most_rounding(alive, slack)


@pytest.mark.parametrize("text", [one for one in CONFIGURATIONS if "garbage" not in one])
@settings(max_examples=100)
@given(events=STREAMS, capacity=CAPACITIES)
def test_every_ceiling_from_the_reserved_peak_up_to_the_one_tried_gives_the_same_run(
    text: str, events: list[Event], capacity: int
) -> None:
    chosen = parse_settings(text)
    free = simulate(events, (), chosen)
    assert simulate(events, (), chosen, free.peak.reserved_bytes) == free
    bound = simulate(events, (), chosen, capacity)
    if bound.fits:
        assert simulate(events, (), chosen, bound.peak.reserved_bytes) == bound


@every_configuration
@settings(max_examples=60)
@given(events=STREAMS)
def test_a_run_goes_through_under_its_least_capacity_and_not_under_two_mebibytes_less(
    text: str, events: list[Event]
) -> None:
    chosen = parse_settings(text)
    least = least_capacity(events, (), chosen)
    assert least % (2 * MIB) == 0
    assert simulate(events, (), chosen, least).fits
    if least:
        assert not simulate(events, (), chosen, least - 2 * MIB).fits
    if chosen.garbage_collection_threshold is None:
        assert least <= simulate(events, (), chosen).peak.reserved_bytes


@settings(max_examples=100)
@given(st.lists(SIZES, max_size=30))
def test_without_frees_an_expandable_pool_reserves_less_than_a_page_too_much(sizes: list[int]) -> None:
    events = [Event(number, size) for number, size in enumerate(sizes)]
    peak = simulate(events, (), Settings(expandable_segments=True)).peak
    small = sum((size + 511) // 512 * 512 for size in sizes if size <= MIB)
    large = sum((size + 511) // 512 * 512 for size in sizes if size > MIB)
    pages = -(-small // (2 * MIB)) * 2 * MIB + -(-large // (20 * MIB)) * 20 * MIB
    assert (peak.allocated_bytes, peak.reserved_bytes) == (small + large, pages)


@every_configuration
@settings(max_examples=40)
@given(events=STREAMS, capacity=CAPACITIES, split=st.integers(0, 8))
def test_what_was_given_counts_like_what_was_asked_for_first(
    text: str, events: list[Event], capacity: int, split: int
) -> None:
    sizes = [(100 + number, size) for number, (_, size) in enumerate(events[:split]) if size]
    asked = [Event(*one) for one in sizes]
    blocks = [Given(*one, "weights") for one in sizes]
    chosen = parse_settings(text)
    together = simulate([*asked, *events], (), chosen, capacity)
    apart = simulate(events, blocks, chosen, capacity)
    assert apart.fits == together.fits
    # The first moment of the reserved peak may be among the blocks that were given.
    assert replace(apart, out_of_memory=None, fragmentation_at_peak_bytes=0) == replace(
        together, out_of_memory=None, fragmentation_at_peak_bytes=0
    )
