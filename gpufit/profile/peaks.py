"""The peak of a phase: what was in memory at its highest moment, part by part, in bytes."""

from __future__ import annotations

import enum
from typing import ClassVar

import msgspec

from gpufit.profile.base import Record, Size
from gpufit.profile.evidence import Evidence


class Phase(enum.StrEnum):
    """A stretch of a run that has its own peak."""

    LOAD = "load"
    PREFILL = "prefill"
    DECODE = "decode"
    FORWARD = "forward"
    """The only phase, beside load, of a model that does not generate."""


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
