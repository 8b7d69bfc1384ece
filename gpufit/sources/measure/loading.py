"""Loading a model as its users would, through transformers, and saying plainly why when that is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from gpufit.errors import GpufitError, MeasurementError, UnreadableInputError, UsageError
from gpufit.sources.measure.protocol import Job

GGUF_DTYPE = "bfloat16"
"""What `auto` means for a GGUF file: its blocks are dequantised at load, and the file names no dtype for that."""

DTYPE_ALIASES = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}
"""What else people write for a dtype."""

REMOTE_CODE = "trust_remote_code"


@dataclass(frozen=True)
class LoadPlan:
    """What will be loaded, decided from the config before any weight is read."""

    loader: Any
    """The transformers class whose `from_pretrained` loads it."""
    arguments: dict[str, Any]
    config: Any
    generates: bool


def plan_load(job: Job) -> LoadPlan:
    """Read the config and choose the class. Raises a GpufitError in one line for a model that cannot be measured."""
    import transformers

    where: dict[str, Any] = {"trust_remote_code": job.trust_remote_code}
    if job.gguf_file:
        where["gguf_file"] = job.gguf_file
    try:
        config = transformers.AutoConfig.from_pretrained(job.model_path, **where)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise refusal(job, error) from error
    loader, generates = _loader(transformers, config, job)
    arguments = where | {"dtype": _dtype(job), "config": config}
    if job.attention:
        arguments["attn_implementation"] = job.attention
    return LoadPlan(loader=loader, arguments=arguments, config=config, generates=generates)


def load(job: Job, plan: LoadPlan, device: torch.device) -> Any:
    """The model on its device, in evaluation mode. Raises a GpufitError when transformers refuses it.

    Weights that the files lack would be made up at random, and the bytes be those of another model: refused.
    """
    arguments = dict(plan.arguments)
    if device.type != "cpu":
        arguments["device_map"] = {"": device}
    try:
        model, report = plan.loader.from_pretrained(job.model_path, output_loading_info=True, **arguments)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise refusal(job, error) from error
    except RuntimeError as error:
        if "mismatch" in str(error):
            raise UnreadableInputError(
                f"{job.model_source}: its weights have other shapes than its config asks for: they are of another model"
            ) from error
        raise
    missing = sorted(report.get("missing_keys", ()))
    if missing:
        raise UnreadableInputError(
            f"{job.model_source}: its files lack {len(missing)} of the weights that its config asks for "
            f"({missing[0]}, ...): they are of another model, or incomplete"
        )
    return model.eval()


def text_config(config: Any) -> Any:
    """The part of a config that describes the token model."""
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def position_limit(config: Any) -> int | None:
    """The longest sequence the model's positions allow; None where its config names no limit."""
    limit = getattr(text_config(config), "max_position_embeddings", None)
    return int(limit) if isinstance(limit, int) and limit > 0 else None


def sliding_window(config: Any) -> int | None:
    """Tokens a sliding layer sees; None where no layer slides."""
    inner = text_config(config)
    window = getattr(inner, "sliding_window", None)
    kinds = getattr(inner, "layer_types", None)
    slides = getattr(inner, "use_sliding_window", True) and (kinds is None or "sliding_attention" in kinds)
    return int(window) if isinstance(window, int) and window > 0 and slides else None


def chunk_tokens(config: Any) -> int | None:
    """Tokens that a recurrent or chunked layer takes at a time, where the config names them; else None.

    `chunk_size` is Mamba 2's (https://huggingface.co/docs/transformers/model_doc/mamba2), `mamba_chunk_size` that of
    hybrids (Bamba, Falcon H1, Granite 4), `attention_chunk_size` Llama 4's.
    """
    inner = text_config(config)
    for name in ("chunk_size", "mamba_chunk_size", "attention_chunk_size"):
        size = getattr(inner, name, None)
        if isinstance(size, int) and size > 0:
            return size
    return None


def refusal(job: Job, error: Exception) -> GpufitError:
    """The error of a library as one of ours, in one line."""
    text = _one_line(error)
    if job.attention and job.attention in str(error):
        return UsageError(f"--attn-implementation {job.attention}: {text}")
    if REMOTE_CODE in str(error):
        return UsageError(
            f"{job.model_source}: this model runs code of its own; read it, then allow it with --trust-remote-code"
        )
    if isinstance(error, OSError):
        return UnreadableInputError(f"{job.model_source}: cannot be loaded: {text}")
    return MeasurementError(f"{job.model_source}: transformers cannot load it: {type(error).__name__}: {text}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _dtype(job: Job) -> Any:
    name = GGUF_DTYPE if job.dtype == "auto" and job.gguf_file else job.dtype
    if name == "auto":
        return name
    dtype = getattr(torch, DTYPE_ALIASES.get(name, name), None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise UsageError(f"--dtype {name}: not a dtype of torch; use auto, bfloat16, float16 or float32")
    return dtype


def _loader(transformers: Any, config: Any, job: Job) -> tuple[Any, bool]:
    """(class to load with, whether it generates). Raises UsageError for a kind that is not measured yet."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    architectures = getattr(config, "architectures", None) or [""]
    remote = getattr(config, "auto_map", None) or {}
    if job.gguf_file or architectures[0] in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        return transformers.AutoModelForCausalLM, True
    if job.trust_remote_code and remote:
        return (
            (transformers.AutoModelForCausalLM, True)
            if "AutoModelForCausalLM" in remote
            else (
                transformers.AutoModel,
                False,
            )
        )
    if getattr(config, "is_encoder_decoder", False):
        raise UsageError(
            f"{job.model_source}: {architectures[0]} is an encoder-decoder, which gpufit does not measure yet; "
            "decoders and encoders of tokens can be measured"
        )
    loader = getattr(transformers, architectures[0], None) or transformers.AutoModel
    if getattr(loader, "main_input_name", "input_ids") != "input_ids":
        raise UsageError(
            f"{job.model_source}: {architectures[0]} takes {loader.main_input_name}, not tokens; "
            "decoders and encoders of tokens can be measured"
        )
    return loader, False
