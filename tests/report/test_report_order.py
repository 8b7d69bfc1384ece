"""The order document over a profile whose bytes are plain arithmetic: what is ordered, and what its parts say."""

from __future__ import annotations

import ast
import datetime
import json
import shlex
from pathlib import Path

import msgspec
import pytest
from builders import make_card, make_profile
from public_models import CONFIGS

from gpufit import flows_order
from gpufit.advice.plan import Ask
from gpufit.advice.terms import Volume
from gpufit.catalog.card_parts import Mig, Peaks, Software
from gpufit.catalog.offers import Offer, OfferBook, Offers
from gpufit.catalog.record import Card, Catalog
from gpufit.cli.main import build_parser
from gpufit.errors import UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.cells import OutOfMemory
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase
from gpufit.profile.precision import ComputeDtype
from gpufit.profile.record import Profile
from gpufit.report.order_again import QUANTISED_AT_LOAD
from gpufit.report.order_document import EnvironmentRow, OrderDocument
from gpufit.report.order_text import hours_words, status, term_holds, throughput_words
from gpufit.sources.estimate.vllm import VllmRequest
from gpufit.sources.measure.quantization import METHODS
from gpufit.units import GIB

PAIRS = OfferBook(
    name="cloud",
    seller="Example Cloud",
    currency="EUR",
    date=datetime.date(2026, 1, 31),
    offers=(Offer(card="x1-80gb", lot_size=2, price_7_days=100.0, price_30_days=300.0, currency="EUR"),),
)
CARD = make_card(
    device_names=("NVIDIA X1",),
    mig=Mig(supported=True),
    software=Software(arch="sm_90", min_cuda="11.8", torch_wheels="torch >= 2.0"),
)


SHAPE = Shape(512, 4, 4)
"""A measured cell of the profile."""


def offers(*books: OfferBook) -> Offers:
    return Offers(books, datetime.date(2026, 2, 1))


def on_the_card() -> Profile:
    """The same run, measured on the card: every cell of 4 sequences at 1 s a cell, four inputs a second at most."""
    profile = make_profile()
    device = DeviceInfo(
        kind="cuda",
        name="NVIDIA X1",
        total_bytes=80 * GIB,
        compute_capability="9.0",
        driver="570.1",
        runtime="CUDA 12.8",
        context_bytes=500 * 2**20,
    )
    environment = msgspec.structs.replace(
        profile.environment, device=device, versions={"torch": "2.9.0+cu128", "transformers": "5.24.0"}
    )
    return msgspec.structs.replace(profile, environment=environment)


def order(
    ask: Ask,
    shape: Shape = SHAPE,
    profile: Profile | None = None,
    card: Card = CARD,
    books: tuple[OfferBook, ...] = (PAIRS,),
) -> OrderDocument:
    return flows_order.order(
        profile or make_profile(), "p.json", shape, Catalog(cards=(card,)), offers(*books), card, ask
    )


def test_one_card_of_a_pair_is_paid_for_and_idle() -> None:
    document = order(Ask(term_days=7))
    card, idle = document.card, document.idle
    assert (card.cards_needed, card.lots, card.lot_size, card.cards_paid, card.idle_cards) == (1, 1, 2, 2, 1)
    assert document.cost.total_price == 100
    assert idle is not None
    assert (idle.cost_share, idle.price, idle.copies) == (0.5, 50, 1)
    # What one card surely holds of this scenario, the idle one holds, too.
    assert idle.sequences == document.margin.max_concurrency
    assert "what is paid for holds 2 workers: --workers 2 puts idle cards to work at the same price" in document.notes
    assert document.ready
    assert not document.blockers


