"""How the model of a profile is run once more, as it ran or held otherwise: the options that `gpufit profile` takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from gpufit.architecture.quantization.registry import CHECKPOINT
from gpufit.catalog.record import Card
from gpufit.memory.carry import missing_dtype
from gpufit.memory.held import Cache, Compute, Held, Weights
from gpufit.profile.record import Profile
from gpufit.profile.workload import Workload

QUANTISED_AT_LOAD = {
    "torchao-int8wo": "torchao",
    "torchao-float8wo": "torchao",
    "bitsandbytes-int8": "bitsandbytes",
    "bitsandbytes-nf4": "bitsandbytes",
}
"""What `gpufit profile --quantization` takes, each with the package that does it; all other methods need a checkpoint
made beforehand."""

_EVERYWHERE = "float16"
"""A dtype that every card's matrix units take."""
_SIXTEEN = "bfloat16"
"""What 16 bits are where the card has it: what today's models are published in."""
_FP8_AT_LOAD = "torchao-float8wo"
"""FP8 weights of a checkpoint that holds others. How fine its scales are is its own: the check that decides tells."""
_FORMATS = {
    Weights.FP8: "fp8",
    Weights.BITS_4: "GPTQ or AWQ to 4 bits in groups of 128",
}
"""Formats whose sizes weights held otherwise are worked out by (`memory.adapt`)."""


Option = tuple[str, str]
"""An option of `gpufit profile` with its value."""


@dataclass(frozen=True)
class Again:
    """How the model of a profile is run on the ordered card."""

    model: tuple[str, ...]
    """The model as commands take it, with its revision; QUANTISED_CHECKPOINT where it has to be made beforehand."""
    loading: tuple[str, ...]
    """Settings of its weights, as far as they are not defaults: what `gpufit check` takes, too."""
    settings: tuple[str, ...]
    """The other settings."""
    beforehand: str
    """What has to be done before, in words after a semicolon; empty where nothing has."""
    as_before: bool
    """Whether it is the very run of the profile: not where the card lacks its dtype, a checkpoint is run instead, or it
    is held otherwise."""
    package: str = ""
    """What quantises it at load, to be installed beside the engine; empty where nothing does."""
    switches: tuple[str, ...] = ()
    """Those of the settings that hold it otherwise than the profile's run."""
    beside: tuple[str, ...] = ()
    """What else comes with those, in words."""
    cannot: str = ""
    """Why it cannot be run as it is to be held, in words; all else then says how it is run as it was."""

    @classmethod
    def of(cls, profile: Profile, card: Card, held: Held) -> Again:
        """That of a profile on a card, in 16 bits of a kind that the card has."""
        was, switched = profile.workload, _switched(profile, card, held)
        workload = switched.workload
        method = workload.quantization
        made = method is not None and method not in QUANTISED_AT_LOAD
        lacks = switched.dtype is None and missing_dtype(card, profile) is not None
        if lacks:
            name = "compute_dtype" if workload.compute_dtype else "dtype_requested"
            workload = structs.replace(workload, **{name: _EVERYWHERE})
        revision = ("--revision", profile.model.revision) if profile.model.revision else ()
        before = set(_options(was))
        return cls(
            model=(CHECKPOINT,) if made else (profile.model.source, *revision),
            loading=tuple(_loading(workload)),
            settings=tuple(_other_settings(workload)),
            beforehand=f"; {CHECKPOINT} is the model quantised by {method} beforehand" if made else "",
            as_before=not (lacks or made) and held.as_profiled,
            package=QUANTISED_AT_LOAD.get(method or "", ""),
            switches=tuple(word for option in _options(switched.workload) if option not in before for word in option),
            beside=switched.beside,
            cannot=switched.cannot,
        )


@dataclass(frozen=True)
class _Switched:
    """A run's settings with every switch set, as far as one can be."""

    workload: Workload
    dtype: str | None = None
    """What it was set to compute in; None where that was left as it was."""
    beside: tuple[str, ...] = ()
    cannot: str = ""


