"""The dispatch feeder against the CPU's own, over the same run of the same model, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from architectures import ARCHITECTURES
from measure_plan import make_decoder
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor
from torchao.quantization import Int8WeightOnlyConfig, quantize_

from gpufit.memory.replay import Event, Peak, Window, replay
from gpufit.memory.terms import Shape
from gpufit.profile.peaks import DeviceReading
from gpufit.sources.measure.cpu import CpuRecorder
from gpufit.sources.measure.dispatch import DispatchRecorder
from gpufit.sources.measure.observer import Observer
from gpufit.sources.measure.recording import Recording, bytes_by_operation
from gpufit.sources.measure.run import PhaseSpan, RunPlan, recorded_run
from gpufit.sources.measure.storages import address_of, resident_model, storages_within

pytestmark = pytest.mark.model


class StampingRecorder(DispatchRecorder):
    """Stamps each of its events with a moment of the CPU's recording of the same run."""

    def __init__(self, clock: CpuRecorder) -> None:
        super().__init__()
        self.clock = clock
        self.stamps: list[int] = []

    def happened(self, event: Event) -> None:
        super().happened(event)
        self.stamps.append(self.clock.mark())


class BothRecorders:
    """One run under both feeders. A moment is a moment of either; `stop` hands over the CPU's recording."""

    def __init__(self) -> None:
        self.cpu = CpuRecorder()
        self.dispatch = StampingRecorder(self.cpu)
        self.marks: list[int] = []

    def start(self) -> None:
        self.cpu.start()
        self.dispatch.start()

    def mark(self) -> int:
        self.marks.append(self.cpu.mark())
        return self.dispatch.mark()

    def begin_phase(self) -> None:
        """Neither has a counter."""

    def end_phase(self) -> tuple[DeviceReading, ...]:
        return ()

    def stop(self) -> Recording:
        self.seen = self.dispatch.stop()
        everything = self.cpu.stop()
        self.stamps = [everything.positions[moment] for moment in self.dispatch.stamps]
        positions = [everything.positions[moment] for moment in self.marks]
        return Recording(everything.events, positions, operations=everything.operations)

    def abandon(self) -> None:
        self.dispatch.abandon()
        self.cpu.abandon()


@dataclass
class Block:
    """One allocation of the CPU's stream, by index of its event and of the one that freed it."""

    address: int
    size_bytes: int
    born: int
    died: int | None = None


def blocks_of(events: Sequence[Event]) -> list[Block]:
    live: dict[int, Block] = {}
    blocks = []
    for index, event in enumerate(events):
        if event.address in live:
            live.pop(event.address).died = index
        if event.size_bytes:
            blocks.append(Block(event.address, event.size_bytes, index))
            live[event.address] = blocks[-1]
    return blocks


@dataclass
class DoubleRun:
    """A run seen by both: the CPU's blocks that dispatch saw, those it did not, and what is needed to replay."""

    everything: Recording
    seen: Recording
    matched: list[Block]
    scratch: list[Block]
    observer: Observer
    spans: list[PhaseSpan]
    model: Any


def run_both(model: Any, shape: Shape) -> DoubleRun:
    """Run once under both recorders and find every event of dispatch among the CPU's at its very moment."""
    both: list[BothRecorders] = []

    def make_recorder() -> BothRecorders:
        both.append(BothRecorders())
        return both[-1]

    plan = RunPlan(make_decoder(), make_recorder, synchronize=lambda: None, entering=lambda phase: None)
    with torch.no_grad():
        plan.driver.run(model, Shape(4, 2, 1), Silence())  # what is made once and kept is not this run's
    everything, observer, spans = recorded_run(model, plan, shape)
    (recorder,) = both
    blocks = blocks_of(everything.events)
    alive: dict[int, Block] = {}
    matched = []
    before = 0
    for event, stamp in zip(recorder.seen.events, recorder.stamps, strict=True):
        if event.size_bytes:
            (block,) = [
                one
                for one in blocks
                if one.address == event.address and one.born < stamp and (one.died is None or one.died >= stamp)
            ]
            assert block.size_bytes == event.size_bytes
            assert block.born >= before, "born since the operation before it was over"
            matched.append(block)
            alive[event.address] = block
        else:
            block = alive.pop(event.address)
            # The object that Python sees and the bytes behind it go one after the other, with nothing between.
            assert block.died in (stamp - 1, stamp)
            before = stamp
    assert all(block.died is None for block in alive.values())
    births = {block.born for block in matched}
    scratch = [block for block in blocks if block.born not in births]
    return DoubleRun(everything, recorder.seen, matched, scratch, observer, spans, model)


