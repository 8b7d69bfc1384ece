"""The order document over a profile whose bytes are plain arithmetic: what is ordered, and what its parts say."""

from __future__ import annotations

import ast
import datetime
import json
import shlex

import msgspec
import pytest
from builders import make_card, make_profile
from public_models import CONFIGS

from gpufit import flows
from gpufit.advice.plan import Ask
from gpufit.advice.terms import Volume
from gpufit.catalog.offers import Offer, OfferBook, Offers
from gpufit.catalog.record import Card, Catalog, Mig, Software
from gpufit.cli.main import build_parser
from gpufit.errors import UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.record import DeviceInfo, Evidence, Profile
from gpufit.report.order_checks import QUANTISED_AT_LOAD
from gpufit.report.order_document import OrderDocument
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
    return flows.order(profile or make_profile(), "p.json", shape, Catalog(cards=(card,)), offers(*books), card, ask)


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
    assert any(note.startswith("7 days and 1 worker: the same work for 100.00 EUR") for note in document.notes)
    assert not any("the same work" in note for note in order(Ask(7, Volume(1_000_000)), profile=on_the_card()).notes)


def test_a_term_that_is_too_short_is_no_order() -> None:
    document = order(Ask(term_days=3, volume=Volume(inputs=1_000_000)), profile=on_the_card())
    assert not document.ready
    (blocker,) = document.blockers
    assert blocker == (
        "the work takes 85.2 h, and 3 days have 72: --term 7 holds it, --workers 2 brings it into 3 days"
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
        "second on, 7 days from 0.97 inputs a second on, 30 days from 0.22 inputs a second on"
    ) in document.notes


def test_a_blank_price_stays_blank() -> None:
    document = order(Ask(term_days=3))
    assert document.cost.price_per_lot is None
    assert document.cost.total_price is None
    assert document.idle is not None
    assert document.idle.price is None


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
    assert f"need at most {capacity} bytes" in document.checks[3].expect  # the upper bound is more than there is


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
    found = [build_parser().parse_args(words) for words in gpufit_commands(document)]
    assert [one.command for one in found] == ["profile", "fit", "order"]
    measured, judged, planned = found
    assert (measured.context, measured.concurrency, measured.new_tokens) == ((512,), (4,), 4)
    assert (judged.context, judged.concurrency, judged.new_tokens, judged.card) == (512, 4, 4, ["x1-80gb"])
    assert (planned.inputs, planned.tokens, planned.term, planned.workers) == (10, 100, 7, 1)
    assert [str(measured.output)] == judged.profiles == [planned.profile] == ["arrival.json"]


def test_the_checks_name_the_cards_and_what_torch_has_to_see() -> None:
    smi, torch, *_ = order(Ask(term_days=7)).checks
    assert smi.command.startswith("nvidia-smi --query-gpu=")
    assert "2 devices over all machines: NVIDIA X1" in smi.expect  # both of the lot, the idle one as well
    assert "mig.mode.current" in smi.expect
    assert f"each at least {80 * GIB} bytes" in torch.expect
    ast.parse(shlex.split(torch.command)[2])
    amd = order(Ask(term_days=7), card=make_card(vendor="AMD")).checks[0]
    assert amd.command.startswith("amd-smi static")


def test_a_method_that_profile_cannot_apply_needs_a_checkpoint() -> None:
    assert set(QUANTISED_AT_LOAD) == set(METHODS)
    beforehand = order(Ask(term_days=7), profile=quantised("fp8")).checks[2]
    assert "profile QUANTISED_CHECKPOINT" in beforehand.command
    assert "quantised by fp8 beforehand" in beforehand.expect
    at_load = order(Ask(term_days=7), profile=quantised("torchao-int8wo")).checks[2]
    assert "--quantization torchao-int8wo" in at_load.command


def test_the_environment_says_where_each_line_comes_from() -> None:
    rows = {row.component: row for row in order(Ask(term_days=7)).environment}
    assert (rows["driver"].declared, rows["driver"].origin, rows["driver"].source) == (None, "unknown", "unknown")
    assert (rows["CUDA"].needed, rows["CUDA"].source) == ("at least 11.8", "catalog")
    assert (rows["torch"].declared, rows["torch"].origin) == ("2.13.0", "measured")
    assert rows["torch"].needed == "2.13.0; torch >= 2.0"
    assert rows["transformers"].source == "this order"
    computed = {row.component: row for row in order(Ask(term_days=7), profile=quantised("fp8")).environment}
    assert computed["torch"].declared is None  # nothing ran: the versions are those of the arithmetic
    assert (computed["transformers"].declared, computed["transformers"].origin) == ("5.24.0", "computed")


def test_a_start_of_vllm_is_ordered_with_its_command(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two ranks a copy; 40 sequences take several copies, and a lot holds two cards."""
    folder = tmp_path_factory.mktemp("vllm") / "Qwen3-32B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-32B"]))
    request = VllmRequest(model=str(folder), max_model_len=16_384, concurrency=40, tensor_parallel=2)
    card = make_card("x1-80gb", 79.1)
    book = OfferBook(name="pairs", offers=(Offer(card="x1-80gb", lot_size=4),))
    document = flows.order_start(request, Catalog(cards=(card,)), offers(book), card, Ask(term_days=30))
    workers = document.workers
    assert document.ready
    assert document.card.ranks == 2
    assert document.card.cards_needed == 2 * len(workers)
    assert document.card.cards_paid == -(-2 * len(workers) // 4) * 4
    assert workers[1].devices == "2-3"
    assert sum(one.at_once for one in workers) >= 40
    assert [check.title for check in document.checks][1] == "the links"
    command = document.checks[-1].command
    assert command.startswith("vllm serve")
    assert "--tensor-parallel-size 2" in command
    # The line of vLLM's log that decides: whether each copy holds its own share of the 40.
    share = -(-40 // len(workers))
    expected = document.checks[-1].expect
    assert f'"Maximum concurrency for 16,384 tokens per request" of at least {share:.2f}x. With less, stop' in expected
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
    document = flows.order_start(request, Catalog(cards=(card,)), offers(book), card, Ask(term_days=30))
    assert document.ready
    assert (document.card.ranks, document.card.cards_needed, document.card.cards_paid) == (2, 2, 3)
    assert document.card.arrangement == "sharded"
    assert ", 2 x " in document.holds_for
    assert "divided over 2 devices" in document.spread
    (worker,) = document.workers
    assert (worker.devices, worker.at_once) == ("0-1", 8)
    assert "--tensor-parallel-size 2 " in document.checks[-1].command
