from __future__ import annotations

import msgspec
import pytest
from builders import make_card, make_cell, make_offers, make_profile
from report_builders import DOES_NOT_FIT, FITS, GIB, TOO_CLOSE, UNKNOWN, hard_document, plain_precision

from gpufit import flows
from gpufit.advice.verdict import Verdict
from gpufit.catalog.offers import Offer, OfferBook
from gpufit.catalog.record import Card, Catalog
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, OutOfMemory
from gpufit.profile.environment import Environment
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.precision import DtypeShare, Quantization
from gpufit.profile.record import Profile
from gpufit.report.cells import COLUMNS, PART_TITLES, SYMBOLS, binding_text, lots_text, max_context_text
from gpufit.report.document import FitDocument
from gpufit.report.registry import FORMATS, load_format
from gpufit.report.summary import headline, precision_lines

SMALL = Shape(512, 4, 4)


def document_of(
    *cards: Card, profile: Profile | None = None, shape: Shape = SMALL, offers: tuple[Offer, ...] = ()
) -> FitDocument:
    book = OfferBook(name="seller", currency="EUR", offers=offers)
    return flows.fit(
        profile or make_profile(), "p.json", shape, Catalog(cards=cards or (make_card(),)), make_offers(book)
    )


def test_every_row_adds_up_parts_context_and_other_are_its_need() -> None:
    for shape in (Shape(1, 1, 1), Shape(512, 4, 4), Shape(4000, 100, 50)):
        for row in document_of(make_card(), make_card("x2-1gb", 1.0), shape=shape).cards:
            assert row.need_bytes == row.parts.total_bytes + row.context_bytes + row.other_bytes
            assert row.capacity_bytes is not None
            assert row.headroom_bytes == row.capacity_bytes - row.need_bytes
            assert row.headroom_lower_bytes == row.capacity_bytes - row.need_upper_bytes
            assert row.headroom_upper_bytes == row.capacity_bytes - row.need_lower_bytes
            assert row.need_lower_bytes <= row.need_bytes <= row.need_upper_bytes


def test_a_phase_s_need_is_the_largest_over_the_cards() -> None:
    small_context = make_card("x1", context=make_card().context)
    large_context = make_card("x2", compute_capability="8.0", context=msgspec.structs.replace(
        make_card().context, mib=900, range_mib=None
    ))  # fmt: skip
    document = document_of(small_context, large_context)
    rows = {row.card: row for row in document.cards}
    assert document.phases["prefill"].need_bytes == max(row.need_bytes for row in rows.values())
    # 400 MiB more context outweigh 32 MiB less 8320 KiB of workspace.
    assert rows["x2"].need_bytes - rows["x1"].need_bytes == 400 * 2**20 - (32 * 2**20 - 8320 * 1024)


def test_the_scenario_says_how_many_tokens_are_in_the_cache() -> None:
    assert document_of().scenario.cached_tokens == 515


