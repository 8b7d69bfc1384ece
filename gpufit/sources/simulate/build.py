"""Building a model from its config alone, on fake tensors: shapes and dtypes, no weights."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)

from gpufit.errors import GpufitError, MeasurementError, UsageError
from gpufit.sources.measure import loading
from gpufit.sources.measure.protocol import Job

_STORED = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""What weights are loaded in that files hold so, where the config names no dtype."""

ASSUMED_DTYPE = torch.bfloat16
"""The dtype of weights of which neither config nor files tell one (assumed)."""

REFUSALS = (
    RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError, ImportError, NotImplementedError,
    OSError,
)  # fmt: skip
"""What a model's own code ends in where it cannot be built or run."""


@dataclass(frozen=True)
class Blueprint:
    """What a model is built from, the same at every depth."""

    plan: loading.LoadPlan
    dtype: torch.dtype
    attention: str | None
    """transformers' name of it; None leaves the choice to the model."""
    finish: Callable[[Any], Any] = lambda model: model
    """What is done to a model once built: sharding, where there is any."""

    def build(self, config: Any) -> Any:
        """The model of a config, in evaluation mode, with tied weights tied; the config itself stays as it is."""
        loader = self.plan.loader
        options: dict[str, Any] = {} if self.attention is None else {"attn_implementation": self.attention}
        if hasattr(loader, "_from_config"):
            make = loader._from_config
        else:  # one of transformers' Auto classes
            make = loader.from_config
            options["trust_remote_code"] = self.plan.arguments["trust_remote_code"]
        with _without_initialisation(), _untied():
            model = make(copy.deepcopy(config), dtype=self.dtype, **options)
        # In the order of from_pretrained(), whose plans name both ends of a tie.
        model = self.finish(model.eval())
        model.tie_weights()
        return model


def dtype_of(job: Job, plan: loading.LoadPlan) -> tuple[torch.dtype, tuple[str, ...]]:
    """(dtype of the weights, what to say of it)."""
    asked = plan.arguments["dtype"]
    if isinstance(asked, torch.dtype):
        return asked, ()
    named = getattr(plan.config, "dtype", None) or getattr(loading.text_config(plan.config), "dtype", None)
    found = getattr(torch, named, None) if isinstance(named, str) else named
    if not isinstance(found, torch.dtype) and job.stored:
        found = _STORED.get(job.stored[0].dtype)
    if isinstance(found, torch.dtype):
        return found, ()
    return ASSUMED_DTYPE, ("the config names no dtype: weights are assumed to be bfloat16 (--dtype)",)


def refusal(job: Job, doing: str, error: Exception) -> GpufitError:
    """Why a model cannot be built or run on fake tensors, in one line that names the operation."""
    if isinstance(error, GpufitError):
        return error
    operation = operation_of(error)
    if operation is not None:
        return MeasurementError(
            f"{job.model_source}: cannot be {doing} on fake tensors: the result of {operation} depends on values; "
            "measure it instead: gpufit profile"
        )
    text = " ".join(str(error).split())[:300]
    if "attention implementation" in text and job.simulation is not None:
        return UsageError(f"--attn-implementation {job.simulation.kernel}: {text}")
    return MeasurementError(f"{job.model_source}: cannot be {doing} on fake tensors: {type(error).__name__}: {text}")


def operation_of(error: Exception) -> str | None:
    """The operation that a fake tensor could not carry out; None where the error is of another kind."""
    if isinstance(error, DataDependentOutputException | DynamicOutputShapeException | UnsupportedOperatorException):
        return str(error.func)
    return str(error) if isinstance(error, UnsupportedFakeTensorException) else None


def _without_initialisation() -> Any:
    try:
        from transformers.initialization import no_init_weights
    except ImportError:  # releases of transformers 5 before it moved
        from transformers.modeling_utils import no_init_weights
    return no_init_weights()


def _untied() -> Any:
    try:
        from transformers.initialization import no_tie_weights
    except ImportError:  # the first releases of transformers 5, which shard no model that is built from its config
        return contextlib.nullcontext()
    return no_tie_weights()
