"""Carrying a prediction to another card: what belongs to the device is replaced, each figure with its source.

    need = context + other + allocated          (and, in the upper bound, an allowance for fragmentation)

Capacity, driver context and library workspaces belong to the card; weights, cache, inputs and outputs belong to
the model and stay; what kernels take as scratch belongs to both, so it stays as a point and widens the interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from gpufit.catalog.record import Card
from gpufit.memory.engines.base import Amount, exactly
from gpufit.memory.predict import PhasePrediction
from gpufit.profile.cells import Measured
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.evidence import Evidence, weakest
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.record import Profile
from gpufit.units import MIB

CUBLAS_WORKSPACE_BYTES = 8_519_680
"""cuBLAS before Hopper, a handle and stream: `:4096:2:16:8`. https://github.com/pytorch/pytorch/issues/91564"""

CUBLAS_WORKSPACE_HOPPER_BYTES = 32 * MIB
"""cuBLAS from compute capability 9.0 on. https://github.com/pytorch/pytorch/issues/175344"""

ROCM_WORKSPACE_BYTES = 128 * MIB
"""rocBLAS' larger setting; hipBLASLt takes 76 to 80 MiB. https://github.com/pytorch/pytorch/issues/145130"""

LOADED_KERNELS_BYTES = 99_000_000
"""Kernels loaded at first use, on top of the bare context: an A100 process held 434 MB outside the allocator
after load and 533 MB after a forward. https://github.com/huggingface/optimum-benchmark, examples/running-llamas"""

LOADED_KERNELS_UPPER_BYTES = 166_000_000
"""The largest such step seen: 543 to 709 MB on an H100 with FP8 kernels (same source)."""

FALLBACK_CONTEXT_BYTES = 612 * MIB
"""For a card whose context nobody has reported: the largest reported for any card, B200's.
https://github.com/unslothai/unsloth/pull/8669"""

FALLBACK_CONTEXT_UPPER_BYTES = 942 * MIB
"""The same for the upper bound: the highest report for any card, an A100 that loads every kernel at the start.
https://github.com/stas00/ml-engineering, training/performance"""

FRAGMENTATION_ALLOWANCE = 0.02
"""Reserved over requested bytes at an 8B model's peak, in a replay of the caching allocator's documented rules
(1 x 2048 tokens; 1.2 % to 2.0 % where the allocator did not hoard what it had freed). Upper bound only."""

SCRATCH_UNCERTAINTY = 0.30
"""Temporaries and activations seen on a CPU against a card: CPU kernels took 28 % more than the tensors alone in a
bf16 run (194,320 B against 151,696 B), and a card's kernels take scratch of their own. Both ways, CPU runs only."""

NO_DEVICE_UNCERTAINTY = 0.10
"""Temporaries and activations of a run on fake tensors, or of arithmetic, against a card (assumed). Such a run has
every tensor and no kernel, so nothing of a CPU's has to be taken off. What it lacks: scratch inside the card's kernels,
and the difference between the attention kernel assumed and the one chosen. Flash, cuDNN and memory-efficient attention
return the same result, and beside it at most a float32 a query and head, 1.6 % of a result of 128 16-bit numbers a
head; what flash decoding sums up in parts stays below 2.2 MB (264 blocks of 16 rows of 128 float32)."""


BETWEEN_CARDS = Amount(100 * MIB, 342 * MIB, 1_600_000_000)
"""NCCL's buffers on each of several cards that share every layer: 342 MiB are planned for two ranks in
https://github.com/ai-dynamo/aiconfigurator (src/aiconfigurator/systems); 1.6 GB were seen for one all-reduce
communicator (https://github.com/NVIDIA/nccl/issues/864), and vLLM printed 0.10 to 0.41 GiB more on two cards than on
one (`engines.vllm.overheads`)."""
MORE_THAN_TWO_CARDS = Amount(0, 50 * MIB, 50 * MIB)
"""What four ranks or more add to two: 392 MiB are planned there (same source)."""

NOTHING = exactly(0)
CPU_ATTENTION = "cpu"
"""The attention of an engine that was simulated with the kernel of torch's CPU build."""


