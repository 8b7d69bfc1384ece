"""bitsandbytes: 4 bits (NF4, FP4) in blocks of 64, or 8 bits with a scale an output.

Layouts: https://github.com/bitsandbytes-foundation/bitsandbytes/blob/main/bitsandbytes/functional.py (`quantize_4bit`,
`QuantState`) and bitsandbytes/nn/modules.py beside it. Which modules:
https://github.com/huggingface/transformers/blob/main/src/transformers/integrations/bitsandbytes.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.method import Names, is_matrix, matrix_of, share
from gpufit.architecture.record import Kind, Weight
from gpufit.architecture.tensors import Axis, StoredAs

_BLOCK = 64
"""Weights that share a scale, at 4 bits."""
_NESTED_BLOCK = 256
"""Scales that share a scale of their own, where scales are quantised as well."""


@dataclass(frozen=True)
class FourBit:
    """NF4 or FP4: two codes a byte, a scale a block, and the table of the codes' values."""

    kind: str
    """`nf4` or `fp4`."""
    nested: bool
    """Whether the scales are quantised as well (`bnb_4bit_use_double_quant`)."""
    head: bool
    skipped: Names

    @property
    def name(self) -> str:
        """The method in words."""
        return f"bitsandbytes {self.kind.upper()}" + (", scales quantised too" if self.nested else "")

    def stands_for(self, weight: Weight, module: str) -> tuple[StoredAs, ...] | None:
        """The packed tensors of a linear layer, in whichever part of the model it is."""
        if not is_matrix(weight, *((Kind.HEAD,) if self.head else ())) or module in self.skipped:
            return None
        packed, blocks = share(weight.elements, 2), share(weight.elements, _BLOCK)
        flat, table = (Axis.OTHER, Axis.OTHER), (Axis.OTHER,)
        found = [StoredAs(".weight", "U8", (packed, 1), flat)]
        if self.nested:
            found += [
                StoredAs(".weight.absmax", "U8", (blocks,), table),
                StoredAs(".weight.nested_absmax", "F32", (share(blocks, _NESTED_BLOCK),), table),
                StoredAs(".weight.nested_quant_map", "F32", (256,), table),
            ]
        else:
            found.append(StoredAs(".weight.absmax", "F32", (blocks,), table))
        return (*found, StoredAs(".weight.quant_map", "F32", (16,), table))


@dataclass(frozen=True)
class EightBit:
    """LLM.int8(): a byte a weight, a scale an output."""

    head: bool
    skipped: Names

    @property
    def name(self) -> str:
        """The method in words."""
        return "bitsandbytes INT8"

    def stands_for(self, weight: Weight, module: str) -> tuple[StoredAs, ...] | None:
        """The quantised tensors of a linear layer, in whichever part of the model it is."""
        if not is_matrix(weight, *((Kind.HEAD,) if self.head else ())) or module in self.skipped:
            return None
        matrix = matrix_of(weight)
        rows = math.prod(matrix.stack) * matrix.out
        return (
            StoredAs(".weight", "I8", (rows, matrix.into), (Axis.OUT, Axis.IN)),
            StoredAs(".SCB", "F32", (rows,), (Axis.OUT,)),
        )


def of_config(config: Config) -> FourBit | EightBit:
    """The method that a `quantization_config` of bitsandbytes describes. Raises UnreadableInputError.

    A list of modules to skip takes the place of the default, which skips the head; so does an empty one.
    """
    listed = config.items("llm_int8_skip_modules")
    skipped = Names(listed or (), config.where)
    if config.flag("load_in_8bit") and not config.flag("load_in_4bit"):
        return EightBit(listed is not None, skipped)
    return FourBit(
        kind=config.text("bnb_4bit_quant_type", default="fp4"),
        nested=config.flag("bnb_4bit_use_double_quant"),
        head=listed is not None,
        skipped=skipped,
    )
