"""The attention of a forward pass, with the part of the cache that it fills.

Sources: the modelling files of each release; https://github.com/huggingface/transformers/blob/main/src/transformers/
models/llama/modeling_llama.py and its like.
"""

from __future__ import annotations

from gpufit.architecture.record import Architecture, AttentionCache, Cache, LatentCache
from gpufit.memory.engines.tape import Size
from gpufit.memory.engines.transformers.cache import all_values_width, cache_size, other_layers, update
from gpufit.memory.engines.transformers.passes import SINGLE, Forward
from gpufit.memory.engines.transformers.rules import OWNERS_OF_TABLES
from gpufit.profile.memory_model import TermName

BEYOND_WINDOW: TermName = "per_token_squared_beyond_window"
"""Pairs of every sequence whose prompt fills the window: from there on a mask is made for sliding layers
(`_ignore_causal_mask_sdpa` in masking_utils.py)."""
WIDEST_GROUPED_HEAD = 256
"""Numbers a head up to which SDPA takes fewer KV heads than heads (`use_gqa_in_sdpa`)."""


def attention_layer(forward: Forward, kind: Cache | None) -> None:
    """A layer of this kind, from its norm to its output, beside the cache of all others."""
    with forward.tape.at("attention"):
        others = other_layers(forward, kind)
        normed = forward.norm()
        own = _latent(forward, kind) if isinstance(kind, LatentCache) else _attention(forward, kind)
        forward.tape.free(normed, *others, *own)


def _attention(forward: Forward, kind: Cache | None) -> list[int]:
    """Projections, rotation, cache, attention, output; the blocks of the layer's cache."""
    tape, model = forward.tape, forward.model
    heads, head_dim = model.heads, model.head_dim
    key_width, value_width = (
        (kind.kv_heads * kind.key_dim, kind.kv_heads * kind.value_dim)
        if isinstance(kind, AttentionCache)
        else (heads * head_dim, heads * head_dim)
    )
    query = tape.new(forward.rows(heads * head_dim), "activations_bytes")
    key = tape.new(forward.rows(key_width), "activations_bytes")
    value = tape.new(forward.rows(value_width), "activations_bytes")
    if model.rotary is not None:
        turned_query = _rotate(forward, heads * head_dim)
        turned_key = _rotate(forward, key_width)
        tape.free(query, key)
        query, key = turned_query, turned_key
    own = update(forward, kind, [key, value]) if kind is not None else [key, value]
    repeated = [*_repeated(forward, kind), *_masked(forward, kind)]
    mixed = _mix(forward, heads, head_dim)
    tape.free(*repeated)
    out = tape.new(forward.rows(model.hidden), "activations_bytes")
    tape.free(mixed, query)
    tape.free(out)
    return own


def _rotate(forward: Forward, width: int) -> int:
    """x * cos + rotate_half(x) * sin."""
    tape = forward.tape
    first = tape.new(forward.rows(width))
    half = tape.new(forward.rows(width / 2))
    turned = tape.new(forward.rows(width))
    tape.free(half)
    second = tape.new(forward.rows(width))
    tape.free(turned)
    result = tape.new(forward.rows(width))
    tape.free(first, second)
    return result


def _repeated(forward: Forward, kind: Cache | None) -> list[int]:
    """Keys and values repeated to all heads, where this attention takes no fewer KV heads than heads."""
    run, model = forward.run, forward.model
    if not isinstance(kind, AttentionCache) or kind.kv_heads == model.heads:
        return []
    rules = run.rules
    wanted = {
        "eager": True,
        "sdpa": rules.repeats_kv_for_sdpa or kind.key_dim > WIDEST_GROUPED_HEAD,
        "flash_attention_2": rules.repeats_kv_for_flash and model.model_type not in OWNERS_OF_TABLES,
    }[run.attention]
    if not wanted:
        return []
    whole = model.heads / kind.kv_heads / (2 * kind.layers)
    return [forward.tape.new(cache_size(forward, kind, forward.extent.cached, whole)) for _ in range(2)]


