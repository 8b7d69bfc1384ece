"""Documents of real verdicts, and each format read back by a reader that is not ours."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import openpyxl
from builders import TODAY, make_offers, make_profile
from public_models import CONFIGS

from gpufit import flows
from gpufit.catalog.offers import Offer, OfferBook
from gpufit.catalog.query import find_cards
from gpufit.catalog.record import Catalog
from gpufit.catalog.store import load_folders
from gpufit.datadir import shipped_catalog_dir
from gpufit.memory.terms import Shape
from gpufit.report.document import FitDocument
from gpufit.report.registry import load_format
from gpufit.sources.estimate.request import EstimateRequest
from gpufit.sources.estimate.vllm import VllmRequest

CATALOG: Catalog = load_folders([shipped_catalog_dir()])

BOOK = OfferBook(
    name="seller",
    currency="EUR",
    offers=(
        Offer(card="h100-sxm-80gb", lot_size=1, price_3_days=180.5, price_7_days=400.0, currency="EUR"),
        Offer(card="b200-sxm-180gb", lot_size=2, price_7_days=1500.25, price_30_days=5600.0, currency="EUR"),
    ),
)


def real_document(book: OfferBook | None = None) -> FitDocument:
    """A profile against every card of the catalog."""
    return flows.fit(
        make_profile(),
        "p.json",
        Shape(4096, 16, 40),
        CATALOG,
        CATALOG.offers(TODAY) if book is None else make_offers(book),
    )


def document_without_cards() -> FitDocument:
    return flows.judge_cards(make_profile(), "p.json", Shape(512, 4, 4), CATALOG, CATALOG.offers(TODAY), ())


def served_document(folder: Path, *cards: str) -> FitDocument:
    """A start of vLLM on two of each card."""
    model = folder / "Qwen3-32B"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-32B"]))
    request = VllmRequest(model=str(model), max_model_len=16384, concurrency=16, tensor_parallel=2)
    return flows.start_vllm(request, CATALOG, CATALOG.offers(TODAY), find_cards(CATALOG, cards))


def divided_document(folder: Path, *cards: str) -> FitDocument:
    """A model of 70 x 10^9 parameters, which takes several of most cards."""
    model = folder / "llama-70b"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(CONFIGS["meta-llama/Meta-Llama-3.1-70B"]))
    profile = flows.estimate(EstimateRequest(model=str(model), context_tokens=8192, concurrency=8))
    found = find_cards(CATALOG, cards)
    return flows.fit(profile, str(model), Shape(8192, 1, 8), CATALOG, make_offers(BOOK), found)


def as_json(document: FitDocument) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    found: dict[str, Any] = json.loads(load_format("json").render_fit(document), parse_constant=refuse)
    return found


def as_csv(document: FitDocument) -> list[dict[str, str]]:
    text = load_format("csv").render_fit(document).decode("utf-8")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def as_workbook(document: FitDocument, values: bool = False) -> Any:
    return openpyxl.load_workbook(io.BytesIO(load_format("xlsx").render_fit(document)), data_only=values)


def as_page(document: FitDocument) -> Page:
    return Page.read(load_format("html").render_fit(document).decode("utf-8"))


@dataclass
class Node:
    """One element of a page."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, tag: str, kind: str | None = None) -> list[Node]:
        """Every element of a tag below this one; of a class, where one is named."""
        found = [node for node in self.walk() if node.tag == tag]
        return [node for node in found if kind is None or kind in node.attributes.get("class", "").split()]


class Page(HTMLParser):
    """A page as a tree. Every element has to be closed where it was opened, but those that HTML leaves open."""

    VOID = ("meta", "link", "br")

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("")
        self._open = [self.root]
        self.doctypes: list[str] = []

    @classmethod
    def read(cls, text: str) -> Page:
        page = cls()
        page.feed(text)
        page.close()
        assert page._open == [page.root], [node.tag for node in page._open]
        return page

    def handle_decl(self, decl: str) -> None:
        self.doctypes.append(decl)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        node = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in self.VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag, tag

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def section(self, title: str) -> Node:
        """The section under a heading."""
        (found,) = (node for node in self.root.all("section") if node.all("h2")[0].text == title)
        return found
