"""What is read from a config before a weight is."""

from __future__ import annotations

import pytest
import transformers
from architectures import ARCHITECTURES

from gpufit.errors import MeasurementError, UnreadableInputError, UsageError
from gpufit.sources.measure.loading import (
    chunk_tokens,
    context_steps,
    plan_load,
    position_limit,
    refusal,
    sliding_window,
)
from gpufit.sources.measure.protocol import Job

pytestmark = pytest.mark.model


def make_job(**changes: object) -> Job:
    settings: dict[str, object] = {
        "model_path": "nowhere",
        "gguf_file": None,
        "model_name": "m",
        "model_source": "some/model",
        "fingerprint": "0" * 64,
        "revision": None,
        "dtype": "auto",
        "attention": None,
        "device": "cpu",
        "seed": 0,
        "logits_kept": "last",
        "trust_remote_code": False,
        "stored": (),
    }
    return Job(**(settings | changes))


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        (transformers.LlamaConfig(max_position_embeddings=4096), 4096),
        (transformers.GPT2Config(n_positions=1024), 1024),
        (transformers.BertConfig(), 512),
        (transformers.Mamba2Config(), None),
        (transformers.T5Config(), None),
        (transformers.BartConfig(max_position_embeddings=1024), 1024),
        (transformers.WhisperConfig(max_target_positions=448), 448),
        (transformers.Qwen2_5_VLConfig(text_config={"max_position_embeddings": 128000}), 128000),
    ],
)
def test_position_limit(config: transformers.PreTrainedConfig, limit: int | None) -> None:
    assert position_limit(config) == limit


@pytest.mark.parametrize(
    ("config", "window"),
    [
        (transformers.LlamaConfig(), None),
        (transformers.MistralConfig(sliding_window=4096), 4096),
        (transformers.MistralConfig(sliding_window=None), None),
        (transformers.Qwen2Config(sliding_window=4096, use_sliding_window=False), None),
        (transformers.Gemma3TextConfig(sliding_window=512, num_hidden_layers=6), 512),
    ],
)
def test_sliding_window(config: transformers.PreTrainedConfig, window: int | None) -> None:
    assert sliding_window(config) == window


@pytest.mark.parametrize(
    ("config", "steps"),
    [
        (transformers.LlamaConfig(), ()),
        (transformers.MistralConfig(sliding_window=4096), (4096,)),
        (transformers.Mamba2Config(chunk_size=256), (256,)),
        (transformers.BambaConfig(mamba_chunk_size=128), (128,)),
        (transformers.Llama4TextConfig(attention_chunk_size=8192), (8192,)),
    ],
)
def test_contexts_at_which_memory_may_grow_otherwise(
    config: transformers.PreTrainedConfig, steps: tuple[int, ...]
) -> None:
    assert context_steps(config) == steps


@pytest.mark.parametrize(
    ("name", "chunk"),
    [
        ("llama", None),
        ("mamba2", 32),  # as its config has it
        ("qwen3_next", 64),  # the default of the function its gated delta net calls, in no config
    ],
)
def test_chunks_that_a_model_pads(name: str, chunk: int | None) -> None:
    assert chunk_tokens(ARCHITECTURES[name]().build()) == chunk


def save_config(folder: object, config: transformers.PreTrainedConfig, architecture: str) -> str:
    config.architectures = [architecture]
    config.save_pretrained(folder)
    return str(folder)


def test_decoders_generate_and_encoders_do_not(tmp_path: object) -> None:
    llama = save_config(tmp_path / "llama", transformers.LlamaConfig(), "LlamaForCausalLM")
    bert = save_config(tmp_path / "bert", transformers.BertConfig(), "BertForMaskedLM")
    assert plan_load(make_job(model_path=llama)).generates
    plan = plan_load(make_job(model_path=bert))
    assert not plan.generates
    assert plan.loader is transformers.BertForMaskedLM


def test_logits_of_the_prompt_are_kept_only_where_there_are_some(tmp_path: object) -> None:
    llama = save_config(tmp_path / "llama", transformers.LlamaConfig(), "LlamaForCausalLM")
    assert plan_load(make_job(model_path=llama, logits_kept="all")).generates
    for name, config, architecture in (
        ("t5", transformers.T5Config(), "T5ForConditionalGeneration"),
        ("bert", transformers.BertConfig(), "BertModel"),
    ):
        model = save_config(tmp_path / name, config, architecture)
        with pytest.raises(UsageError, match="leave --keep-logits out"):
            plan_load(make_job(model_path=model, logits_kept="all"))


def test_errors_of_the_library_become_one_line() -> None:
    job = make_job()
    assert isinstance(refusal(job, OSError("no such\nfile")), UnreadableInputError)
    assert isinstance(refusal(job, ValueError("cannot\n\n  build")), MeasurementError)
    asked = refusal(job, ValueError("Please pass the argument `trust_remote_code=True` to allow custom code"))
    assert isinstance(asked, UsageError)
    assert "--trust-remote-code" in str(asked)
    for error in (OSError("a\nb"), ValueError("c\nd")):
        assert "\n" not in str(refusal(job, error))
