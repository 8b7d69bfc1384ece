"""The replay against a brute-force reading of the same rules, and the rules one at a time."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufit.memory.replay import Category, Event, Given, Label, Peak, Window, replay

WEAKEST_FIRST: list[Category] = [
    "temporaries",
    "activations",
    "unexplained",
    "outputs",
    "inputs",
    "kv_cache",
    "buffers",
    "weights",
]
"""Of two claims on one block the later in this list holds."""

ADDRESSES = st.integers(1, 5)
"""Few, so that addresses are reused and frees meet blocks that are not there."""


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Given], list[Event], list[Label], list[Window]]:
    categories = st.sampled_from(WEAKEST_FIRST)
    given = draw(
        st.lists(st.builds(Given, ADDRESSES, st.integers(0, 50), categories), max_size=3, unique_by=lambda g: g.address)
    )
    events = draw(st.lists(st.builds(Event, ADDRESSES, st.just(0) | st.integers(1, 50)), max_size=15))
    positions = st.integers(0, len(events))
    labels = draw(st.lists(st.builds(Label, ADDRESSES, categories, positions, st.booleans()), max_size=6))
    ends = draw(st.lists(st.tuples(positions, positions), min_size=1, max_size=3))
    return given, events, labels, [Window(min(pair), max(pair)) for pair in ends]


def live_after(given: list[Given], events: list[Event], count: int) -> dict[int, tuple[int, int]]:
    """Address -> (when it was made, size) of every block alive after so many events."""
    live = {one.address: (0, one.size_bytes) for one in given}
    for position, event in enumerate(events[:count], start=1):
        live.pop(event.address, None)
        if event.size_bytes:
            live[event.address] = (position, event.size_bytes)
    return live


def category_of(
    address: int, born: int, at: int, given: list[Given], events: list[Event], labels: list[Label]
) -> Category:
    claims: list[Category] = ["temporaries"]
    claims += [one.category for one in given if one.address == address and born == 0]
    for label in labels:
        meant = live_after(given, events, label.position).get(label.address)
        if label.address == address and meant is not None and meant[0] == born:
            counts_from = born if label.since_birth else label.position
            claims += [label.category] if counts_from <= at else []
    return max(claims, key=WEAKEST_FIRST.index)


@settings(max_examples=300)
@given(streams())
def test_the_peak_is_the_brute_force_maximum_and_its_composition_adds_up_to_it(
    stream: tuple[list[Given], list[Event], list[Label], list[Window]],
) -> None:
    given, events, labels, windows = stream
    for window, peak in zip(windows, replay(given, events, labels, windows), strict=True):
        totals = {
            position: sum(size for _, size in live_after(given, events, position).values())
            for position in range(window.start, window.end + 1)
        }
        assert peak.live_bytes == max(totals.values())
        assert totals[peak.position] == peak.live_bytes
        assert sum(peak.composition.values()) == sum(peak.blocks) == peak.live_bytes
        expected: dict[Category, int] = {}
        for address, (born, size) in live_after(given, events, peak.position).items():
            category = category_of(address, born, peak.position, given, events, labels)
            expected[category] = expected.get(category, 0) + size
        assert peak.composition == expected


Stream = tuple[list[Given], list[Event], list[Label], list[Window]]


@settings(max_examples=200)
@given(streams())
def test_labels_say_what_bytes_are_and_never_how_many(stream: Stream) -> None:
    given, events, labels, windows = stream
    for named, bare in zip(replay(given, events, labels, windows), replay(given, events, [], windows), strict=True):
        assert (named.position, named.live_bytes, named.blocks) == (bare.position, bare.live_bytes, bare.blocks)


@settings(max_examples=200)
@given(streams(), st.integers(2, 4), st.randoms(use_true_random=False))
def test_any_number_of_views_of_one_storage_count_as_the_one_storage(
    stream: Stream, views: int, shuffled: random.Random
) -> None:
    given, events, labels, windows = stream
    repeated = labels * views
    shuffled.shuffle(repeated)
    assert replay(given, events, repeated, windows) == replay(given, events, labels, windows)


@settings(max_examples=200)
@given(streams(), st.permutations(range(1, 6)))
def test_addresses_are_names_and_which_ones_were_used_does_not_matter(stream: Stream, names: list[int]) -> None:
    given, events, labels, windows = stream
    renamed = replay(
        [replace(one, address=names[one.address - 1]) for one in given],
        [one._replace(address=names[one.address - 1]) for one in events],
        [replace(one, address=names[one.address - 1]) for one in labels],
        windows,
    )
    for one, other in zip(renamed, replay(given, events, labels, windows), strict=True):
        assert (one.position, one.live_bytes, one.composition) == (other.position, other.live_bytes, other.composition)
        assert sorted(one.blocks) == sorted(other.blocks)


@settings(max_examples=200)
@given(streams(), st.data())
def test_a_free_of_an_unknown_block_anywhere_changes_no_bytes(stream: Stream, data: st.DataObject) -> None:
    given, events, labels, windows = stream
    at = data.draw(st.integers(0, len(events)))

    def moved(position: int) -> int:
        return position + (position > at)

    longer = replay(
        given,
        [*events[:at], Event(99, 0), *events[at:]],
        [replace(one, position=moved(one.position)) for one in labels],
        [Window(moved(one.start), moved(one.end)) for one in windows],
    )
    for one, other in zip(longer, replay(given, events, labels, windows), strict=True):
        assert (one.live_bytes, one.composition) == (other.live_bytes, other.composition)


@settings(max_examples=200)
@given(streams())
def test_a_longer_window_never_has_a_lower_peak(stream: Stream) -> None:
    given, events, labels, windows = stream
    (whole,) = replay(given, events, labels, [Window(0, len(events))])
    assert all(peak.live_bytes <= whole.live_bytes for peak in replay(given, events, labels, windows))


@given(st.lists(st.integers(1, 100), min_size=1, max_size=12), st.booleans(), st.integers(0, 50))
def test_a_storage_that_grows_in_place_is_only_ever_there_once(sizes: list[int], moves: bool, beside: int) -> None:
    # Each growth is a free and an allocation, at the same address or at another; a given block lies beside it.
    events, labels = [], []
    for step, size in enumerate(sizes):
        if step:
            events.append(Event(events[-1].address, 0))
        events.append(Event(step + 1 if moves else 1, size))
        labels.append(Label(events[-1].address, "kv_cache", len(events), since_birth=False))
    peak = only_peak(events, labels, [Given(1000, beside, "weights")])
    assert peak.live_bytes == max(sizes) + beside
    assert peak.composition == {"weights": beside, "kv_cache": max(sizes)}


def test_what_grew_in_place_has_to_be_named_again() -> None:
    events = [Event(1, 100), Event(1, 0), Event(1, 300)]
    first, grown = replay([], events, [Label(1, "activations", 1)], [Window(1, 1), Window(3, 3)])
    assert first.composition == {"activations": 100}
    assert grown.composition == {"temporaries": 300}


def only_peak(events: list[Event], labels: list[Label] = [], given: list[Given] = []) -> Peak:  # noqa: B006
    (peak,) = replay(given, events, labels, [Window(0, len(events))])
    return peak


def test_what_is_not_known_by_name_is_temporary() -> None:
    peak = only_peak([Event(1, 10), Event(2, 5), Event(1, 0), Event(3, 1)])
    assert (peak.position, peak.live_bytes, peak.composition) == (2, 15, {"temporaries": 15})
    assert sorted(peak.blocks) == [5, 10]


def test_the_last_of_two_equal_peaks_is_taken() -> None:
    assert only_peak([Event(1, 10), Event(1, 0), Event(1, 10)]).position == 3


def test_a_free_of_a_block_that_was_never_seen_changes_nothing() -> None:
    assert only_peak([Event(9, 0), Event(1, 10), Event(8, 0)]).live_bytes == 10


def test_an_allocation_where_a_block_still_lives_ends_that_block() -> None:
    # The free was lost; memory cannot hold two blocks at one address.
    assert only_peak([Event(1, 10), Event(1, 4)]).live_bytes == 10
    (after,) = replay([], [Event(1, 10), Event(1, 4)], [], [Window(2, 2)])
    assert after.live_bytes == 4


def test_a_label_belongs_to_the_block_that_lives_at_its_address_then_and_not_to_the_next_one() -> None:
    events = [Event(1, 10), Event(1, 0), Event(1, 20)]
    labels = [Label(1, "activations", position=1)]
    first, second = replay([], events, labels, [Window(1, 1), Window(3, 3)])
    assert first.composition == {"activations": 10}
    assert second.composition == {"temporaries": 20}


def test_a_label_where_nothing_lives_claims_nothing() -> None:
    assert only_peak([Event(1, 10)], [Label(1, "outputs", 0), Label(2, "outputs", 1)]).composition == {
        "temporaries": 10
    }


def test_given_blocks_are_there_from_the_start_and_can_be_freed() -> None:
    given = [Given(1, 100, "weights"), Given(2, 7, "buffers")]
    events = [Event(3, 5), Event(2, 0)]
    start, end = replay(given, events, [], [Window(0, 1), Window(2, 2)])
    assert start.composition == {"weights": 100, "buffers": 7, "temporaries": 5}
    assert end.composition == {"weights": 100, "temporaries": 5}


@pytest.mark.parametrize("weaker", range(len(WEAKEST_FIRST) - 1))
def test_of_two_claims_the_stronger_holds_in_either_order(weaker: int) -> None:
    low, high = WEAKEST_FIRST[weaker], WEAKEST_FIRST[weaker + 1]
    for labels in ([Label(1, low, 1), Label(1, high, 1)], [Label(1, high, 1), Label(1, low, 1)]):
        assert only_peak([Event(1, 10)], labels).composition == {high: 10}


def test_while_a_cache_grows_by_copy_exactly_one_of_old_and_new_counts_as_cache() -> None:
    # The cache holds 100; concatenation makes 110 beside it; the cache adopts the new one; the old one is freed.
    events = [Event(1, 100), Event(2, 110), Event(1, 0)]
    labels = [Label(1, "kv_cache", 1, since_birth=False), Label(2, "kv_cache", 3, since_birth=False)]
    both_alive, after = replay([], events, labels, [Window(0, 3), Window(3, 3)])
    assert both_alive.position == 2
    assert both_alive.composition == {"kv_cache": 100, "temporaries": 110}
    assert after.composition == {"kv_cache": 110}


def test_a_label_that_counts_since_birth_counts_before_it_was_given() -> None:
    events = [Event(1, 10), Event(2, 5), Event(2, 0)]
    assert only_peak(events, [Label(1, "activations", 3)]).composition == {"activations": 10, "temporaries": 5}


def test_an_empty_stream_has_its_given_blocks_as_peak() -> None:
    assert only_peak([], given=[Given(1, 3, "weights")]).composition == {"weights": 3}
    assert only_peak([]).live_bytes == 0


def test_windows_may_overlap_and_each_has_its_own_peak() -> None:
    events = [Event(1, 10), Event(1, 0), Event(2, 4), Event(2, 0)]
    peaks = replay([], events, [], [Window(0, 4), Window(2, 4), Window(2, 2), Window(0, 0)])
    assert [peak.live_bytes for peak in peaks] == [10, 4, 0, 0]


@pytest.mark.parametrize("window", [Window(-1, 0), Window(0, 2), Window(1, 0), Window(2, 2)])
def test_a_window_outside_the_stream_is_an_error(window: Window) -> None:
    with pytest.raises(ValueError, match="lies outside a stream of 1 events"):
        replay([], [Event(1, 1)], [], [window])


@pytest.mark.parametrize("position", [-1, 2])
def test_a_label_outside_the_stream_is_an_error_and_does_not_silence_the_others(position: int) -> None:
    labels = [Label(1, "outputs", 1), Label(1, "inputs", position)]
    with pytest.raises(ValueError, match="lies outside a stream of 1 events"):
        replay([], [Event(1, 1)], labels, [Window(0, 1)])


def test_a_long_stream_takes_one_walk_not_one_a_label() -> None:
    # 40,000 events and labels: a quadratic replay would need 1.6e9 steps and never end in time.
    events = [Event(n % 97 + 1, n % 2 * (n % 13 + 1)) for n in range(40_000)]
    labels = [Label(event.address, "activations", position + 1) for position, event in enumerate(events)]
    peak = only_peak(events, labels)
    assert peak.composition.get("activations", 0) + peak.composition.get("temporaries", 0) == peak.live_bytes
