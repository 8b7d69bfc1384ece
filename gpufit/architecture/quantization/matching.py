"""The tensors found in a model's files, each with the weight of its architecture that it stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from gpufit.architecture.gguf_names import transformers_names
from gpufit.architecture.quantization.method import Method, spellings
from gpufit.architecture.record import Architecture, Kind, Weight
from gpufit.architecture.tensors import Axis, LoadedTensor, axes_of, module_of


class Stored(Protocol):
    """A tensor as a file's header tells of it."""

    @property
    def name(self) -> str:
        """As in the file."""

    @property
    def dtype(self) -> str:
        """As in the file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """As in the file, the slowest dimension first."""

    @property
    def size_bytes(self) -> int:
        """Bytes in the file."""


@dataclass(frozen=True)
class Matched:
    """What was found in files, laid beside what the shapes tell."""

    tensors: tuple[LoadedTensor, ...]
    """Everything that is loaded, what no shape rule knows included."""
    unknown: tuple[str, ...]
    """Names of tensors that no shape rule knows: they count, whole on every rank."""
    tied: tuple[str, ...]
    """Names of second copies of tied weights, which are not loaded twice and are not among the tensors."""
    missing: tuple[str, ...]
    """Names of weights that the shapes tell of and no file holds."""


_SUFFIX = re.compile(
    r"(?P<module>.*?)(?:\.(?:qweight|qzeros|scales|g_idx|B|s|SCB|CB|weight_format|activation_scale)"
    r"|(?:\.weight)?\.(?:absmax|quant_map|nested_absmax|nested_quant_map|scale|zero_point|qdata|quant_state\..*)"
    r"|\.(?:weight|input|output)_(?:scale|scale_inv|scale_2|packed|shape|zero_point|g_idx|global_scale|scale_ub)"
    r"|\._weight_.*|_blocks|_scales|_scale_inv)"
)
"""What methods of quantisation put behind a module's name."""

_TIED = ("lm_head.weight", "embed_tokens.weight", "shared.weight", "decoder.weight", "embed_out.weight")
"""Names under which checkpoints keep a second copy of the embeddings, although the config says that they are tied."""


def tensors_of_files(
    architecture: Architecture, stored: Iterable[Stored], method: Method | None = None, *, gguf: bool = False
) -> Matched:
    """The tensors of a model's files, each with the weight that it stands for.

    `gguf`: names are llama.cpp's. What no rule knows is kept and listed, never left out.
    """
    index = _Index(architecture, gguf)
    tables = {one.shape for one in architecture.weights if one.kind is Kind.EMBEDDING}
    groups: dict[tuple[str, str, tuple[int, ...], int], _Group] = {}
    unknown: list[LoadedTensor] = []
    tied: list[str] = []
    for one in stored:
        place = index.find(one.name)
        if place is None:
            if architecture.tied and one.name.endswith(_TIED) and one.shape in tables:
                tied.append(one.name)
            else:
                unknown.append(LoadedTensor(one.name, one.dtype, one.shape, one.size_bytes))
            continue
        weight, suffix, layer = place
        group = groups.setdefault((suffix, one.dtype, one.shape, id(weight)), _Group(weight, one.size_bytes))
        group.counts[layer] = group.counts.get(layer, 0) + 1
    known = [tensor for key, group in groups.items() for tensor in group.tensors(*key[:3], method)]
    seen = {id(group.weight) for group in groups.values()}
    missing = tuple(one.name for one in architecture.weights if id(one) not in seen and one.parameter)
    return Matched((*known, *unknown), tuple(one.name for one in unknown), tuple(tied), missing)


_OUTSIDE = -1
"""Stands for the layer of a tensor outside any stack of layers."""


@dataclass
class _Group:
    """Tensors of one weight, suffix, dtype and shape."""

    weight: Weight
    size_bytes: int
    counts: dict[int, int] = field(default_factory=dict)
    """Layer -> how many of its experts have one."""

    def tensors(self, suffix: str, dtype: str, shape: tuple[int, ...], method: Method | None) -> Iterator[LoadedTensor]:
        """One record for all layers with as many of them."""
        by_count: dict[int, list[int]] = {}
        for layer, count in sorted(self.counts.items()):
            by_count.setdefault(count, []).append(layer)
        name = module_of(self.weight.name) + suffix
        axes = _axes(self.weight, suffix, shape, method)
        for count, layers in by_count.items():
            inside = tuple(layer for layer in layers if layer != _OUTSIDE)
            yield LoadedTensor(name, dtype, shape, self.size_bytes, inside, count, self.weight, axes)


