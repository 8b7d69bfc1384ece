"""The profile and its parts: frozen records, all sizes in bytes, all counts in tokens or sequences.

A profile holds what one model did on one device with one engine. Every number in it carries its evidence,
either its own or that of the record around it. Nothing here computes more than sums.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

import msgspec

SCHEMA_VERSION = 2
"""Version of the profile file. A reader refuses a higher one and still reads every lower one."""


Size = Annotated[int, msgspec.Meta(ge=0)]
"""A size in bytes, or a count: a whole number, never negative."""
Count = Annotated[int, msgspec.Meta(ge=1)]
"""A count of at least one."""


class Evidence(enum.StrEnum):
    """Where a number comes from, strongest first."""

    MEASURED = "measured"
    """Read from this device during this run."""
    IMPORTED = "imported"
    """Printed by a serving engine in its own log."""
    SIMULATED = "simulated"
    """From the same run on fake tensors."""
    COMPUTED = "computed"
    """Arithmetic over a config and file headers."""
    SCALED = "scaled"
    """A measured number carried beyond where it was seen, by a stated rule."""
    ASSUMED = "assumed"
    """A default or a catalog constant."""

    @property
    def weakness(self) -> int:
        """0 for the strongest evidence, growing as it weakens."""
        return _WEAKNESS[self]


_WEAKNESS = {evidence: rank for rank, evidence in enumerate(Evidence)}


def weakest(evidence: Iterable[Evidence]) -> Evidence:
    """The evidence of a total: the weakest among its parts. Raises ValueError when there are none."""
    return max(evidence, key=lambda one: one.weakness)


class Phase(enum.StrEnum):
    """A stretch of a run that has its own peak."""

    LOAD = "load"
    PREFILL = "prefill"
    DECODE = "decode"
    FORWARD = "forward"
    """The only phase, beside load, of a model that does not generate."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=False):
    """Base of every stored record: frozen, keyword-only, and strict about its keys."""


class Parts(Record, frozen=True, kw_only=True):
    """What makes up `allocated` at the peak of a phase; the parts add up to it to the byte."""

    weights_bytes: Size = 0
    """Parameter storages, tied weights once."""
    buffers_bytes: Size = 0
    """Registered buffers and other tensors that modules keep (rotary tables, masks, quantisation state)."""
    kv_cache_bytes: Size = 0
    """Every storage the cache object holds, counted once and whole, views included."""
    inputs_bytes: Size = 0
    """What the caller passes in: token ids, masks."""
    outputs_bytes: Size = 0
    """What the caller keeps: logits, hidden states, generated ids."""
    activations_bytes: Size = 0
    """Tensors that a module returned and that outlive it."""
    temporaries_bytes: Size = 0
    """Everything else alive at the peak: workspaces, upcasts, scores, the copy of a growing cache."""
    rounding_bytes: Size = 0
    """What the allocator added by rounding sizes up."""
    unexplained_bytes: Size = 0
    """What no rule above accounts for; shown, never folded away, never negative."""

    NAMES: ClassVar[tuple[str, ...]]

    @property
    def total_bytes(self) -> int:
        """The sum of all parts: `allocated`."""
        return sum(msgspec.structs.astuple(self))


Parts.NAMES = tuple(Parts.__struct_fields__)


class DeviceReading(Record, frozen=True, kw_only=True):
    """One reading of memory use, beside the source that gave it."""

    source: str
    """`torch.cuda.memory_stats`, `nvml.process`, `nvml.device`, `mem_get_info`, `psutil`, ..."""
    quantity: str
    """`requested`, `allocated`, `reserved`, `process`, `device_used`, `rss_anon`, `rss_file`."""
    size_bytes: Size
    """The reading, in bytes."""


class Moment(Record, frozen=True, kw_only=True):
    """The highest moment of a phase at one place of the model."""

    site: str
    """The place: `model.layers.0-29.mlp, after up_proj` is the MLP's own work that follows its up_proj, in whichever
    of thirty like layers it was highest; END_OF_PHASE is what is left when the phase has ended."""
    parts: Parts


END_OF_PHASE = "end of phase"
"""The site of the moment at which a phase ends: what stays."""

ELSEWHERE = "elsewhere"
"""In a memory model, the site of the highest moment among sites that not every cell has."""

FIRST_STEP = "first step: "
"""How sites of the first decode step begin. It still holds what prefill left, later steps do not, so its moments grow
with the prompt alone."""


class NamedSize(Record, frozen=True, kw_only=True):
    """How many bytes go by one name."""

    name: str
    size_bytes: Size


