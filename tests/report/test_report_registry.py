from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

from gpufit.errors import UsageError
from gpufit.report import formats, tabular_formats
from gpufit.report.registry import EXTENSIONS, FORMATS, TABULAR_FORMATS, format_for, load_format, load_tabular_format


def test_the_registry_and_the_folder_name_the_same_formats() -> None:
    modules = {f"gpufit.report.formats.{module.name}" for module in pkgutil.iter_modules(formats.__path__)}
    assert set(FORMATS.values()) == modules
    assert all(path == f"gpufit.report.formats.{name}" for name, path in FORMATS.items())


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_has_a_renderer_a_docstring_and_says_whether_it_is_binary(name: str) -> None:
    module = importlib.import_module(FORMATS[name])
    assert load_format(name) is module
    assert list(inspect.signature(module.render_fit).parameters) == ["document"]
    assert module.BINARY is (name == "xlsx")
    assert module.__doc__
    assert list(inspect.signature(module.render_fits).parameters) == ["documents"]
    assert module.render_fit.__doc__
    assert module.render_fits.__doc__


def test_tables_have_a_module_for_each_of_their_formats() -> None:
    modules = {
        f"gpufit.report.tabular_formats.{module.name}" for module in pkgutil.iter_modules(tabular_formats.__path__)
    }
    assert set(TABULAR_FORMATS.values()) == modules
    assert set(TABULAR_FORMATS) <= set(FORMATS)
    for name in TABULAR_FORMATS:
        module = importlib.import_module(TABULAR_FORMATS[name])
        assert load_tabular_format(name) is module
        assert list(inspect.signature(module.render_tables).parameters) == ["report"]
        assert module.BINARY is (name == "xlsx")
        assert module.__doc__
        assert module.render_tables.__doc__
    with pytest.raises(
        UsageError, match="'table' is no format of these tables; choose one of csv, json, xlsx, html, markdown"
    ):
        load_tabular_format("table")


def test_every_extension_leads_to_a_format_and_every_format_has_one() -> None:
    assert set(EXTENSIONS.values()) == set(FORMATS)
    assert all(extension.startswith(".") and extension == extension.lower() for extension in EXTENSIONS)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("out.json", "json"),
        ("a.b/out.CSV", "csv"),
        ("out/x.tar.md", "markdown"),
        ("x.xlsx", "xlsx"),
        ("cards.txt", "table"),
        ("page.HTML", "html"),
    ],
)
def test_a_file_s_extension_chooses_the_format(path: str, name: str) -> None:
    assert format_for(path) == name


@pytest.mark.parametrize("path", ["out", "out.", ".json", "out.xls", "folder.json/out", ""])
def test_an_unknown_extension_is_refused_with_those_that_are_known(path: str) -> None:
    with pytest.raises(UsageError, match=r"cannot tell the format.*\.html or --format"):
        format_for(path)


@pytest.mark.parametrize("name", ["yaml", "", "JSON", "gpufit.report.formats.json"])
def test_a_name_that_is_no_format_is_refused_with_the_names_that_are(name: str) -> None:
    with pytest.raises(UsageError, match="choose one of table, json, csv, markdown, xlsx, html"):
        load_format(name)
