"""The shapes of a model: frozen records, sizes in elements and tokens, never in bytes.

Bytes depend on the precision, and what is allocated depends on the engine; both are decided above.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass


class Split(enum.Enum):
    """How tensor parallelism divides a weight over ranks."""

    REPLICATED = "replicated"
    """Whole on each rank: norms, routers, biases of row-split layers, MLA's down projections."""
    COLUMN = "column"
    """Rows of the stored (out, in) matrix are divided: every rank computes a share of the outputs."""
    ROW = "row"
    """Columns of the stored (out, in) matrix are divided: every rank takes a share of the inputs."""
    VOCABULARY = "vocabulary"
    """Rows are tokens, which an engine may pad before it divides them."""
    KV_HEADS = "kv_heads"
    """As COLUMN, in whole KV heads: divided down to one head a rank, then replicated."""


class Kind(enum.Enum):
    """What a weight is, as far as quantisation methods and engines tell weights apart."""

    LINEAR = "linear"
    """A matrix of a linear layer inside the stack: what weight quantisation quantises."""
    EXPERT = "expert"
    """The same in a routed expert."""
    ROUTER = "router"
    EMBEDDING = "embedding"
    """Token embeddings, and learned positions."""
    HEAD = "head"
    """The projection to the vocabulary."""
    NORM = "norm"
    BIAS = "bias"
    CONVOLUTION = "convolution"
    """Kernels of convolutions: patch embeddings, short convolutions of linear attention and Mamba."""
    STATE = "state"
    """Small parameters of state-space layers: A, D, dt bias; attention sinks and other scalars a head or a layer."""


class Component(enum.Enum):
    """The part of a model that a weight belongs to."""

    DECODER = "decoder"
    """The stack that generates; for a model that does not generate, its only stack."""
    ENCODER = "encoder"
    """The encoder of an encoder-decoder."""
    VISION = "vision"
    AUDIO = "audio"
    PROJECTOR = "projector"
    """What carries a tower's output to the decoder's width."""
    PREDICTOR = "predictor"
    """Layers for multi-token prediction, which the checkpoint holds and most engines leave unloaded."""


@dataclass(frozen=True, slots=True)
class Weight:
    """One stored tensor of the checkpoint, or the same one in several layers and experts."""

    name: str
    """As in the checkpoint, `{layer}` and `{expert}` standing for their numbers."""
    shape: tuple[int, ...]
    """As stored: (out, in) for a linear layer, (in, out) where the model stores it turned (GPT-2's `Conv1D`); where a
    checkpoint stacks all experts of a layer in one tensor (gpt-oss, Llama 4), they are its first dimension."""
    kind: Kind
    split: Split
    component: Component = Component.DECODER
    layers: tuple[int, ...] = ()
    """Layers that have it; empty for a tensor outside any stack of layers."""
    experts: int = 1
    """Routed experts that have it, in each layer."""
    fused: str = ""
    """The module that engines which fuse linear layers make of it and its neighbours: `qkv_proj`, `gate_up_proj`."""
    dtype: str | None = None
    """The dtype that the model keeps it in whatever is asked for (`F32`); absent: the model's."""
    upcast: bool = False
    """Whether transformers holds it in float32 although the checkpoint does not: routers of DeepSeek and GLM."""
    parameter: bool = True
    """False for a buffer that older checkpoints store (`rotary_emb.inv_freq`)."""

    @property
    def elements(self) -> int:
        """Elements of one copy."""
        return math.prod(self.shape)

    @property
    def copies(self) -> int:
        """How many tensors of this shape the checkpoint holds under this name."""
        return max(len(self.layers), 1) * self.experts

    def names(self) -> Iterator[str]:
        """The full name of every copy."""
        for layer in self.layers or (0,):
            for expert in range(self.experts):
                yield self.name.replace("{layer}", str(layer)).replace("{expert}", str(expert))


@dataclass(frozen=True, slots=True)
class AttentionCache:
    """Keys and values of every token a layer still sees."""

    layers: int
    kv_heads: int
    key_dim: int
    """Elements of a key, one head."""
    value_dim: int
    window: int | None = None
    """Tokens that a sliding (or chunked) layer sees; absent: all."""

    @property
    def elements_per_token(self) -> int:
        """Elements a token takes, over all these layers."""
        return self.layers * self.kv_heads * (self.key_dim + self.value_dim)


