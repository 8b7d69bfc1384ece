"""What ran, and where: the model, the engine, the device and all that is installed around them."""

from __future__ import annotations

import msgspec

from gpufit.profile.base import Count, Record, Size


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
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    """Environment variables that change memory behaviour, where set."""
    host: str = ""
    """Operating system and processor."""
    flags: tuple[str, ...] = ()
    """What makes this run less than clean, in words: a shared card, MIG, retries of the allocator."""
