"""What to run once the cards are there, and what to take away before they go back. Only commands that exist."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence

from msgspec import structs

from gpufit.advice.machines import devices_in_one, spans
from gpufit.advice.plan import Ask, Plan
from gpufit.advice.terms import Volume
from gpufit.advice.verdict import Devices
from gpufit.catalog.record import Card
from gpufit.profile.environment import ModelInfo
from gpufit.profile.precision import Precision
from gpufit.report.document import CardRow, FitDocument, Scenario
from gpufit.report.order_again import Again
from gpufit.report.order_document import Check, Saved
from gpufit.report.order_environment import least_driver_for, torch_seen
from gpufit.report.order_judged import Judged
from gpufit.report.order_pieces import FOLDER, MARKER
from gpufit.units import MIB, counted, format_size

_NVIDIA_SMI = (
    "nvidia-smi --query-gpu=index,name,pci.device_id,memory.total,memory.used,driver_version,ecc.mode.current,"
    "mig.mode.current --format=csv"
)
_AMD_SMI = "amd-smi static --asic --driver --vram"
"""https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html"""

_TORCH = (
    "import torch; n = torch.cuda.device_count(); print(torch.__version__, torch.version.cuda or torch.version.hip, "
    "[torch.cuda.get_device_properties(i).total_memory for i in range(n)])"
)

ARRIVAL = "arrival.json"

MEASURED_HERE = "the model, measured here"
"""The check that writes it."""


def arrival_checks(judged: Judged, devices: int, plan: Plan, ask: Ask) -> list[Check]:
    """In the order to run them: the cards, the software, then the model at what one worker runs at once.

    `devices` are those of all that is ordered. One check decides whether the card holds the scenario.
    """
    worker, row, again = judged.worker, judged.row, judged.again
    found = [_cards(judged, devices), *_links(judged.card, judged.over), _torch(judged, devices)]
    if again is None:
        return [*found, *_started(worker, row), *_served(worker, row)]
    if judged.over.count > 1 or again.cannot:
        return [*found, _watched(judged)]
    found += [_chain(again), *_predicted(judged, again), *_measured_again(worker, row, again)]
    planned_again = ask.volume.stated or not judged.held.as_profiled
    return [*found, _planned_again(judged, plan, ask.volume)] if planned_again else found


def _cards(judged: Judged, devices: int) -> Check:
    card = judged.card
    names = " or ".join(card.device_names) or card.name
    total = card.memory.driver_total_mib
    size = "" if total is None else f", memory.total {total} MiB as the catalog has it"
    found = f"{_devices(devices)}: {names}{size}"
    if card.vendor == "AMD":
        return Check(title="the cards", command=_AMD_SMI, expect=found)
    least = least_driver_for(judged.worker.engine, judged.ran, card)
    driver = "" if least is None else f"; driver_version {least.version} or newer"
    whole = "; mig.mode.current not Enabled (a slice is not the card)" if card.mig and card.mig.supported else ""
    return Check(title="the cards", command=_NVIDIA_SMI, expect=f"{found}; memory.used near 0{driver}{whole}")


def _links(card: Card, over: Devices) -> Iterator[Check]:
    """How the devices of one worker reach each other; nothing where a worker has one."""
    if over.count == 1 or card.vendor != "NVIDIA":
        return
    link = "note it: the catalog knows no link of this card" if card.peer_link is None else card.peer_link.kind
    between = f"between them, by the catalog: {link}"
    if spans(card, over):
        expect = f"{devices_in_one(card)} devices in each machine; {between}; what machines exchange is not modelled"
    elif over.tensor == 1:
        expect = f"in a machine {between}; between machines their network, which nothing here describes: note it"
    elif over.stages == 1:
        expect = f"the {over.tensor} devices of each worker in one machine; {between}"
    else:
        expect = (
            f"the {over.tensor} devices of each stage in one machine; {between}; between stages in different machines "
            "their network, which nothing here describes: note it"
        )
    yield Check(title="the links", command="nvidia-smi topo -m", expect=expect)


def _torch(judged: Judged, devices: int) -> Check:
    capacity = judged.row.capacity_bytes
    seen = torch_seen(judged.worker.engine, judged.ran, judged.card)
    release = "" if seen is None else f"{seen}; "
    size = "note the totals: none was known for this card"
    if capacity is not None:
        size = f"each at least {capacity} bytes ({format_size(capacity)}), which the verdict counts on"
    return Check(
        title="what torch sees",
        command=shlex.join(["python", "-c", _TORCH]),
        expect=f"{release}{_devices(devices)}; {size}",
    )


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices over all machines"


def _watched(judged: Judged) -> Check:
    """A divided model is started by its own launcher, which `gpufit profile` is not, and so is one that it cannot hold
    so: memory is read beside it."""
    scenario, row, count = judged.worker.scenario, judged.row, judged.over.count
    held = "" if judged.held.as_profiled else f", with {judged.held.words},"
    over, each, of_each = (f" over {count} devices", "on each ", " of each device") if count > 1 else ("", "", "")
    command = "nvidia-smi --query-gpu=index,memory.used --format=csv --loop=5"
    return Check(
        title=f"the {'divided ' if count > 1 else ''}model, beside its first run",
        command="amd-smi monitor --vram-usage --watch 5" if judged.card.vendor == "AMD" else command,
        expect=f"while your own start of the model{over}{held} serves {counted(scenario.concurrency, 'sequence')} of "
        f"{counted(scenario.context_tokens, 'token')}: {each}at most {format_size(row.need_upper_bytes)} "
        f"({row.need_upper_bytes // MIB:,} MiB). Memory in use counts blocks that torch's allocator keeps free, too: "
        f"above that, have your start print torch.cuda.max_memory_allocated(){of_each}, and stop where it is more: "
        "this order counted on less",
        decides=True,
    )


def _chain(again: Again) -> Check:
    return Check(
        title="the whole chain, once",
        command=shlex.join(["gpufit", "check", *again.model, *again.loading]),
        expect=f"load, preprocess, compute and write each ok, exit status 0{again.beforehand}",
    )


def _predicted(judged: Judged, again: Again) -> Iterator[Check]:
    """The profile's own run, where it lies in a file that can be taken along."""
    if judged.saved and again.as_before:
        yield Check(
            title="the profile, repeated here",
            command=shlex.join(["gpufit", "verify", judged.worker.profile]),
            expect="exit status 0: what is measured lies inside the interval that the profile predicts. Outside (exit "
            "status 1), the figures of this order do not hold here: go on, and let the next two checks decide",
        )


