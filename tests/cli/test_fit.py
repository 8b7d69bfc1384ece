"""`gpufit fit`: the contract that scripts rely on, over the profile whose bytes are plain arithmetic."""

from __future__ import annotations

import csv
import datetime
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import BUFFERS, KV_PER_TOKEN, WEIGHTS, make_profile
from conftest import Run
from openpyxl import load_workbook

from gpufit.profile.store import save_profile
from gpufit.report.document import SCHEMA_VERSION

SCENARIO = ("--context", "8k", "--concurrency", "16")
TOKENS = 8192 * 16


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fit") / "profile.json"
    save_profile(make_profile(), path)
    return path


def as_json(gpufit: Run, *arguments: str | Path) -> dict[str, Any]:
    done = gpufit("fit", *arguments, "--json")
    assert done.code in (0, 1), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_json_has_the_contract(gpufit: Run, profile: Path) -> None:
    document = as_json(gpufit, profile, *SCENARIO)
    assert {"schema_version", "evidence", "model", "precision", "scenario", "phases", "cards"} <= set(document)
    assert {"stored", "resident", "compute", "kv"} <= set(document["precision"])
    assert document["scenario"]["context_tokens"] == 8192
    assert document["scenario"]["concurrency"] == 16
    assert set(document["phases"]) == {"load", "prefill", "decode"}
    for figures in document["phases"].values():
        assert {"parts", "allocated_bytes", "need_bytes", "need_upper_bytes"} <= set(figures)
        assert sum(figures["parts"].values()) == figures["allocated_bytes"]
    wanted = {
        "card", "capacity_bytes", "verdict", "binding", "headroom_bytes", "headroom_lower_bytes", "max_concurrency",
        "max_context_tokens", "cards_needed", "lot_size", "lots", "arrangement", "prices",
    }  # fmt: skip
    assert len(document["cards"]) == 41
    assert all(wanted <= set(row) for row in document["cards"])


def test_the_parts_are_those_of_the_scenario(gpufit: Run, profile: Path) -> None:
    prefill = as_json(gpufit, profile, *SCENARIO)["phases"]["prefill"]
    assert prefill["parts"]["weights_bytes"] == WEIGHTS
    assert prefill["parts"]["buffers_bytes"] == BUFFERS
    assert prefill["parts"]["kv_cache_bytes"] == KV_PER_TOKEN * TOKENS
    assert prefill["parts"]["activations_bytes"] == 3_000 * TOKENS


def test_a_card_replaces_context_and_workspace(gpufit: Run, profile: Path) -> None:
    """L40S: bare context 426 MiB (RTX 6000 Ada, https://github.com/unslothai/unsloth-zoo/pull/1053), 99 MB of loaded
    kernels, cuBLAS workspace 8,519,680 B; capacity 44.42 GiB (lowest torch total in an out-of-memory text)."""
    (row,) = as_json(gpufit, profile, *SCENARIO, "--card", "l40s")["cards"]
    allocated = WEIGHTS + BUFFERS + (KV_PER_TOKEN + 16 + 3_000 + 2_000) * TOKENS + 100_000 * 16 + 1_000_000
    need = 426 * 2**20 + 99_000_000 + 8_519_680 + allocated
    assert row["need_bytes"] == need
    assert row["capacity_bytes"] == int(44.42 * 2**30)
    assert row["headroom_bytes"] == int(44.42 * 2**30) - need
    assert row["verdict"] == "fits"
    assert row["evidence"] == "scaled"
    assert row["binding"] == {
        "phase": "prefill", "part": "kv_cache_bytes", "part_bytes": KV_PER_TOKEN * TOKENS, "short_bytes": 0
    }  # fmt: skip


def test_b200_is_sold_in_pairs(gpufit: Run, profile: Path) -> None:
    (row,) = as_json(gpufit, profile, *SCENARIO, "--card", "b200")["cards"]
    assert (row["cards_needed"], row["lot_size"], row["lots"], row["idle_cards"]) == (1, 2, 1, 1)
    assert [price["term_days"] for price in row["prices"]] == [3, 7, 30]
    assert all(price["price_per_lot"] is None and price["total_price"] is None for price in row["prices"])


def test_a_card_with_no_known_total_is_never_judged(gpufit: Run, profile: Path) -> None:
    done = gpufit("fit", profile, *SCENARIO, "--card", "h100-sxm-64gb", "--json")
    (row,) = json.loads(done.stdout)["cards"]
    assert row["verdict"] == "unknown"
    assert row["capacity_bytes"] is None
    assert row["headroom_bytes"] is None
    assert done.code == 1


