"""What `gpufit profile` says of a run, from records alone."""

from __future__ import annotations

import msgspec
from builders import make_peak, make_profile

from gpufit.profile.cells import Cell, Measured
from gpufit.profile.peaks import DeviceReading, Parts, Phase, PhasePeak
from gpufit.report.run_text import host_memory_lines, measured_grid_line
from gpufit.units import MIB


def peak(phase: Phase, own_mib: int, mapped_mib: int) -> PhasePeak:
    readings = (
        DeviceReading(source="/proc/self/status", quantity="rss_anon", size_bytes=own_mib * MIB),
        DeviceReading(source="/proc/self/status", quantity="rss_file", size_bytes=mapped_mib * MIB),
        DeviceReading(source="nvml.process", quantity="process", size_bytes=9999 * MIB),
    )
    return msgspec.structs.replace(make_peak(phase, Parts()), readings=readings)


def test_the_hosts_memory_is_the_highest_reading_of_each_kind() -> None:
    outcome = Measured(
        phases=(peak(Phase.PREFILL, 312, 200), peak(Phase.DECODE, 300, 268)), inputs_completed=1, wall_seconds=1.0
    )
    cell = Cell(context_tokens=8, new_tokens=2, concurrency=1, outcome=outcome)
    profile = make_profile(load=peak(Phase.LOAD, 100, 100), cells=(cell,))
    assert host_memory_lines(profile) == ["host memory: 312.0 MiB anonymous, 268.0 MiB mapped files"]


def test_where_the_system_tells_nothing_nothing_is_said() -> None:
    assert host_memory_lines(make_profile()) == []


def test_the_first_line_names_every_default_and_a_limit_only_where_there_is_one() -> None:
    workload = make_profile().workload
    assert measured_grid_line(workload, "auto", 900) == (
        "contexts 128, 512 x 1, 2, 4 at once; 4 new tokens, logits kept: last; dtype auto, device auto, seed 0, "
        "at most 900 s a cell"
    )
    limited = msgspec.structs.replace(workload, memory_limit_bytes=6 * 1024 * MIB)
    assert "device cuda, memory limit 6.00 GiB, seed 0, at most 60 s a cell" in measured_grid_line(limited, "cuda", 60)
