"""The layout of a model that was run: told from its headers, and held against the weights that stood in memory."""

from __future__ import annotations

from gpufit.architecture.registry import architecture_of
from gpufit.architecture.tensors import total_bytes
from gpufit.errors import GpufitError
from gpufit.memory.engines.transformers.layout import layout_of
from gpufit.memory.engines.transformers.rules import rules_of
from gpufit.profile.layout import Layout
from gpufit.profile.record import Profile
from gpufit.sources.estimate.model import loaded_dtype
from gpufit.sources.estimate.request import DTYPES
from gpufit.sources.estimate.weights import weights_in_memory
from gpufit.sources.model_files.headers import open_headers

MOST_APART = 0.01
"""A layout is told where its weights and those in memory differ by no more than this share: beyond it the model in
memory is not the one that its shapes tell of."""


def layout_of_run(profile: Profile, source: str, revision: str | None) -> tuple[Layout | None, tuple[str, ...]]:
    """(the layout of the model that `source` names, or nothing; why there is none, in words) for a finished profile."""
    if profile.workload.tensor_parallel_size > 1:
        return None, ()
    try:
        headers = open_headers(source, revision)
        model = architecture_of(headers.config, headers.config_where)
        dtype, _ = DTYPES[loaded_dtype(profile.workload.dtype_requested, headers, model)]
        weights = weights_in_memory(headers, model, dtype, profile.workload.quantization)
        layout = layout_of(model, weights.tensors, rules_of(profile.engine.version))
    except GpufitError as error:
        return None, (f"how the model divides over cards is not told: {error}",)
    told, held = total_bytes(weights.tensors), sum(share.size_bytes for share in profile.precision.resident)
    if abs(told - held) > MOST_APART * held:
        return None, (
            f"how the model divides over cards is not told: by its shapes it has {told:,} B of weights, but {held:,} B "
            "were held",
        )
    return layout, ()