class PhasePeak(Record, frozen=True, kw_only=True):
    """The highest moment of one phase of one cell."""

    phase: Phase
    parts: Parts
    allocated_bytes: Size
    """What the allocator had handed out at the peak, rounding included."""
    evidence: Evidence
    site: str = ""
    """Where in the model the peak lies; empty where nobody looked (load, runs of older versions)."""
    moments: tuple[Moment, ...] = ()
    """The highest moment at every site, the peak's own included; which of them is the peak depends on the shape."""
    moments_left_out: Size = 0
    """Moments that a finished profile dropped, since they are the highest at no shape."""
    cached_tokens: Size = 0
    """Tokens a sequence held in its cache when the phase ended (0 for load and forward)."""
    readings: tuple[DeviceReading, ...] = ()
    """What the device's own counters said over this phase; of a simulation, what the allocator's rules make of it."""
    largest_temporaries: tuple[NamedSize, ...] = ()
    """The operations that made most of the temporaries alive at the peak, largest first; empty where the recorder
    cannot tell (cards, older profiles)."""


class Measured(Record, frozen=True, kw_only=True, tag_field="type", tag="measured"):
    """A cell that ran to its end."""

    phases: tuple[PhasePeak, ...]
    inputs_completed: Size
    """Sequences that ran to the end."""
    wall_seconds: float | None = None
    """Wall time of the untracked run, prefill and all decode steps; absent where nothing ran (simulated, computed)."""
    time_to_first_token_seconds: float | None = None
    """Wall time of the untracked prefill; absent for a model that does not generate, and where nothing ran."""


class OutOfMemory(Record, frozen=True, kw_only=True, tag_field="type", tag="out_of_memory"):
    """A cell that ran into the memory limit."""

    phase: Phase | None
    """The phase it struck in; absent when the system killed the process, which then could not say."""
    message: str
    """The error as the library worded it, first line."""
    asked_bytes: Size | None = None
    """The allocation that failed, where the error names it."""
    limit_bytes: Size | None = None
    """The limit it ran into, where known."""


class Failed(Record, frozen=True, kw_only=True, tag_field="type", tag="failed"):
    """A cell that ended in an error other than memory."""

    error: str


class Skipped(Record, frozen=True, kw_only=True, tag_field="type", tag="skipped"):
    """A cell that was not run, and why."""

    why: str


Outcome = Measured | OutOfMemory | Failed | Skipped


class Cell(Record, frozen=True, kw_only=True):
    """One point of the grid and how it ended."""

    context_tokens: Count
    """Prompt length of each sequence."""
    new_tokens: Size
    """Tokens generated for each sequence, the one that prefill yields included (0 for encoders)."""
    concurrency: Count
    """Sequences at once."""
    outcome: Outcome

    @property
    def key(self) -> tuple[int, int, int]:
        """What identifies the cell within a profile."""
        return (self.context_tokens, self.new_tokens, self.concurrency)


class DtypeShare(Record, frozen=True, kw_only=True):
    """How many bytes stand in one dtype."""

    dtype: str
    size_bytes: Size
    tensors: Size


class ComputeDtype(Record, frozen=True, kw_only=True):
    """The dtypes that one family of operations really ran in."""

    family: str
    """`matmul`, `attention`, `norm`, `softmax`, `rotary`, `embedding`, `logits`, `other`."""
    dtypes: tuple[str, ...]
    """Result dtypes seen, most frequent first."""
    calls: Size
    inputs: tuple[str, ...] = ()
    """Dtypes of the numbers that went in, most frequent first; indices and masks are not among them."""


class Quantization(Record, frozen=True, kw_only=True):
    """The quantisation method named by the model's own files, with its parameters as text."""

    method: str
    parameters: dict[str, str] = {}


class Precision(Record, frozen=True, kw_only=True):
    """The four precisions, each as found."""

    stored: tuple[DtypeShare, ...]
    """Dtypes in the model's files."""
    resident: tuple[DtypeShare, ...]
    """Dtypes of the weights in memory after load."""
    compute: tuple[ComputeDtype, ...]
    """Dtypes of the operations, observed while they ran."""
    kv: tuple[DtypeShare, ...]
    """Dtypes of the cache; empty for a model without one."""
    quantization: Quantization | None = None
    findings: tuple[str, ...] = ()
    """What differs between the columns, in words."""


