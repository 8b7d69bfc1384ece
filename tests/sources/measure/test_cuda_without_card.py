"""The CUDA feeder on a machine without a card: it imports, it refuses in one line, its words are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufit.errors import UsageError
from gpufit.sources.measure import nvml
from gpufit.sources.measure.nvml import CardMemory, CardState, ProcessUse, Unavailable
from gpufit.units import GIB, KIB, MIB

HOLDER, SELF = 10, 20


@pytest.fixture(autouse=True)
def without_card() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a card: tests/gpu speak for it")


def state(
    processes: tuple[ProcessUse, ...] | Unavailable = (),
    used: int = 0,
    ecc: bool | Unavailable = True,
    mig: bool | Unavailable = False,
) -> CardState:
    """The record that `nvml.read_card` hands on, as a clean card would fill it but for what is asked."""
    return CardState(
        driver="0.0",
        pci_id="10de:0000",
        memory=CardMemory(total_bytes=GIB, used_bytes=used, reserved_bytes=0),
        processes=processes,
        ecc=ecc,
        mig=mig,
    )


def test_the_modules_import() -> None:
    from gpufit.sources.measure import cuda, cuda_card, recordings

    assert cuda.CudaRecorder(0).history is None
    assert recordings.FORMAT == 1
    assert cuda_card.CudaCard(0).notes() == ()


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:3"])
def test_a_card_that_is_not_there_is_a_usage_error(name: str) -> None:
    from gpufit.sources.measure.device import open_device

    with pytest.raises(UsageError, match="torch sees no CUDA or ROCm card here; use --device cpu"):
        open_device(name)


def test_a_number_beyond_the_cards_is_a_usage_error() -> None:
    from gpufit.sources.measure.cuda import open_cuda

    with pytest.raises(UsageError, match=r"torch sees 0 card\(s\) here"):
        open_cuda(0)


def test_a_device_without_notes_has_none() -> None:
    from gpufit.sources.measure.device import open_device

    assert open_device("cpu").notes() == ()


def test_nvml_says_by_name_why_it_is_not_available() -> None:
    answer = nvml.read_card("00000000-0000-0000-0000-000000000000", None)
    assert isinstance(answer, Unavailable)
    assert answer.error.startswith("NVMLError_")


def test_pci_ids_are_vendor_then_device() -> None:
    assert nvml.pci_id(0x233510DE) == "10de:2335"
    assert nvml.pci_id(0x000110DE) == "10de:0001"


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (state(), []),
        (state((ProcessUse(SELF, MIB),)), []),
        (
            state((ProcessUse(HOLDER, GIB),)),
            ["the card is shared: 1 other process with 1.00 GiB on it before this run"],
        ),
        (state((ProcessUse(HOLDER, None),) * 2), ["the card is shared: 2 other processes of unknown size"]),
        (state(used=GIB), ["1.00 GiB of the card were in use before this run"]),
        (state(Unavailable("NVMLError_NotSupported"), used=GIB), ["1.00 GiB of the card were in use before this run"]),
        (state(mig=True, ecc=False), ["MIG is on", "ECC is off"]),
        (state(mig=Unavailable("NVMLError_NotSupported"), ecc=Unavailable("NVMLError_NotSupported")), []),
    ],
)
def test_what_makes_a_card_less_than_clean(card: CardState, words: list[str]) -> None:
    from gpufit.sources.measure.cuda_card import card_flags

    flags = list(card_flags(card, SELF))
    assert len(flags) == len(words)
    assert all(said in flag for said, flag in zip(words, flags, strict=True))


def test_the_own_use_is_found_or_said_to_be_missing() -> None:
    from gpufit.sources.measure.cuda_card import own_bytes

    assert own_bytes(state((ProcessUse(HOLDER, 1), ProcessUse(SELF, 7))), SELF) == 7
    for missing in (
        Unavailable("NVMLError_LibraryNotFound"),
        state(Unavailable("NVMLError_NotSupported")),
        state((ProcessUse(HOLDER, 1),)),
        state((ProcessUse(SELF, None),)),
    ):
        assert isinstance(own_bytes(missing, SELF), Unavailable)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.11 GiB", 2 * GIB + GIB // 2),
        ("HIP out of memory. Tried to allocate 20.00 MiB. GPU 0 has", 20 * MIB),
        ("CUDA out of memory. Tried to allocate 1.50 KiB. GPU 0 has", KIB + KIB // 2),
        ("CUDA out of memory. Tried to allocate 512 bytes. GPU 0 has", 512),
        ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 800 bytes.", 800),
        ("CUDA error: out of memory", None),
    ],
)
def test_the_size_that_an_out_of_memory_names(text: str, size: int | None) -> None:
    """The words are those of torch's sources: format_size and malloc in c10/cuda/CUDACachingAllocator.cpp."""
    import torch

    from gpufit.sources.measure.session import asked_bytes, is_out_of_memory

    assert asked_bytes(text) == size
    kind = RuntimeError if "error:" in text or "Default" in text else torch.OutOfMemoryError
    assert is_out_of_memory(kind(text))


@pytest.mark.parametrize(
    "text", ["CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "HIP error: out of memory"]
)
def test_a_full_card_met_outside_the_allocator_is_an_out_of_memory(text: str) -> None:
    from gpufit.sources.measure.session import is_out_of_memory

    assert is_out_of_memory(RuntimeError(text))
    assert not is_out_of_memory(RuntimeError("CUDA error: an illegal memory access was encountered"))


def test_a_kept_run_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    """A made-up run of two events, to hold the file format; real ones are made by scripts/gpu-check."""
    from gpufit.memory.replay import Event, Given, Label
    from gpufit.profile.environment import DeviceInfo, Environment
    from gpufit.profile.evidence import Evidence
    from gpufit.profile.peaks import Parts, Phase, PhasePeak
    from gpufit.sources.measure.cuda_history import Block, Counters, read_history
    from gpufit.sources.measure.recordings import KeptRun, columns, load_run, save_run
    from gpufit.sources.measure.run import PhaseSpan

    trace = [
        {"action": "alloc", "addr": 4096, "size": 5, "stream": 0, "frames": []},
        {"action": "free_requested", "addr": 4096, "size": 5, "stream": 0, "frames": []},
        {"action": "oom", "size": 9, "stream": 0, "device_free": 1, "frames": []},
    ]
    start, stop = Counters(1, 0, 0, 512, 7), Counters(2, 1, 0, 512, 7)
    kept = KeptRun(
        model={"model_type": "llama"},
        environment=Environment(device=DeviceInfo(kind="cuda", name="none", total_bytes=1), versions={}),
        context_tokens=1,
        new_tokens=1,
        concurrency=1,
        before=(Block(512, 512, 7),),
        start=start,
        marks=(start, stop),
        stop=stop,
        max_entries=10,
        slack_bytes=MIB,
        trace=columns(trace),
        held=(Given(512, 7, "weights"),),
        labels=(Label(4096, "outputs", 1),),
        stretches=((0, "lm_head"),),
        spans=(PhaseSpan(Phase.PREFILL, 0, 1, 1, ()),),
        peaks=(
            PhasePeak(phase=Phase.PREFILL, parts=Parts(weights_bytes=7), allocated_bytes=7, evidence=Evidence.MEASURED),
        ),
    )
    save_run(kept, tmp_path / "run.json.gz")
    again = load_run(tmp_path / "run.json.gz")
    assert again == kept
    recording = read_history(again.history)
    assert recording.events == [Event(4096, 5), Event(4096, 0)]
    assert recording.positions == [0, 2]
