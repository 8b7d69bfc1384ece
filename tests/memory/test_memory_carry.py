"""Carrying a phase to another card, every figure computed by hand from the catalog's and the cited ones."""

from __future__ import annotations

import dataclasses
import math

import msgspec
import pytest
from builders import make_card, make_prediction, make_profile
from hypothesis import given
from hypothesis import strategies as st

from gpufit.catalog.card_parts import ContextFigure
from gpufit.catalog.record import Card
from gpufit.catalog.store import load_folders
from gpufit.datadir import shipped_catalog_dir
from gpufit.memory.carry import (
    FALLBACK_CONTEXT_BYTES,
    FALLBACK_CONTEXT_UPPER_BYTES,
    PhaseNeed,
    carrier_to,
    workspace_bytes,
)
from gpufit.memory.carry_words import rules
from gpufit.memory.predict import MomentPrediction, PhasePrediction
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.precision import ComputeDtype, DtypeShare
from gpufit.profile.record import Profile

CATALOG = load_folders([shipped_catalog_dir()])
MIB = 1_048_576
CPU = DeviceInfo(kind="cpu", name="AMD EPYC", total_bytes=24 * 2**30)
H100 = DeviceInfo(
    kind="cuda",
    name="NVIDIA H100 80GB HBM3",
    total_bytes=84_932_978_278,
    compute_capability="9.0",
    context_bytes=552_599_552,
)

PARTS = Parts(weights_bytes=1_000_000, kv_cache_bytes=200_000, activations_bytes=5_000, temporaries_bytes=35_000)
ALLOCATED = 1_240_000
KERNELS, KERNELS_UPPER = 99_000_000, 166_000_000
"""optimum-benchmark's running-llamas: 434 -> 533 MB on an A100, 543 -> 709 MB on an H100."""


def profile_of(device: DeviceInfo, **precision: object) -> Profile:
    profile = make_profile()
    return msgspec.structs.replace(
        profile,
        environment=msgspec.structs.replace(profile.environment, device=device),
        precision=msgspec.structs.replace(profile.precision, **precision),
    )


def carried(prediction: PhasePrediction, device: DeviceInfo, same_card: bool, card: Card) -> PhaseNeed:
    return carrier_to(card, profile_of(device), same_card).need(prediction)


