"""One forward pass of a model in transformers, as blocks that come and go.

Layers of a kind ask for the same, so each kind is told once, as the last layer of the stack: every other layer has its
keys and values in place by then, and at no earlier layer is more alive.

Sources: the modelling files of each release; https://github.com/huggingface/transformers/blob/main/src/transformers/
models/llama/modeling_llama.py and its like.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpufit.architecture.record import (
    Architecture,
    AttentionCache,
    Cache,
    CrossAttentionCache,
    Experts,
    LatentCache,
    StateCache,
)
from gpufit.memory.engines.tape import Size, Tape
from gpufit.memory.engines.transformers.kernels import NO_KERNELS, Kernels
from gpufit.memory.engines.transformers.rules import ALL_EXPERTS, CASTS_ROUTING, NOT_GROUPED, Rules
from gpufit.profile.record import Phase, TermName

SINGLE = 4
"""Bytes of float32, which norms and scores are computed in."""
INDEX = 8
"""Bytes of int64: token ids and masks as the tokenizer gives them."""
WIDENED = 5
"""Copies of a layer's keys or values in the compute dtype while a quantised cache takes a step: both dequantised, both
with the new token behind them, and one on its way to fewer bits (`Fp8QuantizedLayer` in cache_utils.py)."""
MASK = 1
"""Bytes of an entry of a boolean mask."""
BEYOND_WINDOW: TermName = "per_token_squared_beyond_window"
"""Pairs of every sequence whose prompt fills the window: from there on a mask is made for sliding layers
(`_ignore_causal_mask_sdpa` in masking_utils.py)."""
WIDEST_GROUPED_HEAD = 256
"""Numbers a head up to which SDPA takes fewer KV heads than heads (`use_gqa_in_sdpa`)."""
STEPS_OF_GELU = 3
"""Results alive beside input and output of 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))), which
`gelu_new` writes out (activations.py)."""
COPIES_KV = ("falcon",)
"""Families that copy grouped keys and values to every head before they cache them (`_split_heads` in
modeling_falcon.py); one KV head for all stays one."""
OWNERS_OF_TABLES = ("llama",)
"""Families whose rotary tables went away with Llama's."""


@dataclass(frozen=True)
class Run:
    """What a forward pass depends on beside the model."""

    rules: Rules
    element_bytes: int
    """Of a weight and an activation, in the dtype that is computed in."""
    kv_element_bytes: int
    attention: str
    """`eager`, `sdpa` or `flash_attention_2`."""
    widens_for_softmax: bool = False
    """Whether scores are copied to float32 before the softmax: those in bfloat16."""
    kernels: Kernels = NO_KERNELS
    """What the kernels of quantised weights take."""
    on_card: bool = True
    """False for a CPU, where steps run experts as prompts do."""


@dataclass(frozen=True)
class Extent:
    """The terms that sizes of one phase are told in."""

    row: TermName
    """One for each token that the pass computes."""
    position: TermName
    """One for each position that it computes, shared by all sequences."""
    score: TermName
    """One for each pair of a query and a key, of every sequence."""
    pair: TermName
    """The same, shared by all sequences."""
    cached: TermName
    """One for each token in the cache when the pass ends."""
    past: TermName | None
    """One for each token in it before; None for a prompt."""
    in_window: TermName
    """One for each token that a sliding layer holds until the pass reaches it."""
    left_in_window: TermName
    """One for each token that it holds afterwards."""


PROMPT = Extent("per_token", "per_position", "per_token_squared", "mask", "per_token", None, "per_token", "per_token")
STEP = Extent(
    "per_sequence",
    "constant",
    "per_token",
    "per_position",
    "per_token",
    "per_past_token",
    "per_token_in_window",
    "per_token_in_window",
)
FIRST = replace(STEP, in_window="per_prompt_token")
"""The first step: sliding layers still hold the whole prompt, as prefill left it."""


