"""`gpufit simulate` as a user runs it: a config in, a profile out that the other commands take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Run
from model_files import LLAMA, LLAMA_KV_BYTES_PER_TOKEN, LLAMA_PARAMETERS, save_own_llama
from releases import needs_release_read

from gpufit.profile.cells import Measured
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase, PhasePeak
from gpufit.profile.record import Profile
from gpufit.profile.store import load_profile

pytestmark = pytest.mark.model


def bare_llama(folder: Path, **changes: object) -> Path:
    """A config alone, written by hand as a user might."""
    folder.mkdir()
    settings = LLAMA | {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "dtype": "bfloat16"} | changes
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def phases(profile: Profile) -> dict[Phase, PhasePeak]:
    (cell,) = profile.measured_cells
    assert isinstance(cell.outcome, Measured)
    return {peak.phase: peak for peak in cell.outcome.phases}


def test_a_config_alone_makes_a_profile_that_cards_are_judged_by(gpufit: Run, tmp_path: Path) -> None:
    model, path = bare_llama(tmp_path / "llama", max_position_embeddings=4096), tmp_path / "profile.json"
    done = gpufit("simulate", model, "-o", path)
    assert done.code == 0, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0] == (
        "contexts 1022, 2044, 2555, 3066, 4089 x 1, 4, 16 at once; 8 new tokens, logits kept: last; dtype auto, "
        "attention sdpa, seed 0"
    )
    assert "on no device (fake tensors): 8 of 15 cells simulated" in done.stderr
    assert "flag: attention: assumed to be what sdpa runs on a card" in done.stderr
    assert f"KV cache: {LLAMA_KV_BYTES_PER_TOKEN} B a token" in done.stderr
    profile = load_profile(path)
    assert profile.complete
    assert profile.evidence is Evidence.SIMULATED
    assert profile.environment.device.kind == "none"
    assert profile.model.parameters == LLAMA_PARAMETERS
    assert profile.load.parts.weights_bytes == 2 * LLAMA_PARAMETERS
    for cell in profile.measured_cells:
        assert isinstance(cell.outcome, Measured)
        assert cell.outcome.wall_seconds is None
        assert {peak.evidence for peak in cell.outcome.phases} == {Evidence.SIMULATED}
        assert all(peak.parts.unexplained_bytes == 0 for peak in cell.outcome.phases)
    assert profile.memory_model is not None
    assert max(one.worst_held_out_growth_error or 0.0 for one in profile.memory_model.phases) < 0.0001

    done = gpufit("fit", path, "--context", "2k", "--concurrency", "4", "--json")
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["phases"]["prefill"]["evidence"] == "simulated"
    assert document["phases"]["prefill"]["parts"]["kv_cache_bytes"] == 2048 * 4 * LLAMA_KV_BYTES_PER_TOKEN
    assert {card["evidence"] for card in document["cards"]} == {"simulated"}
    assert any("nothing ran on a device" in rule for rule in document["assumptions"])


def test_one_cell_is_what_the_cpu_measures_but_for_scratch_inside_its_kernels(gpufit: Run, tmp_path: Path) -> None:
    from architectures import ARCHITECTURES

    model = ARCHITECTURES["llama"]().save(tmp_path / "llama")
    cell = ("--context", "512", "--concurrency", "2")
    done = gpufit("simulate", model, "-o", tmp_path / "simulated.json", *cell, "--attn-implementation", "cpu")
    assert done.code == 0, done.stderr
    assert "too few cells for a memory model" in done.stderr
    assert gpufit("profile", model, "-o", tmp_path / "measured.json", *cell).code == 0
    simulated, measured = (load_profile(tmp_path / f"{name}.json") for name in ("simulated", "measured"))
    assert simulated.precision.resident == measured.precision.resident
    assert simulated.precision.stored == measured.precision.stored
    assert simulated.precision.compute == measured.precision.compute
    assert simulated.model.architecture == measured.model.architecture
    ran = phases(measured)
    assert set(phases(simulated)) == set(ran) == {Phase.PREFILL, Phase.DECODE}
    for phase, peak in phases(simulated).items():
        assert peak.parts.weights_bytes == ran[phase].parts.weights_bytes
        at_the_end = [{one.site: one.parts for one in found.moments}["end of phase"] for found in (peak, ran[phase])]
        assert at_the_end[0] == at_the_end[1], "what stays is no scratch"
        assert peak.allocated_bytes <= ran[phase].allocated_bytes


@needs_release_read
@pytest.mark.parametrize("tied", [False, True])
def test_a_rank_holds_its_share(gpufit: Run, tmp_path: Path, tied: bool) -> None:
    model, path = bare_llama(tmp_path / "llama", tie_word_embeddings=tied), tmp_path / "profile.json"
    path.write_text("to be replaced")
    cell = ("--context", "64", "--concurrency", "1")
    done = gpufit("simulate", model / "config.json", "-o", path, *cell, "--tp", "2", "--force")
    assert done.code == 0, done.stderr
    profile = load_profile(path)
    assert (profile.model.name, profile.workload.tensor_parallel_size) == ("llama", 2)
    assert "tensor parallel over 2 cards: every size is that of one of them" in done.stderr
    # All but the norms is split in two, embeddings that are the head, too; the cache's two heads are one each.
    norms, head = (2 * 2 + 1) * 64, 256 * 64
    parameters = LLAMA_PARAMETERS - head if tied else LLAMA_PARAMETERS
    assert profile.load.parts.weights_bytes == 2 * ((parameters - norms) // 2 + norms)
    ends = {
        phase: {one.site: one.parts for one in peak.moments}["end of phase"] for phase, peak in phases(profile).items()
    }
    assert ends[Phase.PREFILL].kv_cache_bytes == 64 * LLAMA_KV_BYTES_PER_TOKEN // 2
    done = gpufit("fit", path, "--context", "64", "--card", "h100-sxm", "--json")
    assert done.code == 0, done.stderr
    (card,) = json.loads(done.stdout)["cards"]
    assert (card["verdict"], card["arrangement"], card["cards_needed"]) == ("fits", "sharded", 2), "a card a rank"
    assert card["other_bytes"] == 342 * 2**20, "buffers between cards"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--attn-implementation", "flex"), 2, "--attn-implementation flex: not a kernel that is simulated"),
        (("--enable-expert-parallel",), 2, "say over how many (--tp N)"),
        pytest.param(
            ("--tp", "4"),
            2,
            "has 2 key-value heads, which transformers cannot split over 4 ranks",
            marks=needs_release_read,
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(
    gpufit: Run, tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = gpufit("simulate", bare_llama(tmp_path / "llama"), "-o", tmp_path / "profile.json", *arguments)
    assert done.code == code
    assert said in done.error
    assert not (tmp_path / "profile.json").exists()


def test_what_cannot_be_read_is_told_in_one_line(gpufit: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    for model, said in (("nowhere", "no such model"), ("broken.json", "not JSON"), (".", "config.json: no such file")):
        done = gpufit("simulate", model, cwd=tmp_path)
        assert done.code == 3, done.stderr
        assert said in done.error


def test_code_that_asks_for_the_value_of_a_weight_is_refused_by_the_operation(gpufit: Run, tmp_path: Path) -> None:
    model = save_own_llama(tmp_path / "own", "float(self.lm_head.weight.sum())")
    done = gpufit("simulate", model, "-o", tmp_path / "profile.json", "--trust-remote-code")
    assert done.code == 4
    assert (
        "cannot be run on fake tensors: the result of aten._local_scalar_dense.default depends on values" in done.error
    )


def test_a_profile_that_is_there_is_not_replaced_unasked(gpufit: Run, tmp_path: Path) -> None:
    model, path = bare_llama(tmp_path / "llama"), tmp_path / "profile.json"
    path.write_text("mine")
    done = gpufit("simulate", model, "-o", path)
    assert (done.code, path.read_text()) == (2, "mine")
    assert done.error.endswith("exists; --force replaces it, -o FILE writes elsewhere")
