"""The form that a run is asked for with: its fields, what each holds, and the request they make. Knows no Textual."""

from __future__ import annotations

import enum
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from gpufit.errors import UsageError
from gpufit.files import from_home, typed_name
from gpufit.sources.estimate.request import (
    ATTENTION,
    DEFAULT_CONTEXT_TOKENS,
    DTYPES,
    EstimateRequest,
)
from gpufit.sources.estimate.request import DEFAULT_NEW_TOKENS as USUAL_NEW_TOKENS
from gpufit.sources.measure.events import RunRequest
from gpufit.sources.measure.kernels import KERNELS
from gpufit.sources.measure.protocol import Simulation
from gpufit.sources.measure.quantization import METHODS
from gpufit.sources.measure.request import (
    DEFAULT_CELL_SECONDS,
    DEFAULT_CONCURRENCIES,
    DEFAULT_CONTEXTS,
    DEFAULT_NEW_TOKENS,
    SIMULATED_CONCURRENCIES,
    SIMULATED_CONTEXTS,
    ProfileRequest,
)
from gpufit.units import (
    format_tokens,
    parse_count,
    parse_counts,
    parse_pixels,
    parse_seconds,
    parse_seed,
    parse_size,
    parse_whole,
)

Value = TypeVar("Value")


class Kind(enum.StrEnum):
    """What can be started; the commands' own names."""

    PROFILE = "profile"
    SIMULATE = "simulate"
    ESTIMATE = "estimate"


KIND_WORDS: Mapping[Kind, str] = {
    Kind.PROFILE: "measure it on this machine",
    Kind.SIMULATE: "run it on fake tensors",
    Kind.ESTIMATE: "work it out, nothing runs",
}


class WrongFieldError(UsageError):
    """A field cannot be understood; `name` is that of the field."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True)
class Field:
    """One line of the form."""

    name: str
    title: str
    flag: str = ""
    """The command's option; empty for MODEL, and where there is none."""
    hint: str = ""
    """What stands for an empty text."""
    choices: tuple[str, ...] = ()
    """What can be chosen, the default first; empty: a text is typed."""
    advanced: bool = False
    """Shown only when more settings are asked for."""


KEEP, GO_ON, REPLACE = "leave it", "go on with it", "replace it"
"""What to do with a file that is there."""

_ON_OFF = ("no", "yes")
_PATHS = ("model", "output")
_AUTO = "auto"


def _counts(counts: Sequence[int]) -> str:
    return ",".join(format_tokens(one) for one in counts)


_MODEL = Field("model", "model", hint="directory, GGUF file or hub id")
_DTYPE = Field("dtype", "dtype", "--dtype", choices=(_AUTO, *DTYPES))
_KV_DTYPE = Field("kv_cache_dtype", "KV cache dtype", "--kv-cache-dtype", choices=(_AUTO, "fp8"), advanced=True)
_LOGITS = Field("logits_kept", "logits kept", "--keep-logits", choices=("last", "all"), advanced=True)
_IMAGES = Field("images", "images", "--images", hint="1, where it takes them", advanced=True)
_IMAGE_SIZE = Field("image_size", "image size", "--image-size", hint="448x448, or the model's own", advanced=True)
_SEED = Field("seed", "seed", "--seed", hint="0", advanced=True)
_REVISION = Field("revision", "revision", "--revision", hint="branch, tag or commit", advanced=True)
_TRUST = Field("trust_remote_code", "model's own code", "--trust-remote-code", choices=_ON_OFF, advanced=True)
_TIMEOUT = Field(
    "cell_timeout", "seconds a cell", "--cell-timeout", hint=f"{DEFAULT_CELL_SECONDS} at most", advanced=True
)
_OUTPUT = Field("output", "file", "-o", hint="profiles/<model>.json", advanced=True)
_NEW_TOKENS = Field("new_tokens", "new tokens", "--new-tokens", hint=str(DEFAULT_NEW_TOKENS))

