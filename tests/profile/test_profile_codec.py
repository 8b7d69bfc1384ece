from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import KV_PER_TOKEN, make_profile
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profile_strategies import profiles

from gpufit.errors import UnreadableInputError
from gpufit.profile.cells import Failed, Measured, OutOfMemory, Skipped
from gpufit.profile.codec import decode, encode
from gpufit.profile.peaks import Phase
from gpufit.profile.record import SCHEMA_VERSION, Profile

FIXTURES = Path(__file__).parent / "fixtures"


def refusal(text: bytes) -> str:
    """The one line with which a text is refused as a profile."""
    with pytest.raises(UnreadableInputError) as refused:
        decode(text, "p.json")
    message = str(refused.value)
    assert message.startswith("p.json: ")
    assert "\n" not in message
    return message


def damaged(change: Callable[[dict[str, Any]], None]) -> bytes:
    """A profile's JSON after a change to it."""
    raw = json.loads(encode(make_profile()))
    change(raw)
    return json.dumps(raw).encode()


@settings(max_examples=80)
@given(profiles)
def test_a_round_trip_loses_nothing_and_gives_the_same_bytes_again(profile: Profile) -> None:
    text = encode(profile)
    assert decode(text, "p.json") == profile
    assert encode(decode(text, "p.json")) == text


def test_the_file_is_indented_json_in_utf_8_with_a_final_newline() -> None:
    text = encode(make_profile(notes=("größer ✓",)))
    assert text.endswith(b"}\n")
    assert "größer ✓" in text.decode("utf-8")
    assert text.decode().splitlines()[1] == f' "schema_version": {SCHEMA_VERSION},'


def test_what_is_stored_are_plain_numbers_and_words() -> None:
    raw = json.loads(encode(make_profile()))
    cell = raw["cells"][0]
    assert (cell["context_tokens"], cell["new_tokens"], cell["concurrency"]) == (128, 4, 1)
    prefill = cell["outcome"]["phases"][0]
    assert cell["outcome"]["type"] == "measured"
    assert prefill["phase"] == "prefill"
    assert prefill["parts"]["kv_cache_bytes"] == 128 * KV_PER_TOKEN
    assert raw["evidence"] == "measured"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "not whole JSON"),
        (b"not json", "not whole JSON"),
        (b"\xff\xfe{", "not whole JSON"),
        (b'{"schema_version": 1, "model": "\xff"}', "not whole JSON"),
        (b"[" * 100_000, "not whole JSON"),
        (b'{"a":' * 100_000, "not whole JSON"),
        (b"{} {}", "not whole JSON"),
        (b"[]", "no schema_version"),
        (b"null", "no schema_version"),
        (b"1", "no schema_version"),
        (b'"text"', "no schema_version"),
        (b"{}", "no schema_version"),
        (b'{"model_type": "llama"}', "the config of a model, not a profile"),
        (b'{"schema_version": 1, "profile": "p.json", "scenario": {}}', "an answer that gpufit gave, not a profile"),
        (b'{"schema_version": 1, "documents": []}', "an answer that gpufit gave, not a profile"),
        (b'{"name": "llama"}', "no schema_version"),
        (b'{"schema_version": "1"}', "no schema_version"),
        (b'{"schema_version": null}', "no schema_version"),
        (b'{"schema_version": 1.0}', "no schema_version"),
        (b'{"schema_version": true}', "no schema_version"),
        (b'{"schema_version": 0}', "no schema_version"),
        (b'{"schema_version": -1}', "no schema_version"),
        (b'{"schema_version": 1}', "missing required field"),
        (b'{"schema_version": 2}', "missing required field"),
        (b'{"schema_version": 3}', "upgrade gpufit"),
        (b'{"schema_version": 1, "memory_model": {"phases": [{"phase": "prefill"}]}}', "a phase without parts"),
        (b'{"schema_version": 99999999999999999999}', "upgrade gpufit"),
    ],
)
def test_what_is_not_a_profile_is_refused_in_one_line_that_says_why(text: bytes, said: str) -> None:
    assert said in refusal(text)


def test_a_newer_schema_is_refused_with_both_versions_even_when_its_keys_are_unknown() -> None:
    message = refusal(b'{"schema_version": 7, "what": {"is": "this"}}')
    assert "profile schema 7" in message
    assert f"reads up to {SCHEMA_VERSION}" in message


WHOLE = encode(make_profile())


@given(st.integers(0, len(WHOLE) - 3))
@example(len(WHOLE) - 3)
def test_every_truncation_is_refused(length: int) -> None:
    # Less the final brace and newline; anything shorter is not whole JSON.
    refusal(WHOLE[:length])


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_a_changed_byte_gives_a_consistent_profile_or_a_refusal_never_a_crash(position: int, change: int) -> None:
    text = bytearray(WHOLE)
    text[position] ^= change
    try:
        profile = decode(bytes(text), "p.json")
    except UnreadableInputError:
        return
    for cell in profile.measured_cells:
        assert isinstance(cell.outcome, Measured)
        for peak in cell.outcome.phases:
            assert peak.parts.total_bytes == peak.allocated_bytes


