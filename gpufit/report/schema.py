"""The JSON Schemas of what gpufit writes, made from the records: each key with what its record says of it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from gpufit.profile.record import Profile
from gpufit.report.check_document import CheckDocument
from gpufit.report.compare_document import CompareDocument
from gpufit.report.curve import CurveDocument
from gpufit.report.document import FitDocument
from gpufit.report.fits_document import FitsDocument
from gpufit.report.growth import GrowthDocument
from gpufit.report.order_document import OrderDocument
from gpufit.report.precision import PrecisionDocument
from gpufit.report.profiles import ProfilesDocument
from gpufit.report.times import TimesDocument
from gpufit.report.verify_document import VerifyDocument

DIALECT = "https://json-schema.org/draft/2020-12/schema"

DOCUMENTS: dict[str, tuple[type[msgspec.Struct], str]] = {
    "fit": (FitDocument, "what `gpufit fit --json` and `gpufit estimate --json` write"),
    "fits": (FitsDocument, "what `gpufit fit --json` writes for several profiles or scenarios"),
    "order": (OrderDocument, "what `gpufit order --json` writes"),
    "compare": (CompareDocument, "what `gpufit compare --json` writes"),
    "check": (CheckDocument, "what `gpufit check --json` writes"),
    "verify": (VerifyDocument, "what `gpufit verify --json` writes"),
    "curve": (CurveDocument, "what key e of `gpufit tui` writes of the curve"),
    "growth": (GrowthDocument, "what key e of `gpufit tui` writes of the growth"),
    "precision": (PrecisionDocument, "what key e of `gpufit tui` writes of the precision"),
    "times": (TimesDocument, "what key e of `gpufit tui` writes of the times"),
    "profiles": (ProfilesDocument, "what key e of `gpufit tui` writes of the list of profiles"),
    "profile": (Profile, "a profile, as `gpufit profile`, `simulate` and `estimate --save` write it"),
}
"""What has a schema: its record, and where it comes from."""


def schema_of(name: str) -> dict[str, Any]:
    """The schema of a document by its name in DOCUMENTS; one of another `schema_version`, or that holds one of another,
    is not valid by it.

    A key that has a default may be missing, since files written before it was added are still read; all that this
    version writes has every key.
    """
    root, words = DOCUMENTS[name]
    (reference,), definitions = msgspec.json.schema_components([root], ref_template="#/$defs/{name}")
    for record in {record.__name__: record for record in _records(root)}.values():
        _describe(definitions[record.__name__], record)
    for definition in definitions.values():
        version = definition.get("properties", {}).get("schema_version")
        if version is not None:
            version["const"] = version.pop("default")
    title = f"gpufit {name}: {words}"
    return {"$schema": DIALECT, "title": title, **reference, "$defs": dict(sorted(definitions.items()))}


def _describe(definition: dict[str, Any], record: type[msgspec.Struct]) -> None:
    """Put what the record says of its fields beside their types, in one line each."""
    definition["description"] = " ".join(definition["description"].split())
    for key, words in _field_words(record).items():
        if key in definition["properties"]:
            definition["properties"][key]["description"] = words


@cache
def _field_words(record: type[msgspec.Struct]) -> dict[str, str]:
    """Field -> the string under it in the record's source, in one line."""
    (tree,) = ast.parse(inspect.getsource(record)).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, words in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(words):
            found[field.target.id] = " ".join(ast.literal_eval(words.value).split())  # type: ignore[attr-defined]
    return found


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _records(root: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """The record and all that it holds, each as often as it is found."""
    waiting: list[Any] = [msgspec.inspect.type_info(root)]
    seen = set()
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, msgspec.inspect.StructType) and kind.cls not in seen:
            seen.add(kind.cls)
            yield kind.cls
            waiting += [field.type for field in kind.fields]
        waiting += _inside(kind)


def _inside(kind: Any) -> list[Any]:
    """The types that a union, a collection or a mapping is made of."""
    if isinstance(kind, msgspec.inspect.UnionType):
        return list(kind.types)
    if isinstance(kind, msgspec.inspect.VarTupleType):
        return [kind.item_type]
    if isinstance(kind, msgspec.inspect.TupleType):
        return list(kind.item_types)
    return [kind.value_type] if isinstance(kind, msgspec.inspect.DictType) else []
