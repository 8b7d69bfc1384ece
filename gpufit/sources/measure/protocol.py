"""What passes between the supervisor and its worker, each a JSON line.

The supervisor sends a Job; the worker reads the model's config and answers Planned; the supervisor sends a Grid
(what a model can take decides it); the worker loads, answers Loaded, then CellStarted and CellEnded by turns, and Ready
at the grid's end. Where the job has a prompt, Prepared and Made come between a cell's start and its end. The supervisor
sends a further Grid, or closes the worker's standard input, which ends it at once, whatever it is doing.
"""

from __future__ import annotations

from gpufit.profile.base import Count, Record, Size
from gpufit.profile.cells import Cell
from gpufit.profile.environment import Engine, Environment, ModelInfo
from gpufit.profile.peaks import PhasePeak
from gpufit.profile.precision import DtypeShare, Precision


class CellKey(Record, frozen=True, kw_only=True):
    """One point of the grid, still to be run."""

    context_tokens: Count
    new_tokens: Size
    concurrency: Count


class Simulation(Record, frozen=True, kw_only=True):
    """How a run on fake tensors differs from one on a device."""

    kernel: str = "sdpa"
    """The attention kernel assumed: a name of `kernels.KERNELS`."""
    tensor_parallel_size: Count = 1
    """Ranks that the model is sharded over; one of them is run."""
    expert_parallel: bool = False
    """Whether experts are spread over these ranks whole, instead of each being split."""
    full_depth: bool = False
    """Run every layer, instead of a few of each kind."""


class Prompt(Record, frozen=True, kw_only=True):
    """A text that a model is to read, once, in place of random token ids; what it makes of it is told."""

    text: str
    tokenizer_path: str
    """Folder that the model's tokenizer is read from."""
    gguf_file: str | None
    """The file in it that holds the tokenizer, where it is a GGUF file."""


class Job(Record, frozen=True, kw_only=True):
    """All that a worker needs to know."""

    model_path: str
    gguf_file: str | None
    model_name: str
    model_source: str
    fingerprint: str
    revision: str | None
    dtype: str
    """`auto` or a torch dtype's name."""
    attention: str | None
    """Attention implementation to ask for; None leaves it to transformers."""
    device: str
    """`auto`, `cpu`, `cuda`, `cuda:1`."""
    seed: int
    logits_kept: str
    trust_remote_code: bool
    stored: tuple[DtypeShare, ...]
    """Dtypes found in the model's files."""
    notes: tuple[str, ...] = ()
    """What a reader of the profile should know about how the model is loaded, in words."""
    images: Size | None = None
    """Images in each sequence; None: one, where the model takes images."""
    image_size: tuple[Count, Count] | None = None
    """Width and height in pixels; None: the model's own, or the default where it takes any."""
    cache_implementation: str = "dynamic"
    """`dynamic`, `static`, `quantized`, `offloaded`."""
    kv_cache_dtype: str = "auto"
    """`auto` or `fp8`."""
    quantization: str | None = None
    """A name of quantization.METHODS, applied while loading; None leaves the weights as the files have them."""
    compute_dtype: str | None = None
    """The dtype of autocast around every run; None runs without autocast."""
    memory_limit_bytes: Size | None = None
    """A ceiling below the device's own memory."""
    limit_name: str = "--memory-limit"
    """What asked for it, as errors name it."""
    simulation: Simulation | None = None
    """For a run on fake tensors; None: on the device."""
    prompt: Prompt | None = None
    """A text to read in each cell; None: random token ids."""


class Grid(Record, frozen=True, kw_only=True):
    """The cells to run, in order."""

    cells: tuple[CellKey, ...]


class Progress(Record, frozen=True, kw_only=True, tag_field="message", tag="progress"):
    """What the worker is about to do, in words."""

    text: str


class Planned(Record, frozen=True, kw_only=True, tag_field="message", tag="planned"):
    """What the model is, known before a weight is read."""

    architecture: str
    generates: bool
    position_limit: int | None
    decodes_apart: bool = False
    """Whether new tokens have positions of their own (an encoder-decoder)."""
    images: Size = 0
    """Images in each sequence."""
    image_size: tuple[Count, Count] | None = None
    image_tokens: Size = 0
    """Tokens of each prompt that its images take."""
    context_steps: tuple[Count, ...] = ()
    """Contexts at which memory may begin to grow otherwise: a sliding window, a chunk."""


class Loaded(Record, frozen=True, kw_only=True, tag_field="message", tag="loaded"):
    """The model is in memory and was looked at."""

    model: ModelInfo
    engine: Engine
    precision: Precision
    environment: Environment
    load: PhasePeak


class CellStarted(Record, frozen=True, kw_only=True, tag_field="message", tag="cell_started"):
    """A cell begins: should the worker die now, this is the cell it died in."""

    key: CellKey


class CellEnded(Record, frozen=True, kw_only=True, tag_field="message", tag="cell_ended"):
    """A cell has its outcome."""

    cell: Cell


class Refused(Record, frozen=True, kw_only=True, tag_field="message", tag="refused"):
    """The job cannot be done, and the sentence that tells the user why."""

    reason: str
    exit_code: int
    """2 usage, 3 unreadable input, 4 measurement failed."""
    too_large: bool = False
    """Whether the model could not be loaded for want of memory."""


class Prepared(Record, frozen=True, kw_only=True, tag_field="message", tag="prepared"):
    """A job's prompt is ready to be read."""

    tokens: Size
    """Ids that the text became; 0 where random ids stand for it."""
    how: str
    """By what it was done, in words."""


class Made(Record, frozen=True, kw_only=True, tag_field="message", tag="made"):
    """What the model made of a job's prompt, in a run of its own."""

    token_ids: tuple[int, ...]
    """Generated for one sequence; empty for a model that does not generate."""
    text: str | None
    """The same as text, where there is a tokenizer."""
    output_shape: tuple[int, ...]
    """Of the last thing that was kept of the outputs: logits, hidden states."""
    output_dtype: str
    finite: bool
    """Whether every number among the outputs kept is finite."""


class Ready(Record, frozen=True, kw_only=True, tag_field="message", tag="ready"):
    """Every cell of the grid has its outcome; the loaded model waits for more."""


class Spent(Record, frozen=True, kw_only=True, tag_field="message", tag="spent"):
    """The worker ends after an error: the cells that are left deserve a fresh process."""


Message = Progress | Planned | Loaded | CellStarted | CellEnded | Prepared | Made | Refused | Ready | Spent
