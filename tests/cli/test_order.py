"""`gpufit order`: what it says, in which format, and when it says that nothing should be ordered yet."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import make_profile
from conftest import Run
from openpyxl import load_workbook
from public_models import CONFIGS
from test_startup import HEAVY, modules_after

from gpufit.profile.environment import DeviceInfo
from gpufit.profile.store import save_profile

SCENARIO = ("--context", "8k", "--concurrency", "16")


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("order") / "profile.json"
    save_profile(make_profile(), path)
    return path


@pytest.fixture(scope="module")
def on_l40s(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same cells as if an L40S had run them: 4 sequences of context 512 and 4 new tokens in 1 s."""
    one = make_profile()
    device = DeviceInfo(
        kind="cuda",
        name="NVIDIA L40S",
        total_bytes=int(44.42 * 2**30),
        compute_capability="8.9",
        driver="570.1",
        runtime="CUDA 12.8",
        context_bytes=500 * 2**20,
    )
    path = tmp_path_factory.mktemp("order") / "l40s.json"
    environment = msgspec.structs.replace(one.environment, device=device)
    save_profile(msgspec.structs.replace(one, environment=environment), path)
    return path


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("catalog")
    (folder / "offers").mkdir()
    (folder / "offers" / "cloud.toml").write_text(
        'schema_version = 1\nseller = "Example Cloud"\ncurrency = "EUR"\ndate = 2020-01-31\n\n'
        "[l40s-48gb]\nlot_size = 1\nprice_3_days = 90\nprice_7_days = 199.5\n\n"
        "[b200-sxm-180gb]\nlot_size = 2\nprice_7_days = 1400\n"
    )
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 0.6 billion parameters, as its config alone."""
    folder = tmp_path_factory.mktemp("order") / "Qwen3-0.6B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-0.6B"]))
    return folder


def as_json(gpufit: Run, *arguments: str | Path) -> dict[str, Any]:
    done = gpufit("order", *arguments, "--json")
    assert done.code in (0, 1), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["ready"] is (done.code == 0)
    return document


def test_markdown_is_what_standard_output_gets(gpufit: Run, profile: Path) -> None:
    done = gpufit("order", profile, *SCENARIO, "--card", "b200", "--term", "7", "--inputs", "10000")
    assert done.code == 0, done.stderr
    title, headline = done.stdout.split("\n\n")[:2]
    assert title == "# Order: 1 lot (2 cards) of NVIDIA B200 SXM 180GB for 7 days"
    assert headline.startswith("**Ready to order, on figures scaled from a run on")
    for heading in (
        "What is ordered",
        "Terms",
        "Workers",
        "Environment",
        "Checks on arrival",
        "What to save at the end",
    ):
        assert f"\n## {heading}\n" in done.stdout
    assert "1-10000" in done.stdout


def test_json_has_the_contract(gpufit: Run, profile: Path, prices: Path) -> None:
    document = as_json(gpufit, profile, *SCENARIO, "--card", "b200", "--term", "7", "--catalog", prices)
    assert document["schema_version"] == 1
    card = document["card"]
    assert (card["card"], card["cards_needed"], card["lots"], card["cards_paid"]) == ("b200-sxm-180gb", 1, 1, 2)
    assert document["cost"] == {
        "book": "cloud", "seller": "Example Cloud", "currency": "EUR", "date": "2020-01-31",
        "price_per_lot": 1400.0, "total_price": 1400.0, "stale": True, "indicative": False, "odd": None,
    }  # fmt: skip
    assert (document["idle"]["cards"], document["idle"]["price"]) == (1, 700.0)
    assert document["scenario"]["context_tokens"] == 8192
    assert document["model"]["fingerprint"] == "0" * 64
    assert document["margin"]["headroom_lower_bytes"] > 0
    assert document["margin"]["evidence"] == document["evidence"] == "scaled"


def test_the_output_file_decides_the_format(gpufit: Run, profile: Path, tmp_path: Path) -> None:
    arguments = ("order", profile, *SCENARIO, "--card", "l40s", "--term", "3")
    for name in ("order.md", "order.json", "order.xlsx", "order.html", "order.csv"):
        done = gpufit(*arguments, "-o", tmp_path / name)
        assert (done.code, done.stdout) == (0, "")
        assert f"wrote {tmp_path / name}: Ready to order, on figures scaled from a run on" in done.stderr
    assert (tmp_path / "order.md").read_text().startswith("# Order: 1 card of NVIDIA L40S 48GB for 3 days")
    assert json.loads((tmp_path / "order.json").read_text())["term_days"] == 3
    assert load_workbook(tmp_path / "order.xlsx").sheetnames == [
        "order", "terms", "workers", "job", "environment", "checks", "notes",
    ]  # fmt: skip
    refused = gpufit(*arguments, "-o", tmp_path / "order.txt")
    assert (refused.code, "use .md, .json, .xlsx, .html, .csv" in refused.error) == (2, True)


def test_hours_and_term_follow_from_a_run_on_the_card(gpufit: Run, on_l40s: Path, prices: Path) -> None:
    """4 inputs a second: 720,000 take 50 h, at 90 % busy 55.6 h, with 8 h on top 63.6: 3 days hold them."""
    scenario = ("--context", "512", "--concurrency", "4", "--new-tokens", "4")
    document = as_json(
        gpufit, on_l40s, *scenario, "--card", "l40s", "--inputs", "720000", "--catalog", prices,
        "--piece-inputs", "5000",
    )  # fmt: skip
    assert document["work"]["total_hours"] == pytest.approx(720_000 / 4 / 3600 / 0.9 + 8)
    assert (document["term_days"], document["cost"]["total_price"]) == (3, 90.0)
    assert document["pieces"]["pieces"] == 144
    slower = as_json(
        gpufit, on_l40s, *scenario, "--card", "l40s", "--inputs", "720000", "--busy-share", "0.5", "--setup-hours",
        "10.5", "--checks-hours", "0", "--export-hours", "1",
    )  # fmt: skip
    assert slower["work"]["total_hours"] == pytest.approx(100 + 11.5)
    assert slower["term_days"] == 7


def test_a_term_that_does_not_hold_the_work_is_status_1(gpufit: Run, on_l40s: Path) -> None:
    arguments = (on_l40s, "--context", "512", "--concurrency", "4", "--new-tokens", "4", "--card", "l40s")
    done = gpufit("order", *arguments, "--inputs", "1440000", "--term", "3")
    assert done.code == 1
    assert "**Not ready to order.**" in done.stdout
    assert "--term 7 holds it, --workers 2 --concurrency 8 brings it into 3 days" in done.error
    wider = [*arguments[:4], "8", *arguments[5:]]  # 8 at once
    two = as_json(gpufit, *wider, "--inputs", "1440k", "--term", "3", "--workers", "2")
    assert two["ready"]
    assert [one["at_once"] for one in two["workers"]] == [4, 4]
    assert [one["inputs"] for one in two["workers"]] == [720_000, 720_000]
    assert two["card"]["cards_paid"] == 2


def test_a_card_that_does_not_fit_is_status_1_and_says_so_at_the_top(gpufit: Run, tmp_path: Path) -> None:
    path = tmp_path / "endless.json"
    one = make_profile()
    save_profile(msgspec.structs.replace(one, model=msgspec.structs.replace(one.model, position_limit=None)), path)
    # 64m tokens of 25,016 B are 1.7 TB: far more than the card's 14.57 GiB.
    done = gpufit("order", path, "--context", "64m", "--concurrency", "1", "--card", "t4", "--term", "3")
    assert done.code == 1
    assert done.stdout.startswith("# No order: NVIDIA T4 16GB\n\n**Not ready to order.**\n\n- t4-16gb: does not fit")
    assert done.error.startswith("not ready: t4-16gb: does not fit")


def test_a_card_that_nobody_knows_is_status_1(gpufit: Run, profile: Path) -> None:
    document = as_json(gpufit, profile, *SCENARIO, "--card", "h100-sxm-64gb", "--term", "3")
    assert not document["ready"]
    assert document["margin"]["verdict"] == "unknown"


def test_whole_copies_that_fit_are_ready_and_the_top_says_that_one_is_not_enough(gpufit: Run, profile: Path) -> None:
    one = as_json(gpufit, profile, *SCENARIO, "--card", "l40s", "--term", "3")
    more = str(one["margin"]["max_concurrency"] + 1)
    document = as_json(gpufit, profile, "--context", "8k", "--concurrency", more, "--card", "l40s", "--term", "3")
    assert document["ready"]
    assert len(document["workers"]) == document["card"]["cards_paid"] == 2
    assert document["margin"]["verdict"] == "fits"
    assert document["spread"].startswith(f"One copy of the model with all {more} sequences at once: ")


def test_a_bare_h100_asks_which(gpufit: Run, profile: Path) -> None:
    done = gpufit("order", profile, "--card", "h100", "--term", "3")
    assert done.code == 2
    assert "'h100' could be several cards" in done.error
    assert "h100-pcie-80gb" in done.error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--card", "l40s"), "no term follows: no throughput"),
        (("--card", "l40s", "--term", "5"), "invalid choice: 5"),
        (("--term", "3"), "--card"),
        (("--card", "l40s", "--term", "3", "--inputs", "0"), "--inputs must be a whole number of at least 1"),
        (("--card", "l40s", "--term", "3", "--setup-hours", "-1"), "--setup-hours must be hours from 0"),
        (("--card", "l40s", "--term", "3", "--busy-share", "nan"), "--busy-share must be above 0"),
        (("--card", "l40s", "--term", "3", "--tp", "2"), "--tensor-parallel-size is for a model"),
        (("--card", "l40s", "--term", "3", "--format", "table"), "invalid choice: 'table'"),
    ],
)
def test_a_request_that_cannot_be_answered_is_one_line(
    gpufit: Run, profile: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = gpufit("order", profile, *SCENARIO, *arguments)
    assert (done.code, done.stdout) == (2, "")
    assert words in done.stderr.splitlines()[-1]


def test_fewer_workers_than_the_concurrency_needs_are_refused(gpufit: Run, profile: Path) -> None:
    many = ("--context", "8k", "--concurrency", "1k")
    done = gpufit("order", profile, *many, "--card", "l40s", "--term", "3", "--workers", "1")
    assert done.code == 2
    assert "copies of the model are needed" in done.error


def test_an_order_never_takes_the_place_of_its_profile(gpufit: Run, profile: Path, tmp_path: Path) -> None:
    copy = tmp_path / "mine.json"
    shutil.copy(profile, copy)
    done = gpufit("order", copy, *SCENARIO, "--card", "l40s", "--term", "3", "-o", copy)
    assert (done.code, copy.read_bytes()) == (2, profile.read_bytes())


def test_a_model_is_estimated_first_and_a_saved_estimate_is_ordered_alike(
    gpufit: Run, model: Path, tmp_path: Path
) -> None:
    done = gpufit("order", model, "--context", "1k", "--card", "l40s", "--term", "3", "--dtype", "float16", "--json")
    assert done.code == 0, done.stderr
    assert "estimated first, nothing was measured" in done.stderr
    document = json.loads(done.stdout)
    assert document["evidence"] == "computed"
    measured = next(one for one in document["checks"] if one["title"] == "the model, measured here")
    assert "--dtype float16" in measured["command"]
    assert not any("gpufit verify" in one["command"] for one in document["checks"])
    saved = tmp_path / "saved.json"
    done = gpufit("estimate", model, "--context", "1k", "--new-tokens", "1", "--dtype", "float16", "--save", saved)
    assert done.code == 0, done.stderr
    again = as_json(gpufit, saved, "--card", "l40s", "--term", "3")
    assert again["margin"] == document["margin"]
    assert measured in again["checks"]
    assert shlex.join(["gpufit", "verify", str(saved)]) in [one["command"] for one in again["checks"]]


def test_a_start_of_vllm_is_ordered(gpufit: Run, model: Path) -> None:
    done = gpufit(
        "order", model, "--engine", "vllm", "--card", "l40s", "--context", "256", "--concurrency", "4", "--term", "30",
        "--json",
    )  # fmt: skip
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["engine"]["name"] == "vllm"
    (deciding,) = [one for one in document["checks"] if one["decides"]]
    assert deciding["command"].startswith("vllm serve ")
    assert document["readiness"] == "ready_unproven"
    assert "computed by rules, nothing was started" in done.stderr


def test_order_imports_nothing_heavy(profile: Path) -> None:
    arguments = ["order", str(profile), *SCENARIO, "--card", "l40s", "--term", "3"]
    assert not set(HEAVY) & set(modules_after(arguments))


@pytest.fixture(scope="module")
def seventy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A 70B of which not even the weights, 131 GiB, fit a card of 80 GB."""
    folder = tmp_path_factory.mktemp("order") / "Llama-3.1-70B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS["meta-llama/Meta-Llama-3.1-70B"]))
    return folder


