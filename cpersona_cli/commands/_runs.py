"""Several requests in turn, and requests that take long: what is certain when they end early is said.

Contract: exit.status.
"""

from __future__ import annotations

import sys

from ..terminal import render
from ..wire.dial import CallFailed
from ..wire.interrupts import Interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..session import Answer, Session


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
    **more: Any,
) -> Answer:
    """Ask what takes long, with a bar on a terminal where the daemon tells its progress, and return the Answer.

    When it ends early, by Ctrl-C or because the daemon went away, `early(reached)` is said first: what is certain then,
    from the last progress map (empty when none came). With ``grace`` a Ctrl-C waits a moment for the answer.
    """
    bar = render.waiting(sys.stderr.isatty() and not session.out.quiet)
    reached = {}

    def seen(step: dict) -> None:
        reached.update(step)
        if bar is not None:
            bar(step)

    connection = session.connection  # where no daemon can be had, nothing has begun and nothing ends early
    try:
        with bar or _Nothing(), Interrupts() if grace else _Nothing() as interrupts:
            if interrupts is not None:
                interrupts.attend(connection)
            return (ask or session.ask)(method, params, progress=seen, **more)
    except (KeyboardInterrupt, CallFailed):
        session.out.warn(f"cpersona {session.name}: ended early: {early(reached)}")
        raise


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass
