"""What vLLM keeps in memory for a weight, by the precision it was loaded in: bytes an element, scales beside it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from gpufit.architecture.record import Kind, Weight
from gpufit.errors import UsageError

ITEM_BYTES = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "F8_E5M2": 1}
"""Bytes an element of a dtype, by its name in safetensors files."""

_IN_LAYERS = frozenset({Kind.LINEAR, Kind.EXPERT})


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

    def sizes(self, weight: Weight, elements: int) -> tuple[int, ...]:
        """Sizes in bytes of the tensors that hold so many elements of a weight."""
        if self.quantises(weight):
            return tuple(int(share * elements) for share in (self.packed, *self.beside))
        if weight.dtype is not None and weight.dtype in ITEM_BYTES:
            return (elements * ITEM_BYTES[weight.dtype],)
        return (elements * self.plain_bytes,)

    def quantises(self, weight: Weight) -> bool:
        """Whether the method takes this weight."""
        return bool(self.packed) and weight.kind in self.quantised and not any(one in weight.name for one in self.kept)


def plain(dtype: str) -> Precision:
    """Weights in one dtype, named as in safetensors files. vLLM runs float32 checkpoints in 16 bit unless told:
    https://docs.vllm.ai/en/stable/configuration/engine_args.html#modelconfig. Raises UsageError for an unknown one."""
    if dtype not in ITEM_BYTES:
        raise UsageError(f"dtype {dtype!r} is none of {', '.join(ITEM_BYTES)}")
    return Precision(dtype, 2 if dtype == "F32" else ITEM_BYTES[dtype])


_HALF = Fraction(1, 2)
_METHODS: dict[str, tuple[Fraction, tuple[Fraction, ...], frozenset[Kind]]] = {
    "fp8": (Fraction(1), (Fraction(4, 128 * 128),), _IN_LAYERS),
    "awq": (_HALF, (Fraction(2, 128), Fraction(1, 2 * 128)), _IN_LAYERS),
    "gptq": (_HALF, (Fraction(2, 128), Fraction(1, 2 * 128)), _IN_LAYERS),
    "bitsandbytes": (_HALF, (Fraction(4, 64),), frozenset({Kind.LINEAR})),
    "mxfp4": (_HALF, (Fraction(1, 32),), frozenset({Kind.EXPERT})),
    "nvfp4": (_HALF, (Fraction(1, 16),), _IN_LAYERS),
}
"""Method -> bytes an element, bytes an element of each tensor beside it, the kinds it takes.

fp8: a float32 scale for 128 x 128 elements (per channel is of the same order); awq and gptq: 4 bits, a 16-bit scale and
a 4-bit zero point a group of 128; bitsandbytes: nf4 with a float32 maximum for 64 elements (nested statistics are
unpacked while loading); mxfp4: an 8-bit exponent for 32; nvfp4: an FP8 scale for 16.
https://docs.vllm.ai/en/stable/features/quantization/, https://arxiv.org/abs/2310.10537 (MX),
https://huggingface.co/docs/bitsandbytes."""


def quantised(method: str, plain_dtype: str = "BF16", kept: tuple[str, ...] = ()) -> Precision:
    """Weights quantised by a method, the rest in a plain dtype. Raises UsageError for a method that no rule covers."""
    if method not in _METHODS:
        raise UsageError(f"no memory rule for vLLM's quantization {method!r}; there is: {', '.join(_METHODS)}")
    packed, beside, kinds = _METHODS[method]
    return Precision(method, plain(plain_dtype).plain_bytes, packed, beside, kinds, kept)