FIELDS: Mapping[Kind, tuple[Field, ...]] = {
    Kind.PROFILE: (
        _MODEL,
        Field("context", "context", "--context", hint=_counts(DEFAULT_CONTEXTS)),
        Field("concurrency", "at once", "--concurrency", hint=_counts(DEFAULT_CONCURRENCIES)),
        _NEW_TOKENS,
        _DTYPE,
        Field("device", "device", "--device", hint="auto (cpu, cuda, cuda:1)"),
        Field("existing", "if the file exists", choices=(KEEP, GO_ON, REPLACE)),
        _OUTPUT,
        Field("sweep", "sweep", "--sweep", choices=(_AUTO, "adaptive", "full"), advanced=True),
        Field("attention", "attention", "--attn-implementation", hint="the model's (sdpa, eager)", advanced=True),
        _KV_DTYPE,
        Field(
            "cache_implementation", "KV cache", "--cache-implementation",
            choices=(_AUTO, "dynamic", "static", "quantized", "offloaded"), advanced=True,
        ),
        Field("quantization", "quantization", "--quantization", choices=("none", *METHODS), advanced=True),
        Field("compute_dtype", "compute dtype", "--compute-dtype", choices=("none", "bfloat16", "float16"),
              advanced=True),
        Field("memory_limit", "memory limit", "--memory-limit", hint="the device's own (6GiB)", advanced=True),
        _TIMEOUT,
        _LOGITS,
        _IMAGES,
        _IMAGE_SIZE,
        _SEED,
        _REVISION,
        _TRUST,
    ),
    Kind.SIMULATE: (
        _MODEL,
        Field("context", "context", "--context", hint=_counts(SIMULATED_CONTEXTS)),
        Field("concurrency", "at once", "--concurrency", hint=_counts(SIMULATED_CONCURRENCIES)),
        _NEW_TOKENS,
        _DTYPE,
        Field("attention", "attention", "--attn-implementation", choices=KERNELS),
        Field("tensor_parallel", "cards that share it", "--tensor-parallel-size", hint="1"),
        Field("existing", "if the file exists", choices=(KEEP, REPLACE)),
        _OUTPUT,
        Field("expert_parallel", "experts spread whole", "--enable-expert-parallel", choices=_ON_OFF, advanced=True),
        Field("full_depth", "run every layer", "--full-depth", choices=_ON_OFF, advanced=True),
        _TIMEOUT,
        _LOGITS,
        _IMAGES,
        _IMAGE_SIZE,
        _SEED,
        _REVISION,
        _TRUST,
    ),
    Kind.ESTIMATE: (
        _MODEL,
        Field("context", "context", "--context", hint=f"{DEFAULT_CONTEXT_TOKENS}, or the model's own limit"),
        Field("concurrency", "at once", "--concurrency", hint="1"),
        Field("new_tokens", "new tokens", "--new-tokens", hint=f"{USUAL_NEW_TOKENS} where it generates"),
        _DTYPE,
        replace(_KV_DTYPE, advanced=False),
        Field("quantization", "quantization", "--quantization", hint="as the files (fp8, awq, gptq)"),
        Field("existing", "if the file exists", choices=(KEEP, REPLACE)),
        replace(_OUTPUT, flag="--save"),
        Field("attention", "attention", "--attn-implementation", choices=(_AUTO, *ATTENTION), advanced=True),
        Field("engine_version", "transformers", "--engine-version", hint="the newest that is known", advanced=True),
        _REVISION,
    ),
}  # fmt: skip
"""The lines of each form, top to bottom."""


@dataclass(frozen=True)
class Form:
    """What was typed and chosen; fields that two kinds share keep what they hold."""

    kind: Kind = Kind.PROFILE
    values: Mapping[str, str] = field(default_factory=dict)
    """By field; a field that is not in it holds its default."""
    more: bool = False
    """Whether all settings are shown."""

    def value(self, name: str) -> str:
        """What a field of this kind holds: its text without blanks around it, or its choice."""
        one = next(one for one in FIELDS[self.kind] if one.name == name)
        held = self.values.get(name, "").strip()
        return held if not one.choices or held in one.choices else one.choices[0]

    @property
    def shown(self) -> tuple[Field, ...]:
        """The lines that are shown; one that holds something of its own is never hidden."""
        return tuple(one for one in FIELDS[self.kind] if self.more or not one.advanced or _given(self, one))


def filled(form: Form, name: str, value: str) -> Form:
    """The form with another value in a field."""
    return replace(form, values={**form.values, name: value})


def of_kind(form: Form, kind: Kind) -> Form:
    """The same for another command."""
    return replace(form, kind=kind)


def request_of(form: Form) -> RunRequest:
    """What the form asks for. Raises WrongFieldError for a field that cannot be understood."""
    if not form.value("model"):
        raise WrongFieldError("model", "model: name a directory, a GGUF file or a hub id")
    if form.kind is Kind.ESTIMATE:
        return RunRequest(
            estimate=_estimate(form),
            estimate_output=_path(form),
            estimate_force=form.value("existing") == REPLACE,
        )
    return RunRequest(profile=_profile(form) if form.kind is Kind.PROFILE else _simulation(form))