def test_three_copies_are_four_cards_and_share_the_inputs() -> None:
    """Twice what a card holds and one more sequence take three copies: three cards, two lots of two."""
    most = order(Ask(term_days=7)).margin.max_concurrency
    assert most is not None
    document = order(Ask(term_days=7, volume=Volume(inputs=1000)), Shape(512, 4, 2 * most + 1))
    card = document.card
    assert (card.arrangement, card.cards_needed, card.lots, card.cards_paid, card.idle_cards) == (
        "replicas",
        3,
        2,
        4,
        1,
    )
    assert document.cost.total_price == 200
    # 1000 / 3: the bounds are 0, 333, 666 and 1000.
    spans = [(one.first_input, one.last_input, one.inputs, one.devices) for one in document.workers]
    assert spans == [(1, 333, 333, "0"), (334, 666, 333, "1"), (667, 1000, 334, "2")]
    each = -(-(2 * most + 1) // 3)
    assert {one.at_once for one in document.workers} == {each} == {document.margin.at_once}
    assert "all" in document.spread
    assert document.ready
    assert document.scenario.concurrency == 2 * most + 1
    assert document.margin.headroom_lower_bytes is not None
    assert document.margin.headroom_lower_bytes >= 0


def test_hours_come_from_the_card_s_own_throughput() -> None:
    """Four inputs a second: 1,000,000 take 69.44 h, 77.16 h at 90 % busy, 85.16 h with 8 h on top: 7 days hold it."""
    document = order(Ask(volume=Volume(inputs=1_000_000)), profile=on_the_card())
    work = document.work
    assert work.inputs_per_second == 4
    assert work.tokens_per_second == 16
    assert work.throughput_evidence is Evidence.MEASURED
    assert work.total_hours == pytest.approx(1_000_000 / 4 / 3600 / 0.9 + 8)
    assert (document.term_days, document.ready) == (7, True)
    assert [term.holds for term in document.terms] == [False, True, True]
    # 3 days leave 64 h of work: 829,440 inputs a worker, so two; they need two cards, which is still one lot.
    assert [(term.workers, term.lots) for term in document.terms] == [(2, 1), (1, 1), (1, 1)]
    assert [term.total_price for term in document.terms] == [None, 100, 300]
    assert document.environment[1].declared == "570.1"
    assert {row.origin for row in document.environment if row.declared} == {"measured"}


def test_a_cheaper_way_to_the_same_work_is_named() -> None:
    document = order(Ask(term_days=30, volume=Volume(inputs=1_000_000)), profile=on_the_card())
    assert any(
        note.startswith("7 days and 1 worker: the same work for 100.00 EUR (--term 7 --workers 1 --concurrency 4)")
        for note in document.notes
    )
    assert not any("the same work" in note for note in order(Ask(7, Volume(1_000_000)), profile=on_the_card()).notes)


def test_a_term_that_is_too_short_is_no_order() -> None:
    document = order(Ask(term_days=3, volume=Volume(inputs=1_000_000)), profile=on_the_card())
    assert not document.ready
    (blocker,) = document.blockers
    assert blocker == (
        "the work takes 85.2 h (measured), and 3 days have 72: --term 7 holds it, --workers 2 --concurrency 8 brings "
        "it into 3 days"
    )


@pytest.mark.parametrize("profile", [make_profile(), make_profile(evidence=Evidence.COMPUTED)])
def test_without_a_throughput_no_hours_are_claimed_and_the_document_says_why(profile: Profile) -> None:
    document = order(Ask(term_days=3, volume=Volume(inputs=10)), profile=profile)
    assert document.work.total_hours is None
    assert document.work.processing_hours is None
    assert {term.holds for term in document.terms} == {None}
    assert any(note.startswith("no throughput: ") and "no hours are claimed" in note for note in document.notes)
    assert document.ready


def test_without_a_throughput_the_pace_that_each_term_takes_is_said() -> None:
    """Of 3, 7 and 30 days 8 h go to set-up, checks and export, and workers compute 90 % of the rest: 207,360 s,
    518,400 s and 2,306,880 s. 1,000,000 inputs over 2 workers are 500,000 each: 2.411 a second, 0.9645, 0.217."""
    document = order(Ask(term_days=3, volume=Volume(inputs=1_000_000), workers=2))
    assert (
        "what is enough, by what each of 2 workers does in a second while it computes: 3 days from 2.42 inputs a "
        "second on, 7 days from 0.965 inputs a second on, 30 days from 0.217 inputs a second on"
    ) in document.notes


def test_a_pace_is_told_in_significant_digits_and_never_below_what_is_enough() -> None:
    """1,000 inputs in 207,360 s, 518,400 s and 2,306,880 s: 0.0048225, 0.0019290 and 0.00043349 a second."""
    (pace,) = [note for note in order(Ask(3, Volume(inputs=1000))).notes if note.startswith("what is enough")]
    assert "3 days from 0.00483 inputs" in pace
    assert "7 days from 0.00193 inputs" in pace
    assert "30 days from 0.000434 inputs" in pace


def test_a_blank_price_stays_blank() -> None:
    document = order(Ask(term_days=3))
    assert document.cost.price_per_lot is None
    assert document.cost.total_price is None
    assert document.idle is not None
    assert document.idle.price is None


def test_a_card_that_the_book_has_no_price_for_has_no_seller_and_no_currency() -> None:
    """A term without a price keeps those of the others; a card that the book does not price has none to keep."""
    of_other_terms = order(Ask(term_days=3)).cost
    assert (of_other_terms.seller, of_other_terms.currency) == ("Example Cloud", "EUR")
    blank = msgspec.structs.replace(PAIRS, offers=(Offer(card="x1-80gb", lot_size=2, currency="EUR"),))
    cost = order(Ask(term_days=7), books=(blank,)).cost
    assert (cost.book, cost.seller, cost.currency, cost.date) == ("cloud", None, None, None)


def test_an_order_goes_to_one_seller() -> None:
    other = msgspec.structs.replace(PAIRS, name="other", seller="Other")
    with pytest.raises(UsageError, match=r"cloud and other both have a price for x1-80gb.*--offers"):
        order(Ask(term_days=7), books=(PAIRS, other))
    blank = OfferBook(name="blank", offers=(Offer(card="x1-80gb", lot_size=8),))
    assert order(Ask(term_days=7), books=(blank, PAIRS)).cost.book == "cloud"  # the one that has a price
    assert order(Ask(term_days=7), books=(blank,)).card.cards_paid == 8


def test_a_price_that_is_hardly_meant_is_odd_for_its_term_alone() -> None:
    """100 for 7 days and 99 for 30."""
    odd = msgspec.structs.replace(
        PAIRS, offers=(Offer(card="x1-80gb", lot_size=2, price_7_days=100.0, price_30_days=99.0, currency="EUR"),)
    )
    assert order(Ask(term_days=7), books=(odd,)).cost.odd is None
    assert order(Ask(term_days=30), books=(odd,)).cost.odd == "less than for 7 days"


def test_an_old_price_is_said_to_be_old() -> None:
    old = msgspec.structs.replace(PAIRS, date=datetime.date(2025, 12, 1))
    document, fresh = order(Ask(term_days=7), books=(old,)), order(Ask(term_days=7))
    assert (document.cost.stale, fresh.cost.stale) == (True, False)
    assert any("days old" in note for note in document.notes)
    assert not any("days old" in note for note in fresh.notes)


def test_a_card_that_does_not_fit_is_not_ordered() -> None:
    """Weights alone are 256 MB, beside 500 MiB of context: 0.5 GiB hold neither."""
    document = order(Ask(term_days=7), card=make_card(capacity_gib=0.5))
    assert not document.ready
    assert "does not fit, and none of the plans tried serves it: whole copies" in document.blockers[0]
    card = document.card
    assert (card.lots, card.cards_paid, card.cards_needed, document.term_days) == (None, None, None, None)
    assert document.workers == document.checks == document.terms == ()
    assert document.idle is document.pieces is document.completion is None


def test_a_card_of_unknown_memory_is_not_ready() -> None:
    document = order(Ask(term_days=7), card=make_card(capacity_gib=None))
    assert not document.ready
    assert "unknown: nobody has reported" in document.blockers[0]
    assert document.idle is not None
    assert document.idle.copies is None  # nothing is said of a copy that nobody knows to fit


def test_a_card_that_is_too_close_is_for_finding_out() -> None:
    """Capacity halfway between the need and its upper bound: one card to measure on, and not ready."""
    row = order(Ask(term_days=7), Shape(512, 4, 1)).margin
    halfway = (row.need_bytes + row.need_upper_bytes) / 2 / GIB
    document = order(Ask(term_days=3), Shape(512, 4, 1), card=make_card(capacity_gib=halfway))
    assert not document.ready
    assert "too close: a device has" in document.blockers[0]
    assert "measure on one such card before more are ordered" in document.blockers[0]
    assert document.card.cards_needed == 1
    capacity = document.margin.capacity_bytes
    assert capacity is not None
    (deciding,) = [check for check in document.checks if check.decides]
    assert f"need at most {capacity} bytes" in deciding.expect  # the upper bound is more than there is


def test_without_a_memory_model_the_largest_measured_cell_that_fits_is_a_worker_s() -> None:
    """Of 1, 2 and 4 sequences, a card between the needs of 2 and 4 holds 2: two workers for 4."""
    profile = make_profile(memory_model=None)
    two, four = (order(Ask(term_days=7), Shape(512, 4, count), profile).margin for count in (2, 4))
    capacity = (two.need_upper_bytes + four.need_upper_bytes) / 2 / GIB
    document = order(Ask(term_days=7), Shape(512, 4, 4), profile, make_card(capacity_gib=capacity))
    assert [one.at_once for one in document.workers] == [2, 2]
    assert document.ready
    assert document.margin.held_out_error is None


def gpufit_commands(document: OrderDocument) -> list[list[str]]:
    return [
        words[1:] for words in map(shlex.split, (check.command for check in document.checks)) if words[0] == "gpufit"
    ]


def quantised(name: str) -> Profile:
    profile = make_profile(evidence=Evidence.COMPUTED)
    return msgspec.structs.replace(
        profile, workload=msgspec.structs.replace(profile.workload, quantization=name, dtype_requested="float16")
    )


@pytest.mark.parametrize("profile", [make_profile(), on_the_card(), quantised("fp8"), quantised("torchao-int8wo")])
def test_the_checks_name_commands_that_exist_with_options_they_take(profile: Profile) -> None:
    document = order(Ask(term_days=7, volume=Volume(inputs=10, tokens=100)), profile=profile)
    commands = gpufit_commands(document)
    same_run = profile.workload.quantization in (None, *QUANTISED_AT_LOAD)
    first = ["check", "verify"] if same_run else ["check"]
    assert [words[0] for words in commands] == [*first, "profile", "fit", "order"]
    *chain, measured, judged, planned = [build_parser().parse_args(words) for words in commands]
    assert chain[0].model == (profile.model.source if same_run else "QUANTISED_CHECKPOINT")
    assert [str(one.profile) for one in chain[1:]] == ["p.json"] * same_run
    assert (measured.context, measured.concurrency, measured.new_tokens) == ((512,), (4,), 4)
    assert (judged.context, judged.concurrency, judged.new_tokens, judged.card) == (512, 4, 4, ["x1-80gb"])
    assert (planned.inputs, planned.tokens, planned.term, planned.workers) == (10, 100, 7, 1)
    assert [str(measured.output)] == judged.profiles == [planned.profile] == ["arrival.json"]


def test_the_checks_name_the_cards_and_what_torch_has_to_see() -> None:
    smi, torch, *_ = order(Ask(term_days=7)).checks
    assert smi.command.startswith("nvidia-smi --query-gpu=")
    assert "2 devices over all machines: NVIDIA X1" in smi.expect  # both of the lot, the idle one as well
    assert "mig.mode.current" in smi.expect
    assert "driver_version 580.65.06 or newer" in smi.expect
    assert torch.expect.startswith("torch 2.13.0 with CUDA 13.0; 2 devices")
    assert f"each at least {80 * GIB} bytes" in torch.expect
    ast.parse(shlex.split(torch.command)[2])
    amd = order(Ask(term_days=7), card=make_card(vendor="AMD")).checks[0]
    assert amd.command.startswith("amd-smi static")


def test_a_method_that_profile_cannot_apply_needs_a_checkpoint() -> None:
    assert QUANTISED_AT_LOAD == METHODS
    chain, beforehand, *_ = order(Ask(term_days=7), profile=quantised("fp8")).checks[2:]
    assert "check QUANTISED_CHECKPOINT" in chain.command
    assert "profile QUANTISED_CHECKPOINT" in beforehand.command
    assert "quantised by fp8 beforehand" in beforehand.expect
    assert "quantised by fp8 beforehand" in chain.expect
    at_load = order(Ask(term_days=7), profile=quantised("torchao-int8wo")).checks[4]
    assert "--quantization torchao-int8wo" in at_load.command
    assert (
        "--dtype float16 --quantization torchao-int8wo"
        in order(Ask(term_days=7), profile=quantised("torchao-int8wo")).checks[2].command
    )


def environment(document: OrderDocument) -> dict[str, EnvironmentRow]:
    return {row.component: row for row in document.environment}


def test_the_environment_of_a_run_elsewhere_is_its_releases_as_pypi_has_them() -> None:
    """The profile ran torch 2.13.0: its wheel brings CUDA 13.0, for which 580.65.06 is the oldest driver."""
    rows = environment(order(Ask(term_days=7)))
    assert (rows["driver"].declared, rows["driver"].origin) == (None, "unknown")
    assert rows["driver"].needed == "at least 580.65.06 on Linux: for CUDA 13.x"
    assert rows["CUDA"].needed == "13.0, which torch 2.13.0 from PyPI brings (Linux, x86-64)"
    assert rows["CUDA"].source == "https://pypi.org/pypi/torch/2.13.0/json"
    assert rows["build target"].needed == "sm_90 (9.0): torch >= 2.0"
    assert (rows["torch"].declared, rows["torch"].origin, rows["torch"].needed) == ("2.13.0", "measured", "2.13.0")
    assert rows["transformers"].source == "this order"
    assert rows["to install"].needed == "pip install torch==2.13.0 transformers==5.24.0"


def test_the_environment_of_a_run_on_a_card_is_the_very_build_that_ran() -> None:
    rows = environment(order(Ask(term_days=7), profile=on_the_card()))
    assert (rows["driver"].declared, rows["driver"].needed) == ("570.1", "at least 525.60.13 on Linux: for CUDA 12.x")
    assert (rows["CUDA"].declared, rows["CUDA"].needed) == ("CUDA 12.8", "12.8, as in the run")
    assert rows["torch"].needed == "2.9.0+cu128"
    assert rows["to install"].needed == (
        "pip install torch==2.9.0 --index-url https://download.pytorch.org/whl/cu128 && "
        "pip install transformers==5.24.0"
    )


def test_a_build_that_the_card_does_not_take_is_not_told_to_be_installed() -> None:
    volta = make_card(software=Software(arch="sm_70", max_cuda="12.x", cuda_note="CUDA 13 dropped Volta"))
    rows = environment(order(Ask(term_days=7), card=volta))
    assert rows["torch"].needed == "2.13.0, in a build that the card takes"
    assert (rows["CUDA"].needed or "").startswith("at most 12.x (CUDA 13 dropped Volta); not 13.0, which torch 2.13.0")
    assert rows["driver"].needed == "on Linux at least 450.80.02 for CUDA 11.x, 525.60.13 for CUDA 12.x"
    assert rows["to install"].needed is None


def test_of_arithmetic_nothing_is_declared_and_what_is_needed_is_said_not_to_be_known() -> None:
    rows = environment(order(Ask(term_days=7), profile=quantised("fp8")))
    assert rows["torch"].declared is None  # nothing ran: the versions are those of the arithmetic
    assert (rows["transformers"].declared, rows["transformers"].origin) == ("5.24.0", "computed")
    assert rows["CUDA"].needed == "not known which; the card takes at least 11.8"
    assert (rows["torch"].needed, rows["torch"].source) == (None, "unknown")
    amd = environment(order(Ask(term_days=7), card=make_card(vendor="AMD")))
    assert amd["driver"].needed is amd["HIP (ROCm)"].needed is amd["to install"].needed is None
    assert amd["torch"].needed == "2.13.0, in a build for ROCm"


def test_what_decides_a_verdict_stands_where_it_is_told() -> None:
    """A card without bfloat16, for a model that computes in it: bytes enough, and yet nothing is promised."""
    one = make_profile()
    matmul = ComputeDtype(family="matmul", dtypes=("bfloat16",), calls=1)
    profile = msgspec.structs.replace(one, precision=msgspec.structs.replace(one.precision, compute=(matmul,)))
    bare = make_card(peak_tflops=Peaks(unsupported=("bf16",)))
    document = order(Ask(term_days=3), profile=profile, card=bare)
    (blocker,) = document.blockers
    assert blocker.startswith("x1-80gb: too close: no bfloat16 in this card's hardware")
    assert "are needed" not in blocker
    assert document.margin.reason is not None
    assert document.margin.reason in blocker
    assert document.margin.reason not in document.notes
    runs = [check.command for check in document.checks if check.command.startswith(("gpufit check", "gpufit profile"))]
    assert ["--dtype float16" in command for command in runs] == [True, True]
    assert not any("gpufit verify" in check.command for check in document.checks)  # it would run in bfloat16


def test_what_ran_out_of_memory_on_the_very_card_is_the_reason() -> None:
    one = on_the_card()
    lost = [
        msgspec.structs.replace(cell, outcome=OutOfMemory(phase=Phase.PREFILL, message="out of memory"))
        if cell.key == (512, 4, 1)
        else cell
        for cell in one.cells
    ]
    document = order(Ask(term_days=3), profile=msgspec.structs.replace(one, cells=tuple(lost)))
    assert document.blockers == (
        "x1-80gb: does not fit, and none of the plans tried serves it: whole copies (the profile does not tell how "
        "the model divides over cards): context 512 x 1 ran out of memory on this very card; gpufit fit names "
        "cards that do",
    )


@pytest.mark.parametrize(
    ("evidence", "on"),
    [
        (Evidence.COMPUTED, "on arithmetic: nothing was run"),
        (Evidence.ASSUMED, "on arithmetic: nothing was run"),
        (Evidence.SIMULATED, "on a simulated run: no card ran it"),
        (Evidence.SCALED, "on figures scaled from a run on AMD EPYC"),
    ],
)
def test_ready_says_on_what(evidence: Evidence, on: str) -> None:
    document = order(Ask(term_days=3))
    assert (document.ready, document.readiness) == (True, "ready_unproven")
    told = status(msgspec.structs.replace(document, evidence=evidence))
    assert told == f"Ready to order, {on}; check 6 decides before the work starts."
    assert [number for number, check in enumerate(document.checks, start=1) if check.decides] == [6]


def test_what_was_measured_on_the_card_is_ready_without_more() -> None:
    document = order(Ask(term_days=3), profile=on_the_card())
    assert (document.readiness, status(document)) == ("ready", "Ready to order.")
    other = order(Ask(term_days=3), Shape(500, 4, 4), on_the_card())
    assert (other.evidence, other.readiness) == ("measured", "ready_unproven")
    assert status(other).startswith("Ready to order, on a model fitted to a run on NVIDIA X1: this shape was not run;")
    short = order(Ask(term_days=3, volume=Volume(inputs=1_000_000)), profile=on_the_card())
    assert (short.readiness, status(short)) == ("not_ready", "Not ready to order.")


def test_an_order_made_of_a_model_has_no_profile_to_repeat() -> None:
    profile = make_profile(evidence=Evidence.COMPUTED)
    catalog, books = Catalog(cards=(CARD,)), offers(PAIRS)
    document = flows_order.order(profile, "m", SHAPE, catalog, books, CARD, Ask(term_days=7), saved=False)
    commands = [check.command for check in document.checks]
    assert not any("gpufit verify" in command for command in commands)
    assert f"gpufit check {profile.model.source}" in commands


def test_a_profile_of_several_ranks_is_not_measured_on_one_card() -> None:
    one = make_profile(evidence=Evidence.SIMULATED)
    ranks = msgspec.structs.replace(one.workload, tensor_parallel_size=2)
    document = order(Ask(term_days=7), profile=msgspec.structs.replace(one, workload=ranks))
    assert document.card.ranks == 2
    assert gpufit_commands(document) == []
    (deciding,) = [check for check in document.checks if check.decides]
    assert deciding.title == "the divided model, beside its first run"
    assert "serves 4 sequences of 512 tokens" in deciding.expect


def test_weights_that_nobody_read_are_not_told_by_a_hash_of_the_config() -> None:
    one = make_profile(evidence=Evidence.COMPUTED)
    assert one.precision.stored
    bare = msgspec.structs.replace(one, precision=msgspec.structs.replace(one.precision, stored=()))

    def weights(profile: Profile) -> str:
        document = order(Ask(term_days=7), profile=profile)
        assert document.weights_read is (profile is one)
        return next(saved.how for saved in document.save if saved.what == "weights")

    assert weights(bare).startswith("config only: no weights were read; record the hub commit")
    assert "0" * 64 not in weights(bare)
    assert weights(one).startswith(f"unchanged: fingerprint {'0' * 64}, not the bytes (")


@pytest.mark.parametrize(
    ("revision", "words"),
    [("main", "revision main, which may move; record the hub commit"), ("a" * 40, f"revision {'a' * 40}, not the")],
)
def test_a_branch_tells_no_weights(revision: str, words: str) -> None:
    one = make_profile()
    model = msgspec.structs.replace(one.model, revision=revision)
    document = order(Ask(term_days=7), profile=msgspec.structs.replace(one, model=model))
    assert words in next(saved.how for saved in document.save if saved.what == "weights")


def test_named_workers_share_the_sequences_out() -> None:
    """256 at once over 8 workers are 32 each: the margin is that of 32, and 8 x 32 are asked for again on arrival."""
    document = order(Ask(term_days=7, workers=8, volume=Volume(inputs=800)), Shape(512, 4, 256))
    alone = order(Ask(term_days=7), Shape(512, 4, 32))
    assert [one.at_once for one in document.workers] == [32] * 8
    assert document.margin == alone.margin
    assert document.scenario.concurrency == 256
    assert document.spread.startswith("The 256 sequences at once are shared out among 8 workers: at most 32 each")
    again = gpufit_commands(document)[-1]
    assert again[again.index("--concurrency") + 1] == "256"
    uneven = order(Ask(term_days=7, workers=3), Shape(512, 4, 4))
    assert {one.at_once for one in uneven.workers} == {2}


def test_an_arrival_run_of_one_cell_answers_for_all_workers() -> None:
    """Without a memory model only the measured cell of 2 answers: 2 workers of 2 serve 4, and hours follow from it."""
    one = msgspec.structs.replace(on_the_card(), memory_model=None)
    two = tuple(cell for cell in one.cells if cell.key == (512, 4, 2))
    profile = msgspec.structs.replace(one, cells=two)
    document = order(Ask(7, Volume(inputs=100), workers=2), SHAPE, profile)
    assert document.ready
    assert [one.at_once for one in document.workers] == [2, 2]
    assert document.work.total_hours is not None


def test_workers_without_an_input_are_a_blocker() -> None:
    document = order(Ask(term_days=3, volume=Volume(inputs=10), workers=100))
    assert document.blockers == (
        "100 workers for 10 inputs: 90 of them get none, and their cards would be paid for idle; --workers 10 is "
        "enough",
    )
    most = order(Ask(term_days=7)).margin.max_concurrency
    assert most is not None
    (blocker,) = order(Ask(7, Volume(inputs=1)), Shape(512, 4, most + 1)).blockers
    each = -(-(most + 1) // 2)
    assert blocker == (
        f"2 workers for 1 input: 1 of them gets none, and its cards would be paid for idle; --concurrency {each} is "
        "enough"
    )
    few = order(Ask(7, Volume(inputs=2)))
    assert few.ready
    assert "2 inputs never run 4 at once: --concurrency 2 is enough" in few.notes


def test_hours_of_a_cell_that_is_no_easier_are_at_most() -> None:
    """Of 500 tokens the cell of 512 tells: 4 inputs a second at least, so that 1,000,000 take at most 85.2 h."""
    document = order(Ask(term_days=3, volume=Volume(inputs=1_000_000)), Shape(500, 4, 4), on_the_card())
    work = document.work
    assert (work.throughput_lower_bound, work.hours_upper_bound, work.hours_evidence) == (True, True, "scaled")
    assert hours_words(document).startswith("at most 85.2 h (scaled) = 77.2 h of work + 4 h set-up")
    assert throughput_words(document).startswith("at least 4.00 inputs/s by a worker (scaled): 4 inputs in 1.00 s")
    assert document.blockers[0].startswith("the work may take up to 85.2 h (scaled), and 3 days have 72")
    assert [term_holds(document, term) for term in document.terms] == ["not surely", "yes", "yes"]
    exact = order(Ask(term_days=3, volume=Volume(inputs=1_000_000)), profile=on_the_card())
    assert hours_words(exact).startswith("85.2 h (measured) = ")
    assert term_holds(exact, exact.terms[0]) == "no"


def test_a_small_job_takes_more_than_no_time() -> None:
    """10 inputs at 4 a second and 90 % busy are 2.8 s: 0.00077 h."""
    document = order(Ask(term_days=3, volume=Volume(inputs=10)), profile=on_the_card())
    assert "= 0.00077 h of work" in hours_words(document)


def test_a_start_of_vllm_is_ordered_with_its_command(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two ranks a copy; 40 sequences take several copies, and a lot holds two cards."""
    folder = tmp_path_factory.mktemp("vllm") / "Qwen3-32B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-32B"]))
    request = VllmRequest(model=str(folder), max_model_len=16_384, concurrency=40, tensor_parallel=2)
    card = make_card("x1-80gb", 79.1)
    book = OfferBook(name="pairs", offers=(Offer(card="x1-80gb", lot_size=4),))
    document = flows_order.order_start(request, Catalog(cards=(card,)), offers(book), card, Ask(term_days=30))
    workers = document.workers
    assert document.ready
    assert document.card.ranks == 2
    assert document.card.cards_needed == 2 * len(workers)
    assert document.card.cards_paid == -(-2 * len(workers) // 4) * 4
    assert workers[1].devices == "2-3"
    assert sum(one.at_once for one in workers) >= 40
    assert [check.title for check in document.checks][1] == "the links"
    command = document.checks[-2].command
    assert command.startswith("vllm serve")
    assert "--tensor-parallel-size 2" in command
    # The line of vLLM's log that decides: whether each copy holds its own share of the 40.
    share = -(-40 // len(workers))
    expected = document.checks[-2].expect
    assert f'"Maximum concurrency for 16,384 tokens per request" of at least {share:.2f}x. With less, stop' in expected
    assert [check.decides for check in document.checks[-2:]] == [True, False]
    assert "/v1/completions" in document.checks[-1].command
    assert msgspec.json.decode(msgspec.json.encode(document), type=OrderDocument) == document


def test_a_start_that_one_card_does_not_hold_is_ordered_over_as_many_ranks_as_are_planned(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """61 GiB of weights: half of them on each of two cards of 44.42 GiB, where nothing over one was asked for."""
    folder = tmp_path_factory.mktemp("vllm") / "Qwen3-32B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-32B"]))
    request = VllmRequest(model=str(folder), max_model_len=4096, concurrency=8)
    card = make_card("x1-48gb", 44.42)
    book = OfferBook(name="threes", offers=(Offer(card="x1-48gb", lot_size=3),))
    document = flows_order.order_start(request, Catalog(cards=(card,)), offers(book), card, Ask(term_days=30))
    assert document.ready
    assert (document.card.ranks, document.card.cards_needed, document.card.cards_paid) == (2, 2, 3)
    assert document.card.arrangement == "sharded"
    assert ", 2 x " in document.holds_for
    assert "divided over 2 devices" in document.spread
    (worker,) = document.workers
    assert (worker.devices, worker.at_once) == ("0-1", 8)
    assert "--tensor-parallel-size 2 " in document.checks[-2].command


def vllm_order(folder: Path, version: str, card: Card, ask: Ask) -> OrderDocument:
    """Qwen3-0.6B: 40 sequences of 1k tokens."""
    folder = folder / "Qwen3-0.6B"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-0.6B"]))
    request = VllmRequest(model=str(folder), max_model_len=1024, concurrency=40, engine_version=version)
    book = OfferBook(name="one", offers=(Offer(card=card.id, lot_size=1),))
    return flows_order.order_start(request, Catalog(cards=(card,)), offers(book), card, ask)


def test_a_release_of_vllm_is_installed_with_the_torch_that_it_pins(tmp_path: Path) -> None:
    rows = environment(vllm_order(tmp_path, "0.11.0", CARD, Ask(term_days=7)))
    assert (rows["torch"].needed, rows["torch"].source) == (
        "2.8.0: vllm 0.11.0 pins it",
        "https://pypi.org/pypi/vllm/0.11.0/json",
    )
    assert rows["CUDA"].needed == "12.8, which torch 2.8.0 from PyPI brings (Linux, x86-64)"
    assert rows["driver"].needed == "at least 525.60.13 on Linux: for CUDA 12.x"
    assert rows["to install"].needed == "pip install vllm==0.11.0"


def test_a_release_whose_pin_the_card_does_not_take_is_no_order(tmp_path: Path) -> None:
    blackwell = make_card(software=Software(arch="sm_100", min_cuda="12.8"))
    document = vllm_order(tmp_path, "0.9.0", blackwell, Ask(term_days=7))
    assert document.blockers == (
        "x1-80gb: vllm 0.9.0 pins torch 2.7.0, which brings CUDA 12.6, and this card takes at least 12.8; releases "
        "from 0.10.2 on suit it (--engine-version)",
    )
    assert vllm_order(tmp_path, "0.10.2", blackwell, Ask(term_days=7)).ready
    volta = make_card(software=Software(arch="sm_70", max_cuda="12.x"))
    (blocker,) = vllm_order(tmp_path, "0.29.0", volta, Ask(term_days=7)).blockers
    assert "releases from 0.6.0 on suit it, before 0.20.0" in blocker


def test_named_workers_of_vllm_share_the_sequences_out(tmp_path: Path) -> None:
    document = vllm_order(tmp_path, "0.29.0", CARD, Ask(term_days=7, workers=4))
    assert document.ready
    assert [one.at_once for one in document.workers] == [10] * 4
    assert document.spread.startswith("The 40 sequences at once are shared out among 4 workers: at most 10 each")
    assert "of at least 10.00x" in document.checks[-2].expect


def test_named_workers_each_take_as_many_devices_as_their_share_needs(tmp_path: Path) -> None:
    """61 GiB of weights and 0.25 MiB a token: 512 sequences of 1k tokens, 128 GiB, take several devices of 79.1 GiB a
    copy. Of 64 workers with 8 each, 2 GiB, one is enough; of 4 with 128 each, 32 GiB, it is not."""
    folder = tmp_path / "Qwen3-32B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-32B"]))
    card = make_card("x1-80gb", 79.1)
    book = OfferBook(name="one", offers=(Offer(card=card.id, lot_size=1),))

    def of(workers: int | None) -> OrderDocument:
        request = VllmRequest(model=str(folder), max_model_len=1024, concurrency=512)
        return flows_order.order_start(request, Catalog(cards=(card,)), offers(book), card, Ask(7, workers=workers))

    assert of(None).card.ranks > 1
    many = of(64)
    assert (many.card.ranks, many.card.cards_needed, many.margin.at_once) == (1, 64, 8)
    assert many.card.arrangement == "replicas"
    few = of(4)
    assert few.ready
    assert (few.card.cards_needed, few.margin.at_once) == (4 * few.card.ranks, 128)
    assert few.card.ranks > 1
