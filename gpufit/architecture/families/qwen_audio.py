"""Qwen2-Audio: Whisper's encoder before a Qwen 2.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/qwen2_audio
"""

from __future__ import annotations

from gpufit.architecture.blocks import belonging, linear
from gpufit.architecture.config import Config
from gpufit.architecture.families.towers import as_tower, audio_encoder, depth
from gpufit.architecture.joined import LLAVA_NAMES, joined, text_part
from gpufit.architecture.record import Architecture, Component, Split


def build(config: Config) -> Architecture:
    """The shapes of a Qwen2-Audio."""
    text = text_part(config, "qwen2")
    audio = config.part("audio_config")
    hidden = audio.count("d_model", default=1280)
    heard = audio_encoder(
        audio,
        mels=audio.count("num_mel_bins", default=128),
        hidden=hidden,
        inner=audio.count("encoder_ffn_dim", default=5120),
        layers=depth(audio, "encoder_layers", usual=32),
    )
    projector = linear("multi_modal_projector.linear", text.hidden, hidden, Split.REPLICATED, bias=True)
    return joined(
        config,
        text,
        class_name="Qwen2AudioForConditionalGeneration",
        text_names=LLAVA_NAMES,
        towers=(*as_tower(heard, "audio_tower.", Component.AUDIO), *belonging(projector, Component.PROJECTOR)),
    )
