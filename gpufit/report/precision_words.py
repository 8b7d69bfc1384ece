"""The four precisions of a model in few words: stored, resident, compute and KV, never one for another."""

from __future__ import annotations

from collections.abc import Iterable

from gpufit.profile.precision import DtypeShare, Precision


def dtypes_of(shares: Iterable[DtypeShare]) -> str | None:
    """Dtypes in the order of their shares, `bfloat16/float32`; None where there are none."""
    return "/".join(dict.fromkeys(share.dtype for share in shares)) or None


def computed_in(precision: Precision) -> str | None:
    """The dtypes that matrices are multiplied in, or whatever was seen to be computed; None where nothing was."""
    return "/".join(sorted(_computed(precision))) or None


def compute_words(precision: Precision) -> str | None:
    """Each family of operations with its dtypes: `matmul bfloat16, softmax float32`; None where nothing was seen."""
    return ", ".join(f"{one.family} {'/'.join(one.dtypes)}" for one in precision.compute) or None


def held_words(precision: Precision) -> str:
    """What the weights are in, and the KV cache where that is not what the model computes in."""
    weights = f"{dtypes_of(precision.resident) or 'unknown'} weights"
    computed, kv = _computed(precision), {share.dtype for share in precision.kv}
    return f"{weights}, {dtypes_of(precision.kv)} KV cache" if computed and kv - computed else weights


def _computed(precision: Precision) -> set[str]:
    compute = precision.compute
    some = [one.dtypes for one in compute if one.family == "matmul"] or [one.dtypes for one in compute]
    return {dtype for dtypes in some for dtype in dtypes}
