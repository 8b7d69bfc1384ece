"""One rank of a small tensor-parallel model, run for real over gloo: prints its peaks as JSON.

Started by test_simulate_ranks.py once a rank, with the surroundings that torchrun would set.
"""

from __future__ import annotations

import json
import sys
import time

import msgspec
import torch
import transformers
from architectures import ARCHITECTURES
from measure_plan import make_decoder
from transformers.distributed.configuration_utils import DistributedConfig

from gpufit.memory.terms import Shape
from gpufit.sources.measure.dispatch import DispatchRecorder
from gpufit.sources.measure.run import RunPlan, timed_run, tracked_run
from gpufit.sources.measure.sites import site_names
from gpufit.sources.measure.storages import resident_model


def reduce_and_let_go(tensor: torch.Tensor, group: torch.distributed.ProcessGroup) -> None:
    """Like all_reduce, but returns only when gloo's own thread has let go of the tensor: it drops it a moment after
    the result is there, which on a busy machine is after the model did, and is no part of what a rank holds."""
    storage = tensor.untyped_storage()._cdata
    before = torch._C._storage_Use_Count(storage)
    ALL_REDUCE(tensor.detach(), group=group)
    while torch._C._storage_Use_Count(storage) > before:
        time.sleep(0.0001)


ALL_REDUCE = torch.distributed.all_reduce


def main(name: str, ranks: int, shape: Shape) -> None:
    torch.distributed.all_reduce = reduce_and_let_go
    asked = DistributedConfig(tp_size=ranks)
    _, _, mesh = transformers.PreTrainedModel.prepare_distribute_model(asked)
    model = ARCHITECTURES[name]().build()
    model = model.maybe_distribute_model(model, asked, mesh)
    driver = make_decoder()
    plan = RunPlan(driver, DispatchRecorder, lambda: None, lambda phase: None, site_names(model))
    timed_run(model, plan, driver.probe)
    phases = tracked_run(model, plan, shape, resident_model(model, "cpu"))
    print(json.dumps({str(peak.phase): msgspec.to_builtins(peak.parts) for peak in phases}), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Shape(48, 3, 2))
