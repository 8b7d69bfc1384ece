"""What kind of model a config describes, and the transformers class that loads it."""

from __future__ import annotations

import enum
from typing import Any

from gpufit.errors import UsageError
from gpufit.sources.measure.protocol import Job


class Kind(enum.StrEnum):
    """How a model is driven: one module of `drivers` each."""

    DECODER = "decoder"
    """Reads token ids and goes on with them."""
    ENCODER = "encoder"
    """Reads token ids and is done."""
    ENCODER_DECODER = "encoder-decoder"
    """An encoder reads token ids, a decoder writes others."""
    SPEECH = "speech"
    """An encoder reads sound, a decoder writes token ids."""
    VISION_LANGUAGE = "vision-language"
    """Reads images among token ids and goes on with token ids."""


MEASURED = "decoders, encoders and encoder-decoders of tokens, Whisper, and models that read images with a text"
"""What a refusal offers instead."""

_SOUND = "WhisperForConditionalGeneration"


def choose(config: Any, job: Job) -> tuple[Any, Kind]:
    """(class to load with, kind). Raises UsageError, naming the class, for a kind that is not measured."""
    import transformers
    from transformers.models.auto import modeling_auto

    name = (getattr(config, "architectures", None) or [""])[0]
    remote = getattr(config, "auto_map", None) or {}
    loader = getattr(transformers, name, None)
    if job.gguf_file:
        return transformers.AutoModelForCausalLM, Kind.DECODER
    encodes_apart = getattr(config, "is_encoder_decoder", False)
    reads = getattr(loader, "main_input_name", "input_ids")
    if (
        name in modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.values()
        and reads == "input_ids"
        and getattr(config, "vision_config", None) is not None
        and not encodes_apart
    ):
        return loader, Kind.VISION_LANGUAGE
    if name in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        return transformers.AutoModelForCausalLM, Kind.DECODER
    if job.trust_remote_code and remote:
        writes = "AutoModelForCausalLM" in remote
        return (transformers.AutoModelForCausalLM, Kind.DECODER) if writes else (transformers.AutoModel, Kind.ENCODER)
    if name == _SOUND:
        return loader, Kind.SPEECH
    if reads != "input_ids":
        raise UsageError(f"{job.model_source}: {name} takes {reads}, not tokens; gpufit measures {MEASURED}")
    if encodes_apart:
        writes = name in modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES.values()
        if not writes or not hasattr(config, "vocab_size"):
            raise UsageError(
                f"{job.model_source}: {name} is an encoder-decoder that does not write one text for another; "
                f"gpufit measures {MEASURED}"
            )
        return loader, Kind.ENCODER_DECODER
    senses = [part for part in ("vision", "audio") if getattr(config, f"{part}_config", None) is not None]
    if senses:
        raise UsageError(
            f"{job.model_source}: {name} takes {' and '.join(senses)} beside tokens; gpufit measures {MEASURED}"
        )
    return loader or transformers.AutoModel, Kind.ENCODER