def test_the_exit_status_says_whether_anything_fits(gpufit: Run, profile: Path) -> None:
    assert gpufit("fit", profile, *SCENARIO, "--card", "t4", "--json").code == 0
    # A million sequences of 32k tokens fit no card together, but whole copies of the model serve them.
    many = gpufit("fit", profile, "--context", "32k", "--concurrency", "1m", "--card", "t4", "--json")
    (row,) = json.loads(many.stdout)["cards"]
    assert (many.code, row["verdict"], row["arrangement"]) == (0, "does_not_fit", "replicas")
    assert row["cards_needed"] == -(-(2**20) // row["max_concurrency"])


def test_a_single_sequence_too_long_for_every_card_is_status_1(gpufit: Run, tmp_path: Path) -> None:
    path = tmp_path / "endless.json"
    profile = make_profile()
    save_profile(
        msgspec.structs.replace(profile, model=msgspec.structs.replace(profile.model, position_limit=None)), path
    )
    # 64m tokens of 25,016 B are 1.7 TB: far more than the largest card's 288 GiB.
    done = gpufit("fit", path, "--context", "64m", "--concurrency", "1", "--json")
    rows = json.loads(done.stdout)["cards"]
    assert done.code == 1
    assert {row["verdict"] for row in rows} == {"does_not_fit", "unknown"}
    assert all(row["cards_needed"] is None and row["lots"] is None for row in rows)


def test_csv_and_json_carry_the_same_values(gpufit: Run, profile: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(gpufit("fit", profile, *SCENARIO, "--csv").stdout)))
    cards = as_json(gpufit, profile, *SCENARIO)["cards"]
    assert len(rows) == len(cards)
    for row, card in zip(rows, cards, strict=True):
        assert row["card"] == card["card"]
        for key in ("capacity_bytes", "need_bytes", "need_upper_bytes", "headroom_bytes", "max_concurrency"):
            assert row[key] == ("" if card[key] is None else str(card[key]))


def test_the_spreadsheet_carries_the_same_values(gpufit: Run, profile: Path, tmp_path: Path) -> None:
    path = tmp_path / "cards.xlsx"
    done = gpufit("fit", profile, *SCENARIO, "-o", path)
    assert (done.code, done.stdout) == (0, "")
    sheet = load_workbook(path)["cards"]
    header = [cell.value for cell in sheet[1]]
    need, name = header.index("need (GiB)"), header.index("card")
    cards = as_json(gpufit, profile, *SCENARIO)["cards"]
    for row, card in zip(sheet.iter_rows(min_row=2, values_only=True), cards, strict=True):
        assert row[name] == card["card"]
        assert row[need] * 2**30 == pytest.approx(card["need_bytes"], abs=1)


def test_what_was_not_given_is_said_on_standard_error(gpufit: Run, profile: Path) -> None:
    done = gpufit("fit", profile, "--json")
    assert "scenario: context 512, 4 new tokens, 4 at once" in done.stderr
    assert json.loads(done.stdout)["scenario"]["cached_tokens"] == 515


def test_the_output_file_decides_the_format(gpufit: Run, profile: Path, tmp_path: Path) -> None:
    for name in ("cards.json", "cards.csv", "cards.md", "cards.txt"):
        assert gpufit("fit", profile, *SCENARIO, "-o", tmp_path / name).code == 0
    assert json.loads((tmp_path / "cards.json").read_text())["schema_version"] == SCHEMA_VERSION
    assert (tmp_path / "cards.csv").read_text().startswith("model,engine,")
    assert "| card" in (tmp_path / "cards.md").read_text()


def test_a_users_own_card_joins_the_catalog(gpufit: Run, profile: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'schema_version = 1\n\n[my-card]\nvendor = "NVIDIA"\nname = "My card"\n\n[my-card.memory]\n'
        "nominal_gb = 12\nplanning_torch_gib = 11.5\n"
    )
    document = as_json(gpufit, profile, "--context", "1k", "--concurrency", "1", "--catalog", tmp_path)
    assert len(document["cards"]) == 42
    (row,) = [row for row in document["cards"] if row["card"] == "my-card"]
    assert row["capacity_bytes"] == int(11.5 * 2**30)


def test_a_real_profile_of_a_cpu_is_scaled_to_cards(gpufit: Run, llama_profile: Path) -> None:
    document = as_json(gpufit, llama_profile, "--context", "256", "--concurrency", "8")
    assert document["evidence"] == "scaled"
    assert any("measured on a CPU" in line for line in document["assumptions"])
    assert {row["evidence"] for row in document["cards"]} == {"scaled"}


