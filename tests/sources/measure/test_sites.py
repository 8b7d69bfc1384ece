"""Places in a model, and the moments measured at them, on small real models."""

from __future__ import annotations

import architectures
import pytest
import torch
from measure_plan import make_plan

from gpufit.memory.terms import Shape
from gpufit.profile.peaks import END_OF_PHASE, Parts, Phase, PhasePeak
from gpufit.sources.measure.run import measure_cell
from gpufit.sources.measure.sites import site_names
from gpufit.sources.measure.storages import resident_model

pytestmark = pytest.mark.model


def measured(name: str, shape: Shape) -> tuple[torch.nn.Module, dict[Phase, PhasePeak]]:
    model = getattr(architectures, name)().build()
    plan = make_plan(sites=site_names(model))
    cell = measure_cell(model, plan, shape, resident_model(model, "cpu"))
    return model, {peak.phase: peak for peak in cell.phases}


def at(peak: PhasePeak, site: str) -> Parts:
    (found,) = [moment.parts for moment in peak.moments if moment.site == site]
    return found


def test_like_layers_share_their_places_and_unlike_ones_do_not() -> None:
    llama = set(site_names(architectures.llama().build()).values())
    assert {"LlamaForCausalLM", "model", "model.layers.0-1.mlp.up_proj", "lm_head"} <= llama
    gemma = set(site_names(architectures.gemma3().build()).values())
    assert {"model.layers.0-4.self_attn", "model.layers.5.self_attn"} <= gemma
    assert "model.layers.0-5.self_attn" not in gemma


def test_layers_are_named_by_their_numbers_however_they_alternate() -> None:
    def stack(widths: list[int]) -> list[str]:
        model = torch.nn.Sequential(torch.nn.ModuleList(torch.nn.Linear(1, width) for width in widths))
        names = site_names(model)
        return [names[layer] for layer in model[0]]

    assert stack([1, 1, 1]) == ["0.0-2"] * 3
    assert stack([1, 2, 1, 2]) == ["0.0,2", "0.1,3", "0.0,2", "0.1,3"]
    assert stack([1, 2] * 5)[:2] == ["0.0,2,...,8", "0.1,3,...,9"]


def test_the_peak_is_the_highest_of_its_moments_and_says_where_it_is() -> None:
    _, peaks = measured("llama", Shape(64, 4, 2))
    for peak in peaks.values():
        sizes = {moment.site: moment.parts.total_bytes for moment in peak.moments}
        assert max(sizes.values()) == peak.allocated_bytes == sizes[peak.site]
        assert at(peak, peak.site) == peak.parts


def test_what_stays_when_a_phase_ends_is_plain_arithmetic() -> None:
    model, peaks = measured("llama", Shape(64, 4, 2))
    weights = sum(parameter.numel() for parameter in model.parameters()) * 2
    prefill, decode = (at(peaks[phase], END_OF_PHASE) for phase in (Phase.PREFILL, Phase.DECODE))
    # 2 layers x (key, value) x 2 KV heads x 16 x 2 bytes = 256 bytes a token; 2 sequences, 64 tokens, then 3 more.
    assert (prefill.weights_bytes, prefill.kv_cache_bytes) == (weights, 256 * 64 * 2)
    assert (decode.weights_bytes, decode.kv_cache_bytes) == (weights, 256 * 67 * 2)
    # Token ids and mask, 8 bytes each a token, and the id that prefill chose, which is the next step's input.
    assert prefill.inputs_bytes == (2 * 64 * 8 + 8) * 2
    assert prefill.outputs_bytes == 256 * 2 * 2  # the last position's logits
    assert (prefill.activations_bytes, decode.activations_bytes) == (0, 0)
    assert (prefill.temporaries_bytes, decode.temporaries_bytes) == (0, 0)


def test_a_sliding_cache_holds_the_whole_prompt_until_decode_replaces_it() -> None:
    _, peaks = measured("mistral", Shape(1000, 3, 1))
    # 256 bytes a token as above; the window holds 384 tokens. Two counters of 8 bytes belong to the two layers.
    assert at(peaks[Phase.PREFILL], END_OF_PHASE).kv_cache_bytes == 256 * 1000 + 2 * 8
    assert at(peaks[Phase.DECODE], END_OF_PHASE).kv_cache_bytes == 256 * 384 + 2 * 8


def test_the_growing_cache_has_a_moment_with_one_storage_twice() -> None:
    _, peaks = measured("llama", Shape(500, 8, 2))
    update = at(peaks[Phase.DECODE], "model.layers.0-1.self_attn, cache update")
    # Of the 4 storages (64 bytes a token each) the one being replaced is there old and new, at 506 and 507 tokens.
    old, new = 64 * 506 * 2, 64 * 507 * 2
    assert update.kv_cache_bytes + update.temporaries_bytes >= 3 * old + old + new