@dataclass(frozen=True)
class PhaseNeed:
    """What one phase needs of one card, in bytes."""

    phase: Phase
    parts: Parts
    context_bytes: int
    """Driver context and loaded kernels."""
    other_bytes: int
    """Library memory outside the allocator."""
    need_bytes: int
    need_lower_bytes: int
    need_upper_bytes: int
    """Fragmentation allowance included."""
    evidence: Evidence

    @property
    def allocated_bytes(self) -> int:
        """What the allocator hands out at the peak, the card's workspaces included."""
        return self.parts.total_bytes


@dataclass(frozen=True)
class Carrier:
    """How predictions of one profile become needs of one card: every replacement, worked out once."""

    context_bytes: int
    """Driver context and loaded kernels on the card."""
    context_spread_bytes: int
    """How much more that may be."""
    workspace_bytes: int
    """The card's library workspace beyond the one inside the measured temporaries; absent while loading."""
    dequantised_bytes: int
    """What all weights grow by where the card lacks their dtype and they are widened at load."""
    scratch_uncertainty: float
    """Share of temporaries and activations that may be more or less on the card."""
    replaced: bool
    """Whether anything was replaced: a need is then `scaled`, on the very card it was measured on it is not."""
    unpromised: str | None
    """Why nothing is promised to fit, whatever the bytes come to, in words: the card's hardware lacks the dtype that
    the model computed in, so that kernels fall back, and what they then take (all attention scores, for one) was not
    seen."""
    remarks: tuple[str, ...]
    """What a buyer should know about this model on this card, in words."""
    between_cards: Amount = NOTHING
    """Buffers of the communication library, where several cards share every layer."""

    @property
    def beside_bytes(self) -> int:
        """What the card's own adds to what is allocated, in every phase but loading."""
        return self.context_bytes + self.between_cards.point_bytes + self.dequantised_bytes + self.workspace_bytes

    def need(self, prediction: PhasePrediction) -> PhaseNeed:
        """What one predicted phase needs of the card."""
        parts = msgspec.structs.replace(
            prediction.parts,
            weights_bytes=prediction.parts.weights_bytes + self._dequantised(prediction),
            temporaries_bytes=prediction.parts.temporaries_bytes + self._workspace_in(prediction.phase),
        )
        return PhaseNeed(
            phase=prediction.phase,
            parts=parts,
            context_bytes=self.context_bytes,
            other_bytes=self.between_cards.point_bytes,
            need_bytes=self.point_bytes(prediction),
            need_lower_bytes=self.lower_bytes(prediction),
            need_upper_bytes=self.upper_bytes(prediction),
            evidence=weakest([prediction.evidence, Evidence.SCALED])
            if self._scales(prediction)
            else prediction.evidence,
        )

    def point_bytes(self, prediction: PhasePrediction) -> int:
        """The point of that need alone: what a search asks again and again, as it does for both bounds."""
        beside = self.context_bytes + self.between_cards.point_bytes + self._dequantised(prediction)
        return beside + self._workspace_in(prediction.phase) + prediction.allocated_bytes

    def lower_bytes(self, prediction: PhasePrediction) -> int:
        """Its lower bound alone."""
        least = max(
            (one.lower_bytes - self._scratch(one.parts, prediction.phase) for one in prediction.moments), default=0
        )
        beside = self.context_bytes + self.between_cards.lower_bytes + self._dequantised(prediction)
        return max(beside + self._workspace_in(prediction.phase) + least, 0)

    def upper_bytes(self, prediction: PhasePrediction) -> int:
        """Its upper bound alone."""
        # The moment that is highest here need not be so on a card: one with more scratch may take its place.
        most = max(
            (one.upper_bytes + self._scratch(one.parts, prediction.phase) for one in prediction.moments), default=0
        )
        allocated = most + self._dequantised(prediction) + self._workspace_in(prediction.phase)
        fragmentation = math.ceil(allocated * FRAGMENTATION_ALLOWANCE)
        beside = self.context_bytes + self.context_spread_bytes + self.between_cards.upper_bytes
        return beside + allocated + fragmentation

    def _scales(self, prediction: PhasePrediction) -> bool:
        """Whether a figure that a device gave goes to another; what nobody measured is as it was wherever it goes."""
        return self.replaced and prediction.evidence not in (Evidence.SIMULATED, Evidence.COMPUTED)

    def _dequantised(self, prediction: PhasePrediction) -> int:
        """What the weights that are there grow by: one of several cards holds some, each of a byte or more."""
        return min(self.dequantised_bytes, prediction.parts.weights_bytes)

    def _workspace_in(self, phase: Phase) -> int:
        return 0 if phase is Phase.LOAD else self.workspace_bytes

    def _scratch(self, parts: Parts, phase: Phase) -> int:
        """By how much temporaries and activations of a moment may differ on the card, in bytes."""
        if not self.scratch_uncertainty:
            return 0
        seen = parts.temporaries_bytes + parts.activations_bytes + self._workspace_in(phase)
        return math.ceil(seen * self.scratch_uncertainty)


