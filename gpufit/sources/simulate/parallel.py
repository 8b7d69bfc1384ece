"""One rank of a tensor-parallel model in one process: transformers' own plan over a process group that only pretends.

The group is torch's own for tests (`fake`): it has any number of ranks and sends nothing. What a rank holds and
computes is what transformers makes of it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from gpufit.errors import UsageError
from gpufit.sources.measure.protocol import Simulation
from gpufit.sources.measure.storages import unfolds

_SPLIT = (
    ("q_proj", "num_attention_heads", "attention heads"),
    ("k_proj", "num_key_value_heads", "key-value heads"),
)
"""What a plan names where it splits heads, the setting that counts them, and the words for them."""

RANK = 0
"""The rank that is run: the first, which holds what each of them holds, and any rest."""


def finisher(simulation: Simulation, source: str) -> Callable[[Any], Any]:
    """What shards a model that is built; nothing where one rank holds all of it."""
    ranks = simulation.tensor_parallel_size
    if ranks == 1:
        return lambda model: model
    try:
        from transformers import PreTrainedModel
        from transformers.distributed.configuration_utils import DistributedConfig

        prepare = PreTrainedModel.prepare_distribute_model
    except (ImportError, AttributeError) as error:
        raise UsageError(
            "--tensor-parallel-size: this transformers cannot shard a model that is built from its config; "
            "transformers 5.24 can"
        ) from error
    _join_group(ranks)
    experts = {"ep_size": ranks} if simulation.expert_parallel else {}
    asked = DistributedConfig(tp_size=ranks, **experts)
    _, _, mesh = prepare(asked)

    def shard(model: Any) -> Any:
        _check_plan(source, model, simulation)
        _check_divisible(source, model, ranks)
        try:
            return model.maybe_distribute_model(model, asked, mesh)
        except (RuntimeError, ValueError, NotImplementedError) as error:
            text = " ".join(str(error).split())[:300]
            raise UsageError(f"{source}: transformers cannot shard it over {ranks} ranks: {text}") from error

    return shard


def _check_divisible(source: str, model: Any, ranks: int) -> None:
    """Refuse what transformers would only fail at in the middle of a forward: heads that a plan splits unevenly."""
    inner = model.config.get_text_config()
    for projection, setting, name in _SPLIT:
        count = getattr(inner, setting, None)
        if any(projection in rule for rule in model.tp_plan) and isinstance(count, int) and count % ranks:
            raise UsageError(
                f"--tensor-parallel-size {ranks}: {source} has {count} {name}, which transformers cannot split over "
                f"{ranks} ranks; use a divisor of {count}"
            )


def _check_plan(source: str, model: Any, simulation: Simulation) -> None:
    if not getattr(model, "tp_plan", None):
        raise UsageError(f"--tensor-parallel-size: transformers has no plan to shard {type(model).__name__} ({source})")
    if simulation.expert_parallel and not getattr(model, "ep_plan", None):
        raise UsageError(
            f"--enable-expert-parallel: transformers has no plan to spread experts of {type(model).__name__} ({source})"
        )


def _join_group(ranks: int) -> None:
    import torch.distributed
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if torch.distributed.is_initialized():
        return
    os.environ.update(RANK=str(RANK), LOCAL_RANK="0", WORLD_SIZE=str(ranks))
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=RANK, world_size=ranks)


@contextlib.contextmanager
def as_a_rank(ranks: int) -> Iterator[None]:
    """What only a fake run of a rank does is undone while the block runs."""
    if ranks == 1:
        yield
        return
    from torch.distributed.tensor._sharding_prop import ShardingPropagator

    name = "_propagate_tensor_meta_non_cached"
    original = getattr(ShardingPropagator, name)

    def unseen(*args: Any, **kwargs: Any) -> Any:
        # It works out shapes with tensors of full size, in the fake mode that it finds: it shall find none.
        with _disable_current_modes():
            return original(*args, **kwargs)

    setattr(ShardingPropagator, name, unseen)
    try:
        with _Collectives():
            yield
    finally:
        setattr(ShardingPropagator, name, original)


class _Collectives(TorchDispatchMode):  # type: ignore[misc]
    """Waiting for a collective hands back its argument, as it really does; on fake tensors it makes a copy."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if unfolds(types):
            return NotImplemented
        if func is torch.ops._c10d_functional.wait_tensor.default and isinstance(args[0], FakeTensor):
            return args[0]
        return func(*args, **(kwargs or {}))
