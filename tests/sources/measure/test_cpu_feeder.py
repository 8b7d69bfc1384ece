"""The CPU feeder against torch's own totals, on a real run."""

from __future__ import annotations

import pytest
import torch
import transformers
from measure_plan import make_plan
from model_files import LLAMA

from gpufit.errors import MeasurementError
from gpufit.memory.replay import Event, Given, Label, Window, replay
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured
from gpufit.profile.peaks import NamedSize, Phase
from gpufit.sources.measure.cpu import CpuRecorder, Row, read_event_tree
from gpufit.sources.measure.recording import Recording, bytes_by_operation, largest_temporaries
from gpufit.sources.measure.run import measure_cell, recorded_run
from gpufit.sources.measure.storages import resident_model, storages_within

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def llama() -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**LLAMA)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def measure(model: transformers.PreTrainedModel, shape: Shape, **changes: object) -> Measured:
    return measure_cell(model, make_plan(**changes), shape, resident_model(model, "cpu"))


def test_every_allocation_of_known_size_is_seen_at_its_moment() -> None:
    recorder = CpuRecorder()
    recorder.start()
    before = recorder.mark()
    first = torch.zeros(1000, dtype=torch.float32)
    between = recorder.mark()
    second = torch.zeros(500, dtype=torch.float64)
    both = recorder.mark()
    del first
    after = recorder.mark()
    recording = recorder.stop()
    at = [recording.positions[moment] for moment in (before, between, both, after)]
    events = recording.events[at[0] : at[3]]
    assert [event.size_bytes for event in events] == [4000, 4000, 0]
    assert at == [at[0], at[0] + 1, at[0] + 2, at[0] + 3]
    assert second.untyped_storage().data_ptr() == events[1].address


def test_the_replayed_peak_is_the_profilers_own_maximum(llama: transformers.PreTrainedModel) -> None:
    recorder = CpuRecorder()
    recorder.start()
    with torch.no_grad():
        llama(input_ids=torch.zeros((2, 48), dtype=torch.long))
    profile = recorder._profile
    recording = recorder.stop()
    totals = []
    waiting = list(profile.profiler.kineto_results.experimental_event_tree())
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children)
        if "Allocation" in type(node.extra_fields).__name__:
            totals.append((node.start_time_ns, node.extra_fields.total_allocated, node.extra_fields.alloc_size))
    first = min(totals)
    base = first[1] - first[2]
    (peak,) = replay((), recording.events, (), [Window(0, len(recording.events))])
    assert peak.live_bytes == max(total for _, total, _ in totals) - base
    assert peak.live_bytes > 0


def test_the_cache_holds_what_arithmetic_says_after_prefill_and_after_decode(
    llama: transformers.PreTrainedModel,
) -> None:
    shape = Shape(context_tokens=100, new_tokens=5, concurrency=3)
    phases = {peak.phase: peak for peak in measure(llama, shape).phases}
    # 2 layers x (key, value) x 2 KV heads x 16 x 2 bytes = 256 bytes a token of each sequence.
    assert phases[Phase.PREFILL].parts.kv_cache_bytes == 256 * 100 * 3
    assert phases[Phase.DECODE].cached_tokens == 104
    # At the peak of decode the last step is under way: each layer holds 103 or 104 tokens.
    assert 256 * 103 * 3 <= phases[Phase.DECODE].parts.kv_cache_bytes <= 256 * 104 * 3


def test_parts_add_up_to_the_byte_and_nothing_is_unexplained(llama: transformers.PreTrainedModel) -> None:
    for shape in (Shape(7, 3, 1), Shape(64, 2, 4), Shape(200, 6, 2)):
        for peak in measure(llama, shape).phases:
            assert peak.parts.total_bytes == peak.allocated_bytes
            assert peak.parts.unexplained_bytes == 0
            assert peak.parts.rounding_bytes == 0


def test_keeping_all_logits_adds_them_to_the_outputs() -> None:
    config = transformers.LlamaConfig(**(LLAMA | {"vocab_size": 8192}))
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    shape = Shape(context_tokens=256, new_tokens=1, concurrency=2)
    (kept,) = measure(model, shape, logits_kept="all", vocabulary=8192).phases
    (last,) = measure(model, shape, logits_kept="last", vocabulary=8192).phases
    # 2 x 256 positions x 8192 entries x 2 bytes are the largest thing there is; the last position's are not.
    assert kept.parts.outputs_bytes == 2 * 256 * 8192 * 2
    assert last.parts.outputs_bytes <= 2 * 8192 * 2


def test_one_token_has_no_decode_phase(llama: transformers.PreTrainedModel) -> None:
    assert [peak.phase for peak in measure(llama, Shape(16, 1, 1)).phases] == [Phase.PREFILL]


