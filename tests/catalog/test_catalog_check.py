"""Everything that is wrong with an offer book, said at once."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from gpufit.catalog.check import check_book, check_books, check_cards
from gpufit.errors import UnreadableInputError

TODAY = datetime.date(2026, 2, 1)
CARDS = ("x1-48gb", "x2-24gb")
SOUND = """
schema_version = 1
seller = "Acme"
currency = "EUR"
date = 2026-01-31
[x1-48gb]
lot_size = 2
price_3_days = 100
"""


def faults(folder: Path, text: str) -> list[str]:
    """What is said of a book, without the file's name that each line must begin with."""
    path = folder / "acme.toml"
    path.write_text(text, encoding="utf-8")
    found = check_book(path, CARDS, TODAY).faults
    assert all(one.startswith(f"{path}: ") and "\n" not in one for one in found)
    return [one.removeprefix(f"{path}: ") for one in found]


def test_a_sound_book_has_no_fault_and_is_read(tmp_path: Path) -> None:
    assert faults(tmp_path, SOUND) == []
    book = check_book(tmp_path / "acme.toml", CARDS, TODAY).book
    assert book is not None
    assert book.offer("x1-48gb").prices == {3: 100.0}


def test_all_that_is_wrong_is_said_a_line_each(tmp_path: Path) -> None:
    text = """
    schema_version = 1
    currency = "euro"
    [x1-48gb]
    lot_size = 2
    price_3_days = 0
    price_7_day = 10
    [x1-84gb]
    price_7_days = 10
    """
    assert faults(tmp_path, text) == [
        "currency: 'euro' is not a code of three capital letters (ISO 4217); write EUR, USD, ...",
        "card x1-48gb: price_3_days: expected float > 0.0; correct it, or leave the key out where the value is not "
        "known",
        "card x1-48gb: price_7_day: unknown key; did you mean price_7_days?",
        "card x1-84gb: lot_size: missing; add it",
        "seller is missing; a book with prices must say it",
        "date is missing; a book with prices must say it",
        "card x1-84gb is not in the catalog; did you mean x1-48gb?",
    ]


def test_no_fault_hides_another(tmp_path: Path) -> None:
    """What is wrong with the file, its figures, its keys, its cards and its date, in one run."""
    text = """
    schema_version = 9
    currency = "EUR"
    date = 2026-02-02
    sold = true
    [x1-84gb]
    lot_size = 0
    price_3_days = inf
    """
    assert faults(tmp_path, text) == [
        "schema_version 9 is newer than this gpufit reads (1); upgrade gpufit",
        "x1-84gb.price_3_days: inf is not a figure; leave the key out",
        "sold: unknown key; remove it or correct its spelling",
        "card x1-84gb: lot_size: expected int >= 1; correct it, or leave the key out where the value is not known",
        "seller is missing; a book with prices must say it",
        "card x1-84gb is not in the catalog; did you mean x1-48gb?",
        "date: 2026-02-02 is still to come; write the day on which the prices were read",
    ]


@pytest.mark.parametrize(
    ("prices", "said"),
    [
        ("price_3_days = 100\nprice_7_days = 99", "price_7_days: 99.00 is odd, less than for 3 days"),
        ("price_7_days = 100\nprice_30_days = 99", "price_30_days: 99.00 is odd, less than for 7 days"),
        # Two cards for three days at a cent: 0.01 / 2 / 3 = 0.0017 a card and day.
        ("price_3_days = 0.01", "price_3_days: 0.01 is odd, 0.0017 a card and day"),
    ],
)
def test_a_price_that_is_hardly_meant_is_warned_of_and_kept(tmp_path: Path, prices: str, said: str) -> None:
    path = tmp_path / "acme.toml"
    path.write_text(SOUND.replace("price_3_days = 100", prices), encoding="utf-8")
    found = check_book(path, CARDS, TODAY)
    assert found.faults == ()
    assert found.warnings == (f"{path}: warning: card x1-48gb: {said}",)
    assert found.book is not None
    assert found.book.offer("x1-48gb").prices


