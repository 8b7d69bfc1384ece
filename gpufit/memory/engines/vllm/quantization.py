"""Which methods of quantisation vLLM takes, and which of them it applies while it loads 16-bit weights.

https://docs.vllm.ai/en/stable/features/quantization/
"""

from __future__ import annotations

from gpufit.errors import UsageError

AT_LOAD = {"fp8": "fp8", "bitsandbytes-nf4": "bitsandbytes"}
"""Name here -> vLLM's `--quantization`, of the methods that it applies to a 16-bit checkpoint."""

BEFOREHAND = (
    "gptq",
    "awq",
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
