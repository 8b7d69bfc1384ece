"""What every method of quantisation has in common: the matrix it packs, and the modules it leaves alone."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gpufit.architecture.config import Config
from gpufit.architecture.record import Kind, Weight
from gpufit.architecture.tensors import Axis, StoredAs, axes_of
from gpufit.errors import UnreadableInputError


class Method(Protocol):
    """How one checkpoint is quantised."""

    @property
    def name(self) -> str:
        """The method, in words for the user: `GPTQ, 4 bits, groups of 128`."""

    def stands_for(self, weight: Weight, module: str) -> tuple[StoredAs, ...] | None:
        """The tensors that stand for one copy of a weight, that of the module `module`; None where it stays."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """The matrix of a linear layer, or a stack of one an expert."""

    stack: tuple[int, ...]
    """Experts in one tensor; empty for a matrix by itself."""
    out: int
    into: int

    def stored(self, suffix: str, dtype: str, *dimensions: tuple[int, Axis]) -> StoredAs:
        """A tensor of these dimensions, the stack before them."""
        shape = self.stack + tuple(size for size, _ in dimensions)
        axes = (Axis.EXPERTS,) * len(self.stack) + tuple(axis for _, axis in dimensions)
        return StoredAs(suffix, dtype, shape, axes)


def matrix_of(weight: Weight) -> Matrix:
    """The matrix that a weight of two or three dimensions holds."""
    axes = axes_of(weight)
    by_axis = dict(zip(axes, weight.shape, strict=True))
    return Matrix(weight.shape[: axes.count(Axis.EXPERTS)], by_axis[Axis.OUT], by_axis[Axis.IN])


def is_matrix(weight: Weight, *also: Kind) -> bool:
    """Whether a weight is what methods quantise: a linear layer's or expert's matrix, or one of the kinds named."""
    return weight.kind in (Kind.LINEAR, Kind.EXPERT, *also) and len(weight.shape) in (2, 3)


def share(count: int, size: int) -> int:
    """How many groups, blocks or packs of `size` hold `count`, the last one perhaps not full."""
    return -(-count // size)


def group_size_of(config: Config, *keys: str, default: int) -> int | None:
    """Elements of a group along the inputs; None where one group is a whole row (-1, 0 or null)."""
    for key in keys:
        if key not in config.values:
            continue
        value = config.values[key]
        if value is None or value in (-1, 0):
            return None
        return config.count(key)
    return default


def section_of(values: Any, where: str) -> Config:
    """An object within a config, under a key that the config chose itself. Raises UnreadableInputError."""
    # Such a key may be anything, and an error is one line.
    where = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in where)
    if not isinstance(values, Mapping):
        raise UnreadableInputError(f"{where}: not an object")
    return Config(values, where)


_PREFIXES = ("model.language_model.", "language_model.model.", "language_model.", "model.")


def spellings(module: str) -> tuple[str, ...]:
    """The names that a module goes by: wrappers around a text model change what stands before `layers`."""
    rest = next((module[len(one) :] for one in _PREFIXES if module.startswith(one)), module)
    return tuple(dict.fromkeys((module, rest, *(prefix + rest for prefix in _PREFIXES))))


class Names:
    """A list of modules as configs write them: whole names or parents, endings, globs and regular expressions."""

    def __init__(self, patterns: Iterable[Any], where: str, *, anywhere: bool = False) -> None:
        """`anywhere`: a name also counts where it stands within a module's, as AutoAWQ reads its list."""
        texts = []
        for one in patterns:
            if not isinstance(one, str):
                raise UnreadableInputError(f"{where}: names a module by {one!a}, which is not text")
            texts.append(one)
        plain = [one for one in texts if not set(one) & set("*?[]()|^$+\\") and not one.startswith("re:")]
        self._parents = frozenset(plain)
        self._endings = tuple(one for one in plain if one)
        self._within = self._endings if anywhere else ()
        self._globs = tuple(re.compile(fnmatch.translate(one)) for one in texts if _is_glob(one))
        others = [one for one in texts if one not in self._parents]
        self._expressions = tuple(_expression(one, where) for one in others if not _is_glob(one) or ".*" in one)

    def __contains__(self, module: str) -> bool:
        """Whether the list names this module or one that it is part of."""
        return any(self._holds(one) for one in spellings(module))

    def _holds(self, module: str) -> bool:
        if not self._parents.isdisjoint(_with_parents(module)) or module.endswith(self._endings):
            return True
        if any(one in module for one in self._within) or any(one.match(module) for one in self._globs):
            return True
        return any(one.match(module) for one in self._expressions)


def _is_glob(pattern: str) -> bool:
    return not pattern.startswith("re:") and ("*" in pattern or "?" in pattern) and not set(pattern) & set("()|^$+\\")


def _expression(pattern: str, where: str) -> re.Pattern[str]:
    """A regular expression that ends where a module's name does, as transformers bounds it (`mlp.gate`, not
    `mlp.gate_proj`): https://github.com/huggingface/transformers/blob/main/src/transformers/quantizers/quantizers_utils.py
    """
    bound = "" if pattern.startswith("re:") else r"(?:(?<=\.)|(?=\.|$))"
    try:
        return re.compile(f"(?:{pattern.removeprefix('re:')}){bound}")
    except re.error as error:
        raise UnreadableInputError(f"{where}: {pattern!a} is no regular expression ({error})") from error


def _with_parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