def _switched(profile: Profile, card: Card, held: Held) -> _Switched:
    """The settings with which transformers holds and computes a model so; those of the run where it has none."""
    was, cannot = profile.workload, _cannot(profile, held)
    if held.as_profiled or cannot:
        return _Switched(was, cannot=cannot)
    sixteen = _EVERYWHERE if card.supports(_SIXTEEN) is False else _SIXTEEN
    workload, dtype, beside = was, sixteen if held.compute is Compute.BITS_16 else None, []
    if held.compute is Compute.FLOAT32:
        workload, dtype = structs.replace(workload, compute_dtype=None), "float32"
    elif held.weights is Weights.BITS_16:
        workload = structs.replace(workload, dtype_requested=sixteen)
        if dtype is None and was.compute_dtype is None:
            dtype = sixteen
            beside.append(f"transformers computes in the dtype of its weights: with these in {sixteen}, too")
    elif dtype is not None:
        name = "compute_dtype" if held.weights is Weights.AS_PROFILED else "dtype_requested"
        workload = structs.replace(workload, **{name: sixteen})
    if held.kv_cache is Cache.BITS_16 and dtype is None:
        workload, dtype = structs.replace(workload, compute_dtype=sixteen), sixteen
        beside.append(f"transformers caches in the dtype that it computes in: with a cache in {sixteen}, too")
    if held.kv_cache is Cache.FP8:
        workload = structs.replace(workload, cache_implementation="quantized", kv_cache_dtype="fp8")
    if held.weights in _FORMATS:
        at_load = held.weights is Weights.FP8 and not _is_quantised(profile)
        workload = structs.replace(workload, quantization=_FP8_AT_LOAD if at_load else _FORMATS[held.weights])
        if at_load:
            beside.append(
                "routed experts, where a model has some, stay as they were: an FP8 checkpoint holds them, too"
            )
    return _Switched(workload, dtype, tuple(beside))


def _cannot(profile: Profile, held: Held) -> str:
    """Why transformers has no settings for it, in words; empty where it has."""
    was = profile.workload
    if held.compute is Compute.FLOAT32 and (was.compute_dtype is None or held.weights is not Weights.AS_PROFILED):
        return "transformers computes in float32 only over weights that are held in float32, too"
    if held.kv_cache is Cache.FP8 and profile.model.decodes_apart:
        return "transformers has no quantised cache for an encoder-decoder"
    if held.kv_cache is Cache.BITS_16 and held.weights is not Weights.BITS_16 and _computes_in_16_bits(profile):
        return "it computes in 16 bits already, and keeps some of its cache in float32 all the same"
    return ""


def _computes_in_16_bits(profile: Profile) -> bool:
    products = [one.dtypes for one in profile.precision.compute if one.family == "matmul"]
    return any(dtype in (_SIXTEEN, _EVERYWHERE) for dtypes in products for dtype in dtypes)


def _is_quantised(profile: Profile) -> bool:
    """Whether the files, or the run, quantised it already: `gpufit profile` quantises no such model once more."""
    quantised = profile.precision.quantization is not None or profile.workload.quantization is not None
    return quantised or profile.model.source.endswith(".gguf")


def _options(workload: Workload) -> tuple[Option, ...]:
    """Every setting that is not the default, each with its value."""
    flags = (*_loading(workload), *_other_settings(workload))
    return tuple(zip(flags[::2], flags[1::2], strict=True))


def _loading(workload: Workload) -> Iterator[str]:
    """The settings of the weights; a method that is no option of `gpufit profile` is none."""
    if workload.dtype_requested != "auto":
        yield from ("--dtype", workload.dtype_requested)
    if workload.quantization in QUANTISED_AT_LOAD:
        yield from ("--quantization", str(workload.quantization))


def _other_settings(workload: Workload) -> Iterator[str]:
    """The settings beside those of the weights."""
    if workload.kv_cache_dtype != "auto":
        yield from ("--kv-cache-dtype", workload.kv_cache_dtype)
    implied = "dynamic" if workload.kv_cache_dtype == "auto" else "quantized"
    if workload.cache_implementation != implied:
        yield from ("--cache-implementation", workload.cache_implementation)
    if workload.compute_dtype:
        yield from ("--compute-dtype", workload.compute_dtype)
    if workload.logits_kept != "last":
        yield from ("--keep-logits", workload.logits_kept)
    if workload.images:
        yield from ("--images", str(workload.images))
    if workload.image_size is not None:
        yield from ("--image-size", f"{workload.image_size[0]}x{workload.image_size[1]}")