def _masked(forward: Forward, kind: Cache | None) -> list[int]:
    """What a mask costs where a prompt fills the window of a sliding layer: SDPA takes it in the compute dtype, and
    all heads of keys and values."""
    run, extent = forward.run, forward.extent
    if not isinstance(kind, AttentionCache) or kind.window is None:
        return []
    if extent.past is not None or run.attention != "sdpa":
        return []
    made = [forward.tape.new(Size.of(BEYOND_WINDOW, run.element_bytes))]
    if not run.rules.repeats_kv_for_sdpa and kind.kv_heads < forward.model.heads:
        width = forward.model.heads * kind.key_dim * run.element_bytes
        made += [forward.tape.new(Size.of("per_token_beyond_window", width)) for _ in range(2)]
    return made


def _mix(forward: Forward, heads: int, width: int) -> int:
    """Attention itself: fused kernels keep a sum a row, eager keeps every score."""
    tape, extent, run = forward.tape, forward.extent, forward.run
    if run.attention != "eager":
        with tape.held(forward.rows(heads, SINGLE)):
            return tape.new(forward.rows(heads * width))
    scores = Size.of(extent.score, heads * run.element_bytes)
    if forward.has_sinks:
        return _mix_with_sinks(forward, scores, heads, width)
    raw = tape.new(scores)
    scaled = tape.new(scores)
    tape.free(raw)
    masked = tape.new(scores)
    tape.free(scaled)
    single = Size.of(extent.score, heads * SINGLE)
    # The softmax is in float32; only float16 is widened inside the kernel (`softmax` in
    # https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/SoftMax.cpp).
    with tape.held(*((single,) if run.widens_for_softmax else ())):
        wide = tape.new(single)
    weights = tape.new(scores)
    tape.free(wide, masked)
    mixed = tape.new(forward.rows(heads * width))
    laid_out = tape.new(forward.rows(heads * width))
    tape.free(mixed, weights)
    return laid_out


def _mix_with_sinks(forward: Forward, scores: Size, heads: int, width: int) -> int:
    """gpt-oss: scores, the same with a sink behind them, and its softmax, all in the compute dtype."""
    tape = forward.tape
    plain = tape.new(scores)
    combined = tape.new(scores)
    with tape.held(scores):
        tape.free(plain)
        laid_out = tape.new(scores)
    tape.free(combined)
    mixed = tape.new(forward.rows(heads * width))
    tape.free(laid_out)
    return mixed


def _latent(forward: Forward, kind: LatentCache) -> list[int]:
    """Multi-head latent attention: the latent is cached, then expanded to keys and values of every head."""
    tape, model, run = forward.tape, forward.model, forward.run
    expanded = _latent_expansion(model)
    query = tape.new(forward.rows(model.heads * model.head_dim), "activations_bytes")
    latent = tape.new(forward.rows(kind.latent_dim + kind.rope_dim), "activations_bytes")
    own = update(forward, kind, [latent])
    cached = forward.extent.cached
    turned = tape.new(forward.rows(model.heads * model.head_dim))
    both = tape.new(Size.of(cached, expanded * run.element_bytes), "activations_bytes")
    keys = tape.new(Size.of(cached, model.heads * model.head_dim * run.element_bytes))
    # Values are a view of what was expanded; attention lays them out by themselves.
    values = tape.new(Size.of(cached, all_values_width(model) * run.element_bytes))
    mixed = _mix(forward, model.heads, model.head_dim)
    out = tape.new(forward.rows(model.hidden), "activations_bytes")
    tape.free(mixed, query, turned, both, keys, values, out)
    return own


def _latent_expansion(model: Architecture) -> int:
    """Outputs of the projection that expands a latent: keys without their rotated part, and values, of all heads."""
    rows = [one.shape[0] for one in model.weights if one.name.endswith("kv_b_proj.weight")]
    return max(rows, default=2 * model.heads * model.head_dim)
