"""The dtype that weights are built in, and the words in which a model is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from simulated import open_simulation, save_config
from torch._subclasses.fake_tensor import FakeTensorMode

from gpufit.errors import UsageError
from gpufit.profile.precision import DtypeShare

pytestmark = pytest.mark.model

FILES = (DtypeShare(dtype="F32", size_bytes=8, tensors=1), DtypeShare(dtype="BF16", size_bytes=4, tensors=1))


def without_dtype(folder: Path) -> Path:
    config = json.loads((folder / "config.json").read_text())
    config.pop("dtype", None)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_the_dtype_is_that_asked_for_else_the_configs_else_the_files_else_assumed(tmp_path: Path) -> None:
    folder = save_config(tmp_path / "bert", "bert")

    def built(**settings: object) -> list[str]:
        return [share.dtype for share in open_simulation(folder, **settings).loaded.precision.resident]

    assert built(dtype="float16") == ["float16"]
    assert built(stored=FILES) == ["bfloat16"]
    without_dtype(folder)
    assert built(stored=FILES) == ["float32"]
    assert built() == ["bfloat16"]
    assert any("assumed to be bfloat16" in flag for flag in open_simulation(folder).loaded.environment.flags)


def test_a_quantisation_of_the_config_is_left_out_and_told(tmp_path: Path) -> None:
    folder = save_config(tmp_path / "llama", "llama", quantization_config={"quant_method": "fp8"})
    loaded = open_simulation(folder).loaded
    assert [share.dtype for share in loaded.precision.resident] == ["bfloat16"]
    assert loaded.precision.quantization is None
    assert "the config's quantisation (fp8) is not simulated: weights are bfloat16" in loaded.environment.flags


def test_tied_weights_are_held_once(tmp_path: Path) -> None:
    tied, apart = (
        open_simulation(save_config(tmp_path / f"tied-{tie}", "llama", tie_word_embeddings=tie)).loaded
        for tie in (True, False)
    )
    # 256 tokens x 64 numbers x 2 bytes.
    assert apart.load.parts.weights_bytes - tied.load.parts.weights_bytes == 256 * 64 * 2


def test_a_kernel_that_a_model_cannot_take_is_refused_by_the_option(tmp_path: Path) -> None:
    folder = save_config(tmp_path / "gpt_oss", "gpt_oss")
    with pytest.raises(UsageError, match="--attn-implementation efficient: GptOssForCausalLM does not support"):
        open_simulation(folder, "efficient")


def test_flash_takes_no_mask_and_models_of_latent_attention_too(tmp_path: Path) -> None:
    from gpufit.memory.terms import Shape

    for name in ("llama", "mistral", "deepseek_v3"):
        folder = save_config(tmp_path / name, name)
        flash, eager = (open_simulation(folder, kernel) for kernel in ("flash_attention_2", "eager"))
        assert flash.loaded.engine.attention == "flash_attention_2"
        shape = Shape(1024, 3, 2)
        fewer, more = (opened.run(shape).phases[0].allocated_bytes for opened in (flash, eager))
        # Eager attention keeps the scores of a layer: 2 sequences, 4 heads, 1024 x 1024 numbers of 2 bytes.
        assert more - fewer > 2 * 4 * 1024 * 1024 * 2


def test_a_model_is_built_without_memory(tmp_path: Path) -> None:
    # A weight of 2 TB.
    folder = save_config(tmp_path / "llama", "llama", hidden_size=2**20, vocab_size=2**20, num_hidden_layers=1)
    with FakeTensorMode():
        assert torch.empty(2**20, 2**20, dtype=torch.bfloat16).nbytes == 2**41
    assert open_simulation(folder).loaded.load.parts.weights_bytes > 2 * 2**41
