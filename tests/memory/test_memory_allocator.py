"""The allocator's rules one at a time, each on a few blocks whose place can be worked out by head."""

from __future__ import annotations

import pytest

from gpufit.errors import UsageError
from gpufit.memory.allocator import (
    OutOfMemory,
    Settings,
    Simulation,
    Usage,
    least_capacity,
    parse_settings,
    rounded_size,
    segment_size,
    simulate,
)
from gpufit.memory.allocator.caching import Allocator
from gpufit.memory.replay import Event, Given, Window
from gpufit.units import GIB, KIB, MIB

EXPANDABLE = Settings(expandable_segments=True)


def run(*steps: tuple[int, float], settings: Settings | None = None, capacity: float | None = None) -> Simulation:
    """Steps of (block, MiB asked for, or 0 to free it), under a ceiling in MiB."""
    events = [Event(block, int(size * MIB)) for block, size in steps]
    return simulate(events, (), settings, None if capacity is None else int(capacity * MIB))


def reserved_mib(simulation: Simulation) -> float:
    return simulation.peak.reserved_bytes / MIB


def allocated_mib(simulation: Simulation) -> float:
    return simulation.peak.allocated_bytes / MIB


@pytest.mark.parametrize(("asked", "block"), [(1, 512), (511, 512), (512, 512), (513, 1024), (MIB + 1, MIB + 512)])
def test_sizes_are_rounded_up_to_512_bytes(asked: int, block: int) -> None:
    assert rounded_size(asked, Settings()) == block
    assert simulate([Event(1, asked)]).peak.allocated_bytes == block


@pytest.mark.parametrize(
    ("asked", "segment"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 512, 12 * MIB),
        (135 * MIB, 136 * MIB),
    ],
)
def test_a_first_request_takes_a_segment_of_its_class(asked: int, segment: int) -> None:
    assert segment_size(asked) == segment
    assert simulate([Event(1, asked)]).peak.reserved_bytes == segment


def test_a_large_block_keeps_a_rest_of_up_to_one_mebibyte_and_gives_off_a_larger_one() -> None:
    # 11 MiB lie in a segment of 12: the rest is 1 MiB. 512 bytes less, and the rest is large enough to be split off.
    assert allocated_mib(run((1, 11))) == 12
    assert simulate([Event(1, 11 * MIB - 512)]).peak.allocated_bytes == 11 * MIB - 512


def test_a_small_block_gives_off_every_rest() -> None:
    # Two blocks of 1 MiB less 512 bytes leave 1024 bytes of their 2 MiB; two blocks of 512 bytes still go in.
    almost = MIB - 512
    four = simulate([Event(1, almost), Event(2, almost), Event(3, 512), Event(4, 512)])
    assert (four.peak.allocated_bytes, four.peak.reserved_bytes, four.segments) == (2 * MIB, 2 * MIB, 1)
    assert run((1, 1), (2, 1), (3, 0.25)).segments == 2


def test_small_and_large_requests_share_no_segment() -> None:
    # 18 MiB of the large pool's 20 are free, but a small request takes 2 MiB of its own.
    assert reserved_mib(run((1, 2), (2, 0.5))) == 22


def test_the_smallest_free_block_that_fits_is_taken() -> None:
    # Of the free 30 and 12 MiB, 11 MiB take the 12; the 30 are still there for 29.
    steps = [(1, 30.0), (2, 12.0), (1, 0.0), (2, 0.0), (3, 11.0), (4, 29.0)]
    assert reserved_mib(run(*steps)) == 42
    assert reserved_mib(run(*steps, (5, 1.5))) == 62


def test_neighbours_that_are_free_become_one_block_again() -> None:
    # 6 + 6 + 6 + a rest of 2 MiB. The last block and the rest make 8, which is taken; 12 would need the middle one.
    three = [(1, 6.0), (2, 6.0), (3, 6.0)]
    assert reserved_mib(run(*three, (1, 0.0), (3, 0.0), (4, 8.0))) == 20
    assert reserved_mib(run(*three, (1, 0.0), (3, 0.0), (4, 12.0))) == 32
    assert reserved_mib(run(*three, (1, 0.0), (3, 0.0), (2, 0.0), (4, 20.0))) == 20