@dataclass(frozen=True, slots=True)
class LatentCache:
    """Multi-head latent attention: one compressed latent a token, and what goes with it, shared by all heads."""

    layers: int
    latent_dim: int
    """`kv_lora_rank`."""
    rope_dim: int
    """The part of a key that carries positions, kept beside the latent."""
    indexer_dim: int = 0
    """Key of a sparse-attention indexer (DeepSeek V3.2, GLM 5), kept beside both; 0 where there is none."""

    @property
    def elements_per_token(self) -> int:
        """Elements of latent and positions a token takes, over all these layers, without the indexer's."""
        return self.layers * (self.latent_dim + self.rope_dim)


@dataclass(frozen=True, slots=True)
class StateCache:
    """Linear attention and state-space layers: a state a sequence, whatever its length."""

    layers: int
    convolution_elements: int
    """Of one layer: the last inputs of the short convolution, in the model's dtype."""
    recurrent_elements: int
    """Of one layer: the state itself."""
    recurrent_float32: bool = True
    """Whether transformers keeps the state in float32 whatever the model's dtype; else in the model's own."""


@dataclass(frozen=True, slots=True)
class CrossAttentionCache:
    """Keys and values of the encoder's output, made once a sequence."""

    layers: int
    kv_heads: int
    head_dim: int
    source_tokens: int | None = None
    """Encoder positions where they are fixed (Whisper: 1,500); absent: the prompt's."""


@dataclass(frozen=True, slots=True)
class CompressedCache:
    """Attention over entries that each stand for several tokens (DeepSeek V4), beside a sliding window."""

    layers: int
    every: int
    """Tokens to one entry."""
    entry_dim: int
    """Elements of an entry, which is key and value at once."""
    indexer_dim: int = 0
    """Elements of the indexer's entry beside it; 0 where there is none."""

    @property
    def elements_per_entry(self) -> int:
        """Elements an entry takes, over all these layers."""
        return self.layers * (self.entry_dim + self.indexer_dim)


Cache = AttentionCache | LatentCache | StateCache | CrossAttentionCache | CompressedCache


@dataclass(frozen=True, slots=True)
class Experts:
    """The mixture of experts in a layer."""

    layers: int
    """Layers that have it."""
    count: int
    """Routed experts in each such layer, all of them resident."""
    per_token: int
    """Experts a token goes through."""
    intermediate: int
    """Inner width of one routed expert."""
    shared_intermediate: int = 0
    """Inner width of the experts that every token goes through, all together; 0 where there are none."""


@dataclass(frozen=True, slots=True)
class Rotary:
    """Rotary position embedding."""

    dim: int
    """Dimensions of a head that are rotated."""
    original_positions: int | None = None
    """Positions before scaling (`original_max_position_embeddings`), where the config names them."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """Everything about a model's shape that a memory figure depends on."""

    model_type: str
    """transformers' name of the family: `llama`."""
    class_name: str
    """The first of the config's `architectures`, or what its family implies: `LlamaForCausalLM`."""
    weights: tuple[Weight, ...]
    """Every tensor of the checkpoint, tied ones once."""
    caches: tuple[Cache, ...]
    """What a sequence keeps between steps, one entry a kind of layer; empty for a model that does not generate."""
    layers: int
    """Layers of the stack that generates (or of the only stack)."""
    hidden: int
    intermediate: int
    """Inner width of a dense MLP; of the widest, where layers differ."""
    gated: bool
    """Whether the MLP has a gate beside its up projection."""
    vocabulary: int
    """Rows of the embedding table, padding of the checkpoint included."""
    heads: int
    """Query heads of a layer, the most where layers differ."""
    head_dim: int
    tied: bool
    """Whether head and embeddings are one tensor."""
    generates: bool
    decodes_apart: bool = False
    """True where prompt and new tokens are two sequences, as in an encoder-decoder of text (not in Whisper)."""
    position_limit: int | None = None
    """The longest sequence that its positions allow; absent where they set no limit."""
    experts: Experts | None = None
    rotary: Rotary | None = None
    activation: str = ""
    """The MLP's activation as the config names it (`silu`, `gelu_new`); empty where it names none."""
    dtype: str = "F32"
    """The checkpoint's dtype as its config names it (`BF16`); `F32` where it names none."""
    notes: tuple[str, ...] = ()
    """What was taken from a family's defaults or left out, in words."""

    @property
    def parameters(self) -> int:
        """Elements of all parameters, tied ones once."""
        return sum(one.elements * one.copies for one in self.weights if one.parameter)

    @property
    def stored_elements(self) -> int:
        """Elements of all tensors of the checkpoint, buffers included: what the hub shows as the size of the model."""
        return sum(one.elements * one.copies for one in self.weights)

    @property
    def sliding_window(self) -> int | None:
        """Tokens that a sliding layer sees; absent where no layer slides."""
        windows = [one.window for one in self.caches if isinstance(one, AttentionCache) and one.window is not None]
        return max(windows, default=None)
