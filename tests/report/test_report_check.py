"""The check document: what it comes to in words, and both formats over a check that is whole and one that stopped."""

from __future__ import annotations

import importlib
import json
import pkgutil

import msgspec
import pytest
from builders import make_profile
from jsonschema import Draft202012Validator

from gpufit.errors import UsageError
from gpufit.profile.checked import Checked, CheckResult, PhaseMemory, Step, StepName, StepState
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.peaks import Phase
from gpufit.profile.precision import DtypeShare
from gpufit.report import check_formats
from gpufit.report.check_document import CheckDocument, build_check_document
from gpufit.report.check_formats.table import seconds_text
from gpufit.report.registry import CHECK_FORMATS, load_check_format
from gpufit.report.schema import schema_of

PROFILE = make_profile()
MIB = 2**20

RESULT = CheckResult(
    model="tiny",
    fingerprint="0" * 64,
    text="Which card?",
    token_ids=(7, 8, 9),
    generated=" an L4",
    output_shape=(1, 1, 256),
    output_dtype="bfloat16",
    finite=True,
)


def step(name: StepName, state: StepState = StepState.OK, **fields: object) -> Step:
    given = {"seconds": 0.5, "seen": f"saw {name}", "error": None} | fields
    return Step(step=name, state=state, **given)  # type: ignore[arg-type]


def whole(**changes: object) -> Checked:
    checked = Checked(
        model="tiny",
        source="models/tiny",
        fingerprint="0" * 64,
        revision=None,
        device_asked="cpu",
        memory_limit_bytes=None,
        steps=tuple(map(step, StepName)),
        architecture="LlamaForCausalLM",
        environment=PROFILE.environment,
        engine=PROFILE.engine,
        resident=(DtypeShare(dtype="bfloat16", size_bytes=256 * MIB, tensors=20),),
        memory=(
            PhaseMemory(phase=Phase.LOAD, allocated_bytes=256 * MIB, reserved_bytes=300 * MIB, device_used_bytes=None),
            PhaseMemory(phase=Phase.DECODE, allocated_bytes=260 * MIB, reserved_bytes=None, device_used_bytes=None),
        ),
        context_tokens=16,
        result=RESULT,
        result_file=None,
    )
    return msgspec.structs.replace(checked, **changes)


def stopped(error: str = "memory ran out") -> Checked:
    left = tuple(step(one, StepState.NOT_REACHED, seconds=None, seen="") for one in list(StepName)[2:])
    failed = step(StepName.LOAD, StepState.FAILED, seen="", error=error)
    nothing = {"architecture": None, "environment": None, "engine": None, "resident": (), "memory": ()}
    return whole(
        steps=(step(StepName.START), failed, *left),
        memory_limit_bytes=100 * MIB,
        context_tokens=None,
        result=None,
        **nothing,
    )


def table(checked: Checked) -> str:
    return load_check_format("table").render_check(build_check_document(checked)).decode()


def test_a_whole_check_is_ok_with_all_its_time() -> None:
    document = build_check_document(whole())
    assert document.ok
    assert document.conclusion == "ok: tiny runs from end to end on AMD EPYC, in 3.0 s"
    assert document.notes == ()


def test_a_check_that_stopped_says_where_and_why() -> None:
    document = build_check_document(stopped())
    assert not document.ok
    assert document.conclusion == "load failed: memory ran out"
    lines = table(stopped()).splitlines()
    assert lines[0] == "tiny · within 100.0 MiB"
    assert [line.split()[:2] for line in lines if line.startswith("load")] == [["load", "failed"]]
    assert sum("not reached" in line for line in lines) == 4
    assert lines[-1] == "failed: load"
    assert not any("allocated" in line for line in lines)


def test_a_processor_that_nobody_asked_for_is_told() -> None:
    (note,) = build_check_document(whole(device_asked="auto")).notes
    assert note.startswith("ran on the processor: torch sees no CUDA or ROCm card here")
    card = DeviceInfo(kind="cuda", name="NVIDIA L4", total_bytes=24 * 2**30)
    flagged = msgspec.structs.replace(PROFILE.environment, device=card, flags=("others use 3 GiB of the card",))
    assert build_check_document(whole(device_asked="auto", environment=flagged)).notes == (
        "others use 3 GiB of the card",
    )


def test_the_table_has_the_columns_that_were_read() -> None:
    lines = table(whole()).splitlines()
    assert lines[0] == "tiny · transformers 5.24.0 (sdpa) · torch 2.13.0 · AMD EPYC"
    start = next(index for index, line in enumerate(lines) if line.startswith("memory"))
    assert lines[start].split("  ")[-1].strip() == "reserved at most"
    assert lines[start + 2].split() == ["load", "256.0", "MiB", "300.0", "MiB"]
    assert lines[start + 3].split() == ["decode", "260.0", "MiB"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(12.34, "12.3 s"), (0.1, "0.1 s"), (0.0654, "65 ms"), (0.0002, "0.2 ms")]
)
def test_short_times_keep_their_digits(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize("checked", [whole(), stopped()], ids=["whole", "stopped"])
def test_json_is_the_document_and_valid(checked: Checked) -> None:
    document = build_check_document(checked)
    written = load_check_format("json").render_check(document)
    assert msgspec.json.decode(written, type=CheckDocument) == document
    assert list(Draft202012Validator(schema_of("check")).iter_errors(json.loads(written))) == []


def test_names_and_errors_cannot_steer_a_terminal() -> None:
    hard = whole(model="a\x1b[31m|b", source="caf\udce9", result_file="o\udce9/gpufit-check.json")
    assert "\x1b" not in table(hard)
    assert json.loads(load_check_format("json").render_check(build_check_document(hard)))["source"] == "caf?"
    assert "\x1b" not in table(stopped("bad \x1b[2J"))


def test_every_module_is_a_format() -> None:
    modules = {one.name for one in pkgutil.iter_modules(check_formats.__path__)}
    assert modules == set(CHECK_FORMATS)
    for path in CHECK_FORMATS.values():
        assert callable(importlib.import_module(path).render_check)
    with pytest.raises(UsageError, match="csv holds no check; choose one of table, json"):
        load_check_format("csv")
