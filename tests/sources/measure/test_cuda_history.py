"""The pure half of the CUDA feeder, on inputs in the shape that torch documents.

None of these dictionaries came from a card: each is written by hand in the shape of `torch.cuda.memory._snapshot()`
and `memory_stats_as_nested_dict()`, with addresses and sizes small enough to check the expectations by head. What a
card really answers is held in tests/gpu and in recordings made by scripts/gpu-check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gpufit.errors import MeasurementError
from gpufit.memory.replay import Event, Given, Label, Peak, Window, replay
from gpufit.profile.peaks import DeviceReading
from gpufit.sources.measure.cuda_accounting import (
    COUNTER,
    account,
    at_block_starts,
    known_blocks,
    most_rounding,
    slack_bytes,
)
from gpufit.sources.measure.cuda_history import (
    Block,
    Counters,
    CudaRecording,
    History,
    counters_of,
    live_blocks,
    read_history,
)
from gpufit.sources.measure.recording import Recording
from gpufit.units import MIB

A, B, C = 0x1000, 0x2000, 0x3000


def entry(action: str, addr: int, size: int, stream: int = 0) -> dict[str, Any]:
    return {"action": action, "addr": addr, "size": size, "stream": stream, "frames": []}


def freed(addr: int, size: int) -> list[dict[str, Any]]:
    """Both entries of a free on the stream that used the block."""
    return [entry("free_requested", addr, size), entry("free_completed", addr, size)]


def counters(changes: tuple[int, int], requested: int, pending: int = 0) -> Counters:
    """Counters after so many (allocations, frees); allocated bytes do not matter to the reading of a history."""
    return Counters(
        allocations=changes[0], frees=changes[1], pending=pending, allocated_bytes=0, requested_bytes=requested
    )


def history(
    trace: Sequence[dict[str, Any]],
    marks: Sequence[Counters],
    stop: Counters,
    start: Counters | None = None,
    before: tuple[Block, ...] = (),
    max_entries: int = 1000,
) -> History:
    start = start or counters((0, 0), sum(block.requested_bytes for block in before))
    return History(before, start, marks, stop, trace, max_entries, slack_bytes=MIB)


def read(*, base: int = 0) -> CudaRecording:
    """A block of 100 from before, one of 40 that comes and goes, one of 600 that stays, as a process sees it that
    had already counted `base` allocations and as many frees less one."""
    before = (Block(A, 512, 100),)
    trace = [
        entry("segment_alloc", 0x1000, 2 * MIB),
        entry("alloc", B, 40),
        *freed(B, 40),
        entry("alloc", C, 600),
        entry("snapshot", 0, 0),
    ]
    at = [counters((base + 1 + a, base + f), requested) for a, f, requested in ((0, 0, 100), (1, 1, 100), (2, 1, 700))]
    return read_history(history(trace, at, stop=at[-1], start=at[0], before=before))


def test_allocations_and_requested_frees_become_events() -> None:
    assert read().events == [Event(B, 40), Event(B, 0), Event(C, 600)]


@pytest.mark.parametrize("base", [0, 1_000_000])
def test_the_counters_are_the_position_in_the_stream(base: int) -> None:
    assert read(base=base).positions == [0, 2, 3]


def test_what_stood_there_before_comes_along() -> None:
    recording = read()
    assert recording.before == (Block(A, 512, 100),)
    assert recording.base_bytes == 0


def test_a_block_still_used_by_another_stream_is_free_when_its_free_was_requested() -> None:
    trace = [
        entry("alloc", A, 100),
        entry("free_requested", A, 100),
        entry("alloc", B, 50),
        entry("free_completed", A, 100),
    ]
    marks = [counters((1, 1), 100, pending=1), counters((2, 1), 150, pending=1), counters((2, 1), 50)]
    recording = read_history(history(trace, marks, stop=marks[-1]))
    assert recording.events == [Event(A, 100), Event(A, 0), Event(B, 50)]
    assert recording.positions == [2, 3, 3]
    (peak,) = replay([], recording.events, [], [Window(0, 3)])
    assert peak.live_bytes == 100


def test_an_address_is_used_again_after_its_free() -> None:
    trace = [entry("alloc", A, 100), *freed(A, 100), entry("alloc", A, 80), *freed(A, 80)]
    recording = read_history(history(trace, [], stop=counters((2, 2), 0)))
    assert recording.events == [Event(A, 100), Event(A, 0), Event(A, 80), Event(A, 0)]


def test_an_out_of_memory_is_no_event() -> None:
    failed = {"action": "oom", "size": 10**12, "stream": 0, "device_free": 5, "frames": []}
    recording = read_history(history([entry("alloc", A, 100), failed], [], stop=counters((1, 0), 100)))
    assert recording.events == [Event(A, 100)]


def test_a_full_history_is_refused() -> None:
    trace = [entry("alloc", A, 100), *freed(A, 100)]
    with pytest.raises(MeasurementError, match=r"full .* fewer new tokens"):
        read_history(history(trace, [], stop=counters((1, 1), 0), max_entries=3))


def test_a_history_with_fewer_events_than_were_counted_is_refused() -> None:
    with pytest.raises(MeasurementError, match="counted 3 allocations and frees but its history holds 1"):
        read_history(history([entry("alloc", A, 100)], [], stop=counters((2, 1), 100)))


@pytest.mark.parametrize(
    "trace",
    [
        [entry("alloc", A, 100), entry("alloc", A, 100)],
        [*freed(A, 100), entry("alloc", B, 100)],
        [entry("alloc", A, 100), *freed(A, 90)],
    ],
    ids=["allocated twice", "freed unknown", "freed in another size"],
)
def test_a_history_that_contradicts_itself_is_refused(trace: list[dict[str, Any]]) -> None:
    with pytest.raises(MeasurementError, match="allocator's history"):
        read_history(history(trace, [], stop=counters((1, 1), 100)))


def test_a_history_that_contradicts_the_counter_is_refused() -> None:
    trace = [entry("alloc", A, 100), *freed(A, 100)]
    with pytest.raises(MeasurementError, match=r"after 1 events 100 bytes .* and 101 by its counter"):
        read_history(history(trace, [counters((1, 0), 101)], stop=counters((1, 1), 0)))


def test_live_blocks_are_the_allocated_ones_of_the_device() -> None:
    def block(address: int, size: int, requested: int, state: str) -> dict[str, Any]:
        return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": []}

    def segment(device: int, *blocks: dict[str, Any]) -> dict[str, Any]:
        return {"device": device, "address": blocks[0]["address"], "total_size": 2 * MIB, "blocks": list(blocks)}

    snapshot = {
        "segments": [
            segment(0, block(A, 512, 100, "active_allocated"), block(A + 512, 512, 30, "active_pending_free")),
            segment(1, block(B, 512, 7, "active_allocated")),
            segment(0, block(C, 1024, 600, "active_allocated"), block(C + 1024, 2 * MIB - 1024, 0, "inactive")),
        ],
        "device_traces": [[], []],
    }
    assert live_blocks(snapshot, 0) == (Block(A, 512, 100), Block(C, 1024, 600))
    assert live_blocks(snapshot, 1) == (Block(B, 512, 7),)


def test_counters_are_read_by_their_documented_names() -> None:
    def stat(current: int, allocated: int = 0, freed: int = 0) -> dict[str, dict[str, int]]:
        return {"all": {"current": current, "peak": current, "allocated": allocated, "freed": freed}}

    stats = {
        "allocation": stat(3, allocated=10, freed=7),
        "active": stat(4),
        "allocated_bytes": stat(2048),
        "requested_bytes": stat(1500),
    }
    found = counters_of(stats)
    assert found == Counters(allocations=10, frees=7, pending=1, allocated_bytes=2048, requested_bytes=1500)
    assert found.changes == 17


def counted(allocated: int) -> tuple[DeviceReading, ...]:
    return (
        DeviceReading(source="nvml.process", quantity="allocated", size_bytes=1),
        DeviceReading(source=COUNTER, quantity="requested", size_bytes=2),
        DeviceReading(source=COUNTER, quantity="allocated", size_bytes=allocated),
    )


def peak_of(*sizes: int) -> Peak:
    return Peak(position=0, live_bytes=sum(sizes), composition={"weights": sum(sizes)}, blocks=sizes)


def card(slack: int | None = MIB) -> CudaRecording:
    return CudaRecording(events=[], positions=[], slack_bytes=slack)


@pytest.mark.parametrize(
    ("sizes", "slack", "most"),
    [
        ((512, 1024), MIB, 0),
        ((1,), MIB, 511),
        ((100, 600), MIB, 412 + 424),
        ((MIB,), MIB, 0),
        ((MIB + 1,), MIB, 511 + MIB),
        ((MIB + 1,), 0, 511),
        ((MIB - 1,), MIB, 1),
    ],
)
def test_the_most_that_rounding_can_be(sizes: tuple[int, ...], slack: int, most: int) -> None:
    assert most_rounding(sizes, slack) == most


@pytest.mark.parametrize(
    ("settings", "slack"),
    [
        ("", MIB),
        ("garbage_collection_threshold:0.8", MIB),
        ("expandable_segments:True", 0),
        ("garbage_collection_threshold:0.8, expandable_segments: True", 0),
        ("roundup_power2_divisions:4", None),
        ("max_split_size_mb:128,expandable_segments:True", None),
    ],
)
def test_the_rest_of_a_block_that_is_not_split_off(settings: str, slack: int | None) -> None:
    assert slack_bytes(settings) == slack


def test_what_the_counter_has_over_the_replay_is_rounding() -> None:
    parts, readings = account(card(), peak_of(100, 600), counted(512 + 1024))
    assert parts == {"weights": 700, "rounding": 836, "unexplained": 0}
    assert sum(parts.values()) == 1536
    assert readings == counted(1536)


def test_what_rounding_cannot_be_is_unexplained() -> None:
    parts, _ = account(card(), peak_of(100, 600), counted(512 + 1024 + 4096))
    assert parts == {"weights": 700, "rounding": 836, "unexplained": 4096}


def test_where_the_rules_of_rounding_are_not_known_all_of_the_gap_is_rounding() -> None:
    parts, _ = account(card(slack=None), peak_of(600), counted(8192))
    assert parts == {"weights": 600, "rounding": 7592, "unexplained": 0}


def test_unnamed_blocks_from_before_stay_unexplained_beside_rounding() -> None:
    peak = Peak(position=0, live_bytes=712, composition={"weights": 200, "unexplained": 512}, blocks=(200, 512))
    parts, _ = account(card(), peak, counted(1024))
    assert parts == {"weights": 200, "unexplained": 512, "rounding": 312}


def test_a_replay_above_the_counter_is_kept_and_said() -> None:
    parts, readings = account(card(), peak_of(1000), counted(900))
    assert parts == {"weights": 1000}
    assert readings[:-1] == counted(900)
    assert readings[-1].quantity == "allocated_excess"
    assert readings[-1].size_bytes == 100
    assert "the replay is kept" in readings[-1].source


def test_a_cpu_recording_is_left_as_it_is() -> None:
    recording = Recording(events=[Event(A, 5)], positions=[])
    held, labels = [Given(A, 5, "weights")], [Label(A + 1, "outputs", 1)]
    assert known_blocks(recording, held, 0, labels) == (held, labels)
    readings = (DeviceReading(source="/proc/self/status", quantity="rss_anon", size_bytes=9),)
    assert account(recording, peak_of(5), readings) == ({"weights": 5}, readings)


def test_labels_move_to_the_start_of_their_block() -> None:
    events = [Event(B, 100), Event(B, 0), Event(B, 10)]
    labels = [
        Label(A, "weights", 0),
        Label(A + 99, "buffers", 0),
        Label(A + 100, "inputs", 0),
        Label(B + 50, "outputs", 1, since_birth=False),
        Label(B + 50, "outputs", 3),
    ]
    moved = at_block_starts([Given(A, 100, "unexplained")], events, labels)
    assert sorted(moved, key=lambda label: label.category) == [
        Label(A, "buffers", 0),
        Label(B, "outputs", 1, since_birth=False),
        Label(A, "weights", 0),
    ]


def test_a_whole_run_adds_up() -> None:
    """Weights of 1000 lie in two slices of one block, 300 are of nobody; a cache of 200 grows to 250 by a copy."""
    before = (Block(A, 1024, 1000), Block(B, 512, 300))
    trace = [entry("alloc", C, 200), entry("alloc", C + 512, 250), *freed(C, 200), entry("alloc", C, 20), *freed(C, 20)]
    requested = [1300, 1500, 1550, 1550]
    marks = [counters(at, size) for at, size in zip([(0, 0), (1, 0), (2, 1), (3, 2)], requested, strict=True)]
    recording = read_history(history(trace, marks, stop=marks[-1], before=before))
    held = [Given(A, 400, "weights"), Given(A + 400, 600, "weights")]
    cached = [Label(C, "kv_cache", 1, since_birth=False), Label(C + 512, "kv_cache", 3, since_birth=False)]
    given, labels = known_blocks(recording, held, 0, cached)
    grown, steady = replay(given, recording.events, labels, [Window(0, 3), Window(3, 5)])
    parts, _ = account(recording, grown, counted(1024 + 512 + 512 + 512))
    assert parts == {
        "weights": 1000,
        "unexplained": 300,
        "kv_cache": 200,
        "temporaries": 250,
        "rounding": 24 + 212 + 312 + 262,
    }
    parts, _ = account(recording, steady, counted(1024 + 512 + 512 + 512))
    assert parts["kv_cache"] == 250
    assert parts["temporaries"] == 20
    assert sum(parts.values()) == 2560


def test_a_load_names_what_it_made() -> None:
    """The warm-up block of transformers comes first and goes; the weights are named from their own birth."""
    trace = [entry("alloc", A, 900), *freed(A, 900), entry("alloc", A, 500), entry("alloc", B, 500)]
    recording = read_history(history(trace, [], stop=counters((3, 1), 1000)))
    held = [Given(A, 500, "weights"), Given(B, 500, "weights")]
    given, labels = known_blocks(recording, held, 4, [])
    (peak,) = replay(given, recording.events, labels, [Window(0, 4)])
    parts, _ = account(recording, peak, counted(1024))
    assert parts == {"weights": 1000, "rounding": 24, "unexplained": 0}
