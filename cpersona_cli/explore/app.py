"""The screen: a question line, its rows, the row under the cursor. It asks through an Asker and never waits itself.

Contract: explore.asked, explore.order, explore.keys, explore.goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from signal import SIGHUP, SIGTERM
from typing import Any, ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static

from .. import exits
from ..terminal import explain, render, view
from . import away, layout, shaping, widgets
from .asking import Asker, Outcome
from .deeds import Deeds
from .state import AS_SET, Asked, Filters, Setup, Way, next_mode, next_precision
from .widgets import Question, Rows, Whole

# What is asked first where several things wait.
ORDER = ("answer", "row", "texts", "why", "beside", "names")
WIDE = 110  # columns from which rows and text stand beside each other
_AGAIN_SECONDS = 2.0  # how soon a question is asked again that no daemon answered
_PATIENCE_SECONDS = 0.5  # how long an answer may take before it is said that it is waited for
_NEWS_SECONDS = 8.0
_SIDES = ("left", "right")
Part = TypeVar("Part")


class Side:
    """One of the two lists: its way of asking, and its last answer."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.response: dict[str, Any] = {}
        self.seconds = 0.0
        self.texts: dict[str, dict[str, Any]] | None = None

    def rows(self) -> list[shaping.Row]:
        return shaping.rows_of(self.response, self.texts)


