"""An order of a model held otherwise than it was profiled: worked out, never ready, and how it is had."""

from __future__ import annotations

import io
import json
import shlex

import msgspec
import pytest
from builders import make_card, make_layout, make_offers, make_profile
from openpyxl import load_workbook
from test_report_order import CARD, PAIRS, SHAPE, offers, on_the_card

from gpufit import flows_order
from gpufit.advice.plan import Ask
from gpufit.advice.terms import Volume
from gpufit.catalog.card_parts import Peaks
from gpufit.catalog.record import Card, Catalog
from gpufit.cli.main import build_parser
from gpufit.errors import UsageError
from gpufit.memory.held import Cache, Compute, Held, Weights
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.precision import ComputeDtype, DtypeShare, Quantization
from gpufit.profile.record import Profile
from gpufit.report.order_again import Again
from gpufit.report.order_document import OrderDocument
from gpufit.report.order_registry import load_order_format
from gpufit.report.order_text import status
from gpufit.report.schema import schema_of

FP8_CACHE = Held(kv_cache=Cache.FP8)
TOKENS = SHAPE.context_tokens * SHAPE.concurrency
"""At the peak, which is in prefill: activations and temporaries take 5,000 B a token there, in decode 600."""


def order(
    held: Held,
    profile: Profile | None = None,
    shape: Shape = SHAPE,
    card: Card = CARD,
    ask: Ask = Ask(term_days=7),  # noqa: B008
) -> OrderDocument:
    one = profile or make_profile(layout=make_layout())
    return flows_order.order(one, "p.json", shape, Catalog(cards=(card,)), offers(PAIRS), card, ask, held=held)


def in_float32(**changes: object) -> Profile:
    """The default profile in float32: its float16 weights, cache and products under another name, twice as large."""
    one = make_profile(layout=make_layout())
    share = DtypeShare(dtype="float32", size_bytes=256_000_000, tensors=200)
    cache = DtypeShare(dtype="float32", size_bytes=20_000 * 128, tensors=60)
    matmul = ComputeDtype(family="matmul", dtypes=("float32",), calls=211)
    precision = msgspec.structs.replace(one.precision, resident=(share,), kv=(cache,), compute=(matmul,))
    workload = msgspec.structs.replace(one.workload, **changes)
    return msgspec.structs.replace(one, precision=precision, workload=workload)


def commands(document: OrderDocument) -> dict[str, list[str]]:
    """The words behind `gpufit`, by the verb."""
    found = [shlex.split(one.command) for one in document.checks if one.command.startswith("gpufit ")]
    return {words[1]: words[1:] for words in found}


def test_figures_are_worked_out_and_the_order_is_not_ready() -> None:
    """One byte of the cache's two are left: 10,000 B a token less. All else stays as it was on this very card."""
    profile = msgspec.structs.replace(on_the_card(), layout=make_layout())
    was, now = order(Held(), profile), order(FP8_CACHE, profile)
    assert was.margin.need_bytes - now.margin.need_bytes == 10_000 * TOKENS
    assert (was.readiness, was.evidence, was.held) == ("ready", Evidence.MEASURED, None)
    assert (now.readiness, now.ready, now.evidence) == ("not_ready", False, Evidence.SCALED)
    assert (now.scenario.kv_cache, now.scenario.weights, now.scenario_ran) == ("FP8", None, None)
    assert now.margin.held_out_error is None  # that of the run as it was
    assert now.held is not None
    assert (now.held.words, now.held.remarks) == ("KV cache FP8", ())
    assert status(now) == "Not ready to order."
    assert now.blockers == (
        "nothing was run with KV cache FP8, and every figure of memory is worked out: measure that first, on one such "
        "card (check 4 does, and check 5 decides); then order from arrival.json",
    )
    assert [now.checks[3].command.split()[1], now.checks[4].decides] == ["profile", True]
    assert msgspec.json.decode(msgspec.json.encode(now), type=OrderDocument) == now


def test_speed_is_that_of_no_run() -> None:
    """Measured as it was, 100 inputs have hours on this card; held otherwise they have none."""
    profile = msgspec.structs.replace(on_the_card(), layout=make_layout())
    ask = Ask(term_days=7, volume=Volume(inputs=100))
    assert order(Held(), profile, ask=ask).work.total_hours is not None
    work = order(FP8_CACHE, profile, ask=ask).work
    assert (work.total_hours, work.inputs_per_second) == (None, None)
    assert work.throughput == "no throughput: nothing was run with KV cache FP8"


def test_the_checks_measure_it_so_with_options_that_exist() -> None:
    document = order(Held(Weights.FP8, kv_cache=Cache.FP8), ask=Ask(term_days=7, volume=Volume(inputs=10)))
    found = commands(document)
    assert list(found) == ["check", "profile", "fit", "order"]  # the profile's own run would be another
    parsed = {verb: build_parser().parse_args(words) for verb, words in found.items()}
    assert parsed["check"].quantization == parsed["profile"].quantization == "torchao-float8wo"
    assert (parsed["profile"].kv_cache_dtype, parsed["profile"].cache_implementation) == ("fp8", None)
    assert parsed["fit"].held == parsed["order"].held == []  # what was measured is so
    most = document.margin.need_upper_bytes
    assert f"need at most {most} bytes" in next(one.expect for one in document.checks if one.decides)


