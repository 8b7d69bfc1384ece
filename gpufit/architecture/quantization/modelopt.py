"""NVIDIA ModelOpt: FP8 with a scale a tensor, NVFP4 in groups of 16, or both in one checkpoint.

Layouts: https://github.com/NVIDIA/TensorRT-Model-Optimizer (`export/quant_utils.py`) and
https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/quantization/modelopt.py
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.method import Names, is_matrix, matrix_of, section_of, share, spellings
from gpufit.architecture.record import Kind, Weight
from gpufit.architecture.tensors import Axis, StoredAs
from gpufit.errors import UnreadableInputError

_FP8 = ("FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO")
_NVFP4 = ("NVFP4", "W4A16_NVFP4", "NVFP4_AWQ", "W4A8_NVFP4_FP8")
_MIXED = "MIXED_PRECISION"


@dataclass(frozen=True)
class ModelOpt:
    """One algorithm for every linear layer, or one named for each."""

    algorithm: str
    group_size: int
    layers: dict[str, tuple[str, int]] | None
    """Module -> algorithm and group size, where only named ones are quantised."""
    skipped: Names

    @property
    def name(self) -> str:
        """The method in words."""
        kinds = dict.fromkeys(one for one, _ in self.layers.values()) if self.layers is not None else (self.algorithm,)
        return "ModelOpt " + " and ".join(kinds)

    def stands_for(self, weight: Weight, module: str) -> tuple[StoredAs, ...] | None:
        """The tensors of a linear layer; the head's where it is named, or not left out."""
        if not is_matrix(weight, Kind.HEAD) or module in self.skipped:
            return None
        algorithm, group = self.algorithm, self.group_size
        if self.layers is not None:
            own = next((self.layers[one] for one in spellings(module) if one in self.layers), None)
            if own is None:
                return None
            algorithm, group = own
        return _fp8(weight, algorithm) if algorithm in _FP8 else _nvfp4(weight, algorithm, group)


def _fp8(weight: Weight, algorithm: str) -> tuple[StoredAs, ...]:
    matrix = matrix_of(weight)
    found = [matrix.stored(".weight", "F8_E4M3", (matrix.out, Axis.OUT), (matrix.into, Axis.IN))]
    if algorithm == "FP8":
        return (*found, matrix.stored(".weight_scale", "F32"), matrix.stored(".input_scale", "F32"))
    if algorithm == "FP8_PB_WO":
        blocks = (share(matrix.out, 128), Axis.OUT), (share(matrix.into, 128), Axis.IN)
        return (*found, matrix.stored(".weight_scale", "F32", *blocks))
    return (*found, matrix.stored(".weight_scale", "F32", (matrix.out, Axis.OUT)))


def _nvfp4(weight: Weight, algorithm: str, group: int) -> tuple[StoredAs, ...]:
    matrix = matrix_of(weight)
    out = (matrix.out, Axis.OUT)
    found = [
        matrix.stored(".weight", "U8", out, (share(matrix.into, 2), Axis.IN)),
        matrix.stored(".weight_scale", "F8_E4M3", out, (share(matrix.into, group), Axis.IN)),
        matrix.stored(".weight_scale_2", "F32"),
    ]
    return tuple(found) if algorithm.startswith("W4A16") else (*found, matrix.stored(".input_scale", "F32"))


def of_config(config: Config) -> ModelOpt:
    """The method that a `quantization_config` of ModelOpt describes. Raises UnreadableInputError."""
    algorithm = config.text("quant_algo").upper() or _algorithm_of_groups(config)
    skipped = Names((*(config.items("ignore") or ()), *(config.items("exclude_modules") or ())), config.where)
    layers = None
    if algorithm == _MIXED:
        named = config.section("quantized_layers")
        if named is None:
            raise UnreadableInputError(f"{config.where}: {_MIXED} without quantized_layers, which name the modules")
        layers = {
            module: _layer(section_of(values, f"{named.where}: {module}")) for module, values in named.values.items()
        }
    else:
        _check(algorithm, config)
    return ModelOpt(algorithm, config.count("group_size", default=16), layers, skipped)


def _layer(values: Config) -> tuple[str, int]:
    algorithm = values.text("quant_algo").upper()
    _check(algorithm, values)
    return algorithm, values.count("group_size", default=16)


def _algorithm_of_groups(config: Config) -> str:
    """The algorithm of a config that names only its groups: four bits or eight, floating point."""
    groups = config.section("config_groups")
    for key, values in groups.values.items() if groups is not None else ():
        weights = section_of(values, f"{config.where}: config_groups: {key}").section("weights")
        if weights is not None and weights.text("type") == "float":
            return "NVFP4" if weights.count("num_bits") == 4 else "FP8"
    raise UnreadableInputError(f"{config.where}: names no quant_algo")


def _check(algorithm: str, config: Config) -> None:
    if algorithm not in (*_FP8, *_NVFP4):
        raise UnreadableInputError(f"{config.where}: gpufit does not know the sizes of ModelOpt's {algorithm!a}")
