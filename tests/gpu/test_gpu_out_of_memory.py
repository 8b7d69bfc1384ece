"""On a card: running out of memory is an outcome, and the sweep goes on in a fresh worker."""

from __future__ import annotations

from pathlib import Path

import pytest
from on_a_card import all_peaks, counter, need_card, save_llama

from gpufit.profile.cells import Measured, OutOfMemory, Skipped
from gpufit.profile.peaks import Phase
from gpufit.sources.measure.campaign import Campaign
from gpufit.sources.measure.listener import Listener
from gpufit.sources.measure.request import ProfileRequest
from gpufit.units import GIB

pytestmark = [pytest.mark.gpu, pytest.mark.model]

LONG = 65536
"""Eager attention keeps 32 heads x 65536 x 65536 scores in bfloat16: 256 GiB in one tensor, more than a card has."""


@pytest.fixture(scope="module", autouse=True)
def card() -> None:
    need_card()


def test_the_sweep_goes_on_after_an_out_of_memory(tmp_path: Path) -> None:
    model = save_llama(
        tmp_path / "llama",
        hidden_size=256,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=512,
        max_position_embeddings=2 * LONG,
    )
    loads: list[str] = []
    request = ProfileRequest(
        model=str(model),
        output=tmp_path / "profile.json",
        contexts=(64, LONG),
        concurrencies=(1, 2048),
        new_tokens=2,
        attention="eager",
        device="cuda",
    )
    profile = Campaign(request, Listener(progress=loads.append)).run()
    outcomes = {(cell.context_tokens, cell.concurrency): cell.outcome for cell in profile.cells}
    full = outcomes[LONG, 1]
    assert isinstance(full, OutOfMemory)
    assert full.phase is Phase.PREFILL
    assert full.asked_bytes is not None
    assert full.asked_bytes > GIB
    assert full.limit_bytes == profile.environment.device.total_bytes
    assert "out of memory" in full.message
    assert isinstance(outcomes[64, 1], Measured)
    assert isinstance(outcomes[64, 2048], Measured)
    assert isinstance(outcomes[LONG, 2048], Skipped)
    assert loads.count("loading the model") == 2


def test_a_memory_limit_is_what_the_allocator_runs_into(tmp_path: Path) -> None:
    # The weights are about 250 MiB; all logits of 2048 x 8 tokens are 2048 x 8 x 32000 x 2 bytes: 1 GiB
    model = save_llama(tmp_path / "llama")
    request = ProfileRequest(
        model=str(model),
        output=tmp_path / "profile.json",
        contexts=(64, 2048),
        concurrencies=(1, 8),
        new_tokens=2,
        logits_kept="all",
        device="cuda",
        memory_limit_bytes=GIB,
    )
    profile = Campaign(request, Listener()).run()
    outcomes = {(cell.context_tokens, cell.concurrency): cell.outcome for cell in profile.cells}
    full = outcomes[2048, 8]
    assert isinstance(full, OutOfMemory)
    assert full.limit_bytes == GIB < profile.environment.device.total_bytes
    assert isinstance(outcomes[64, 1], Measured)
    assert isinstance(outcomes[64, 8], Measured)
    assert all(counter(peak, "reserved") <= GIB for peak in all_peaks(profile))
