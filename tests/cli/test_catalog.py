"""`gpufit catalog`: list, show, offers, check, path."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest
from conftest import Run


def test_list_has_a_line_for_every_card(gpufit: Run) -> None:
    done = gpufit("catalog", "list")
    assert done.code == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 2 + 41
    (b200,) = [line.split() for line in lines if line.startswith("b200-sxm-180gb")]
    assert b200[1:3] == ["180", "178.34"]
    assert b200[-1] == "2"


def test_list_as_json(gpufit: Run) -> None:
    cards = json.loads(gpufit("catalog", "list", "--json").stdout)
    assert len(cards) == 41
    assert all(card["sources"] for card in cards)


def test_show_has_figures_and_sources(gpufit: Run) -> None:
    done = gpufit("catalog", "show", "H100 PCIe")
    assert done.code == 0
    assert "planning_torch_gib: 79.11" in done.stdout
    assert "bandwidth_gb_s: 2000" in done.stdout
    assert "sources:" in done.stdout
    assert "(" not in done.stdout.split("device_names:")[1].splitlines()[0]


def test_show_has_what_each_book_asks_with_its_source(gpufit: Run, tmp_path: Path) -> None:
    _book(tmp_path, "acme")
    done = gpufit("catalog", "show", "l40s", "--catalog", tmp_path)
    assert "offers:\n  public-indicative:" in done.stdout
    assert "note: 0.915 USD a card and hour (median of 8 offers, 0.55 to 1.95)" in done.stdout
    shown = json.loads(gpufit("catalog", "show", "l40s", "--json", "--catalog", tmp_path).stdout)
    assert shown["offers"]["acme"] == {
        "seller": "acme Ltd",
        "currency": "EUR",
        "date": str(datetime.date.today()),
        "lot_size": 1,
        "price_7_days": 100.0,
        "price_30_days": 300.5,
    }
    assert "offers" not in json.loads(gpufit("catalog", "show", "mi250x", "--json").stdout)


def test_check_reads_everything(gpufit: Run) -> None:
    done = gpufit("catalog", "check")
    assert done.code == 0
    assert done.stdout.startswith("41 cards")


def test_check_finds_a_fault_and_names_it(gpufit: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('schema_version = 1\n[x]\nvendor = "NVIDIA"\nname = "X"\ncolour = "red"\n')
    done = gpufit("catalog", "check", "--catalog", tmp_path)
    assert done.code == 3
    assert done.stdout.startswith(f"{tmp_path / 'mine.toml'}: card x: colour: unknown key")
    assert "offers/blank.toml: sound" in done.stdout


def test_path_names_the_folders(gpufit: Run) -> None:
    lines = gpufit("catalog", "path").stdout.splitlines()
    assert Path(lines[0]).is_dir()
    assert lines[1].endswith("(not there)")


def _book(folder: Path, name: str, days_ago: int = 0, **own: str) -> Path:
    """A book of two prices for the L40S, read some days ago."""
    (folder / "offers").mkdir(parents=True, exist_ok=True)
    read_on = datetime.date.today() - datetime.timedelta(days=days_ago)
    lines = [f'{key} = "{value}"' for key, value in ({"seller": f"{name} Ltd", "currency": "EUR"} | own).items()]
    path = folder / "offers" / f"{name}.toml"
    path.write_text(
        "\n".join(["schema_version = 1", *lines, f"date = {read_on}", "[l40s-48gb]", "lot_size = 1"])
        + "\nprice_7_days = 100\nprice_30_days = 300.5\n"
    )
    return path


def test_offers_lists_every_book_and_which_are_used(gpufit: Run, tmp_path: Path) -> None:
    path = _book(tmp_path, "acme", days_ago=31)
    done = gpufit("catalog", "offers", "--catalog", tmp_path)
    assert done.code == 0
    rows = {line.split()[0]: line for line in done.stdout.splitlines()[2:]}
    assert set(rows) == {"blank", "public-indicative", "acme"}
    assert "acme Ltd" in rows["acme"]
    assert "31 days, stale" in rows["acme"]
    assert "by default" in rows["acme"]
    assert str(path) in rows["acme"]
    assert "if named" in rows["blank"]
    assert "if named" in rows["public-indicative"]


def test_offers_as_json(gpufit: Run, tmp_path: Path) -> None:
    path = _book(tmp_path, "acme", days_ago=30)
    (acme,) = [
        book
        for book in json.loads(gpufit("catalog", "offers", "--json", "--catalog", tmp_path).stdout)
        if book["name"] == "acme"
    ]
    assert acme == {
        "name": "acme",
        "seller": "acme Ltd",
        "currency": "EUR",
        "date": str(datetime.date.today() - datetime.timedelta(days=30)),
        "age_days": 30,
        "stale": False,
        "prices": 2,
        "used": "default",
        "from": str(path),
    }


def test_a_new_book_is_blank_and_once_filled_in_it_prices(gpufit: Run, tmp_path: Path) -> None:
    path = tmp_path / "new" / "offers" / "acme.toml"
    made = gpufit(
        "catalog", "offers", "--template", "-o", path, "--card", "l40s", "--seller", "Acme", "--currency", "chf"
    )
    assert (made.code, made.stdout) == (0, "")
    assert made.stderr.splitlines() == [
        f"made the folder {path.parent}",
        f"wrote {path}; fill it in, then: gpufit catalog check {path}",
    ]
    assert gpufit("catalog", "check", path).stdout == f"{path}: sound, no price filled in\n"
    text = path.read_text().replace("# price_7_days =", "price_7_days = 99.5").replace("# date =", "date =")
    path.write_text(text)
    checked = gpufit("catalog", "check", path)
    assert checked.stdout == f"{path}: sound, 1 price for 1 card (Acme, CHF, {datetime.date.today()})\n"
    assert "l40s-48gb" in gpufit("catalog", "offers", "--template", "--catalog", tmp_path / "new").stdout


def test_a_new_book_never_takes_the_place_of_a_file(gpufit: Run, tmp_path: Path) -> None:
    path = _book(tmp_path, "acme")
    before = path.read_text()
    done = gpufit("catalog", "offers", "--template", "-o", path)
    assert (done.code, path.read_text()) == (2, before)
    assert done.error == f"gpufit: {path} is there already; name another file, or remove it first"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--seller", "Acme"), "--seller is for a new book: add --template"),
        (("-o", "a.toml"), "--output is for a new book: add --template"),
        (("--template", "--json"), "--template writes TOML: leave --json out"),
        (("--template", "-o", "acme.txt"), "acme.txt: an offer book is a .toml file; name it offers/SELLER.toml"),
        (("--template", "--card", "h100"), "'h100' could be several cards"),
    ],
)
def test_what_cannot_be_made_is_one_line(gpufit: Run, arguments: tuple[str, ...], said: str) -> None:
    done = gpufit("catalog", "offers", *arguments)
    assert (done.code, done.stdout) == (2, "")
    assert said in done.error


def test_a_currency_s_code_has_three_letters(gpufit: Run) -> None:
    done = gpufit("catalog", "offers", "--template", "--currency", "euro")
    assert done.code == 2
    assert "--currency must be a code of three letters, EUR or USD, not 'euro'" in done.stderr


def test_check_says_all_that_is_wrong_with_each_book(gpufit: Run, tmp_path: Path) -> None:
    bad, old = _book(tmp_path, "bad", days_ago=-1, currency="euro"), _book(tmp_path, "old", days_ago=74)
    bad.write_text(bad.read_text().replace("price_7_days = 100", "price_7_days = 0"))
    done = gpufit("catalog", "check", "--catalog", tmp_path)
    assert done.code == 3
    of_bad = [line for line in done.stdout.splitlines() if line.startswith(f"{bad}: ")]
    assert len(of_bad) == 3
    assert "currency: 'euro' is not a code" in of_bad[0]
    assert "card l40s-48gb: price_7_days: expected float > 0.0" in of_bad[1]
    assert "is still to come" in of_bad[2]
    (of_old,) = [line for line in done.stdout.splitlines() if line.startswith(f"{old}: ")]
    assert of_old.endswith("74 days old: ask again")