def test_freed_memory_stays_reserved_and_is_called_fragmentation() -> None:
    # 30 MiB freed, 40 taken anew: 70 reserved of which 40 are in use, then none.
    result = run((1, 30), (1, 0), (2, 40), (2, 0))
    assert result.peak == Usage(requested_bytes=40 * MIB, allocated_bytes=40 * MIB, reserved_bytes=70 * MIB)
    assert result.fragmentation_at_peak_bytes == 30 * MIB
    assert result.fragmentation_at_end_bytes == 70 * MIB
    assert (result.segments, result.retries, result.fits) == (2, 0, True)


def test_at_the_ceiling_unused_segments_are_given_back_and_the_request_is_tried_again() -> None:
    result = run((1, 20), (1, 0), (2, 30), capacity=40)
    assert (result.fits, result.retries, reserved_mib(result)) == (True, 1, 30)


def test_what_still_does_not_fit_is_out_of_memory_at_its_position() -> None:
    result = run((1, 20), (2, 8), (2, 0), (3, 30), (4, 1), capacity=48)
    assert result.out_of_memory == OutOfMemory(
        position=3, address=3, requested_bytes=30 * MIB, allocated_bytes=20 * MIB, reserved_bytes=20 * MIB
    )
    assert (result.retries, result.peak.allocated_bytes) == (1, 28 * MIB)


def test_a_segment_in_use_is_not_given_back_however_little_of_it_is() -> None:
    # 2 MiB hold a segment of 20, so 30 do not fit under 40 although 38 are unused.
    refused = run((1, 2), (2, 30), capacity=40).out_of_memory
    assert refused is not None
    assert refused.reserved_bytes - refused.allocated_bytes == 18 * MIB


def test_a_given_block_that_does_not_fit_has_no_position() -> None:
    refused = simulate([Event(2, 1)], [Given(1, 30 * MIB, "weights")], capacity_bytes=20 * MIB).out_of_memory
    assert refused == OutOfMemory(None, 1, 30 * MIB, 0, 0)


def test_frees_of_the_unknown_change_nothing_and_a_taken_address_is_freed_first() -> None:
    assert run((7, 0)).peak == Usage(0, 0, 0)
    assert run((1, 30), (1, 30)).peak == run((1, 30)).peak


