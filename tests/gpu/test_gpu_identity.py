"""On a card: the parts add up to the allocator's counter, to the byte, in every phase of a real profile."""

from __future__ import annotations

import pytest
from on_a_card import KV_BYTES_PER_TOKEN, all_peaks, counter, need_card, save_llama, total

from gpufit.catalog.detect import detect_card
from gpufit.catalog.store import load_catalog
from gpufit.profile.cells import Measured
from gpufit.profile.peaks import Phase
from gpufit.profile.record import Profile
from gpufit.profile.store import load_profile
from gpufit.sources.measure.campaign import Campaign
from gpufit.sources.measure.listener import Listener
from gpufit.sources.measure.request import ProfileRequest
from gpufit.units import GIB, MIB

pytestmark = [pytest.mark.gpu, pytest.mark.model]


@pytest.fixture(scope="module", autouse=True)
def card() -> None:
    need_card()


@pytest.fixture(scope="module")
def profile(card: None, tmp_path_factory: pytest.TempPathFactory) -> Profile:
    folder = tmp_path_factory.mktemp("gpu")
    request = ProfileRequest(
        model=str(save_llama(folder / "llama")),
        output=folder / "profile.json",
        contexts=(64, 512),
        concurrencies=(1, 4),
        new_tokens=4,
        device="cuda",
    )
    Campaign(request, Listener()).run()
    return load_profile(folder / "profile.json")


def test_every_phase_was_measured(profile: Profile) -> None:
    assert len(profile.measured_cells) == 4
    assert [peak.phase for peak in all_peaks(profile)] == [Phase.LOAD, *[Phase.PREFILL, Phase.DECODE] * 4]


def test_the_parts_are_the_counters_allocated(profile: Profile) -> None:
    for peak in all_peaks(profile):
        assert peak.parts.total_bytes == peak.allocated_bytes == counter(peak, "allocated"), peak.phase


def test_next_to_nothing_is_unexplained(profile: Profile) -> None:
    for peak in all_peaks(profile):
        assert peak.parts.unexplained_bytes <= 0.005 * peak.allocated_bytes, peak.phase


def test_the_replay_finds_the_peak_that_the_counter_saw(profile: Profile) -> None:
    for peak in all_peaks(profile):
        replayed = peak.allocated_bytes - peak.parts.rounding_bytes
        assert abs(replayed - counter(peak, "requested")) <= peak.parts.rounding_bytes, peak.phase
        assert "allocated_excess" not in {one.quantity for one in peak.readings}


def test_the_totals_contain_each_other(profile: Profile) -> None:
    for peak in all_peaks(profile):
        assert counter(peak, "reserved") >= counter(peak, "active") >= counter(peak, "allocated")
        assert total(peak, "device_used").size_bytes >= counter(peak, "allocated")
        assert total(peak, "process").size_bytes >= counter(peak, "allocated")
        assert counter(peak, "num_ooms") == counter(peak, "num_alloc_retries") == 0


def test_weights_are_the_same_in_every_phase(profile: Profile) -> None:
    weights = 2 * profile.model.parameters
    load, *phases = [peak.parts for peak in all_peaks(profile)]
    assert {parts.weights_bytes for parts in phases} == {weights}
    # transformers warms the allocator up with one block of the model's size; the peak may be that block.
    assert load.weights_bytes + load.temporaries_bytes >= weights


def test_the_cache_grows_by_what_the_shape_dictates(profile: Profile) -> None:
    for cell in profile.measured_cells:
        assert isinstance(cell.outcome, Measured)
        for peak in cell.outcome.phases:
            whole = KV_BYTES_PER_TOKEN * peak.cached_tokens * cell.concurrency
            one_token = KV_BYTES_PER_TOKEN * cell.concurrency
            # At the peak of a decode step some layers may not have stored the step's token yet, and at that of a
            # prefill none may have stored anything.
            assert peak.parts.kv_cache_bytes <= whole
            if peak.phase is Phase.DECODE:
                assert peak.parts.kv_cache_bytes >= whole - one_token


def test_the_context_has_a_context_s_size(profile: Profile) -> None:
    context = profile.environment.device.context_bytes
    assert context is not None
    assert 100 * MIB <= context <= 2 * GIB


def test_the_card_has_a_row_in_the_catalog(profile: Profile) -> None:
    device = profile.environment.device
    found = detect_card(load_catalog(), device.name, device.pci_id, device.total_bytes)
    assert found.card is not None, found.reason
    assert found.warnings == ()


def test_the_device_is_described_in_full(profile: Profile) -> None:
    device = profile.environment.device
    assert device.kind in ("cuda", "rocm")
    assert device.total_bytes > GIB
    assert device.compute_capability
    assert device.runtime


def test_the_profile_is_complete_and_has_a_memory_model(profile: Profile) -> None:
    assert profile.complete
    assert profile.memory_model is not None
