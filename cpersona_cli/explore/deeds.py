"""What is done with the row under the cursor: open, copy, edit, lock, delete, keep as a canary.

Contract: explore.edits, explore.keys, locks.hold, canary.run.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from textual.app import App

from . import away, shaping, widgets
from .asking import Asker, Outcome
from .state import Asked, Filters, Setup


class Deeds(App[None]):
    """The keys of a row. Whoever has the rows says which one is meant, and asks anew once one was changed."""

    setup: Setup
    found: dict[str, Any] | None
    """The row under the cursor, whole, once it was told."""
    filters: Filters
    done: str
    """What was done last, said until the question changes."""

    @property
    def row(self) -> shaping.Row | None:
        """The row under the cursor."""
        raise NotImplementedError

    @property
    def asked(self) -> Asked:
        """The question as it stands."""
        raise NotImplementedError

    @property
    def asker(self) -> Asker:
        raise NotImplementedError

    def look_again(self, keep: str | None) -> None:
        """Ask the question anew; the cursor stays on the row of the ref ``keep``."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        """Leave one line below the rows."""
        raise NotImplementedError

    def deliver(self, call: Callable[[], None]) -> None:
        """Have a call made by this screen."""
        raise NotImplementedError

    def when_told(self, future: Future[Outcome], done: Callable[[Outcome], None]) -> None:
        """Have ``done`` called with the outcome of an errand."""
        future.add_done_callback(lambda told: self.deliver(lambda: done(told.result())))

    def action_copy_ref(self) -> None:
        if self.row is not None:
            self.copy_to_clipboard(self.row.ref)
            self.say(f"{self.row.ref} is handed to the terminal's clipboard")

    def action_copy_text(self) -> None:
        def copy(ref: str, text: str) -> None:
            self.copy_to_clipboard(text)
            self.say(f"the text of {ref}, {len(text):,} characters, is handed to the terminal's clipboard")

        self._with_text(copy)

    def action_open(self) -> None:
        def page(ref: str, text: str) -> None:
            with self.suspend():
                said = away.page(text)
            self.say(said)

        self._with_text(page)

    def _with_text(self, do: Callable[[str, str], None]) -> None:
        """Call ``do`` with the ref and the whole text of the row under the cursor."""
        row = self.row
        if row is None:
            return
        if ":" not in row.ref:  # the profile has no ref, and is told whole
            do(row.ref, row.told.get("content", ""))
            return

        def told(found: Outcome) -> None:
            items = found.response.get("items")
            if items:
                do(row.ref, items[0]["content"])
            else:
                self.say(found.failure or f"{row.ref} is not there any more")

        params = {"agent_id": self.filters.agent, "refs": [row.ref]}
        self.when_told(self.asker.errand("get_contents", params), told)

    def action_edit(self) -> None:
        row = self._memory("edited")
        if row is None:
            return
        params = {"agent_id": self.filters.agent, "refs": [row.ref], "placed": True}
        self.when_told(self.asker.errand("get_contents", params), lambda found: self._edit(row.ref, found))

    def _edit(self, ref: str, found: Outcome) -> None:
        """Hand the terminal to the editor, with the text as it is in the store now."""
        if why := away.refused(ref, found):
            self.say(why)
            return

        def ask(method: str, params: dict[str, Any]) -> Outcome:
            return self.asker.errand(method, params).result()

        write = self.setup.signed("update_memory", {"agent_id": self.filters.agent})
        with self.suspend():
            changed, said = away.edit(ask, ref, found.response["items"][0]["content"], write)
        if changed:
            self.look_again(ref)
        self._say_after(said)

    def action_lock(self) -> None:
        row = self._memory("locked")
        if row is None or self.found is None:
            return
        doing, done = ("unlock", "unlocked") if self.found.get("locked") else ("lock", "locked")
        self._write(f"{doing}_memory", row, f"{row.ref} is {done}")

    def action_delete(self) -> None:
        row = self.row
        if row is None or ":" not in row.ref:
            return
        if self.found is not None and self.found.get("locked"):
            self.say(f"{row.ref} is locked; l unlocks it")
            return
        method = "delete_episode" if row.ref.startswith("ep:") else "delete_memory"

        def sure(yes: bool | None) -> None:
            if yes:
                self._write(method, row, f"{row.ref} is deleted")

        self.push_screen(widgets.Sure(f"Delete {row.ref}?", row.told.get("content", "")[:400]), sure)

    def action_canary(self) -> None:
        row, asked = self.row, self.asked
        if row is None or ":" not in row.ref:
            return
        if not asked.text.strip():
            self.say("a canary is a question with the row that must come back; type the question first")
            return
        params = {**asked.filters.axes(), "query": asked.text, "ref": row.ref}

        def done(outcome: Outcome) -> None:
            told = outcome.response
            how = f"comes back at rank {told.get('rank')}" if told.get("state") == "found" else str(told.get("state"))
            number = f"canary {told.get('id')}{'' if told.get('created') else ', saved before'}"
            kept = told.get("persisted") is not False
            self.say(
                outcome.failure or (f"{number}: {row.ref} {how}" if kept else "persistence is paused; nothing was kept")
            )

        self.when_told(self.asker.errand("add_canary", self.setup.signed("add_canary", params)), done)

    def _memory(self, done: str) -> shaping.Row | None:
        """Return the row under the cursor where it is a memory; an episode and the profile are not changed here."""
        row = self.row
        if row is not None and not row.ref.startswith("mem:"):
            self.say(f"{row.ref} is no memory; only a memory can be {done}")
            return None
        return row

    def _write(self, method: str, row: shaping.Row, said: str) -> None:
        kind, _, number = row.ref.partition(":")
        key = "episode_id" if kind == "ep" else "memory_id"
        params = self.setup.signed(method, {"agent_id": self.filters.agent, key: int(number)})

        def done(outcome: Outcome) -> None:
            if not outcome.failure:
                self.look_again(row.ref)
            paused = outcome.response.get("persisted") is False
            self._say_after(outcome.failure or (f"{row.ref} is as it was: persistence is paused" if paused else said))

        self.when_told(self.asker.errand(method, params), done)

    def _say_after(self, text: str) -> None:
        """Say what was done; the answer that is asked for next leaves it there, unless it has something to say."""
        self.done = text
        self.say(text)
