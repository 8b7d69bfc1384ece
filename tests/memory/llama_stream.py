"""What transformers 4.35 asks of the allocator for a Llama-2 in float16: weights, one forward, one greedy generation.

Shape arithmetic only, from that release's modeling_llama.py and `greedy_search`: the cache is a tuple of keys and
values that `torch.cat` makes anew in every layer and step while the caller still holds the old one; the head gives
logits of every position in float16 and then a float32 copy; a layer's input lives until the layer returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gpufit.memory.replay import Event, Given

CUBLAS_WORKSPACE_BYTES = 8_519_680
"""`:4096:2:16:8`, in KiB: 2 x 4096 + 8 x 16. https://github.com/pytorch/pytorch/issues/91564"""
HALF, SINGLE = 2, 4
HEAD_DIM, VOCABULARY, POSITIONS = 128, 32_000, 4096


@dataclass(frozen=True)
class Llama:
    """A Llama-2 with as many KV heads as heads: config.json of meta-llama/Llama-2-7b-hf and -13b-hf."""

    hidden: int
    intermediate: int
    layers: int

    @property
    def heads(self) -> int:
        return self.hidden // HEAD_DIM

    @property
    def parameter_sizes(self) -> list[int]:
        """Bytes of each weight, in the order of the module tree."""
        table = VOCABULARY * self.hidden * HALF
        square, wide, norm = self.hidden**2 * HALF, self.hidden * self.intermediate * HALF, self.hidden * HALF
        return [table, *([square] * 4 + [wide] * 3 + [norm] * 2) * self.layers, norm, table]

    @property
    def buffer_sizes(self) -> list[int]:
        """Bytes of each layer's rotary frequencies (float32) and its tables of cosines and sines (float16)."""
        return [HEAD_DIM // 2 * SINGLE, POSITIONS * HEAD_DIM * HALF, POSITIONS * HEAD_DIM * HALF] * self.layers


LLAMA_2_7B = Llama(hidden=4096, intermediate=11008, layers=32)
LLAMA_2_13B = Llama(hidden=5120, intermediate=13824, layers=40)


def resident(model: Llama) -> list[Given]:
    """What is there before a run: weights, rotary tables, and the matrix library's workspace."""
    sizes = [(size, "weights") for size in model.parameter_sizes] + [(size, "buffers") for size in model.buffer_sizes]
    given = [Given(-number, size, kind) for number, (size, kind) in enumerate(sizes, start=1)]  # type: ignore[arg-type]
    return [*given, Given(-len(given) - 1, CUBLAS_WORKSPACE_BYTES, "temporaries")]


@dataclass
class Tape:
    """Events as they are asked for. A tensor is the address that its allocation got here."""

    events: list[Event] = field(default_factory=list)
    next_address: int = 1

    def new(self, size: int) -> int:
        address = self.next_address
        self.next_address += 1
        self.events.append(Event(address, size))
        return address

    def free(self, *addresses: int) -> None:
        self.events.extend(Event(address, 0) for address in addresses)

    @contextmanager
    def held(self, *sizes: int) -> Iterator[None]:
        made = [self.new(size) for size in sizes]
        yield
        self.free(*made)


Cache = list[tuple[int, int]]


@dataclass
class Run:
    """One process: a model, a batch, and the tape of what its forwards ask for."""

    model: Llama
    batch: int
    fused_attention: bool
    tape: Tape = field(default_factory=Tape)

    def forward(self, tokens: int, past: Cache, past_tokens: int) -> tuple[Cache, int]:
        """(new cache, float32 logits) of one forward; the old cache stays the caller's."""
        model, tape, rows = self.model, self.tape, self.batch * tokens
        states = rows * model.hidden * HALF
        hidden = tape.new(states)
        mask = tape.new(self.batch * tokens * (past_tokens + tokens) * HALF)
        cache: Cache = []
        for layer in range(model.layers):
            normed = self.norm(rows)
            attended, keys, values = self.attention(tokens, past[layer] if past else None, past_tokens)
            cache.append((keys, values))
            tape.free(normed)
            summed = tape.new(states)
            tape.free(attended)
            normed = self.norm(rows)
            projected = self.mlp(rows)
            tape.free(normed)
            output = tape.new(states)
            tape.free(projected, summed, hidden)
            hidden = output
        last = self.norm(rows)
        tape.free(hidden, mask)
        half = tape.new(rows * VOCABULARY * HALF)
        logits = tape.new(rows * VOCABULARY * SINGLE)
        tape.free(half, last)
        return cache, logits

    def norm(self, rows: int) -> int:
        """RMSNorm: in float32, back to float16, times the weight."""
        tape, single, half = self.tape, rows * self.model.hidden * SINGLE, rows * self.model.hidden * HALF
        wide = tape.new(single)
        squares = tape.new(single)
        variance = tape.new(rows * SINGLE)
        tape.free(squares)
        with tape.held(rows * SINGLE, rows * SINGLE):
            scaled = tape.new(single)
        tape.free(wide)
        cast = tape.new(half)
        normed = tape.new(half)
        tape.free(cast, scaled, variance)
        return normed

    def mlp(self, rows: int) -> int:
        tape, wide = self.tape, rows * self.model.intermediate * HALF
        gate = tape.new(wide)
        active = tape.new(wide)
        tape.free(gate)
        up = tape.new(wide)
        product = tape.new(wide)
        tape.free(active, up)
        down = tape.new(rows * self.model.hidden * HALF)
        tape.free(product)
        return down

    def attention(self, tokens: int, past: tuple[int, int] | None, past_tokens: int) -> tuple[int, int, int]:
        """(output, keys, values)."""
        tape, states = self.tape, self.batch * tokens * self.model.hidden * HALF
        query, key, value = (tape.new(states) for _ in range(3))
        rotation = [tape.new(self.batch * tokens * HEAD_DIM * HALF) for _ in range(2)]
        turned_query = self.rotate(states)
        turned_key = self.rotate(states)
        tape.free(*rotation, query, key)
        query, key = turned_query, turned_key
        if past is not None:
            whole = self.batch * (past_tokens + tokens) * self.model.hidden * HALF
            all_keys = tape.new(whole)
            tape.free(key)
            all_values = tape.new(whole)
            tape.free(value)
            key, value = all_keys, all_values
        mixed = self.fused(tokens, states) if self.fused_attention else self.eager(tokens, past_tokens, states)
        output = tape.new(states)
        tape.free(mixed, query)
        return output, key, value

    def rotate(self, states: int) -> int:
        """x * cos + cat(-x2, x1) * sin."""
        tape = self.tape
        first = tape.new(states)
        half = tape.new(states // 2)
        turned = tape.new(states)
        tape.free(half)
        second = tape.new(states)
        tape.free(turned)
        result = tape.new(states)
        tape.free(first, second)
        return result

    def fused(self, tokens: int, states: int) -> int:
        with self.tape.held(self.batch * self.model.heads * tokens * SINGLE):
            return self.tape.new(states)

    def eager(self, tokens: int, past_tokens: int, states: int) -> int:
        """Scores, scaled, masked, softmax in float32, cast, times the values, laid out anew.

        Of more than one sequence and more than one token the batched product takes contiguous copies of its operands.
        """
        tape = self.tape
        scores = self.batch * self.model.heads * tokens * (past_tokens + tokens) * HALF
        copied = (states, states) if self.batch > 1 and tokens > 1 else ()
        with tape.held(*copied):
            raw = tape.new(scores)
        scaled = tape.new(scores)
        tape.free(raw)
        masked = tape.new(scores)
        tape.free(scaled)
        wide = tape.new(2 * scores)
        weights = tape.new(scores)
        tape.free(wide, masked)
        with tape.held(*copied[:1]):
            mixed = tape.new(states)
        if tokens > 1:
            laid_out = tape.new(states)
            tape.free(mixed)
            mixed = laid_out
        tape.free(weights)
        return mixed


def prefill(model: Llama, batch: int, tokens: int, fused_attention: bool) -> list[Event]:
    """One forward over the prompt, as optimum-benchmark's prefill."""
    run = Run(model, batch, fused_attention)
    cache, logits = run.forward(tokens, [], 0)
    run.tape.free(logits, *(address for pair in cache for address in pair))
    return run.tape.events


def generation(model: Llama, batch: int, tokens: int, new_tokens: int, fused_attention: bool) -> list[Event]:
    """`generate`: the prompt's forward and one forward for each further token.

    The logits of a step live until those of the next are there; the old cache until the step after has its inputs.
    """
    run = Run(model, batch, fused_attention)
    cache, logits = run.forward(tokens, [], 0)
    for past_tokens in range(tokens, tokens + new_tokens - 1):
        grown, next_logits = run.forward(1, cache, past_tokens)
        run.tape.free(logits, *(address for pair in cache for address in pair))
        cache, logits = grown, next_logits
    run.tape.free(logits, *(address for pair in cache for address in pair))
    return run.tape.events
