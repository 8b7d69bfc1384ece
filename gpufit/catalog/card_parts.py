"""The figures of a card, group by group, each with its unit. Frozen; a missing figure is None, never 0."""

from __future__ import annotations

from typing import Annotated

import msgspec

from gpufit.catalog import dtypes
from gpufit.catalog.row import Count, Rate, Row, Texts, Words
from gpufit.units import GIB, MIB


class DriverTotal(Row, frozen=True, kw_only=True):
    """Another total that the driver was seen to report."""

    mib: Count
    """MiB."""
    when: Words
    """Where that was so: a driver branch, an ECC mode."""


class CardMemory(Row, frozen=True, kw_only=True):
    """A card's memory, as sold and as software sees it; totals are for one device."""

    kind: Words | None = None
    """`HBM3`, `GDDR6`, ..."""
    nominal_gb: Count
    """The size in the card's name, in the seller's GB: neither 10**9 nor 2**30 bytes reliably."""
    nominal_gb_other: tuple[Count, ...] = ()
    """Sizes under which others list the same card."""
    bandwidth_gb_s: Rate | None = None
    """Peak memory bandwidth, GB/s."""
    driver_total_mib: Count | None = None
    """What nvidia-smi or amd-smi shows as total, MiB."""
    driver_totals_other: tuple[DriverTotal, ...] = ()
    """The same under another driver or ECC mode."""
    torch_totals_mib: tuple[Count, ...] = ()
    """Every total seen as a whole number of MiB, ascending."""
    torch_totals_gib: tuple[Rate, ...] = ()
    """Every total seen in GiB with two decimals, as out-of-memory texts print it, ascending."""
    torch_basis: Words | None = None
    """What reported those totals."""
    planning_torch_gib: Rate | None = None
    """The total to size with: the lowest seen for this card as it is normally set up, GiB."""
    planning_note: Words | None = None
    """Why that one."""
    windows_note: Words | None = None
    """The total under Windows, which differs; all else here is Linux."""
    note: Words | None = None
    """What else there is to know about these totals."""

    @property
    def known_totals_bytes(self) -> tuple[int, ...]:
        """Every total that the driver or torch was seen to report for this card, in bytes, ascending."""
        mib = [self.driver_total_mib or 0, *(other.mib for other in self.driver_totals_other), *self.torch_totals_mib]
        gib = [self.planning_torch_gib or 0.0, *self.torch_totals_gib]
        found = {int(total * MIB) for total in mib} | {int(total * GIB) for total in gib}
        return tuple(sorted(found - {0}))


class Peaks(Row, frozen=True, kw_only=True):
    """Published peak rates of the matrix units: dense, FP32 accumulate, TFLOPS (int8: TOPS)."""

    fp32: Rate | None = None
    """Plain FP32, TFLOPS."""
    tf32: Rate | None = None
    """TF32, TFLOPS."""
    bf16: Rate | None = None
    """bfloat16, TFLOPS."""
    fp16: Rate | None = None
    """float16, TFLOPS."""
    fp8: Rate | None = None
    """8-bit floating point of any kind, TFLOPS."""
    fp4: Rate | None = None
    """4-bit floating point of any kind, TFLOPS."""
    int8: Rate | None = None
    """8-bit integers, TOPS."""
    unsupported: tuple[dtypes.Family, ...] = ()
    """Number formats that the hardware lacks."""
    measured_bf16: Rate | None = None
    """The best large bf16 matrix product measured on the card, TFLOPS: peaks are not speeds."""
    note: Words | None = None
    """What the peaks assume."""


class Estimate(Row, frozen=True, kw_only=True):
    """A peak that no source states, computed from others and kept apart from them."""

    value: Rate
    """TFLOPS (int8: TOPS)."""
    how: Words
    """The computation."""


class ContextFigure(Row, frozen=True, kw_only=True):
    """What a process holds on the card before its first tensor: driver context and runtime."""

    mib: Count | None = None
    """MiB; None where no report is close enough."""
    range_mib: tuple[Count, Count] | None = None
    """Lowest and highest report that applies, MiB."""
    basis: Words | None = None
    """Whose figure it is: this card's, or the nearest card's of the architecture."""
    note: Words | None = None
    """How it was read."""
    source: Texts = ()
    """Links."""


class HostLink(Row, frozen=True, kw_only=True):
    """The way to the host's memory."""

    kind: Words
    """`PCIe`, or NVLink-C2C on superchips."""
    gen: Count | None = None
    """PCIe generation."""
    lanes: Count | None = None
    """PCIe lanes."""
    gb_s: Rate | None = None
    """GB/s, both directions together."""
    note: Words | None = None
    """Where sources disagree."""


class PeerLink(Row, frozen=True, kw_only=True):
    """The way to other cards, apart from PCIe."""

    kind: Words
    """`NVLink4 (NVSwitch)`, `none (PCIe only)`, ..."""
    gb_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """GB/s a card, both directions together; 0 where there is no such link."""
    optional: bool = False
    """True for a bridge that a machine may lack."""
    note: Words | None = None
    """What is not certain about it."""


class Mig(Row, frozen=True, kw_only=True):
    """Whether the card can be split into hardware slices."""

    supported: bool
    """NVIDIA MIG."""
    max_instances: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Most slices at once."""
    profiles: Texts = ()
    """Names of the slices: `3g.40gb` has three compute slices and about 40 GB."""
    note: Words | None = None
    """What was not looked into."""


class Machine(Row, frozen=True, kw_only=True):
    """The machine that the card stands in: what shares every layer of a model has to stand in one."""

    cards: Count
    """The most of the card in one machine."""
    assumed: bool = False
    """True where no source says it of this very card."""
    note: Words | None = None
    """Which other machines there are."""


class Software(Row, frozen=True, kw_only=True):
    """The oldest software that runs on the card."""

    arch: Words | None = None
    """Build target: `sm_90`, `gfx942`."""
    min_cuda: Words | None = None
    """Oldest CUDA toolkit that targets it."""
    max_cuda: Words | None = None
    """Newest CUDA that still does."""
    cuda_note: Words | None = None
    """What those limits mean in practice."""
    torch_wheels: Words | None = None
    """Which torch wheels carry it."""


class Sources(Row, frozen=True, kw_only=True):
    """Where each group of a card's figures comes from: links, or an honest word where none was kept."""

    device_names: Texts = ()
    """Also the table name."""
    pci_ids: Texts = ()
    """The PCI ids."""
    form_factor: Texts = ()
    """The form factor."""
    architecture: Texts = ()
    """The architecture."""
    compute_capability: Texts = ()
    """Or the gfx target."""
    nominal: Texts = ()
    """Nominal size and kind of memory."""
    driver_total: Texts = ()
    """Every total that the driver reports."""
    torch_total: Texts = ()
    """Every total that torch sees."""
    bandwidth: Texts = ()
    """Memory bandwidth."""
    peak_tflops: Texts = ()
    """Published peaks and what is unsupported."""
    measured_bf16: Texts = ()
    """The measured matrix product."""
    host_link: Texts = ()
    """The host link."""
    peer_link: Texts = ()
    """The peer link, or its absence."""
    machine: Texts = ()
    """Cards in a machine."""
    tdp: Texts = ()
    """Board power."""
    mig: Texts = ()
    """MIG, or its absence."""
    ecc: Texts = ()
    """What ECC does."""
    software: Texts = ()
    """Software limits."""
