from __future__ import annotations

from pathlib import Path

import pytest
from catalog_builders import MINIMAL

from gpufit import datadir
from gpufit.catalog import store
from gpufit.catalog.store import load_catalog, load_folders, load_offer_book
from gpufit.errors import UnreadableInputError

BLANK = "schema_version = 1\n[x1-48gb]\nlot_size = 2\n"
PRICED = """
schema_version = 1
seller = "S"
currency = "EUR"
date = 2026-01-31
[x2-24gb]
lot_size = 1
price_3_days = 5
"""


def _folder(path: Path, cards: dict[str, str] | None = None, offers: dict[str, str] | None = None) -> Path:
    (path / "offers").mkdir(parents=True)
    for name, text in (cards or {}).items():
        (path / name).write_text(text, encoding="utf-8")
    for name, text in (offers or {}).items():
        (path / "offers" / name).write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return _folder(tmp_path / "base", {"a.toml": MINIMAL}, {"blank.toml": BLANK})


def test_a_later_folder_adds_and_replaces_by_id(base: Path, tmp_path: Path) -> None:
    mine = _folder(
        tmp_path / "mine",
        {
            "m.toml": MINIMAL.replace("Card X1", "My X1"),
            "n.toml": MINIMAL.replace("x1-48gb", "x2-24gb").replace("= 48", "= 24"),
        },
    )
    catalog = load_folders([base, mine])
    assert [card.id for card in catalog.cards] == ["x2-24gb", "x1-48gb"]
    assert catalog.card("x1-48gb").name == "My X1"
    origin = catalog.card_origins["x1-48gb"]
    assert (origin.path, origin.replaces) == (str(mine / "m.toml"), str(base / "a.toml"))
    assert catalog.card_origins["x2-24gb"].replaces is None


def test_a_replacing_row_replaces_the_whole_row(base: Path, tmp_path: Path) -> None:
    full = MINIMAL.replace("nominal_gb = 48", "nominal_gb = 48\nbandwidth_gb_s = 864")
    under = _folder(tmp_path / "under", {"a.toml": full})
    assert load_folders([under]).card("x1-48gb").memory.bandwidth_gb_s == 864
    assert load_folders([under, base]).card("x1-48gb").memory.bandwidth_gb_s is None


def test_a_users_book_gets_the_blank_books_lot_sizes(base: Path, tmp_path: Path) -> None:
    mine = _folder(tmp_path / "mine", {"n.toml": MINIMAL.replace("x1-48gb", "x2-24gb")}, {"seller.toml": PRICED})
    catalog = load_folders([base, mine])
    assert [book.name for book in catalog.offer_books] == ["blank", "seller"]
    (book,) = catalog.default_books
    assert (book.name, book.lot_size("x1-48gb"), book.offer("x1-48gb").prices) == ("seller", 2, {})
    assert book.offer("x2-24gb").prices == {3: 5}
    assert catalog.book_origins["seller"].path == str(mine / "offers" / "seller.toml")


def test_a_users_own_blank_book_replaces_ours_and_keeps_its_lot_sizes(base: Path, tmp_path: Path) -> None:
    mine = _folder(tmp_path / "mine", {"n.toml": MINIMAL.replace("x1-48gb", "x2-24gb")}, {"blank.toml": PRICED})
    catalog = load_folders([base, mine])
    assert [book.name for book in catalog.offer_books] == ["blank"]
    (book,) = catalog.default_books
    assert book.lot_size("x1-48gb") == 2
    assert book.offer("x2-24gb").prices == {3: 5}


def _refusal(*folders: Path) -> str:
    with pytest.raises(UnreadableInputError) as caught:
        load_folders(folders)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_one_id_twice_in_a_folder_is_a_mistake(base: Path) -> None:
    (base / "b.toml").write_text(MINIMAL, encoding="utf-8")
    assert _refusal(base) == f"{base / 'b.toml'}: card x1-48gb is in {base / 'a.toml'} too; keep one of them"


def test_an_offer_for_no_card_is_a_mistake(base: Path) -> None:
    (base / "offers" / "s.toml").write_text(BLANK.replace("x1-48gb", "x1-84gb"), encoding="utf-8")
    file = base / "offers" / "s.toml"
    assert _refusal(base) == f"{file}: card x1-84gb is not in the catalog; did you mean x1-48gb?"
    file.write_text(BLANK.replace("x1-48gb", "quadro"), encoding="utf-8")
    assert _refusal(base).endswith("quadro is not in the catalog; correct the id, or add the card's own file")


def test_a_book_from_a_file_of_its_own_has_the_usual_lots_and_is_checked(base: Path, tmp_path: Path) -> None:
    catalog = load_folders([base])
    file = tmp_path / "acme.toml"
    file.write_text(PRICED.replace("x2-24gb", "x1-48gb"), encoding="utf-8")
    book = load_offer_book(file, catalog)
    assert (book.name, book.offer("x1-48gb").prices) == ("acme", {3: 5})
    file.write_text("schema_version = 1", encoding="utf-8")
    assert load_offer_book(file, catalog).lot_size("x1-48gb") == 2
    file.write_text(PRICED, encoding="utf-8")
    with pytest.raises(UnreadableInputError, match="card x2-24gb is not in the catalog"):
        load_offer_book(file, catalog)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "nowhere") in _refusal(tmp_path / "nowhere")


def test_a_file_that_is_not_text_is_named(base: Path) -> None:
    (base / "z.toml").write_bytes(b"\xff\xfe\x00")
    assert _refusal(base).endswith("z.toml: cannot be read (not text in UTF-8, from byte 1 on)")


def test_a_folder_without_offers_has_no_book(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(MINIMAL, encoding="utf-8")
    assert load_folders([tmp_path]).offer_books == ()


def test_shipped_then_user_then_extra(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = _folder(tmp_path / "user", {"u.toml": MINIMAL.replace("Card X1", "User's")})
    extra = _folder(tmp_path / "extra", {"e.toml": MINIMAL.replace("Card X1", "Extra")})
    monkeypatch.setattr(store, "shipped_catalog_dir", lambda: base)
    monkeypatch.setattr(store, "user_catalog_dir", lambda: user)
    assert load_catalog().card("x1-48gb").name == "User's"
    assert load_catalog(extra).card("x1-48gb").name == "Extra"
    monkeypatch.setattr(store, "user_catalog_dir", lambda: tmp_path / "absent")
    assert load_catalog().card("x1-48gb").name == "Card X1"


def test_the_shipped_folder_is_the_one_in_datadir() -> None:
    origins = load_folders([datadir.shipped_catalog_dir()]).card_origins
    assert all(Path(origin.path).parent == datadir.shipped_catalog_dir() for origin in origins.values())
