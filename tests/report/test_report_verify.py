"""The verify document: what it comes to in words, and both formats over each way that a verification can end."""

from __future__ import annotations

import importlib
import json
import pkgutil

import msgspec
import pytest
from builders import make_cell, make_peak, make_profile, prefill_parts
from jsonschema import Draft202012Validator

from gpufit.advice.verification import CardCeiling, Repeat, verify, what_differs
from gpufit.errors import UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured, OutOfMemory
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase, PhasePeak
from gpufit.profile.record import Profile
from gpufit.report import verify_formats
from gpufit.report.registry import VERIFY_FORMATS, load_verify_format
from gpufit.report.schema import schema_of
from gpufit.report.verify_document import Held, VerifyDocument, build_verify_document

CELL = Shape(512, 4, 4)
PROFILE = make_profile()
MIB = 2**20
CEILING = CardCeiling(card="x1-1gb", capacity_bytes=2**30, context_bytes=600 * MIB, limit_bytes=424 * MIB)


def phases(added: int = 0) -> tuple[PhasePeak, ...]:
    outcome = make_cell(512, 4).outcome
    assert isinstance(outcome, Measured)
    parts = prefill_parts(CELL)
    parts = msgspec.structs.replace(parts, temporaries_bytes=parts.temporaries_bytes + added)
    return (make_peak(Phase.PREFILL, parts, 512), outcome.phases[1])


def document(
    added: int = 0,
    profile: Profile = PROFILE,
    shape: Shape = CELL,
    ended: OutOfMemory | None = None,
    limit: int | None = None,
    ceiling: CardCeiling | None = None,
    where: str = "profiles/tiny.json",
    **changes: object,
) -> VerifyDocument:
    """The document of a run that took so much more in prefill, or that ended out of memory in it."""
    ran = make_profile(cells=(make_cell(512, 4),), **changes)
    peaks = phases(added) if ended is None else ()
    found = verify(profile, shape, Repeat(ran.environment.device, (ran.load, *peaks), ended), limit)
    differences = what_differs(profile, ran)
    return build_verify_document(
        Held(profile, where, shape, "models/tiny", found, ran, ended, differences, ceiling, limit)
    )


def table(one: VerifyDocument) -> str:
    return load_verify_format("table").render_verify(one).decode()


def test_inside_is_ok_and_names_the_peak() -> None:
    found = document()
    assert found.ok
    # 256,004,000 + 2,048 x 25,016 + 1,400,000 bytes are 294.3 MiB.
    assert (
        found.conclusion
        == "as predicted: load, prefill, decode inside their intervals; the peak, prefill, takes 294.3 MiB"
    )
    assert found.predicted.ran_this_cell
    assert (found.predicted.wall_seconds, found.here and found.here.wall_seconds) == (1.0, 1.0)
    assert "the cell took 1.00 s; 1.00 s when it was profiled" in table(found)
    assert table(found).count("✓ inside") == 3


def test_outside_says_by_how_much_and_which_way() -> None:
    # The interval of prefill is 1,052,656 bytes either way: 5 MiB more is 5,242,880 - 1,052,656 = 4.0 MiB above it.
    above = document(added=5 * MIB)
    assert not above.ok
    assert above.conclusion == "not as predicted: prefill takes 299.3 MiB, 4.0 MiB above its interval"
    below = document(added=-1_000_000 - 3_000_000)
    assert below.conclusion.endswith("2.8 MiB below its interval")  # 4,000,000 - 1,052,656
    assert table(above).count("✗ outside") == 1
    assert "+5.0 MiB" in table(above)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (500 * MIB, "not as predicted: a fit was predicted (295.3 MiB at most)"),
        (294 * MIB, "not decided by the prediction (293.3 MiB to 295.3 MiB)"),
        (100 * MIB, "as predicted: at least 293.3 MiB were expected"),
    ],
)
def test_out_of_memory_is_never_ok_and_is_held_against_the_prediction(limit: int, words: str) -> None:
    ended = OutOfMemory(phase=Phase.PREFILL, message="tried to allocate 8 MiB", limit_bytes=limit)
    found = document(ended=ended, limit=limit)
    assert not found.ok
    size = f"{limit // MIB}.0 MiB"
    assert found.conclusion == f"out of memory in prefill within {size}, {words}"
    text = table(found)
    assert "out of memory: tried to allocate 8 MiB" in text
    assert "the profile's own memory limit" in text


def test_a_model_that_could_not_be_loaded_leaves_its_side_blank() -> None:
    ended = OutOfMemory(phase=Phase.LOAD, message="too large", limit_bytes=100 * MIB)
    found = verify(PROFILE, CELL, Repeat(None, (), ended), 100 * MIB)
    held = Held(PROFILE, "p.json", CELL, "models/tiny", found, None, ended, (), CEILING, 100 * MIB)
    one = build_verify_document(held)
    assert one.here is None
    assert all(phase.measured_bytes is None and phase.inside is None for phase in one.phases)
    text = table(one)
    assert "measured: the model could not be loaded" in text
    assert "inside" not in text.split("out of memory")[0]


def test_the_ceiling_of_a_card_is_said_with_what_it_is_made_of() -> None:
    text = " ".join(table(document(limit=424 * MIB, ceiling=CEILING)).split())
    assert (
        "as x1-1gb: within 424.0 MiB, the 1.00 GiB that torch sees there less 600.0 MiB of driver context and loaded "
        "kernels; the kernels that run are this device's"
    ) in text
    assert "the cell took" not in text  # a limit on memory costs time


def test_what_is_otherwise_here_is_told() -> None:
    engine = msgspec.structs.replace(PROFILE.engine, version="5.26.0")
    text = table(document(engine=engine))
    assert "otherwise here: transformers release: 5.24.0 in the profile, 5.26.0 here" in text


def test_a_cell_that_the_profile_did_not_run_is_told_apart() -> None:
    found = document(shape=Shape(300, 4, 4))
    assert not found.predicted.ran_this_cell
    assert "context 300 + 4 new x 4 at once, which the profile did not run itself" in table(found)
    computed = make_profile(evidence=Evidence.COMPUTED)
    assert "did not run itself" not in table(document(profile=computed, shape=Shape(300, 4, 4)))


RAN_OUT = OutOfMemory(phase=None, message="killed")
ENDINGS = {
    "inside": lambda: document(),
    "outside": lambda: document(added=9 * MIB),
    "out of memory": lambda: document(ended=RAN_OUT, limit=424 * MIB, ceiling=CEILING),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_json_is_the_document_and_valid(name: str) -> None:
    one = ENDINGS[name]()
    written = load_verify_format("json").render_verify(one)
    assert msgspec.json.decode(written, type=VerifyDocument) == one
    assert list(Draft202012Validator(schema_of("verify")).iter_errors(json.loads(written))) == []


def test_names_cannot_steer_a_terminal() -> None:
    hard = document(where="p\x1b[31m\udce9.json")
    assert "\x1b" not in table(hard)
    assert json.loads(load_verify_format("json").render_verify(hard))["predicted"]["profile"] == "p\x1b[31m?.json"


def test_every_module_is_a_format() -> None:
    modules = {one.name for one in pkgutil.iter_modules(verify_formats.__path__)}
    assert modules == set(VERIFY_FORMATS)
    for path in VERIFY_FORMATS.values():
        assert callable(importlib.import_module(path).render_verify)
    with pytest.raises(UsageError, match="xlsx holds no verification; choose one of table, json"):
        load_verify_format("xlsx")
