"""The order file of one card: how much work there is, the file as it will be written, and what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import Screen
from textual.widgets import Input

from gpufit.advice.plan import AskError
from gpufit.errors import UsageError
from gpufit.report.order_document import OrderDocument
from gpufit.report.order_registry import load_order_format
from gpufit.tui.export import Exportable, of_order
from gpufit.tui.keys import ORDER_FILE, bindings
from gpufit.tui.messages import OrderMade
from gpufit.tui.order_form import FIELDS, TERM_WORDS, first_texts, in_fields, read_ask
from gpufit.tui.ordering import OrderLine
from gpufit.tui.renderables.order import OrderPage, order_head
from gpufit.tui.renderables.palette import WARNING
from gpufit.tui.session import Session
from gpufit.tui.widgets.block import Block
from gpufit.tui.widgets.key_footer import KeyFooter
from gpufit.tui.widgets.scroll import Scroll
from gpufit.tui.widgets.words import Words


class OrderFileScreen(Screen[None]):
    """Over the list until it is closed. Every field that changes is answered by a new page."""

    KEYS = ORDER_FILE
    """Named as commands, too."""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ORDER_FILE)]
    DEFAULT_CSS = """
    OrderFileScreen #head { height: auto; max-height: 5; padding: 0 1; background: $panel; }
    OrderFileScreen #halves { height: 1fr; layout: vertical; }
    OrderFileScreen.-wide #halves, OrderFileScreen.-medium #halves { layout: horizontal; }
    OrderFileScreen #form { width: 1fr; height: 9; padding: 0 1; scrollbar-size-vertical: 1; }
    OrderFileScreen.-wide #form, OrderFileScreen.-medium #form { width: 44; height: 1fr; }
    OrderFileScreen .field { height: 1; }
    OrderFileScreen .title { width: 17; height: 1; }
    OrderFileScreen Input { width: 1fr; height: 1; }
    OrderFileScreen #terms { height: auto; margin: 1 0 0 0; }
    OrderFileScreen.-narrow #terms { display: none; }
    OrderFileScreen #file { width: 1fr; height: 1fr; padding: 0 1; border-top: solid $primary 50%; }
    OrderFileScreen.-wide #file, OrderFileScreen.-medium #file {
        border-top: none;
        border-left: solid $primary 50%;
    }
    OrderFileScreen #file:focus { border-top: heavy $accent; }
    """

    def __init__(self, session: Session, line: OrderLine, term_days: int) -> None:
        super().__init__()
        self._session, self._line, self._texts = session, line, first_texts(term_days)
        self.document: OrderDocument | None = None
        """None while there is none."""
        self._why_not = ""
        """In words."""
        self._at_fault: str | None = None
        """The field to mend."""
        self._planned: Mapping[str, str] | None = None
        """The texts that the document, or why there is none, is of."""
        self._writes_then = False
        """Whether the order is to be written as soon as it is planned."""

    def compose(self) -> ComposeResult:
        """What was chosen, the form, and the file."""
        yield Block(id="head")
        with Horizontal(id="halves"):
            with VerticalScroll(id="form", can_focus=False):
                for one in FIELDS:
                    with Horizontal(classes="field"):
                        yield Words(one.title, id=f"title-{one.name}", classes="title")
                        yield Input(self._texts[one.name], placeholder=one.hint, id=one.name, compact=True)
                yield Words(f"Terms, in days. {TERM_WORDS}.", id="terms")
            with Scroll(id="file"):
                yield Words(id="page")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Plan what the form begins with."""
        self._say("planning …")
        self._plan()

    def exportable(self) -> Exportable | None:
        """The order file, of what stands in the form."""
        return None if self.document is None or self._planned != self._texts else of_order(self.document)

    def on_input_changed(self, message: Input.Changed) -> None:
        """Plan anew."""
        if message.input.id is not None and self._texts[message.input.id] != message.value:
            self._texts[message.input.id] = message.value
            self._writes_then = False
            self._plan()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """On to the next field."""
        self.focus_next()

    @work(thread=True, exclusive=True, group="order")
    def _plan(self) -> None:
        """Many workers take their time."""
        texts = dict(self._texts)
        try:
            ask = read_ask(texts)
            made = self._session.order(self._line.row.card, self._line.book, ask, self._arrangement)
        except UsageError as error:
            field = error.option if isinstance(error, AskError) else None
            self.post_message(OrderMade(texts, in_fields(str(error)), "", field))
            return
        self.post_message(OrderMade(texts, made, load_order_format("markdown").render_order(made).decode()))

    async def on_order_made(self, message: OrderMade) -> None:
        """The file, or why there is none; of what stood in the form before nothing is shown any more."""
        if message.texts != self._texts:
            return
        self._planned = message.texts
        self._show(message)
        if self._writes_then:
            await self.action_write()

    def _show(self, message: OrderMade) -> None:
        self._point_at(message.field)
        if isinstance(message.order, str):
            self.document, self._why_not = None, message.order
            self._say(message.order, wrong=True)
            self.query_one("#page", Words).update("")
            return
        self.document, self._why_not = message.order, ""
        self._say("")
        self.query_one("#page", Words).update(OrderPage(message.page))

    def _point_at(self, field: str | None) -> None:
        """A sign before the title of the field to mend, and none before the others."""
        self._at_fault = field
        for one in FIELDS:
            wrong = one.name == field
            title = Text(f"! {one.title}", WARNING) if wrong else Text(one.title)
            self.query_one(f"#title-{one.name}", Words).update(title)

    async def action_write(self) -> None:
        """Write the order file. Where there is none say why, with the cursor in the field to mend."""
        self._writes_then = self._planned != self._texts
        if self._writes_then:
            return
        if self.document is not None:
            await self.run_action("app.export")
            return
        self.notify(f"no order to write: {self._why_not}", severity="warning", markup=False)
        if self._at_fault is not None:
            self.query_one(f"#{self._at_fault}", Input).focus()

    @property
    def _arrangement(self) -> str | None:
        """That of the line; None where no number of its cards serves."""
        return None if self._line.plan is None else self._line.plan.arrangement

    def _say(self, words: str, wrong: bool = False) -> None:
        """The line that the file is made of, whether it is ready, and what is wrong."""
        self.query_one("#head", Block).show(order_head(self._line, self.document, words, wrong))