class Silence:
    def label(self, thing: Any, category: Any) -> None: ...

    def phase_began(self, phase: Any) -> None: ...

    def step_began(self) -> None: ...

    def phase_ended(self, phase: Any, cached_tokens: int) -> None: ...


def without(recording: Recording, left_out: Sequence[Block]) -> Recording:
    """The recording as it would be had these blocks never been."""
    indexes = {index for block in left_out for index in (block.born, block.died) if index is not None}
    kept_before = [0]
    for index in range(len(recording.events)):
        kept_before.append(kept_before[-1] + (index not in indexes))
    events = [event for index, event in enumerate(recording.events) if index not in indexes]
    return Recording(events, [kept_before[position] for position in recording.positions])


def peaks_of(run: DoubleRun, recording: Recording) -> tuple[Peak, ...]:
    windows = [Window(recording.positions[span.start], recording.positions[span.end]) for span in run.spans]
    given = resident_model(run.model, "cpu").given
    return replay(given, recording.events, run.observer.labels(recording.positions), windows)


FAMILIES = [
    ("llama", "bfloat16"),
    ("llama", "float32"),
    ("gpt2", "bfloat16"),
    ("gemma3", "bfloat16"),
    ("mixtral", "bfloat16"),
    ("deepseek_v3", "bfloat16"),
    ("mamba2", "float32"),
    ("qwen3_next", "bfloat16"),
]


def recorded(*steps: Any) -> tuple[list[tuple[str, int]], Recording]:
    """(each event as `+` or `-` with its size, the recording) of steps, each done when the one before is over."""
    recorder = DispatchRecorder()
    recorder.start()
    for step in steps:
        step()
    recording = recorder.stop()
    sizes: dict[int, int] = {}
    signs = []
    for address, size in recording.events:
        signs.append(("+", size) if size else ("-", sizes.get(address, 0)))
        sizes[address] = size
    return signs, recording


def test_a_free_is_an_event_when_it_happens_and_a_view_keeps_its_whole_storage() -> None:
    recorder = DispatchRecorder()
    recorder.start()
    whole = torch.zeros(1000)
    view = whole[:10]
    del whole
    recorder.mark()
    other = torch.ones(2, dtype=torch.float64)
    place = view.untyped_storage().data_ptr()
    del view
    recorder.mark()
    recording = recorder.stop()
    assert recording.events == [Event(place, 4000), Event(other.untyped_storage().data_ptr(), 16), Event(place, 0)]
    assert recording.positions == [1, 3]


def test_after_the_end_nothing_more_is_recorded() -> None:
    recorder = DispatchRecorder()
    recorder.start()
    kept = torch.zeros(4)
    recording = recorder.stop()
    del kept
    torch.zeros(5)
    torch.zeros(6).untyped_storage().resize_(1)
    assert [event.size_bytes for event in recording.events] == [16]


def test_storages_that_grow_in_place_are_a_free_and_an_allocation() -> None:
    tensor = torch.zeros(4)
    recorder = DispatchRecorder()
    recorder.start()
    tensor.resize_(8)  # an operation, on a storage from before the recording
    storage = tensor.untyped_storage()
    storage.resize_(40)  # no operation
    empty = torch.empty(0)
    torch.cat([tensor, tensor], out=empty)  # filled by an operation
    storage.resize_(0)
    recording = recorder.stop()
    # 4 floats were there before; 8 floats; 40 bytes; 16 floats beside them; and the first gone.
    assert [event.size_bytes for event in recording.events] == [0, 32, 0, 40, 64, 0]
    (peak,) = replay([], recording.events, [], [Window(0, 6)])
    assert peak.live_bytes == 104


def test_a_storage_from_before_that_is_resized_itself_is_a_free_and_an_allocation() -> None:
    storage = torch.zeros(4).untyped_storage()
    place = storage.data_ptr()
    _, recording = recorded(lambda: storage.resize_(400))
    assert recording.events == [Event(place, 0), Event(storage.data_ptr(), 400)]


def test_what_a_quantised_weight_makes_of_itself_in_a_product_is_seen() -> None:
    linear = torch.nn.Linear(128, 256, bias=False, dtype=torch.bfloat16)
    quantize_(linear, Int8WeightOnlyConfig())
    with torch.no_grad():
        signs, _ = recorded(lambda: linear(torch.zeros(2, 128, dtype=torch.bfloat16)))
    # The weight as bfloat16, made for the product and gone with it.
    assert ("+", 128 * 256 * 2) in signs
    assert ("-", 128 * 256 * 2) in signs


def test_the_end_of_a_storage_from_before_is_seen_once_an_operation_has_used_it() -> None:
    held = [torch.zeros(4)]
    place = held[0].untyped_storage().data_ptr()
    signs, recording = recorded(lambda: held[0].sum(), held.clear)
    assert signs == [("+", 4), ("-", 4), ("-", 0)]
    assert recording.events[-1] == Event(place, 0)


