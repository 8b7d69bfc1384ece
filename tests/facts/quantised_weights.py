"""Figures of quantised models that engines and tools printed on real cards, with the links where they stand.

Widths are those of the models' published configs. Where a figure holds more than weights, the row says what.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

GIB, MIB, MB, GB = 2**30, 2**20, 10**6, 10**9

WIDTHS: dict[str, dict[str, Any]] = {
    name: {
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
        "attention_bias": name.startswith("Qwen2"),
    }
    for name, hidden, intermediate, layers, heads, kv_heads, head_dim, vocabulary, tied in (
        ("Llama-2-7B", 4096, 11008, 32, 32, 32, 128, 32000, False),
        ("LLaMa-65B", 8192, 22016, 80, 64, 64, 128, 32000, False),
        ("Llama-3.1-8B", 4096, 14336, 32, 32, 8, 128, 128256, False),
        ("Llama-3.1-70B", 8192, 28672, 80, 64, 8, 128, 128256, False),
        ("phi-4", 5120, 17920, 40, 40, 10, 128, 100352, False),
        ("Qwen2.5-0.5B", 896, 4864, 24, 14, 2, 64, 151936, True),
        ("Qwen2.5-1.5B", 1536, 8960, 28, 12, 2, 128, 151936, True),
        ("Qwen2.5-3B", 2048, 11008, 36, 16, 2, 128, 151936, True),
        ("Qwen2.5-7B", 3584, 18944, 28, 28, 4, 128, 152064, False),
        ("Qwen2.5-14B", 5120, 13824, 48, 40, 8, 128, 152064, False),
        ("Qwen2.5-32B", 5120, 27648, 64, 40, 8, 128, 152064, False),
        ("Qwen2.5-72B", 8192, 29568, 80, 64, 8, 128, 152064, False),
        ("Qwen3-0.6B", 1024, 3072, 28, 16, 8, 128, 151936, True),
        ("Qwen3-1.7B", 2048, 6144, 28, 16, 8, 128, 151936, True),
        ("Qwen3-4B", 2560, 9728, 36, 32, 8, 128, 151936, True),
        ("Qwen3-8B", 4096, 12288, 36, 32, 8, 128, 151936, False),
        ("Qwen3-14B", 5120, 17408, 40, 40, 8, 128, 151936, False),
        ("Qwen3-32B", 5120, 25600, 64, 64, 8, 128, 151936, False),
    )
}

GPTQ4 = {"quant_method": "gptq", "bits": 4, "group_size": 128}
GPTQ8 = {"quant_method": "gptq", "bits": 8, "group_size": 128}
GPTQ4_ROWS = {"quant_method": "gptq", "bits": 4, "group_size": -1}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
NF4_TWICE = {
    "quant_method": "bitsandbytes",
    "load_in_4bit": True,
    "bnb_4bit_quant_type": "nf4",
    "bnb_4bit_use_double_quant": True,
}
FP8_DYNAMIC = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
            "input_activations": {"num_bits": 8, "type": "float", "dynamic": True},
        }
    },
    "ignore": ["lm_head"],
}
INT4_64 = {"quant_method": "torchao", "quant_type": "int4_weight_only", "quant_type_kwargs": {"group_size": 64}}


@dataclass(frozen=True)
class Row:
    """One printed figure."""

    name: str
    model: str
    method: dict[str, Any]
    measured_bytes: float
    source: str
    cache_tokens: int = 0
    """Tokens whose keys and values, in 16 bits, are in the figure."""
    also_bytes: float = 0
    """What else is in it by its own arithmetic, shown where the row is made."""
    ranks: int = 1
    second_head: bool = False
    """Whether the checkpoint's own copy of a tied head stands beside the embeddings."""
    without_embeddings: bool = False
    worse: str = ""
    """Why the prediction is more than 2 % off; empty where it is not."""


_QWEN25 = "https://github.com/QwenLM/Qwen3/blob/2abc0f3243e20cf45b6a3ab60308db701c0c3111/docs/source/benchmark/speed_benchmark.rst"
_QWEN3 = "https://github.com/QwenLM/Qwen3/blob/f0bff49380fed140895c3acd3ab199d72877de3c/docs/source/getting_started/speed_benchmark.md"
_PERF = (
    "https://github.com/huggingface/optimum-benchmark/tree/450f5b810d88/examples/running-llamas/experiments/hf-dgx-01"
)


def exllama_v1(model: str, *, ordered: bool = False) -> float:
    """Bytes that AutoGPTQ's ExLlama kernel keeps beside the weights: one dequantised matrix, and, where groups are in
    the order of activations, 2,048 reordered inputs.

    https://github.com/AutoGPTQ/AutoGPTQ/blob/main/auto_gptq/modeling/_utils.py (`autogptq_post_init`)
    """
    hidden, widest = WIDTHS[model]["hidden_size"], WIDTHS[model]["intermediate_size"]
    return hidden * widest * 2 + (2048 * widest * 2 if ordered else 0)