def between_cards(ranks: int) -> Amount:
    """What a communication library takes on each of so many cards that share every layer."""
    if ranks == 1:
        return NOTHING
    return BETWEEN_CARDS if ranks == 2 else BETWEEN_CARDS + MORE_THAN_TWO_CARDS


def carrier_to(card: Card, profile: Profile, same_card: bool, ranks: int = 1) -> Carrier:
    """The carrier of a profile to a card; `same_card` says that it was measured on that very card, `ranks` how many of
    them share every layer."""
    device = profile.environment.device
    worked_out = profile.evidence is Evidence.SCALED  # held otherwise than the run was, which nothing ran on this card
    unpromised = None if same_card and not worked_out else _unpromised(card, profile)
    if same_card and device.context_bytes is not None:
        return Carrier(
            context_bytes=device.context_bytes,
            context_spread_bytes=max(_context_at_most(profile) - device.context_bytes, 0),
            workspace_bytes=0,
            dequantised_bytes=_dequantised_bytes(card, profile) if worked_out else 0,
            scratch_uncertainty=0.0,
            replaced=False,
            unpromised=unpromised,
            remarks=_remarks(card, profile, unpromised),
            between_cards=between_cards(ranks),
        )
    assumed = (
        () if _context_known(card) else ("no report of this card's driver context: the largest of any is assumed",)
    )
    context = card_context_bytes(card)
    spread = card_context_upper_bytes(card) - context + LOADED_KERNELS_UPPER_BYTES - LOADED_KERNELS_BYTES
    return Carrier(
        context_bytes=context + LOADED_KERNELS_BYTES,
        context_spread_bytes=spread,
        workspace_bytes=max(workspace_bytes(card) - device_workspace_bytes(device), 0),
        dequantised_bytes=_dequantised_bytes(card, profile),
        scratch_uncertainty=_scratch_uncertainty(profile),
        replaced=True,
        unpromised=unpromised,
        remarks=(*_remarks(card, profile, unpromised), *assumed),
        between_cards=between_cards(ranks),
    )


def carrier_to_no_card(profile: Profile) -> Carrier:
    """The carrier of a profile to a card that nobody has named: the largest driver context and workspace of any card
    that has been reported, so that what it says is needed is enough on each of them."""
    return Carrier(
        context_bytes=FALLBACK_CONTEXT_BYTES + LOADED_KERNELS_BYTES,
        context_spread_bytes=(
            FALLBACK_CONTEXT_UPPER_BYTES - FALLBACK_CONTEXT_BYTES + LOADED_KERNELS_UPPER_BYTES - LOADED_KERNELS_BYTES
        ),
        workspace_bytes=max(CUBLAS_WORKSPACE_HOPPER_BYTES - device_workspace_bytes(profile.environment.device), 0),
        dequantised_bytes=0,
        scratch_uncertainty=_scratch_uncertainty(profile),
        replaced=True,
        unpromised=None,
        remarks=(),
    )


