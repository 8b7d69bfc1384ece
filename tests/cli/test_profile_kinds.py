"""`gpufit profile` and `gpufit fit` end to end on encoder-decoders, speech, images and other caches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import transformers
from architectures import ARCHITECTURES
from conftest import Run

from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.record import Profile
from gpufit.profile.store import load_profile

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small models, each as transformers writes it."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("t5", "whisper", "llava", "qwen2_5_vl", "llama", "bert"):
        ARCHITECTURES[name]().save(folder / name)
    return folder


def profiled(gpufit: Run, model: Path, tmp_path: Path, *options: str) -> tuple[Profile, str]:
    path = tmp_path / "profile.json"
    done = gpufit("profile", model, "-o", path, "--device", "cpu", "--new-tokens", "4", *options)
    assert done.code == 0, done.stderr
    profile = load_profile(path)
    for peak in [profile.load, *(peak for cell in profile.measured_cells for peak in cell.outcome.phases)]:
        assert peak.parts.total_bytes == peak.allocated_bytes
        assert peak.parts.unexplained_bytes == 0
    assert profile.complete
    answered = gpufit("fit", path, "--card", "h100-sxm", "--json")
    assert answered.code == 0, answered.stderr
    assert json.loads(answered.stdout)["cards"][0]["verdict"] == "fits"
    return profile, done.stderr.splitlines()[0]


def decode_parts(profile: Profile, context: int, concurrency: int) -> Parts:
    (cell,) = [one for one in profile.measured_cells if one.key[0] == context and one.key[2] == concurrency]
    return next(peak.parts for peak in cell.outcome.phases if peak.phase is Phase.DECODE)


GRID = ("--context", "32,128", "--concurrency", "1,3")


def test_an_encoder_decoder(gpufit: Run, saved: Path, tmp_path: Path) -> None:
    profile, _ = profiled(gpufit, saved / "t5", tmp_path, *GRID)
    assert profile.model.generates
    assert profile.model.decodes_apart
    assert (profile.model.architecture, profile.model.model_type) == ("T5ForConditionalGeneration", "t5")
    assert profile.model.position_limit is None
    # 3 layers x (key, value) x 4 heads x 16 x two bytes for each of 128 tokens read and 3 or 4 written.
    assert 768 * 131 * 3 <= decode_parts(profile, 128, 3).kv_cache_bytes <= 768 * 132 * 3


def test_speech(gpufit: Run, saved: Path, tmp_path: Path) -> None:
    profile, _ = profiled(gpufit, saved / "whisper", tmp_path, *GRID)
    assert profile.model.position_limit == 2048
    assert not profile.model.decodes_apart
    parts = decode_parts(profile, 32, 3)
    assert 768 * (1500 + 34) * 3 <= parts.kv_cache_bytes <= 768 * (1500 + 35) * 3
    assert parts.inputs_bytes >= 80 * 3000 * 2 * 3


def test_images_of_any_size_and_the_default_contexts_beside_them(gpufit: Run, saved: Path, tmp_path: Path) -> None:
    options = ("--images", "2", "--image-size", "112x84", "--concurrency", "1,2")
    profile, announced = profiled(gpufit, saved / "qwen2_5_vl", tmp_path, *options)
    # 4 x 3 merged patches and a mark at either end, twice: 28 tokens, beside 256, 512, 768, 1024 and 1536 of text.
    assert profile.workload.contexts_tokens == (284, 540, 796, 1052, 1564)
    assert (profile.workload.images, profile.workload.image_size, profile.workload.image_tokens) == (2, (112, 84), 28)
    assert "; 2 images of 112 x 84 pixels a sequence (28 tokens of its context); " in announced
    assert decode_parts(profile, 796, 2).inputs_bytes >= 2 * 2 * 48 * 1176 * 4
    short = gpufit("fit", tmp_path / "profile.json", "--context", "28", "--concurrency", "1")
    assert short.code == 2
    assert "2 images take 28 tokens of each prompt, so a context of 28 is too short" in short.error


def test_images_of_one_size_or_none(gpufit: Run, saved: Path, tmp_path: Path) -> None:
    seen, announced = profiled(gpufit, saved / "llava", tmp_path, *GRID)
    assert "; 1 image of 56 x 56 pixels a sequence (16 tokens of its context); " in announced
    assert seen.workload.image_size == (56, 56)
    text, announced = profiled(gpufit, saved / "llava", tmp_path, *GRID, "--images", "0", "--force")
    assert "image" not in announced
    assert (text.workload.images, text.workload.image_size) == (0, None)
    assert seen.load.parts.weights_bytes == text.load.parts.weights_bytes


def test_a_static_and_an_fp8_cache(gpufit: Run, saved: Path, tmp_path: Path) -> None:
    static, announced = profiled(gpufit, saved / "llama", tmp_path, *GRID, "--cache-implementation", "static")
    assert "; static KV cache; " in announced
    assert static.workload.cache_implementation == "static"
    # 128 numbers of two bytes a token, room for 128 + 3 of each sequence, and in each of the two layers a length of 8
    # bytes, which earlier releases of transformers (5.0) keep as a Python number.
    lengths = decode_parts(static, 128, 3).kv_cache_bytes - 256 * 131 * 3
    assert lengths in (0, 2 * 8)
    resumed = gpufit(
        "profile", saved / "llama", "-o", tmp_path / "profile.json", *GRID, "--new-tokens", "4", "--resume"
    )
    assert resumed.code == 2
    assert "was measured with cache implementation static, not dynamic" in resumed.error
    if not hasattr(transformers.cache_utils, "Fp8QuantizedLayer"):
        pytest.skip(f"transformers {transformers.__version__} has no fp8 cache")
    fp8, announced = profiled(gpufit, saved / "llama", tmp_path, *GRID, "--kv-cache-dtype", "fp8", "--force")
    assert "; quantized KV cache in fp8; " in announced
    assert fp8.precision.kv[0].dtype == "float8_e4m3fn"


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("bert", ("--kv-cache-dtype", "fp8"), "is an encoder and has no KV cache: leave --kv-cache-dtype fp8 out"),
        ("llava", ("--context", "16"), "1 image takes 16 tokens of each prompt, so a context of 16 is too short"),
        ("llava", ("--image-size", "448x"), "--image-size must be WIDTHxHEIGHT in pixels, 448x448, not '448x'"),
        ("llava", ("--images", "-1"), "--images must be a whole number from 0 to 999999, not '-1'"),
        ("llava", ("--images", "two"), "--images must be a whole number from 0 to 999999, not 'two'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    model: str, options: tuple[str, ...], said: str, gpufit: Run, saved: Path
) -> None:
    done = gpufit("profile", saved / model, "--device", "cpu", "-o", saved / "refused.json", *options)
    assert done.code == 2
    assert said in done.error
    assert not (saved / "refused.json").exists()