class ModelInfo(Record, frozen=True, kw_only=True):
    """Which model it was, precisely enough to tell two runs apart."""

    name: str
    source: str
    """The directory or file it was loaded from, as the user gave it."""
    fingerprint: str
    """SHA-256 over names, sizes and the first and last MiB of its config and weight files."""
    architecture: str
    """The class that ran, `LlamaForCausalLM`."""
    model_type: str
    """transformers' name of the family, `llama`."""
    parameters: Size
    """Elements of all parameters, tied ones once."""
    generates: bool
    """False for an encoder: one `forward`, no cache."""
    decodes_apart: bool = False
    """True for an encoder-decoder: prompt and new tokens are two sequences, each with positions of its own."""
    position_limit: Count | None = None
    """The longest sequence its position scheme allows; absent where it has no limit."""
    sliding_window: Count | None = None
    """Tokens a sliding layer sees; absent where no layer slides."""
    chunk_tokens: Count | None = None
    """Tokens a layer works on at once, padding the last piece (Mamba 2, gated delta net); absent where none does."""
    revision: str | None = None


class Engine(Record, frozen=True, kw_only=True):
    """What ran the model. A memory figure holds for this engine only."""

    name: str
    version: str
    attention: str
    """Attention implementation that ran: `sdpa`, `eager`, `flash_attention_2`; of a simulated run the kernel assumed,
    `efficient` and `cpu` (what torch's CPU build runs) among them."""


class DeviceInfo(Record, frozen=True, kw_only=True):
    """The device that ran it."""

    kind: str
    """`cuda`, `rocm`, `cpu`, or `none`: fake tensors or arithmetic, on no device."""
    name: str
    total_bytes: Size
    """What torch sees on a card; physical memory of the host for `cpu`; 0 for `none`."""
    used_before_bytes: Size | None = None
    """In use by others before the run."""
    pci_id: str | None = None
    """`10de:2335`: vendor and device, lower case."""
    compute_capability: str | None = None
    driver: str | None = None
    runtime: str | None = None
    """CUDA or HIP version torch was built with."""
    context_bytes: Size | None = None
    """Driver context and loaded kernels, measured; absent on CPU."""


class Environment(Record, frozen=True, kw_only=True):
    """Where it ran."""

    device: DeviceInfo
    versions: dict[str, str]
    """Python and every library that shapes the result."""
    settings: dict[str, str] = {}
    """Environment variables that change memory behaviour, where set."""
    host: str = ""
    """Operating system and processor."""
    flags: tuple[str, ...] = ()
    """What makes this run less than clean, in words: a shared card, MIG, retries of the allocator."""


class Workload(Record, frozen=True, kw_only=True):
    """What was asked for."""

    contexts_tokens: tuple[int, ...]
    concurrencies: tuple[int, ...]
    adaptive: bool = False
    """Whether only as many cells were to be run as the memory model needs."""
    new_tokens: Size
    seed: int
    dtype_requested: str
    """`auto` or a dtype: how the weights were asked to be loaded."""
    logits_kept: str
    """`last`: logits of the last position, as generate() keeps them; `all`: of every position."""
    images: Size = 0
    """Images in each sequence; their tokens are part of its context."""
    image_size: tuple[Count, Count] | None = None
    """Width and height in pixels, as the model saw them."""
    image_tokens: Size = 0
    """Tokens of each context that its images take."""
    cache_implementation: str = "dynamic"
    """How the KV cache was kept, in transformers' words: `dynamic` (what the model builds itself), `static` (all
    tokens of the cell from the start), `quantized`, `offloaded`."""
    kv_cache_dtype: str = "auto"
    """What a quantised cache was asked to hold: `auto` or `fp8`."""
    quantization: str | None = None
    """What the weights were asked to be quantised with at load; absent: they were left as the files have them."""
    compute_dtype: str | None = None
    """The dtype of the autocast that the run was wrapped in; absent: there was none."""
    memory_limit_bytes: Size | None = None
    """The ceiling put on the device's memory for this run; absent where there was none."""
    tensor_parallel_size: Count = 1
    """Cards that share the model; every size is that of one of them."""
    expert_parallel: bool = False
    """Whether experts were spread over these cards whole."""


TermName = Literal[
    "constant",
    "per_sequence",
    "per_position",
    "per_token",
    "per_past_token",
    "per_prompt_token",
    "per_reserved_token",
    "per_token_in_window",
    "per_token_in_chunks",
    "per_token_squared",
    "mask",
    "per_token_beyond_window",
    "per_token_squared_beyond_window",
    "mask_beyond_window",
    "tile",
    "tile_row",
]
"""What a part can grow by; `memory.terms` says how many units of each a shape has."""


class Coefficient(Record, frozen=True, kw_only=True):
    """One physical term of one part: bytes for each unit of the term."""

    term: TermName
    bytes_per_unit: Annotated[float, msgspec.Meta(ge=0, le=1e18)]
    """Never negative."""


