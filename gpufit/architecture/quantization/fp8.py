"""Checkpoints in FP8: with scales a block (DeepSeek V3, Qwen3), a row (FBGEMM) or a tensor, and MXFP8.

Layouts: https://github.com/huggingface/transformers/blob/main/src/transformers/integrations/finegrained_fp8.py and
fbgemm_fp8.py beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.method import Names, is_matrix, matrix_of, share
from gpufit.architecture.record import Kind, Weight
from gpufit.architecture.tensors import Axis, StoredAs
from gpufit.errors import UnreadableInputError


@dataclass(frozen=True)
class Fp8:
    """One byte a weight, with scales a block of outputs and inputs, or one for the whole tensor."""

    label: str
    block: tuple[int, int] | None
    """Outputs and inputs that share a scale; None: the whole tensor."""
    scale_dtype: str
    scale_suffix: str
    static: bool
    """Whether a scale for the activations is stored too."""
    experts_in_fp4: bool
    """DeepSeek V4: experts in FP4, a scale a block of 32 inputs."""
    skipped: Names

    @property
    def name(self) -> str:
        """The method in words."""
        scales = "one scale a tensor" if self.block is None else "blocks of {} x {}".format(*self.block)
        return f"{self.label}, {scales}"

    def stands_for(self, weight: Weight, module: str) -> tuple[StoredAs, ...] | None:
        """The FP8 matrix of a linear layer and its scales."""
        if not is_matrix(weight) or module in self.skipped:
            return None
        matrix = matrix_of(weight)
        out, into = (matrix.out, Axis.OUT), (matrix.into, Axis.IN)
        if self.experts_in_fp4 and weight.kind is Kind.EXPERT:
            return (
                matrix.stored(".weight", "U8", out, (share(matrix.into, 2), Axis.IN)),
                matrix.stored(self.scale_suffix, "F8_E8M0", out, (share(matrix.into, 32), Axis.IN)),
            )
        found = [matrix.stored(".weight", "F8_E4M3", out, into)]
        if self.block is None:
            found.append(matrix.stored(self.scale_suffix, self.scale_dtype))
        else:
            rows, columns = (share(matrix.out, self.block[0]), Axis.OUT), (share(matrix.into, self.block[1]), Axis.IN)
            found.append(matrix.stored(self.scale_suffix, self.scale_dtype, rows, columns))
        if self.static:
            found.append(matrix.stored(".activation_scale", "F32"))
        return tuple(found)


@dataclass(frozen=True)
class FbgemmFp8:
    """FBGEMM's FP8: a scale an output."""

    skipped: Names

    @property
    def name(self) -> str:
        """The method in words."""
        return "FBGEMM FP8, one scale a row"

    def stands_for(self, weight: Weight, module: str) -> tuple[StoredAs, ...] | None:
        """The FP8 matrix of a linear layer and its scales."""
        if not is_matrix(weight) or module in self.skipped:
            return None
        matrix = matrix_of(weight)
        return (
            matrix.stored(".weight", "F8_E4M3", (matrix.out, Axis.OUT), (matrix.into, Axis.IN)),
            matrix.stored(".weight_scale", "F32", (matrix.out, Axis.OUT), (1, Axis.OTHER)),
        )


def of_config(config: Config) -> Fp8:
    """The method that a `quantization_config` of `fp8` or `mxfp8` describes. Raises UnreadableInputError."""
    skipped = Names(config.items("modules_to_not_convert") or config.items("ignored_layers") or (), config.where)
    if config.text("quant_method") == "mxfp8":
        return Fp8("MXFP8", (1, 32), "F8_E8M0", ".weight_scale_inv", False, False, skipped)
    block = config.items("weight_block_size")
    if block is not None and (len(block) != 2 or not all(isinstance(one, int) and one > 0 for one in block)):
        raise UnreadableInputError(f"{config.where}: weight_block_size {list(block)!a} is not two whole numbers")
    return Fp8(
        label="FP8",
        block=(block[0], block[1]) if block is not None else None,
        scale_dtype="F8_E8M0" if config.text("scale_fmt") == "ue8m0" else "F32",
        scale_suffix=".weight_scale_inv" if block is not None else ".weight_scale",
        static=config.text("activation_scheme", default="dynamic") == "static",
        experts_in_fp4=config.text("expert_dtype", default="fp8") == "fp4",
        skipped=skipped,
    )


def of_fbgemm(config: Config) -> FbgemmFp8:
    """The method that a `quantization_config` of `fbgemm_fp8` describes. Raises UnreadableInputError."""
    return FbgemmFp8(Names(config.items("modules_to_not_convert") or (), config.where))
