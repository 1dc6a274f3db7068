"""`store --jsonl`: a file of memories, several under way at once, outcomes in the order of the lines.

Contract: store.lines, dedup.skip.
"""

import os
import stat
import sys

from cpersona_daemon.shared import fields

from .. import exits
from ..terminal import reading, render
from ..terminal.naming import stored
from ..terminal.output import to_json
from ..wire.interrupts import Interrupts

# Requests on their way at once: enough to fill the writer's group commits, below what a connection may have in flight.
IN_FLIGHT = 64
# Faults that are said line by line where a person watches; the others are counted.
FAULTS_SHOWN = 5
_COUNTED = ("stored", "skipped", "updated", "queued", "rejected")
_READ_BYTES = 1 << 20

# What one line may hold: store's parameters under their own names ...
_PARAMETERS = frozenset(
    (
        "agent_id",
        "content",
        "id",
        "source",
        "timestamp",
        "metadata",
        "channel",
        "project_id",
        "associations",
        "lock",
        "on_conflict",
        "batch",
        "check_secrets",
        "message",
        "cut",
        "fail_if_cut",
        "session_key",
    )
)
# ... and under the names that the options of `store` and the rows of `list` and `get` have.
_ALSO = {
    "agent": "agent_id",
    "project": "project_id",
    "msg_id": "id",
    "locked": "lock",
    "on-conflict": "on_conflict",
    "check-secrets": "check_secrets",
    "fail-if-cut": "fail_if_cut",
    "session": "session_key",
    "at": "timestamp",
}
# What a row that was read says of where it stood; stored anew it gets its own.
_OF_A_ROW = frozenset(("ref", "created_at", "stored", "age", "resolved"))
# The answers of `list --json` and `get --json`, and where their rows stand.
_ANSWERS = ("memories", "items")


def store_lines(session, name, defaults, queue, fail_if_skipped):
    """Store each line of a file, or of standard input for `-`, and return the exit status.

    Off a terminal, and with --json, an outcome is printed for each, as they come. On a terminal a bar shows how far it has come.
    """
    descriptor = sys.stdin.fileno() if name == "-" else os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    if name != "-" and os.path.isdir(descriptor):
        raise IsADirectoryError(21, "Is a directory", name)
    shown = Drawn(session.out, descriptor) if session.out.draws else Printed(session.out)
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
                known = batch.settle(interrupts)
                least = "" if known else "at least "
                lost = "" if known else f"; {batch.waiting} more were under way, what became of the others is not known"
                session.out.warn(
                    f"cpersona: ended early: {least}{batch.totals(' that were read')}{lost}; run the same command again, what is stored already is skipped"
                )
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


