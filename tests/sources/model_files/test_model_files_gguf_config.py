"""GGUF metadata under transformers' names: against the two libraries' own tables, and against published configs.

What a converted file holds: https://github.com/ggml-org/llama.cpp/blob/master/convert_hf_to_gguf.py
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import gguf
import numpy
import pytest

from gpufit.errors import UnreadableInputError
from gpufit.sources.model_files.gguf import ArrayLength, GgufHeader, read_model
from gpufit.sources.model_files.gguf_config import _ARCHITECTURES, config_of
from gpufit.sources.model_files.headers import open_headers
from gpufit.sources.model_files.record import StoredTensor


def header(architecture: str, keys: dict[str, Any], tensors: dict[str, tuple[int, ...]] | None = None) -> GgufHeader:
    metadata = {"general.architecture": architecture} | {f"{architecture}.{key}": value for key, value in keys.items()}
    metadata["tokenizer.ggml.tokens"] = ArrayLength(1000)
    found = tuple(StoredTensor(name, "F32", shape, 4) for name, shape in (tensors or {}).items())
    return GgufHeader(metadata, found)


_NEWER_KEYS = {"full_attention_interval", "interleave_moe_layer_step"}
"""Keys that the oldest release of gguf which gpufit takes does not list yet."""


@pytest.mark.parametrize("architecture", sorted(_ARCHITECTURES))
def test_every_name_is_one_of_the_two_libraries(architecture: str) -> None:
    import transformers

    model_type, keys = _ARCHITECTURES[architecture]
    if architecture not in gguf.MODEL_ARCH_NAMES.values() or model_type not in transformers.CONFIG_MAPPING:
        newest = tuple(int(part) for part in version("gguf").split(".")[:2]) >= (0, 19)
        assert not newest, "a name that neither library knows"
        pytest.skip(f"the installed releases of gguf and transformers are older than {architecture}")
    known = {
        value.replace("{arch}.", "")
        for group in (gguf.Keys.LLM, gguf.Keys.Attention, gguf.Keys.Rope, gguf.Keys.SSM)
        for value in vars(group).values()
        if isinstance(value, str)
    }
    assert {key for key in keys if key not in _NEWER_KEYS} <= known
    config = transformers.CONFIG_MAPPING[model_type]()
    # What a family's config does not have is not written into the files of that family.
    # `full_attention_interval` is read by config classes without becoming an attribute.
    optional = {
        "num_key_value_heads", "head_dim", "sliding_window", "rope_theta", "num_local_experts", "num_experts_per_tok",
        "shared_expert_intermediate_size", "original_max_position_embeddings", "n_shared_experts", "intermediate_size",
        "first_k_dense_replace", "full_attention_interval",
    }  # fmt: skip
    mapped = {config.attribute_map.get(name, name) for name in keys.values()}
    assert {name for name in mapped if not hasattr(config, name)} <= optional


def test_a_mixtral_is_told_from_a_llama_by_its_experts() -> None:
    keys = {"block_count": 32, "expert_count": 8, "expert_used_count": 2, "rope.dimension_count": 128}
    config = config_of(header("llama", keys), "f.gguf")
    assert (config["model_type"], config["num_local_experts"], config["head_dim"]) == ("mixtral", 8, 128)
    assert config_of(header("llama", {"block_count": 32}), "f.gguf")["model_type"] == "llama"


def test_deepseek_v2_lite_as_it_is_published() -> None:
    # https://huggingface.co/deepseek-ai/DeepSeek-V2-Lite/blob/main/config.json
    keys = {
        "block_count": 27, "embedding_length": 2048, "feed_forward_length": 10944, "attention.head_count": 16,
        "attention.head_count_kv": 16, "attention.kv_lora_rank": 512, "attention.key_length": 192,
        "attention.value_length": 128, "rope.dimension_count": 64, "leading_dense_block_count": 1,
        "expert_feed_forward_length": 1408, "expert_count": 64, "expert_used_count": 6, "expert_shared_count": 2,
    }  # fmt: skip
    published = {
        "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "num_hidden_layers": 27,
        "num_attention_heads": 16, "num_key_value_heads": 16, "kv_lora_rank": 512, "q_lora_rank": None,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "first_k_dense_replace": 1,
        "moe_intermediate_size": 1408, "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2,
    }  # fmt: skip
    config = config_of(header("deepseek2", keys), "f.gguf")
    assert {key: config[key] for key in published} == published
    assert "head_dim" not in config


def test_deepseek_v3_in_a_newer_file_which_counts_the_one_latent() -> None:
    # https://huggingface.co/deepseek-ai/DeepSeek-V3/blob/main/config.json; the key of the cache is 512 + 64.
    keys = {
        "attention.head_count": 128, "attention.head_count_kv": 1, "attention.q_lora_rank": 1536,
        "attention.kv_lora_rank": 512, "attention.key_length": 576, "attention.value_length": 512,
        "attention.key_length_mla": 192, "attention.value_length_mla": 128, "rope.dimension_count": 64,
    }  # fmt: skip
    config = config_of(header("deepseek2", keys, {"blk.3.exp_probs_b.bias": (256,)}), "f.gguf")
    assert config["model_type"] == "deepseek_v3"
    assert (config["num_key_value_heads"], config["q_lora_rank"]) == (128, 1536)
    assert (config["qk_nope_head_dim"], config["qk_rope_head_dim"], config["v_head_dim"]) == (128, 64, 128)


def test_gemma_3_and_gpt_oss_keep_their_windows_and_experts() -> None:
    gemma = config_of(header("gemma3", {"attention.key_length": 256, "attention.sliding_window": 512}), "f.gguf")
    assert (gemma["model_type"], gemma["head_dim"], gemma["sliding_window"]) == ("gemma3_text", 256, 512)
    keys = {"expert_count": 32, "expert_used_count": 4, "expert_feed_forward_length": 2880, "feed_forward_length": 2880}
    oss = config_of(header("gpt-oss", keys), "f.gguf")
    assert (oss["num_local_experts"], oss["num_experts_per_tok"], oss["intermediate_size"]) == (32, 4, 2880)


def test_layers_for_multi_token_prediction_are_not_the_models() -> None:
    # https://huggingface.co/zai-org/GLM-4.5-Air/blob/main/config.json: 46 layers and one more.
    config = config_of(header("glm4moe", {"block_count": 47, "nextn_predict_layers": 1}), "f.gguf")
    assert (config["num_hidden_layers"], config["num_nextn_predict_layers"]) == (46, 1)


def test_linear_attention_of_qwen3_next_as_it_is_published() -> None:
    # https://huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct/blob/main/config.json
    keys = {"ssm.conv_kernel": 4, "ssm.state_size": 128, "ssm.group_count": 16, "ssm.time_step_rank": 32,
            "ssm.inner_size": 4096, "full_attention_interval": 4}  # fmt: skip
    config = config_of(header("qwen3next", keys), "f.gguf")
    names = ("linear_key_head_dim", "linear_num_key_heads", "linear_num_value_heads", "linear_value_head_dim")
    assert [config[name] for name in names] == [128, 16, 32, 128]


def test_the_vocabulary_is_the_rows_of_the_table_then_what_is_named_then_what_is_counted() -> None:
    table = {"token_embd.weight": (1024, 8), "output.weight": (1024, 8)}
    assert config_of(header("llama", {"vocab_size": 1001}, table), "f")["vocab_size"] == 1024
    assert config_of(header("llama", {"vocab_size": 1001}), "f")["vocab_size"] == 1001
    assert config_of(header("llama", {}), "f")["vocab_size"] == 1000
    assert config_of(header("llama", {}, table), "f")["tie_word_embeddings"] is False
    assert config_of(header("llama", {}), "f")["tie_word_embeddings"] is True


def test_one_number_for_all_layers_is_taken_and_differing_layers_are_refused() -> None:
    assert config_of(header("llama", {"attention.head_count_kv": (8, 8, 8)}), "f")["num_key_value_heads"] == 8
    with pytest.raises(UnreadableInputError, match=r"its layers differ in attention\.head_count_kv"):
        config_of(header("llama", {"attention.head_count_kv": (8, 4, 8)}), "f")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (GgufHeader({}, ()), "names no architecture"),
        (GgufHeader({"general.architecture": 3}, ()), "names no architecture"),
        (header("rwkv7", {}), "does not know the GGUF architecture 'rwkv7'"),
        (header("deepseek2", {"rope.dimension_count": 64}), r"no deepseek2\.attention\.key_length"),
        (header("deepseek2", {}), "a key is not longer than its rotated part"),
        (header("qwen3next", {}), "ssm.inner_size is not a multiple"),
        (GgufHeader({"general.architecture": "llama"}, ()), "neither the embeddings' shape nor the vocabulary"),
        (header("llama", {"block_count": ArrayLength(5000)}), "block_count is a list of 5000 entries"),
    ],
)
def test_what_cannot_be_told_is_refused_in_one_line(found: GgufHeader, said: str) -> None:
    with pytest.raises(UnreadableInputError, match=said) as refused:
        config_of(found, "f.gguf")
    assert str(refused.value).startswith("f.gguf: ")


@pytest.fixture
def split(tmp_path: Path) -> list[Path]:
    """A model in pieces as the gguf library writes them: two tensors a piece."""
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama", split_max_tensors=2)
    writer.add_block_count(3)
    writer.add_token_list(["a", "b"])
    writer.add_tensor("token_embd.weight", numpy.zeros((8, 32), numpy.float16))
    for number in range(3):
        writer.add_tensor(f"blk.{number}.attn_norm.weight", numpy.zeros((32,), numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(tmp_path.glob("*.gguf"))


def test_all_pieces_of_a_split_model_are_read_whichever_is_named(split: list[Path]) -> None:
    assert [path.name for path in split] == ["model-00001-of-00002.gguf", "model-00002-of-00002.gguf"]
    for path in split:
        found = open_headers(str(path))
        assert found.weight_bytes == 8 * 32 * 2 + 3 * 32 * 4
        assert (found.config["num_hidden_layers"], found.config["vocab_size"]) == (3, 8)


def test_a_missing_piece_and_a_renamed_one_are_refused(split: list[Path]) -> None:
    split[1].rename(split[1].with_name("other.gguf"))
    with pytest.raises(UnreadableInputError, match=r"model-00002-of-00002\.gguf: no such file"):
        read_model(split[0])
    with pytest.raises(UnreadableInputError, match="its name does not tell of the others"):
        read_model(split[1].with_name("other.gguf"))
