"""Notes on their way to the store: many in a request, several requests at once, and what became of them.

Contract: git.notes, import.markdown.
"""

from __future__ import annotations

from cpersona_daemon.shared import fields

from .. import exits
from ..terminal.failure import failure_line
from ..wire.interrupts import Interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from ..session import Session

# Together the notes of a request are one commit of the database; more would hold up other writers.
TOGETHER, IN_FLIGHT = 100, 4


class Sending:
    """Notes on their way, at most ``IN_FLIGHT`` requests at once, and what became of them.

    ``asked``: the axes and whatever else all requests have. ``things`` is what ``total`` counts. ``lines``: progress is
    said off a terminal too.
    """

    command, things = "", ""

    def __init__(self, session: Session, asked: dict[str, Any], lines: bool = False) -> None:
        from ..terminal import progress

        self._session, self.total = session, 0
        self._asked = {name: value for name, value in asked.items() if value is not None}
        self.counts = {"stored": 0, "skipped": 0, "rejected": 0}
        self.cut = self.paused = 0
        self.status = fields.EXIT_OK
        self._ready: list[dict] = []
        self._waiting: dict[int, list[dict]] = {}
        self._shown = progress.shown(session.out, session.name, lines)

    def __enter__(self) -> Self:
        if self._shown is not None:
            self._shown.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def waiting(self) -> int:
        """How many notes have no answer yet."""
        return sum(map(len, self._waiting.values()))

    def tell(self, stage: str) -> None:
        """Say on a terminal what is being done before there is anything to count."""
        if self._shown is not None:
            self._shown({"stage": stage})

    def begin(self, interrupts: Interrupts) -> None:
        """Reach the daemon: where none can be had, nothing has begun and nothing ends early."""
        self.tell("starting the daemon")
        self._connection = self._session.connection
        interrupts.attend(self._connection)

    def add(self, note: dict) -> None:
        """Have a note stored; several go together."""
        self._ready.append(note)
        if len(self._ready) == TOGETHER:
            self._send()

    def _send(self) -> None:
        if notes := self._ready:
            self._ready = []
            self._put(notes, notes=notes)

    def _put(self, waiting: list[dict], **asked: Any) -> None:
        """Send a request, once there is room for it; ``waiting`` are the notes that it stores."""
        while len(self._waiting) >= IN_FLIGHT:
            self._receive()
        params = self._session.signed("replace_notes", {**self._asked, **asked})
        self._waiting[self._connection.send("replace_notes", params)] = waiting

    def settle(self, interrupts: Interrupts) -> bool:
        """Take in the answers that come within the grace of a run that ends early; false where some did not come."""
        from ..wire.client import CallFailed

        interrupts.hurry()
        try:
            while self._waiting:
                self._receive()
        except (KeyboardInterrupt, CallFailed, exits.Stop):
            return False
        return True

    def counted(self) -> dict[str, int]:
        """Return what became of the notes; where texts were cut, of how many."""
        return {**self.counts, **{name: count for name, count in (("cut", self.cut), ("paused", self.paused)) if count}}

    def drain(self) -> None:
        """Send what is left and wait for every answer."""
        self._send()
        while self._waiting:
            self._receive()

    def finish(self) -> None:
        self.drain()
        self.close()

    def close(self) -> None:
        if self._shown is not None:
            self._shown.__exit__(None, None, None)
            self._shown = None

    def said(self) -> str:
        """Return what became of the notes, in words."""
        return (
            f"{', '.join(f'{count:,} {name}' for name, count in self.counts.items())} of {self.total:,} {self.things}"
        )

    def ended_early(self, interrupts: Interrupts) -> str:
        """Take in the answers that still come, and return what is certain of the notes and what is not."""
        known = self.settle(interrupts)
        self.close()
        lost = "" if known else f"; {self.waiting} more were under way, what became of them is not known"
        return f"ended early: {'' if known else 'at least '}{self.said()}{lost}"

    def _receive(self) -> None:
        request, response, code = self._connection.receive()
        notes = self._waiting.pop(request)
        failed = exits.status_of(response, code)
        if failed and code is not None and fields.ERRORS[code][1]:
            raise exits.Stop(f"{self.command}: {failure_line(self._first(notes), response, code)}", failed)
        if failed:
            self._refused(f"{self._first(notes)} and what was sent with it", response, code, failed)
        persisted = response.get("persisted") is not False
        self.paused += 0 if persisted else len(notes)
        one = {"result": "rejected" if failed else "skipped"}
        for note, outcome in zip(
            notes, [one] * len(notes) if failed or not persisted else response["notes"], strict=True
        ):
            self._count(note, outcome)
        self._answered(response)
        if self._shown is not None:
            self._shown({"done": sum(self.counts.values()), "total": self.total, "stage": self.things})

    def _first(self, notes: list[dict]) -> str:
        return self.named(notes[0]) if notes else "what is gone"

    def named(self, note: dict) -> str:
        """Return what a note is called where something is said of it."""
        raise NotImplementedError

    def is_cut(self, note: dict) -> bool:
        """Tell whether a note was cut before it was sent."""
        return False

    def _answered(self, response: dict) -> None:
        """Take in what an answer says beside the notes."""

    def _count(self, note: dict, outcome: dict) -> None:
        result = outcome["result"]
        if result == "rejected" and "reason" in outcome:
            self._refused(self.named(note), outcome, None, fields.EXIT_FAILED)
        self.counts[result] = self.counts.get(result, 0) + 1
        self.cut += result != "rejected" and (self.is_cut(note) or "cut" in outcome)

    def _refused(self, what: str, response: dict, code: str | None, status: int) -> None:
        self.status = self.status or status
        self._session.out.warn("cpersona " + failure_line(f"{self.command} {what}", response, code))
