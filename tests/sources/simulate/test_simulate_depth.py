"""A few layers and a few steps extended against all of them run, byte for byte, in every moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from releases import needs_release_read
from simulated import open_simulation, save_config, whole_run, without_readings

from gpufit.memory.terms import Shape
from gpufit.profile.peaks import PhasePeak

pytestmark = pytest.mark.model

CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    # name -> (family, settings that make it deep, layers in the shallowest run's first stack)
    "uniform": ("llama", {"num_hidden_layers": 6}, 2),
    "every other layer slides": ("gpt_oss", {"num_hidden_layers": 12}, 4),
    "five slide, the sixth does not": ("gemma3", {"num_hidden_layers": 25}, 7),
    "dense, then experts": ("deepseek_v3", {"num_hidden_layers": 9, "first_k_dense_replace": 2}, 3),
    "state alone": ("mamba2", {"num_hidden_layers": 6}, 2),
    "encoder and decoder": ("bart", {"encoder_layers": 6, "decoder_layers": 7}, 2),
    "an encoder": ("bert", {"num_hidden_layers": 6}, 2),
}


@pytest.mark.parametrize("case", CASES)
def test_few_layers_extended_are_all_layers(case: str, tmp_path: Path) -> None:
    name, deep, fewest = CASES[case]
    folder = save_config(tmp_path / name, name, **deep)
    few, every = open_simulation(folder), open_simulation(folder, full_depth=True)
    assert len(every._variants) == 1
    assert len(few._variants) == 1 + len([key for key in deep if key.endswith("layers")])
    shallow = few._variants[0].model.config
    layers = getattr(shallow, "encoder_layers", shallow.num_hidden_layers)
    assert layers == fewest
    assert few.loaded.model == every.loaded.model
    assert few.loaded.load == every.loaded.load
    assert few.loaded.precision == every.loaded.precision
    shape = Shape(400, 2 if few._driver.generates else 0, 2)
    assert without_readings(few.run(shape)) == without_readings(every.run(shape))


STEPS = {
    "beyond the window": ("mistral", Shape(500, 9, 2)),
    "past the window": ("mistral", Shape(378, 12, 2)),
    "past the window of every other layer": ("gpt_oss", Shape(380, 10, 1)),
    "latent": ("deepseek_v3", Shape(50, 9, 2)),
    "an answer beside what an encoder read": ("bart", Shape(100, 11, 2)),
}


@pytest.mark.parametrize("case", STEPS)
def test_few_steps_stand_for_all_of_them(case: str, tmp_path: Path) -> None:
    name, shape = STEPS[case]
    opened = open_simulation(save_config(tmp_path / name, name))
    assert without_readings(opened.run(shape)) == without_readings(whole_run(opened, shape))


def test_layers_that_differ_in_their_weights_alone_are_all_run(tmp_path: Path) -> None:
    # A stack of four is no shorter in two runs of two and three.
    opened = open_simulation(save_config(tmp_path / "llama", "llama", num_hidden_layers=4))
    assert len(opened._variants) == 1
    assert any("every layer was run" in flag for flag in opened.loaded.environment.flags)


def read(peak: PhasePeak, quantity: str) -> int:
    (size,) = (one.size_bytes for one in peak.readings if one.quantity == quantity)
    return size


@pytest.mark.parametrize(
    "case",
    [
        # Earlier releases make more of a state cache's tensors before the first layer runs.
        pytest.param(case, marks=needs_release_read) if case == "state alone" else case
        for case in CASES
        if case != "encoder and decoder"
    ],
)
def test_few_layers_tell_what_the_allocator_reserves_for_all_of_them(case: str, tmp_path: Path) -> None:
    name, deep, _ = CASES[case]
    folder = save_config(tmp_path / name, name, **deep)
    few, every = open_simulation(folder), open_simulation(folder, full_depth=True)
    shape = Shape(1500, 3 if few._driver.generates else 0, 4)
    for told, ran in zip(few.run(shape).phases, every.run(shape).phases, strict=True):
        assert read(told, "reserved") == read(ran, "reserved") > 0
        # Caches make some counters of theirs, a block of 512 B a layer, before the first layer runs.
        assert 0 <= read(ran, "allocated") - read(told, "allocated") <= 512 * deep["num_hidden_layers"]


def test_what_the_allocator_reserves_holds_what_it_hands_out(tmp_path: Path) -> None:
    opened = open_simulation(save_config(tmp_path / "llama", "llama", num_hidden_layers=6))
    prefill, decode = opened.run(Shape(200, 2, 2)).phases
    for peak in (prefill, decode):
        # Blocks are whole multiples of 512 B, so no fewer bytes are handed out than asked for; segments hold them.
        assert peak.allocated_bytes <= read(peak, "allocated") <= read(peak, "reserved")
        assert read(peak, "reserved") % (2 << 20) == 0
    assert read(decode, "reserved") >= read(prefill, "reserved")


def test_of_a_longer_answer_only_prefill_is_told(tmp_path: Path) -> None:
    # Its first and last steps are run alone, and what the allocator reserves comes from all of them.
    opened = open_simulation(save_config(tmp_path / "llama", "llama", num_hidden_layers=6))
    prefill, decode = opened.run(Shape(200, 40, 2)).phases
    assert read(prefill, "reserved") > 0
    assert decode.readings == ()


def test_two_directions_of_depth_tell_nothing_of_the_allocator(tmp_path: Path) -> None:
    folder = save_config(tmp_path / "bart", "bart", encoder_layers=6, decoder_layers=7)
    assert not any(peak.readings for peak in open_simulation(folder).run(Shape(64, 2, 1)).phases)