def test_what_no_single_card_holds_is_ordered_divided(gpufit: Run, seventy: Path) -> None:
    done = gpufit("order", seventy, "--card", "h200-sxm-141gb", *SCENARIO, "--term", "7", "--json")
    assert done.code == 0, done.stderr
    order = json.loads(done.stdout)
    assert order["ready"] is True
    assert (order["card"]["arrangement"], order["card"]["ranks"], order["card"]["cards_needed"]) == ("sharded", 2, 2)
    assert [one["devices"] for one in order["workers"]] == ["0-1"]
    assert order["margin"]["verdict"] == "fits"
    assert order["margin"]["need_upper_bytes"] <= order["margin"]["capacity_bytes"]
    assert "divided over 2 devices that share every layer" in order["spread"]
    commands = [one["command"] for one in order["checks"]]
    assert not any(command.startswith("gpufit profile") for command in commands), "it measures one card"
    assert not any("arrival.json" in one["how"] for one in order["save"]), "which no check writes"
    done = gpufit("fit", seventy, "--card", "h200-sxm-141gb", *SCENARIO, "--json")
    (row,) = json.loads(done.stdout)["cards"]
    assert (row["arrangement"], row["cards_needed"]) == ("sharded", 2), "fit says the same"


def test_a_change_that_is_named_is_what_the_changed_model_gets(gpufit: Run, seventy: Path) -> None:
    """`fit` names FP8 weights with what is surely enough then; of the model in FP8 it says the same, to 1 MiB."""
    asked = (seventy, "--card", "h200-sxm-141gb", "--context", "8k", "--concurrency", "8", "--json")
    (named,) = [
        change for change in json.loads(gpufit("fit", *asked).stdout)["cards"][0]["changes"] if change["value"] == "fp8"
    ]
    changed = json.loads(gpufit("fit", *asked, "--quantization", "fp8").stdout)["cards"][0]
    assert changed["verdict"] == "fits"
    assert changed["need_upper_bytes"] == pytest.approx(named["need_upper_bytes"], abs=2**20)