def _take(lines, batch, defaults, interrupts):
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

    def __init__(self, session, shown, queue=False):
        self.session, self._shown = session, shown
        self._queue = None
        if queue:
            from ..wire.spool import Queue

            self._queue = Queue(session.settings)
        self.lines = 0  # that were read, blank ones left out
        self.counts = dict.fromkeys(_COUNTED, 0)
        self.cut = self.paused = 0
        self.status = fields.EXIT_FAILED
        self._line = 0
        self._last = 0  # the number of the row that was read last; an answer of `list` is one line of many rows
        self._sent = {}  # request id -> (row, marks, the caller's key, parameters and key while they may still be queued)
        self._done = {}  # row -> outcome, kept until its turn
        self._places = {}  # row -> where it stands: its line, and its place in the line where that holds several
        self._next = 1
        self._marks = {}  # what must not be sent twice at once -> how many are on their way

    @property
    def waiting(self):
        return len(self._sent)

    def connect(self, interrupts):
        """Connect before anything is counted; answers are then waited for where a Ctrl-C loses nothing."""
        connection = self.session.connection if self._queue is None else self._queue.connection
        if connection is not None:
            interrupts.attend(connection)

    def add(self, line, defaults):
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

    def reject(self, reason):
        """Reject a line that could not even be read."""
        self._line += 1
        self.lines += 1
        self._row(reason=reason)

    def _row(self, place=None, reason=None):
        """Give the next row its number; with a reason it is rejected at once."""
        self._last += 1
        self._places[self._last] = {"line": self._line} if place is None else {"line": self._line, "row": place}
        if reason is not None:
            self._finish(self._last, {"result": "rejected", "reason": reason})
        return self._last

    def _send(self, row, params):
        from ..wire.client import CallFailed

        marks = [
            mark for mark in (("id", params.get("id")), ("content", params.get("content"))) if isinstance(mark[1], str)
        ]
        while self._sent and (self.waiting >= IN_FLIGHT or any(mark in self._marks for mark in marks)):
            self.receive()
        key = os.urandom(16).hex()
        if self._queue is not None:
            from ..wire.spool import stamped

            params = stamped("store", params)
        try:
            if self._queue is None:
                request = self.session.connection.send("store", params, key=key)
            elif self._queue.connection is not None:
                request = self._queue.connection.send("store", params, key=key)
            else:
                return self._put_aside(row, params, key)
        except CallFailed as error:
            if error.code == "invalid_params":
                return self._finish(row, {"result": "rejected", "reason": str(error)})
            if not self._lost(error):
                raise
            return self._put_aside(row, params, key)
        self._sent[request] = row, marks, params.get("id"), (params, key) if self._queue is not None else None
        for mark in marks:
            self._marks[mark] = self._marks.get(mark, 0) + 1

    def receive(self):
        """Wait for one answer and show every outcome whose turn has come."""
        from ..wire.client import CallFailed

        try:
            request, response, code = (self.session if self._queue is None else self._queue).connection.receive()
        except CallFailed as error:
            if not self._lost(error):
                raise
            return None
        row, marks, own, kept = self._sent.pop(request)
        for mark in marks:
            self._marks[mark] -= 1
            if not self._marks[mark]:
                del self._marks[mark]
        if kept is not None:
            from ..wire.spool import undecided

            if undecided(code):
                return self._put_aside(row, *kept)
        if exits.status_of(response, code) != fields.EXIT_OK:
            if response.get("error") == "permission_denied":
                self.status = fields.EXIT_DENIED
            self._finish(row, {"result": "rejected", "reason": exits.reason_of(response)})
            return None
        self.paused += response.get("persisted") is False
        response = stored(own, response)
        outcome = {"result": response.get("result", "stored")}
        for key in ("ref", "id", "reason"):
            if key in response:
                outcome[key] = response[key]
        for key in ("truncated", "content_differs"):
            if response.get(key):
                outcome[key] = True
        for key in ("cut", "secrets"):
            if response.get(key):
                outcome[key] = response[key]
        self._finish(row, outcome)

    def settle(self, interrupts):
        """Take in the answers that come within the grace of a run that ends early; false where some did not come."""
        from ..wire.client import CallFailed

        interrupts.hurry()
        try:
            while self.waiting:
                self.receive()
            self.session.out.flush()
        except (KeyboardInterrupt, CallFailed, OSError):
            return False
        return True

    def _lost(self, error):
        """Queue everything that is on its way to a daemon that went away; false where it may not be queued."""
        from ..wire.spool import may_wait

        if self._queue is None or not may_wait(error.code):
            return False
        self._queue.close()
        waiting, self._sent, self._marks = self._sent, {}, {}
        for row, _, _, (params, key) in waiting.values():
            self._put_aside(row, params, key)
        return True

    def _put_aside(self, row, params, key):
        self._finish(row, {"result": self._queue.put("store", params, key)["result"]})

    def counted(self):
        """Return the totals as a map: how many lines, what became of them, and how many of the texts are cut."""
        out = {"lines": self.lines, **self.counts}
        if self._last != self.lines:
            out["rows"] = self._last
        for name in ("cut", "paused"):
            if getattr(self, name):
                out[name] = getattr(self, name)
        return out

    def totals(self, read=""):
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

    def _finish(self, row, outcome):
        self.counts[outcome["result"]] = self.counts.get(outcome["result"], 0) + 1
        self.cut += "cut" in outcome
        self._done[row] = outcome
        while self._next in self._done:
            self._shown.outcome({**self._places.pop(self._next), **self._done.pop(self._next)})
            self._next += 1
        if not self._done:
            self.session.out.flush()


