"""From a model's headers and vLLM's flags to the question that its rules answer. No torch, no device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpufit.advice.served import Question, ServedModel
from gpufit.architecture.quantization.matching import tensors_of_files
from gpufit.architecture.quantization.registry import CHECKPOINT, declared, full_name, method_of
from gpufit.architecture.record import Architecture
from gpufit.architecture.registry import architecture_of
from gpufit.errors import UsageError
from gpufit.memory.engines.base import parse_version
from gpufit.memory.engines.vllm import CURRENT, Lora, Ranks, Rules, Settings, plain, rules_of
from gpufit.memory.engines.vllm.dtypes import refuses_float16, torch_name
from gpufit.memory.engines.vllm.layers import KV_ITEM_BYTES
from gpufit.memory.engines.vllm.quantization import fp8_at_load, serve_quantization
from gpufit.sources.estimate.model import loaded_dtype, model_info
from gpufit.sources.estimate.request import ALIASES, DEFAULT_CONTEXT_TOKENS, DTYPES, check_dtype
from gpufit.sources.estimate.weights import applied_quantization, quantised_notes, unmatched_notes
from gpufit.sources.model_files.headers import open_headers
from gpufit.sources.model_files.record import ModelHeaders


@dataclass(frozen=True, kw_only=True)
class VllmRequest:
    """A model, vLLM's flags and a scenario; None takes the default of the release."""

    model: str
    """A model directory, a config.json, a .safetensors file, or a hub id."""
    max_model_len: int | None = None
    """The longest sequence, prompt and new tokens. Absent: DEFAULT_CONTEXT_TOKENS, or the model's own limit."""
    concurrency: int | None = None
    """Absent: 1."""
    new_tokens: int = 0
    """So many tokens of the sequence are generated; 0: not told."""
    dtype: str = "auto"
    kv_cache_dtype: str = "auto"
    quantization: str | None = None
    engine_version: str | None = None
    revision: str | None = None
    tensor_parallel: int | None = None
    """Absent: 1, and plans over more where one card is not enough."""
    pipeline_parallel: int | None = None
    """Absent: 1, and plans over more stages where they take fewer cards."""
    expert_parallel: bool = False
    utilization: float | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    enforce_eager: bool = False
    language_only: bool = False
    lora: bool = False
    max_loras: int | None = None
    max_lora_rank: int | None = None
    """With `lora` alone. Absent: vLLM's 1 and 16."""
    trust_remote_code: bool = False
    """For the command alone: nothing of the model runs here."""


def read(request: VllmRequest) -> ServedModel:
    """The model and the question about it.

    Raises UsageError for what cannot be asked or no rule covers, UnreadableInputError for a model that cannot be read
    or whose family has no shape rules.
    """
    check_dtype(request.dtype)
    if ALIASES.get(request.dtype, request.dtype) == "float32":
        raise UsageError("--dtype float32: the rules for vLLM cover 16-bit weights; use auto, bfloat16 or float16")
    rules = rules_of(request.engine_version or CURRENT)
    if request.model.endswith(".gguf"):
        raise _gguf(request.model)
    headers = open_headers(request.model, request.revision)
    if headers.format == "gguf":
        raise _gguf(request.model)
    architecture = architecture_of(headers.config, headers.config_where)
    dtype = _file_dtype(request, headers, architecture)
    own = declared(headers.config, headers.config_where)
    asked = request.quantization if own is None else None
    whole_first = asked is not None and full_name(asked) == "fp8"
    applied = applied_quantization(headers, request.quantization, own)
    method = fp8_at_load(dtype) if whole_first else method_of(applied, dtype)
    settings = _settings(request, architecture, dtype)
    flag = None if asked is None else serve_quantization(full_name(asked))
    beforehand = asked is not None and flag is None
    return ServedModel(
        question=Question(
            name=headers.name,
            architecture=architecture,
            dtype=dtype,
            method=method,
            whole_first=whole_first,
            rules=rules,
            settings=settings,
            concurrency=request.concurrency or 1,
            spread=request.tensor_parallel is None and request.pipeline_parallel is None,
        ),
        info=model_info(request.model, headers, architecture),
        stored=headers.stored,
        source=CHECKPOINT if beforehand else _directory(request.model),
        dtype=ALIASES.get(request.dtype, request.dtype),
        quantization=flag,
        revision=None if beforehand else request.revision,
        trust_remote_code=request.trust_remote_code,
        new_tokens=_new_tokens(request, architecture, settings),
        assumed=tuple(_assumed(request, settings)),
        notes=(
            *headers.notes,
            *_file_notes(headers, architecture),
            *(() if asked is None else quantised_notes(asked, headers)),
            *((f"{CHECKPOINT} in the command stands for that checkpoint: a folder or a hub id",) if beforehand else ()),
            *architecture.notes,
            *_release_notes(rules),
        ),
    )


