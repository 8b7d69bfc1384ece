"""What an order declares of its environment: what the figures hold for, and what has to be installed on the card.

What engine and card need is told by rules with sources (`catalog.cuda`, `memory.engines.vllm.releases`), else from the
run itself; what neither tells is null, and the formats say that it is not known.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpufit import __version__
from gpufit.catalog.cuda import (
    Cuda,
    LeastDriver,
    has_arm_host,
    least_driver,
    least_drivers,
    parse_cuda,
    takes,
    wheel_cuda,
    wheel_source,
)
from gpufit.catalog.record import Card
from gpufit.memory.engines.vllm.releases import PINS, pin_source, pinned_torch
from gpufit.profile.environment import Engine, Environment
from gpufit.profile.evidence import Evidence
from gpufit.report.order_document import EnvironmentRow

UNKNOWN = "unknown"
CATALOG = "catalog"
THIS_ORDER = "this order"
_VLLM = "vllm"
_NOT_OF_PYPI = ("python", "gpufit")
"""Names in a run's versions that are no package to install beside the engine."""


@dataclass(frozen=True)
class _Stack:
    """What is to be installed on the ordered card, as far as it is known."""

    torch: str | None = None
    """In words."""
    torch_source: str = UNKNOWN
    wheel: str | None = None
    """The release that pip is told, `2.9.0+cu128` for one that PyPI does not have; None where no wheel is known to hold
    what the card takes."""
    cuda: Cuda | None = None
    cuda_words: str = ""
    """Where that CUDA comes from."""
    cuda_source: str = UNKNOWN


def environment_rows(
    engine: Engine, environment: Environment | None, evidence: Evidence, card: Card, quantiser: str = ""
) -> tuple[EnvironmentRow, ...]:
    """A row a component. `environment` is that of the run; None where nothing ran. `quantiser`: the package that holds
    the model otherwise than the run did; empty where none does."""
    return tuple(_rows(engine, environment, evidence, card, quantiser))


def least_driver_for(engine: Engine, environment: Environment | None, card: Card) -> LeastDriver | None:
    """The oldest driver for what is to be installed; None where that is not known."""
    cuda = _stack(engine, environment, card).cuda
    return None if cuda is None or not takes(card, cuda) else least_driver(cuda, card)


def torch_seen(engine: Engine, environment: Environment | None, card: Card) -> str | None:
    """What torch says of itself once that is installed: release and CUDA; None where it is not known."""
    stack = _stack(engine, environment, card)
    return None if stack.wheel is None or stack.cuda is None else f"torch {stack.wheel} with CUDA {stack.cuda}"


def not_installable(engine: Engine, card: Card) -> str | None:
    """Why a release of vLLM cannot run on a card with what it pins; None where it can, or nobody knows."""
    stack = _stack(engine, None, card)
    if engine.name != _VLLM or stack.cuda is None or takes(card, stack.cuda):
        return None
    return (
        f"{card.id}: vllm {engine.version} pins torch {pinned_torch(engine.version)}, which brings CUDA {stack.cuda}, "
        f"and this card takes {_limits(card)}; {_suiting(card)}"
    )


def _suiting(card: Card) -> str:
    """The releases of vLLM whose pin a card takes, in a row as they are."""
    suits = []
    for since, torch in PINS:
        cuda = wheel_cuda(torch, card)
        suits.append((since, cuda is not None and takes(card, cuda)))
    first = next((number for number, (_, taken) in enumerate(suits) if taken), None)
    if first is None:
        return "no release whose pin is known suits it"
    after = next((since for since, taken in suits[first:] if not taken), None)
    return f"releases from {suits[first][0]} on suit it{f', before {after}' if after else ''} (--engine-version)"


def _stack(engine: Engine, environment: Environment | None, card: Card) -> _Stack:
    """The engine's own pin, else what the run had: its very build where it ran on such a card, else the release."""
    if engine.name == _VLLM:
        pinned = pinned_torch(engine.version) if card.vendor == "NVIDIA" else None
        words = f"{pinned}: vllm {engine.version} pins it"
        return _Stack() if pinned is None else _from_pypi(pinned, words, pin_source(engine.version), card)
    ran = None if environment is None else environment.versions.get("torch")
    if environment is None or ran is None:
        return _Stack()
    release, kind = ran.partition("+")[0], environment.device.kind
    if card.vendor != "NVIDIA":
        same = kind == "rocm"
        words = ran if same else f"{release}, in a build for ROCm"
        return _Stack(words, THIS_ORDER, wheel=ran if same else None)
    cuda = parse_cuda(environment.device.runtime)
    if cuda is None:
        return _from_pypi(release, release, THIS_ORDER, card)
    words, wheel = (ran, ran) if takes(card, cuda) else (_another_build(release), None)
    return _Stack(words, THIS_ORDER, wheel, cuda, "as in the run", THIS_ORDER)


def _from_pypi(release: str, words: str, source: str, card: Card) -> _Stack:
    cuda = wheel_cuda(release, card)
    if cuda is None:
        return _Stack(words, source)
    brings = f"which torch {release} from PyPI brings (Linux, {'Arm' if has_arm_host(card) else 'x86-64'})"
    if takes(card, cuda):
        return _Stack(words, source, release, cuda, brings, wheel_source(release))
    return _Stack(_another_build(release), source, None, cuda, brings, wheel_source(release))