def exllama_v2(model: str) -> float:
    """The same of its second version: one dequantised matrix, and float32 outputs of 2,048 tokens of 8 sequences.

    https://github.com/AutoGPTQ/AutoGPTQ/blob/main/auto_gptq/nn_modules/qlinear/qlinear_exllamav2.py. The two versions
    of the runs below differ by it: 726 MB of 721 for 7B; 1,353 of 1,443 less 90 of reordered inputs for 65B.
    """
    hidden, widest = WIDTHS[model]["hidden_size"], WIDTHS[model]["intermediate_size"]
    return hidden * widest * 2 + widest * 2048 * 8 * 4


def _peak(model: str, method: dict[str, Any], measured_bytes: float, *, worse: str = "", **also: Any) -> Row:
    """Peak of a whole run of transformers: a prompt of one token and 2,048 new ones, batch 1."""
    return Row(
        name=f"{model}, {method['quant_method']} {method.get('bits', 8)} bits",
        model=model,
        method=method,
        measured_bytes=measured_bytes,
        source=_QWEN3 if model.startswith("Qwen3") else _QWEN25,
        worse=worse,
        **({"cache_tokens": 2049, "also_bytes": exllama_v1(model) if method is GPTQ4 else 0} | also),
    )


def _prefill(model: str, method: dict[str, Any], mb: float, kernel_bytes: float, *, worse: str = "") -> Row:
    """Peak of a prefill of 256 tokens: their cache, their logits in 16 and 32 bits, and the kernel's own buffers."""
    return Row(
        name=f"{model}, GPTQ, a prefill of 256 tokens, {mb} MB",
        model=model,
        method=method,
        measured_bytes=mb * MB,
        source=_PERF,
        cache_tokens=256,
        also_bytes=256 * 32_000 * 6 + kernel_bytes,
        worse=worse,
    )


_SMALL = (
    "scratch of under 0.1 GiB beside a model this small: the table's 16-bit rows of 0.5B and 3B are 0.03 and 0.13 GiB "
    "above their weights and cache as well"
)

_PREFILL = "the prefill's activations and cuBLAS's workspace are in the figure: 100 MB at this size with either kernel"

