"""The same model at fewer layers: which settings say how deep it is, and what each layer then stands for."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from gpufit.sources.measure.sites import kinds, site_names
from gpufit.sources.simulate.build import REFUSALS, Blueprint
from gpufit.sources.simulate.layers import FEWEST_REPEATS, Pattern, pattern_of

_SETTINGS = (
    "num_hidden_layers", "num_layers", "num_decoder_layers", "encoder_layers", "decoder_layers", "depth", "n_layer",
)  # fmt: skip
"""How configs call the length of a stack of layers."""

Stack = Any
"""A `ModuleList` or `Sequential` of layers."""


@dataclass(frozen=True)
class Axis:
    """One direction in which a model can be made shallower."""

    part: str
    """The part of the config that the setting stands in: `text_config`; nothing for the config itself."""
    setting: str
    pattern: Pattern
    stacks: tuple[str, ...]
    """Paths of the stacks of modules whose length it is."""


@dataclass(frozen=True)
class Variant:
    """A model at fewer layers, or the whole one."""

    model: Any
    sites: Mapping[Any, str]
    """The place of every module, in the words of the whole model."""
    missing: int = 0
    """How many times what this variant has beyond the first is missing from the whole."""
    repeated: tuple[Any, Any, Any] | None = None
    """The first layers of the two repetitions that it has, and the last layer of the second; None where the model is
    made shallower in more than one direction."""


def whole(model: Any) -> Variant:
    """The model as it is."""
    return Variant(model, site_names(model))


def variants(blueprint: Blueprint, config: Any, model: Any) -> tuple[Variant, ...]:
    """The model at few layers, then with one repetition more in each direction; the whole model alone where that would
    be no less."""
    axes = list(_axes(blueprint, config, model))
    if not axes:
        return (whole(model),)
    names = site_names(model)
    sites = {path: names[module] for path, module in model.named_modules() if module in names}
    made = [_variant(blueprint, config, sites, [(one, FEWEST_REPEATS) for one in axes], 0)]
    for axis in axes:
        depths = [(one, FEWEST_REPEATS + (one is axis)) for one in axes]
        made.append(_variant(blueprint, config, sites, depths, axis.pattern.repeats - FEWEST_REPEATS))
    if len(axes) == 1 and len(axes[0].stacks) == 1:
        stack = made[-1].model.get_submodule(axes[0].stacks[0])
        made[-1] = replace(made[-1], repeated=_repeated(stack, axes[0].pattern))
    return tuple(made)


def _repeated(stack: Stack, pattern: Pattern) -> tuple[Any, Any, Any]:
    """Of a stack with one repetition more than the fewest: where the last two begin, and where they end."""
    first = pattern.before + (FEWEST_REPEATS - 1) * pattern.period
    return stack[first], stack[first + pattern.period], stack[first + 2 * pattern.period - 1]


def _variant(
    blueprint: Blueprint, config: Any, sites: Mapping[str, str], depths: Sequence[tuple[Axis, int]], missing: int
) -> Variant:
    shallow = copy.deepcopy(config)
    for axis, repeats in depths:
        make_shallower(_part(shallow, axis.part), axis.setting, axis.pattern, repeats)
    model = blueprint.build(shallow)
    found = {}
    for path, module in model.named_modules():
        stands_for = sites.get(_path_in_whole(path, depths))
        if stands_for is not None:
            found[module] = stands_for
    return Variant(model, found, missing)


def _path_in_whole(path: str, depths: Sequence[tuple[Axis, int]]) -> str:
    for axis, repeats in depths:
        for stack in axis.stacks:
            found = re.fullmatch(rf"({re.escape(stack)})\.(\d+)(.*)", path)
            if found:
                place = axis.pattern.places(repeats)[int(found[2])]
                return f"{found[1]}.{place}{found[3]}"
    return path


def make_shallower(config: Any, setting: str, pattern: Pattern, repeats: int) -> None:
    """Give a config fewer layers: the setting itself, and every list in it that has an entry a layer."""
    places = pattern.places(repeats)
    for name, value in list(vars(config).items()):
        if isinstance(value, list | tuple) and len(value) == pattern.layers:
            setattr(config, name, type(value)(value[place] for place in places))
    setattr(config, setting, len(places))


def _axes(blueprint: Blueprint, config: Any, model: Any) -> Iterator[Axis]:
    stacks = _stacks(model)
    taken: set[str] = set()
    for part in ("", *getattr(config, "sub_configs", {})):
        inner = _part(config, part)
        aliases = set(getattr(inner, "attribute_map", {}))
        for setting in _SETTINGS:
            length = getattr(inner, setting, None)
            if not isinstance(length, int) or setting in aliases - {"num_hidden_layers"}:
                continue
            candidates = {path: stack for path, stack in stacks.items() if len(stack) == length and path not in taken}
            axis = _axis(blueprint, config, part, setting, candidates)
            if axis is not None:
                taken |= set(axis.stacks)
                yield axis


def _axis(blueprint: Blueprint, config: Any, part: str, setting: str, candidates: Mapping[str, Stack]) -> Axis | None:
    """The direction of a setting, if the stacks that it shortens are left with the layers that they should have."""
    for pattern in {pattern_of(kinds(stack)) for stack in candidates.values()} - {None}:
        assert pattern is not None
        shallow = copy.deepcopy(config)
        make_shallower(_part(shallow, part), setting, pattern, FEWEST_REPEATS)
        try:
            shortened = _stacks(blueprint.build(shallow))
        except REFUSALS:  # a config that cannot be had at this depth is run whole
            continue
        changed = [
            path for path, stack in candidates.items() if path in shortened and len(shortened[path]) != len(stack)
        ]
        if changed and all(_is_like(shortened[path], candidates[path], pattern) for path in changed):
            return Axis(part, setting, pattern, tuple(changed))
    return None


def _is_like(shortened: Stack, stack: Stack, pattern: Pattern) -> bool:
    wanted = kinds(stack)
    return kinds(shortened) == [wanted[place] for place in pattern.places(FEWEST_REPEATS)]


def _stacks(model: Any) -> dict[str, Stack]:
    """The stacks of layers in a model, those within a layer left out."""
    found: dict[str, Stack] = {}
    for path, module in model.named_modules():
        if isinstance(module, torch.nn.ModuleList | torch.nn.Sequential) and not any(
            path.startswith(f"{outer}.") for outer in found
        ):
            found[path] = module
    return found


def _part(config: Any, part: str) -> Any:
    return getattr(config, part) if part else config