def test_copies_of_a_divided_model_take_their_part_of_the_inputs(gpufit: Run, seventy: Path) -> None:
    inputs = ("--term", "7", "--inputs", "1000", "--json")
    done = gpufit("order", seventy, "--card", "h100-sxm-80gb", *SCENARIO, *inputs)
    assert done.code == 0, done.stderr
    order = json.loads(done.stdout)
    devices, workers = order["card"]["ranks"], len(order["workers"])
    (row,) = json.loads(gpufit("fit", seventy, "--card", "h100-sxm-80gb", *SCENARIO, "--json").stdout)["cards"]
    assert order["card"]["arrangement"] == row["arrangement"] == "pipeline", "fit says the same"
    assert order["card"]["cards_needed"] == row["cards_needed"] == devices * workers
    assert [one["at_once"] for one in order["workers"]] == [16 // workers] * workers
    assert sum(one["inputs"] for one in order["workers"]) == 1000
    assert "each divided over" in order["spread"]


def test_amounts_of_work_are_decimal_and_lengths_binary(gpufit: Run, profile: Path) -> None:
    """100k inputs and 10M tokens are what they say; 8k of context are 8,192 tokens."""
    amounts = ("--inputs", "100k", "--tokens", "10M", "--piece-inputs", "5k")
    document = as_json(gpufit, profile, *SCENARIO, "--card", "l40s", "--term", "7", *amounts)
    assert (document["work"]["inputs"], document["work"]["tokens"]) == (100_000, 10_000_000)
    assert document["pieces"]["piece_inputs"] == 5000
    assert document["scenario"]["context_tokens"] == 8192
    told = " ".join(gpufit("order", "--help").stdout.split())
    assert "10k = 10000" in told
    assert "10M = 10000000" in told
    assert "8k = 8192" in told


def test_workers_without_an_input_are_status_1(gpufit: Run, profile: Path) -> None:
    done = gpufit("order", profile, *SCENARIO, "--card", "l40s", "--term", "3", "--inputs", "10", "--workers", "100")
    assert done.code == 1
    assert "100 workers for 10 inputs: 90 of them get none" in done.error


@pytest.fixture(scope="module")
def giant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "Meta-Llama-3.1-405B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS["meta-llama/Meta-Llama-3.1-405B"]))
    return folder


GIANT = ("--context", "32k", "--concurrency", "16", "--card", "h100-sxm", "--term", "7")


def test_what_no_machine_holds_is_ordered_as_stages_over_machines(gpufit: Run, giant: Path) -> None:
    # 405.9 billion parameters of two bytes are 756 GiB, and eight H100 have 633.
    done = gpufit("order", str(giant), "--engine", "vllm", *GIANT, "--json")
    assert done.code == 0
    document = json.loads(done.stdout)
    card = document["card"]
    assert document["ready"]
    assert (card["arrangement"], card["tensor_parallel_size"], card["pipeline_parallel_size"]) == (
        *("sharded+pipeline", 8),
        2,
    )
    assert (card["cards_needed"], card["machines"], card["cards_per_machine"]) == (16, 2, 8)
    checks = {one["title"]: one for one in document["checks"]}
    assert "the 8 devices of each stage in one machine" in checks["the links"]["expect"]
    command = checks["vllm, started here"]["command"]
    assert "--tensor-parallel-size 8 --pipeline-parallel-size 2" in command


def test_a_worker_that_spans_machines_is_not_ready(gpufit: Run, giant: Path) -> None:
    done = gpufit("order", str(giant), "--engine", "vllm", *GIANT, "--tp", "16", "--json")
    assert done.code == 1
    document = json.loads(done.stdout)
    assert not document["ready"]
    assert [one.partition(":")[0] for one in document["blockers"]] == ["spans machines"]
    assert document["card"]["machines"] == 4, "two workers of sixteen, eight in a machine"
    done = gpufit("order", str(giant), "--engine", "vllm", *GIANT, "--tp", "8", "--pp", "2", "--json")
    assert (done.code, json.loads(done.stdout)["ready"]) == (0, True)


def test_where_no_plan_serves_the_order_says_which_were_tried(gpufit: Run, giant: Path) -> None:
    done = gpufit("order", str(giant), "--engine", "vllm", *GIANT, "--card", "gh200-96gb")
    assert done.code == 1
    tried = (
        "none of the plans tried serves it: whole copies, a pipeline of up to 8 stages (no tensor parallel: a machine"
    )
    assert tried in done.stderr
    assert tried in done.stdout


def test_a_switch_is_worked_out_and_status_1(gpufit: Run, profile: Path) -> None:
    """Half of the cache's 20,000 B a token, 8,192 tokens of each of 16 sequences."""
    asked = (profile, *SCENARIO, "--card", "l40s", "--term", "3")
    was, now = as_json(gpufit, *asked), as_json(gpufit, *asked, "--if", "kv=fp8")
    assert was["margin"]["need_bytes"] - now["margin"]["need_bytes"] == 10_000 * 8192 * 16
    assert (now["readiness"], now["evidence"], now["scenario"]["kv_cache"]) == ("not_ready", "scaled", "FP8")
    (row,) = json.loads(gpufit("fit", profile, *SCENARIO, "--card", "l40s", "--if", "kv=fp8", "--json").stdout)["cards"]
    assert now["margin"]["need_upper_bytes"] == row["need_upper_bytes"], "fit says the same"
    done = gpufit("order", *asked, "--if", "kv=fp8")
    assert "not ready: nothing was run with KV cache FP8" in done.error
    assert done.stdout.startswith("# Order: 1 card of")
    assert "**Not ready to order.**" in done.stdout


def test_a_start_of_vllm_takes_no_switch(gpufit: Run, model: Path) -> None:
    done = gpufit("order", model, "--engine", "vllm", "--card", "l40s", "--term", "3", "--if", "kv=fp8")
    assert (done.code, done.stdout) == (2, "")
    assert "--if is for profiles; a start of vLLM takes --quantization" in done.error


def test_the_arrangement_is_chosen_among_those_that_fit_lists(gpufit: Run, seventy: Path) -> None:
    asked = (seventy, "--card", "h100-sxm-80gb", *SCENARIO)
    (row,) = json.loads(gpufit("fit", *asked, "--json").stdout)["cards"]
    plans = {one["arrangement"]: one for one in row["arrangements"]}
    assert set(plans) == {"pipeline", "sharded"}
    for name, plan in plans.items():
        card = as_json(gpufit, *asked, "--term", "7", "--arrangement", name)["card"]
        keys = ("arrangement", "cards_needed", "tensor_parallel_size", "pipeline_parallel_size", "lots", "machines")
        assert {key: card[key] for key in keys} == {key: plan[key] for key in keys}
    done = gpufit("order", *asked, "--term", "7", "--arrangement", "replicas")
    assert (done.code, done.stdout) == (2, "")
    few, more = (f"{one['arrangement']} ({one['cards_needed']} cards)" for one in row["arrangements"])
    assert f"--arrangement replicas: no plan of h100-sxm-80gb for this scenario is so; it can be {few} or {more}" in (
        done.stderr
    )


def test_a_start_of_vllm_is_arranged_as_it_was_chosen(gpufit: Run, giant: Path) -> None:
    done = gpufit("order", str(giant), "--engine", "vllm", *GIANT, "--arrangement", "sharded", "--json")
    assert done.code == 2
    assert "it can be sharded+pipeline (16 cards)" in done.error
    done = gpufit("order", str(giant), "--engine", "vllm", *GIANT, "--arrangement", "sharded+pipeline", "--json")
    assert json.loads(done.stdout)["card"]["arrangement"] == "sharded+pipeline"