def test_a_repeated_run_has_the_same_bytes(llama: transformers.PreTrainedModel) -> None:
    shape = Shape(96, 4, 2)
    first, second = measure(llama, shape), measure(llama, shape)
    assert [peak.parts for peak in first.phases] == [peak.parts for peak in second.phases]


def test_tied_weights_count_once() -> None:
    config = transformers.LlamaConfig(**(LLAMA | {"tie_word_embeddings": True}))
    tied = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    untied = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(**LLAMA), dtype=torch.bfloat16)
    sizes = [
        sum(storage.size_bytes for storage in resident_model(model, "cpu").weights.values()) for model in (tied, untied)
    ]
    assert sizes[1] - sizes[0] == 256 * 64 * 2


def test_a_view_keeps_its_whole_storage() -> None:
    whole = torch.zeros(1000, dtype=torch.float32)
    found = storages_within({"layers": [whole[:10], whole[990:]]})
    assert [storage.size_bytes for storage in found.values()] == [4000]


def test_each_event_names_the_operation_it_happened_in() -> None:
    left = torch.ones(8, 8)
    recorder = CpuRecorder()
    recorder.start()
    product = left @ left
    kept = torch.softmax(product, dim=-1, dtype=torch.float64)
    copied = kept.t().contiguous()
    recording = recorder.stop()
    del copied
    # A product of 8 x 8 float32; its cast to 8 bytes and the softmax of that, the cast freed at the end; the copy.
    events = [(name, event.size_bytes) for name, event in zip(recording.operations, recording.events, strict=True)]
    assert [one for one in events if one[1] >= 256] == [
        ("aten::mm", 256),
        ("aten::_to_copy", 512),
        ("aten::_softmax", 512),
        ("aten::clone", 512),
    ]


def test_bytes_are_summed_by_operation_the_largest_first() -> None:
    events = [Event(1, 10), Event(2, 30), Event(1, 0), Event(3, 25)]
    recording = Recording(events, [], operations=["mm", "cat", "", "mm"])
    assert list(bytes_by_operation(recording, [0, 1, 3]).items()) == [("mm", 35), ("cat", 30)]
    assert bytes_by_operation(recording, [1]) == {"cat": 30}


def test_the_temporaries_at_a_peak_are_told_by_the_operations_that_made_them(
    llama: transformers.PreTrainedModel,
) -> None:
    (prefill,) = measure(llama, Shape(200, 1, 2)).phases
    sizes = [one.size_bytes for one in prefill.largest_temporaries]
    assert 1 <= len(sizes) <= 3
    assert sizes == sorted(sizes, reverse=True)
    assert all(one.name.startswith("aten::") for one in prefill.largest_temporaries)
    assert 0 < sum(sizes) <= prefill.parts.temporaries_bytes


def test_a_recorder_that_knows_no_operations_names_none() -> None:
    events = [Event(1, 10), Event(2, 30), Event(3, 5)]
    labels = [Label(2, "outputs", 2)]
    (peak,) = replay([Given(9, 7, "temporaries")], events, labels, [Window(0, 3)])
    assert peak.temporaries == (0, 2)
    assert largest_temporaries(Recording(events, []), peak) == ()
    named = Recording(events, [], operations=["aten::mm", "aten::mm", ""])
    assert largest_temporaries(named, peak) == (
        NamedSize(name="aten::mm", size_bytes=10),
        NamedSize(name="outside of operations", size_bytes=5),
    )


def test_totals_that_do_not_follow_from_the_events_are_refused() -> None:
    rows = [Row(1, "", 100, 64, 64), Row(2, "", 200, 32, 999)]
    with pytest.raises(MeasurementError, match="do not add up"):
        read_event_tree(rows, 0)


def test_files_mapped_into_memory_are_no_blocks_of_the_allocator() -> None:
    rows = [
        Row(1, "", 5000, 90_000, 0),
        Row(2, "", 100, 64, 64),
        Row(3, "", 5000, -90_000, 0),
        Row(4, "", 100, -64, 0),
    ]
    events = read_event_tree(rows, 0).events
    assert [(event.address, event.size_bytes) for event in events] == [(100, 64), (100, 0)]


def test_the_end_of_a_file_mapped_before_the_recording_is_no_event() -> None:
    rows = [Row(1, "", 100, 64, 64), Row(2, "", 5000, -90_000, 0), Row(3, "", 100, -64, 0)]
    events = read_event_tree(rows, 0).events
    assert [(event.address, event.size_bytes) for event in events] == [(100, 64), (100, 0)]


def test_a_run_that_fails_keeps_its_own_error_and_leaves_no_recording_on(llama: transformers.PreTrainedModel) -> None:
    with pytest.raises(IndexError):
        recorded_run(llama, make_plan(vocabulary=100_000), Shape(8, 2, 1))  # ids that the embedding does not have
    assert measure(llama, Shape(8, 2, 1)).inputs_completed == 1
