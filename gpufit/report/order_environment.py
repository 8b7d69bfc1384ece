"""What an order declares of its environment: what the figures hold for, and what the card needs."""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.catalog.record import Card
from gpufit.profile.record import Engine, Environment, Evidence
from gpufit.report.order_document import EnvironmentRow

UNKNOWN = "unknown"
CATALOG = "catalog"
THIS_ORDER = "this order"


def environment_rows(
    engine: Engine, environment: Environment | None, evidence: Evidence, card: Card
) -> tuple[EnvironmentRow, ...]:
    """A row a component. `environment` is that of the run; None where nothing ran."""
    return tuple(_rows(engine, environment, evidence, card))


def _rows(engine: Engine, environment: Environment | None, evidence: Evidence, card: Card) -> Iterator[EnvironmentRow]:
    device = None if environment is None or environment.device.kind == "none" else environment.device
    versions = {} if environment is None else environment.versions
    software = card.software
    yield _row("device", None if device is None else device.name, evidence, card.name, THIS_ORDER)
    yield _row("driver", None if device is None else device.driver, evidence, None, CATALOG)
    yield _row(
        "HIP (ROCm)" if card.vendor == "AMD" else "CUDA",
        None if device is None else device.runtime,
        evidence,
        _cuda(card),
        CATALOG,
    )
    target = " ".join(
        filter(None, (software.arch or card.gfx, card.compute_capability and f"({card.compute_capability})"))
    )
    built_for = None if device is None else device.compute_capability
    yield _row("build target", built_for, evidence, target or None, CATALOG)
    yield _torch(versions.get("torch"), evidence, software.torch_wheels)
    same = f"{engine.version}: figures hold for this release"
    yield _row(engine.name, engine.version, evidence, same, THIS_ORDER)
    yield _row("attention kernel", engine.attention, evidence, engine.attention, THIS_ORDER)
    for name, version in versions.items():
        if name not in ("torch", engine.name):
            yield _row(name, version, evidence, version, THIS_ORDER)
    for name, value in ({} if environment is None else environment.settings).items():
        yield _row(name, value, evidence, f"{value}: it changes memory", THIS_ORDER)


def _torch(release: str | None, evidence: Evidence, wheels: str | None) -> EnvironmentRow:
    """The release that ran, in a build for the card: `2.13.0+cpu` names a build, which the card may not run."""
    same = None if release is None else release.partition("+")[0]
    needed = "; ".join(filter(None, (same, wheels))) or None
    source = CATALOG if same is None else THIS_ORDER if wheels is None else f"{THIS_ORDER}; {CATALOG}"
    return _row("torch", release, evidence, needed, source)


def _cuda(card: Card) -> str | None:
    software = card.software
    limits = [f"at least {software.min_cuda}"] if software.min_cuda else []
    limits += [f"at most {software.max_cuda}"] if software.max_cuda else []
    limits += [software.cuda_note] if software.cuda_note else []
    return "; ".join(limits) or None


def _row(component: str, declared: str | None, evidence: Evidence, needed: str | None, source: str) -> EnvironmentRow:
    return EnvironmentRow(
        component=component,
        declared=declared,
        origin=UNKNOWN if declared is None else str(evidence),
        needed=needed,
        source=UNKNOWN if needed is None else source,
    )