@pytest.mark.parametrize(
    "prices",
    ["price_3_days = 100\nprice_7_days = 100\nprice_30_days = 100", "price_3_days = 6", "price_30_days = 1e12"],
)
def test_a_flat_price_a_low_one_and_a_high_one_are_not_odd(tmp_path: Path, prices: str) -> None:
    """6 for two cards and three days are 1 a card and day."""
    path = tmp_path / "acme.toml"
    path.write_text(SOUND.replace("price_3_days = 100", prices), encoding="utf-8")
    assert check_book(path, CARDS, TODAY).warnings == ()


def test_card_files_are_checked_to_their_end_and_their_cards_are_known(tmp_path: Path) -> None:
    """Three broken cards in one file and one of them in another again: five lines, and every id is a card's."""
    one, other = tmp_path / "a.toml", tmp_path / "b.toml"
    one.write_text("schema_version = 1\nkey = 1\n[x1-48gb]\n[x2-24gb]\nmemory.nominal_gb = inf\n", encoding="utf-8")
    other.write_text("schema_version = 1\n[x1-48gb]\n", encoding="utf-8")
    found = check_cards([tmp_path])
    assert found.card_ids == CARDS
    assert [line.split(": ", 2)[:2] for line in found.faults] == [
        [str(one), "x2-24gb.memory.nominal_gb"],
        [str(one), "key"],
        [str(one), "card x1-48gb"],
        [str(other), "card x1-48gb"],
        [str(other), f"card x1-48gb is in {one} too; keep one of them"],
    ]
    with pytest.raises(UnreadableInputError, match="no such catalog folder"):
        check_cards([tmp_path / "none"])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[x1-48gb]", "[x1-84gb]", "card x1-84gb is not in the catalog; did you mean x1-48gb?"),
        ("date = 2026-01-31", "", "date is missing; a book with prices must say it"),
        ('currency = "EUR"', "", "currency is missing; a book with prices must say it"),
        ("2026-01-31", "2026-02-02", "date: 2026-02-02 is still to come; write the day on which the prices were read"),
        ("seller =", "seler =", "seler: unknown key; did you mean seller?"),
        ("[x1-48gb]", "[X1]", "card 'X1': an id is lower-case letters, digits and single hyphens, as h100-pcie-80gb"),
        ("= 100", "= nan", "x1-48gb.price_3_days: nan is not a figure; leave the key out"),
    ],
)
def test_each_fault_by_itself(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in SOUND
    assert said in faults(tmp_path, SOUND.replace(old, new, 1))


def test_the_day_itself_is_no_day_to_come(tmp_path: Path) -> None:
    assert faults(tmp_path, SOUND.replace("2026-01-31", str(TODAY))) == []


def test_a_file_that_is_no_book_at_all_is_one_line(tmp_path: Path) -> None:
    assert faults(tmp_path, "price = ")[0].startswith("not valid TOML")
    assert len(faults(tmp_path, "price = ")) == 1
    (tmp_path / "acme.toml").write_bytes(b"\xff\xfe")
    (said,) = check_book(tmp_path / "acme.toml", CARDS, TODAY).faults
    assert said == f"{tmp_path / 'acme.toml'}: cannot be read (not text in UTF-8, from byte 1 on)"


def test_every_book_of_every_folder_is_checked_and_none_hides_another(tmp_path: Path) -> None:
    for folder, name, text in (("one", "bad", "x ="), ("one", "good", SOUND), ("two", "good", SOUND)):
        (tmp_path / folder / "offers").mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "offers" / f"{name}.toml").write_text(text, encoding="utf-8")
    found = check_books([tmp_path / "one", tmp_path / "two"], CARDS, TODAY)
    assert [(one.path.parent.parent.name, one.path.stem, bool(one.faults)) for one in found] == [
        ("one", "bad", True),
        ("one", "good", False),
        ("two", "good", False),
    ]
