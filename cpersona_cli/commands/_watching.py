"""`import --markdown --watch`: notes are brought up to date whenever something changes, until Ctrl-C.

Contract: import.watch.
"""

from __future__ import annotations

import os
import sys

from cpersona_daemon.shared import fields

from .. import exits
from ..notes import watching
from ..terminal.output import counted
from ..wire import launch, presence
from ..wire.dial import CallFailed
from . import _directories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from ..session import Session
    from ._directories import Source, Upkeep

# It lives long, and what is installed may be another version by then: all that a connection may need is loaded now.
_LOADED = (launch, presence)


class _Watch:
    """What all rounds did together, and what was said already: a person is not told the same every two seconds."""

    def __init__(self, session: Session, sources: Sequence[Source], given: Mapping[str, Any]) -> None:
        self._session, self._sources, self._given = session, sources, given
        self._total: dict[str, int] = {}
        self._unread: dict[str, str] = {}
        self._gone: set[str] = set()
        self._failure = ""
        self.last: Upkeep | None = None

    def round(self) -> bool:
        """Bring everything up to date, and tell whether all of it could be; where not, it is tried again."""
        here = [source for source in self._sources if self._is_there(source)]
        try:
            with _directories.Upkeep(self._session, self._given["batch"]) as run:
                plans = _directories.look(self._session, here, run)
                empty = [source.directory.path for source in here if not source.notes]
                # A directory without notes was emptied, or is about to be filled: nothing is deleted of it here.
                prune = self._given["prune"]
                plans = [plan._replace(gone=[] if not source.notes else plan.gone) for source, plan in zip(here, plans)]
                _directories.write(self._session, plans, run, prune)
        except (CallFailed, exits.Stop) as error:
            self._failed(error)
            return False
        finally:
            self._session.close()  # a connection that lasted would keep the daemon from leaving when it is idle
        if self._failure:
            self._session.out.note("the store answers again")
            self._failure = ""
        self._say(run, empty)
        return not self._gone

    def lost(self) -> bool:
        """Tell whether a directory was gone at the last look."""
        return bool(self._gone)

    def _is_there(self, source: Source) -> bool:
        path = source.directory.path
        if os.path.isdir(path):
            if path in self._gone:
                self._gone.discard(path)
                self._session.out.note(f"{path} is there again")
            return True
        if path not in self._gone:
            self._gone.add(path)
            self._session.out.warn(f"cpersona import: {path} is gone; its notes stay, and it is waited for")
        return False

    def _failed(self, error: CallFailed | exits.Stop) -> None:
        said = str(error)
        if said != self._failure:
            self._failure = said
            self._session.out.warn(f"cpersona import: {said.removeprefix('import: ')}; it is tried again")

    def _say(self, run: Upkeep, empty: list[str]) -> None:
        """Say what a round did, where it did anything, and what is new of what it could not do."""
        out, first = self._session.out, self.last is None
        done = self._add(run)
        _directories.say_unread(out, {file: why for file, why in run.unread.items() if self._unread.get(file) != why})
        self._unread = dict(run.unread)
        if not (done or first):
            return
        if out.as_json:
            out.json(run.told())
            out.flush()
        else:
            said = ", ".join(f"{count:,} {name}" for name, count in done.items()) or "nothing new"
            out.note(f"{said} in {counted(run.files, 'files')}" + (f"; none in {', '.join(empty)}" if empty else ""))
        if first:
            _directories.remarks(out, run)

    def _add(self, run: Upkeep) -> dict[str, int]:
        """Add a round to the totals, and return what it did."""
        self.last = run
        for name, count in run.counted().items():
            # What is the same is the same in every round; the last one counts.
            self._total[name] = count if name == "skipped" else self._total.get(name, 0) + count
        return {name: count for name, count in run.counted().items() if count and name != "skipped"}

    def end(self) -> None:
        """Print the totals of all rounds."""
        run, out = self.last, self._session.out
        if run is None:
            return
        counts = {"files": run.files, **self._total}
        if out.as_json:
            out.json({"ok": run.exit_status == 0, "ended": True, **counts})
        else:
            out.records(counts.items())


def keep(session: Session, sources: Sequence[Source], given: Mapping[str, Any]) -> int:
    """Bring notes up to date until Ctrl-C, which ends with the totals and the usual exit status."""
    watch, done = _Watch(session, sources, given), True
    try:
        for changed in _changes(session, [source.directory.path for source in sources], given["every"], watch.lost):
            if changed or not done:
                done = watch.round()
    except KeyboardInterrupt:
        watch.end()
    return fields.EXIT_INTERRUPTED


def _changes(session: Session, directories: list[str], every: float | None, lost: Callable[[], bool]) -> Iterator[bool]:
    """Yield whether something may have changed, as the system tells it where it can, else by looking."""
    seconds = watching.LOOK_SECONDS if every is None else every
    if every is None and watching.told():
        try:
            yield from watching.by_being_told(directories, lost)
        except (OSError, RuntimeError) as error:  # too many directories for it, or a file system that tells nothing
            session.out.note(f"looking every {seconds:g} s, the system cannot tell of changes: {error}")
    elif every is None:
        session.out.note(
            f"looking every {seconds:g} s; with `pip install 'cpersona-cli[watch]'` changes are seen at once, or with "
            f"`{sys.executable} -m pip install watchfiles`"
        )
    yield from watching.by_looking(directories, seconds)