@pytest.mark.parametrize(
    ("card_id", "context_mib", "context_upper_mib", "workspace"),
    [
        # The catalog's context and the top of its range; 32 MiB of cuBLAS workspace from compute capability 9.0 on.
        ("h100-sxm-80gb", 527, 530, 32 * MIB),
        ("b200-sxm-180gb", 612, 712, 32 * MIB),
        # `:4096:2:16:8` is 2 x 4096 KiB + 8 x 16 KiB = 8320 KiB before.
        ("l40s-48gb", 426, 426, 8320 * 1024),
        ("a100-sxm-80gb", 481, 942, 8320 * 1024),
        # No figure, but a range: its top.
        ("l4-24gb", 426, 426, 8320 * 1024),
        # Nothing known: the largest of any card, B200's 612 MiB, and 942 MiB, an A100 with eager loading.
        ("t4-16gb", 612, 942, 8320 * 1024),
        # ROCm's larger workspace.
        ("mi300x-192gb", 612, 942, 128 * MIB),
    ],
)
def test_from_a_cpu_context_and_workspace_are_the_card_s_own(
    card_id: str, context_mib: int, context_upper_mib: int, workspace: int
) -> None:
    need = carried(make_prediction(Phase.PREFILL, PARTS), CPU, False, CATALOG.card(card_id))
    context = context_mib * MIB + KERNELS
    assert need.context_bytes == context
    assert need.parts.temporaries_bytes == 35_000 + workspace
    assert need.allocated_bytes == ALLOCATED + workspace
    assert need.need_bytes == context + ALLOCATED + workspace
    # Temporaries and activations are uncertain by 30 % both ways, rounded up.
    scratch = -(-(40_000 + workspace) * 3 // 10)
    assert need.need_lower_bytes == context + ALLOCATED + workspace - scratch
    # Above: the context's own range, the kernels' range, the scratch, and 2 % of it all for fragmentation.
    allocated_upper = ALLOCATED + workspace + scratch
    context_upper = context_upper_mib * MIB + KERNELS_UPPER
    assert need.need_upper_bytes == context_upper + allocated_upper + -(-allocated_upper * 2 // 100)
    assert need.evidence is Evidence.SCALED
    assert need.other_bytes == 0


def test_the_hand_computed_need_of_an_h100() -> None:
    need = carried(make_prediction(Phase.PREFILL, PARTS), CPU, False, CATALOG.card("h100-sxm-80gb"))
    # 527 MiB = 552,599,552; + 99,000,000 + 1,240,000 + 33,554,432.
    assert need.need_bytes == 686_393_984
    # 30 % of 33,594,432 is 10,078,329.6.
    assert need.need_lower_bytes == 686_393_984 - 10_078_330
    # 530 MiB = 555,745,280; + 166,000,000 + 44,872,762 + 2 % of it, 897,455.24.
    assert need.need_upper_bytes == 555_745_280 + 166_000_000 + 44_872_762 + 897_456


def test_without_a_device_temporaries_and_activations_are_uncertain_by_a_tenth() -> None:
    nowhere = DeviceInfo(kind="none", name="no device (fake tensors)", total_bytes=0)
    need = carried(make_prediction(Phase.PREFILL, PARTS), nowhere, False, CATALOG.card("h100-sxm-80gb"))
    assert need.need_bytes == 686_393_984, "the context and the workspace of the card, as from a CPU"
    # 10 % of 33,594,432 is 3,359,443.2.
    assert need.need_lower_bytes == 686_393_984 - 3_359_444
    # The sizes from above with that in place of 30 %: 1,240,000 + 33,554,432 + 3,359,444 and 2 % of it, 763,077.52.
    assert need.need_upper_bytes == 555_745_280 + 166_000_000 + 38_153_876 + 763_078
    assert "10%" in " ".join(rules(nowhere))
    assert "30%" not in " ".join(rules(nowhere))
    # Arithmetic that no run has tested brings an interval of its own, and that one is said.
    untested = " ".join(rules(nowhere, untested=True))
    assert "10%" not in untested
    assert "30% either way" in untested


def test_nothing_ran_while_loading_so_no_workspace_is_added() -> None:
    need = carried(make_prediction(Phase.LOAD, PARTS), CPU, False, CATALOG.card("h100-sxm-80gb"))
    assert need.parts == PARTS


def test_on_the_card_it_was_measured_on_nothing_is_replaced() -> None:
    prediction = make_prediction(Phase.PREFILL, PARTS, lower=1_200_000, upper=1_300_000)
    need = carried(prediction, H100, True, CATALOG.card("h100-sxm-80gb"))
    assert need.parts == PARTS
    assert need.context_bytes == 552_599_552
    assert need.need_bytes == 552_599_552 + ALLOCATED
    assert need.need_lower_bytes == 552_599_552 + 1_200_000
    assert need.need_upper_bytes == 552_599_552 + 1_300_000 + 26_000
    assert need.evidence is Evidence.MEASURED


def test_the_same_card_without_a_measured_context_takes_the_catalog_s() -> None:
    device = DeviceInfo(kind="cuda", name="H100", total_bytes=1, compute_capability="9.0")
    need = carried(make_prediction(Phase.DECODE, PARTS), device, True, CATALOG.card("h100-sxm-80gb"))
    assert need.context_bytes == 552_599_552 + KERNELS
    assert need.parts == PARTS
    assert need.evidence is Evidence.SCALED


def test_from_card_to_card_only_the_missing_workspace_is_added_and_scratch_is_taken_as_seen() -> None:
    a100 = DeviceInfo(kind="cuda", name="A100", total_bytes=1, compute_capability="8.0", context_bytes=500 * MIB)
    need = carried(make_prediction(Phase.PREFILL, PARTS), a100, False, CATALOG.card("h100-sxm-80gb"))
    # 32 MiB less the 8320 KiB that the A100's temporaries hold already.
    added = 32 * MIB - 8320 * 1024
    assert need.parts.temporaries_bytes == 35_000 + added
    assert need.need_lower_bytes == need.need_bytes == 552_599_552 + KERNELS + ALLOCATED + added


def test_a_smaller_workspace_is_never_taken_off() -> None:
    need = carried(make_prediction(Phase.PREFILL, PARTS), H100, False, CATALOG.card("l40s-48gb"))
    assert need.parts == PARTS


def test_no_known_card_has_a_larger_context_than_the_one_assumed_for_an_unknown_card() -> None:
    figures = [card.context.mib for card in CATALOG.cards if card.context.mib is not None]
    tops = [card.context.range_mib[1] for card in CATALOG.cards if card.context.range_mib is not None]
    assert max(figures) * MIB == FALLBACK_CONTEXT_BYTES
    assert max(tops) * MIB == FALLBACK_CONTEXT_UPPER_BYTES


@pytest.mark.parametrize(
    ("capability", "mib"),
    [("7.0", 8.125), ("8.9", 8.125), ("9.0", 32), ("10.0", 32), ("10.3", 32), ("12.0", 32), (None, 8.125)],
)
def test_the_workspace_goes_by_the_compute_capability_as_a_number(capability: str | None, mib: float) -> None:
    assert workspace_bytes(make_card(compute_capability=capability)) == mib * MIB


sizes = st.integers(0, 10**12)


@given(
    st.builds(Parts, **dict.fromkeys(Parts.NAMES, sizes)),
    sizes,
    sizes,
    st.sampled_from(list(Phase)),
    st.sampled_from([CPU, H100]),
    st.sampled_from(CATALOG.cards) | st.just(make_card(context=ContextFigure(mib=500, range_mib=(100, 400)))),
)
def test_the_bounds_enclose_the_need_and_the_identity_holds_on_every_card(
    parts: Parts, below: int, above: int, phase: Phase, device: DeviceInfo, card: Card
) -> None:
    total = parts.total_bytes
    prediction = make_prediction(phase, parts, lower=max(total - below, 0), upper=total + above)
    need = carried(prediction, device, False, card)
    assert need.need_bytes == need.context_bytes + need.other_bytes + need.parts.total_bytes
    assert 0 <= need.need_lower_bytes <= need.need_bytes <= need.need_upper_bytes
    # The upper bound leaves at least 2 % of everything allocated for fragmentation.
    assert need.need_upper_bytes - need.context_bytes >= math.ceil(need.allocated_bytes * 1.02) - 1


@given(st.builds(Parts, **dict.fromkeys(Parts.NAMES, sizes)), st.sampled_from(Parts.NAMES), sizes)
def test_a_larger_part_never_needs_less_of_a_card(parts: Parts, name: str, more: int) -> None:
    larger = msgspec.structs.replace(parts, **{name: getattr(parts, name) + more})
    less, much = (
        carried(make_prediction(Phase.PREFILL, one), CPU, False, CATALOG.card("l40s-48gb")) for one in (parts, larger)
    )
    assert much.need_bytes >= less.need_bytes
    assert much.need_upper_bytes >= less.need_upper_bytes
    assert much.need_lower_bytes >= less.need_lower_bytes


def test_every_rule_that_was_applied_is_said_in_words() -> None:
    said = " ".join(rules(CPU))
    for figure in ("612 MiB", "942 MiB", "94 MiB", "158 MiB", "8.1 MiB", "32 MiB", "128 MiB", "2%", "30%"):
        assert figure in said
    assert "30%" not in " ".join(rules(H100))


def test_fp8_weights_double_on_a_card_without_fp8_and_the_remark_says_so() -> None:
    shares = (
        DtypeShare(dtype="float8_e4m3fn", size_bytes=600_000, tensors=10),
        DtypeShare(dtype="bfloat16", size_bytes=400_000, tensors=2),
    )
    profile = profile_of(H100, resident=shares)
    prediction = make_prediction(Phase.PREFILL, PARTS)
    a100 = carrier_to(CATALOG.card("a100-sxm-80gb"), profile, False)
    l40s = carrier_to(CATALOG.card("l40s-48gb"), profile, False)
    assert a100.need(prediction).parts.weights_bytes == 1_000_000 + 600_000
    assert l40s.need(prediction).parts.weights_bytes == 1_000_000
    assert any("two bytes each" in remark for remark in a100.remarks)
    assert l40s.remarks == ()


def test_a_context_that_nobody_has_reported_is_remarked_as_assumed() -> None:
    said = {card.id: carrier_to(card, profile_of(CPU), False).remarks for card in CATALOG.cards}
    assert any("context" in remark and "assumed" in remark for remark in said["t4-16gb"])
    assert said["l4-24gb"] == said["b200-sxm-180gb"] == ()


def test_a_card_that_lacks_the_compute_dtype_is_remarked() -> None:
    profile = profile_of(CPU, compute=(ComputeDtype(family="matmul", dtypes=("bfloat16",), calls=1),))
    said = {card.id: carrier_to(card, profile, False).remarks for card in CATALOG.cards}
    # Volta and Turing have no bfloat16; MI250X is two devices; two H100 variants have no known total.
    assert {card for card, remarks in said.items() if any("no bfloat16" in one for one in remarks)} == {
        "t4-16gb", "v100-sxm2-16gb", "v100-pcie-16gb", "v100-sxm2-32gb", "v100-pcie-32gb"
    }  # fmt: skip
    assert "2 devices" in said["mi250x-128gb"][0]
    assert "not judged" in said["h100-sxm-64gb"][0]
    assert said["h200-sxm-141gb"] == ()


def test_a_moment_with_more_scratch_may_be_the_highest_on_the_card_and_then_counts() -> None:
    # On the CPU the cache rules by 10,000 bytes; 30 % more scratch on a card turn that around.
    cache = Parts(kv_cache_bytes=1_010_000)
    scratch = Parts(temporaries_bytes=1_000_000)
    bounds = (MomentPrediction(cache, 1_010_000, 1_010_000), MomentPrediction(scratch, 1_000_000, 1_000_000))
    prediction = with_moments(make_prediction(Phase.LOAD, cache), bounds)
    carrier = carrier_to(make_card(), profile_of(CPU), False)
    alone = with_moments(make_prediction(Phase.LOAD, cache), bounds[:1])
    # 1,000,000 x 1.3 against 1,010,000, each with 2 % for fragmentation, rounded up.
    assert carrier.upper_bytes(prediction) - carrier.upper_bytes(alone) == 1_326_000 - 1_030_200


def with_moments(prediction: PhasePrediction, moments: tuple[MomentPrediction, ...]) -> PhasePrediction:
    return dataclasses.replace(prediction, moments=moments)


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 1000),
    st.integers(1, 1000),
)
def test_more_sequences_never_need_less_of_a_card_whichever_moment_is_the_highest(
    drawn: list[tuple[int, int, int, int]], few: int, more: int
) -> None:
    def prediction(sequences: int) -> PhasePrediction:
        parts = [
            Parts(kv_cache_bytes=kv + kv_each * sequences, temporaries_bytes=scratch + scratch_each * sequences)
            for kv, kv_each, scratch, scratch_each in drawn
        ]
        highest = max(parts, key=lambda one: one.total_bytes)
        moments = tuple(MomentPrediction(one, one.total_bytes, one.total_bytes) for one in parts)
        return with_moments(make_prediction(Phase.PREFILL, highest), moments)

    carrier = carrier_to(make_card(), profile_of(CPU), False)
    less, larger = carrier.need(prediction(few)), carrier.need(prediction(few + more))
    assert larger.need_upper_bytes >= less.need_upper_bytes
    assert larger.need_lower_bytes >= less.need_lower_bytes