class Explore(Deeds):
    """``make_asker(deliver)`` begins to ask; it is called once the screen is there."""

    CSS = layout.CSS
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [
        Binding("ctrl+c", "quit", priority=True),
        Binding("ctrl+z", "suspend_process", priority=True),
        Binding("f1", "help"),
        Binding("ctrl+t", "filter"),
        Binding("down", "move('cursor_down')"),
        Binding("up", "move('cursor_up')"),
        Binding("pagedown", "move('page_down')"),
        Binding("pageup", "move('page_up')"),
    ]

    def __init__(self, setup: Setup, make_asker: Callable[[Callable[[Callable[[], None]], None]], Asker]) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.setup = setup
        self.filters = setup.filters
        self._make_asker = make_asker
        self._asker: Asker | None = None
        self.sides = (Side(AS_SET), Side(AS_SET))
        self._at = 0  # the list that has the cursor
        self._below = False
        self.found: dict[str, Any] | None = None  # the row under the cursor, whole
        self._why: list[str] = []
        self._said = self.done = ""
        self._news = self._advice = ""
        self._lost = False

    @property
    def asker(self) -> Asker:
        assert self._asker is not None
        return self._asker

    def compose(self) -> ComposeResult:
        yield Static(id="where", markup=False)
        with Horizontal(id="line"):
            yield Static("? ", id="prompt", markup=False)
            yield Question(
                self.setup.question, placeholder="type a question", id="question", compact=True, select_on_focus=False
            )
        with Container(id="body"):
            with Horizontal(id="lists"):
                with Vertical(id="own"):
                    yield Static(classes="heading", markup=False)
                    yield Rows("left")
                with Vertical(id="beside"):
                    yield Static(classes="heading", markup=False)
                    yield Rows("right")
            yield Whole()
        yield Static(id="said", markup=False)
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        self._asker = self._make_asker(self.deliver)
        self._asker.renewed = self._renewed
        self.app_resume_signal.subscribe(self.screen, lambda _: self.refresh(layout=True))
        for told in (SIGTERM, SIGHUP):  # whoever ends it gets the terminal back as it was
            asyncio.get_running_loop().add_signal_handler(told, partial(self.exit, return_code=128 + told))
        self.set_interval(_PATIENCE_SECONDS / 2, partial(self._while_shown, self._tell))
        self._focus(self.part("#question", Input))
        self._turn_to(0)
        self.look_again()

    def on_unmount(self) -> None:
        if self._asker is not None:
            self._asker.close()

    def part(self, selector: str, kind: type[Part]) -> Part:
        """Return a part of this screen, also while another one lies over it."""
        return self.screen_stack[0].query_one(selector, kind)

    def deliver(self, call: Callable[[], None]) -> None:
        """Have a call made by this screen; called on the asker's thread."""
        if self.is_running:
            self.call_later(self._while_shown, call)

    def _while_shown(self, call: Callable[[], None]) -> None:
        """Make a call that nobody waits for: a screen that is being taken down has nothing to draw it on."""
        if self.is_running and self.screen_stack and self.screen_stack[0].query("#keys"):
            call()

    # -- asking

    @property
    def asked(self) -> Asked:
        return Asked(self.part("#question", Input).value, self.filters, self.setup.limit, self.setup.deep)

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "question":
            self.done = ""
            self.look_again()

    def look_again(self, keep: str | None = None) -> None:
        """Ask the question as it stands; the cursor stays on the row of the ref ``keep``, if it comes back."""
        where = self.filters.told() + (" · deep" if self.setup.deep else "")
        self.part("#where", Static).update(f"cpersona explore   {where}")
        for kind in ORDER[1:5]:
            self.asker.give_up(kind)
        self._ask_side(0, keep)

    def _ask_side(self, at: int, keep: str | None) -> None:
        way = self.sides[at].way
        try:
            params = self.asked.params(way)
        except exits.Usage as error:
            self.say(str(error))
            return
        self.asker.ask(
            "beside" if at else "answer",
            "recall",
            params,
            lambda outcome: self._answered(at, outcome, keep),
            way.overrides,
        )

    def _answered(self, at: int, outcome: Outcome, keep: str | None) -> None:
        if outcome.failure:
            self._failed(outcome)
            return
        side, out = self.sides[at], away.Overheard()
        side.response, side.seconds, side.texts = outcome.response, outcome.seconds, None
        render.warnings(out, outcome.response)
        if not at:
            self._lost = False
            advice = "; ".join(out.said)
            # What holds for every answer is said with the first of them.
            self.say("; ".join(filter(None, (self.done, "" if advice == self._advice else advice))))
            self._advice = advice
        self._show(at, keep)
        if self._below and (refs := shaping.below(side.response)):
            params = {"agent_id": self.filters.agent, "refs": refs, "placed": True}
            # Of the list beside only what the other has too is shown: one request for texts at a time.
            if not at:
                self.asker.ask("texts", "get_contents", params, lambda told: self._read(told, keep))
        if not at and self._two:
            self._ask_side(1, None)

    def _read(self, outcome: Outcome, keep: str | None) -> None:
        """Show the rows that were not returned, now that their texts are there."""
        if outcome.failure:
            self._failed(outcome)
            return
        self.sides[0].texts = {row["ref"]: row for row in outcome.response["items"]}
        row = self.rows(0).row
        self._show(0, keep or (row.ref if row else None))

    def _failed(self, outcome: Outcome) -> None:
        """Say a failure; a question that no daemon answered is asked again in a moment, the rows stay meanwhile."""
        again = "; asked again in a moment" if outcome.lost else ""
        self.say(outcome.failure + again)
        if outcome.lost and not self._lost:
            self._lost = True
            self.set_timer(_AGAIN_SECONDS, partial(self._while_shown, self._once_more))

    def _renewed(self, news: str) -> None:
        self._news = news
        self._tell()
        self.set_timer(_NEWS_SECONDS, partial(self._while_shown, self._renewed_long_ago))

    def _renewed_long_ago(self) -> None:
        self._news = ""
        self._tell()

    def _once_more(self) -> None:
        if self._lost:
            self._lost = False
            row = self.row
            self.look_again(row.ref if row else None)

    # -- showing

    @property
    def _two(self) -> bool:
        return self.sides[1].way != AS_SET

    def rows(self, at: int) -> Rows:
        return self.part(f"#{_SIDES[at]}", Rows)

    @property
    def row(self) -> shaping.Row | None:
        """The row under the cursor, of the list that has it."""
        return self.rows(self._at).row

    def _show(self, at: int, keep: str | None) -> None:
        side, other = self.sides[at], self.sides[1 - at]
        found = side.rows()
        named = side.way.told(self.setup.mode) if self._two or at else "best first, nearest the question"
        heading = shaping.heading(side.response, named, side.seconds)
        if not side.response.get("messages"):
            heading = f"{heading.partition(' · ')[0]} · {shaping.nothing(side.response)}"
        self.part("#own .heading" if not at else "#beside .heading", Static).update(heading)
        moves = shaping.moves(found, other.rows()) if at else None
        self.rows(at).show(found, view.marker(self.asked.text), moves, keep)
        if at == self._at:
            self._on_row()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if isinstance(event.option_list, Rows) and event.option_list is self.rows(self._at):
            self._on_row()

    def _on_row(self) -> None:
        """Show the row under the cursor, and ask for what the answer does not have of it."""
        row, self.found, self._why = self.row, None, []
        self._draw_row()
        if row is None or ":" not in row.ref:
            self.asker.give_up("row")
            return
        params = {"agent_id": self.filters.agent, "refs": [row.ref], "placed": True}
        self.asker.ask("row", "get_contents", params, lambda told: self._row_told(row.ref, told))
        if row.returned:
            self.asker.give_up("why")
            return
        way = self.sides[self._at].way
        self.asker.ask(
            "why",
            "recall",
            self.asked.params(way, why_not=row.ref),
            lambda told: self._why_told(row.ref, told),
            way.overrides,
        )

    def _row_told(self, ref: str, outcome: Outcome) -> None:
        items = outcome.response.get("items")
        if outcome.failure:
            self._failed(outcome)
        elif items and self._is_at(ref):
            self.found = items[0]
            self._draw_row()
        elif not items:
            self.say(f"{ref} is not there any more")

    def _why_told(self, ref: str, outcome: Outcome) -> None:
        verdict = (outcome.response.get("trace") or {}).get("why_not")
        if verdict and self._is_at(ref):
            self._why = explain.why_not_lines(verdict)
            self._draw_row()

    def _is_at(self, ref: str) -> bool:
        return self.row is not None and self.row.ref == ref

    def _draw_row(self) -> None:
        row, whole = self.row, self.part("Whole", Whole)
        if row is None:
            whole.show("", [], [], None)
            return
        scale = shaping.Scale.of(self.rows(self._at).rows)
        content = (self.found or row.told).get("content", "")
        passage = row.told.get("passage")
        text = shaping.text_of(content, passage if self.found else None, view.marker(self.asked.text))
        whole.show(shaping.about(row, self.found), shaping.bars(row.account, scale), self._why, text)

    def say(self, text: str) -> None:
        """Leave one line below the rows until the next takes its place; '' clears it."""
        self._said = shaping.visible(text)
        self._tell()

    def _tell(self) -> None:
        """Draw the line, which says too that an answer is waited for, and the keys of what has the focus."""
        waits = self._asker.waits_for if self._asker is not None else 0.0
        waited = f"waiting for the daemon ({waits:.0f} s)" if waits > _PATIENCE_SECONDS else ""
        said = self.part("#said", Static)
        line = " · ".join(filter(None, (waited, self._news, self._said)))
        said.update(line)
        said.display = bool(line)
        keys = layout.KEYS_OF_ROWS if isinstance(self.screen_stack[0].focused, Rows) else layout.KEYS_OF_QUESTION
        parts = [part for key, word in shaping.fitting(keys, self.size.width) for part in ((key, "bold"), word)]
        self.part("#keys", Static).update(Content.assemble(*parts))

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out(event.size.width)

    def _lay_out(self, width: int) -> None:
        screen = self.screen_stack[0]
        screen.set_class(width >= WIDE and not self._two, "wide")
        screen.set_class(self._two, "two")

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, Rows):
            self._turn_to(_SIDES.index(str(event.widget.id)))
        self._tell()

    def _focus(self, part: Rows | Input) -> None:
        """Have the next key go there; ``focus`` of a part would let keys pass that were typed at once."""
        self.screen_stack[0].set_focus(part)

    def _turn_to(self, at: int) -> None:
        """Have the cursor in one of the two lists."""
        moved, self._at = at != self._at, at
        for side in (0, 1):
            self.rows(side).active = side == at
            self.rows(side).refresh()
        if moved:
            self._on_row()

    # -- moving

    def action_move(self, how: str) -> None:
        getattr(self.rows(self._at), f"action_{how}")()

    def action_to_rows(self) -> None:
        self._focus(self.rows(self._at))

    def action_ask(self) -> None:
        self._focus(self.part("#question", Input))

    def action_side(self, at: int) -> None:
        if at == 0 or self._two:
            self._focus(self.rows(at))

    def action_text_on(self, pages: int) -> None:
        self.part("Whole", Whole).turn(pages)

    def action_help(self) -> None:
        self.push_screen(widgets.Help())

    # -- looking in another way

    def action_why_not(self) -> None:
        self._below = not self._below
        row = self.row
        self.look_again(row.ref if row else None)

    def action_mode(self) -> None:
        self._look(next_mode(self.sides[1].way, self.setup.mode))

    def action_precision(self) -> None:
        self._look(next_precision(self.sides[1].way, self.setup.mode))

    def _look(self, way: Way) -> None:
        """Ask the same in another way beside, or nothing beside any more."""
        self.sides[1].way = way
        self.sides[1].response = {}
        if not self._two:
            self.asker.give_up("beside")
            self._turn_to(0)
            self._focus(self.rows(0))
        self._lay_out(self.size.width)
        self._show(0, self.row.ref if self.row else None)
        if self._two:
            self._show(1, None)
            self._ask_side(1, None)

    def action_filter(self) -> None:
        if len(self.screen_stack) > 1:
            return
        names: dict[str, list[str]] = {}
        pending = [self.asker.errand("list_axes", {"agent_id": self.filters.agent}), self.asker.errand("list_axes", {})]

        def heard(outcome: Outcome) -> None:
            # Whoever may not list the names is offered none, and types them.
            told = outcome.response
            names.update({one: told[all_] for one, all_ in _NAMES if isinstance(told.get(all_), list)})
            if all(future.done() for future in pending) and len(self.screen_stack) == 1:
                self.push_screen(widgets.Form(self.filters, names), self._filtered)

        for future in pending:
            self.when_told(future, heard)

    def _filtered(self, filters: Filters | None) -> None:
        if filters is not None:
            self.filters = filters
            self.look_again()


_NAMES = (("agent", "agents"), ("project", "projects"), ("channel", "channels"))
