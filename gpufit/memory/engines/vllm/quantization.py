"""Which methods of quantisation vLLM takes, and which of them it applies while it loads 16-bit weights.

https://docs.vllm.ai/en/stable/features/quantization/
"""

from __future__ import annotations

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.method import Method
from gpufit.architecture.quantization.registry import method_of, named
from gpufit.catalog.record import Card
from gpufit.errors import UsageError
from gpufit.memory.engines.vllm.versions import Rules

AT_LOAD = {"fp8": "fp8", "bitsandbytes-nf4": "bitsandbytes"}
"""Name here -> vLLM's `--quantization`, of the methods that it applies to a 16-bit checkpoint."""

BEFOREHAND = (
    "gptq",
    "awq",
    "compressed-tensors-fp8",
    "fbgemm_fp8",
    "mxfp4",
    "bitsandbytes-int8",
    "torchao-int8wo",
    "torchao-float8wo",
    "torchao-int4wo",
)
"""What it runs from a checkpoint that is quantised so already, which names its method itself."""


def serve_quantization(name: str) -> str | None:
    """vLLM's flag for a method that it applies at load; None where the checkpoint must be quantised beforehand.

    Raises UsageError for a method that vLLM does not run.
    """
    if name in AT_LOAD:
        return AT_LOAD[name]
    if name not in BEFOREHAND:
        raise UsageError(
            f"--quantization {name}: vLLM does not run it; use one of {', '.join((*AT_LOAD, *BEFOREHAND))}"
        )
    return None


_ONE_SCALE = Config({"quant_method": "fp8"}, "--quantization fp8")
"""What vLLM makes of 16-bit weights at load: "FP8_E4M3 precision with a per-tensor scale"
(https://docs.vllm.ai/en/stable/features/quantization/fp8.html)."""
_E4M3 = "float8_e4m3fn"
_FP8_WEIGHTS_FROM = 8.0
"""NVIDIA's compute capability from which every release runs FP8 weights: computed in FP8 from 8.9, by the Marlin kernel
as weights alone before (https://docs.vllm.ai/en/stable/features/quantization/llm_compressor/fp8/)."""
_AWQ_FROM = 8.0
_HOPPER = 9.0


def fp8_at_load(dtype: str) -> Method:
    """What `--quantization fp8` makes of weights in a 16-bit dtype."""
    method = method_of(_ONE_SCALE, dtype)
    assert method is not None
    return method


def awq_beforehand(dtype: str) -> Method:
    """AWQ in groups of 128, of a checkpoint that is quantised so."""
    method = method_of(named("awq"), dtype)
    assert method is not None
    return method


def runs_awq_weights(card: Card) -> bool:
    """Whether AWQ's kernels surely run on a card: NVIDIA's from compute capability 8.0 on, all of them (Marlin).

    https://docs.vllm.ai/en/stable/features/quantization/ (the table of supported hardware).
    """
    return card.compute_capability is not None and float(card.compute_capability) >= _AWQ_FROM


def runs_fp8_weights(card: Card) -> bool:
    """Whether `--quantization fp8` surely runs on a card."""
    if card.compute_capability is not None:
        return float(card.compute_capability) >= _FP8_WEIGHTS_FROM
    return card.supports(_E4M3) is True


def stores_fp8_cache(card: Card, rules: Rules) -> bool:
    """Whether `--kv-cache-dtype fp8` surely runs on a card.

    Kernels refuse it where a card has no FP8 of its own ("type fp8e4nv not supported in this architecture":
    https://github.com/vllm-project/vllm/issues/26431). The V1 engine took it on Hopper alone while there was V0 to fall
    back to, until 0.11, and in its first releases nowhere ("No Fp8 KV cache so far": vllm/engine/arg_utils.py).
    """
    if rules.v1 and not rules.version.at_least(0, 9):
        return False
    if rules.v1 and not rules.version.at_least(0, 11):
        return card.compute_capability is not None and float(card.compute_capability) == _HOPPER
    return card.supports(_E4M3) is True
