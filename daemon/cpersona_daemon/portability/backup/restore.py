"""Restoring a backup: all of it checked first, then put in place while nobody else has the database.

A backup may come from anywhere and have been changed by anybody: its archive, its database and its settings are known
to be sound before anything is replaced, and settings are written only when that is asked for. The store that was there
is moved aside, never overwritten; index files are left out, since they follow from the rows: those of another state are
built anew. It runs in a process of its own (`cpersonad --restore FILE`), which holds the database's lock from before
the first change on.

Contract: restore.checked.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import apsw

from ...errors import Refused, StorageFailure
from ...shared import files
from ...shared.paths import Places, make_private_directory
from ...shared.settings import Settings, config_path
from ...storage import sound
from ...storage.migrations import SCHEMA_VERSION
from ...storage.sound import Found
from . import shape, travelling
from .workspace import Workspace

BESIDE = ("-wal", "-shm")
_USE_ANOTHER = "nothing was changed, use another backup"

# Holds the database's place while the block lasts, and gives what the names of drafts in it begin with.
Hold = Callable[[Places], contextlib.AbstractContextManager[str]]


def check(path: str) -> dict:
    """Verify a backup whole, its database and settings included; return `{ok, path, created_at, version, schema, …}`.

    Beside them stand its rows by kind. Raises Refused.
    """
    with Workspace(tempfile.gettempdir(), "cpersona-check-") as directory:
        wanted = {name: os.path.join(directory, name) for name in (shape.DATABASE, shape.SETTINGS)}
        manifest, found, _ = _checked(path, wanted)
        return _told(path, manifest, found)


def restore(path: str, settings: Settings, places: Places, hold: Hold, with_settings: bool = False) -> dict:
    """Put a backup in the place of the database and return `{ok, restored, moved_aside, memories, …, settings}`.

    ``with_settings``: where there is no config file, write the backup's settings, those that may travel. Raises
    Refused for what cannot be restored, StorageFailure, and what ``hold`` raises, Busy while a daemon serves the
    database; the store is then as it was.
    """
    try:
        make_private_directory(os.path.dirname(places.db))
        with hold(places) as draft:
            return _restore(path, settings, places, draft, with_settings)
    except OSError as error:
        raise StorageFailure(f"{error.filename or places.db}: {error.strerror}; the backup was not restored") from error


def _restore(path: str, settings: Settings, places: Places, draft: str, with_settings: bool) -> dict:
    drafts = {name: draft + name for name in shape.KNOWN}
    try:
        manifest, found, kept = _checked(path, drafts)
        aside = _swap(places, drafts)
    finally:
        for place in drafts.values():
            _remove(place)
    return {
        **_told(path, manifest, found),
        "restored": places.db,
        "moved_aside": aside,
        **_settings(kept, settings, with_settings),
    }


def _checked(path: str, extract_to: dict[str, str]) -> tuple[dict, Found, travelling.Kept]:
    """Unpack a backup and return its manifest, what its database holds, and its settings: all of it sound.

    Raises Refused.
    """
    manifest = shape.verify(path, extract_to)
    if manifest["schema"] > SCHEMA_VERSION:
        raise Refused(
            f"{path} holds a database of schema {manifest['schema']}, this version knows {SCHEMA_VERSION};"
            " upgrade cpersona first"
        )
    try:
        found = sound.inspect(extract_to[shape.DATABASE])
        kept = travelling.read(extract_to[shape.SETTINGS])
    except apsw.Error as error:
        raise Refused(f"{path} holds a database that cannot be opened ({error}); {_USE_ANOTHER}") from None
    except sound.Unsound as error:
        raise Refused(f"{path} holds a database that must not be put in place: {error}; {_USE_ANOTHER}") from None
    except travelling.Misshapen as error:
        raise Refused(f"{path} holds settings that are none: {error}; {_USE_ANOTHER}") from None
    if found.schema != manifest["schema"] or found.rows != manifest["rows"]:
        raise Refused(f"{path} holds a database that is not what its manifest says (other rows); {_USE_ANOTHER}")
    return manifest, found, kept


def _told(path: str, manifest: dict, found: Found) -> dict:
    told = {
        "ok": True,
        "path": path,
        "created_at": manifest["created_at"],
        "version": manifest["version"],
        "schema": found.schema,
        **found.rows,
    }
    return {**told, "unfit": found.unfit} if found.unfit else told


# -- the swap


def _swap(places: Places, drafts: dict[str, str]) -> str | None:
    """Give the store that is there other names and the drafts its own.

    Returns the database's other name, None where there was none. Whatever fails is undone: the store is then as it was.
    """
    with contextlib.ExitStack() as undo:

        def move(source: str, target: str) -> None:
            try:
                os.rename(source, target)
            except FileNotFoundError:
                return
            undo.callback(_quietly, os.rename, target, source)

        aside = _make_room(places, move)
        if aside is not None and os.path.lexists(places.db):
            undo.callback(_quietly, os.unlink, aside)  # a second name
        for name, place in ((shape.CALIBRATION, places.calibration), (shape.EARLIER, places.calibration + ".previous")):
            if os.path.lexists(drafts[name]):
                os.replace(drafts[name], place)
                undo.callback(_quietly, os.rename, place, drafts[name])
        os.replace(drafts[shape.DATABASE], places.db)  # the last step, and the one that decides
        undo.pop_all()
    files.sync(os.path.dirname(places.db))
    return aside


def _quietly(act: Callable[..., None], *paths: str) -> None:
    with contextlib.suppress(OSError):
        act(*paths)


def _make_room(places: Places, move: Callable[[str, str], None]) -> str | None:
    """Give the present store a second name and return it, None where there is no store.

    What the first name holds may now be replaced.
    """
    if not os.path.lexists(places.db):
        for rest in BESIDE:  # a WAL without its database is nobody's, and must not be taken for the new one's
            move(places.db + rest, f"{places.db}.without-database-{_stamp()}{rest}")
        return None
    _fold(places.db)
    aside = f"{places.db}.before-restore-{_stamp()}"
    # The WAL goes with the database that it belongs to: left behind, it would be taken for the restored one's.
    for rest in BESIDE:
        move(places.db + rest, aside + rest)
    for place in (places.calibration, places.calibration + ".previous"):
        move(place, aside + place[len(places.db) :])
    try:
        # A second name: the first one then changes hands in one step, and at no moment is there no database.
        os.link(places.db, aside, follow_symlinks=False)
    except OSError:
        move(places.db, aside)  # a file system without hard links
    return aside


def _fold(path: str) -> None:
    """Have SQLite fold a WAL that a killed daemon left, so that the file moved aside is whole by itself."""
    try:
        conn = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            conn.close()
    except apsw.Error:
        pass  # damaged, and perhaps the reason for this restore: it is moved aside with everything that belongs to it


def _stamp() -> str:
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


# -- settings


def _settings(kept: travelling.Kept, settings: Settings, wanted: bool) -> dict:
    """Write the config file that the backup speaks of, if that is ``wanted`` and there is none.

    Else say what it offers and what differs.
    """
    path = config_path()
    told: dict[str, Any] = {"settings": "kept"}
    if kept.fit and not os.path.lexists(path):
        if wanted:
            make_private_directory(os.path.dirname(path))
            files.replace(path, travelling.as_toml(kept.fit).encode())
            told = {"settings": "written", "config": path}
        else:
            told["offered_settings"] = sorted(kept.fit)
    if wanted and kept.unfit:
        told["refused_settings"] = dict(sorted(kept.unfit.items()))
    now = {name: entry["value"] for name, entry in travelling.settings_of(settings).items()}
    differing = sorted(name for name in {*kept.values, *now} if kept.values.get(name) != now.get(name))
    return told if told["settings"] == "written" or not differing else {**told, "differing_settings": differing}
