"""What the kernels for quantised weights take beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpufit.architecture.quantization.gptq import Gptq
from gpufit.architecture.quantization.method import Method
from gpufit.architecture.record import Architecture, Kind
from gpufit.architecture.tensors import FLOATS, LoadedTensor

EXLLAMA_BITS = 4
"""What the exllama kernels of AutoGPTQ and its successors take."""


@dataclass(frozen=True)
class Kernels:
    """Bytes beside the weights, whatever the workload."""

    quantised: bool = False
    packed_experts: bool = False
    """Whether experts stay packed in memory, so that kernels of their own run them."""
    buffer_bytes: int = 0
    """Kept from load on: exllama dequantises into a buffer of the largest matrix that it serves (`temp_dq`).
    https://github.com/AutoGPTQ/AutoGPTQ/blob/main/auto_gptq/modeling/_utils.py"""
    doubt_bytes: int = 0
    """What may be there or not: for other methods the largest matrix in the compute dtype, since kernels that lack a
    fused product dequantise one at a time (https://github.com/Vahe1994/AQLM/issues/170); and where head and embeddings
    are one tensor a second one, which some loaders keep apart. Upper bound only."""


NO_KERNELS = Kernels()
"""Weights as they are need none."""


def kernels_of(
    model: Architecture, tensors: Iterable[LoadedTensor], method: Method | None, element_bytes: int
) -> Kernels:
    """What the kernels of a method take, for matrices dequantised to `element_bytes` an element."""
    if method is None:
        return NO_KERNELS
    packed = [one.weight for one in tensors if one.weight is not None and one.dtype not in FLOATS]
    largest = max((one.elements for one in packed), default=0) * element_bytes
    experts = any(one.kind is Kind.EXPERT for one in packed)
    second = model.vocabulary * model.hidden * element_bytes if model.tied else 0
    if isinstance(method, Gptq) and method.packing.bits == EXLLAMA_BITS:
        return Kernels(True, experts, largest, second)
    return Kernels(True, experts, 0, largest + second)
