"""`store --jsonl`: a file of memories, several under way at once, outcomes in the order of the lines.

Contract: store.lines.
"""

from __future__ import annotations

import os
import sys

from cpersona_daemon.shared import fields

from .. import exits
from ..terminal import reading
from ..terminal.naming import stored
from ..wire.dial import CallFailed
from ..wire.interrupts import Interrupts
from ._lines import line_rows, row_params
from ._outcomes import Drawn, Printed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session
    from ..wire.client import Connection
    from ..wire.spool import Queue

# Requests on their way at once: enough to fill the writer's group commits, below what a connection may have in flight.
IN_FLIGHT = 64
_COUNTED = ("stored", "skipped", "updated", "queued", "rejected")


def store_lines(
    session: Session, name: str, defaults: dict, queue: bool, fail_if_skipped: bool, progress: bool = False
) -> int:
    """Store each line of a file, or of standard input for `-`, and return the exit status.

    Off a terminal, and with --json, an outcome is printed for each, as they come. On a terminal a bar shows how far
    it has come, elsewhere lines on stderr do with ``progress``.
    """
    descriptor = sys.stdin.fileno() if name == "-" else os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    if name != "-" and os.path.isdir(descriptor):
        raise IsADirectoryError(21, "Is a directory", name)
    shown = (Drawn if session.out.draws else Printed)(session.out, descriptor, progress)
    batch = Batch(session, shown, queue)
    lines = reading.Lines(descriptor)
    try:
        with Interrupts() as interrupts:
            batch.connect(interrupts)
            lines.wait = interrupts.for_input
            try:
                with shown:
                    _take(lines, batch, defaults, interrupts)
            except BrokenPipeError:
                raise
            except BaseException:
                # A person's interrupt too: an input that was not read to its end must not look finished.
                session.out.warn(f"cpersona: ended early: {batch.ended_early(interrupts)}")
                raise
    finally:
        if name != "-":
            os.close(descriptor)
    if session.out.as_json:
        session.out.json({"totals": batch.counted()})
    else:
        session.out.note(batch.totals())
    if batch.counts["rejected"]:
        return batch.status
    return fields.EXIT_NOTHING if fail_if_skipped and batch.counts["skipped"] else fields.EXIT_OK


def _take(lines: reading.Lines, batch: Batch, defaults: dict, interrupts: Interrupts) -> None:
    while True:
        while batch.waiting and not lines.ready():
            batch.receive()
        interrupts.check()
        try:
            line = lines.next()
        except reading.LineTooLong as error:
            batch.reject(str(error))
            continue
        if line is None:
            break
        batch.add(line, defaults)
    while batch.waiting:
        batch.receive()


