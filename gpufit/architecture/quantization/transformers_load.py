"""What stands in memory after transformers has loaded a model: by method, card and what is installed beside it.

Every rule is what the quantiser of that method decides in transformers 5:
https://github.com/huggingface/transformers/tree/main/src/transformers/quantizers
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpufit.architecture.config import Config
from gpufit.architecture.quantization import mxfp4
from gpufit.architecture.quantization.registry import method_name
from gpufit.architecture.record import Architecture, Component, Weight
from gpufit.architecture.tensors import FLOATS, LoadedTensor, as_it_is, element_bytes, module_of

Capability = tuple[int, int]
"""CUDA compute capability: (8, 9)."""

FP8_CAPABILITY: Capability = (8, 9)
"""quantizer_finegrained_fp8.py: below it FP8 weights are dequantised; without a card as well."""

FBGEMM_CAPABILITY: Capability = (9, 0)
"""quantizer_fbgemm_fp8.py: below it the model is refused."""

MXFP4_CAPABILITY: Capability = (7, 5)
"""quantizer_mxfp4.py: below it, or without triton and the `kernels` package, MXFP4 is dequantised."""

HOPPER = 9
"""Compute capability whose layout of MXFP4 codes Triton pads."""

LINEAR_ONLY = ("bitsandbytes", "torchao", "quanto", "hqq", "eetq")
"""Methods that replace `nn.Linear` when they quantise at load: routed experts, which transformers 5 keeps as stacked
parameters, stay as they are (`tensors_of_config(…, experts=False)`)."""

_DROPPED = (".weight_format", ".weight_shape")
"""Read while loading, and not kept on the device."""


@dataclass(frozen=True)
class Resident:
    """What stands in memory after loading."""

    tensors: tuple[LoadedTensor, ...]
    notes: tuple[str, ...] = ()
    """Where memory differs from the files, in words."""
    refused: str = ""
    """Why transformers does not load the model on this card; empty where it does."""


def resident(
    architecture: Architecture,
    tensors: Iterable[LoadedTensor],
    quantization: Config | None,
    *,
    dtype: str | None = None,
    capability: Capability | None = None,
    kernels: bool = False,
) -> Resident:
    """The tensors in memory after transformers has loaded those of a checkpoint (or of a method applied at load).

    `dtype` is what was asked for, by default the model's own; `capability` is the card's, None for a CPU; `kernels`
    says whether triton and the `kernels` package are installed.
    """
    asked = dtype or architecture.dtype
    method = method_name(quantization) if quantization is not None else ""
    refused = _refusal(method, capability)
    kept = [one for one in tensors if _is_loaded(one)]
    why = _dequantised(method, capability, kernels)
    if why:
        return Resident(_dense(kept, asked), (why.format(dtype=asked),), refused)
    if method == "mxfp4" and capability is not None and capability[0] == HOPPER:
        kept = [_padded_codes(one) for one in kept]
    return Resident(tuple(_cast(one, asked) for one in kept), refused=refused)


def _refusal(method: str, capability: Capability | None) -> str:
    if method == "fbgemm_fp8" and (capability is None or capability < FBGEMM_CAPABILITY):
        return "transformers loads FBGEMM's FP8 on cards of compute capability 9.0 and later only"
    if method.startswith("modelopt"):
        return "transformers does not load checkpoints of ModelOpt"
    return ""


def _dequantised(method: str, capability: Capability | None, kernels: bool) -> str:
    """Why quantised weights do not stay quantised; empty where they do."""
    if method in ("fp8", "mxfp8") and (capability is None or capability < FP8_CAPABILITY):
        return "FP8 is dequantised to {dtype} at load: it stays on cards of compute capability 8.9 and later only"
    if method == "mxfp4" and (capability is None or capability < MXFP4_CAPABILITY or not kernels):
        return (
            "MXFP4 is dequantised to {dtype} at load: it stays on cards of compute capability 7.5 and later, with "
            "triton and the kernels package installed"
        )
    if method == "compressed-tensors":
        return "compressed-tensors are dequantised to {dtype} by the first forward"
    if method == "gguf" and not kernels:
        return "GGUF blocks are dequantised to {dtype} at load: they stay only with the kernels package installed"
    return ""


def _is_loaded(tensor: LoadedTensor) -> bool:
    """Without layers for multi-token prediction, and without what is read but not kept."""
    weight = tensor.weight
    if weight is not None and (weight.component is Component.PREDICTOR or not weight.parameter):
        return False
    return not tensor.name.endswith(_DROPPED) and ".quant_state." not in tensor.name


def _padded_codes(tensor: LoadedTensor) -> LoadedTensor:
    """MXFP4 codes in Triton's layout for Hopper; the scales beside them stay as they are."""
    if not tensor.name.endswith("_blocks") or tensor.weight is None:
        return tensor
    *front, blocks, half = tensor.shape
    shape = (*front, mxfp4.up_to(blocks * mxfp4.BLOCK, mxfp4.TRITON_HOPPER.inputs) // mxfp4.BLOCK, half)
    return replace(tensor, shape=shape, size_bytes=element_bytes(shape, tensor.dtype))


def _is_plain(tensor: LoadedTensor) -> bool:
    """Whether a tensor is a weight by itself, not quantised."""
    own = tensor.weight is None or tensor.weight.name == tensor.name
    return own and tensor.dtype in FLOATS


def _cast(tensor: LoadedTensor, dtype: str) -> LoadedTensor:
    if not _is_plain(tensor):
        return tensor
    kept = dtype if tensor.weight is None else _dtype_of(tensor.weight, dtype)
    return replace(tensor, dtype=kept, size_bytes=element_bytes(tensor.shape, kept))


def _dense(tensors: list[LoadedTensor], dtype: str) -> tuple[LoadedTensor, ...]:
    """Every quantised weight as it was before, once, whatever number of tensors stood for it."""
    found: list[LoadedTensor] = []
    seen: dict[int, set[int]] = {}
    for one in tensors:
        if _is_plain(one) or one.weight is None:
            found.append(_cast(one, dtype))
            continue
        layers = set(one.layers) or {-1}
        new = layers - seen.setdefault(id(one.weight), set())
        seen[id(one.weight)] |= new
        if new:
            found.append(_as_before(one.weight, tuple(sorted(new - {-1})), dtype))
    return tuple(found)


def _dtype_of(weight: Weight, dtype: str) -> str:
    """What a weight that is not quantised is kept in, whatever was asked for."""
    return "F32" if weight.upcast else weight.dtype or dtype


def _as_before(weight: Weight, layers: tuple[int, ...], dtype: str) -> LoadedTensor:
    plain = as_it_is(weight, _dtype_of(weight, dtype))
    return LoadedTensor(
        name=module_of(weight.name) + plain.suffix,
        dtype=plain.dtype,
        shape=plain.shape,
        size_bytes=plain.size_bytes,
        layers=layers,
        experts=weight.experts,
        weight=weight,
        axes=plain.axes,
    )
