"""From a model's headers to a computed profile: shapes by its family's rules, bytes by the engine's.

Weights come from the files' headers where there are any, else from the shapes that the config implies.
"""

from __future__ import annotations

import datetime
import platform

from gpufit import __version__
from gpufit.architecture.record import (
    Architecture,
    AttentionCache,
    Component,
    CompressedCache,
    CrossAttentionCache,
    LatentCache,
    StateCache,
)
from gpufit.architecture.registry import architecture_of
from gpufit.architecture.tensors import in_loading_order
from gpufit.errors import UnreadableInputError, UsageError
from gpufit.memory.engines.base import parse_version
from gpufit.memory.engines.transformers.cache import elements_per_token
from gpufit.memory.engines.transformers.kernels import kernels_of
from gpufit.memory.engines.transformers.layout import layout_of
from gpufit.memory.engines.transformers.model import phases, resident
from gpufit.memory.engines.transformers.passes import Run
from gpufit.memory.engines.transformers.rules import (
    HYBRID_CACHE,
    NEWEST,
    NO_FLASH_2,
    WIDEST_FLASH_HEAD,
    default_attention,
    lacks,
    rules_of,
)
from gpufit.profile.environment import DeviceInfo, Engine, Environment
from gpufit.profile.evidence import Evidence
from gpufit.profile.memory_model import MemoryModel
from gpufit.profile.peaks import Phase, PhasePeak
from gpufit.profile.precision import ComputeDtype, DtypeShare, Precision, Quantization
from gpufit.profile.record import Profile
from gpufit.profile.workload import Workload
from gpufit.sources.estimate.model import TORCH_NAMES, loaded_dtype, model_info, names_dtype
from gpufit.sources.estimate.request import DTYPES, EstimateRequest, shape_of
from gpufit.sources.estimate.weights import Weights, shares, weights_in_memory
from gpufit.sources.model_files.headers import open_headers
from gpufit.sources.model_files.record import ModelHeaders

UNBOUNDED = 2**24
"""How far rules reach, in tokens of a sequence and in sequences: as far as searches for the largest go."""