def offers_folder(folder: Path, **books: str) -> Path:
    """A catalog folder with books that price the L40S for 7 days: `acme="420 EUR"`, read today."""
    (folder / "offers").mkdir()
    for name, price in books.items():
        amount, currency = price.split()
        (folder / "offers" / f"{name}.toml").write_text(
            f'schema_version = 1\nseller = "{name} Ltd"\ncurrency = "{currency}"\ndate = {datetime.date.today()}\n'
            f"[l40s-48gb]\nlot_size = 1\nprice_7_days = {amount}\n"
        )
    return folder


def sellers(document: dict[str, Any]) -> list[tuple[str, float | None]]:
    """Who asks how much for 7 days of the first card."""
    prices = document["cards"][0]["prices"]
    return [(price["book"], price["total_price"]) for price in prices if price["term_days"] == 7]


def test_prices_come_from_all_books_of_one_s_own_or_from_those_named(
    gpufit: Run, profile: Path, tmp_path: Path
) -> None:
    folder = offers_folder(tmp_path, acme="420 EUR", other="500 USD")
    asked = (profile, *SCENARIO, "--card", "l40s", "--catalog", folder)
    every = as_json(gpufit, *asked)
    assert sellers(every) == [("acme", 420.0), ("other", 500.0)]
    assert every["offers"] == "acme, other"
    assert sellers(as_json(gpufit, *asked, "--offers", "other")) == [("other", 500.0)]
    # 24 hours x 7 days x 0.915 USD, the median that public pages listed.
    public = as_json(gpufit, *asked, "--offers", "public-indicative", "--offers", "acme")
    assert sellers(public) == [("public-indicative", 153.72), ("acme", 420.0)]
    assert sellers(as_json(gpufit, *asked, "--offers", folder / "offers" / "acme.toml")) == [("acme", 420.0)]


def test_which_books_are_used_is_said(gpufit: Run, profile: Path, tmp_path: Path) -> None:
    asked = (profile, *SCENARIO, "--card", "l40s")
    assert gpufit("fit", *asked).stderr == ""
    folder = offers_folder(tmp_path, acme="420 EUR")
    said = gpufit("fit", *asked, "--catalog", folder).error
    assert said == f"prices: offer book acme (acme Ltd, EUR, {datetime.date.today()})"
    (folder / "offers" / "acme.toml").write_text("schema_version = 1\n[l40s-48gb]\nlot_size = 2\n")
    unpriced = gpufit("fit", *asked, "--json", "--catalog", folder)
    assert unpriced.error == "prices: none in offer book acme yet"
    assert json.loads(unpriced.stdout)["cards"][0]["lot_size"] == 2


def test_prices_stand_in_the_table_and_currencies_apart(gpufit: Run, profile: Path, tmp_path: Path) -> None:
    folder = offers_folder(tmp_path, acme="420 EUR", other="410 USD", third="430 EUR")
    done = gpufit("fit", profile, *SCENARIO, "--card", "l40s", "--catalog", folder)
    assert "cheapest offer in EUR, 7 days: l40s-48gb at 420.00 EUR (acme Ltd)" in done.stdout
    assert "cheapest offer in USD, 7 days: l40s-48gb at 410.00 USD (other Ltd)" in done.stdout
    assert "prices in EUR and USD are never added up or ranked against each other" in done.stdout


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("acmee", 2, "no offer book 'acmee'; did you mean acme?"),
        ("nowhere.toml", 3, "nowhere.toml: no such file"),
    ],
)
def test_a_book_that_is_not_there_is_one_line(
    gpufit: Run, profile: Path, tmp_path: Path, name: str, code: int, said: str
) -> None:
    folder = offers_folder(tmp_path, acme="420 EUR")
    done = gpufit("fit", profile, *SCENARIO, "--catalog", folder, "--offers", name)
    assert (done.code, done.stdout) == (code, "")
    assert said in done.error


def test_two_books_of_one_name_are_refused(gpufit: Run, profile: Path, tmp_path: Path) -> None:
    folder = offers_folder(tmp_path, acme="420 EUR")
    both = ("--offers", "acme", "--offers", folder / "offers" / "acme.toml")
    done = gpufit("fit", profile, *SCENARIO, "--catalog", folder, *both)
    assert done.code == 2
    assert "two offer books are called acme; rename one of the files" in done.error