def test_without_a_volume_the_order_is_asked_again_all_the_same() -> None:
    document = order(FP8_CACHE)
    assert document.checks[-1].title == "the order, from that run"
    again = build_parser().parse_args(commands(document)["order"])
    assert (again.profile, again.term, again.workers, again.concurrency) == ("arrival.json", 7, 1, SHAPE.concurrency)


EXPERTS = "routed experts, where a model has some, stay as they were: an FP8 checkpoint holds them, too"


@pytest.mark.parametrize(
    ("held", "profile", "options", "remarks"),
    [
        (Held(Weights.BITS_16, Compute.BITS_16), in_float32(), "--dtype bfloat16", ()),
        (
            Held(Weights.BITS_16),
            in_float32(),
            "--dtype bfloat16",
            ("transformers computes in the dtype of its weights: with these in bfloat16, too",),
        ),
        (Held(compute=Compute.BITS_16), in_float32(), "--compute-dtype bfloat16", ()),
        (
            Held(kv_cache=Cache.BITS_16),
            in_float32(),
            "--compute-dtype bfloat16",
            ("transformers caches in the dtype that it computes in: with a cache in bfloat16, too",),
        ),
        (Held(compute=Compute.BITS_16, kv_cache=Cache.BITS_16), in_float32(), "--compute-dtype bfloat16", ()),
        (
            Held(Weights.FP8, Compute.BITS_16),
            in_float32(),
            "--dtype bfloat16 --quantization torchao-float8wo",
            (EXPERTS,),
        ),
        (
            Held(Weights.BITS_4),
            in_float32(images=2),
            "",
            ("QUANTISED_CHECKPOINT is the model quantised by GPTQ or AWQ to 4 bits in groups of 128 beforehand",),
        ),
        (
            Held(kv_cache=Cache.FP8),
            in_float32(cache_implementation="static"),
            "--kv-cache-dtype fp8",
            (),
        ),
    ],
)
def test_how_it_is_had(held: Held, profile: Profile, options: str, remarks: tuple[str, ...]) -> None:
    found = order(held, profile).held
    assert found is not None
    assert (found.options, found.remarks) == (options, remarks)


def test_an_autocast_that_is_left_out_computes_in_float32() -> None:
    """Weights in float32, products in bfloat16 by autocast: without it they are in float32."""
    one = in_float32(compute_dtype="bfloat16")
    matmul = ComputeDtype(family="matmul", dtypes=("bfloat16",), calls=211)
    profile = msgspec.structs.replace(one, precision=msgspec.structs.replace(one.precision, compute=(matmul,)))
    document = order(Held(compute=Compute.FLOAT32), profile)
    assert "--compute-dtype" not in commands(document)["profile"]
    as_it_was = order(Held(), profile)
    assert commands(as_it_was)["profile"].count("--compute-dtype") == 1


def test_what_no_option_holds_so_is_watched_beside_its_own_start() -> None:
    """Of weights in 16 bits transformers makes no products in float32."""
    document = order(Held(compute=Compute.FLOAT32))
    (watched,) = [one for one in document.checks if one.decides]
    assert watched.title == "the model, beside its first run"
    assert "your own start of the model, with compute float32, serves 4 sequences of 512 tokens: at most" in (
        watched.expect
    )
    assert f"({document.margin.need_upper_bytes // 2**20:,} MiB)" in watched.expect
    assert "each device" not in watched.expect
    assert not commands(document)
    assert document.held is not None
    assert document.held.options == ""
    assert document.held.remarks == (
        "transformers computes in float32 only over weights that are held in float32, too",
    )
    (blocker,) = document.blockers
    assert blocker.endswith("on one such card (check 3 decides); with no more than that, order it as it stands")


def test_an_encoder_decoder_and_a_cache_that_stays_wide_are_refused_by_transformers() -> None:
    one = make_profile(layout=make_layout())
    apart = msgspec.structs.replace(one, model=msgspec.structs.replace(one.model, decodes_apart=True))
    assert "no quantised cache for an encoder-decoder" in Again.of(apart, CARD, FP8_CACHE).cannot
    wide = (DtypeShare(dtype="float32", size_bytes=1, tensors=1),)
    state = msgspec.structs.replace(one, precision=msgspec.structs.replace(one.precision, kv=wide))
    assert "computes in 16 bits already" in Again.of(state, CARD, Held(kv_cache=Cache.BITS_16)).cannot


