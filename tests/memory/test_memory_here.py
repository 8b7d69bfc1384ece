"""A prediction on the device that is here: workspaces moved and intervals widened, every figure by hand."""

from __future__ import annotations

import msgspec
import pytest
from builders import make_memory_model, make_prediction, make_profile

from gpufit.memory.here import Expected, expected_here
from gpufit.memory.predict import MomentPrediction, PhasePrediction
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.record import Profile

MIB = 1_048_576
CPU = DeviceInfo(kind="cpu", name="AMD EPYC", total_bytes=24 * 2**30)
NOTHING = DeviceInfo(kind="none", name="no device", total_bytes=0)
L40S = DeviceInfo(kind="cuda", name="NVIDIA L40S", total_bytes=47 * 2**30, compute_capability="8.9")
H100 = DeviceInfo(kind="cuda", name="NVIDIA H100", total_bytes=79 * 2**30, compute_capability="9.0")

PARTS = Parts(weights_bytes=100 * MIB, activations_bytes=10 * MIB, temporaries_bytes=40 * MIB)
"""150 MiB, of which 50 MiB are scratch."""
ADA_WORKSPACE = 8_519_680
"""cuBLAS before Hopper: `:4096:2:16:8` is 2 x 4096 + 8 x 16 KiB."""


def of(device: DeviceInfo, attention: str = "sdpa", **changes: object) -> Profile:
    profile = make_profile(**changes)
    return msgspec.structs.replace(
        profile,
        environment=msgspec.structs.replace(profile.environment, device=device),
        engine=msgspec.structs.replace(profile.engine, attention=attention),
    )


def prefill(lower: int = 140 * MIB, upper: int = 160 * MIB) -> PhasePrediction:
    return make_prediction(Phase.PREFILL, PARTS, lower, upper)


def bounds(expected: Expected) -> tuple[int, int]:
    return expected.lower_bytes, expected.upper_bytes


def test_the_workspace_is_2_of_4096_and_8_of_16_kib() -> None:
    assert ADA_WORKSPACE == (2 * 4096 + 8 * 16) * 1024


@pytest.mark.parametrize("device", [CPU, L40S])
def test_on_a_device_of_its_own_kind_the_prediction_stands(device: DeviceInfo) -> None:
    expected = expected_here(of(device), prefill(), device)
    assert expected.parts == PARTS
    assert bounds(expected) == (140 * MIB, 160 * MIB)


def test_a_processors_figures_on_a_card_get_its_workspace_and_30_percent_of_scratch() -> None:
    expected = expected_here(of(CPU), prefill(), L40S)
    assert expected.parts.temporaries_bytes == 40 * MIB + ADA_WORKSPACE
    spread = -(-3 * (50 * MIB + ADA_WORKSPACE) // 10)
    assert bounds(expected) == (140 * MIB + ADA_WORKSPACE - spread, 160 * MIB + ADA_WORKSPACE + spread)


def test_a_cards_figures_on_a_processor_lose_the_workspace() -> None:
    expected = expected_here(of(H100), prefill(), CPU)
    assert expected.parts.temporaries_bytes == (40 - 32) * MIB
    spread = -(-3 * (10 + 8) * MIB // 10)
    assert bounds(expected) == (140 * MIB - 32 * MIB - spread, 160 * MIB - 32 * MIB + spread)


def test_temporaries_smaller_than_the_workspace_do_not_go_below_nothing() -> None:
    small = msgspec.structs.replace(PARTS, temporaries_bytes=MIB)
    expected = expected_here(of(H100), make_prediction(Phase.PREFILL, small, 100 * MIB, 130 * MIB), CPU)
    assert expected.parts.temporaries_bytes == 0
    assert expected.parts.total_bytes == 110 * MIB


@pytest.mark.parametrize(
    ("attention", "here", "tenths"),
    [("sdpa", CPU, 3), ("cpu", CPU, 1), ("sdpa", L40S, 1), ("cpu", L40S, 3)],
)
def test_what_ran_on_fake_tensors_is_as_uncertain_as_its_kernel_is_far(
    attention: str, here: DeviceInfo, tenths: int
) -> None:
    profile = of(NOTHING, attention, evidence=Evidence.SIMULATED)
    workspace = 0 if here is CPU else ADA_WORKSPACE
    spread = -(-tenths * (50 * MIB + workspace) // 10)
    expected = expected_here(profile, prefill(), here)
    assert bounds(expected) == (140 * MIB + workspace - spread, 160 * MIB + workspace + spread)


def test_arithmetic_has_its_own_interval_already() -> None:
    profile = of(NOTHING, evidence=Evidence.COMPUTED, memory_model=make_memory_model(untested=True))
    assert bounds(expected_here(profile, prefill(), CPU)) == (140 * MIB, 160 * MIB)


def test_a_figure_without_an_interval_gets_2_percent_and_at_least_a_mib() -> None:
    for size, margin in ((1_000 * MIB, 20 * MIB), (10 * MIB, MIB)):
        one = make_prediction(Phase.LOAD, Parts(weights_bytes=size))
        assert bounds(expected_here(of(CPU), one, CPU)) == (size - margin, size + margin)


def test_loading_takes_no_workspace_and_nothing_goes_below_zero() -> None:
    one = make_prediction(Phase.LOAD, Parts(weights_bytes=1000))
    expected = expected_here(of(CPU), one, L40S)
    assert expected.parts == Parts(weights_bytes=1000)
    assert bounds(expected) == (0, 1000 + MIB)


def test_the_highest_of_all_moments_bounds_the_phase() -> None:
    other = Parts(weights_bytes=100 * MIB, temporaries_bytes=45 * MIB)
    two = PhasePrediction(
        phase=Phase.PREFILL,
        parts=PARTS,
        lower_bytes=150 * MIB - 1,
        upper_bytes=150 * MIB,
        evidence=Evidence.MEASURED,
        moments=(
            MomentPrediction(PARTS, 150 * MIB - 1, 150 * MIB),
            MomentPrediction(other, 145 * MIB, 149 * MIB),
        ),
    )
    assert bounds(expected_here(of(CPU), two, CPU)) == (150 * MIB - 1, 150 * MIB)