def command_of(form: Form) -> str:
    """The command line that asks for the same."""
    words = ["gpufit", str(form.kind), _in_a_shell(form, "model") or "MODEL"]
    for one in FIELDS[form.kind]:
        if one.flag and _given(form, one):
            words += [one.flag] if one.choices == _ON_OFF else [one.flag, _in_a_shell(form, one.name)]
    chosen = form.value("existing")
    if form.kind is not Kind.ESTIMATE and chosen != KEEP:
        words.append("--resume" if chosen == GO_ON else "--force")
    return shlex.join(words)


def _given(form: Form, one: Field) -> bool:
    held = form.value(one.name)
    return held != one.choices[0] if one.choices else bool(held)


def _read(form: Form, name: str, parse: Callable[[str, str], Value]) -> Value | None:
    """A field's value; None where nothing was typed."""
    text = form.value(name)
    if not text:
        return None
    title = next(one.title for one in FIELDS[form.kind] if one.name == name)
    try:
        return parse(text, title)
    except UsageError as error:
        raise WrongFieldError(name, str(error)) from error


def _or(form: Form, name: str, parse: Callable[[str, str], Value], default: Value) -> Value:
    found = _read(form, name, parse)
    return default if found is None else found


def _chosen(form: Form, name: str, default: str) -> str | None:
    """A choice; None where it is the default."""
    chosen = form.value(name)
    return None if chosen == default else chosen


def _in_a_shell(form: Form, name: str) -> str:
    """A value as a shell takes it in quotes, in which `~` would be a name like any other."""
    return from_home(form.value(name)) if name in _PATHS else form.value(name)


def _model(form: Form) -> str:
    return _or(form, "model", lambda text, title: typed_name(text), "")


def _path(form: Form) -> Path | None:
    return _read(form, "output", lambda text, title: Path(typed_name(text)))


def _shared(form: Form) -> dict[str, Any]:
    """What runs on a device and on fake tensors are both asked."""
    return {
        "model": _model(form),
        "output": _path(form),
        "contexts": _read(form, "context", parse_counts),
        "concurrencies": _read(form, "concurrency", parse_counts),
        "new_tokens": _or(form, "new_tokens", parse_count, DEFAULT_NEW_TOKENS),
        "dtype": form.value("dtype"),
        "seed": _or(form, "seed", parse_seed, 0),
        "logits_kept": form.value("logits_kept"),
        "revision": form.value("revision") or None,
        "trust_remote_code": form.value("trust_remote_code") == "yes",
        "images": _read(form, "images", parse_whole),
        "image_size": _read(form, "image_size", parse_pixels),
        "cell_seconds": _or(form, "cell_timeout", parse_seconds, DEFAULT_CELL_SECONDS),
        "force": form.value("existing") == REPLACE,
    }


def _profile(form: Form) -> ProfileRequest:
    sweep = form.value("sweep")
    return ProfileRequest(
        **_shared(form),
        attention=form.value("attention") or None,
        device=form.value("device") or "auto",
        cache_implementation=_chosen(form, "cache_implementation", _AUTO),
        kv_cache_dtype=form.value("kv_cache_dtype"),
        quantization=_chosen(form, "quantization", "none"),
        compute_dtype=_chosen(form, "compute_dtype", "none"),
        memory_limit_bytes=_read(form, "memory_limit", parse_size),
        adaptive=None if sweep == _AUTO else sweep == "adaptive",
        resume=form.value("existing") == GO_ON,
    )


def _simulation(form: Form) -> ProfileRequest:
    ranks = _or(form, "tensor_parallel", parse_count, 1)
    spread = form.value("expert_parallel") == "yes"
    if spread and ranks == 1:
        raise WrongFieldError("tensor_parallel", "experts are spread over cards: say how many share the model")
    simulation = Simulation(
        kernel=form.value("attention"),
        tensor_parallel_size=ranks,
        expert_parallel=spread,
        full_depth=form.value("full_depth") == "yes",
    )
    return ProfileRequest(**_shared(form), device="cpu", simulation=simulation)


def _estimate(form: Form) -> EstimateRequest:
    return EstimateRequest(
        model=_model(form),
        context_tokens=_read(form, "context", parse_count),
        concurrency=_or(form, "concurrency", parse_count, 1),
        new_tokens=_read(form, "new_tokens", parse_count),
        dtype=form.value("dtype"),
        kv_cache_dtype=form.value("kv_cache_dtype"),
        engine_version=form.value("engine_version") or None,
        attention=_chosen(form, "attention", _AUTO),
        revision=form.value("revision") or None,
        quantization=form.value("quantization") or None,
    )
