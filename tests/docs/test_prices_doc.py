"""docs/prices.md: its commands, run in its order on the day it names, say what stands there."""

from __future__ import annotations

import datetime
import re
import shlex
import shutil
from pathlib import Path

import pytest
from model_files import REPOSITORY

from gpufit.catalog import store
from gpufit.catalog.codec import parse_offer_book
from gpufit.catalog.offers import STALE_DAYS
from gpufit.cli import offers
from gpufit.cli.commands import catalog
from gpufit.cli.main import main

TEXT = (REPOSITORY / "docs" / "prices.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```console\n\$ (gpufit [^\n]+)\n(.*?)```", TEXT, re.DOTALL)
(BOOK,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
DAY = datetime.date(2026, 11, 30)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the recorded profiles, on the day of the text, by a user without files of their own."""
    shutil.copytree(REPOSITORY / "tests" / "facts" / "profiles", tmp_path / "profiles")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(store, "user_catalog_dir", lambda: tmp_path / "none")
    monkeypatch.setattr(store, "shipped_catalog_dir", lambda: Path("catalog"))
    (tmp_path / "catalog").symlink_to(REPOSITORY / "catalog")
    for module in (offers, catalog):
        monkeypatch.setattr(module, "today", lambda: DAY)
    return tmp_path


def test_the_commands_say_what_stands_there(here: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert [command.split()[1:3] for command, _ in EXAMPLES][:2] == [["catalog", "offers"], ["catalog", "check"]]
    for command, shown in EXAMPLES:
        assert main(shlex.split(command)[1:]) == 0
        printed = capsysbinary.readouterr().out.decode()
        # What is shown of a long table is its beginning.
        assert printed.startswith(shown), command
        if "--template" in command:
            fill_in(here / "offers" / "acme.toml")


def test_the_book_of_the_text_loads_as_it_stands_there(here: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (here / "pasted.toml").write_text(BOOK, encoding="utf-8")
    assert main(["catalog", "check", "pasted.toml"]) == 0
    assert capsysbinary.readouterr().out.decode().startswith("pasted.toml: sound, 3 prices for 2 cards")


def fill_in(path: Path) -> None:
    """Write the text's book over the template's lines, which it must differ from in prices and date alone."""
    template = path.read_text(encoding="utf-8")
    own, tables = template.split("schema_version = 1\n")
    version, book = BOOK.split("\n", 1)
    assert version == "schema_version = 1"
    blank = re.sub(r"^(price_\d+_days =).*$", r"# \1", book, flags=re.MULTILINE)
    for line in blank.splitlines():
        assert line in tables or line.startswith("date ="), line
    path.write_text(f"{own}{BOOK}", encoding="utf-8")
    assert parse_offer_book(path.read_text(encoding="utf-8"), "acme.toml", "acme").offer("l40s-48gb").prices


def test_the_age_at_which_a_price_is_stale() -> None:
    assert f"older than {STALE_DAYS} days" in TEXT