class Batch:
    """Stores on their way over one connection; outcomes leave in input order whatever order the answers come in.

    Two lines with the same key or the same text are never on their way together: the second must see what
    the first did, so that a file means the same as its lines typed one by one.
    """

    def __init__(self, session: Session, shown: Printed | Drawn, queue: bool = False) -> None:
        self.session, self._shown = session, shown
        self._queue: Queue | None = None
        if queue:
            from ..wire.spool import Queue

            self._queue = Queue(session.settings)
        self.lines = 0  # that were read, blank ones left out
        self.counts = dict.fromkeys(_COUNTED, 0)
        self.cut = self.paused = 0
        self.status = fields.EXIT_FAILED
        self._line = 0
        self._last = 0  # the number of the row that was read last; an answer of `list` is one line of many rows
        # request id -> (row, marks, the caller's key, parameters and key while they may still be queued)
        self._sent: dict[int, tuple] = {}
        self._done: dict[int, dict] = {}  # row -> outcome, kept until its turn
        self._places: dict[
            int, dict
        ] = {}  # row -> where it stands: its line, and its place in the line where that holds several
        self._next = 1
        self._marks: dict[tuple, int] = {}  # what must not be sent twice at once -> how many are on their way

    @property
    def waiting(self) -> int:
        return len(self._sent)

    def connect(self, interrupts: Interrupts) -> None:
        """Connect before anything is counted; answers are then waited for where a Ctrl-C loses nothing."""
        connection = self.session.connection if self._queue is None else self._queue.connection
        if connection is not None:
            interrupts.attend(connection)

    def add(self, line: bytes, defaults: dict) -> None:
        """Send the row or rows of one line, or reject it here; a blank line is passed over."""
        self._line += 1
        if not line.strip():
            return
        self.lines += 1
        try:
            rows = line_rows(line)
        except ValueError as error:
            self._row(reason=str(error))
            return
        for place, row in enumerate(rows, 1):
            try:
                params = {**defaults, **row_params(row, self.session)}
            except (ValueError, exits.Usage) as error:
                self._row(place if len(rows) > 1 else None, str(error))
                continue
            self._send(self._row(place if len(rows) > 1 else None), params)

    def reject(self, reason: str) -> None:
        """Reject a line that could not even be read."""
        self._line += 1
        self.lines += 1
        self._row(reason=reason)

    def _row(self, place: int | None = None, reason: str | None = None) -> int:
        """Give the next row its number; with a reason it is rejected at once."""
        self._last += 1
        self._places[self._last] = {"line": self._line} if place is None else {"line": self._line, "row": place}
        if reason is not None:
            self._finish(self._last, {"result": "rejected", "reason": reason})
        return self._last

    def _send(self, row: int, params: dict) -> None:
        marks = [(name, params[name]) for name in ("id", "content") if isinstance(params.get(name), str)]
        while self._sent and (self.waiting >= IN_FLIGHT or any(mark in self._marks for mark in marks)):
            self.receive()
        key = os.urandom(16).hex()
        if self._queue is not None:
            from ..wire.spool import stamped

            params = stamped("store", params)
        connection = self._connection()
        try:
            if connection is None:
                self._put_aside(row, params, key)
                return
            request = connection.send("store", params, key=key)
        except CallFailed as error:
            if error.code == "invalid_params":
                self._finish(row, {"result": "rejected", "reason": str(error)})
            elif self._lost(error):
                self._put_aside(row, params, key)
            else:
                raise
            return
        self._sent[request] = row, marks, params.get("id"), (params, key)
        for mark in marks:
            self._marks[mark] = self._marks.get(mark, 0) + 1

    def _connection(self) -> Connection | None:
        """Return the connection that is used, None where everything is queued."""
        return self.session.connection if self._queue is None else self._queue.connection

    def receive(self) -> None:
        """Wait for one answer and show every outcome whose turn has come."""
        connection = self._connection()
        if connection is None:
            return
        try:
            request, response, code = connection.receive()
        except CallFailed as error:
            if not self._lost(error):
                raise
            return
        row, marks, own, asked = self._sent.pop(request)
        for mark in marks:
            self._marks[mark] -= 1
            if not self._marks[mark]:
                del self._marks[mark]
        if self._queue is not None:
            from ..wire.spool import undecided

            if undecided(code):
                self._put_aside(row, *asked)
                return
        if exits.status_of(response, code) != fields.EXIT_OK:
            if response.get("error") == "permission_denied":
                self.status = fields.EXIT_DENIED
            self._finish(row, {"result": "rejected", "reason": exits.reason_of(response)})
            return
        self.paused += response.get("persisted") is False
        self._finish(row, _outcome(stored(own, response)))

    def settle(self, interrupts: Interrupts) -> bool:
        """Take in the answers that come within the grace of a run that ends early; false where some did not come."""
        interrupts.hurry()
        try:
            while self.waiting:
                self.receive()
            self.session.out.flush()
        except (KeyboardInterrupt, CallFailed, OSError):
            return False
        return True

    def ended_early(self, interrupts: Interrupts) -> str:
        """Take in the answers that still come, and return what is certain of the lines and what is not."""
        known = self.settle(interrupts)
        least = "" if known else "at least "
        lost = "" if known else f"; {self.waiting} more were under way, what became of the others is not known"
        said = f"{least}{self.totals(' that were read')}{lost}"
        return f"{said}; run the same command again, what is stored already is skipped"

    def _lost(self, error: CallFailed) -> bool:
        """Queue everything that is on its way to a daemon that went away; false where it may not be queued."""
        from ..wire.spool import may_wait

        if self._queue is None or not may_wait(error.code):
            return False
        self._queue.close()
        waiting, self._sent, self._marks = self._sent, {}, {}
        for row, _, _, (params, key) in waiting.values():
            self._put_aside(row, params, key)
        return True

    def _put_aside(self, row: int, params: dict, key: str) -> None:
        if self._queue is not None:
            self._finish(row, {"result": self._queue.put("store", params, key)["result"]})

    def counted(self) -> dict:
        """Return the totals as a map: how many lines, what became of them, and how many of the texts are cut."""
        out = {"lines": self.lines, **self.counts}
        if self._last != self.lines:
            out["rows"] = self._last
        for name in ("cut", "paused"):
            if getattr(self, name):
                out[name] = getattr(self, name)
        return out

    def totals(self, read: str = "") -> str:
        """Return the totals in a few words; ``read`` is what to say of the lines where there may be more of them."""
        counts = self.counts
        parts = [
            f"{counts[name]:,} {name}" for name in _COUNTED if counts[name] or name in ("stored", "skipped", "rejected")
        ]
        whole = f"{self.lines:,} lines{read}" if self._last == self.lines else f"{self._last:,} rows"
        cut = f"; {self.cut:,} of the texts {'is' if self.cut == 1 else 'are'} cut" if self.cut else ""
        paused = (
            f"; {self.paused:,} of the skipped are kept nowhere, persistence is paused; `cpersona resume` keeps again"
            if self.paused
            else ""
        )
        return f"{', '.join(parts)} of {whole}{cut}{paused}"

    def _finish(self, row: int, outcome: dict) -> None:
        self.counts[outcome["result"]] = self.counts.get(outcome["result"], 0) + 1
        self.cut += "cut" in outcome
        self._done[row] = outcome
        while self._next in self._done:
            self._shown.outcome({**self._places.pop(self._next), **self._done.pop(self._next)})
            self._next += 1
        if not self._done:
            self.session.out.flush()


def _outcome(response: dict) -> dict:
    """Return what is said of a memory that was taken: its result, and what the result alone would hide."""
    outcome = {"result": response.get("result", "stored")}
    outcome |= {key: response[key] for key in ("ref", "id", "reason") if key in response}
    outcome |= {key: True for key in ("truncated", "content_differs") if response.get(key)}
    outcome |= {key: response[key] for key in ("cut", "secrets") if response.get(key)}
    return outcome