class Forward:
    """The tape of one pass of one model."""

    def __init__(self, model: Architecture, run: Run, extent: Extent) -> None:
        self.model, self.run, self.extent = model, run, extent
        self.tape = Tape()
        self.fused_gate = any(one.name.endswith(".mlp.gate_up_proj.weight") for one in model.weights)
        """Whether the checkpoint holds gate and up as one matrix (Phi 3, GLM 4)."""
        self.has_sinks = any(one.name.endswith(".sinks") for one in model.weights)
        """Whether attention has a sink beside the scores (gpt-oss)."""

    def rows(self, elements: float, element_bytes: int | None = None) -> Size:
        """So many elements for each token computed, in the compute dtype unless said otherwise."""
        return Size.of(self.extent.row, elements * (element_bytes or self.run.element_bytes))

    def tell(self) -> None:
        """Every layer kind once, then the logits."""
        tape, model, extent = self.tape, self.model, self.extent
        tape.new(Size.of("constant", self.run.kernels.buffer_bytes))
        tape.new(Size.of(extent.cached if model.generates else extent.row, 2 * INDEX), "inputs_bytes")
        held = [tape.new(self.rows(model.hidden), "activations_bytes") for _ in range(2 if model.layers > 1 else 1)]
        shared = [*self._shared(), *self._outputs_before()]
        for kind in model.caches or (None,):
            self._attention_layer(kind)
        self._whole_cache()
        for experts in self._mlp_kinds():
            self._mlp_layer(experts)
        tape.free(*held, *shared)
        self._logits()

    def _shared(self) -> list[int]:
        """What all layers of the pass use: rotary cosines and sines, a mask where attention takes one."""
        tape, model, run, extent = self.tape, self.model, self.run, self.extent
        made = []
        if model.rotary is not None and not keeps_tables(model, run.rules):
            turns = Size.of(extent.position, 2 * model.rotary.dim * run.element_bytes)
            made.append(tape.new(turns, "activations_bytes"))
        if model.sliding_window is not None and extent.past is None and run.attention == "sdpa":
            made.append(tape.new(Size.of(BEYOND_WINDOW, MASK)))
        if run.attention == "eager" and model.generates:
            whole = extent.score if run.rules.all_logits_twice else extent.pair
            made.append(tape.new(Size.of(whole, run.element_bytes)))
        return made

    def _outputs_before(self) -> list[int]:
        """Logits of the step before, where they outlive it: in the first step those of the prompt."""
        if self.extent.past is None or not self.run.rules.outputs_outlive_step:
            return []
        rows = "per_prompt_token" if self.extent.in_window == "per_prompt_token" else self.extent.row
        return [self.tape.new(Size.of(rows, self.model.vocabulary * SINGLE), "outputs_bytes")]

    def _mlp_kinds(self) -> tuple[Experts | None, ...]:
        experts = self.model.experts
        if experts is None:
            return (None,)
        return (experts,) if experts.layers >= self.model.layers else (None, experts)

    # Caches

    def _cache_size(self, kind: Cache, term: TermName | None, share: float = 1.0, *, after: bool = False) -> Size:
        """Bytes of a kind of cache, over its layers or a share of them; `term` counts the tokens of full attention,
        `after` says that the pass has been there."""
        run, layers = self.run, kind.layers
        if isinstance(kind, StateCache):
            size = kind.convolution_elements * run.element_bytes + kind.recurrent_elements * SINGLE
            return Size.of("per_sequence", share * layers * size)
        if isinstance(kind, CrossAttentionCache):
            each = share * 2 * layers * kind.kv_heads * kind.head_dim * run.element_bytes
            fixed = kind.source_tokens
            return Size.of("per_prompt_token", each) if fixed is None else Size.of("per_sequence", each * fixed)
        if term is None:
            return Size()
        if isinstance(kind, AttentionCache) and kind.window is not None and run.rules.sliding_cache:
            term = self.extent.left_in_window if after else self.extent.in_window
        return Size.of(term, share * elements_per_token(kind, self.model, run.rules) * run.kv_element_bytes)

    def _whole_cache(self) -> list[int]:
        cached = self.extent.cached
        return [self.tape.new(self._cache_size(kind, cached), "kv_cache_bytes") for kind in self.model.caches]

    def _other_layers(self, kind: Cache | None) -> list[int]:
        """The cache of every layer but the one that runs, and what the caller still holds of the step before."""
        tape, extent = self.tape, self.extent
        made = []
        for one in self.model.caches:
            share = 1 - 1 / one.layers if one is kind else 1.0
            made.append(tape.new(self._cache_size(one, extent.cached, share), "kv_cache_bytes"))
            if self.run.rules.whole_cache_twice and extent.past is not None:
                made.append(tape.new(self._cache_size(one, extent.past, share), "kv_cache_bytes"))
        return made

    def _update(self, kind: Cache, fresh: list[int]) -> list[int]:
        """The running layer's cache takes the new keys and values; what then holds them."""
        tape, extent, rules = self.tape, self.extent, self.run.rules
        if isinstance(kind, (StateCache, CrossAttentionCache)):
            tape.free(*fresh)
            return [tape.new(self._cache_size(kind, None, 1 / kind.layers), "kv_cache_bytes")]
        if extent.past is None and not rules.first_update_copies:
            for block in fresh:
                tape.become(block, "kv_cache_bytes")
            return fresh
        share = 1 / (2 * kind.layers)
        if self.run.kv_element_bytes < self.run.element_bytes:
            # A quantised cache gives back keys and values in the compute dtype, and takes them anew.
            widened = self._cache_size(kind, extent.cached, share * self.run.element_bytes / self.run.kv_element_bytes)
            with tape.held(*[widened] * WIDENED):
                pass
        old = [tape.new(self._cache_size(kind, extent.past, share), "kv_cache_bytes") for _ in range(2)]
        made = []
        # A sliding layer makes both copies before it gives up what they are copied from (`DynamicSlidingWindowLayer`).
        slides = isinstance(kind, AttentionCache) and kind.window is not None and rules.sliding_cache
        keeps_old = rules.whole_cache_twice or slides
        for before in old:
            # Until the cache adopts it, the longer copy is a temporary beside what it is copied from.
            longer = tape.new(self._cache_size(kind, extent.cached, share, after=True))
            if not keeps_old:
                tape.free(before)
                tape.become(longer, "kv_cache_bytes")
            made.append(longer)
        if slides:
            tape.free(*old)
        for block in made:
            tape.become(block, "kv_cache_bytes")
        tape.free(*fresh)
        return [*made, *(old if rules.whole_cache_twice else ())]

    # Layers

    def _attention_layer(self, kind: Cache | None) -> None:
        with self.tape.at("attention"):
            others = self._other_layers(kind)
            normed = self._norm()
            own = self._latent(kind) if isinstance(kind, LatentCache) else self._attention(kind)
            self.tape.free(normed, *others, *own)

    def _norm(self) -> int:
        """RMSNorm: widened to float32, squared, scaled, cast back, times its weight."""
        tape, hidden = self.tape, self.model.hidden
        wide = tape.new(self.rows(hidden, SINGLE))
        squares = tape.new(self.rows(hidden, SINGLE))
        tape.free(squares)
        scaled = tape.new(self.rows(hidden, SINGLE))
        tape.free(wide)
        cast = tape.new(self.rows(hidden))
        normed = tape.new(self.rows(hidden), "activations_bytes")
        tape.free(cast, scaled)
        return normed

    def _attention(self, kind: Cache | None) -> list[int]:
        """Projections, rotation, cache, attention, output; the blocks of the layer's cache."""
        tape, model = self.tape, self.model
        heads, head_dim = model.heads, model.head_dim
        key_width, value_width = (
            (kind.kv_heads * kind.key_dim, kind.kv_heads * kind.value_dim)
            if isinstance(kind, AttentionCache)
            else (heads * head_dim, heads * head_dim)
        )
        query = tape.new(self.rows(heads * head_dim), "activations_bytes")
        key = tape.new(self.rows(key_width), "activations_bytes")
        value = tape.new(self.rows(value_width), "activations_bytes")
        if model.rotary is not None:
            turned_query = self._rotate(heads * head_dim)
            turned_key = self._rotate(key_width)
            tape.free(query, key)
            query, key = turned_query, turned_key
        own = self._update(kind, [key, value]) if kind is not None else [key, value]
        repeated = [*self._repeated(kind), *self._masked(kind)]
        mixed = self._mix(heads, head_dim)
        tape.free(*repeated)
        out = tape.new(self.rows(model.hidden), "activations_bytes")
        tape.free(mixed, query)
        tape.free(out)
        return own

    def _rotate(self, width: int) -> int:
        """x * cos + rotate_half(x) * sin."""
        tape = self.tape
        first = tape.new(self.rows(width))
        half = tape.new(self.rows(width / 2))
        turned = tape.new(self.rows(width))
        tape.free(half)
        second = tape.new(self.rows(width))
        tape.free(turned)
        result = tape.new(self.rows(width))
        tape.free(first, second)
        return result

    def _repeated(self, kind: Cache | None) -> list[int]:
        """Keys and values repeated to all heads, where this attention takes no fewer KV heads than heads."""
        run, model = self.run, self.model
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
        return [self.tape.new(self._cache_size(kind, self.extent.cached, whole)) for _ in range(2)]

    def _masked(self, kind: Cache | None) -> list[int]:
        """What a mask costs where a prompt fills the window of a sliding layer: SDPA takes it in the compute dtype, and
        all heads of keys and values."""
        run, extent = self.run, self.extent
        if not isinstance(kind, AttentionCache) or kind.window is None:
            return []
        if extent.past is not None or run.attention != "sdpa":
            return []
        made = [self.tape.new(Size.of(BEYOND_WINDOW, run.element_bytes))]
        if not run.rules.repeats_kv_for_sdpa and kind.kv_heads < self.model.heads:
            width = self.model.heads * kind.key_dim * run.element_bytes
            made += [self.tape.new(Size.of("per_token_beyond_window", width)) for _ in range(2)]
        return made

    def _mix(self, heads: int, width: int) -> int:
        """Attention itself: fused kernels keep a sum a row, eager keeps every score."""
        tape, extent, run = self.tape, self.extent, self.run
        if run.attention != "eager":
            with tape.held(self.rows(heads, SINGLE)):
                return tape.new(self.rows(heads * width))
        scores = Size.of(extent.score, heads * run.element_bytes)
        if self.has_sinks:
            return self._mix_with_sinks(scores, heads, width)
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
        mixed = tape.new(self.rows(heads * width))
        laid_out = tape.new(self.rows(heads * width))
        tape.free(mixed, weights)
        return laid_out

    def _mix_with_sinks(self, scores: Size, heads: int, width: int) -> int:
        """gpt-oss: scores, the same with a sink behind them, and its softmax, all in the compute dtype."""
        tape = self.tape
        plain = tape.new(scores)
        combined = tape.new(scores)
        with tape.held(scores):
            tape.free(plain)
            laid_out = tape.new(scores)
        tape.free(combined)
        mixed = tape.new(self.rows(heads * width))
        tape.free(laid_out)
        return mixed

    def _latent(self, kind: LatentCache) -> list[int]:
        """Multi-head latent attention: the latent is cached, then expanded to keys and values of every head."""
        tape, model, run = self.tape, self.model, self.run
        expanded = latent_expansion(model)
        query = tape.new(self.rows(model.heads * model.head_dim), "activations_bytes")
        latent = tape.new(self.rows(kind.latent_dim + kind.rope_dim), "activations_bytes")
        own = self._update(kind, [latent])
        cached = self.extent.cached
        turned = tape.new(self.rows(model.heads * model.head_dim))
        both = tape.new(Size.of(cached, expanded * run.element_bytes), "activations_bytes")
        keys = tape.new(Size.of(cached, model.heads * model.head_dim * run.element_bytes))
        # Values are a view of what was expanded; attention lays them out by themselves.
        values = tape.new(Size.of(cached, _value_width(model) * run.element_bytes))
        mixed = self._mix(model.heads, model.head_dim)
        out = tape.new(self.rows(model.hidden), "activations_bytes")
        tape.free(mixed, query, turned, both, keys, values, out)
        return own

    def _mlp_layer(self, experts: Experts | None) -> None:
        tape = self.tape
        with tape.at("mlp" if experts is None else "experts"):
            summed = tape.new(self.rows(self.model.hidden))
            normed = self._norm()
            if experts is None:
                self._mlp(self.model.intermediate)
            else:
                self._experts(experts)
            tape.free(normed, summed)

    def _mlp(self, intermediate: int) -> None:
        """Gate, activation, up, product, down; without a gate: up, activation, down."""
        tape = self.tape
        width = self.rows(intermediate)
        if self.fused_gate:
            # One matrix makes gate and up; both are views of what it made until the layer returns.
            both = tape.new(width * 2, "activations_bytes")
            active = tape.new(width, "activations_bytes")
            product = tape.new(width)
            tape.free(active)
            down = tape.new(self.rows(self.model.hidden), "activations_bytes")
            tape.free(both, product, down)
            return
        gate = tape.new(width, "activations_bytes")
        steps = (width,) * STEPS_OF_GELU if self._in_steps() else ()
        with tape.held(*steps):
            active = tape.new(width, "activations_bytes")
        if self.model.gated:
            tape.free(gate)
            up = tape.new(width, "activations_bytes")
            product = tape.new(width)
            tape.free(active, up)
            active = product
        else:
            tape.free(gate)
        down = tape.new(self.rows(self.model.hidden), "activations_bytes")
        tape.free(active, down)

    def _in_steps(self) -> bool:
        """Whether the activation is made of several operations, each with a result of its own."""
        named = self.model.activation
        return named in ("gelu_new", "gelu_fast", "gelu_python") or (not named and not self.model.gated)

    def _experts(self, experts: Experts) -> None:
        """Routed experts, and the ones that every token goes through."""
        tape, hidden, model_type = self.tape, self.model.hidden, self.model.model_type
        router = tape.new(self.rows(experts.count), "activations_bytes")
        scores = tape.new(self.rows(experts.count, SINGLE))
        if model_type in ALL_EXPERTS:
            result = self._all_experts(experts)
        elif self.run.rules.grouped_experts and model_type not in NOT_GROUPED:
            steps_on_a_card = self.extent.past is not None and self.run.on_card
            result = self._gathered(experts) if steps_on_a_card else self._grouped(experts)
        else:
            # One after another, each with the tokens that chose it: their share, if all are chosen alike.
            result = tape.new(self.rows(hidden))
            share = experts.per_token / experts.count
            choices = tape.new(self.rows(experts.per_token * experts.count, INDEX))
            picked = tape.new(self.rows(share * hidden))
            self._mlp_share(share * experts.intermediate)
            down = tape.new(self.rows(share * hidden))
            weighted = tape.new(self.rows(share * hidden))
            tape.free(picked, down, weighted, choices)
        if experts.shared_intermediate:
            self._mlp(experts.shared_intermediate)
        tape.free(router, scores, result)

    def _all_experts(self, experts: Experts) -> int:
        """Llama 4: every token through every expert, weighed by its scores."""
        tape, every, width = self.tape, experts.count, self.rows(experts.count * experts.intermediate)
        copied = tape.new(self.rows(every * self.model.hidden))
        routed = tape.new(self.rows(every * self.model.hidden))
        tape.free(copied)
        both = tape.new(width * 2)
        active = tape.new(width, "activations_bytes")
        product = tape.new(width)
        tape.free(active)
        out = tape.new(self.rows(every * self.model.hidden))
        tape.free(both, product, routed)
        return out

    def _gathered(self, experts: Experts) -> int:
        """The same for a step on a card, with a copy of the weights of every expert that each token chose; experts that
        are packed have kernels of their own."""
        tape, chosen = self.tape, experts.per_token
        gathers = not self.run.kernels.packed_experts
        matrix = Size.of(self.extent.row, chosen * experts.intermediate * self.model.hidden * self.run.element_bytes)
        picked = tape.new(self.rows(chosen * self.model.hidden))
        first = tape.new(matrix * (2 if gathers else 0))
        both = tape.new(self.rows(chosen * 2 * experts.intermediate))
        product = tape.new(self.rows(chosen * experts.intermediate))
        tape.free(both)
        second = tape.new(matrix * (1 if gathers else 0))
        tape.free(first)
        down = tape.new(self.rows(chosen * self.model.hidden))
        tape.free(product)
        result = tape.new(self.rows(chosen * self.model.hidden, SINGLE))
        tape.free(picked, second, down)
        return result

    def _gate_with_biases(self, experts: Experts, both: int) -> int:
        """gpt-oss: biases gathered for every choice, gate and up clamped, and each step's result alive."""
        tape, width = self.tape, self.rows(experts.per_token * experts.intermediate)
        biases = tape.new(width * 2)
        biased = tape.new(width * 2)
        tape.free(both)
        with tape.held(width, width, width):
            product = tape.new(width)
        tape.free(biased, biases)
        return product

    def _grouped(self, experts: Experts) -> int:
        """Every token once for each expert it chose, in one product; what they add up to."""
        tape, chosen, hidden = self.tape, experts.per_token, self.rows(experts.per_token * self.model.hidden)
        picked = tape.new(hidden)
        both = tape.new(self.rows(chosen * 2 * experts.intermediate))
        if self.has_sinks:
            product = self._gate_with_biases(experts, both)
        else:
            active = tape.new(self.rows(chosen * experts.intermediate), "activations_bytes")
            product = tape.new(self.rows(chosen * experts.intermediate))
            tape.free(both, active)
        down = tape.new(hidden)
        tape.free(product)
        casts = self.model.model_type in CASTS_ROUTING
        scaled = hidden if casts else self.rows(chosen * self.model.hidden, SINGLE)
        weighted = tape.new(scaled)
        ordered = tape.new(scaled)
        tape.free(weighted)
        result = tape.new(self.rows(self.model.hidden))
        tape.free(picked, down, ordered)
        return result

    def _mlp_share(self, width: float) -> None:
        tape = self.tape
        active = tape.new(self.rows(width))
        up = tape.new(self.rows(width))
        product = tape.new(self.rows(width))
        tape.free(active, up, product)

    def _logits(self) -> None:
        """The last norm, and the projection to the vocabulary of every position or of the last."""
        tape, model = self.tape, self.model
        with tape.at("logits"):
            hidden = tape.new(self.rows(model.hidden), "activations_bytes")
            if not model.generates:
                tape.become(hidden, "outputs_bytes")
                return
            if self.run.rules.all_logits_twice:
                half = tape.new(self.rows(model.vocabulary), "activations_bytes")
                tape.new(self.rows(model.vocabulary, SINGLE), "outputs_bytes")
                tape.free(half, hidden)
                return
            tape.new(Size.of("per_sequence", model.vocabulary * self.run.element_bytes), "outputs_bytes")
            tape.free(hidden)


