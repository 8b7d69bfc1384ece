"""The stream of many layers written from that of few, against the stream of a made-up run of as many layers."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufit.memory.allocator import simulate
from gpufit.memory.replay import Event, Given, Window
from gpufit.sources.simulate.stream import NotRepeatedError, Pass, with_repetitions

KIB = 1024
HELD = (Given(7, 5 * KIB, "weights"),)


@dataclass(frozen=True)
class Layer:
    """What one layer does in a pass: scratch that goes at once, a cache that grows, a state that is replaced."""

    scratch: tuple[int, ...]
    """Sizes in KiB, all alive together, freed in the order in which they were made."""
    hidden: int
    """Size of what is handed to the next layer, which frees it when it is done."""
    cache: int
    """Size that the layer keeps at first; it grows by as much in each pass, into a new block."""


@dataclass
class Written:
    """A run of some layers, written down."""

    events: list[Event] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    alive: dict[str, int] = field(default_factory=dict)
    address: int = 100

    def make(self, name: str, size_kib: int) -> None:
        self.address += 1
        self.alive[name] = self.address
        self.events.append(Event(self.address, size_kib * KIB))

    def drop(self, name: str) -> None:
        self.events.append(Event(self.alive.pop(name), 0))


def run(layer: Layer, repetitions: int, passes: int) -> Written:
    """An embedding, a layer of its own, the repetitions, and a head, as often as asked; the caches go at the end."""
    out = Written()
    for turn in range(passes):
        starts = []
        out.make("hidden", layer.hidden)
        for number in range(1 + repetitions):
            starts.append(len(out.events))
            for place, size in enumerate(layer.scratch):
                out.make(f"scratch {place}", size)
            out.make(f"new cache {number}", layer.cache * (turn + 1))
            if turn:
                out.drop(f"cache {number}")
            out.alive[f"cache {number}"] = out.alive.pop(f"new cache {number}")
            out.make("next", layer.hidden)
            for place, _ in enumerate(layer.scratch):
                out.drop(f"scratch {place}")
            out.drop("hidden")
            out.alive["hidden"] = out.alive.pop("next")
        end = len(out.events)
        out.make("logits", 3)
        out.drop("hidden")
        out.drop("logits")
        out.passes.append(Pass(starts[1], starts[2], starts[3] if len(starts) > 3 else end))
    for number in range(1 + repetitions):
        out.drop(f"cache {number}")
    return out


SIZES = st.integers(1, 3000)
LAYERS = st.builds(Layer, st.lists(SIZES, max_size=4).map(tuple), SIZES, SIZES)


@given(layer=LAYERS, missing=st.integers(1, 6), passes=st.integers(1, 3))
def test_the_written_stream_is_that_of_all_layers(layer: Layer, missing: int, passes: int) -> None:
    few, every = run(layer, 2, passes), run(layer, 2 + missing, passes)
    made = with_repetitions(few.events, few.passes, missing, HELD)
    assert [event.size_bytes for event in made.events] == [event.size_bytes for event in every.events]
    ours, theirs = (
        simulate(events, HELD, windows=[Window(0, len(events))]).windows[0] for events in (made.events, every.events)
    )
    assert ours == theirs
    # Nothing is freed twice or never made, and all that was made is gone at the end.
    alive: set[int] = set()
    for event in made.events:
        assert event.address not in {one.address for one in HELD}
        if event.size_bytes:
            assert event.address not in alive
            alive.add(event.address)
        else:
            alive.remove(event.address)
    assert not alive


@given(layer=LAYERS, missing=st.integers(1, 4))
def test_positions_follow_the_events(layer: Layer, missing: int) -> None:
    few, every = run(layer, 2, 2), run(layer, 2 + missing, 2)
    made = with_repetitions(few.events, few.passes, missing, HELD)
    assert len(made.positions) == len(few.events) + 1
    assert made.positions[0] == 0
    assert made.positions[-1] == len(made.events) == len(every.events)
    for turn, one in enumerate(few.passes):
        assert made.positions[one.first] == every.passes[turn].first
        assert made.positions[one.end] - made.positions[one.second] == (1 + missing) * (one.end - one.second)


def test_repetitions_that_differ_are_not_told() -> None:
    few = run(Layer((1,), 1, 1), 2, 1)
    at = few.passes[0].second
    events = [*few.events[:at], Event(9999, KIB), Event(9999, 0), *few.events[at:]]
    span = Pass(few.passes[0].first, at, few.passes[0].end + 2)
    with pytest.raises(NotRepeatedError):
        with_repetitions(events, [span], 3, HELD)