def test_each_window_has_its_own_peaks_and_one_not_reached_has_none() -> None:
    events = [Event(1, 30 * MIB), Event(1, 0), Event(2, 40 * MIB)]
    windows = [Window(0, 1), Window(2, 2), Window(2, 3)]
    free = simulate(events, windows=windows)
    assert [one and (one.allocated_bytes // MIB, one.reserved_bytes // MIB) for one in free.windows] == [
        (30, 30),
        (0, 30),
        (40, 70),
    ]
    assert simulate(events, capacity_bytes=32 * MIB, windows=windows).windows[2] is None


@pytest.mark.parametrize("window", [Window(-1, 0), Window(0, 2), Window(1, 0)])
def test_a_window_outside_the_stream_is_an_error(window: Window) -> None:
    with pytest.raises(ValueError, match="outside a stream of 1 events"):
        simulate([Event(1, 1)], windows=[window])


def test_an_expandable_segment_grows_by_pages_and_keeps_no_rest() -> None:
    # 11 MiB map one page of 20. 11 more need 2 beyond the free 9: one page more. 0.5 MiB map 2 in the small pool.
    result = run((1, 11), (2, 11), (3, 0.5), settings=EXPANDABLE)
    assert (allocated_mib(result), reserved_mib(result), result.segments) == (22.5, 42, 3)


def test_an_expandable_segment_spares_its_end() -> None:
    # Two pages: 15 freed, 13 in use, 12 free at the end, which could grow. 11 go into the hole of 15 although the 12
    # fit better; so 30 find 12 and need one page, not two.
    steps = [(1, 15.0), (2, 13.0), (1, 0.0), (3, 11.0), (4, 30.0)]
    assert reserved_mib(run(*steps, settings=EXPANDABLE)) == 60


def test_at_the_ceiling_an_expandable_segment_gives_back_whole_pages_inside_it() -> None:
    # Blocks of 45 and 15 fill three pages. Of the freed 45 two whole pages go back: 50 more take three, 20 + 60 = 80.
    steps = [(1, 45.0), (2, 15.0), (1, 0.0), (3, 50.0)]
    result = run(*steps, settings=EXPANDABLE, capacity=80)
    assert (result.fits, result.retries, reserved_mib(result)) == (True, 1, 80)
    assert reserved_mib(run(*steps, settings=EXPANDABLE)) == 120
    refused = run(*steps, settings=EXPANDABLE, capacity=79).out_of_memory
    assert refused is not None
    assert (refused.position, refused.reserved_bytes) == (3, 20 * MIB)


def test_pages_given_back_are_mapped_again_at_the_lowest_address_first() -> None:
    allocator = Allocator(EXPANDABLE, 120 * MIB)
    first, second = allocator.allocate(45 * MIB), allocator.allocate(15 * MIB)
    assert first is not None
    assert second is not None
    allocator.free(first)
    # 60 + 80 do not fit, so the two whole pages of the freed 45 go: 20 + 80. The end is at 140 MiB now, 10 of it free.
    third = allocator.allocate(70 * MIB)
    assert third is not None
    assert (allocator.retries, third.address, allocator.reserved_bytes) == (1, 60 * MIB, 100 * MIB)
    fourth = allocator.allocate(15 * MIB)
    assert fourth is not None
    assert (allocator.retries, fourth.address, allocator.reserved_bytes) == (1, 0, 120 * MIB)


def test_blocks_at_the_split_limit_serve_only_requests_nearly_as_large() -> None:
    limited = parse_settings("max_split_size_mb:64")
    kept = [(1, 100.0), (1, 0.0)]
    assert reserved_mib(run(*kept, (2, 12.0))) == 100
    assert reserved_mib(run(*kept, (2, 12.0), settings=limited)) == 112
    assert reserved_mib(run((1, 64), (1, 0), (2, 12), settings=limited)) == 76
    assert reserved_mib(run((1, 62), (1, 0), (2, 12), settings=limited)) == 62
    # 100 is less than 82 + 20: taken, whole. It is not less than 80 + 20.
    assert allocated_mib(run(*kept, (2, 82.0), settings=limited)) == 100
    assert reserved_mib(run(*kept, (2, 82.0), settings=limited)) == 100
    assert reserved_mib(run(*kept, (2, 80.0), settings=limited)) == 180


def test_at_the_ceiling_blocks_at_the_split_limit_go_first() -> None:
    limited = parse_settings("max_split_size_mb:64")
    result = run((1, 12), (1, 0), (2, 100), (2, 0), (3, 70), settings=limited, capacity=150)
    # Giving back the 100 was enough: the free 12 are still reserved, and it does not count as a retry.
    assert (result.fits, result.retries, result.fragmentation_at_end_bytes) == (True, 0, 12 * MIB)


def test_where_no_block_at_the_split_limit_is_large_enough_the_largest_go_until_they_are() -> None:
    limited = parse_settings("max_split_size_mb:64")
    steps = [(1, 12), (2, 70), (3, 66), (4, 68), (1, 0), (2, 0), (3, 0), (4, 0), (5, 130)]
    result = run(*steps, settings=limited, capacity=216)
    # 70 + 68 are at least 130: the 66 and the 12 stay, and 78 + 130 are below 216.
    assert (result.fits, result.retries, result.fragmentation_at_end_bytes) == (True, 0, 78 * MIB)


def test_garbage_collection_gives_back_the_older_unused_segments() -> None:
    # Free segments of 20, 22 and 24 MiB, freed after the 1st, 2nd and 3rd search of the pool. At the 4th, 66 MiB are
    # above half of 100; their ages are 3, 2 and 1, on average 2, so 20 and 22 go: 24 + 26 = 50 are left.
    steps = [(1, 20.0), (1, 0.0), (2, 22.0), (2, 0.0), (3, 24.0), (3, 0.0), (4, 26.0)]
    collected = run(*steps, settings=parse_settings("garbage_collection_threshold:0.5"), capacity=100)
    assert reserved_mib(collected) == 66
    assert collected.fragmentation_at_end_bytes == 24 * MIB
    assert run(*steps, capacity=100).fragmentation_at_end_bytes == 66 * MIB
    assert run(*steps, settings=parse_settings("garbage_collection_threshold:0.5")).segments == 4


@pytest.mark.parametrize(
    ("divisions", "asked", "block"),
    [
        # Between 1024 and 2048 MiB four divisions are 256 MiB wide.
        (4, 1100 * MIB, 1280 * MIB),
        (4, 1280 * MIB, 1280 * MIB),
        (4, 1281 * MIB, 1536 * MIB),
        (4, 1024 * MIB, 1024 * MIB),
        # 5000 lies between 4096 and 8192: steps of 2048.
        (2, 5000, 6144),
        # Not above 512 x 16 bytes: 512 bytes as ever.
        (16, 8000, 8192),
        (1, 5000, 5120),
    ],
)
def test_sizes_are_rounded_up_to_divisions_between_powers_of_two(divisions: int, asked: int, block: int) -> None:
    assert rounded_size(asked, parse_settings(f"roundup_power2_divisions:{divisions}")) == block


def test_divisions_by_interval_are_read_as_torchs_own_test_reads_them() -> None:
    # c10/test/core/AllocatorConfig_test.cpp of pytorch/pytorch: what it expects at 64 MiB, 128 MiB and so on.
    first = parse_settings("roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1]")
    second = parse_settings("roundup_power2_divisions:[128:8,256:16,512:1,2048:8,>:2]")
    assert first.roundup_power2_divisions[5:14] == (8, 8, 2, 4, 2, 4, 1, 1, 1)
    assert second.roundup_power2_divisions[6:13] == (8, 8, 16, 1, 0, 8, 2)


def test_the_defaults_are_torchs() -> None:
    assert parse_settings("") == parse_settings("backend:native") == Settings()
    assert Settings().max_non_split_rounding_bytes == 20 * MIB


def test_settings_are_read_with_spaces_and_a_comma_at_the_end_and_the_last_of_two_holds() -> None:
    read = parse_settings(" max_split_size_mb : 40, max_split_size_mb:128 , garbage_collection_threshold:.8,")
    assert read == Settings(max_split_bytes=128 * MIB, garbage_collection_threshold=0.8)
    assert parse_settings("max_non_split_rounding_mb:30").max_non_split_rounding_bytes == 30 * MIB


def test_settings_of_host_memory_change_nothing_on_the_device() -> None:
    assert parse_settings("pinned_use_background_threads:True,release_lock_on_cudamalloc:True") == Settings()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("foo:1", "torch has no such setting"),
        ("large_segment_size_mb:12", "not modelled"),
        ("per_process_memory_fraction:0.5", "not modelled"),
        ("backend:cudaMallocAsync", "only torch's native allocator"),
        ("expandable_segments:true", "True or False"),
        ("max_split_size_mb:19", "at least 20"),
        ("max_split_size_mb:x", "at least 20"),
        ("garbage_collection_threshold:1", "between 0 and 1"),
        ("garbage_collection_threshold:nan", "between 0 and 1"),
        ("roundup_power2_divisions:3", "powers of two"),
        ("roundup_power2_divisions:[100:4]", "powers of two"),
        ("roundup_power2_divisions:[]", "powers of two"),
        ("max_split_size_mb", "key:value"),
        ("roundup_power2_divisions:[64:8", "key:value"),
        ("max_split_size_mb:64,expandable_segments:True", "not modelled"),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_line(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        parse_settings(text)
    assert "\n" not in str(caught.value)


def test_the_least_capacity_is_below_what_is_reserved_without_a_ceiling() -> None:
    # 20 and 30 MiB one after the other reserve 50, and 30 do.
    events = [Event(1, 20 * MIB), Event(1, 0), Event(2, 30 * MIB)]
    assert simulate(events).peak.reserved_bytes == 50 * MIB
    assert least_capacity(events) == 30 * MIB
    assert least_capacity([]) == 0
    assert least_capacity([Event(1, 1)], [Given(2, KIB, "weights")]) == 2 * MIB


def test_a_run_may_fail_under_a_larger_ceiling_than_it_went_through_under() -> None:
    # Under 42 MiB the unused 20 must go for the 24; 8 and 14 then share the 24, and 16 are taken beside them: 40.
    # Under 44 both segments stay; 8 goes into the one, 14 into the other, and neither can go when 16 are wanted.
    events = [Event(1, 2 * MIB), Event(1, 0), Event(2, 24 * MIB), Event(2, 0)]
    events += [Event(3, 8 * MIB), Event(4, 14 * MIB), Event(5, 16 * MIB)]
    fits = {mib: simulate(events, capacity_bytes=mib * MIB).fits for mib in (38, 40, 42, 44, 58, 60)}
    assert fits == {38: False, 40: True, 42: True, 44: False, 58: False, 60: True}
    assert least_capacity(events) in (40 * MIB, 60 * MIB)


def test_a_block_larger_than_any_card_is_refused_and_not_an_error() -> None:
    for settings in (Settings(), EXPANDABLE):
        assert simulate([Event(1, 2**50)], settings=settings, capacity_bytes=80 * GIB).fits is False
