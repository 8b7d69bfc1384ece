"""Encoder-decoders of tokens and of sound: the bytes of both caches, worked out from the shapes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from architectures import ARCHITECTURES, VOCABULARY
from measure_plan import cached, kept, lengths, measure

from gpufit.memory.terms import Shape
from gpufit.profile.peaks import Phase
from gpufit.sources.measure.caches import DEFAULT, CacheChoice
from gpufit.sources.measure.drivers.encoder_decoder import EncoderDecoder, start_token
from gpufit.sources.measure.drivers.speech import Speech

pytestmark = pytest.mark.model

CPU = torch.device("cpu")
DECODER_LAYERS, HEADS, HEAD_SIZE, BFLOAT16 = 3, 4, 16, 2
A_TOKEN = DECODER_LAYERS * 2 * HEADS * HEAD_SIZE * BFLOAT16
"""Layers of the decoder x (key, value) x heads x head size x two bytes: 768, in either cache."""

STATIC = CacheChoice("static")
LAYERS = 2 * DECODER_LAYERS
"""Layers of the decoder's own cache and of that of what the encoder read."""


def tokens_driver(cache: CacheChoice = DEFAULT) -> EncoderDecoder:
    return EncoderDecoder(CPU, VOCABULARY, 0, cache)


def speech_driver(cache: CacheChoice = DEFAULT) -> Speech:
    return Speech(CPU, VOCABULARY, 0, mel_bins=80, source_positions=1500, cache=cache)


@pytest.fixture(scope="module")
def whisper() -> Any:
    return ARCHITECTURES["whisper"]().build()


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_the_cache_holds_the_context_for_cross_attention_and_every_token_written(name: str) -> None:
    model = ARCHITECTURES[name]().build()
    context, new, batch = 100, 5, 3
    watch = kept(model, tokens_driver(), Shape(context, new, batch))
    # After prefill: 100 tokens read, and the start token. Then four more are written; the fifth is never fed back.
    assert watch.ended[Phase.PREFILL]["kv_cache"] == {"bfloat16": A_TOKEN * (context + 1) * batch}
    assert watch.ended[Phase.DECODE]["kv_cache"] == {"bfloat16": A_TOKEN * (context + new) * batch}
    assert watch.cached_tokens == {Phase.PREFILL: context + 1, Phase.DECODE: context + new}


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_more_new_tokens_grow_the_decoders_own_cache_and_not_that_of_the_context(name: str) -> None:
    model = ARCHITECTURES[name]().build()
    few, many = (cached(model, tokens_driver(), Shape(64, new, 2))[Phase.DECODE] for new in (4, 20))
    assert many["bfloat16"] - few["bfloat16"] == A_TOKEN * 16 * 2


def test_parts_of_an_encoder_decoder_add_up_and_its_encoding_is_kept() -> None:
    model = ARCHITECTURES["t5"]().build()
    phases = {peak.phase: peak for peak in measure(model, tokens_driver(), Shape(100, 5, 3)).phases}
    for peak in phases.values():
        assert peak.parts.total_bytes == peak.allocated_bytes
        assert peak.parts.unexplained_bytes == 0
    decode = phases[Phase.DECODE].parts
    # What the encoder found, 64 numbers of two bytes a token, is kept until the last token, beside five ids of 8
    # bytes a sequence and one row of logits.
    encoding, ids, logits = 100 * 3 * 64 * 2, 5 * 3 * 8, 3 * VOCABULARY * 2
    assert encoding <= decode.outputs_bytes <= encoding + ids + logits
    # Token ids and their mask, and the start token of the decoder.
    assert phases[Phase.PREFILL].parts.inputs_bytes == (2 * 100 + 1) * 3 * 8
    assert A_TOKEN * (100 + 4) * 3 <= decode.kv_cache_bytes <= A_TOKEN * (100 + 5) * 3


def test_a_static_cache_of_an_encoder_decoder_has_room_for_all_tokens_from_the_first(whisper: Any) -> None:
    t5 = ARCHITECTURES["t5"]().build()
    for found in cached(t5, tokens_driver(STATIC), Shape(100, 5, 3)).values():
        assert found == {"bfloat16": A_TOKEN * (100 + 5) * 3} | lengths(LAYERS)
    for found in cached(whisper, speech_driver(STATIC), Shape(20, 5, 2)).values():
        assert found == {"bfloat16": A_TOKEN * (1500 + 24) * 2} | lengths(LAYERS)


def test_half_a_minute_of_sound_takes_the_same_whatever_the_prompt(whisper: Any) -> None:
    for context in (4, 40):
        found = cached(whisper, speech_driver(), Shape(context, 3, 2))
        # 3000 frames become 1500 positions of the encoder, each cached like a token.
        assert found[Phase.PREFILL] == {"bfloat16": A_TOKEN * (1500 + context) * 2}
        assert found[Phase.DECODE] == {"bfloat16": A_TOKEN * (1500 + context + 2) * 2}


def test_the_sound_is_an_input_in_the_models_own_dtype(whisper: Any) -> None:
    phases = {peak.phase: peak for peak in measure(whisper, speech_driver(), Shape(16, 2, 2)).phases}
    # 80 mel bins x 3000 frames x two bytes, and 16 token ids of 8 bytes, for each of two sequences.
    assert phases[Phase.PREFILL].parts.inputs_bytes == 2 * (80 * 3000 * 2 + 16 * 8)
    for peak in phases.values():
        assert peak.parts.total_bytes == peak.allocated_bytes
        assert peak.parts.unexplained_bytes == 0


def test_the_decoder_begins_with_the_token_that_the_models_files_name() -> None:
    assert start_token(ARCHITECTURES["bart"]().build()) == 2
    assert start_token(SimpleNamespace(config=SimpleNamespace())) == 0
