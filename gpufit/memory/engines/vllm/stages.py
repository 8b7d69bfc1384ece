"""The fullest stage of a pipeline: the layers, embeddings and head that one group of ranks holds, as a model by itself.

vLLM gives every stage as many layers, and what is left over to some of them: get_pp_indices in
https://github.com/vllm-project/vllm/blob/main/vllm/distributed/utils.py. Embeddings lie on the first stage (on the last
one, too, where they are the head), the last norm and the head on the last, where tokens are drawn. The pool has as many
blocks as the tightest stage holds (get_kv_cache_configs in vllm/v1/core/kv_cache_utils.py), so the fullest decides.
"""

from __future__ import annotations

from dataclasses import replace

from gpufit.architecture.record import Architecture, AttentionCache, Component, Kind, LatentCache, Weight
from gpufit.errors import UsageError
from gpufit.memory.engines.vllm.versions import Rules

_SINCE = (0, 8)
"""The first release whose V1 engine runs pipelines, and that leaves no stage more than one layer above another
(https://github.com/vllm-project/vllm/pull/12996, https://github.com/vllm-project/vllm/pull/13839). V0 divided the
blocks of the pool among as many schedulers as there were stages."""


def stage_shape(architecture: Architecture, stages: int, rules: Rules) -> Architecture:
    """The layers and caches of a stage that has as many layers as any, the weights left as they are.

    Raises UsageError where no rule tells what a stage holds.
    """
    if stages == 1:
        return architecture
    _refuse(architecture, stages, rules)
    count = -(-architecture.layers // stages)
    caches = tuple(replace(one, layers=count) for one in architecture.caches)
    return replace(architecture, caches=caches, layers=count)


def fullest_stage(architecture: Architecture, stages: int, rules: Rules) -> Architecture:
    """What the fullest stage holds: as many layers as any, the heaviest of those, and the head.

    Which stages take the layers that are left over is about to change (https://github.com/vllm-project/vllm/pull/46217),
    so they are counted together with the head: on no stage is more. Raises UsageError where no rule tells what a stage
    holds.
    """
    if stages == 1:
        return architecture
    shape = stage_shape(architecture, stages, rules)
    first = _heaviest_from(architecture, shape.layers)
    held = range(first, first + shape.layers)
    weights = (_on_stage(one, held, architecture) for one in architecture.weights)
    return replace(shape, weights=tuple(one for one in weights if one is not None))


def _refuse(architecture: Architecture, stages: int, rules: Rules) -> None:
    if not rules.v1 or not rules.version.at_least(*_SINCE):
        raise UsageError(f"no rule for a pipeline of {rules.name}: the V1 engine runs them from 0.8 on")
    if stages > architecture.layers:
        raise UsageError(f"{architecture.layers} layers cannot be spread over {stages} stages")
    if not architecture.generates:
        raise UsageError(f"no rule for a pipeline of {architecture.model_type}, which does not generate")
    caches = architecture.caches
    alike = len(caches) == 1 and caches[0].layers == architecture.layers
    if not alike or not isinstance(caches[0], AttentionCache | LatentCache) or getattr(caches[0], "window", None):
        raise UsageError(
            f"no rule for a pipeline of {architecture.model_type}, whose layers do not all cache alike: which of them "
            "a stage holds decides how its pool is laid out"
        )


def _heaviest_from(architecture: Architecture, count: int) -> int:
    """The first of so many layers in a row that hold the most elements."""
    sizes = [0] * architecture.layers
    for weight in architecture.weights:
        for layer in weight.layers:
            if weight.component is Component.DECODER and layer < architecture.layers:
                sizes[layer] += weight.elements * weight.experts
    starts = range(architecture.layers - count + 1)
    return max(starts, key=lambda start: sum(sizes[start : start + count]))


def _on_stage(weight: Weight, held: range, architecture: Architecture) -> Weight | None:
    """What the stage holds of a weight; None where that is nothing. Towers are counted on every stage."""
    if weight.component is not Component.DECODER:
        return weight
    if weight.layers:
        layers = tuple(layer for layer in weight.layers if layer in held)
        return replace(weight, layers=layers) if layers else None
    return None if weight.kind is Kind.EMBEDDING and not architecture.tied else weight