def _axes(weight: Weight, suffix: str, shape: tuple[int, ...], method: Method | None) -> tuple[Axis, ...]:
    """What the dimensions count, where the tensor is the weight itself or as its method lays it out."""
    if shape == weight.shape and module_of(weight.name) + suffix == weight.name:
        return axes_of(weight)
    module = module_of(weight.name).replace("{layer}", str(next(iter(weight.layers), 0))).replace("{expert}", "0")
    layout = method.stands_for(weight, module) if method is not None else None
    return next((one.axes for one in layout or () if (one.suffix, one.shape) == (suffix, shape)), ())


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A weight that stored names of one form may stand for."""

    weight: Weight
    suffix: str
    layer_at: int | None
    """Which part of the stored name is the number of the layer."""
    layers: frozenset[int]
    fixed: tuple[tuple[int, str], ...]
    """Parts that are numbers in the weight's own name."""


class _Index:
    """Weights by the form of their names: every number put out."""

    def __init__(self, architecture: Architecture, gguf: bool) -> None:
        self._gguf = gguf
        self._found: dict[str, tuple[_Candidate, ...]] = {}
        self._by_form: dict[str, list[Weight]] = {}
        self._by_rest: dict[str, list[Weight]] = {}
        for weight in architecture.weights:
            form = _form(module_of(weight.name))
            self._by_form.setdefault(form, []).append(weight)
            # Checkpoints of a model's inner part alone lack the first name: `encoder…` for `bert.encoder…`.
            self._by_rest.setdefault(form.partition(".")[2] or form, []).append(weight)

    def find(self, name: str) -> tuple[Weight, str, int] | None:
        """The weight that a stored tensor stands for, what follows its module's name, and its layer."""
        form = _form(name)
        candidates = self._found.get(form)
        if candidates is None:
            candidates = self._found[form] = tuple(self._candidates(name))
        parts = name.split(".")
        for one in candidates:
            layer = int(parts[one.layer_at]) if one.layer_at is not None else _OUTSIDE
            if (one.layer_at is None or layer in one.layers) and all(parts[at] == text for at, text in one.fixed):
                return one.weight, one.suffix, layer
        return None

    def _candidates(self, name: str) -> Iterator[_Candidate]:
        modules = tuple(self._modules(name))
        for module, suffix in modules:
            for spelled in spellings(module):
                for weight in self._by_form.get(_form(spelled), ()):
                    yield self._candidate(weight, module, suffix)
        for module, suffix in modules:
            for weight in self._by_rest.get(_form(module), ()):
                yield self._candidate(weight, module, suffix)

    def _modules(self, name: str) -> Iterator[tuple[str, str]]:
        """The modules that a stored name may belong to, and what follows them."""
        if self._gguf:
            for one in transformers_names(name):
                yield module_of(one), one[len(module_of(one)) :]
            return
        module = module_of(name)
        yield module, name[len(module) :]
        cut = _SUFFIX.fullmatch(name)
        if cut is not None:
            yield cut["module"], name[len(cut["module"]) :]

    def _candidate(self, weight: Weight, module: str, suffix: str) -> _Candidate:
        """Where the numbers of a weight stand in the stored name of this module, which differs at the front at most."""
        own = module_of(weight.name).split(".")
        layers = frozenset(weight.layers)
        if self._gguf:
            # `blk.3.ffn_up.weight`: no other number is in the name.
            return _Candidate(weight, suffix, 1 if layers else None, layers, ())
        skip = len(module.split(".")) - len(own)
        layer_at = own.index("{layer}") + skip if "{layer}" in own else None
        fixed = tuple((at + skip, text) for at, text in enumerate(own) if text.isdecimal())
        return _Candidate(weight, suffix, layer_at, layers, fixed)


def _form(name: str) -> str:
    return ".".join("*" if part.isdecimal() or part in ("{layer}", "{expert}") else part for part in name.split("."))
