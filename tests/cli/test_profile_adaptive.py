"""A sweep that asks for few cells, and for more only while its model misses those held out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Run, without_moments
from model_files import LLAMA, save_llama, save_own_llama

from gpufit.profile.cells import Skipped
from gpufit.profile.store import load_profile

pytestmark = pytest.mark.model

GRID = ("--context", "256,512,1024", "--concurrency", "1,2,4")
NINE = {(context, many) for context in (256, 512, 1024) for many in (1, 2, 4)}
FIRST = NINE - {(512, 4)}


def test_where_the_model_holds_the_rest_of_the_grid_is_left_out_and_a_full_sweep_adds_it(
    gpufit: Run, tmp_path: Path
) -> None:
    model = save_llama(tmp_path / "llama", max_position_embeddings=2048)
    path = tmp_path / "profile.json"
    done = gpufit("profile", model, "-o", path, *GRID, "--sweep", "adaptive")
    assert done.code == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[1] == "adaptive: 6 cells pin the growth, 2 test it"
    (end,) = [line for line in lines if "no need of" in line]
    assert re.fullmatch(r"adaptive: held out 0\.[0-4]\d% of what grows: no need of the grid's other 1 cell", end)
    assert "[8/8]" in done.stderr
    assert "8 of 9 cells measured" in done.stderr
    profile = load_profile(path)
    assert profile.complete
    assert profile.workload.contexts_tokens == (256, 512, 1024)
    assert profile.workload.concurrencies == (1, 2, 4)
    assert {(cell.context_tokens, cell.concurrency) for cell in profile.measured_cells} == FIRST
    left_out = [cell for cell in profile.cells if isinstance(cell.outcome, Skipped)]
    assert {(cell.context_tokens, cell.concurrency) for cell in left_out} == NINE - FIRST
    assert {cell.outcome.why for cell in left_out} == {end.removeprefix("adaptive: ")}
    assert profile.memory_model is not None
    worst = max(one.worst_held_out_growth_error or 0.0 for one in profile.memory_model.phases)
    assert f"held out {worst:.2%} of what grows:" in end

    done = gpufit("profile", model, "-o", path, *GRID, "--resume")
    assert done.code == 0, done.stderr
    assert "[9/9]" in done.stderr
    assert "adaptive" not in done.stderr
    full = load_profile(path)
    assert {(cell.context_tokens, cell.concurrency) for cell in full.measured_cells} == NINE
    assert without_moments(full.cells)[:8] == without_moments(profile.measured_cells)


def test_where_the_model_misses_more_cells_follow_in_the_same_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpufit.sources.measure.campaign import Campaign
    from gpufit.sources.measure.listener import Listener
    from gpufit.sources.measure.request import ProfileRequest

    # A scratch of 4 MB for an odd number of sequences and none for an even one: no term grows like that.
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    model = save_own_llama(tmp_path / "odd", "scratch = __import__('torch').empty(10**6 * (sequences % 2))")
    rounds: list[tuple[str, int]] = []
    loads: list[str] = []
    request = ProfileRequest(
        model=str(model),
        output=tmp_path / "profile.json",
        contexts=(16, 64, 256, 500),
        concurrencies=(1, 2, 5),
        new_tokens=4,
        adaptive=True,
        trust_remote_code=True,
    )
    listener = Listener(round=lambda purpose, total: rounds.append((purpose, total)), progress=loads.append)
    profile = Campaign(request, listener).run()
    assert rounds[0] == ("6 cells pin the growth, 2 test it", 8)
    assert re.fullmatch(r"held out \d+\.\d\d% of what grows, more than 0\.50%: 3 more cells", rounds[1][0])
    assert rounds[1][1] == 11
    assert len(profile.measured_cells) >= 11
    assert len(profile.cells) == 12
    assert loads.count("loading the model") == 1


def test_without_lists_the_default_contexts_lie_on_both_sides_of_a_sliding_window(gpufit: Run, tmp_path: Path) -> None:
    import torch
    import transformers

    # All default contexts, 256 and longer, lie beyond this window: half of it joins them.
    config = transformers.MistralConfig(**(LLAMA | {"sliding_window": 100, "max_position_embeddings": 2048}))
    transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(tmp_path / "mistral")
    path = tmp_path / "profile.json"
    done = gpufit("profile", tmp_path / "mistral", "-o", path)
    assert done.code == 0, done.stderr
    assert done.stderr.startswith("contexts 50, 256, 512, 768, 1k, 1536 x 1, 2, 4 at once;")
    assert "cells pin the growth, 2 test it" in done.stderr
    profile = load_profile(path)
    assert profile.model.sliding_window == 100
    measured = {(cell.context_tokens, cell.concurrency) for cell in profile.measured_cells}
    assert {(50, 1), (50, 4), (256, 1), (256, 4)} <= measured
