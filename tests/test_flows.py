from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from builders import TODAY, make_card, make_cell, make_offers, make_profile

from gpufit import flows
from gpufit.advice.verdict import Verdict
from gpufit.catalog.offers import Offer, OfferBook
from gpufit.catalog.record import Catalog
from gpufit.catalog.store import load_folders
from gpufit.datadir import shipped_catalog_dir
from gpufit.errors import UnreadableInputError, UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, Failed
from gpufit.profile.environment import DeviceInfo, Environment
from gpufit.profile.evidence import Evidence
from gpufit.profile.record import Profile
from gpufit.profile.store import save_profile

CATALOG = load_folders([shipped_catalog_dir()])
OFFERS = CATALOG.offers(TODAY)


def profile_on(name: str, pci_id: str | None = None, kind: str = "cuda") -> Profile:
    device = DeviceInfo(kind=kind, name=name, total_bytes=0, pci_id=pci_id, compute_capability="9.0", context_bytes=7)
    return make_profile(environment=Environment(device=device, versions={}))


def test_every_card_of_the_catalog_is_judged_in_its_order_when_none_is_named() -> None:
    document = flows.fit(make_profile(), "p.json", Shape(512, 4, 2), CATALOG, OFFERS)
    assert [row.card for row in document.cards] == [card.id for card in CATALOG.cards]
    assert set(document.phases) == {"load", "prefill", "decode"}


def test_only_the_named_cards_are_judged() -> None:
    cards = [CATALOG.card("l40s-48gb"), CATALOG.card("t4-16gb")]
    document = flows.fit(make_profile(), "p.json", Shape(512, 4, 2), CATALOG, OFFERS, cards)
    assert [row.card for row in document.cards] == ["l40s-48gb", "t4-16gb"]


def test_lots_come_from_the_book() -> None:
    card = make_card()
    book = OfferBook(name="b", currency="EUR", offers=(Offer(card=card.id, lot_size=4, price_7_days=100.0),))
    (row,) = flows.fit(make_profile(), "p", Shape(512, 4, 2), Catalog(cards=(card,)), make_offers(book)).cards
    assert (row.lot_size, row.lots, row.idle_cards) == (4, 1, 3)
    assert [price.total_price for price in row.prices] == [None, 100.0, None]


@pytest.mark.parametrize(("context", "new"), [(32_768, 1), (32_765, 4), (1, 32_768), (32_768, 0)])
def test_a_scenario_up_to_the_position_limit_is_taken(context: int, new: int) -> None:
    flows.check_position_limit(make_profile(), Shape(context, new, 1))


@pytest.mark.parametrize(("context", "new"), [(32_769, 1), (32_766, 4), (1, 32_769)])
def test_a_scenario_beyond_it_is_refused_as_the_model_s_limit_and_not_memory(context: int, new: int) -> None:
    with pytest.raises(UsageError, match=r"at most 32768 tokens.*not memory.*is 32769: ask for less"):
        flows.fit(make_profile(), "p", Shape(context, new, 1), CATALOG, OFFERS)


def with_model(**changes: object) -> Profile:
    profile = make_profile()
    return msgspec.structs.replace(profile, model=msgspec.structs.replace(profile.model, **changes))


@pytest.mark.parametrize(("context", "new"), [(32_768, 8), (1, 32_768), (32_768, 32_768)])
def test_an_encoder_decoder_reads_and_writes_up_to_its_limit_each(context: int, new: int) -> None:
    flows.check_position_limit(with_model(decodes_apart=True), Shape(context, new, 1))


@pytest.mark.parametrize(("context", "new"), [(32_769, 1), (1, 32_769)])
def test_beyond_it_at_either_end_is_refused(context: int, new: int) -> None:
    with pytest.raises(UsageError, match=r"reads at most 32768 tokens and writes as many .*ask for less"):
        flows.check_position_limit(with_model(decodes_apart=True), Shape(context, new, 1))


def test_a_scenario_shorter_than_its_images_is_refused() -> None:
    profile = make_profile()
    seeing = msgspec.structs.replace(profile.workload, images=2, image_size=(448, 448), image_tokens=516)
    profile = msgspec.structs.replace(profile, workload=seeing)
    flows.check_position_limit(profile, Shape(517, 4, 1))
    with pytest.raises(UsageError, match="2 images take 516 tokens of each prompt, so a context of 516 is too short"):
        flows.fit(profile, "p", Shape(516, 4, 1), CATALOG, OFFERS)


def test_a_model_without_a_position_limit_takes_any_length() -> None:
    profile = make_profile()
    endless = msgspec.structs.replace(profile, model=msgspec.structs.replace(profile.model, position_limit=None))
    flows.check_position_limit(endless, Shape(2**40, 4, 1))


def test_a_cpu_is_no_card_and_a_card_is_found_by_pci_id_then_by_name() -> None:
    assert flows.profiled_card(make_profile(), CATALOG) is None
    assert flows.profiled_card(profile_on("NVIDIA H100 80GB HBM3", kind="cpu"), CATALOG) is None
    assert flows.profiled_card(profile_on("NVIDIA H100 80GB HBM3", kind="none"), CATALOG) is None
    assert flows.profiled_card(profile_on("?", "10de:2330"), CATALOG) is CATALOG.card("h100-sxm-80gb")
    assert flows.profiled_card(profile_on("NVIDIA H100 80GB HBM3"), CATALOG) is CATALOG.card("h100-sxm-80gb")
    assert flows.profiled_card(profile_on("NVIDIA Nothing"), CATALOG) is None


