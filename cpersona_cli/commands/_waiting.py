"""`--wait`: return when what was stored has its vectors, and leave them to the background on Ctrl-C.

Contract: wait.vectors, progress.measured.
"""

from __future__ import annotations

import time

from cpersona_daemon.shared import fields

from .. import exits
from ..terminal import progress
from ..terminal.output import counted
from ..wire.dial import CallFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session

ASKED_SECONDS = 0.2  # between two questions
# So long nothing may have been embedded, with a failure told, before the wait is given up: a service that comes back at
# once is waited for.
PATIENCE_SECONDS = 30.0


def until_embedded(session: Session, lines: bool = False) -> int:
    """Wait until all that is stored now has its vectors, passages of long rows too, and return the exit status.

    What others store meanwhile is not waited for. ``lines``: progress off a terminal too. Raises Stop where the
    embedder has failed for long.
    """
    try:
        session.out.flush()  # what was stored is known before the wait
        return _wait(session, lines)
    except KeyboardInterrupt:
        session.out.warn(f"cpersona {session.name}: {_at_last(session)}")
        raise


def _wait(session: Session, lines: bool) -> int:
    told, out = session.ask("backlog_status", {}).response, session.out
    if not _left(told):
        return fields.EXIT_OK
    if not told.get("works"):
        out.warn(
            f"cpersona {session.name}: {_waiting(told)} and will not get one here: there is no embedder, or the"
            " database is read-only; `cpersona status` says which"
        )
        return fields.EXIT_OK
    begun, moved = time.monotonic(), time.monotonic()
    first, upto = told, told["upto"]
    with progress.shown(out, session.name, lines) or _Unseen() as shown:
        while _left(told):
            shown(_step(first, told))
            time.sleep(ASKED_SECONDS)
            now = session.ask("backlog_status", {"upto": upto}).response
            if _left(now) != _left(told):
                moved = time.monotonic()
            if now.get("problem") and time.monotonic() - moved > PATIENCE_SECONDS:
                raise exits.Stop(
                    f"{session.name}: {_waiting(now)}, and the embedder fails: {now['problem']}; it is tried again"
                    " in the background, `cpersona status` shows how it is",
                    fields.EXIT_RETRY,
                )
            first = _joined(first, told, now)
            told = now
        shown(_step(first, told))
    out.note(f"every vector is there, after {progress.duration(time.monotonic() - begun)}")
    return fields.EXIT_OK


def tempo(session: Session) -> str:
    """Return how fast rows get their vectors and how long all that wait take, in brackets; '' of what is not known."""
    try:
        told = session.call("backlog_status", {}).response
    except CallFailed:
        return ""
    said = progress.words(told.get("rows_per_second"), told.get("eta_seconds"))
    return f" ({said})" if said else ""


def _left(told: dict) -> int:
    rows: int = told["pending"] + told["passages_pending"]
    return rows


def _step(first: dict, told: dict) -> dict:
    """Return how far the vectors of all rows are or, once they are there, the passages of the long ones."""
    stage, name, rate, eta = (
        ("embedding", "pending", "rows_per_second", "eta_seconds")
        if told["pending"] or not first["passages_pending"]
        else ("passages of long rows", "passages_pending", "passages_per_second", "passages_eta_seconds")
    )
    done = max(0, first[name] - told[name])
    return {"stage": stage, "done": done, "total": first[name], "rate": told.get(rate), "eta": told.get(eta)}


def _joined(first: dict, before: dict, now: dict) -> dict:
    """Return how many there were in all: long rows are listed for their passages once they have their vector."""
    more = {name: first[name] + max(0, now[name] - before[name]) for name in ("pending", "passages_pending")}
    return {**first, **more}


def _waiting(told: dict) -> str:
    """Return in words what has no vector yet."""
    rows, long = told["pending"], told["passages_pending"]
    parts = [counted(rows, "rows")] if rows else []
    parts += [f"the passages of {counted(long, 'long rows')}"] if long else []
    return f"{' and '.join(parts)} {'waits' if (rows, long) == (1, 0) else 'wait'} for a vector"


def _at_last(session: Session) -> str:
    """Return what the daemon says is left when nobody waits any more."""
    from ..wire import client

    session.close()
    told: dict | None = None
    try:
        with client.connect(session.settings, start=False, again=True) as connection:
            answer, code = connection.call("backlog_status", {}, deadline_ms=3000)
            told = answer if code is None else None
    except (CallFailed, KeyboardInterrupt):
        pass
    if told is None:
        return "no longer waited for; everything is stored, and its vectors are made in the background"
    if not _left(told):
        return "everything is stored, and every vector is there"
    return (
        f"everything is stored; {_waiting(told)}, made in the background: `cpersona status --watch` shows how far it is"
    )


class _Unseen:
    def __enter__(self) -> _Unseen:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, step: dict) -> None:
        pass