def _another_build(release: str) -> str:
    return f"{release}, in a build that the card takes"


def _rows(
    engine: Engine, environment: Environment | None, evidence: Evidence, card: Card, quantiser: str
) -> Iterator[EnvironmentRow]:
    device = None if environment is None or environment.device.kind == "none" else environment.device
    versions = {} if environment is None else environment.versions
    software, stack = card.software, _stack(engine, environment, card)
    yield _row("device", None if device is None else device.name, evidence, card.name, THIS_ORDER)
    yield _driver(None if device is None else device.driver, evidence, stack, card)
    yield _cuda(None if device is None else device.runtime, evidence, stack, card)
    target = " ".join(
        filter(None, (software.arch or card.gfx, card.compute_capability and f"({card.compute_capability})"))
    )
    built_for = None if device is None else device.compute_capability
    yield _row("build target", built_for, evidence, ": ".join(filter(None, (target, software.torch_wheels))), CATALOG)
    yield _row("torch", versions.get("torch"), evidence, stack.torch, stack.torch_source)
    same = f"{engine.version}: figures hold for this release"
    yield _row(engine.name, engine.version, evidence, same, THIS_ORDER)
    yield _row("attention kernel", engine.attention, evidence, engine.attention, THIS_ORDER)
    for name, version in versions.items():
        if name not in ("torch", engine.name, "gpufit"):
            yield _row(name, version, evidence, version, THIS_ORDER)
    if quantiser and quantiser not in versions:
        yield _row(
            quantiser,
            None,
            evidence,
            "a release for this torch: it holds the weights so, which nothing ran",
            THIS_ORDER,
        )
    for name, value in ({} if environment is None else environment.settings).items():
        yield _row(name, value, evidence, f"{value}: it changes memory", THIS_ORDER)
    if engine.name != _VLLM:
        yield _row("gpufit", None, evidence, f"{__version__}: it runs the checks on arrival", THIS_ORDER)
    yield _row("to install", None, evidence, _install(engine, versions, stack), THIS_ORDER)


def _driver(declared: str | None, evidence: Evidence, stack: _Stack, card: Card) -> EnvironmentRow:
    if card.vendor != "NVIDIA":
        return _row("driver", declared, evidence, None, UNKNOWN)
    if stack.cuda is None or not takes(card, stack.cuda):
        each = least_drivers(card)
        words = ", ".join(f"{one.version} for CUDA {major}.x" for major, one in each.items())
        return _row("driver", declared, evidence, words and f"on Linux at least {words}", _sources(each.values()))
    least = least_driver(stack.cuda, card)
    needed = None if least is None else f"at least {least.version} on Linux: {least.why}"
    return _row("driver", declared, evidence, needed, _sources(() if least is None else (least,)))


def _sources(drivers: Iterable[LeastDriver]) -> str:
    return "; ".join(dict.fromkeys(one.source for one in drivers))


def _cuda(declared: str | None, evidence: Evidence, stack: _Stack, card: Card) -> EnvironmentRow:
    """What the stack brings; where the card does not take that, or the stack is not known, the card's own limits."""
    if card.vendor != "NVIDIA":
        return _row("HIP (ROCm)", declared, evidence, None, UNKNOWN)
    limits = _limits(card)
    if stack.cuda is None:
        return _row("CUDA", declared, evidence, limits and f"not known which; the card takes {limits}", CATALOG)
    words = f"{stack.cuda}, {stack.cuda_words}"
    if takes(card, stack.cuda):
        return _row("CUDA", declared, evidence, words, stack.cuda_source)
    return _row("CUDA", declared, evidence, f"{limits}; not {words}", f"{CATALOG}; {stack.cuda_source}")


def _limits(card: Card) -> str | None:
    software = card.software
    limits = [f"at least {software.min_cuda}"] if software.min_cuda else []
    limits += [f"at most {software.max_cuda}"] if software.max_cuda else []
    note = f" ({software.cuda_note})" if software.cuda_note else ""
    return f"{', '.join(limits)}{note}" if limits else software.cuda_note


def _install(engine: Engine, versions: dict[str, str], stack: _Stack) -> str | None:
    """The command that installs the releases of the run, or the release of vLLM, which brings its own."""
    if stack.wheel is None:
        return None
    if engine.name == _VLLM:
        return shlex.join(["pip", "install", f"vllm=={engine.version}"])
    release, _, build = stack.wheel.partition("+")
    torch, others = f"torch=={release}", [f"{name}=={version}" for name, version in _packages(versions)]
    if not build:
        return shlex.join(["pip", "install", torch, *others])
    index = ["--index-url", f"https://download.pytorch.org/whl/{build}"]
    return f"{shlex.join(['pip', 'install', torch, *index])} && {shlex.join(['pip', 'install', *others])}"


def _packages(versions: dict[str, str]) -> Iterator[tuple[str, str]]:
    return ((name, version) for name, version in versions.items() if name not in ("torch", *_NOT_OF_PYPI))


def _row(component: str, declared: str | None, evidence: Evidence, needed: str | None, source: str) -> EnvironmentRow:
    return EnvironmentRow(
        component=component,
        declared=declared,
        origin=UNKNOWN if declared is None else str(evidence),
        needed=needed or None,
        source=source if needed else UNKNOWN,
    )
