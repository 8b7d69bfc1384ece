"""Methods that quantise linear layers while a model is loaded: torchao, Quanto, HQQ and EETQ.

Sizes of the first two were read off loaded models (torchao 0.18, optimum-quanto 0.2.7); sources are at each rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.method import Matrix, Names, group_size_of, is_matrix, matrix_of, share
from gpufit.architecture.record import Kind, Weight
from gpufit.architecture.tensors import Axis, StoredAs
from gpufit.errors import UnreadableInputError


@dataclass(frozen=True, slots=True)
class Layout:
    """How a matrix is stored: codes, scales and zero points."""

    label: str
    bits: int
    dtype: str
    group_size: int | None
    """Weights that share a scale; None: all of an output."""
    scale_dtype: str
    zero_dtype: str | None
    """None: no zero points."""

    def stored(self, matrix: Matrix) -> tuple[StoredAs, ...]:
        """The tensors of one matrix."""
        out = (matrix.out, Axis.OUT)
        codes = (share(matrix.into * self.bits, 8), Axis.IN)
        groups = (out, (share(matrix.into, self.group_size), Axis.IN)) if self.group_size else (out,)
        found = [
            matrix.stored(".weight", self.dtype, out, codes),
            matrix.stored(".weight.scale", self.scale_dtype, *groups),
        ]
        if self.zero_dtype is not None:
            found.append(matrix.stored(".weight.zero_point", self.zero_dtype, *groups))
        return tuple(found)


@dataclass(frozen=True)
class WeightOnly:
    """One layout for every linear layer that is not skipped."""

    layout: Layout
    head: bool
    embedding: bool
    skipped: Names

    @property
    def name(self) -> str:
        """The method in words."""
        return self.layout.label

    def stands_for(self, weight: Weight, module: str) -> tuple[StoredAs, ...] | None:
        """Codes and scales of a linear layer, in whichever part of the model it is."""
        kinds = ((Kind.HEAD,) if self.head else ()) + ((Kind.EMBEDDING,) if self.embedding else ())
        if not is_matrix(weight, *kinds) or module in self.skipped:
            return None
        return self.layout.stored(matrix_of(weight))


_TORCHAO = {
    "Int8WeightOnlyConfig": Layout("torchao INT8", 8, "I8", None, "F32", "I8"),
    "Int8DynamicActivationInt8WeightConfig": Layout("torchao INT8, activations too", 8, "I8", None, "F32", "I8"),
    "Float8WeightOnlyConfig": Layout("torchao FP8", 8, "F8_E4M3", None, "F32", None),
    "Float8DynamicActivationFloat8WeightConfig": Layout(
        "torchao FP8, activations too", 8, "F8_E4M3", None, "F32", None
    ),
}
"""https://github.com/pytorch/ao/blob/main/torchao/quantization/quant_api.py"""

_INT4 = "Int4WeightOnlyConfig"


_OLDER = {
    "int4_weight_only": _INT4,
    "int8_weight_only": "Int8WeightOnlyConfig",
    "int8_dynamic_activation_int8_weight": "Int8DynamicActivationInt8WeightConfig",
    "float8_weight_only": "Float8WeightOnlyConfig",
    "float8_dynamic_activation_float8_weight": "Float8DynamicActivationFloat8WeightConfig",
}
"""Names that checkpoints of transformers 4 have as text, with settings in `quant_type_kwargs`."""


def of_torchao(config: Config) -> WeightOnly:
    """The method that a `quantization_config` of torchao describes. Raises UnreadableInputError."""
    if isinstance(config.values.get("quant_type"), str):
        name, inner = config.text("quant_type"), config.section("quant_type_kwargs")
        name = _OLDER.get(name, name)
    else:
        kind = config.section("quant_type")
        default = kind.section("default") if kind is not None else None
        name = default.text("_type") if default is not None else ""
        inner = default.section("_data") if default is not None else None
    if name == _INT4:
        size = inner.count("group_size", default=128) if inner is not None else 128
        layout = Layout(f"torchao INT4, groups of {size}", 4, "U8", size, "BF16", "BF16")
    elif name in _TORCHAO:
        layout = _TORCHAO[name]
    else:
        raise UnreadableInputError(
            f"{config.where}: gpufit does not know the sizes of torchao's {name or 'quant_type'!a}"
        )
    listed = config.items("modules_to_not_convert")
    both = config.flag("include_input_output_embeddings")
    return WeightOnly(layout, both or listed is not None, both, Names(listed or (), config.where))


_QUANTO = {
    "int8": Layout("Quanto INT8", 8, "I8", None, "BF16", None),
    "float8": Layout("Quanto FP8", 8, "F8_E4M3", None, "BF16", None),
    "int4": Layout("Quanto INT4, groups of 128", 4, "U8", 128, "BF16", "BF16"),
    "int2": Layout("Quanto INT2, groups of 128", 2, "U8", 128, "BF16", "BF16"),
}
"""https://github.com/huggingface/optimum-quanto/tree/main/optimum/quanto/tensor/weights"""


def of_quanto(config: Config) -> WeightOnly:
    """The method that a `quantization_config` of Quanto describes. Raises UnreadableInputError."""
    name = config.text("weights", default="int8")
    if name not in _QUANTO:
        raise UnreadableInputError(f"{config.where}: weights {name!a}; Quanto's are {', '.join(_QUANTO)}")
    listed = config.items("modules_to_not_convert")
    return WeightOnly(_QUANTO[name], listed is not None, False, Names(listed or (), config.where))


def of_hqq(config: Config) -> WeightOnly:
    """The method that a `quantization_config` of HQQ describes; scales and zeros are kept in the compute dtype.

    https://github.com/mobiusml/hqq/blob/master/hqq/core/quantize.py. Raises UnreadableInputError.
    """
    inner = config.section("quant_config") or config
    values = inner.section("weight_quant_params") or inner
    if any(isinstance(one, Mapping) and "weight_quant_params" in one for one in inner.values.values()):
        raise UnreadableInputError(f"{config.where}: HQQ with a configuration a layer is not known to gpufit")
    bits, size = values.count("nbits", default=4), group_size_of(values, "group_size", default=64)
    if bits not in (8, 4, 2, 1):
        raise UnreadableInputError(f"{config.where}: nbits {bits}; the sizes of HQQ's 8, 4, 2 and 1 are known")
    label = f"HQQ, {bits} bits" + (f", groups of {size}" if size else "")
    skipped = Names(config.items("skip_modules") or ("lm_head",), config.where)
    return WeightOnly(Layout(label, bits, "U8", size, "BF16", "BF16"), True, False, skipped)


def of_eetq(config: Config) -> WeightOnly:
    """EETQ: https://github.com/huggingface/transformers/blob/main/src/transformers/integrations/eetq.py."""
    listed = config.items("modules_to_not_convert")
    layout = Layout("EETQ INT8", 8, "I8", None, "F16", None)
    return WeightOnly(layout, listed is not None, False, Names(listed or (), config.where))
