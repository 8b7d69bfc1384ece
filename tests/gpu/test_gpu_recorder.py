"""On a card: storages are the allocator's blocks, and a recording read again says the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from on_a_card import KV_BYTES_PER_TOKEN, LLAMA, need_card

from gpufit.sources.measure.cuda_history import read_history

pytestmark = [pytest.mark.gpu, pytest.mark.model]


@pytest.fixture(scope="module", autouse=True)
def card() -> None:
    need_card()


@pytest.fixture(scope="module")
def model(card: None) -> Any:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(**LLAMA)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).to("cuda").eval()


def blocks() -> dict[int, int]:
    """Requested size by address of everything that the allocator has handed out."""
    import torch

    from gpufit.sources.measure.cuda_history import live_blocks

    snapshot = torch.cuda.memory._snapshot()
    return {block.address: block.requested_bytes for block in live_blocks(snapshot, torch.cuda.current_device())}


def test_storages_are_the_blocks_that_the_allocator_handed_out(model: Any) -> None:
    from gpufit.sources.measure.storages import resident_model

    live = blocks()
    for one in resident_model(model, "cuda").given:
        assert live[one.address] == one.size_bytes


def test_the_cache_after_a_decode_step_is_its_storages(model: Any) -> None:
    import torch

    from gpufit.sources.measure.storages import storages_within

    with torch.no_grad():
        prompt = torch.zeros((3, 17), dtype=torch.long, device="cuda")
        cache = model(input_ids=prompt, use_cache=True).past_key_values
        model(input_ids=prompt[:, :1], past_key_values=cache, use_cache=True)
    live = blocks()
    found = storages_within(cache)
    assert sum(one.size_bytes for one in found.values()) == KV_BYTES_PER_TOKEN * 3 * 18
    assert all(live[address] == one.size_bytes for address, one in found.items())


def test_the_snapshot_adds_up_to_the_counters(model: Any) -> None:
    import torch

    from gpufit.sources.measure.cuda_history import counters_of, live_blocks

    index = torch.cuda.current_device()
    torch.cuda.synchronize()
    found = live_blocks(torch.cuda.memory._snapshot(), index)
    counters = counters_of(torch.cuda.memory_stats_as_nested_dict(index))
    assert sum(block.size_bytes for block in found) == counters.allocated_bytes
    assert counters.pending > 0 or sum(block.requested_bytes for block in found) == counters.requested_bytes


def test_every_mark_is_at_its_allocation(model: Any) -> None:
    import torch

    from gpufit.sources.measure.cuda import CudaRecorder

    recorder = CudaRecorder(torch.cuda.current_device())
    recorder.start()
    recorder.mark()
    kept = torch.empty(1000, dtype=torch.uint8, device="cuda")
    recorder.mark()
    torch.empty(3 * 2**20, dtype=torch.uint8, device="cuda")
    recorder.mark()
    recording = recorder.stop()
    assert recording.positions == [0, 1, 3]
    assert [event.size_bytes for event in recording.events] == [1000, 3 * 2**20, 0]
    assert recording.events[0].address == kept.data_ptr()


def test_a_block_in_use_on_another_stream_is_freed_when_that_was_requested(model: Any) -> None:
    import torch

    from gpufit.sources.measure.cuda import CudaRecorder

    recorder = CudaRecorder(torch.cuda.current_device())
    side = torch.cuda.Stream()
    recorder.start()
    block = torch.empty(2**20, dtype=torch.uint8, device="cuda")
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
    block.record_stream(side)
    del block
    recorder.mark()
    torch.cuda.synchronize()
    torch.empty(1000, dtype=torch.uint8, device="cuda")  # an allocation is what completes pending frees
    recorder.mark()
    assert recorder.stop().positions == [2, 4]


def test_a_kept_run_says_the_same_when_it_is_read_again(model: Any, tmp_path: Path) -> None:
    from gpufit.memory.terms import Shape
    from gpufit.sources.measure.device import open_device
    from gpufit.sources.measure.recordings import load_run, record_run, save_run
    from gpufit.sources.measure.run import peaks

    path = tmp_path / "run.json.gz"
    kept = record_run(model, open_device("cuda"), Shape(32, 2, 1))
    save_run(kept, path)
    assert path.stat().st_size < 300_000
    again = load_run(path)
    recording = read_history(again.history)
    assert peaks(recording, again.labels, again.stretches, again.held, again.spans) == kept.peaks
