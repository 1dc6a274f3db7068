"""Bringing the notes of directories up to date: read, compare with the store, ask what may be deleted, send.

Contract: import.markdown, import.prune.
"""

from __future__ import annotations

import os
import shlex
import sys

from cpersona_daemon.shared import fields
from cpersona_daemon.shared.paths import places

from .. import exits
from ..notes import planning, walking
from ..notes.reading import Directory, Limits, NotRead, read
from ..terminal.failure import paused_line
from ..terminal.output import counted
from ..wire.interrupts import Interrupts
from ._sending import Sending
from ._waiting import until_embedded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ..session import Session
    from ..terminal.output import Output

_SHOWN = 5  # files and refs that are named one by one
_DELETED_TOGETHER = 1_000
_SUFFIXES = ", ".join(walking.SUFFIXES)


class Source:
    """A directory of notes, or single files of it; ``format`` says what they are.

    What was read stays known by when the file changed, so that only what changed is read again.
    """

    def __init__(self, path: str, only: list[str] | None, format: str) -> None:
        self.directory, self.only, self.format = Directory(path), only, format
        self.found = walking.Found()
        self.notes: list[dict[str, Any]] = []
        self._known: dict[str, tuple[tuple, list[dict]]] = {}

    def read(self, limits: Limits) -> None:
        """Read what there is. Raises OSError where the directory cannot be read."""
        if self.only is None:
            self.found = walking.walk(self.directory.path)
        else:
            self.found = walking.Found(list(self.only))
        known, self._known, self.notes = self._known, {}, []
        for path in self.found.files:
            try:
                stat = os.stat(os.path.join(self.directory.path, path), follow_symlinks=self.only is not None)
                mark = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
                was = known.get(path)
                notes = was[1] if was and was[0] == mark else self._read(path, limits)
            except NotRead as error:
                self.found.unread[path] = str(error)
            except FileNotFoundError:
                if self.only is not None:
                    self.found.unread[path] = "it is gone"
            except OSError as error:
                self.found.unread[path] = error.strerror or str(error)
            else:
                self._known[path] = mark, notes
                self.notes += notes

    def _read(self, path: str, limits: Limits) -> list[dict[str, Any]]:
        return read(self.directory, path, limits, self.only is not None, self.format)

    def unread(self, path: str) -> bool:
        """Tell whether a file of notes may be there that was not read."""
        if self.only is not None and path not in self.only:
            return True
        if any(path == other or (path.startswith(other) and other[-1:] in ("/", "")) for other in self.found.unread):
            return True
        # What git does not list may lie where nobody can look.
        above = os.path.dirname(path)
        while above:
            whole = os.path.join(self.directory.path, above)
            if os.path.isdir(whole) and not os.access(whole, os.R_OK | os.X_OK):
                return True
            above = os.path.dirname(above)
        return False


class Upkeep(Sending):
    """The notes of files on their way, and all that is said of them at the end."""

    command, things = "import", "notes"

    def __init__(self, session: Session, batch: str | None, lines: bool = False) -> None:
        super().__init__(session, {**session.axes(), "batch": batch, "on_conflict": "update"}, lines)
        self.counts = dict.fromkeys(("stored", "updated", "skipped", "rejected", "deleted"), 0)
        self.files = self.links = self.gone = 0
        self.unread: dict[str, str] = {}
        self.locked: set[str] = set()
        self._twins: dict[str, dict] = {}

    @property
    def twins(self) -> int:
        """How many notes were not stored because another row has their text."""
        return len(self._twins)

    def named(self, note: dict) -> str:
        return note["metadata"]["path"]

    def delete(self, ids: Sequence[str]) -> None:
        """Have notes deleted, and wait until they are: what comes may have the text of what goes."""
        for at in range(0, len(ids), _DELETED_TOGETHER):
            self._put([], notes=[], gone=list(ids[at : at + _DELETED_TOGETHER]))
        self.drain()

    def send(self, plans: Sequence[planning.Plan], prune: bool) -> None:
        """Send what became of directories: what goes first, then what changed, and what is new last."""
        self.delete([id for plan in plans for id in (*plan.replaced, *(plan.gone if prune else ()))])
        for notes in ([n for plan in plans for n in plan.changed], [n for plan in plans for n in plan.new]):
            for note in notes:
                self.add(note)
            self.drain()
        # What took the place of a text that another note had before may have it now.
        again, self._twins = list(self._twins.values()), {}
        self.counts["skipped"] -= len(again)
        for note in again:
            self.add(note)
        self.drain()

    def _answered(self, response: dict) -> None:
        self.counts["deleted"] += response.get("deleted", 0)
        self.locked.update(response.get("kept_locked", ()))

    def _count(self, note: dict, outcome: dict) -> None:
        super()._count(note, outcome)
        if outcome.get("reason") == "duplicate content":
            self._twins[note["id"]] = note
        elif outcome.get("reason") == "locked":
            self.locked.add(f"mem:{outcome['id']}")

    @property
    def exit_status(self) -> int:
        """The exit status: what could not be read is a failure, as a line of an import is."""
        return self.status or (fields.EXIT_FAILED if self.unread or self.counts["rejected"] else fields.EXIT_OK)

    def told(self) -> dict[str, Any]:
        """Return all that became of the files, for a program."""
        told: dict[str, Any] = {"ok": self.exit_status == fields.EXIT_OK, "files": self.files, **self.counted()}
        if self.unread:
            told["unread"] = [{"file": file, "reason": reason} for file, reason in self.unread.items()]
        others = {"gone": self.gone, "same_text": self.twins, "links": self.links}
        told |= {name: count for name, count in others.items() if count}
        if self.locked:
            told["kept_locked"] = sorted(self.locked, key=lambda ref: (len(ref), ref))
        return told