def elements_per_token(kind: Cache, model: Architecture, rules: Rules) -> int:
    """Elements a token takes in a kind of cache that grows, over its layers."""
    if isinstance(kind, AttentionCache):
        copied = model.heads // kind.kv_heads if model.model_type in COPIES_KV and kind.kv_heads > 1 else 1
        return kind.elements_per_token * copied
    if isinstance(kind, LatentCache):
        if rules.latent_cache:
            return kind.elements_per_token + kind.layers * kind.indexer_dim
        return kind.layers * (model.heads * model.head_dim + _value_width(model))
    return 0


def latent_expansion(model: Architecture) -> int:
    """Outputs of the projection that expands a latent: keys without their rotated part, and values, of all heads."""
    rows = [one.shape[0] for one in model.weights if one.name.endswith("kv_b_proj.weight")]
    return max(rows, default=2 * model.heads * model.head_dim)


def _value_width(model: Architecture) -> int:
    """Values of all heads: the inputs of the output projection."""
    columns = [one.shape[1] for one in model.weights if one.name.endswith("self_attn.o_proj.weight")]
    return max(columns, default=model.heads * model.head_dim)


def keeps_tables(model: Architecture, rules: Rules) -> bool:
    """Whether every layer keeps cosines and sines of all positions."""
    if model.rotary is None:
        return False
    return rules.llama_rotary_tables if model.model_type in OWNERS_OF_TABLES else rules.other_rotary_tables


def phase_of(extent: Extent, model: Architecture) -> Phase:
    """Which phase an extent is of."""
    if not model.generates:
        return Phase.FORWARD
    return Phase.PREFILL if extent.past is None else Phase.DECODE