def _file_dtype(request: VllmRequest, headers: ModelHeaders, architecture: Architecture) -> str:
    """The 16-bit dtype of what is not quantised; bfloat16 where neither flag, config nor files name one."""
    named = {"dtype", "torch_dtype"} & set(headers.config) or headers.tensors or request.dtype != "auto"
    dtype, _ = DTYPES[loaded_dtype(request.dtype, headers, architecture) if named else "bfloat16"]
    taken = plain(dtype).dtype
    if taken == "F16" and refuses_float16(architecture.model_type):
        if request.dtype != "auto":
            raise UsageError(
                f"--dtype {request.dtype}: vLLM refuses float16 for {architecture.model_type} (numerical instability); "
                "use auto or bfloat16"
            )
        return "BF16"
    return taken


def _gguf(model: str) -> UsageError:
    return UsageError(
        f"{model}: vLLM's GGUF support is experimental, and no rule here covers it; use --engine transformers"
    )


def _directory(model: str) -> str:
    """vLLM takes a directory where this takes a file in it."""
    path = Path(model)
    return str(path.parent) if path.suffix in (".json", ".safetensors") else model


def _assumed(request: VllmRequest, settings: Settings) -> Iterator[str]:
    """What stands for what was not given and no release of vLLM decides."""
    if request.max_model_len is None:
        yield (
            f"--max-model-len {settings.max_model_len}, gpufit's own default; vLLM's is the model's whole length, so "
            "that the command names it"
        )
    if request.concurrency is None:
        yield "--concurrency 1: one sequence at once"
    if settings.lora is not None and request.max_loras is None:
        yield f"--max-loras {settings.lora.max_loras}, vLLM's default: requests of one batch share one adapter"
    if settings.lora is not None and request.max_lora_rank is None:
        yield f"--max-lora-rank {settings.lora.max_rank}, vLLM's default: the largest rank of an adapter"


def _kv_cache_dtype(asked: str, dtype: str) -> str:
    """`auto` for the model's own 16-bit dtype. Raises UsageError for the other one, which attention kernels do not mix
    with it, and for what vLLM has no cache of."""
    if asked not in KV_ITEM_BYTES:
        raise UsageError(f"--kv-cache-dtype {asked}: no memory rule for it with vLLM; use {', '.join(KV_ITEM_BYTES)}")
    own = torch_name(dtype)
    if asked not in DTYPES:
        return asked
    if asked != own:
        raise UsageError(f"--kv-cache-dtype {asked}: the model runs in {own}; use auto or fp8")
    return "auto"


def _settings(request: VllmRequest, architecture: Architecture, dtype: str) -> Settings:
    limit = architecture.position_limit
    default = DEFAULT_CONTEXT_TOKENS if limit is None else min(DEFAULT_CONTEXT_TOKENS, limit)
    return Settings(
        max_model_len=request.max_model_len or default,
        utilization=request.utilization,
        max_num_seqs=request.max_num_seqs,
        max_num_batched_tokens=request.max_num_batched_tokens,
        ranks=Ranks(request.tensor_parallel or 1, request.expert_parallel, request.pipeline_parallel or 1),
        kv_cache_dtype=_kv_cache_dtype(request.kv_cache_dtype, dtype),
        enforce_eager=request.enforce_eager,
        language_only=request.language_only,
        lora=_lora(request),
    )


def _lora(request: VllmRequest) -> Lora | None:
    """The adapters asked for. Raises UsageError for their flags without `--enable-lora`."""
    given = {"max_loras": request.max_loras, "max_rank": request.max_lora_rank}
    named = {name: value for name, value in given.items() if value is not None}
    if request.lora:
        return Lora(**named)
    if named:
        flag = "--max-loras" if request.max_loras is not None else "--max-lora-rank"
        raise UsageError(f"{flag} goes with --enable-lora, which was not given: add it, or leave {flag} out")
    return None


def _new_tokens(request: VllmRequest, architecture: Architecture, settings: Settings) -> int:
    new_tokens = request.new_tokens if architecture.generates else 0
    if new_tokens >= settings.max_model_len:
        raise UsageError(
            f"--new-tokens {new_tokens} leaves no room for a prompt: vLLM's --max-model-len {settings.max_model_len} "
            "holds prompt and new tokens"
        )
    return new_tokens


def _file_notes(headers: ModelHeaders, architecture: Architecture) -> tuple[str, ...]:
    """Where the files hold something else than the shapes that the rules count."""
    if not headers.tensors:
        return ()
    method = method_of(declared(headers.config, headers.config_where), architecture.dtype)
    return unmatched_notes(tensors_of_files(architecture, headers.tensors, method), "not counted")


def _release_notes(rules: Rules) -> tuple[str, ...]:
    newest = parse_version(CURRENT)
    if rules.version.at_least(newest.major, newest.minor, newest.patch + 1):
        return (f"rules are known up to vLLM {newest}; {rules.version} is taken to allocate as that does",)
    return ()
