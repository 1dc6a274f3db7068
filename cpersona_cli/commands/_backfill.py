"""`git backfill`: the commits of history as stores on their way, several at once.

Contract: git.notes.
"""

from __future__ import annotations

import sys

from cpersona_daemon.shared import fields

from .. import exits
from ..git import commits
from ..terminal.failure import failure_line
from ..wire.interrupts import Interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpersona_daemon.shared.settings import Settings

    from ..session import Session

IN_FLIGHT = 64


class Backfill:
    """Stores on their way, at most ``IN_FLIGHT`` at once, and what became of them."""

    def __init__(self, session: Session) -> None:
        from ..terminal import render

        self._session, self.total = session, 0
        self.counts = {"stored": 0, "skipped": 0, "rejected": 0}
        self.cut = self.paused = 0
        self.status = fields.EXIT_OK
        self._waiting: dict[int, tuple[str, bool]] = {}
        self._shown = render.waiting(sys.stderr.isatty() and not session.out.quiet)

    def __enter__(self) -> Backfill:
        if self._shown is not None:
            self._shown.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def waiting(self) -> int:
        """How many stores have no answer yet."""
        return len(self._waiting)

    def tell(self, stage: str) -> None:
        """Say on a terminal what is being done before there is anything to count."""
        if self._shown is not None:
            self._shown({"stage": stage})

    def begin(self) -> None:
        """Reach the daemon: where none can be had, nothing has begun and nothing ends early."""
        self.tell("starting the daemon")
        self._connection = self._session.connection

    def add(self, commit: str, params: dict) -> None:
        while len(self._waiting) >= IN_FLIGHT:
            self._receive()
        self._waiting[self._connection.send("store", params)] = commit, commits.cut_of(params) is not None

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
        """Return what became of the commits; where messages were cut, of how many."""
        return {**self.counts, **{name: count for name, count in (("cut", self.cut), ("paused", self.paused)) if count}}

    def finish(self) -> None:
        while self._waiting:
            self._receive()
        self.close()

    def close(self) -> None:
        if self._shown is not None:
            self._shown.__exit__(None, None, None)
            self._shown = None

    def said(self) -> str:
        """Return what became of the commits, in words."""
        return f"{', '.join(f'{count:,} {name}' for name, count in self.counts.items())} of {self.total:,} commits" + (
            f"; {self.cut:,} messages are cut" if self.cut else ""
        )

    def _receive(self) -> None:
        request, response, code = self._connection.receive()
        (commit, cut), failed = self._waiting.pop(request), exits.status_of(response, code)
        if failed and code is not None and fields.ERRORS[code][1]:
            raise exits.Stop("git backfill: " + failure_line(commit[:12], response, code), failed)
        if failed:
            self.status = self.status or failed
            self._session.out.warn("cpersona " + failure_line(f"git backfill {commit[:12]}", response, code))
        result = "rejected" if failed else response.get("result", "stored")
        self.counts[result] = self.counts.get(result, 0) + 1
        self.cut += not failed and (cut or "cut" in response)
        self.paused += response.get("persisted") is False
        if self._shown is not None:
            self._shown({"done": sum(self.counts.values()), "total": self.total, "stage": "commits"})


def note_history(
    session: Session,
    repository: commits.Repository,
    settings: Settings,
    asked: list[str],
    batch: str | None,
    run: Backfill,
) -> None:
    """Send a store for every commit that git names, oldest first; one that ends early says what was done until then."""
    with Interrupts() as interrupts:
        interrupts.attend(session.connection)
        repository.git.wait = interrupts.for_input
        run.tell("reading history")  # git walks all of it before it shows the oldest
        try:
            for commit in repository.commits("--reverse", *asked, "--", traverse=True):
                interrupts.check()
                params = commits.store_params(commit, repository, settings, commits.branch_of(repository, commit))
                if batch is not None:
                    params["batch"] = batch
                run.add(commit["commit"], session.signed("store", params))
            run.finish()
        except BrokenPipeError:
            raise
        except BaseException:
            known = run.settle(interrupts)
            run.close()
            lost = "" if known else f"; {run.waiting} more were under way, what became of them is not known"
            session.out.warn(
                f"cpersona git backfill: ended early: {'' if known else 'at least '}{run.said()}{lost}; run it again, "
                "what is noted already is skipped"
            )
            interrupts.check()  # git gets the Ctrl-C of a terminal too; that it ended is no failure of its own
            raise