def test_what_torch_makes_of_python_values_is_seen() -> None:
    kept = []
    signs, _ = recorded(lambda: kept.append(torch.tensor([1.0, 2.0, 3.0])))
    assert signs == [("+", 12)]


class Widening(TwoTensor):
    """A wrapper tensor that computes in float64 and gives float32, out of sight of the operation it is asked for."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        wide = [one.a.double() if isinstance(one, Widening) else one for one in args]
        return func(*wide, **(kwargs or {})).float()


def test_what_a_wrapper_tensor_makes_and_drops_in_its_own_dispatch_is_seen() -> None:
    wrapped = Widening(torch.zeros(8), torch.zeros(8))
    kept = []
    signs, _ = recorded(lambda: kept.append(wrapped.exp()))
    # Twice 8 float64 (widened, and its exp), then 8 float32 that stay.
    assert sorted(signs) == [("+", 32), ("+", 64), ("+", 64), ("-", 64), ("-", 64)]


def test_a_wrapper_tensor_is_followed_by_the_plain_ones_inside_it() -> None:
    wrapped = TwoTensor(torch.zeros(8), torch.zeros(8))
    kept = []
    signs, recording = recorded(lambda: kept.append(wrapped + 1))
    assert signs == [("+", 32), ("+", 32)]
    assert {event.address for event in recording.events} == set(storages_within(kept))


def test_what_lies_on_another_device_is_none_of_its_events() -> None:
    kept = []
    signs, _ = recorded(lambda: kept.append(torch.zeros(8, device="meta")))
    assert signs == []


def test_a_fake_storage_has_one_address_of_its_own_as_long_as_it_lives() -> None:
    with FakeTensorMode():
        first, second = torch.zeros(4), torch.zeros(4)
        (seen,), (other,) = storages_within(first), storages_within(second)
        assert seen != other
        assert address_of(first[2:].untyped_storage()) == seen
        del first
        (later,) = storages_within(torch.zeros(4))
        assert later not in (seen, other)


def test_a_fake_mode_that_a_library_enters_takes_no_memory() -> None:
    def work_out_a_shape() -> None:
        with FakeTensorMode():
            torch.zeros(1000, 1000)

    assert recorded(work_out_a_shape)[0] == []


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma3", "deepseek_v3"])
def test_a_fake_run_has_the_peaks_of_the_real_one(family: str) -> None:
    def peaks(model: Any) -> list[tuple[int, Any]]:
        plan = RunPlan(make_decoder(), DispatchRecorder, synchronize=lambda: None, entering=lambda phase: None)
        recording, observer, spans = recorded_run(model, plan, Shape(48, 3, 2))
        windows = [Window(recording.positions[span.start], recording.positions[span.end]) for span in spans]
        given = resident_model(model, "cpu").given
        found = replay(given, recording.events, observer.labels(recording.positions), windows)
        return [(peak.live_bytes, peak.composition) for peak in found]

    # Eager attention always has its mask; sdpa leaves out one that masks nothing, which only real values can tell.
    real = peaks(ARCHITECTURES[family]().build(attn_implementation="eager"))
    with FakeTensorMode():
        fake = peaks(ARCHITECTURES[family]().build(attn_implementation="eager"))
    assert fake == real
    assert all(composition["kv_cache"] > 0 for _, composition in fake)


@pytest.mark.parametrize(("family", "dtype"), FAMILIES)
def test_what_dispatch_saw_is_the_cpus_own_record_and_the_rest_is_scratch_inside_a_named_operation(
    family: str, dtype: str
) -> None:
    run = run_both(ARCHITECTURES[family]().build(dtype), Shape(48, 3, 2))
    assert len(run.matched) > 100
    for block in run.scratch:
        names = {run.everything.operations[index] for index in (block.born, block.died) if index is not None}
        # The one thing made outside of any operation: a Python number among its arguments, as a double.
        assert block.died is not None
        assert "" not in names or block.size_bytes == 8
    named = bytes_by_operation(run.everything, [block.born for block in run.scratch])
    named.pop("", None)
    assert named
    assert all(name.startswith("aten::") for name in named)
    assert sum(named.values()) > 1000, "kernels of this family take scratch"
    assert {"aten::view", "aten::cat", "aten::embedding"}.isdisjoint(named), "these need none"
    # The same composition, byte for byte, once the scratch is taken off.
    seen = peaks_of(run, run.seen)
    rest = peaks_of(run, without(run.everything, run.scratch))
    assert [(one.live_bytes, one.composition) for one in seen] == [(one.live_bytes, one.composition) for one in rest]