def sources(paths: Sequence[str], format: str) -> list[Source]:
    """Return what was named, single files of one directory together. Raises Stop for what holds no notes."""
    found: dict[tuple[str, bool], Source] = {}
    for path in paths:
        if os.path.isdir(path):
            found.setdefault((os.path.realpath(path), True), Source(path, None, format))
            continue
        if not os.path.lexists(path):
            raise exits.Stop(
                f"import: there is no file or directory {path!r}; give the directory that your notes are in"
            )
        if not walking.is_note(path):
            raise exits.Stop(
                f"import: {path!r} is no Markdown ({_SUFFIXES}); `cpersona store - < {shlex.quote(path)}` keeps a text "
                "as one memory"
            )
        above, name = os.path.split(path)
        files = found.setdefault((os.path.realpath(above), False), Source(above or ".", [], format)).only
        if files is not None and name not in files:
            files.append(name)
    return list(found.values())


def bring(session: Session, sources: Sequence[Source], given: Mapping[str, Any]) -> int:
    """Bring notes up to date once, say what was done, and return the exit status."""
    with Upkeep(session, given["batch"], given["progress"]) as run:
        plans = look(session, sources, run)
        if given["prune"]:
            run.close()  # a question may come
        _refuse_empty(sources, plans, given)
        if given["dry_run"]:
            _count_only(run, plans, given["prune"])
        else:
            if given["prune"] and not given["yes"]:
                _confirm(plans, sources)
            write(session, plans, run, given["prune"])
    say(session.out, run, **({"dry_run": True} if given["dry_run"] else {}))
    if given["dry_run"]:
        session.out.note("a dry run: nothing was written")
    elif given["wait"] and (status := until_embedded(session, given["progress"])):
        return status
    return run.exit_status


def look(session: Session, sources: Sequence[Source], run: Upkeep) -> list[planning.Plan]:
    """Read every source and compare it with the store. Raises Stop where a directory cannot be read."""
    limits = Limits(session.settings.max_content_length, session.settings.max_metadata_length)
    plans, settings = [], session.settings
    stored = bool(settings.host) or os.path.exists(places(settings).db)  # looking makes no database here
    for source in sources:
        run.tell("reading files")
        try:
            source.read(limits)
        except OSError as error:
            raise exits.Stop(f"import: {source.directory.path!r} cannot be read: {error.strerror}") from None
        kept = list(_kept(session, source.directory.prefix)) if stored else []
        plans.append(planning.plan(source.directory, source.notes, kept, source.unread))
        run.files += len(source.found.files)
        run.links += source.found.links
        shown = source.directory.path.rstrip("/")
        run.unread.update({f"{shown}/{path}": reason for path, reason in source.found.unread.items()})
    return plans


def _kept(session: Session, prefix: str) -> Iterator[dict]:
    """Yield what the store has of a directory, as find_notes tells it."""
    axes = {name: value for name, value in session.axes().items() if name != "channel"}
    after = ""
    while True:
        answer = session.ask("find_notes", {**axes, "prefix": prefix, "after": after}).response
        yield from answer["notes"]
        if not answer["more"]:
            return
        after = answer["notes"][-1]["id"]