ROWS = (
    # Weights as an engine prints them.
    Row(
        "Llama-3.1-70B, FBGEMM FP8, allocated after loading",
        "Llama-3.1-70B",
        {"quant_method": "fbgemm_fp8"},
        72_683.53 * MB,
        "https://github.com/DerekLiu35/huggingface-quantization-benchmarking-code/blob/7adbd491e889cfe0fe4f59f6f91a67cd6602f9fa/",
    ),
    Row(
        "Llama-3.3-70B FP8-dynamic, vLLM on two ranks",
        "Llama-3.1-70B",
        FP8_DYNAMIC,
        33.88 * GIB,
        "https://github.com/llm-d-incubation/llm-d-planner/blob/e50305af90f0812e77e1827f3bc740fe75b76370/docs/empirical-vllm-memory-results.md",
        # vLLM keeps the rotary table whole on each rank: 131,072 positions of 128 in 16 bits.
        also_bytes=131_072 * 128 * 2,
        ranks=2,
    ),
    Row(
        "phi-4, bitsandbytes NF4 with scales quantised too, vLLM",
        "phi-4",
        NF4_TWICE,
        8.492 * GIB,
        "https://github.com/unslothai/notebooks/blob/bdda2efc7ad5ae129ea63cd2065d23c391406283/nb/Phi_4_%2814B%29-GRPO.ipynb",
    ),
    Row(
        "Llama-2-7B, torchao INT4 in groups of 64: Model Size, which leaves out the embeddings",
        "Llama-2-7B",
        # gpt-fast quantises the head as well.
        INT4_64 | {"modules_to_not_convert": []},
        3.74 * GB,
        "https://github.com/pytorch/ao/blob/36027d82d1ad9949597ea16002ff4940374b1b94/torchao/prototype/awq/README.md",
        without_embeddings=True,
    ),
    # transformers 4.46, AutoGPTQ and AutoAWQ: peak of a run.
    _peak("Qwen2.5-7B", GPTQ8, 8.42 * GIB),
    _peak("Qwen2.5-7B", GPTQ4, 5.52 * GIB),
    _peak("Qwen2.5-7B", AWQ, 5.39 * GIB),
    _peak("Qwen2.5-14B", GPTQ8, 16.11 * GIB),
    _peak("Qwen2.5-14B", GPTQ4, 9.94 * GIB),
    _peak("Qwen2.5-14B", AWQ, 9.79 * GIB),
    _peak("Qwen2.5-32B", GPTQ8, 33.56 * GIB),
    _peak("Qwen2.5-32B", GPTQ4, 18.94 * GIB),
    _peak("Qwen2.5-32B", AWQ, 18.67 * GIB),
    _peak("Qwen2.5-72B", GPTQ8, 72.61 * GIB),
    _peak("Qwen2.5-72B", GPTQ4, 39.91 * GIB),
    _peak("Qwen2.5-72B", AWQ, 39.44 * GIB),
    # The AWQ checkpoints of the tied models hold a head of their own, which stands until loading ends: the peak.
    _peak("Qwen2.5-0.5B", AWQ, 0.68 * GIB, cache_tokens=0, second_head=True),
    _peak("Qwen2.5-1.5B", AWQ, 1.51 * GIB, cache_tokens=0, second_head=True),
    _peak("Qwen2.5-3B", AWQ, 2.50 * GIB, cache_tokens=0, second_head=True),
    _peak("Qwen2.5-0.5B", GPTQ4, 0.48 * GIB, worse=_SMALL),
    _peak("Qwen2.5-1.5B", GPTQ4, 1.18 * GIB, worse=_SMALL),
    _peak("Qwen2.5-3B", GPTQ4, 2.06 * GIB),
    _peak("Qwen2.5-0.5B", GPTQ8, 0.64 * GIB, worse=_SMALL),
    _peak("Qwen2.5-1.5B", GPTQ8, 1.82 * GIB, worse=_SMALL),
    _peak("Qwen2.5-3B", GPTQ8, 3.38 * GIB, worse=_SMALL),
    # transformers 4.51.
    _peak("Qwen3-8B", FP8, 9323 * MIB),
    _peak("Qwen3-14B", FP8, 16012 * MIB),
    _peak("Qwen3-32B", FP8, 33379 * MIB),
    _peak("Qwen3-8B", AWQ, 6177 * MIB),
    _peak("Qwen3-14B", AWQ, 9962 * MIB),
    _peak("Qwen3-32B", AWQ, 19109 * MIB),
    _peak("Qwen3-1.7B", GPTQ8, 2229 * MIB),
    _peak("Qwen3-0.6B", FP8, 1217 * MIB, second_head=True),
    _peak("Qwen3-1.7B", FP8, 2726 * MIB, second_head=True),
    _peak("Qwen3-4B", FP8, 5281 * MIB, second_head=True),
    _peak("Qwen3-4B", AWQ, 2915 * MIB, worse=_SMALL),
    _peak("Qwen3-0.6B", GPTQ8, 986 * MIB, worse=_SMALL),
    # transformers 4.35 and AutoGPTQ.
    _prefill("Llama-2-7B", GPTQ4, 4265, exllama_v1("Llama-2-7B"), worse=_PREFILL),
    _prefill("Llama-2-7B", GPTQ4, 4991, exllama_v2("Llama-2-7B"), worse=_PREFILL),
    _prefill("LLaMa-65B", GPTQ4_ROWS, 34_753, exllama_v1("LLaMa-65B", ordered=True)),
    _prefill("LLaMa-65B", GPTQ4_ROWS, 36_106, exllama_v2("LLaMa-65B")),
    Row(
        "Llama-3.1-8B, AWQ, ExLlama, after a prefill of 64 tokens",
        "Llama-3.1-8B",
        AWQ,
        6809.91 * MB,
        "https://github.com/DerekLiu35/huggingface-quantization-benchmarking-code/blob/7adbd491e889cfe0fe4f59f6f91a67cd6602f9fa/runs/llama_awq/benchmark_report.txt",
        cache_tokens=64,
        worse="1,082 MB more than the weights: as much as a third table of 128,256 x 4,096 in 16 bits and 64 logits; "
        "what it is the report does not say",
    ),
    Row(
        "Qwen3-0.6B, FP8, nano-vLLM: all that is allocated after loading",
        "Qwen3-0.6B",
        FP8,
        821 * MB,
        "https://github.com/GeeeekExplorer/nano-vllm/pull/241",
        worse="all that the engine allocates is in the figure, 69 MB more; its rotary table is 21 of them",
    ),
    Row(
        "Qwen3-32B, AWQ, a fork of vLLM for AMD MI50 on two ranks",
        "Qwen3-32B",
        AWQ,
        11.62 * GIB,
        "https://github.com/nlzy/vllm-gfx906/issues/10",
        ranks=2,
        worse="5.6 bits a weight where the checkpoint has 4.2: the fork holds AWQ in a form of its own",
    ),
)

GPT_OSS = (
    # Layers, experts, kernel, GiB printed, source.
    (36, 128, "marlin", 65.9651, "https://github.com/vllm-project/vllm/issues/23278"),
    (
        24,
        32,
        "triton",
        13.47,
        "https://github.com/llm-d-incubation/llm-d-planner/blob/e50305af90f0812e77e1827f3bc740fe75b76370/docs/empirical-vllm-memory-results.md",
    ),
    (
        36,
        128,
        "triton",
        64.38,
        "https://github.com/llm-d-incubation/llm-d-planner/blob/e50305af90f0812e77e1827f3bc740fe75b76370/docs/empirical-vllm-memory-results.md",
    ),
)
"""Weights of gpt-oss as vLLM prints them on an H100; widths of 2,880, 64 query and 8 KV heads of 64."""