class Printed:
    """Outcomes for a program: one line of JSON each."""

    def __init__(self, out):
        self._out = out

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def outcome(self, outcome):
        self._out.line(to_json(outcome))


class Drawn:
    """Outcomes for a person: a bar, and in words only what went wrong. Lines that are typed are answered one by one."""

    def __init__(self, out, descriptor):
        self._out, self._typed = out, os.isatty(descriptor)
        self._bar = None if self._typed else render.waiting(sys.stderr.isatty() and not out.quiet)
        self._total = None if self._bar is None else _lines_of(descriptor)
        self._done = self._faults = 0

    def __enter__(self):
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *error):
        if self._bar is not None:
            self._bar.__exit__(*error)
        if self._faults > FAULTS_SHOWN:
            self._out.warn(
                f"cpersona store: {self._faults:,} were rejected, the first {FAULTS_SHOWN} are shown; with --json every line says its reason"
            )

    def outcome(self, outcome):
        self._done += 1
        where = f"line {outcome['line']}" + (f", row {outcome['row']}" if "row" in outcome else "")
        if outcome["result"] == "rejected":
            self._faults += 1
            if self._typed or self._faults <= FAULTS_SHOWN:
                self._out.warn(f"cpersona store: {where}: rejected: {outcome['reason']}")
        elif self._typed:
            reason = f" ({outcome['reason']})" if "reason" in outcome else ""
            self._out.line(f"{where}: {outcome['result']}{reason}" + (f" {outcome['ref']}" if "ref" in outcome else ""))
        for found in outcome.get("secrets", ()):
            self._out.warn(
                f"cpersona store: {where}: what looks like a secret is in the {found.get('in', 'text')}, {found.get('kind')}"
                + (f"; `cpersona delete {outcome['ref']}` removes it" if "ref" in outcome else "")
            )
        if self._bar is not None:
            self._bar({"done": self._done, "total": self._total, "stage": "storing"})


def _lines_of(descriptor):
    """Count the lines of a file that can be read again from its beginning, None for another kind of input."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    at = os.lseek(descriptor, 0, os.SEEK_CUR)
    count, last = 0, b"\n"
    while data := os.pread(descriptor, _READ_BYTES, at):
        at += len(data)
        count += data.count(b"\n")
        last = data[-1:]
    return count + (last != b"\n")


def line_rows(line):
    """Return the rows of one line: an object, a text, or all that an answer of `list --json` or `get --json` holds. Raises ValueError."""
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not valid UTF-8 (byte {error.start + 1})") from None
    try:
        value = reading.parse_json(text)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if isinstance(value, str):
        return [{"content": value}]
    if not isinstance(value, dict):
        raise ValueError("neither an object nor a string")
    if "_type" in value:
        raise ValueError("this is a line of an export; `cpersona import` takes that file")
    for name in _ANSWERS:
        if isinstance(value.get(name), list):
            return value[name]
    return [value]


def row_params(row, session):
    """Return store's parameters for one object, whichever names it uses. Raises ValueError, Usage."""
    if not isinstance(row, dict):
        raise ValueError("not an object")
    ref = row.get("ref")
    if isinstance(ref, str) and ref.startswith("ep:"):
        raise ValueError(f"{ref} is an episode; `cpersona episode archive` takes its summary")
    if row.get("content_truncated") is True:
        raise ValueError("its content is a preview; `cpersona get REF --json` prints the whole row")
    params = {}
    for key, value in row.items():
        if key in _OF_A_ROW or (key == "id" and type(value) is int and ("ref" in row or "msg_id" in row)):
            continue  # the number of the row that it was
        name = _ALSO.get(key, key)
        if name not in _PARAMETERS:
            raise ValueError(f"unknown key {key!r}; the keys are {', '.join(sorted({*_PARAMETERS, *_ALSO}))}")
        if key == "at":
            value = session.instant(value) if isinstance(value, str) else value
        if params.setdefault(name, value) != value:
            raise ValueError(f"{key!r} and another key for the same thing differ; give one of them")
    return params
