"""What is known of a card, and the catalog of cards and offer books. Frozen; a missing figure is None, never 0."""

from __future__ import annotations

import datetime
import difflib
from typing import Annotated

import msgspec

from gpufit.catalog import dtypes
from gpufit.catalog.card_parts import (
    CardMemory,
    ContextFigure,
    Estimate,
    HostLink,
    Machine,
    Mig,
    Peaks,
    PeerLink,
    Software,
    Sources,
)
from gpufit.catalog.offers import OfferBook, Offers
from gpufit.catalog.row import Count, Row, Texts, Words
from gpufit.errors import UsageError
from gpufit.units import GIB, MIB


class Card(Row, frozen=True, kw_only=True):
    """One row of the catalog: a card as it is rented."""

    id: Words
    """`h100-pcie-80gb`: lower case, unique, for ever."""
    vendor: Words
    """`NVIDIA` or `AMD`."""
    name: Words
    """As the card is marketed."""
    aliases: Texts = ()
    """What else people type for it; each means this card alone."""
    device_names: Texts = ()
    """Exactly what torch and `nvidia-smi --query-gpu=name` print for it."""
    smi_table_name: Words | None = None
    """The name cell of nvidia-smi's table, which is cut short and may fit several cards: for reading only."""
    pci_ids: tuple[Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{4}:[0-9a-f]{4}$")], ...] = ()
    """Vendor and device, `10de:2331`, lower case."""
    form_factor: Words | None = None
    """PCIe card, SXM module, ..."""
    architecture: Words | None = None
    """Name, and chip or unit count where known."""
    compute_capability: Annotated[str, msgspec.Meta(pattern=r"^\d+\.\d$")] | None = None
    """NVIDIA's, as `9.0`."""
    gfx: Words | None = None
    """AMD's target, as `gfx942`."""
    devices_per_card: Count = 1
    """Devices that software sees for one card; memory totals are for one of them, rates for the card."""
    tdp_w: Count | None = None
    """Board power, W."""
    ecc: Words | None = None
    """What ECC does to the memory total."""
    caveats: Texts = ()
    """What a buyer should know before trusting the row."""
    memory: CardMemory
    """Totals in GB, MiB and GiB, each named in its key."""
    peak_tflops: Peaks = Peaks()
    """TFLOPS (int8: TOPS), dense."""
    estimates: dict[dtypes.Estimated, Estimate] = msgspec.field(default_factory=dict)
    """Peaks that had to be computed, by format."""
    context: ContextFigure = ContextFigure()
    """MiB a process."""
    host_link: HostLink | None = None
    """None where nothing is known, as for the next two."""
    peer_link: PeerLink | None = None
    """`kind` says so where the card has none."""
    machine: Machine | None = None
    """None where nobody said how many stand in one."""
    mig: Mig | None = None
    """Hardware slices."""
    software: Software = Software()
    """The oldest that runs on the card."""
    sources: Sources = Sources()
    """By group of figures."""

    @property
    def display_name(self) -> str:
        """The name to show to people."""
        return self.name

    @property
    def capacity_bytes(self) -> int | None:
        """What torch sees on one device of the card, at its lowest; None where no such total is known."""
        total = self.memory.planning_torch_gib
        return None if total is None else int(total * GIB)

    @property
    def context_bytes(self) -> int | None:
        """What one process holds before its first tensor; None where no figure is known."""
        return None if self.context.mib is None else self.context.mib * MIB

    @property
    def context_upper_bytes(self) -> int | None:
        """The highest report of the same; None where there is no report at all."""
        if self.context.range_mib is None:
            return self.context_bytes
        return self.context.range_mib[1] * MIB

    def supports(self, dtype: str) -> bool | None:
        """Whether the matrix units take a dtype (`bf16`, `torch.bfloat16`, `float8_e4m3fn`); None where unknown.

        False only where the row says so, True where it has a peak or the compute capability implies it.
        """
        family = dtypes.family(dtype)
        if family is None:
            return None
        if family in self.peak_tflops.unsupported:
            return False
        known = getattr(self.peak_tflops, family) is not None or dtypes.implied_by(self.compute_capability, family)
        return True if known else None


BLANK_BOOK = "blank"
"""The shipped book that knows every card's lot size and no price."""


class Origin(Row, frozen=True, kw_only=True):
    """Where a row or a book was read."""

    path: Words
    """The file."""
    replaces: Words | None = None
    """The file whose row of the same id it took the place of."""


class Catalog(Row, frozen=True, kw_only=True):
    """Every card that is known here, and every offer book."""

    cards: tuple[Card, ...]
    """Smallest memory first, then by id."""
    offer_books: tuple[OfferBook, ...] = ()
    """In the order they were read: gpufit's own, then the user's."""
    card_origins: dict[str, Origin] = msgspec.field(default_factory=dict)
    """By card id."""
    book_origins: dict[str, Origin] = msgspec.field(default_factory=dict)
    """By book name."""

    def card(self, card_id: str) -> Card:
        """The card with exactly this id. Raises UsageError when there is none; `query.find_card` is lenient."""
        for card in self.cards:
            if card.id == card_id:
                return card
        raise UsageError(f"no card {card_id!r} in the catalog; `gpufit catalog list` shows them all")

    def offer_book(self, name: str) -> OfferBook:
        """The book of this name. Raises UsageError, with the names there are, when there is none."""
        for book in self.offer_books:
            if book.name == name:
                return book
        names = [book.name for book in self.offer_books]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there is: {', '.join(names) or 'none'}"
        raise UsageError(f"no offer book {name!r}; {hint} (gpufit catalog offers lists them)")

    @property
    def default_books(self) -> tuple[OfferBook, ...]:
        """The books that are used when none is named: all of the user's own, or else the blank one.

        A book of public figures is never among them.
        """
        usual = tuple(book for book in self.offer_books if not book.indicative)
        return tuple(book for book in usual if book.name != BLANK_BOOK) or usual

    def offers(self, today: datetime.date) -> Offers:
        """The books that are used by default, as they stand on a day."""
        return Offers(self.default_books, today)


def catalog_order(card: Card) -> tuple[float, str]:
    """Sort key of `Catalog.cards`: memory of one device, ascending, then id."""
    memory = card.memory
    return (memory.planning_torch_gib or float(memory.nominal_gb), card.id)