def estimate(request: EstimateRequest) -> Profile:
    """The computed profile of a model in transformers.

    Raises UsageError for what cannot be asked, UnreadableInputError for a model that cannot be read or whose family
    has no rules.
    """
    request.check()
    version = request.engine_version or f"{NEWEST[0]}.{NEWEST[1]}.0"
    rules = rules_of(version)
    headers = open_headers(request.model, request.revision)
    model = architecture_of(headers.config, headers.config_where)
    _check_rules_exist(model, headers, version)
    if request.new_tokens and not model.generates:
        raise UsageError(f"{headers.name} is an encoder and generates nothing: leave --new-tokens out")
    dtype = loaded_dtype(request.dtype, headers, model)
    file_dtype, element_bytes = DTYPES[dtype]
    weights = weights_in_memory(headers, model, file_dtype, request.quantization)
    kv_bytes = 1 if request.kv_cache_dtype == "fp8" else element_bytes
    kernels = kernels_of(model, weights.tensors, weights.method, element_bytes, version)
    attention = _attention(request, version, headers, model)
    run = Run(rules, element_bytes, kv_bytes, attention, file_dtype == "BF16", kernels)
    stored_buffers = [one.size_bytes for one in weights.buffers]
    kept = resident(model, run, [one.size_bytes for one in in_loading_order(weights.tensors)], stored_buffers).parts
    shape = shape_of(request, model.position_limit, model.generates, model.decodes_apart)
    return Profile(
        gpufit_version=__version__,
        created_at=datetime.datetime.now(datetime.UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z"),
        evidence=Evidence.COMPUTED,
        model=model_info(request.model, headers, model),
        engine=Engine(name="transformers", version=version, attention=run.attention),
        precision=_precision(headers, model, run, weights, dtype),
        environment=Environment(
            device=DeviceInfo(kind="none", name="no device (arithmetic)", total_bytes=0),
            versions={"gpufit": __version__, "python": platform.python_version()},
        ),
        workload=Workload(
            contexts_tokens=(shape.context_tokens,),
            concurrencies=(shape.concurrency,),
            new_tokens=shape.new_tokens,
            seed=0,
            dtype_requested=request.dtype,
            logits_kept="last",
            kv_cache_dtype=request.kv_cache_dtype,
            quantization=request.quantization,
        ),
        load=PhasePeak(phase=Phase.LOAD, parts=kept, allocated_bytes=kept.total_bytes, evidence=Evidence.COMPUTED),
        cells=(),
        memory_model=MemoryModel(
            phases=phases(model, run, kept),
            max_cached_tokens=UNBOUNDED,
            max_new_tokens=UNBOUNDED,
            max_concurrency=UNBOUNDED,
            max_total_tokens=UNBOUNDED**2,
            untested=True,
        ),
        complete=True,
        layout=layout_of(model, weights.tensors, rules),
        notes=_notes(version, headers, model, weights, dtype),
    )


def _check_rules_exist(model: Architecture, headers: ModelHeaders, version: str) -> None:
    """Layers whose scratch in transformers no rule here tells, and releases without the family: refused rather than
    guessed."""
    if lacks(version, model.model_type):
        raise UsageError(f"{headers.name}: transformers {version} has no {model.model_type}; name a later release")
    if model.model_type in HYBRID_CACHE and not rules_of(version).sliding_cache:
        raise UsageError(
            f"{headers.name}: before 4.56 transformers caches {model.model_type} in a way of its own that no rule here "
            "tells; name a later release"
        )
    missing = "bloom's attention" if model.model_type == "bloom" else None
    if any(isinstance(one, StateCache) for one in model.caches):
        missing = "linear-attention and state-space layers"
    elif model.decodes_apart:
        missing = "encoder-decoders"
    elif any(isinstance(one, CrossAttentionCache) for one in model.caches):
        missing = "layers that attend to an encoder's output"
    elif any(isinstance(one, LatentCache) and one.indexer_dim for one in model.caches):
        missing = "layers with a sparse-attention indexer"
    elif any(isinstance(one, CompressedCache) for one in model.caches):
        missing = "layers that attend to compressed entries"
    if missing is not None:
        raise UnreadableInputError(
            f"{headers.name}: gpufit has no rules for what {missing} take as scratch in transformers; run the model on "
            "fake tensors instead: gpufit simulate"
        )


def _attention(request: EstimateRequest, version: str, headers: ModelHeaders, model: Architecture) -> str:
    """The attention that runs. Raises UsageError for one that the family does not have in this release."""
    usual = default_attention(model.model_type, version)
    asked = request.attention
    named = f"{headers.name}: {model.model_type} in transformers {version}"
    if asked == "sdpa" and usual != "sdpa":
        raise UsageError(f"{named} has no sdpa attention; ask for eager")
    if asked == "flash_attention_2":
        widest = max((one.key_dim for one in model.caches if isinstance(one, AttentionCache)), default=model.head_dim)
        if model.model_type in NO_FLASH_2:
            raise UsageError(f"{named} does not run with flash_attention_2; ask for eager")
        if widest > WIDEST_FLASH_HEAD:
            raise UsageError(
                f"{named} has heads of {widest} numbers, and flash_attention_2 takes up to {WIDEST_FLASH_HEAD}; ask "
                f"for {usual}"
            )
    return asked or usual


def _precision(headers: ModelHeaders, model: Architecture, run: Run, weights: Weights, dtype: str) -> Precision:
    resident_shares = shares(weights.tensors)
    growing = sum(elements_per_token(one, model, run.rules) for one in model.caches)
    kv = "float8_e4m3fn" if run.kv_element_bytes == 1 else dtype
    return Precision(
        stored=headers.stored,
        resident=tuple(
            DtypeShare(dtype=TORCH_NAMES.get(one.dtype, one.dtype), size_bytes=one.size_bytes, tensors=one.tensors)
            for one in resident_shares
        ),
        compute=(ComputeDtype(family="matmul", dtypes=(dtype,), calls=0, inputs=(dtype,)),),
        kv=(DtypeShare(dtype=kv, size_bytes=growing * run.kv_element_bytes, tensors=0),) if growing else (),
        quantization=None if weights.method is None else Quantization(method=weights.method.name),
        findings=weights.findings,
    )


def _notes(version: str, headers: ModelHeaders, model: Architecture, weights: Weights, dtype: str) -> tuple[str, ...]:
    notes = [
        f"computed for transformers {version} with these weights and dtypes, not for the model as such: another "
        "engine or release allocates otherwise",
        *headers.notes,
        *weights.notes,
        *model.notes,
    ]
    if model.generates:
        notes.append(
            "prompts of one length: padding shorter ones adds a mask of context x context a sequence, and keys and "
            "values repeated to all heads"
        )
    if not headers.tensors and not names_dtype(headers):
        notes.append(f"neither the config nor a file names a dtype: {dtype} is assumed (--dtype names one)")
    if any(one.component in (Component.VISION, Component.AUDIO) for one in model.weights):
        notes.append(
            "text alone: the towers' weights are counted, and nothing that images or sound take in a run (gpufit "
            "profile --images measures)"
        )
    release = parse_version(version)
    if (release.major, release.minor) > NEWEST:
        notes.append(
            f"rules were read up to transformers {NEWEST[0]}.{NEWEST[1]}; {version} is taken to allocate as that does"
        )
    return tuple(notes)
