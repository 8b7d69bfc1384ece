"""What vLLM keeps in memory for a weight, by the precision it was loaded in: bytes an element, scales beside it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from gpufit.architecture.record import Component, Kind, Weight
from gpufit.errors import UsageError

ITEM_BYTES = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "F8_E5M2": 1}
"""Bytes an element of a dtype, by its name in safetensors files."""

_STACKS = frozenset({Component.DECODER, Component.ENCODER})
_IN_LAYERS = frozenset({Kind.LINEAR, Kind.EXPERT})


@dataclass(frozen=True, slots=True)
class ExpertSteps:
    """The multiples that a kernel pads the widths of experts to."""

    intermediate: int
    hidden: int
    scales: bool = True
    """Whether the scales are padded with the values."""

    def padding(self, intermediate: int, hidden: int) -> Fraction:
        """How many times as much a rank's part of an expert takes."""
        padded = _up(intermediate, self.intermediate) * _up(hidden, self.hidden)
        return Fraction(padded, intermediate * hidden)


@dataclass(frozen=True, slots=True)
class Precision:
    """How weights lie in memory once vLLM has loaded them."""

    name: str
    """`BF16`, `fp8`, `awq`."""
    plain_bytes: int
    """Bytes an element of what is not quantised."""
    packed: Fraction = Fraction(0)
    """Bytes an element of a quantised matrix; 0 where nothing is quantised."""
    beside: tuple[Fraction, ...] = ()
    """Bytes an element of its scales, zero points and such, a tensor each."""
    quantised: frozenset[Kind] = _IN_LAYERS
    """The kinds of weights that the method takes."""
    kept: tuple[str, ...] = ()
    """Parts of names of weights that stay plain (`modules_to_not_convert`, `ignore`)."""
    steps: ExpertSteps | None = None
    """What a kernel pads experts to, where it does."""

    def sizes(self, weight: Weight, elements: int, padding: Fraction = Fraction(1)) -> tuple[int, ...]:
        """Sizes in bytes of the tensors that hold so many elements of a weight, experts padded by `padding`."""
        if self.quantises(weight):
            scales = padding if self.steps is None or self.steps.scales else Fraction(1)
            packed = int(self.packed * elements * padding)
            return (packed, *(int(share * elements * scales) for share in self.beside))
        if weight.dtype is not None and weight.dtype in ITEM_BYTES:
            return (elements * ITEM_BYTES[weight.dtype],)
        return (elements * self.plain_bytes,)

    def quantises(self, weight: Weight) -> bool:
        """Whether the method takes this weight: one of the stack that generates, never of a tower."""
        taken = weight.kind in self.quantised and weight.component in _STACKS
        return bool(self.packed) and taken and not any(one in weight.name for one in self.kept)


def plain(dtype: str) -> Precision:
    """Weights in one dtype, named as in safetensors files. vLLM runs float32 checkpoints in 16 bit unless told:
    https://docs.vllm.ai/en/stable/configuration/engine_args.html#modelconfig. Raises UsageError for an unknown one."""
    if dtype not in ITEM_BYTES:
        raise UsageError(f"dtype {dtype!r} is none of {', '.join(ITEM_BYTES)}")
    return Precision(dtype, 2 if dtype == "F32" else ITEM_BYTES[dtype])


_HALF = Fraction(1, 2)
_METHODS: dict[str, tuple[Fraction, tuple[Fraction, ...], frozenset[Kind]]] = {
    "fp8": (Fraction(1), (Fraction(4, 128 * 128),), _IN_LAYERS),
    "int8": (Fraction(1), (Fraction(4, 128 * 128),), _IN_LAYERS),
    "awq": (_HALF, (Fraction(2, 128), Fraction(1, 2 * 128)), _IN_LAYERS),
    "gptq": (_HALF, (Fraction(2, 128), Fraction(1, 2 * 128)), _IN_LAYERS),
    "bitsandbytes": (_HALF, (Fraction(1, 64), Fraction(4, 64 * 256)), frozenset({Kind.LINEAR})),
    "mxfp4": (_HALF, (Fraction(1, 32),), frozenset({Kind.EXPERT})),
    "nvfp4": (_HALF, (Fraction(1, 16),), _IN_LAYERS),
}
"""Method -> bytes an element, bytes an element of each tensor beside it, the kinds it takes.

fp8, int8: a float32 scale for 128 x 128 elements (one a channel is of the same order); awq, gptq: 4 bits, a 16-bit
scale and a 4-bit zero point a group of 128; bitsandbytes: nf4 with an 8-bit maximum for 64 elements, and a float32 one
for 256 of those (nested statistics, as checkpoints are published); mxfp4: an 8-bit exponent for 32; nvfp4: an FP8 scale
for 16. https://docs.vllm.ai/en/stable/features/quantization/, https://arxiv.org/abs/2310.10537 (MX),
https://huggingface.co/docs/bitsandbytes."""


_ALIASES = {
    "awq_marlin": "awq",
    "gptq_marlin": "gptq",
    "auto-round": "gptq",
    "auto_round": "gptq",
    "fbgemm_fp8": "fp8",
    "modelopt": "fp8",
    "modelopt_fp4": "nvfp4",
}
"""Other names under which vLLM knows a method."""

MXFP4_KERNELS = {
    "triton": ExpertSteps(64, 256, scales=False),
    "marlin": ExpertSteps(128, 256),
    "flashinfer": ExpertSteps(256, 256),
}
"""Kernel -> what it pads MXFP4 experts to (vllm/model_executor/layers/quantization/mxfp4.py): Triton's, on Hopper,
swizzles the values into whole tiles of 256, found from gpt-oss-120b's 64.38 GiB and gpt-oss-20b's 13.47 GiB on H100
(https://github.com/llm-d-incubation/llm-d-planner, docs/empirical-vllm-memory-results.md); Marlin, where FP4 is not
native, printed 65.97 GiB (https://github.com/vllm-project/vllm/issues/23278)."""


def mxfp4_kernel(compute_capability: float | None) -> str:
    """The kernel that a card of this compute capability gets."""
    if compute_capability is None or compute_capability < 9:
        return "marlin"
    return "triton" if compute_capability < 10 else "flashinfer"


def quantised(
    method: str, plain_dtype: str = "BF16", kept: tuple[str, ...] = (), *, mxfp4: str = "triton"
) -> Precision:
    """Weights quantised by a method, the rest in a plain dtype; `mxfp4` is the kernel that takes MXFP4 experts.

    Raises UsageError for a method that no rule covers.
    """
    method = _ALIASES.get(method, method)
    if method not in _METHODS:
        raise UsageError(f"no memory rule for vLLM's quantization {method!r}; there is: {', '.join(_METHODS)}")
    packed, beside, kinds = _METHODS[method]
    steps = MXFP4_KERNELS[mxfp4] if method == "mxfp4" else None
    return Precision(method, plain(plain_dtype).plain_bytes, packed, beside, kinds, kept, steps)


def _up(count: int, step: int) -> int:
    return -(-count // step) * step
