"""What the screen is made of: a list of rows, the row under the cursor, and the screens that lie over them.

Contract: explore.order, explore.account, explore.keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.suggester import SuggestFromList
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from .. import exits
from ..terminal import render
from . import layout, shaping
from .state import Filters

# A word of the question and the best passage are told apart without colours too.
WORD, FAR = "bold underline", "dim"
NO_ROWS = Option("", disabled=True)


# Each is run before the next key is looked at (``priority``): on a slow line keys arrive together, and a letter typed
# behind / is the question's, not a key of the row.
KEYS = {
    "slash,escape,i": "app.ask",
    "enter,o": "app.open",
    "y": "app.copy_ref",
    "Y": "app.copy_text",
    "e": "app.edit",
    "l": "app.lock",
    "d": "app.delete",
    "a": "app.canary",
    "w": "app.why_not",
    "m": "app.mode",
    "p": "app.precision",
    "f": "app.filter",
    "left": "app.side(0)",
    "right": "app.side(1)",
    "space": "app.text_on(1)",
    "b": "app.text_on(-1)",
    "down,j": "cursor_down",
    "up,k": "cursor_up",
    "pagedown": "page_down",
    "pageup": "page_up",
    "home": "first",
    "end": "last",
    "q": "app.quit",
    "question_mark": "app.help",
}


class Question(Input):
    """The line of the question. What is typed behind enter is for the rows, also where it arrives at once."""

    BINDINGS: ClassVar = [Binding("enter,tab", "app.to_rows", priority=True)]


class Rows(OptionList):
    """The rows of one answer, the best one first. The keys of a row work while it has the focus."""

    BINDINGS: ClassVar = [Binding(key, action, priority=True) for key, action in KEYS.items()]

    def __init__(self, id: str) -> None:
        super().__init__(id=id, compact=True, markup=False)
        self.rows: list[shaping.Row] = []
        self.active = False  # whether the row under its cursor is the one shown
        self._marks: render.Marks = lambda text: ()
        self._moves: dict[str, str] | None = None

    @property
    def row(self) -> shaping.Row | None:
        """The row under the cursor."""
        at = self.highlighted
        return self.rows[at] if at is not None and at < len(self.rows) else None

    def show(
        self, rows: list[shaping.Row], marks: render.Marks, moves: dict[str, str] | None, keep: str | None
    ) -> None:
        """Show rows; the cursor stands on the row of the ref ``keep``, on the best one where it is not there."""
        self.rows, self._marks, self._moves = rows, marks, moves
        self.draw(keep)

    def draw(self, keep: str | None = None) -> None:
        """Draw the rows for the width that there is."""
        room = max(20, self.scrollable_content_region.width or self.size.width)
        columns = shaping.Columns.of(self.rows, room)
        at = next((at for at, row in enumerate(self.rows) if row.ref == keep), 0)
        with self.prevent(OptionList.OptionHighlighted):
            self.clear_options()
            self.add_options([Option(self._line(row, columns, room)) for row in self.rows])
            self.highlighted = at if self.rows else None

    def _line(self, row: shaping.Row, columns: shaping.Columns, room: int) -> Content:
        moved = None if self._moves is None else self._moves.get(row.ref, "")
        text, words = shaping.line(row, columns, self._marks, room, moved)
        return _marked(Content(text), words).stylize("" if row.returned else FAR)

    def render_line(self, y: int) -> Strip:
        """Draw one line; that of the cursor is reversed, which is to be seen without colours too."""
        strip = super().render_line(y)
        at_cursor = self.active and self.highlighted is not None and self.scroll_offset.y + y == self.highlighted
        return strip.apply_style(Style(reverse=True)) if at_cursor else strip

    def on_resize(self) -> None:
        row = self.row
        self.draw(row.ref if row else None)


class Whole(Vertical):
    """The row under the cursor: what it is, its score as bars, why it was not returned, and its whole text."""

    def compose(self) -> ComposeResult:
        yield Static(id="facts", markup=False)
        yield Static(id="why", markup=False)
        with VerticalScroll(id="reading", can_focus=False):
            yield Static(id="text", markup=False)

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[str, list[shaping.Bar], list[str], shaping.Text | None] = ("", [], [], None)
        self._width = 0

    def on_resize(self) -> None:
        if self.size.width != self._width:
            self.show(*self._shown)

    def show(self, about: str, bars: list[shaping.Bar], why: list[str], text: shaping.Text | None) -> None:
        """Show one row, from where its best passage begins."""
        self._shown, self._width = (about, bars, why, text), self.size.width
        width = max(30, self.size.width)
        lines = [Content(about).stylize("bold")]
        lines += [Content(line) for line in shaping.bar_lines(bars, width)]
        self.query_one("#facts", Static).update(Content("\n").join(lines))
        said = self.query_one("#why", Static)
        said.update("\n".join(why))
        said.display = bool(why)
        shown, reading = self.query_one("#text", Static), self.query_one("#reading", VerticalScroll)
        if text is None:
            shown.update("")
            return
        content = _marked(Content(text.plain), text.words)
        start = 0
        if text.passage is not None:
            start, end = text.passage
            content = content.stylize(FAR, 0, start).stylize(FAR, end)
        shown.update(content)
        above = len(Content(text.plain[:start]).wrap(max(10, width - 2))) - 1 if start else 0
        # The new text has to be laid out before it can be scrolled.
        self.call_after_refresh(reading.scroll_to, y=above, animate=False, force=True)

    def turn(self, pages: int) -> None:
        """Move the text by so many pages."""
        reading = self.query_one("#reading", VerticalScroll)
        reading.scroll_relative(y=pages * max(1, reading.size.height - 1), animate=False)


def _marked(content: Content, words: Iterable[tuple[int, int]]) -> Content:
    for start, end in words:
        content = content.stylize(WORD, start, end)
    return content


class Help(ModalScreen[None]):
    """The keys, and what is to be seen."""

    BINDINGS: ClassVar = [Binding("escape,q,question_mark,enter,f1", "dismiss"), Binding("ctrl+c", "app.quit")]

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="over"):
            yield Static(layout.HELP, markup=False)
        yield Static("up, down: read on · q or escape: back", classes="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


class Sure(ModalScreen[bool]):
    """A question that only `y` answers with yes."""

    def __init__(self, question: str, text: str) -> None:
        super().__init__()
        self._question, self._text = question, text

    def compose(self) -> ComposeResult:
        with Vertical(classes="asks"):
            yield Static(self._question, classes="title", markup=False)
            yield Static(shaping.visible(self._text), id="sure", markup=False)
            yield Static("y yes · any other key no", markup=False)

    def on_key(self, event: object) -> None:
        key = getattr(event, "key", "")
        event.stop()  # type: ignore[attr-defined]  # nothing beneath is to hear it
        self.dismiss(key == "y")


class Form(ModalScreen["Filters | None"]):
    """The filters, a line each; a line left empty is no limit."""

    BINDINGS: ClassVar = [
        Binding("escape", "cancel"),
        Binding("down", "app.focus_next"),
        Binding("up", "app.focus_previous"),
        Binding("ctrl+c", "app.quit"),
    ]
    _HINTS: ClassVar = {
        "project": "any; '' is the global pool",
        "channel": "any",
        "since": "any time; 3h, 2026-03-01, monday, last week",
        "until": "any time",
    }

    def __init__(self, filters: Filters, names: dict[str, list[str]]) -> None:
        super().__init__()
        self._filters, self._names = filters, names

    def compose(self) -> ComposeResult:
        with Vertical(classes="asks"):
            yield Static("Which memories are looked at", classes="title", markup=False)
            for name, text in self._filters.fields().items():
                with Horizontal(classes="field"):
                    yield Static(f"{name:<8}", markup=False)
                    yield Input(
                        text,
                        placeholder=self._HINTS.get(name, ""),
                        suggester=SuggestFromList(self._names.get(name, []), case_sensitive=False),
                        id=name,
                        compact=True,
                    )
            yield Static("", id="wrong", markup=False)
            yield Static("enter apply · tab next · → take what is offered · escape back", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            self.dismiss(Filters.typed({field.id or "": field.value for field in self.query(Input)}))
        except exits.Usage as error:
            self.query_one("#wrong", Static).update(str(error))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()

    def action_cancel(self) -> None:
        self.dismiss(None)
