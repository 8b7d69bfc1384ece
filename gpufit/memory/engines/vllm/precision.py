"""What vLLM keeps in memory for a weight, by the precision it was loaded in: bytes an element, scales beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gpufit.architecture.quantization.method import Method
from gpufit.architecture.quantization.registry import declared, method_of, named
from gpufit.architecture.record import Component, Kind, Weight
from gpufit.architecture.tensors import DTYPE_BITS, module_of
from gpufit.errors import UsageError

_PLAIN = ("BF16", "F16", "F32")
_MATRICES = frozenset({Kind.LINEAR, Kind.EXPERT, Kind.HEAD, Kind.EMBEDDING, Kind.ROUTER})
_STACKS = frozenset({Component.DECODER, Component.ENCODER})
"""Methods reach the stacks that generate; vLLM runs towers for images and sound in 16 bit."""
_LATER = (".g_idx", ".weight_g_idx", ".weight_shape", ".weight_format", ".input_scale", ".input_global_scale")
"""Read while loading and not kept, or a number a matrix."""


@dataclass(frozen=True, slots=True)
class ExpertSteps:
    """The multiples that a kernel pads the widths of experts to."""

    intermediate: int
    hidden: int = 1
    inputs: int = 1
    """Of the values' inputs in either matrix, whichever width they are; scales are not padded so."""

    def padding(self, intermediate: int, hidden: int, *, down: bool) -> tuple[Fraction, Fraction]:
        """How many times as much values and scales of a rank's part of an expert take; `down`: of its down projection,
        whose inputs are the intermediate width."""
        inner, outer = _up(intermediate, self.intermediate), _up(hidden, self.hidden)
        scales = Fraction(inner * outer, intermediate * hidden)
        inputs = inner if down else outer
        return scales * Fraction(_up(inputs, self.inputs), inputs), scales


MXFP4_KERNELS = {
    "triton": ExpertSteps(64, inputs=256),
    "marlin": ExpertSteps(128, 256),
    "flashinfer": ExpertSteps(256, 256),
}
"""Kernel -> what it pads MXFP4 experts to (vllm/model_executor/layers/quantization/mxfp4.py). Triton's, on Hopper,
swizzles rows of values into whole 128 bytes: gpt-oss-120b printed 64.38 GiB and gpt-oss-20b 13.47 GiB on H100
(https://github.com/llm-d-incubation/llm-d-planner, docs/empirical-vllm-memory-results.md); Marlin's, where FP4 is not
native, printed 65.97 GiB (https://github.com/vllm-project/vllm/issues/23278)."""


@dataclass(frozen=True, slots=True)
class Precision:
    """How weights lie in memory once vLLM has loaded them."""

    dtype: str
    """Of what is not quantised, as safetensors names it: `BF16`."""
    method: Method | None = None
    """How the checkpoint is quantised; None where it is not."""
    steps: ExpertSteps | None = None
    """What a kernel pads experts to, where it does."""
    whole_first: bool = False
    """Whether 16-bit weights are loaded whole and quantised then, as vLLM's docs say of `--quantization fp8`: "you need
    enough memory to load the whole model" (https://docs.vllm.ai/en/stable/features/quantization/fp8.html)."""

    @property
    def name(self) -> str:
        """In words, for a report."""
        return self.dtype if self.method is None else f"{self.method.name}, else {self.dtype}"

    @property
    def plain_bytes(self) -> int:
        """Bytes an element of what is not quantised."""
        return DTYPE_BITS[self.dtype] // 8

    def stands_for(self, weight: Weight, layer: int) -> tuple[tuple[str, Fraction], ...]:
        """Dtype, and bytes an element of the weight, of each tensor that stands for it in a layer, values first."""
        stored = None
        if self.method is not None and weight.kind in _MATRICES and weight.component in _STACKS:
            module = module_of(weight.name).replace("{layer}", str(layer)).replace("{expert}", "0")
            stored = self.method.stands_for(weight, module)
        if stored is None:
            dtype = weight.dtype or self.dtype
            return ((dtype, Fraction(DTYPE_BITS[dtype], 8)),)
        kept = [one for one in stored if not one.suffix.endswith(_LATER)]
        return tuple((one.dtype, Fraction(one.size_bytes, weight.elements)) for one in kept)


def plain(dtype: str) -> Precision:
    """Weights in one dtype, named as in safetensors files. vLLM runs float32 checkpoints in 16 bit unless told:
    https://docs.vllm.ai/en/stable/configuration/engine_args.html#modelconfig. Raises UsageError for an unknown one."""
    if dtype not in _PLAIN:
        raise UsageError(f"dtype {dtype!r} is none of {', '.join(_PLAIN)}")
    return Precision("F16" if dtype == "F32" else dtype)


def quantised(method: str, dtype: str = "BF16", *, mxfp4: str = "triton") -> Precision:
    """Weights quantised by a named method with its usual settings; `mxfp4` is the kernel for MXFP4 experts.

    Raises UsageError for a method that no rule covers.
    """
    config = named(method)
    return of_method(method_of(config, dtype), dtype, mxfp4=mxfp4)


def of_config(values: Mapping[str, Any], where: str, dtype: str = "BF16", *, mxfp4: str = "triton") -> Precision:
    """Weights as a model's config says that they are quantised; plain where it says nothing.

    Raises UnreadableInputError for a damaged quantisation config, or one of a method that no rule covers.
    """
    return of_method(method_of(declared(values, where), dtype), dtype, mxfp4=mxfp4)


def of_method(method: Method | None, dtype: str = "BF16", *, mxfp4: str = "triton") -> Precision:
    """Weights of a method that is known already; plain for None."""
    padded = method is not None and method.name.startswith("MXFP4")
    return Precision(plain(dtype).dtype, method, MXFP4_KERNELS[mxfp4] if padded else None)


def mxfp4_kernel(compute_capability: float | None) -> str:
    """The kernel that a card of this compute capability gets for MXFP4 experts."""
    if compute_capability is None or compute_capability < 9:
        return "marlin"
    return "triton" if compute_capability < 10 else "flashinfer"


def _up(count: int, step: int) -> int:
    return -(-count // step) * step