def write(session: Session, plans: Sequence[planning.Plan], run: Upkeep, prune: bool) -> None:
    """Send what is to be done; a run that ends early says what was done until then."""
    _take_in(run, plans, prune)
    run.total = sum(len(plan.new) + len(plan.changed) + len(plan.same) for plan in plans)
    with Interrupts() as interrupts:
        run.begin(interrupts)
        try:
            run.send(plans, prune)
            run.close()
            interrupts.check()
        except BrokenPipeError:
            raise
        except BaseException:
            early = run.ended_early(interrupts)
            session.out.warn(f"cpersona import: {early}; run it again, what is stored already is skipped")
            raise


def _take_in(run: Upkeep, plans: Sequence[planning.Plan], prune: bool) -> None:
    run.counts["skipped"] += sum(len(plan.same) for plan in plans)
    run.gone = 0 if prune else sum(len(plan.gone) for plan in plans)
    run.locked.update(ref for plan in plans for ref in plan.locked)


def _count_only(run: Upkeep, plans: Sequence[planning.Plan], prune: bool) -> None:
    _take_in(run, plans, prune)
    for plan in plans:
        run.counts["stored"] += len(plan.new)
        run.counts["updated"] += len(plan.changed)
        run.counts["deleted"] += len(plan.replaced) + (len(plan.gone) if prune else 0)


def _refuse_empty(sources: Sequence[Source], plans: Sequence[planning.Plan], given: Mapping[str, Any]) -> None:
    """Raise Stop where a directory has no notes: it is the wrong one, or what was in it is not there."""
    for source, plan in zip(sources, plans, strict=True):
        if source.notes or source.found.unread:
            continue
        where = f"in {source.directory.path!r}" if source.only is None else f"of {', '.join(source.only)}"
        if source.found.files:
            why = f"there is no text {where}"
        else:
            why = f"there is no Markdown ({_SUFFIXES}) {where} that git does not ignore"
        kept = len(plan.gone) + len(plan.replaced)
        if not kept:
            raise exits.Stop(f"import: {why}; give the directory that your notes are in")
        if given["prune"] and not given["dry_run"] and sys.stdin.isatty():
            _asked(f"{why}. Delete what is stored of it ({counted(kept, 'notes')})?")
            continue
        raise exits.Stop(
            f"import: {why}; kept of it: {counted(kept, 'notes')}. Is it the right directory, and mounted? --prune on "
            "a terminal asks whether they are to be deleted"
        )


def _confirm(plans: Sequence[planning.Plan], sources: Sequence[Source]) -> None:
    """Ask whether the notes of files that are gone may be deleted. Raises Stop where not."""
    gone = [(source, id) for source, plan in zip(sources, plans, strict=True) if source.notes for id in plan.gone]
    if gone:
        files = {source.directory.file_of(id) for source, id in gone}
        first = sorted({source.directory.path_of(source.directory.file_of(id)) for source, id in gone})
        named = ", ".join(first[:_SHOWN]) + (", …" if len(first) > _SHOWN else "")
        _asked(f"Delete {counted(len(gone), 'notes')} of {counted(len(files), 'files')} gone ({named})?")


def _asked(question: str) -> None:
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise exits.Stop("import: nothing was deleted and nothing stored; answer y, or leave out --prune")


def say(out: Output, run: Upkeep, **beside: Any) -> None:
    """Print what became of the files, and say what needs a look."""
    if out.as_json:
        out.json({**run.told(), **beside})
    else:
        out.records(
            [("files", run.files), *run.counted().items(), *([("unread", len(run.unread))] if run.unread else [])]
        )
    say_unread(out, run.unread)
    remarks(out, run)


def say_unread(out: Output, unread: Mapping[str, str]) -> None:
    """Say which files could not be read, and why."""
    for file, reason in list(unread.items())[:_SHOWN]:
        out.warn(f"cpersona import: {file} is left out: {reason}")
    if len(unread) > _SHOWN:
        out.warn(f"cpersona import: {len(unread):,} are left out, the first {_SHOWN} are shown; --json has all")


def remarks(out: Output, run: Upkeep) -> None:
    """Say what was not done, and what would do it."""
    if run.paused:
        out.warn(paused_line("nothing was kept", {"reason": "persistence is paused"}))
    if run.gone:
        out.note(f"kept, though their files are gone: {counted(run.gone, 'notes')}; --prune deletes them")
    if run.locked:
        refs = sorted(run.locked, key=lambda ref: (len(ref), ref))
        named = ", ".join(refs[:_SHOWN]) + (", …" if len(refs) > _SHOWN else "")
        out.note(f"locked and kept as they are: {named}; `cpersona unlock` frees them")
    if run.twins:
        out.note(f"not stored again, another row has the same text: {counted(run.twins, 'notes')}")
    if run.links:
        out.note(f"not followed: {counted(run.links, 'links')}")