def _measured_again(worker: FitDocument, row: CardRow, again: Again) -> Iterator[Check]:
    shape = scenario_flags(worker.scenario)
    yield Check(
        title=MEASURED_HERE,
        command=shlex.join(["gpufit", "profile", *again.model, *shape, *again.loading, *again.settings, "-o", ARRIVAL]),
        expect=f"one cell measured, exit status 0, no flag of a shared card{again.beforehand}",
    )
    # Of an order that is not ready, the upper bound may lie above what the card has.
    most = row.need_upper_bytes if row.capacity_bytes is None else min(row.need_upper_bytes, row.capacity_bytes)
    yield Check(
        title="the verdict, from that run",
        command=shlex.join(["gpufit", "fit", ARRIVAL, *shape, "--card", row.card]),
        expect=f"fits, exit status 0, evidence measured; need at most {most} bytes ({format_size(most)}). Above that, "
        "stop: this order counted on less",
        decides=True,
    )


def scenario_flags(scenario: Scenario) -> list[str]:
    """A scenario as `gpufit profile`, `fit` and `order` take it."""
    flags = ["--context", str(scenario.context_tokens), "--concurrency", str(scenario.concurrency)]
    return [*flags, "--new-tokens", str(scenario.new_tokens)] if scenario.new_tokens else flags


