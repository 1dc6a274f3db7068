"""Backing up a live store as one verified file, while everybody else goes on reading and writing.

The database is copied page by page within one read snapshot, so that no writer makes the copy begin again and the copy
is the store of one moment. The file appears under its name whole, checked and durable, or not at all.

Contract: backup.file.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading

import apsw

from ... import __version__
from ...calibration.previous import LARGEST_FILE
from ...errors import CorruptDatabase, Refused, TimedOut, of_file, translate
from ...model.instants import iso_now
from ...shared import files
from ...shared.paths import Places
from ...shared.settings import Settings
from ...storage import connection, outbox, sound
from ..progress import Progress
from . import shape
from .travelling import settings_of
from .workspace import Workspace

PAGES = 2_000  # what one step copies: about 8 MB, so that a stop is noticed soon


def make(
    places: Places, settings: Settings, target: str, now: float, progress: Progress | None, stop: threading.Event
) -> dict:
    """Write the backup to ``target``; return `{ok, path, database, bytes, memories, episodes, profiles, schema,
    without?}`.

    A name that ends in `gz` is compressed. Raises CorruptDatabase when the copy is not sound, StorageFailure when it
    cannot be written; ``target`` is then as it was. Call it on a thread of its own.
    """
    tell = progress or (lambda step: None)
    try:
        with contextlib.suppress(OSError):  # nothing depends on it
            files.tidy(os.path.dirname(target))
        with Workspace(os.path.dirname(target), ".cpersona-backup-") as work:
            return _make(places, settings, target, now, tell, stop, work)
    except OSError as error:
        where = os.path.dirname(target)
        raise of_file(error, f"nothing was changed, since the backup cannot be written to {where}") from error
    except apsw.Error as error:
        raise translate(error) from error


def _make(
    places: Places, settings: Settings, target: str, now: float, tell: Progress, stop: threading.Event, work: str
) -> dict:
    copy = os.path.join(work, shape.DATABASE)
    _copy(places.db, copy, tell, stop)
    tell({"stage": "checking"})
    schema, rows, without = _made_ours(copy)
    parts = {shape.DATABASE: copy}
    for name, path in ((shape.CALIBRATION, places.calibration), (shape.EARLIER, places.calibration + ".previous")):
        try:
            kept = files.read(path, LARGEST_FILE)
        except (FileNotFoundError, files.InTheWay):
            continue
        # A copy: the file may be replaced between its checksum and its packing.
        parts[name] = os.path.join(work, name)
        files.replace(parts[name], kept)
    parts[shape.SETTINGS] = os.path.join(work, shape.SETTINGS)
    files.replace(parts[shape.SETTINGS], json.dumps(settings_of(settings), indent=1).encode())
    facts = {"created_at": iso_now(now), "version": __version__, "schema": schema, "rows": rows}
    replacing = files.Replacing(target)
    with replacing as handle:
        packed = lambda done, total: tell({"stage": "packing", "done": done, "total": total})  # noqa: E731
        shape.pack(handle, target.endswith("gz"), facts, parts, now, packed)
        handle.flush()
        if stop.is_set():
            raise TimedOut("the backup was given up; nothing was written")
        tell({"stage": "verifying"})
        shape.verify(replacing.draft)
    answer = {
        "ok": True,
        "path": target,
        "database": places.db,
        "bytes": os.path.getsize(target),
        **rows,
        "schema": schema,
    }
    return {**answer, "without": without} if without else answer


def _made_ours(copy: str) -> tuple[int, dict[str, int], list[str]]:
    """Take what cpersona did not make out of a copy: no restore would take it.

    Returns the version of its schema, its rows and what was left out.
    Raises CorruptDatabase for a copy that is damaged, Refused for one whose own objects were changed.
    """
    conn = apsw.Connection(copy, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        if damage := [text for (text,) in conn.execute("PRAGMA quick_check(20)") if text != "ok"]:
            raise CorruptDatabase(f"the copy is not sound, so no backup was written: {damage[0]}")
        version = sound.version_of(conn)
        foreign = sorted(f"{kind} {name}" for kind, name, *_ in sound.foreign_objects(conn, version))
        if foreign:
            sound.drop_foreign_objects(conn, version)
        changed = [
            f"{kind} {name}"
            for kind, name, *_ in sound.foreign_objects(conn, version) + sound.missing_objects(conn, version)
        ]
        if changed:
            raise Refused(
                f"the database's {changed[0]} is not as cpersona makes it, so no restore would take a backup of it;"
                " nothing was written"
            )
        outbox.forget(conn)  # by the time of a restore a service knows other rows
        return version, sound.counts(conn), foreign
    finally:
        conn.close()


def _copy(source_path: str, copy_path: str, tell: Progress, stop: threading.Event) -> None:
    os.close(os.open(copy_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    source = connection.open_reading(source_path)
    copy = apsw.Connection(copy_path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        copy.execute("PRAGMA synchronous = OFF")  # it is read again from its first byte before anybody relies on it
        # The snapshot that this opens is what every step reads, whatever is committed meanwhile.
        source.execute("BEGIN; SELECT count(*) FROM sqlite_schema")
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                if stop.is_set():
                    raise TimedOut("the backup was given up; nothing was written")
                backup.step(PAGES)
                tell({"stage": "copying", "done": backup.page_count - backup.remaining, "total": backup.page_count})
        source.execute("ROLLBACK")
        # One file, readable without its WAL; the daemon that opens it turns the WAL on again.
        copy.execute("PRAGMA journal_mode = DELETE").fetchall()
    finally:
        copy.close()
        source.close()
