"""AWQ: four bits, codes packed along the outputs (GEMM) or the inputs (GEMV).

Layouts: https://github.com/casper-hansen/AutoAWQ/tree/main/awq/modules/linear (gemm.py, gemv.py, gemv_fast.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.method import Matrix, Names, group_size_of, is_matrix, matrix_of, share
from gpufit.architecture.record import Component, Weight
from gpufit.architecture.tensors import Axis, StoredAs
from gpufit.errors import UnreadableInputError

_VERSIONS = ("gemm", "gemv", "gemv_fast", "llm-awq")


@dataclass(frozen=True)
class Awq:
    """AWQ's packing in one of its versions. The head is always left as it is."""

    bits: int
    group_size: int | None
    version: str
    skipped: Names

    @property
    def name(self) -> str:
        """The method in words."""
        group = f"groups of {self.group_size}" if self.group_size else "one group a row"
        return f"AWQ ({self.version}), {self.bits} bits, {group}"

    def stands_for(self, weight: Weight, module: str) -> tuple[StoredAs, ...] | None:
        """The packed tensors of a linear layer of the decoder; calibration leaves towers alone."""
        if not is_matrix(weight) or weight.component is not Component.DECODER or module in self.skipped:
            return None
        matrix = matrix_of(weight)
        if self.version == "gemm":
            return self._gemm(matrix)
        return self._gemv(matrix) if self.version == "gemv" else self._gemv_fast(matrix)

    def _gemm(self, matrix: Matrix) -> tuple[StoredAs, ...]:
        words = (share(matrix.out * self.bits, 32), Axis.OUT)
        group = (share(matrix.into, self.group_size or matrix.into), Axis.IN)
        return (
            matrix.stored(".qweight", "I32", (matrix.into, Axis.IN), words),
            matrix.stored(".qzeros", "I32", group, words),
            matrix.stored(".scales", "F16", group, (matrix.out, Axis.OUT)),
        )

    def _gemv(self, matrix: Matrix) -> tuple[StoredAs, ...]:
        out, width = (matrix.out, Axis.OUT), self._zeros_width(matrix)
        return (
            matrix.stored(".qweight", "I32", out, (share(matrix.into * self.bits, 32), Axis.IN)),
            matrix.stored(".qzeros", "I32", out, (width, Axis.IN)),
            matrix.stored(".scales", "F16", out, (width * 32 // self.bits, Axis.IN)),
        )

    def _gemv_fast(self, matrix: Matrix) -> tuple[StoredAs, ...]:
        # Rows are interleaved by four, sixteen-bit words hold four codes.
        out, groups = (matrix.out, Axis.OUT), (self._zeros_width(matrix) * 32 // self.bits, Axis.IN)
        return (
            matrix.stored(".qweight", "I16", (share(matrix.out, 4), Axis.OUT), (matrix.into, Axis.IN)),
            matrix.stored(".qzeros", "F16", groups, out),
            matrix.stored(".scales", "F16", groups, out),
        )

    def _zeros_width(self, matrix: Matrix) -> int:
        """Words of zero points a row: padded further where groups are small (`calculate_zeros_width`)."""
        size = self.group_size or matrix.into
        multiple = 1 if size >= 128 else 2 if size == 64 else 4
        words = share(matrix.into // size, 32 // self.bits)
        return share(words, multiple) * multiple


def of_config(config: Config) -> Awq:
    """The method that a `quantization_config` of AWQ describes. Raises UnreadableInputError."""
    bits = config.count("bits", "w_bit", default=4)
    version = config.text("version", default="gemm").lower()
    if bits != 4:
        raise UnreadableInputError(f"{config.where}: bits {bits}; AWQ packs 4")
    if version not in _VERSIONS:
        raise UnreadableInputError(f"{config.where}: version {version!a}; AWQ's are {', '.join(_VERSIONS)}")
    return Awq(
        bits=bits,
        group_size=group_size_of(config, "group_size", "q_group_size", default=128),
        version=version,
        skipped=Names(config.items("modules_to_not_convert") or (), config.where, anywhere=True),
    )
