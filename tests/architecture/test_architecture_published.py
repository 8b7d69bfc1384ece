"""Published element counts of models whose config is written here: the widths their pages state, in their keys' names.

Each count is what the hub shows for the checkpoint (`facts/published_counts.json`), so a wrong width cannot pass.
"""

from typing import Any

import pytest
from public_models import COUNTS

from gpufit.architecture.registry import architecture_of

QWEN2_VL = {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3, "spatial_patch_size": 14}
VIT_300M = {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "image_size": 448,
    "qk_normalization": False,
    "qkv_bias": True,
    "norm_type": "layer_norm",
}
VIT_6B = {
    "hidden_size": 3200,
    "num_hidden_layers": 45,
    "num_attention_heads": 25,
    "intermediate_size": 12800,
    "image_size": 448,
    "qk_normalization": True,
    "qkv_bias": False,
    "norm_type": "rms_norm",
}


def _widths(hidden: int, layers: int, heads: int, kv_heads: int, inner: int, rows: int) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": inner,
        "vocab_size": rows,
    }


def _internlm(*shape: int) -> dict[str, Any]:
    return _widths(*shape) | {"model_type": "internlm2", "bias": False, "tie_word_embeddings": False}


def _qwen(*shape: int) -> dict[str, Any]:
    return _widths(*shape) | {"model_type": "qwen2", "tie_word_embeddings": False}


def _internvl(vision: dict[str, Any], text: dict[str, Any]) -> dict[str, Any]:
    return {"model_type": "internvl_chat", "downsample_ratio": 0.5, "vision_config": vision, "llm_config": text}


MODELS: dict[str, dict[str, Any]] = {
    "openbmb/MiniCPM-V-2_6": {
        "model_type": "minicpmv",
        "version": 2.6,
        "query_num": 64,
        "vision_config": {
            "hidden_size": 1152,
            "image_size": 980,
            "intermediate_size": 4304,
            "num_hidden_layers": 27,
            "patch_size": 14,
        },
    }
    | _widths(3584, 28, 28, 4, 18944, 151666),
    "HuggingFaceTB/SmolLM3-3B-Base": {"model_type": "smollm3", "tie_word_embeddings": True}
    | _widths(2048, 36, 16, 4, 11008, 128256),
    "tiiuae/falcon-180B": {
        "model_type": "falcon",
        "hidden_size": 14848,
        "num_hidden_layers": 80,
        "num_attention_heads": 232,
        "num_kv_heads": 8,
        "new_decoder_architecture": True,
        "vocab_size": 65024,
        # The checkpoint holds a head beside the embeddings, unlike Falcon 7B's.
        "tie_word_embeddings": False,
    },
    "allenai/OLMo-2-1124-7B": {"model_type": "olmo2"} | _widths(4096, 32, 32, 32, 11008, 100352),
    "allenai/OLMo-2-1124-13B": {"model_type": "olmo2"} | _widths(5120, 40, 40, 40, 13824, 100352),
    "CohereForAI/aya-expanse-8b": {"model_type": "cohere"} | _widths(4096, 32, 32, 8, 14336, 256000),
    "Qwen/Qwen2-VL-7B-Instruct": {"model_type": "qwen2_vl", "vision_config": QWEN2_VL | {"hidden_size": 3584}}
    | {"tie_word_embeddings": False}
    | _widths(3584, 28, 28, 4, 18944, 152064),
    "Qwen/Qwen2-VL-72B-Instruct": {"model_type": "qwen2_vl", "vision_config": QWEN2_VL | {"hidden_size": 8192}}
    | {"tie_word_embeddings": False}
    | _widths(8192, 80, 64, 8, 29568, 152064),
    "internlm/internlm2_5-1_8b-chat": _internlm(2048, 24, 16, 8, 8192, 92544),
    "internlm/internlm2_5-7b-chat": _internlm(4096, 32, 32, 8, 14336, 92544),
    "internlm/internlm2_5-20b-chat": _internlm(6144, 48, 48, 8, 16384, 92544),
    "OpenGVLab/InternVL2_5-1B": _internvl(VIT_300M, _qwen(896, 24, 14, 2, 4864, 151674)),
    "OpenGVLab/InternVL2_5-2B": _internvl(VIT_300M, _internlm(2048, 24, 16, 8, 8192, 92553)),
    "OpenGVLab/InternVL2_5-4B": _internvl(VIT_300M, _qwen(2048, 36, 16, 2, 11008, 151674)),
    "OpenGVLab/InternVL2_5-8B": _internvl(VIT_300M, _internlm(4096, 32, 32, 8, 14336, 92553)),
    "OpenGVLab/InternVL2_5-26B": _internvl(VIT_6B, _internlm(6144, 48, 48, 8, 16384, 92553)),
    "OpenGVLab/InternVL2_5-38B": _internvl(VIT_6B, _qwen(5120, 64, 40, 8, 27648, 151674)),
    "OpenGVLab/InternVL2_5-78B": _internvl(VIT_6B, _qwen(8192, 80, 64, 8, 29568, 151674)),
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_published_count_is_met_to_the_element(name: str) -> None:
    assert architecture_of(MODELS[name], name).stored_elements == COUNTS[name]


def test_a_nested_language_model_says_whether_its_head_is_tied() -> None:
    # https://huggingface.co/mistralai/Mistral-Small-3.1-24B-Instruct-2503 : 24.01 billion, head and embeddings apart;
    # neither the whole nor its text part has the flag. 131,072 x 5,120 is one of the two tables.
    text = _widths(5120, 40, 32, 8, 32768, 131072) | {"model_type": "mistral", "head_dim": 128}
    vision = {"model_type": "pixtral", "hidden_size": 1024, "num_hidden_layers": 24, "patch_size": 14}
    values = {"model_type": "mistral3", "text_config": text, "vision_config": vision | {"intermediate_size": 4096}}
    apart = architecture_of(values, "config.json")
    assert round(apart.parameters / 1e9, 2) == 24.01
    tied = architecture_of(values | {"text_config": text | {"tie_word_embeddings": True}}, "config.json")
    assert apart.parameters - tied.parameters == 131072 * 5120
    assert architecture_of(values | {"tie_word_embeddings": True}, "config.json").tied
