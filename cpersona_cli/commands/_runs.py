"""Several requests in turn, and requests that take long: what is certain when they end early is said.

Contract: exit.status, progress.committed.
"""

from __future__ import annotations

import os

from ..terminal import progress
from ..wire.dial import CallFailed
from ..wire.interrupts import Interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..session import Answer, Session

ENDING_SECONDS = 5.0  # how long a run that is given up may take to end, so that it can say what it did


def each(session: Session, items: Sequence[Any], work: Callable[[Any], None], named: Callable[[Any], str]) -> None:
    """Call ``work`` with each item, which asks the daemon one thing and says what came of it.

    After a Ctrl-C the answer under way is still said; ``named(item)`` is the one that nothing is known of.
    """
    if len(items) < 2:
        for item in items:
            work(item)
        return
    done, begun = 0, None
    with Interrupts() as interrupts:
        interrupts.attend(session.connection)
        try:
            for item in items:
                interrupts.check()
                begun = item
                work(item)
                done, begun = done + 1, None
        except KeyboardInterrupt:
            unknown = "" if begun is None else f", what became of {named(begun)} is not known"
            session.out.warn(
                f"cpersona {session.name}: ended early: {done:,} of {len(items):,} are done{unknown};"
                " run the same command again for the others"
            )
            raise


def watch(
    session: Session,
    method: str,
    params: dict,
    early: Callable[[dict], str],
    grace: bool = False,
    ask: Callable[..., Answer] | None = None,
    lines: bool = False,
    **more: Any,
) -> Answer:
    """Ask what takes long, with a bar on a terminal where the daemon tells its progress, and return the Answer.

    When it ends early, by Ctrl-C or because the daemon went away, `early(reached)` is said first: what is certain then,
    as the daemon tells it (`final`: that is all), or from its last progress map (empty when none came). With ``grace``
    a Ctrl-C waits a moment for the answer. ``lines``: off a terminal progress is said on stderr too.
    """
    bar = progress.shown(session.out, session.name, lines)
    reached: dict = {}
    key = os.urandom(16).hex()

    def seen(step: dict) -> None:
        reached.update(step)
        if bar is not None:
            bar(step)

    connection = session.connection  # where no daemon can be had, nothing has begun and nothing ends early
    try:
        with bar or _Nothing(), Interrupts() if grace else _Nothing() as interrupts:
            if interrupts is not None:
                interrupts.attend(connection)
            return (ask or session.ask)(method, params, progress=seen, key=key, **more)
    except (KeyboardInterrupt, CallFailed):
        session.out.warn(f"cpersona {session.name}: ended early: {early(_committed(session, key, reached))}")
        raise


def _committed(session: Session, key: str, reached: dict) -> dict:
    """Return what the daemon says of a run that nobody waits for any more: its last step, `final` where it is all.

    What the client was told last, where the daemon cannot be asked or a second Ctrl-C comes.
    """
    from ..wire import client

    session.close()  # which ends the run
    asked = {"key": key, "wait_seconds": ENDING_SECONDS}
    try:
        with client.connect(session.settings, start=False, again=True) as connection:
            told, code = connection.call("run_status", asked, deadline_ms=int(2000 * ENDING_SECONDS))
    except (KeyboardInterrupt, CallFailed):
        return reached
    return reached if code or not told["known"] else {**reached, **told["reached"], "final": told["final"]}


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass
