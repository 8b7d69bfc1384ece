"""What an estimate is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.errors import UsageError
from gpufit.memory.terms import Shape

DTYPES = {"float32": ("F32", 4), "float16": ("F16", 2), "bfloat16": ("BF16", 2)}
"""What weights are computed in: torch's name -> (the files' name, bytes of an element)."""

ALIASES = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}

ATTENTION = ("sdpa", "eager", "flash_attention_2")
"""The attention implementations that rules are known for."""

DEFAULT_CONTEXT_TOKENS = 4096
DEFAULT_NEW_TOKENS = 256


@dataclass(frozen=True)
class EstimateRequest:
    """A model, an engine and a scenario."""

    model: str
    """A model directory, a config.json, a .safetensors or .gguf file, or a hub id."""
    context_tokens: int | None = None
    """Absent: DEFAULT_CONTEXT_TOKENS, or the model's own limit where that is lower."""
    concurrency: int = 1
    new_tokens: int | None = None
    """Absent: `usual_new_tokens` for a model that generates, as far as its positions go."""
    usual_new_tokens: int = DEFAULT_NEW_TOKENS
    dtype: str = "auto"
    """`auto`: the checkpoint's own."""
    kv_cache_dtype: str = "auto"
    """`auto`: that of the activations; `fp8`: one byte an element."""
    engine_version: str | None = None
    """A release of the engine; absent: the newest whose rules are known."""
    attention: str | None = None
    revision: str | None = None
    quantization: str | None = None
    """A name in `architecture.quantization.registry.NAMED`: weights that are 16 bit in the files, quantised at load."""

    def check(self) -> None:
        """Raise UsageError for what no estimate can be made for."""
        check_dtype(self.dtype)
        if self.kv_cache_dtype not in ("auto", "fp8"):
            raise UsageError(f"--kv-cache-dtype {self.kv_cache_dtype}: use auto or fp8")
        if self.attention is not None and self.attention not in ATTENTION:
            known = f"{', '.join(ATTENTION[:-1])} or {ATTENTION[-1]}"
            raise UsageError(f"--attn-implementation {self.attention}: no rules for it; use {known}")


def check_dtype(dtype: str) -> None:
    """Raise UsageError for a dtype that no weights are loaded in."""
    if dtype != "auto" and ALIASES.get(dtype, dtype) not in DTYPES:
        raise UsageError(f"--dtype {dtype}: weights are not loaded in it; use auto, bfloat16, float16 or float32")


def shape_of(request: EstimateRequest, position_limit: int | None, generates: bool, decodes_apart: bool) -> Shape:
    """The scenario, with what was not given chosen so that the model can take it."""
    new_tokens = 0 if not generates else request.new_tokens
    context = request.context_tokens
    if new_tokens is None:
        new_tokens = request.usual_new_tokens
        if position_limit is not None and not decodes_apart:
            room = position_limit + 1 - (context or 1)
            new_tokens = max(min(new_tokens, room), 1)
    if context is None:
        context = DEFAULT_CONTEXT_TOKENS
        if position_limit is not None:
            taken = 0 if decodes_apart else max(new_tokens - 1, 0)
            context = max(min(context, position_limit - taken), 1)
    return Shape(context, new_tokens, request.concurrency)
