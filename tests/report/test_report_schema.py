"""The published schemas hold for what is really written, and refuse what is not such a document."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import make_profile
from jsonschema import Draft202012Validator
from model_files import REPOSITORY
from order_builders import empty_order, hard_order
from report_builders import hard_document
from report_readers import as_json, divided_document, document_without_cards, real_document, served_document

from gpufit.advice.comparison import compare
from gpufit.cli.commands import schema as command
from gpufit.memory.terms import Shape
from gpufit.profile.codec import encode
from gpufit.report.compare_document import build_compare_document
from gpufit.report.document import FitDocument
from gpufit.report.fits_document import build_fits_document, named
from gpufit.report.order_document import OrderDocument
from gpufit.report.order_registry import load_order_format
from gpufit.report.registry import load_compare_format, load_format
from gpufit.report.schema import DOCUMENTS, schema_of


def faults(name: str, document: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(schema_of(name)).iter_errors(document)]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_a_schema_and_the_same_each_time(name: str) -> None:
    Draft202012Validator.check_schema(schema_of(name))
    assert schema_of(name) == schema_of(name)
    assert schema_of(name)["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


@pytest.mark.parametrize("make", [hard_document, real_document, document_without_cards])
def test_what_the_json_format_writes_is_valid(make: Callable[[], FitDocument]) -> None:
    assert faults("fit", as_json(make())) == []


def test_a_server_s_document_is_valid(tmp_path: Path) -> None:
    assert faults("fit", as_json(served_document(tmp_path, "h100-sxm", "t4"))) == []


def test_several_questions_are_valid_together(tmp_path: Path) -> None:
    served = served_document(tmp_path, "h100-sxm", "t4")
    for documents in ([hard_document(), real_document()], [named(served, "chat"), named(served, "=rag|ü")]):
        written = load_format("json").render_fits(build_fits_document(documents))
        assert faults("fits", json.loads(written)) == []


def test_an_arrangement_s_prices_are_part_of_the_schema(tmp_path: Path) -> None:
    document = as_json(divided_document(tmp_path, "h100-sxm-80gb"))
    assert faults("fit", document) == []
    document["cards"][0]["arrangements"][0]["prices"][0]["total_price"] = "much"
    assert len(faults("fit", document)) == 1


@pytest.mark.parametrize("make", [hard_order, empty_order])
def test_an_order_is_valid(make: Callable[[], OrderDocument]) -> None:
    assert faults("order", json.loads(load_order_format("json").render_order(make()))) == []


def test_a_comparison_is_valid() -> None:
    profile = make_profile()
    other = msgspec.structs.replace(profile, notes=("=1+1 | ü",), memory_model=None)
    for b in (profile, other):
        compared = compare(profile, b, Shape(512, 4, 4))
        document = build_compare_document(profile, b, ("a.json", "b.json"), Shape(512, 4, 4), compared)
        written = json.loads(load_compare_format("json").render_compare(document))
        assert faults("compare", written) == []
        written["phases"][0]["difference_bytes"] = 0.5
        assert len(faults("compare", written)) == 1


RECORDED = sorted((REPOSITORY / "tests" / "facts" / "profiles").glob("*.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_profiles_are_valid(path: Path) -> None:
    assert faults("profile", json.loads(path.read_text(encoding="utf-8"))) == []


def test_a_profile_is_valid_as_it_is_written() -> None:
    assert faults("profile", json.loads(encode(make_profile()))) == []


def drop_need(document: dict[str, Any]) -> None:
    del document["cards"][0]["need_bytes"]


def size_in_words(document: dict[str, Any]) -> None:
    document["cards"][0]["capacity_bytes"] = "80 GiB"


def half_a_byte(document: dict[str, Any]) -> None:
    document["cards"][0]["need_bytes"] = 0.5


def another_verdict(document: dict[str, Any]) -> None:
    document["cards"][0]["verdict"] = "perhaps"


def negative_part(document: dict[str, Any]) -> None:
    document["phases"]["prefill"]["parts"]["weights_bytes"] = -1


def unknown_key(document: dict[str, Any]) -> None:
    document["surprise"] = 1


def older(document: dict[str, Any]) -> None:
    document["schema_version"] -= 1


def test_a_document_of_another_version_within_is_refused() -> None:
    documents = [hard_document(), msgspec.structs.replace(hard_document(), profile="b")]
    written = json.loads(load_format("json").render_fits(build_fits_document(documents)))
    assert faults("fits", written) == []
    older(written["documents"][1])
    assert len(faults("fits", written)) == 1


@pytest.mark.parametrize(
    "spoil", [drop_need, size_in_words, half_a_byte, another_verdict, negative_part, unknown_key, older]
)
def test_what_is_no_such_document_is_refused(spoil: Callable[[dict[str, Any]], None]) -> None:
    document = as_json(hard_document())
    spoiled = copy.deepcopy(document)
    spoil(spoiled)
    assert faults("fit", document) == []
    assert len(faults("fit", spoiled)) == 1


WEIGHTS = {
    "properties": {
        "weights_bytes": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "Parameter storages, tied weights once.",
        }
    }
}
"""What the record of parts says of one."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_key_of_a_record_is_in_the_schema_with_what_the_record_says_of_it(name: str) -> None:
    definitions = schema_of(name)["$defs"]
    assert ("Parts" in definitions) is (name in ("fit", "fits", "profile"))
    assert definitions.get("Parts", WEIGHTS)["properties"]["weights_bytes"] == WEIGHTS["properties"]["weights_bytes"]
    assert definitions["Engine"]["description"] == "What ran the model. A memory figure holds for this engine only."
    record, _ = DOCUMENTS[name]
    assert set(definitions[record.__name__]["properties"]) == {field.name for field in msgspec.structs.fields(record)}
    assert all("\n" not in one.get("description", "") for one in definitions.values())


def test_the_command_offers_every_document() -> None:
    assert list(command._DOCUMENTS) == list(DOCUMENTS)
