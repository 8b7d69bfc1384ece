"""A small Llama on disk, wide enough for every method of quantisation, and its sizes worked out by hand."""

from __future__ import annotations

from pathlib import Path

from model_files import save_llama

WIDTH, HEADS, INTERMEDIATE, VOCABULARY, LAYERS = 128, 4, 256, 512, 2
KV_WIDTH = WIDTH // 2
"""Two KV heads for four heads."""

LINEAR_ROWS = LAYERS * (WIDTH + 2 * KV_WIDTH + WIDTH + 2 * INTERMEDIATE + WIDTH)
"""Output features of q, k and v, o, gate and up, down: 2048; each has one scale where scales are by row."""
LINEAR_WEIGHTS = LAYERS * (WIDTH * (WIDTH + 2 * KV_WIDTH + WIDTH + 2 * INTERMEDIATE) + INTERMEDIATE * WIDTH)
"""Elements of the layers' linear weights: 294,912."""
LINEARS = LAYERS * 7
OTHER_WEIGHTS = 2 * VOCABULARY * WIDTH + (2 * LAYERS + 1) * WIDTH
"""Embedding and head, and the norms: they stay as they are."""
ROTARY_BUFFERS = 2 * (WIDTH // HEADS // 2) * 4
"""The rotary frequencies and their copy, float32."""


def save_wide_llama(folder: Path) -> Path:
    """In bfloat16."""
    return save_llama(
        folder, hidden_size=WIDTH, num_attention_heads=HEADS, intermediate_size=INTERMEDIATE, vocab_size=VOCABULARY
    )