class PartModel(Record, frozen=True, kw_only=True):
    """How one part grows."""

    part: str
    """A field of Parts."""
    coefficients: tuple[Coefficient, ...]


class MomentModel(Record, frozen=True, kw_only=True):
    """How the moment at one site grows."""

    site: str
    parts: tuple[PartModel, ...]


class PhaseModel(Record, frozen=True, kw_only=True):
    """How one phase grows, and how well that was tested. What it needs is what its highest moment needs."""

    phase: Phase
    moments: tuple[MomentModel, ...]
    """The moments that are the highest at some shape; END_OF_PHASE among them, whether it ever is or not."""
    alternatives: tuple[tuple[PartModel, ...], ...] = ()
    """The same cells fitted with terms in tokens squared which they do not rule out: the upper bound is never below
    any of them."""
    fitted_cells: int
    held_out_cells: int
    worst_fitted_error: float
    """Largest |predicted - measured| / measured of `allocated` over the cells that were fitted."""
    worst_held_out_error: float | None
    """The same over cells that were not; absent when too few cells were measured to hold any out."""
    worst_held_out_growth_error: float | None = None
    """The same as a share of what grew in the cell (all but weights and buffers)."""
    worst_miss_bytes: Size
    """Largest |predicted - measured| over all cells, fitted and held out, of `allocated` and of every moment that the
    model is made of, these as if they were the cell's peak."""
    largest_growth_bytes: Size
    """What grew (`allocated` less weights and buffers) in the cell where it was largest: the reach of the fit."""


class MemoryModel(Record, frozen=True, kw_only=True):
    """The growth of every phase, with the domain it was seen in."""

    phases: tuple[PhaseModel, ...]
    max_cached_tokens: Count
    """Longest sequence seen, prompt and new tokens."""
    max_new_tokens: Count | None = None
    """Most new tokens of a sequence seen; absent in profiles of version 1 and where none are generated."""
    min_context_tokens: Count = 1
    """Shortest prompt seen."""
    max_concurrency: Count
    max_total_tokens: Count
    """Largest concurrency x sequence length seen in one cell."""
    untested: bool = False
    """True for a model made of an engine's rules, which no run has tested: `memory.predict` says how far it is
    trusted."""


class Shard(Record, frozen=True, kw_only=True):
    """What one of several cards holds that share every layer of a model (tensor parallel), as its engine divides it."""

    ranks: Annotated[int, msgspec.Meta(ge=2)]
    """Cards that share it."""
    weights_bytes: Size = 0
    """Weights on one of them."""
    kv_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    """The share of the KV cache that one of them holds: KV heads are divided, a latent is not."""
    refusal: str = ""
    """Why the engine cannot divide it so; empty where it can."""
    layout: Layout | None = None
    """How what one of them holds lies over the layers, which may be spread over further cards; absent in older
    profiles."""


class Layout(Record, frozen=True, kw_only=True):
    """How a model's weights lie over layers and cards, in bytes as they are in memory: what a plan needs that divides
    the model, or holds it smaller."""

    layers: Count
    largest_layer_bytes: Size
    first_bytes: Size
    """What stands before the layers: embeddings, towers for images."""
    last_bytes: Size
    """What stands behind them: the head (embeddings that are the head stand on both sides), the last norm."""
    linear_bytes: Size
    """Matrices of linear layers and experts in 16 bits or more: what quantisation makes smaller."""
    linear_elements: Size
    largest_linear_elements: Size
    """Of a single matrix, which some kernels dequantise whole."""
    largest_layer_rest_bytes: Size | None = None
    """The most that a layer holds beside those matrices; absent in older profiles, as what follows."""
    largest_layer_linear_elements: Size | None = None
    """The most elements of those matrices in a layer."""
    shards: tuple[Shard, ...] = ()


class Profile(Record, frozen=True, kw_only=True):
    """One model on one device with one engine: the whole result of a run, and all that later steps need."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str
    created_at: str
    """ISO 8601, UTC."""
    evidence: Evidence
    model: ModelInfo
    engine: Engine
    precision: Precision
    environment: Environment
    workload: Workload
    load: PhasePeak
    cells: tuple[Cell, ...]
    memory_model: MemoryModel | None = None
    """Absent until enough cells are measured."""
    complete: bool = False
    """True once every cell of the workload has an outcome."""
    notes: tuple[str, ...] = ()
    """What a reader should know about this run, in words."""
    layout: Layout | None = None
    """Absent in older profiles, and where no shape rule knows the architecture."""

    @property
    def measured_cells(self) -> tuple[Cell, ...]:
        """The cells that ran to their end."""
        return tuple(cell for cell in self.cells if isinstance(cell.outcome, Measured))
