"""Loading a model as its users would, through transformers, and saying plainly why when that is refused."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from typing import Any

import torch

from gpufit.errors import GpufitError, MeasurementError, UnreadableInputError, UsageError
from gpufit.sources.measure.caches import CacheChoice
from gpufit.sources.measure.images import NO_IMAGES, Images, plan_images
from gpufit.sources.measure.kinds import Kind, choose
from gpufit.sources.measure.protocol import Job
from gpufit.sources.measure.quantization import METHODS

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
    kind: Kind
    images: Images
    """What the prompt of each sequence holds beside text."""
    cache: CacheChoice

    @property
    def generates(self) -> bool:
        """Whether it writes tokens; else its one phase is `forward`."""
        return self.kind is not Kind.ENCODER

    @property
    def decodes_apart(self) -> bool:
        """Whether new tokens have positions of their own, beside those of the prompt."""
        return self.kind is Kind.ENCODER_DECODER


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
    loader, kind = choose(config, job)
    if job.logits_kept == "all" and kind not in (Kind.DECODER, Kind.VISION_LANGUAGE):
        raise UsageError(f"{job.model_source} makes no logits of its prompt: leave --keep-logits out")
    cache = CacheChoice(job.cache_implementation, job.kv_cache_dtype)
    arguments = where | {"dtype": _dtype(job), "config": config}
    if job.quantization:
        arguments["quantization_config"] = _quantization_config(job.quantization, _dtype(job), config)
    if job.attention:
        arguments["attn_implementation"] = job.attention
    return LoadPlan(
        loader=loader, arguments=arguments, config=config, kind=kind, images=_images(job, kind, config), cache=cache
    )


def load(job: Job, plan: LoadPlan, device: torch.device) -> Any:
    """The model on its device, in evaluation mode. Raises a GpufitError when transformers refuses it.

    Weights that the files lack would be made up at random, and the bytes be those of another model: refused.
    """
    arguments = dict(plan.arguments)
    if device.type != "cpu" or job.quantization:  # bitsandbytes would take a card by itself where there is one
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
    inner = text_config(config)
    limits = [getattr(inner, name, None) for name in ("max_position_embeddings", "max_target_positions")]
    return next((limit for limit in limits if isinstance(limit, int) and limit > 0), None)


def sliding_window(config: Any) -> int | None:
    """Tokens a sliding layer sees; None where no layer slides."""
    inner = text_config(config)
    window = getattr(inner, "sliding_window", None)
    kinds = getattr(inner, "layer_types", None)
    slides = getattr(inner, "use_sliding_window", True) and (kinds is None or "sliding_attention" in kinds)
    return int(window) if isinstance(window, int) and window > 0 and slides else None


def padded_chunk(config: Any) -> int | None:
    """Tokens that a recurrent layer takes at a time, padding the last piece, where the config names them; else None.

    `chunk_size` is Mamba 2's (https://huggingface.co/docs/transformers/model_doc/mamba2), `mamba_chunk_size` that of
    hybrids (Bamba, Falcon H1, Granite 4).
    """
    return _first_size(config, ("chunk_size", "mamba_chunk_size"))


def context_steps(config: Any) -> tuple[int, ...]:
    """Contexts at which memory may begin to grow otherwise, as far as the config names them.

    A sliding window; a chunk; Llama 4's `attention_chunk_size`.
    """
    steps = (sliding_window(config), padded_chunk(config), _first_size(config, ("attention_chunk_size",)))
    return tuple(step for step in steps if step is not None)


def chunk_tokens(model: torch.nn.Module) -> int | None:
    """The padded chunk of a model's layers: its config's, or that of a gated delta net; None where nothing is padded.

    Gated delta nets have it as the default of the function that they call, `torch_chunk_gated_delta_rule` beside them.
    """
    announced = padded_chunk(model.config)
    if announced is not None:
        return announced
    for module in model.modules():
        if "Delta" in type(module).__name__:
            for name, rule in vars(sys.modules[type(module).__module__]).items():
                if name.startswith("torch_chunk"):
                    return int(inspect.signature(rule).parameters["chunk_size"].default)
    return None


def _first_size(config: Any, names: tuple[str, ...]) -> int | None:
    sizes = (getattr(text_config(config), name, None) for name in names)
    return next((size for size in sizes if isinstance(size, int) and size > 0), None)


def refusal(job: Job, error: Exception) -> GpufitError:
    """The error of a library as one of ours, in one line."""
    text = _one_line(error)
    if job.attention and job.attention in str(error):
        return UsageError(f"--attn-implementation {job.attention}: {text}")
    if REMOTE_CODE in str(error):
        return UsageError(
            f"{job.model_source}: this model runs code of its own; read it, then allow it with --trust-remote-code"
        )
    if job.quantization and METHODS[job.quantization] in str(error).lower():
        return UsageError(f"--quantization {job.quantization}: {text}")
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
    if dtype not in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        raise UsageError(f"--dtype {name}: weights are not loaded in it; use auto, bfloat16, float16 or float32")
    return dtype


def _images(job: Job, kind: Kind, config: Any) -> Images:
    """The images of each sequence. Raises UsageError when a model that takes none is asked to."""
    if kind is Kind.VISION_LANGUAGE:
        return plan_images(job.model_source, config, job.images, job.image_size)
    if job.images or job.image_size is not None:
        raise UsageError(f"{job.model_source} takes no images: leave --images and --image-size out")
    return NO_IMAGES


def _quantization_config(method: str, dtype: Any, config: Any) -> Any:
    """transformers' configuration of a quantisation asked for by one of the names in METHODS.

    4-bit weights are multiplied in the dtype of the rest of the model; left to itself, transformers takes float32.
    """
    import transformers

    if METHODS[method] == "torchao":
        from torchao.quantization import Float8WeightOnlyConfig, Int8WeightOnlyConfig

        made = {"torchao-int8wo": Int8WeightOnlyConfig, "torchao-float8wo": Float8WeightOnlyConfig}
        return transformers.TorchAoConfig(made[method]())
    if method == "bitsandbytes-int8":
        return transformers.BitsAndBytesConfig(load_in_8bit=True)
    return transformers.BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=text_config(config).dtype if dtype == "auto" else dtype,
    )