def test_on_the_card_it_was_measured_on_the_measured_context_is_used_and_the_catalog_s_elsewhere() -> None:
    profile = profile_on("NVIDIA H100 80GB HBM3")
    cards = [CATALOG.card("h100-sxm-80gb"), CATALOG.card("h100-pcie-80gb")]
    same, other = flows.fit(profile, "p", Shape(512, 4, 2), CATALOG, OFFERS, cards).cards
    assert same.context_bytes == 7
    # The catalog's 527 MiB and the 99 MB of loaded kernels.
    assert other.context_bytes == 527 * 2**20 + 99_000_000
    assert (same.evidence, other.evidence) == ("measured", "scaled")


def test_the_first_scenario_is_the_largest_measured_cell() -> None:
    cells = tuple(make_cell(*shape) for shape in ((128, 4), (1024, 1), (256, 4), (512, 1)))
    # 1024 x 1 and 256 x 4 hold as many tokens: the longer context is taken.
    assert flows.default_shape(make_profile(cells=cells)) == Shape(1024, 4, 1)


def test_a_profile_without_a_measured_cell_has_no_first_scenario() -> None:
    failed = Cell(context_tokens=128, new_tokens=4, concurrency=1, outcome=Failed(error="no"))
    for cells in ((), (failed,)):
        with pytest.raises(UsageError, match="no measured cell"):
            flows.default_shape(make_profile(cells=cells))


def test_a_model_given_for_a_profile_is_told_apart(tmp_path: Path) -> None:
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"GGUF")
    for model in (tmp_path, gguf):
        with pytest.raises(UsageError, match="is a model, not a profile; measure it first"):
            flows.load_named_profile(model)


def test_a_profile_is_loaded_by_its_path(tmp_path: Path) -> None:
    save_profile(make_profile(), tmp_path / "p.json")
    assert flows.load_named_profile(tmp_path / "p.json") == make_profile()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.json", "none.json: no such file"),
        ("none/p.json", "p.json: no such file"),
        ("n" * 300, r"cannot be read \(File name too long\)"),
    ],
)
def test_a_path_that_leads_nowhere_is_said_in_one_line(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(UnreadableInputError, match=f"{said}$"):
        flows.load_named_profile(tmp_path / name)


def test_a_card_of_unknown_memory_is_in_the_document_and_fits_nothing() -> None:
    unknown = make_card("x2-64gb", capacity_gib=None)
    document = flows.fit(make_profile(), "p", Shape(512, 4, 2), Catalog(cards=(unknown,)), make_offers())
    assert document.cards[0].verdict is Verdict.UNKNOWN
    assert document.something_fits is False


def test_named_books_come_in_the_order_named_each_once_and_a_file_is_one_too(tmp_path: Path) -> None:
    file = tmp_path / "acme.toml"
    file.write_text("schema_version = 1\n[l40s-48gb]\nlot_size = 3\n")
    named = flows.choose_offers(CATALOG, ["public-indicative", str(file), "public-indicative"], TODAY)
    assert [book.name for book in named.books] == ["public-indicative", "acme"]
    assert named.today == TODAY
    assert flows.choose_offers(CATALOG, [str(file)], TODAY).lot_size("l40s-48gb") == 3
    assert flows.choose_offers(CATALOG, [], TODAY) == CATALOG.offers(TODAY)
    file.rename(tmp_path / "blank.toml")
    with pytest.raises(UsageError, match="two offer books are called blank; rename one of the files"):
        flows.choose_offers(CATALOG, ["blank", str(tmp_path / "blank.toml")], TODAY)


def ran(*cells: tuple[int, int, int], model: bool = True) -> Profile:
    """A profile of cells (context, concurrency, new tokens)."""
    profile = make_profile(cells=tuple(make_cell(*cell) for cell in cells))
    return profile if model else msgspec.structs.replace(profile, memory_model=None)


COMPUTED = make_profile(evidence=Evidence.COMPUTED, cells=())
"""Computed for contexts up to 512, concurrencies up to 4, 4 new tokens."""


@pytest.mark.parametrize(
    ("a", "b", "shape"),
    [
        # the largest cell that both ran
        (ran((128, 1, 4), (512, 4, 4)), ran((128, 1, 4), (256, 4, 4)), Shape(128, 4, 1)),
        (ran((128, 1, 4), (512, 4, 4), (1024, 1, 4)), ran((512, 4, 4), (1024, 1, 4)), Shape(512, 4, 4)),
        # none in common: within what both ran
        (ran((128, 4, 4)), ran((512, 2, 8)), Shape(128, 4, 2)),
        (ran((128, 4, 8)), ran((128, 4, 4)), Shape(128, 4, 4)),
        # without a model it answers for its own cells alone
        (ran((128, 4, 4), model=False), ran((512, 8, 8)), Shape(128, 4, 4)),
        (ran((512, 8, 8)), ran((128, 1, 4), (128, 4, 4), model=False), Shape(128, 4, 4)),
        # rules answer for any shape
        (ran((2048, 8, 8)), COMPUTED, Shape(2048, 8, 8)),
        (COMPUTED, ran((64, 1, 2)), Shape(64, 2, 1)),
        (COMPUTED, COMPUTED, Shape(512, 4, 4)),
    ],
)
def test_two_profiles_are_compared_where_both_can_answer(a: Profile, b: Profile, shape: Shape) -> None:
    assert flows.common_shape(a, b) == shape


def test_a_profile_that_cannot_take_the_shape_is_named() -> None:
    with pytest.raises(UsageError, match=r"^b\.json: tiny-llama takes at most 1024 tokens"):
        flows.compare(
            make_profile(),
            make_profile(model=msgspec.structs.replace(make_profile().model, position_limit=1024)),
            ("a.json", "b.json"),
            Shape(2048, 4, 1),
        )
