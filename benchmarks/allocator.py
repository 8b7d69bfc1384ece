"""How fast the allocator's rules are replayed, and how close they come to readings of a real card.

    python benchmarks/allocator.py [--readings]

A decode of Llama-2-7B in float16 is run through the allocator: events, CPU seconds, events a CPU second (the best of
three), under each kind of settings. `--readings` sets all 39 readings of tests/facts/allocator beside the simulation,
which takes about two minutes. Nothing in the test suite depends on a time.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from gpufit.memory.allocator import least_capacity, parse_settings, simulate

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY / "tests" / "memory")]

import llama_stream  # type: ignore[import-not-found]  # noqa: E402
import test_memory_allocator_readings as facts  # type: ignore[import-not-found]  # noqa: E402

BATCH, PROMPT, NEW_TOKENS = 4, 256, 64


def speed() -> None:
    """Events a CPU second, by settings."""
    model = llama_stream.LLAMA_2_7B
    given = llama_stream.resident(model)
    events = llama_stream.generation(model, BATCH, PROMPT, NEW_TOKENS, fused_attention=True)
    for text in ("", "expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:8"):
        settings, times = parse_settings(text), []
        for _ in range(3):
            begin = time.process_time()
            simulate(events, given, settings)
            times.append(time.process_time() - begin)
        rate = len(events) / min(times)
        print(
            f"{text or 'default':28} {len(events):9,} events {min(times):7.3f} CPU s {rate:12,.0f} events a CPU second"
        )
    begin = time.process_time()
    least = least_capacity(events, given)
    print(f"{'least capacity, default':28} {least / 1e6:9,.0f} MB     {time.process_time() - begin:7.3f} CPU s")


def readings() -> None:
    """Each reading beside the simulation, in MB of 10^6 bytes."""
    print(f"{'run':28} {'prefill allocated, reserved':>36} {'decode allocated, reserved':>36}  retries")
    for one in facts.READINGS:
        key = (one.model, one.fused, one.batch)
        prompt, whole = facts.of_prompt(*key).peak, facts.of_generation(*key)
        pairs = [
            (prompt.allocated_bytes, one.prefill_allocated),
            (prompt.reserved_bytes, one.prefill_reserved),
            (whole.peak.allocated_bytes, one.decode_allocated),
            (whole.peak.reserved_bytes, one.decode_reserved),
        ]
        cells = " ".join(f"{size / 1e6:9,.0f} {100 * (size / 1e6 / read - 1):+6.2f} %" for size, read in pairs)
        print(f"{one.model} {one.attention:6} {one.batch:3}   {cells}  {whole.retries}")


if __name__ == "__main__":
    speed()
    if "--readings" in sys.argv[1:]:
        readings()