@pytest.mark.parametrize("how", ["gguf", "files", "run"])
def test_what_is_quantised_already_needs_a_checkpoint_in_fp8(how: str) -> None:
    one = make_profile(layout=make_layout())
    replace = msgspec.structs.replace
    profile = {
        "gguf": replace(one, model=replace(one.model, source="m.gguf")),
        "files": replace(one, precision=replace(one.precision, quantization=Quantization(method="awq"))),
        "run": replace(one, workload=replace(one.workload, quantization="torchao-int8wo")),
    }[how]
    document = order(Held(Weights.FP8), profile)
    assert "QUANTISED_CHECKPOINT" in commands(document)["profile"]
    assert "--quantization" not in commands(document)["profile"]
    assert document.held is not None
    assert document.held.remarks == ("QUANTISED_CHECKPOINT is the model quantised by fp8 beforehand",)


def test_sixteen_bits_are_float16_where_the_card_has_no_other() -> None:
    bare = make_card(peak_tflops=Peaks(unsupported=("bf16",)))
    found = order(Held(Weights.BITS_16, Compute.BITS_16), in_float32(), card=bare).held
    assert found is not None
    assert found.options == "--dtype float16"


def test_what_quantises_at_load_is_to_be_installed() -> None:
    """Nothing of the run's environment tells which release of torchao goes with it."""
    rows = {row.component: row for row in order(Held(Weights.FP8)).environment}
    assert rows["torchao"].declared is None
    assert rows["torchao"].needed == "a release for this torch: it holds the weights so, which nothing ran"
    assert "torchao" not in {row.component for row in order(FP8_CACHE).environment}
    one = make_profile(layout=make_layout())
    versions = one.environment.versions | {"torchao": "0.18.0"}
    ran = msgspec.structs.replace(one, environment=msgspec.structs.replace(one.environment, versions=versions))
    (row,) = [row for row in order(Held(Weights.FP8), ran).environment if row.component == "torchao"]
    assert row.needed == "0.18.0"


def test_a_divided_model_is_measured_on_the_cards_of_one_copy() -> None:
    """Context, kernels and workspace take 512 + 158 + 32 MiB at most: beside weights of 244 MiB more than 900 MiB,
    beside half of them less."""
    small = make_card(capacity_gib=900 / 1024)
    document = order(FP8_CACHE, shape=Shape(128, 4, 4), card=small)
    assert document.card.ranks == 2
    (blocker,) = document.blockers
    number = next(number for number, one in enumerate(document.checks, start=1) if one.decides)
    assert f"on the 2 cards of one copy (check {number} decides)" in blocker
    watched = document.checks[number - 1]
    assert watched.title == "the divided model, beside its first run"
    assert "over 2 devices, with KV cache FP8, serves" in watched.expect
    assert document.evidence is not Evidence.MEASURED
    assert "KV cache FP8" in document.holds_for


def test_a_choice_that_does_not_apply_is_one_line() -> None:
    with pytest.raises(UsageError, match="compute cannot be 16-bit: it computed in float16 already"):
        order(Held(compute=Compute.BITS_16))


def test_no_order_has_nothing_to_measure_first() -> None:
    document = order(FP8_CACHE, shape=Shape(32_000, 4, 4), card=make_card(capacity_gib=0.5))
    assert document.card.lots is None
    (blocker,) = document.blockers
    assert "does not fit" in blocker


def test_every_format_shows_it() -> None:
    document = order(FP8_CACHE)
    line = "KV cache FP8: worked out, nothing was run so; gpufit profile takes --kv-cache-dtype fp8 for it"
    figures = "Figures of memory: scaled, worked out for KV cache FP8 from a profile of AMD EPYC that is not held so."
    markdown = load_order_format("markdown").render_order(document).decode()
    assert line in markdown
    assert figures in markdown
    assert "at once, if KV cache FP8" in markdown
    sheet = load_workbook(io.BytesIO(load_order_format("xlsx").render_order(document)))["order"]
    cells = {str(cell.value) for row in sheet.iter_rows() for cell in row if cell.value is not None}
    assert {line, "held otherwise", "Not ready to order."} <= cells
    assert any(figures in cell for cell in cells)
    printed = json.loads(load_order_format("json").render_order(document))
    assert printed["held"] == {
        "words": "KV cache FP8",
        "options": "--kv-cache-dtype fp8",
        "remarks": [],
    }
    assert printed["scenario"]["kv_cache"] == "FP8"
    assert "HeldOtherwise" in json.dumps(schema_of("order"))


def test_as_profiled_nothing_is_said_of_it() -> None:
    """An empty choice is none: the document is the same as without."""
    one = make_profile(layout=make_layout())
    plain = flows_order.order(one, "p.json", SHAPE, Catalog(cards=(CARD,)), make_offers(PAIRS), CARD, Ask(term_days=7))
    again = flows_order.order(
        one, "p.json", SHAPE, Catalog(cards=(CARD,)), make_offers(PAIRS), CARD, Ask(term_days=7), held=Held()
    )
    assert plain == again
    assert plain.ready
    assert "held otherwise" not in load_order_format("markdown").render_order(plain).decode()
