"""What the kernels for quantised weights take beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpufit.architecture.quantization.awq import Awq
from gpufit.architecture.quantization.gptq import Gptq
from gpufit.architecture.quantization.method import Method
from gpufit.architecture.record import Architecture, Kind
from gpufit.architecture.tensors import FLOATS, LoadedTensor
from gpufit.memory.engines.base import parse_version

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
    doubted_kv_share: float = 0.0
    """So much of the KV cache may be there a second time. Upper bound only."""


AWQ_KV_SHARE = 1 / 8
"""The AWQ rows of Qwen3 in 4.51.3, four models over four lengths, grow by 9/8 of what their KV cache holds, where the
same models in 16 bits, FP8 or GPTQ grow by the cache alone; nothing in the sources that were read explains it.
https://github.com/QwenLM/Qwen3/blob/f0bff49/docs/source/getting_started/speed_benchmark.md"""
AWQ_KV_SHARE_FROM = (4, 47)
"""The AWQ rows of Qwen2 and Qwen2.5 (4.38, 4.46) grow by the cache alone."""

NO_KERNELS = Kernels()
"""Weights as they are need none."""


def kernels_of(
    model: Architecture, tensors: Iterable[LoadedTensor], method: Method | None, element_bytes: int, release: str
) -> Kernels:
    """What the kernels of a method take in a release of transformers, for matrices dequantised to `element_bytes` an
    element."""
    if method is None:
        return NO_KERNELS
    packed = [one.weight for one in tensors if one.weight is not None and one.dtype not in FLOATS]
    largest = max((one.elements for one in packed), default=0) * element_bytes
    experts = any(one.kind is Kind.EXPERT for one in packed)
    second = model.vocabulary * model.hidden * element_bytes if model.tied else 0
    if isinstance(method, Gptq) and method.packing.bits == EXLLAMA_BITS:
        return Kernels(True, experts, largest, second)
    parsed = parse_version(release)
    more = isinstance(method, Awq) and (parsed.major, parsed.minor) >= AWQ_KV_SHARE_FROM
    return Kernels(True, experts, 0, largest + second, AWQ_KV_SHARE if more else 0.0)