def _scratch_uncertainty(profile: Profile) -> float:
    """Share of temporaries and activations by which a card's kernels may differ from what ran."""
    if profile.memory_model is not None and profile.memory_model.untested:
        return 0.0  # the prediction's own interval holds it
    kind = profile.environment.device.kind
    if kind == "cpu" or profile.engine.attention == CPU_ATTENTION:
        return SCRATCH_UNCERTAINTY
    return NO_DEVICE_UNCERTAINTY if kind == "none" else 0.0


def _dequantised_bytes(card: Card, profile: Profile) -> int:
    """FP8 weights become two bytes each where the card computes no FP8 (below compute capability 8.9).

    https://github.com/huggingface/transformers/pull/42926
    """
    if card.supports("float8_e4m3fn") is not False:
        return 0
    return sum(share.size_bytes for share in profile.precision.resident if share.dtype.startswith("float8"))


def missing_dtype(card: Card, profile: Profile) -> str | None:
    """The dtype of the model's matrix products where the card's hardware lacks it.

    Below compute capability 8.0 torch's fused attention takes float16 and float32 only, and bfloat16 takes the route
    that keeps all scores. https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/transformers/cuda/sdp_utils.cpp
    """
    matmul = next((one.dtypes[0] for one in profile.precision.compute if one.family == "matmul" and one.dtypes), None)
    return matmul if matmul is not None and card.supports(matmul) is False else None


def _unpromised(card: Card, profile: Profile) -> str | None:
    missing = missing_dtype(card, profile)
    if missing is None:
        return None
    return (
        f"no {missing} in this card's hardware: attention may fall back to keeping all its scores, so nothing is "
        "promised to fit; measure in another dtype (--dtype float16)"
    )


def _context_at_most(profile: Profile) -> int:
    """The most that the process held outside the allocator over all phases of a run on a card, in bytes."""
    seen = [0]
    for cell in profile.measured_cells:
        for peak in cell.outcome.phases if isinstance(cell.outcome, Measured) else ():
            sizes = {one.quantity: one.size_bytes for one in peak.readings}
            seen.append(sizes.get("process", 0) - sizes.get("reserved", 0))
    return max(seen)


def _remarks(card: Card, profile: Profile, unpromised: str | None) -> tuple[str, ...]:
    said = []
    if card.capacity_bytes is None:
        said.append("nobody has reported what software sees on this card, so it is not judged")
    if card.devices_per_card > 1:
        said.append(f"software sees {card.devices_per_card} devices on this card; capacity and verdict are for one")
    if unpromised is not None:
        said.append(unpromised)
    if _dequantised_bytes(card, profile):
        said.append("no FP8 in this card's hardware: FP8 weights are counted at two bytes each")
    return tuple(said)


def _context_known(card: Card) -> bool:
    return card.context_bytes is not None or card.context_upper_bytes is not None


def card_context_bytes(card: Card) -> int:
    """The card's bare driver context: its catalog figure, else the top of its range, else the largest of any card."""
    known = card.context_bytes if card.context_bytes is not None else card.context_upper_bytes
    return known if known is not None else FALLBACK_CONTEXT_BYTES


def card_context_upper_bytes(card: Card) -> int:
    """The highest report of the same, for the card or for any card; never below the figure itself."""
    known = card.context_upper_bytes
    return FALLBACK_CONTEXT_UPPER_BYTES if known is None else max(known, card_context_bytes(card))


def workspace_bytes(card: Card) -> int:
    """The matrix library's workspace on a card, which torch takes through its allocator."""
    if card.vendor == "AMD":
        return ROCM_WORKSPACE_BYTES
    return _cublas_workspace(card.compute_capability)


def device_workspace_bytes(device: DeviceInfo) -> int:
    """The workspace inside the temporaries of a run on this device; none on a CPU, and none where nothing ran."""
    if device.kind == "cuda":
        return _cublas_workspace(device.compute_capability)
    return ROCM_WORKSPACE_BYTES if device.kind == "rocm" else 0


def _cublas_workspace(compute_capability: str | None) -> int:
    modern = compute_capability is not None and float(compute_capability) >= 9.0
    return CUBLAS_WORKSPACE_HOPPER_BYTES if modern else CUBLAS_WORKSPACE_BYTES
