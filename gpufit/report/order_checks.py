"""What to run once the cards are there, and what to take away before they go back. Only commands that exist."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from gpufit.advice.plan import Ask, Plan
from gpufit.advice.terms import Volume
from gpufit.advice.verdict import Devices
from gpufit.architecture.quantization.registry import CHECKPOINT
from gpufit.catalog.record import Card
from gpufit.profile.record import ModelInfo, Precision, Profile, Workload
from gpufit.report.document import CardRow, FitDocument, Scenario
from gpufit.report.order_document import Check, Saved
from gpufit.report.order_pieces import FOLDER, MARKER
from gpufit.units import MIB, format_size

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

QUANTISED_AT_LOAD = ("torchao-int8wo", "torchao-float8wo", "bitsandbytes-int8", "bitsandbytes-nf4")
"""What `gpufit profile --quantization` takes; all other methods need a checkpoint made beforehand."""

ARRIVAL = "arrival.json"


def arrival_checks(
    card: Card, devices: int, worker: FitDocument, profile: Profile | None, plan: Plan, ask: Ask, over: Devices
) -> list[Check]:
    """In the order to run them: the cards, the software, then the model at what one worker runs at once.

    `worker` is the fit of one worker, `profile` what it was made from (None for a start of vLLM), `over` the devices
    that a worker is divided over.
    """
    row = worker.cards[0]
    found = [_cards(card, devices), *_links(card, over.count), _torch(row, devices)]
    if profile is None:
        return [*found, *_started(worker, row)]
    if over.count > profile.workload.tensor_parallel_size:
        return [*found, _watched(card, worker, row, over)]
    found += _measured_again(worker, row, profile)
    return [*found, _hours_again(worker, row, plan, ask.volume)] if ask.volume.stated else found


def _cards(card: Card, devices: int) -> Check:
    names = " or ".join(card.device_names) or card.name
    total = card.memory.driver_total_mib
    size = "" if total is None else f", memory.total {total} MiB as the catalog has it"
    found = f"{_devices(devices)}: {names}{size}"
    if card.vendor == "AMD":
        return Check(title="the cards", command=_AMD_SMI, expect=found)
    whole = "; mig.mode.current not Enabled (a slice is not the card)" if card.mig and card.mig.supported else ""
    return Check(title="the cards", command=_NVIDIA_SMI, expect=f"{found}; memory.used near 0{whole}")


def _links(card: Card, ranks: int) -> Iterator[Check]:
    """How the devices of one worker reach each other; nothing where a worker has one."""
    if ranks == 1 or card.vendor != "NVIDIA":
        return
    link = "note it: the catalog knows no link of this card" if card.peer_link is None else card.peer_link.kind
    yield Check(
        title="the links",
        command="nvidia-smi topo -m",
        expect=f"the {ranks} devices of each worker in one machine; between them, by the catalog: {link}",
    )


def _torch(row: CardRow, devices: int) -> Check:
    capacity = row.capacity_bytes
    size = "note the totals: none was known for this card"
    if capacity is not None:
        size = f"each at least {capacity} bytes ({format_size(capacity)}), which the verdict counts on"
    return Check(
        title="what torch sees", command=shlex.join(["python", "-c", _TORCH]), expect=f"{_devices(devices)}; {size}"
    )


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices over all machines"


def _watched(card: Card, worker: FitDocument, row: CardRow, over: Devices) -> Check:
    """A divided model is started by its own launcher, which `gpufit profile` is not: memory is read beside it."""
    scenario = worker.scenario
    command = "nvidia-smi --query-gpu=index,memory.used --format=csv --loop=5"
    return Check(
        title="the divided model, beside its first run",
        command="amd-smi monitor --vram-usage --watch 5" if card.vendor == "AMD" else command,
        expect=f"while your own start of the model over {over.count} devices serves {scenario.concurrency} sequences "
        f"of {scenario.context_tokens} tokens: on each at most {format_size(row.need_upper_bytes)} "
        f"({row.need_upper_bytes // MIB:,} MiB). Memory in use counts blocks that torch's allocator keeps free, too: "
        "above that, have your start print torch.cuda.max_memory_allocated() of each device, and stop where it is "
        "more: this order counted on less",
    )


def _measured_again(worker: FitDocument, row: CardRow, profile: Profile) -> Iterator[Check]:
    shape = scenario_flags(worker.scenario)
    method = profile.workload.quantization
    model = [profile.model.source]
    beforehand = ""
    if method is not None and method not in QUANTISED_AT_LOAD:
        model, method = [CHECKPOINT], None
        beforehand = f"; {CHECKPOINT} is the model quantised by {profile.workload.quantization} beforehand"
    elif profile.model.revision:
        model += ["--revision", profile.model.revision]
    settings = [*_as_before(profile.workload), *(["--quantization", method] if method else [])]
    yield Check(
        title="the model, measured here",
        command=shlex.join(["gpufit", "profile", *model, *shape, *settings, "-o", ARRIVAL]),
        expect=f"one cell measured, exit status 0, no flag of a shared card{beforehand}",
    )
    # Of an order that is not ready, the upper bound may lie above what the card has.
    most = row.need_upper_bytes if row.capacity_bytes is None else min(row.need_upper_bytes, row.capacity_bytes)
    yield Check(
        title="the verdict, from that run",
        command=shlex.join(["gpufit", "fit", ARRIVAL, *shape, "--card", row.card]),
        expect=f"fits, exit status 0, evidence measured; need at most {most} bytes ({format_size(most)}). Above that, "
        "stop: this order counted on less",
    )


def scenario_flags(scenario: Scenario) -> list[str]:
    """A scenario as `gpufit profile`, `fit` and `order` take it."""
    flags = ["--context", str(scenario.context_tokens), "--concurrency", str(scenario.concurrency)]
    return [*flags, "--new-tokens", str(scenario.new_tokens)] if scenario.new_tokens else flags


def _as_before(workload: Workload) -> list[str]:
    """The settings of the run that the order rests on, as far as they are not defaults."""
    flags = ["--dtype", workload.dtype_requested] if workload.dtype_requested != "auto" else []
    flags += ["--kv-cache-dtype", workload.kv_cache_dtype] if workload.kv_cache_dtype != "auto" else []
    if workload.cache_implementation != "dynamic":
        flags += ["--cache-implementation", workload.cache_implementation]
    flags += ["--compute-dtype", workload.compute_dtype] if workload.compute_dtype else []
    flags += ["--keep-logits", workload.logits_kept] if workload.logits_kept != "last" else []
    flags += ["--images", str(workload.images)] if workload.images else []
    if workload.image_size is not None:
        flags += ["--image-size", f"{workload.image_size[0]}x{workload.image_size[1]}"]
    return flags


def _hours_again(worker: FitDocument, row: CardRow, plan: Plan, volume: Volume) -> Check:
    amounts = [] if volume.inputs is None else ["--inputs", str(volume.inputs)]
    amounts += [] if volume.tokens is None else ["--tokens", str(volume.tokens)]
    spread = [*amounts, "--workers", str(plan.workers), "--term", str(plan.term_days)]
    shape = scenario_flags(worker.scenario)
    return Check(
        title="the hours, from that run",
        command=shlex.join(["gpufit", "order", ARRIVAL, "--card", row.card, *shape, *spread]),
        expect=f"exit status 0: at this card's own throughput the work is done within {plan.term_days} days. If not, "
        "it names the workers or the term that are enough",
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
    yield Check(title=f"{worker.engine.name}, started here", command=start.serve_command, expect=expect)


def to_save(model: ModelInfo, precision: Precision, checks: Sequence[Check]) -> tuple[Saved, ...]:
    """What a later difference can be explained with, and what was paid for; `checks` are those on arrival."""
    measured_again = any(ARRIVAL in check.command for check in checks)
    figures = f"{ARRIVAL} from the checks" if measured_again else "the start-up log and the memory that each card used"
    size = format_size(sum(share.size_bytes for share in precision.stored))
    fetched = f" ({size} to fetch again)" if precision.stored else ""
    named = f"revision {model.revision}" if model.revision else f"fingerprint {model.fingerprint}"
    return (
        Saved(what="weights", how=f"unchanged: {named}, not the bytes{fetched}; changed by the job: all files"),
        Saved(what="configuration", how="config.json, tokenizer files, generation parameters, every command line run"),
        Saved(what="environment", how="pip freeze > environment.txt, and the output of the checks on arrival"),
        Saved(what="quality checks", how="the inputs checked, expected and found, with scores and their date"),
        Saved(what="figures", how=f"{figures}, hours spent against hours planned, this order"),
        Saved(what="outputs", how=f"{FOLDER}/out-*.jsonl, their {MARKER} markers, {FOLDER}/manifest.jsonl, and the "
              "SHA-256 of the file of inputs"),
    )  # fmt: skip
