"""compressed-tensors: groups of modules, each with a scheme of its own, and a list of modules left alone.

Layouts: https://github.com/vllm-project/compressed-tensors/tree/main/src/compressed_tensors/compressors and
https://github.com/vllm-project/compressed-tensors/blob/main/src/compressed_tensors/quantization/quant_args.py
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.method import (
    Matrix,
    Names,
    group_size_of,
    is_matrix,
    matrix_of,
    section_of,
    share,
)
from gpufit.architecture.record import Kind, Weight
from gpufit.architecture.tensors import Axis, StoredAs
from gpufit.errors import UnreadableInputError

_LINEAR = ("Linear", "ParallelLMHead")
"""Classes that groups name to mean every linear layer."""

_UNKNOWN_FORMATS = ("marlin-24", "sparse-24-bitmask", "sparse-bitmask")
"""Formats that store fewer weights than the matrix has."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """How the weights of one group are stored."""

    bits: int
    is_float: bool
    strategy: str
    """Who shares a scale: `tensor`, `channel`, `group`, `block`, `tensor_group`."""
    group_size: int | None
    block: tuple[int, int]
    symmetric: bool
    packed: bool
    """Whether codes are packed into 32-bit words."""
    ordered: bool
    static_input: bool

    @property
    def name(self) -> str:
        """The scheme in words."""
        group = f", groups of {self.group_size}" if self.group_size else f", a scale a {self.strategy}"
        return f"{'FP' if self.is_float else 'INT'}{self.bits}{group}"

    def stored(self, matrix: Matrix, dtype: str) -> tuple[StoredAs, ...]:
        """The tensors of one matrix; scales are in the model's own dtype, `dtype`."""
        if self.is_float and self.bits == 4:
            return self._fp4(matrix)
        if self.packed:
            return self._packed(matrix, dtype)
        out, into = (matrix.out, Axis.OUT), (matrix.into, Axis.IN)
        found = [matrix.stored(".weight", "F8_E4M3" if self.is_float else "I8", out, into)]
        found.append(matrix.stored(".weight_scale", dtype, *self._groups(matrix)))
        if not self.symmetric:
            found.append(matrix.stored(".weight_zero_point", "I8", *self._groups(matrix)))
        if self.static_input:
            found.append(matrix.stored(".input_scale", dtype, (1, Axis.OTHER)))
        return tuple(found)

    def _groups(self, matrix: Matrix) -> tuple[tuple[int, Axis], ...]:
        """The dimensions of the scales."""
        if self.strategy == "tensor":
            return ((1, Axis.OTHER),)
        if self.strategy == "block":
            return (share(matrix.out, self.block[0]), Axis.OUT), (share(matrix.into, self.block[1]), Axis.IN)
        if self.group_size is None:
            return (matrix.out, Axis.OUT), (1, Axis.OTHER)
        return (matrix.out, Axis.OUT), (share(matrix.into, self.group_size), Axis.IN)

    def _packed(self, matrix: Matrix, dtype: str) -> tuple[StoredAs, ...]:
        words = share(matrix.into, 32 // self.bits) if 32 % self.bits == 0 else share(matrix.into * self.bits, 32)
        groups = self._groups(matrix)
        found = [
            matrix.stored(".weight_packed", "I32", (matrix.out, Axis.OUT), (words, Axis.IN)),
            matrix.stored(".weight_scale", dtype, *groups),
            matrix.stored(".weight_shape", "I64", (2, Axis.OTHER)),
        ]
        if not self.symmetric:
            rows = (share(matrix.out * self.bits, 32), Axis.OUT)
            found.append(matrix.stored(".weight_zero_point", "I32", rows, *groups[1:]))
        if self.ordered:
            found.append(matrix.stored(".weight_g_idx", "I32", (matrix.into, Axis.IN)))
        return tuple(found)

    def _fp4(self, matrix: Matrix) -> tuple[StoredAs, ...]:
        out = (matrix.out, Axis.OUT)
        groups = (share(matrix.into, self.group_size or 16), Axis.IN)
        packed = matrix.stored(".weight_packed", "U8", out, (share(matrix.into, 2), Axis.IN))
        if self.group_size == 32:
            # MXFP4: the scale is an exponent, and there is no second one.
            return packed, matrix.stored(".weight_scale", "U8", out, groups)
        found = [
            packed,
            matrix.stored(".weight_scale", "F8_E4M3", out, groups),
            matrix.stored(".weight_global_scale", "F32", (1, Axis.OTHER)),
        ]
        if self.static_input:
            found.append(matrix.stored(".input_global_scale", "F32", (1, Axis.OTHER)))
        return tuple(found)


@dataclass(frozen=True)
class CompressedTensors:
    """Schemes by the modules that they are for; the first that names a module counts."""

    schemes: tuple[tuple[Names | None, Scheme], ...]
    """None: every linear layer."""
    skipped: Names
    dtype: str

    @property
    def name(self) -> str:
        """The method in words."""
        return "compressed-tensors " + " and ".join(dict.fromkeys(scheme.name for _, scheme in self.schemes))

    def stands_for(self, weight: Weight, module: str) -> tuple[StoredAs, ...] | None:
        """The tensors of a linear layer: the head is one too, and left alone only where it is listed."""
        if not is_matrix(weight, Kind.HEAD, Kind.ROUTER) or module in self.skipped:
            return None
        for targets, scheme in self.schemes:
            # Routers are linear layers of some models and not of others; all checkpoints known leave them alone.
            if (targets is None and weight.kind is not Kind.ROUTER) or (targets is not None and module in targets):
                return scheme.stored(matrix_of(weight), self.dtype)
        return None


def of_config(config: Config, dtype: str) -> CompressedTensors:
    """The method that a `quantization_config` of compressed-tensors describes; `dtype` is that of the model.

    Raises UnreadableInputError.
    """
    overall = config.text("format", default="dense")
    sparsity = config.section("sparsity_config")
    for one in (overall, sparsity.text("format") if sparsity is not None else ""):
        if one in _UNKNOWN_FORMATS:
            raise UnreadableInputError(f"{config.where}: gpufit does not know the sizes of format {one!a}")
    groups = config.section("config_groups")
    schemes = []
    for key, values in groups.values.items() if groups is not None else ():
        group = section_of(values, f"{config.where}: config_groups: {key}")
        weights = group.section("weights")
        if weights is None:
            continue
        form = group.text("format", default=overall)
        targets = group.items("targets") or _LINEAR
        named = [one for one in targets if one not in _LINEAR]
        schemes.append((Names(named, group.where) if named else None, _scheme(weights, group, form)))
    return CompressedTensors(tuple(schemes), Names(config.items("ignore") or (), config.where), dtype)


def _scheme(weights: Config, group: Config, form: str) -> Scheme:
    bits, kind = weights.count("num_bits", default=8), weights.text("type", default="int")
    size = group_size_of(weights, "group_size", default=0) if weights.has("group_size") else None
    strategy = weights.text("strategy", default="group" if size else "tensor")
    if (kind, bits) not in {("float", 4), ("float", 8)} and not (kind == "int" and 2 <= bits <= 8):
        raise UnreadableInputError(f"{weights.where}: num_bits {bits} of type {kind!a} is no layout that gpufit knows")
    block = weights.items("block_structure") or (128, 128)
    if len(block) != 2 or not all(isinstance(one, int) and one > 0 for one in block):
        raise UnreadableInputError(f"{weights.where}: block_structure {list(block)!a} is not two whole numbers")
    inputs = group.section("input_activations")
    # `dynamic` is true, false or "local": a scale a token computed from a stored one for the tensor.
    static = inputs is not None and inputs.values.get("dynamic") in (None, False, "local")
    return Scheme(
        bits=bits,
        is_float=kind == "float",
        strategy=strategy,
        group_size=size,
        block=(block[0], block[1]),
        symmetric=weights.flag("symmetric", default=True),
        packed=form == "pack-quantized" or (kind == "int" and bits < 8),
        ordered=weights.values.get("actorder") in ("group", True),
        static_input=static,
    )