def _planned_again(judged: Judged, plan: Plan, volume: Volume) -> Check:
    """The order from what was measured: its hours, and of a model held otherwise whether it is ready at all."""
    amounts = [] if volume.inputs is None else ["--inputs", str(volume.inputs)]
    amounts += [] if volume.tokens is None else ["--tokens", str(volume.tokens)]
    spread = [*amounts, "--workers", str(plan.workers), "--term", str(plan.term_days)]
    # Shared out among the workers again, that is what each was measured with.
    together = structs.replace(judged.worker.scenario, concurrency=judged.at_once * plan.workers)
    expect = "exit status 0: ready to order, on a run of the model held so"
    if volume.stated:
        expect = (
            f"exit status 0: at this card's own throughput the work is done within {plan.term_days} days. If not, it "
            "names the workers or the term that are enough"
        )
    return Check(
        title="the hours, from that run" if volume.stated else "the order, from that run",
        command=shlex.join(["gpufit", "order", ARRIVAL, "--card", judged.card.id, *scenario_flags(together), *spread]),
        expect=expect,
    )


def _started(worker: FitDocument, row: CardRow) -> Iterator[Check]:
    start = row.start
    if start is None or start.serve_command is None:
        return
    expect = "it starts and serves. If not, stop: this order counted on that"
    if start.sequence_bytes:
        scenario = worker.scenario
        expect = (
            f'it starts, and its log says "Maximum concurrency for {scenario.context_tokens:,} tokens per request" of '
            f"at least {scenario.concurrency:.2f}x. With less, stop: this order counted on that. The rules expect "
            f'{start.pool_concurrency.lower:.1f}x to {start.pool_concurrency.upper:.1f}x, and "GPU KV cache size" of '
            f"{int(start.kv_tokens.lower):,} tokens or more"
        )
    yield Check(title=f"{worker.engine.name}, started here", command=start.serve_command, expect=expect, decides=True)


def _served(worker: FitDocument, row: CardRow) -> Iterator[Check]:
    """One request through the whole server, whose model goes by the name it was started with
    (https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html)."""
    if row.start is None or row.start.serve_command is None or not worker.model.generates:
        return
    request = json.dumps({"model": worker.model.source, "prompt": "The sea is", "max_tokens": 8})
    header = "Content-Type: application/json"
    address = "http://localhost:8000/v1/completions"
    yield Check(
        title="the whole chain, once",
        command=shlex.join(["curl", "--fail", "--silent", "--show-error", "-H", header, "-d", request, address]),
        expect='exit status 0, and "choices" with a text of up to 8 tokens',
    )


def to_save(model: ModelInfo, precision: Precision, checks: Sequence[Check]) -> tuple[Saved, ...]:
    """What a later difference can be explained with, and what was paid for; `checks` are those on arrival."""
    measured_again = any(ARRIVAL in check.command for check in checks)
    figures = f"{ARRIVAL} from the checks" if measured_again else "the start-up log and the memory that each card used"
    return (
        Saved(what="weights", how=f"{_weights(model, precision)}; changed by the job: all files"),
        Saved(what="configuration", how="config.json, tokenizer files, generation parameters, every command line run"),
        Saved(what="environment", how="pip freeze > environment.txt, and the output of the checks on arrival"),
        Saved(what="quality checks", how="the inputs checked, expected and found, with scores and their date"),
        Saved(what="figures", how=f"{figures}, hours spent against hours planned, this order"),
        Saved(what="outputs", how=f"{FOLDER}/out-*.jsonl, their {MARKER} markers, {FOLDER}/manifest.jsonl, and the "
              "SHA-256 of the file of inputs"),
    )  # fmt: skip


def _weights(model: ModelInfo, precision: Precision) -> str:
    """What tells later which weights these were, where the job left them as they are."""
    moves = "" if model.revision is None or _COMMIT.fullmatch(model.revision) else ", which may move"
    if not precision.stored:
        named = f"; asked for as revision {model.revision}{moves}" if model.revision else ""
        return f"config only: no weights were read; record the hub commit{named}, or the SHA-256 of every file"
    size = format_size(sum(share.size_bytes for share in precision.stored))
    named = f"fingerprint {model.fingerprint}" if model.revision is None else f"revision {model.revision}{moves}"
    record = "; record the hub commit" if moves else ""
    return f"unchanged: {named}{record}, not the bytes ({size} to fetch again)"


_COMMIT = re.compile(r"[0-9a-f]{40}")
"""A revision that cannot move, as a branch or a tag does."""
