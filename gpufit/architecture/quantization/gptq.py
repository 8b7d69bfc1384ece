"""GPTQ, and AutoRound, which packs the same way.

Layout: https://github.com/AutoGPTQ/AutoGPTQ/blob/main/auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py and, for
Marlin's, qlinear_marlin.py beside it. Which modules: https://github.com/ModelCloud/GPTQModel (`dynamic`, `lm_head`).
"""

from __future__ import annotations

import re
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
    spellings,
)
from gpufit.architecture.record import Component, Kind, Weight
from gpufit.architecture.tensors import Axis, StoredAs
from gpufit.errors import UnreadableInputError

_BITS = (2, 3, 4, 5, 6, 7, 8)


@dataclass(frozen=True, slots=True)
class Packing:
    """Bits and groups of one module."""

    bits: int
    group_size: int | None
    """Inputs that share a scale; None: all."""


@dataclass(frozen=True)
class Gptq:
    """GPTQ's packing: codes in 32-bit words down the inputs, scales and zero points a group."""

    label: str
    packing: Packing
    head: bool
    """Whether the head is quantised as well."""
    order: bool
    """Whether `g_idx` says which input belongs to which group."""
    marlin: bool
    dynamic: tuple[tuple[re.Pattern[str], Packing | None], ...]
    """Modules with a packing of their own, or (None) left as they are; the first that matches counts."""
    skipped: Names

    @property
    def name(self) -> str:
        """The method in words."""
        group = f"groups of {self.packing.group_size}" if self.packing.group_size else "one group a row"
        return f"{self.label}, {self.packing.bits} bits, {group}"

    def stands_for(self, weight: Weight, module: str) -> tuple[StoredAs, ...] | None:
        """The packed tensors of a linear layer of the decoder; calibration leaves towers alone."""
        kinds = (Kind.HEAD,) if self.head else ()
        if not is_matrix(weight, *kinds) or weight.component is not Component.DECODER or module in self.skipped:
            return None
        packing: Packing | None = self.packing
        for pattern, own in self.dynamic:
            if any(pattern.match(one) for one in spellings(module)):
                packing = own
                break
        if packing is None or packing.bits >= 16:
            return None
        return self._packed(matrix_of(weight), packing)

    def _packed(self, matrix: Matrix, packing: Packing) -> tuple[StoredAs, ...]:
        bits, groups = packing.bits, share(matrix.into, packing.group_size or matrix.into)
        words, out, group = share(matrix.into * bits, 32), (matrix.out, Axis.OUT), (groups, Axis.IN)
        if self.marlin:
            tiles = (share(matrix.into, 16), Axis.IN)
            return (
                matrix.stored(".B", "I32", tiles, (matrix.out * 16 * bits // 32, Axis.OUT)),
                matrix.stored(".s", "F16", group, out),
            )
        order = (matrix.stored(".g_idx", "I32", (matrix.into, Axis.IN)),) if self.order else ()
        return (
            matrix.stored(".qweight", "I32", (words, Axis.IN), out),
            matrix.stored(".qzeros", "I32", group, (share(matrix.out * bits, 32), Axis.OUT)),
            matrix.stored(".scales", "F16", group, out),
            *order,
        )


def of_config(config: Config) -> Gptq:
    """The method that a `quantization_config` of GPTQ describes. Raises UnreadableInputError."""
    packing = _packing(config, Packing(4, 128))
    dynamic = config.section("dynamic")
    return Gptq(
        label="GPTQ",
        packing=packing,
        head=config.flag("lm_head"),
        order=True,
        marlin=config.flag("is_marlin_format") or config.text("checkpoint_format") == "marlin",
        dynamic=_dynamic(dynamic, packing) if dynamic is not None else (),
        skipped=Names(config.items("modules_to_not_convert") or (), config.where),
    )


def of_auto_round(config: Config) -> Gptq:
    """The method of a checkpoint by AutoRound, packed for GPTQ's kernels. Raises UnreadableInputError.

    https://github.com/intel/auto-round/blob/main/docs/step_by_step.md names the formats.
    """
    packing = _packing(config, Packing(4, 128))
    own = config.section("extra_config")
    dynamic = []
    for module, values in own.values.items() if own is not None else ():
        pattern = re.compile(re.escape(module) + r"(\.|$)")
        dynamic.append((pattern, _packing(section_of(values, f"{config.where}: extra_config: {module}"), packing)))
    return Gptq("AutoRound", packing, False, False, False, tuple(dynamic), Names((), config.where))


def _packing(config: Config, usual: Packing) -> Packing:
    bits = config.count("bits", default=usual.bits)
    if bits not in _BITS and bits < 16:
        raise UnreadableInputError(f"{config.where}: bits {bits}; GPTQ packs {_BITS[0]} to {_BITS[-1]}")
    if "group_size" not in config.values:
        return Packing(bits, usual.group_size)
    return Packing(bits, group_size_of(config, "group_size", default=128))


def _dynamic(config: Config, usual: Packing) -> tuple[tuple[re.Pattern[str], Packing | None], ...]:
    """`-:expression` leaves modules alone, `+:expression` (or the expression alone) packs them in another way."""
    found: list[tuple[re.Pattern[str], Packing | None]] = []
    for key, values in config.values.items():
        leave = key.startswith("-:")
        try:
            pattern = re.compile(key.removeprefix("-:").removeprefix("+:"))
        except re.error as error:
            raise UnreadableInputError(f"{config.where}: {key!a} is no regular expression ({error})") from error
        found.append((pattern, None if leave else _packing(section_of(values, f"{config.where}: {key}"), usual)))
    return tuple(found)