def test_a_price_is_for_all_lots_and_a_blank_one_stays_blank() -> None:
    offer = Offer(card="x1-2gb", lot_size=2, price_3_days=10.0, price_30_days=50.0, currency="EUR")
    (row,) = document_of(make_card("x1-2gb", 2.0), shape=Shape(512, 4, 400), offers=(offer,)).cards
    assert row.cards_needed is not None
    assert row.cards_needed > 2
    lots = -(-row.cards_needed // 2)
    assert row.lots == lots
    assert [(one.term_days, one.price_per_lot, one.total_price, one.currency) for one in row.prices] == [
        (3, 10.0, 10.0 * lots, "EUR"),
        (7, None, None, "EUR"),
        (30, 50.0, 50.0 * lots, "EUR"),
    ]


def test_what_cannot_be_ordered_has_no_total_price() -> None:
    offer = Offer(card="x1-1gb", lot_size=2, price_3_days=10.0)
    (row,) = document_of(make_card("x1-1gb", 0.5), offers=(offer,)).cards
    assert row.verdict is Verdict.DOES_NOT_FIT
    assert (row.cards_needed, row.lots, row.idle_cards) == (None, None, None)
    assert (row.prices[0].price_per_lot, row.prices[0].total_price) == (10.0, None)


def test_a_card_that_is_not_in_the_book_has_lots_of_one_and_no_price() -> None:
    (row,) = document_of().cards
    assert row.lot_size == 1
    assert [price.total_price for price in row.prices] == [None, None, None]


def test_the_evidence_of_the_document_is_the_weakest_of_its_rows() -> None:
    assert document_of().evidence is Evidence.SCALED
    assert document_of(profile=make_profile(evidence=Evidence.ASSUMED)).evidence is Evidence.ASSUMED


def test_something_fits_when_one_card_or_its_copies_do() -> None:
    assert document_of().something_fits
    assert document_of(make_card("x1-2gb", 2.0), shape=Shape(512, 4, 100)).something_fits
    assert not document_of(make_card("x1-1gb", 0.5)).something_fits


def out_of_memory(context: int, concurrency: int) -> Cell:
    outcome = OutOfMemory(phase=Phase.PREFILL, message="no")
    return Cell(context_tokens=context, new_tokens=4, concurrency=concurrency, outcome=outcome)


def test_what_the_run_met_is_noted_in_words() -> None:
    profile = make_profile(
        cells=(make_cell(128, 1), out_of_memory(4096, 4), out_of_memory(1024, 8)),
        complete=False,
        notes=("a note",),
        environment=Environment(device=make_profile().environment.device, versions={}, flags=("a shared card",)),
    )
    assert document_of(profile=profile, shape=Shape(1027, 4, 8)).notes == (
        "a note",
        "a shared card",
        "the profile is unfinished: 1 cell measured so far",
        "2 cells ran out of memory on AMD EPYC, the smallest at context 1024 x 8",
        "no cell of the profile ran this very scenario: its figures are those of the model fitted to 1 measured cell "
        "(it missed held-out cells by less than 0.01% of allocated)",
        # 1030 cached tokens x 8 = 8240 of 2060.
        "the scenario lies 4.0 times beyond what was measured (up to 515 tokens, 4 sequences, 2,060 tokens in all): "
        "scaled, with a wider interval",
    )


def test_what_ran_is_not_taken_for_the_most_that_fits() -> None:
    """Of two cells the largest has 4 sequences, on a card that would hold thousands."""
    profile = make_profile(cells=(make_cell(128, 1), make_cell(128, 4)), memory_model=None)
    document = document_of(profile=profile, shape=Shape(128, 4, 1))
    assert document.cards[0].max_concurrency == 4
    assert document.notes[0] == (
        "without a memory model the most sequences and the longest context are the largest that ran: more may fit"
    )


def test_one_cell_is_one_cell() -> None:
    note, _ = document_of(profile=make_profile(cells=(out_of_memory(4096, 4),))).notes
    assert note.startswith("1 cell ran out of memory")


def test_images_and_another_cache_stand_in_the_notes() -> None:
    profile = make_profile()
    workload = msgspec.structs.replace(
        profile.workload, images=2, image_size=(448, 336), image_tokens=388, cache_implementation="static"
    )
    profile = msgspec.structs.replace(profile, workload=workload)
    assert document_of(profile=profile).notes == (
        "measured with 2 images of 448 x 336 pixels a sequence (388 tokens of its context)",
        "measured with static KV cache",
    )


def test_a_ceiling_put_on_the_run_is_named_beside_what_ran_into_it() -> None:
    workload = msgspec.structs.replace(make_profile().workload, memory_limit_bytes=6 * 2**30)
    note, _ = document_of(profile=make_profile(cells=(out_of_memory(4096, 4),), workload=workload)).notes
    assert note.startswith("1 cell ran out of memory on AMD EPYC under a limit of 6.00 GiB, the smallest")


def test_a_clean_run_inside_its_domain_has_no_notes() -> None:
    assert document_of().notes == ()


def test_a_file_name_that_is_not_text_does_not_stop_the_report() -> None:
    document = flows.fit(make_profile(), "p\udce8.json", Shape(512, 4, 4), Catalog(cards=(make_card(),)), make_offers())
    assert document.profile == "p?.json"
    for name in FORMATS:
        assert load_format(name).render_fit(document)


def test_without_cards_the_need_is_that_of_any_card() -> None:
    document = flows.judge_cards(make_profile(), "p", Shape(512, 4, 4), Catalog(cards=()), make_offers(), ())
    assert document.cards == ()
    for figures in document.phases.values():
        # The largest context of any card (612 MiB) and 99 MB of kernels; 32 MiB of workspace once something runs.
        least = figures.allocated_bytes + 612 * 2**20 + 99_000_000
        assert figures.need_bytes in (least, least + 32 * 2**20)
    assert any("no card named" in line for line in document.assumptions)


@pytest.mark.parametrize(
    ("row", "binding", "context", "lots"),
    [
        (FITS, "weights in prefill", "128k (limit)", "1 x 2 (1 idle)"),
        (TOO_CLOSE, "temporaries in prefill, likely short by 1.00 GiB", "1000", "2 x 2 (1 idle, replicas)"),
        (DOES_NOT_FIT, "KV cache in decode, likely short by 1073741824.00 GiB", "0", "-"),
        (UNKNOWN, "driver context in load", "", "-"),
    ],
)
def test_a_row_in_words(row: object, binding: str, context: str, lots: str) -> None:
    assert binding_text(row) == binding  # type: ignore[arg-type]
    assert max_context_text(row) == context  # type: ignore[arg-type]
    assert lots_text(row) == lots  # type: ignore[arg-type]


def test_what_binds_is_what_keeps_the_card_from_fitting() -> None:
    row = msgspec.structs.replace(FITS, reason="no bfloat16 in this card's hardware: attention may fall back")
    assert binding_text(row) == "no bfloat16 in this card's hardware"


@pytest.mark.parametrize(
    ("lot_size", "lots", "idle", "text"), [(1, 3, 0, "3"), (2, 2, 0, "2 x 2"), (8, 1, 7, "1 x 8 (7 idle)")]
)
def test_lots_say_how_many_of_their_cards_are_idle(lot_size: int, lots: int, idle: int, text: str) -> None:
    assert lots_text(msgspec.structs.replace(FITS, lot_size=lot_size, lots=lots, idle_cards=idle)) == text


def test_every_verdict_has_a_sign_of_its_own_and_every_part_a_title() -> None:
    assert set(SYMBOLS) == set(Verdict)
    assert len({text[0] for text in SYMBOLS.values()}) == len(Verdict)
    assert set(PART_TITLES) == {*Parts.NAMES, "context_bytes", "other_bytes"}
    assert len({column.key for column in COLUMNS}) == len(COLUMNS)


def test_the_headline_counts_the_cards_that_fit_and_names_the_scenario() -> None:
    first, second = headline(hard_document()).splitlines()
    assert first.endswith("transformers 5.24.0 (sdpa) · profile of Card | \x1b[31mred\x1b[0m")
    assert second == "context 128k + 1000 new x 7 at once: fits 1 of 4 cards · evidence: assumed"


def test_one_new_token_is_not_worth_a_word() -> None:
    scenario = msgspec.structs.replace(hard_document().scenario, new_tokens=1)
    text = headline(msgspec.structs.replace(hard_document(), scenario=scenario))
    assert "context 128k x 7 at once" in text


def test_the_four_precisions_stand_in_four_lines() -> None:
    assert precision_lines(plain_precision()) == [
        "stored    BF16 1.00 GiB",
        "resident  bfloat16 1.00 GiB",
        "compute   matmul bfloat16, norm float32/bfloat16",
        "KV cache  float8_e4m3fn",
    ]


@pytest.mark.parametrize(
    ("kv", "said"),
    [
        (("float16",), "float16 weights, x1-80gb"),
        (("float8_e4m3fn",), "float16 weights, float8_e4m3fn KV cache, x1-80gb"),
        (("float16", "float32"), "float16 weights, float16/float32 KV cache, x1-80gb"),
        ((), "float16 weights, x1-80gb"),
    ],
)
def test_a_document_holds_for_the_dtype_of_its_cache_where_nothing_computes_in_it(
    kv: tuple[str, ...], said: str
) -> None:
    shares = tuple(DtypeShare(dtype=dtype, size_bytes=1, tensors=1) for dtype in kv)
    profile = make_profile(precision=msgspec.structs.replace(make_profile().precision, kv=shares))
    card = make_card()
    said = said.replace("x1-80gb", card.display_name)
    assert document_of(card, profile=profile).holds_for == f"tiny-llama, transformers 5.24.0 (sdpa), {said}"


def test_a_quantisation_and_a_finding_each_have_a_line() -> None:
    precision = msgspec.structs.replace(
        plain_precision(), kv=(), quantization=Quantization(method="gptq", parameters={"bits": "4"}), findings=("odd",)
    )
    assert precision_lines(precision)[3:] == ["KV cache  none", "quantised gptq, bits 4", "finding: odd"]


def test_parts_of_the_hard_document_add_up() -> None:
    # 18.5 GiB + 1 MiB + 257 B + 123,456,789 B.
    assert FITS.parts.total_bytes == 18 * GIB + GIB // 2 + 2**20 + 257 + 123_456_789