def negative_size(raw: dict[str, Any]) -> None:
    raw["cells"][0]["outcome"]["phases"][0]["parts"]["weights_bytes"] = -1


def fractional_size(raw: dict[str, Any]) -> None:
    raw["load"]["parts"]["weights_bytes"] += 0.5


def unknown_key(raw: dict[str, Any]) -> None:
    raw["model"]["colour"] = "blue"


def missing_key(raw: dict[str, Any]) -> None:
    del raw["engine"]["version"]


def unknown_phase(raw: dict[str, Any]) -> None:
    raw["load"]["phase"] = "warm_up"


def unknown_outcome(raw: dict[str, Any]) -> None:
    raw["cells"][0]["outcome"] = {"type": "exploded"}


def unknown_evidence(raw: dict[str, Any]) -> None:
    raw["evidence"] = "guessed"


def context_of_zero(raw: dict[str, Any]) -> None:
    raw["cells"][0]["context_tokens"] = 0


def negative_coefficient(raw: dict[str, Any]) -> None:
    raw["memory_model"]["phases"][0]["moments"][0]["parts"][2]["coefficients"][0]["bytes_per_unit"] = -1.0


def unknown_term(raw: dict[str, Any]) -> None:
    raw["memory_model"]["phases"][0]["moments"][0]["parts"][2]["coefficients"][0]["term"] = "per_moon"


def unknown_part(raw: dict[str, Any]) -> None:
    raw["memory_model"]["phases"][0]["moments"][0]["parts"][2]["part"] = "snacks_bytes"


def domain_of_nothing(raw: dict[str, Any]) -> None:
    raw["memory_model"]["max_concurrency"] = 0


@pytest.mark.parametrize(
    "change",
    [
        negative_size,
        fractional_size,
        unknown_key,
        missing_key,
        unknown_phase,
        unknown_outcome,
        unknown_evidence,
        context_of_zero,
        negative_coefficient,
        unknown_term,
        unknown_part,
        domain_of_nothing,
    ],
)
def test_a_damaged_field_is_refused_as_damage(change: Callable[[dict[str, Any]], None]) -> None:
    assert "damaged profile" in refusal(damaged(change))


def test_a_number_no_float_can_hold_is_refused() -> None:
    assert "p.json" in refusal(WHOLE.replace(b'"wall_seconds": 1.0', b'"wall_seconds": 1e999', 1))


@pytest.mark.parametrize("where", ["load", "cell"])
def test_parts_that_do_not_add_up_to_the_byte_are_refused(where: str) -> None:
    def change(raw: dict[str, Any]) -> None:
        peak = raw["load"] if where == "load" else raw["cells"][-1]["outcome"]["phases"][-1]
        peak["allocated_bytes"] += 1

    message = refusal(damaged(change))
    assert "add up to" in message
    assert ("load" if where == "load" else "decode") in message


def test_a_profile_of_version_1_stays_readable_for_ever() -> None:
    profile = decode((FIXTURES / "version-1.json").read_bytes(), "version-1.json")
    assert profile.schema_version == SCHEMA_VERSION
    assert profile.model.name == "tiny-llama"
    assert profile.model.position_limit == 32_768
    assert profile.environment.device.context_bytes == 552_599_552  # 527 MiB
    assert profile.precision.quantization is not None
    assert profile.precision.quantization.parameters == {"bits": "4"}
    assert [type(cell.outcome) for cell in profile.cells] == [Measured, OutOfMemory, Failed, Skipped]
    measured, out_of_memory = profile.cells[0].outcome, profile.cells[1].outcome
    assert isinstance(measured, Measured)
    assert [peak.phase for peak in measured.phases] == [Phase.PREFILL, Phase.DECODE]
    assert measured.phases[0].parts.kv_cache_bytes == 2_560_000
    assert measured.phases[0].readings[0].size_bytes == 300_000_000
    assert isinstance(out_of_memory, OutOfMemory)
    assert (out_of_memory.phase, out_of_memory.asked_bytes) == (Phase.PREFILL, 2**31)
    assert profile.memory_model is not None
    assert profile.memory_model.max_total_tokens == 2060
    # It knew one moment a phase, and no site.
    for phase in profile.memory_model.phases:
        (moment,) = phase.moments
        assert moment.site == ""
        assert {one.part: one.coefficients for one in moment.parts}["weights_bytes"][0].bytes_per_unit == 256_000_000
    assert profile.notes == ("größer als gedacht ✓",)


def test_a_moment_above_the_peak_of_its_phase_is_refused() -> None:
    def change(raw: dict[str, Any]) -> None:
        peak = raw["cells"][0]["outcome"]["phases"][0]
        peak["moments"] = [{"site": "lm_head", "parts": {"weights_bytes": peak["allocated_bytes"] + 1}}]

    assert "a prefill phase has a moment above its peak" in refusal(damaged(change))
