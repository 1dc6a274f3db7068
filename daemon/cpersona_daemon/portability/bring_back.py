"""Restoring a backup: verified first, then put in place while nobody else has the database.

The store that was there is moved aside, never overwritten; index files are left out, since they follow from the rows: those of another state are built anew. It runs
in a process of its own (`cpersonad --restore FILE`), which holds the database's lock from before the first change on.

Contract: issue "A tool to live in" (restore); shared/interface.md, "Where things live".
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from typing import Any

import apsw

from .. import claims
from ..errors import Refused, StorageFailure
from ..paths import Places, make_private_directory
from ..settings import CONFIG, Settings, config_path
from ..storage.schema import APPLICATION_ID, SCHEMA_VERSION
from . import backup_file as shape
from .backup import settings_of

BESIDE = ("-wal", "-shm")


def check(path: str) -> dict:
    """Verify a backup whole, its database included, and return `{ok, path, created_at, version, schema, memories, …}`. Raises Refused."""
    with tempfile.TemporaryDirectory(prefix="cpersona-") as directory:
        return _told(path, _checked(path, {shape.DATABASE: os.path.join(directory, shape.DATABASE)}))


def restore(path: str, settings: Settings, places: Places) -> dict:
    """Put a backup in the place of the database and return `{ok, restored, moved_aside, memories, …, settings}`.

    Raises Refused for what cannot be restored, Busy while a daemon serves the database, StorageFailure; the store is then as it was.
    """
    try:
        make_private_directory(os.path.dirname(places.db))
        lock = claims.take_lock(places)
        try:
            return _restore(path, settings, places)
        finally:
            os.close(lock)
    except OSError as error:
        raise StorageFailure(f"{error.filename or places.db}: {error.strerror}; the backup was not restored") from error


def _restore(path: str, settings: Settings, places: Places) -> dict:
    drafts = {name: f"{places.db}.restoring-{os.getpid()}-{name}" for name in shape.KNOWN}
    try:
        manifest = _checked(path, drafts)
        kept = _read_json(drafts[shape.SETTINGS])
        aside = _make_room(places)
        for name, place in ((shape.CALIBRATION, places.calibration), (shape.EARLIER, places.calibration + ".previous")):
            if name in manifest["files"]:
                os.replace(drafts[name], place)
        os.replace(drafts[shape.DATABASE], places.db)
        _sync(os.path.dirname(places.db))
    finally:
        for draft in drafts.values():
            _remove(draft)
    answer = {**_told(path, manifest), "restored": places.db, "moved_aside": aside}
    return {**answer, **_settings(kept, settings)}


def _checked(path: str, extract_to: dict[str, str]) -> dict:
    manifest = shape.verify(path, extract_to)
    if not isinstance(manifest.get("schema"), int) or not isinstance(manifest.get("rows"), dict) or manifest["schema"] > SCHEMA_VERSION:
        raise Refused(f"{path} holds a database of schema {manifest.get('schema')}, this version knows {SCHEMA_VERSION}; upgrade cpersona first")
    try:
        schema, rows, damage = shape.look_at_database(extract_to[shape.DATABASE])
        ours = _application(extract_to[shape.DATABASE]) == APPLICATION_ID
    except apsw.Error as error:
        raise Refused(f"{path} holds a database that cannot be opened ({error}); nothing was changed, use another backup") from None
    if damage or not ours or schema != manifest["schema"] or rows != manifest["rows"]:
        raise Refused(f"{path} holds a database that is not what its manifest says ({damage[0] if damage else 'other rows'}); nothing was changed")
    return manifest


def _application(path: str) -> int:
    conn = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return conn.execute("PRAGMA application_id").fetchone()[0]
    finally:
        conn.close()


def _told(path: str, manifest: dict) -> dict:
    return {"ok": True, "path": path, "created_at": manifest.get("created_at"), "version": manifest.get("version"), "schema": manifest["schema"], **manifest["rows"]}


# -- what was there before


def _make_room(places: Places) -> str | None:
    """Give the present store a second name and return it, None where there is no store. What the first name holds may now be replaced."""
    if not os.path.lexists(places.db):
        for rest in BESIDE:  # a WAL without its database is nobody's, and must not be taken for the new one's
            _move(places.db + rest, f"{places.db}.without-database-{_stamp()}{rest}")
        return None
    _fold(places.db)
    aside = f"{places.db}.before-restore-{_stamp()}"
    # The WAL goes with the database that it belongs to: left behind, it would be taken for the restored one's.
    for rest in BESIDE:
        _move(places.db + rest, aside + rest)
    for place in (places.calibration, places.calibration + ".previous"):
        _move(place, aside + place[len(places.db):])
    try:
        # A second name: the first one then changes hands in one step, and at no moment is there no database.
        os.link(places.db, aside, follow_symlinks=False)
    except OSError:
        os.rename(places.db, aside)  # a file system without hard links
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


def _move(path: str, target: str) -> None:
    try:
        os.rename(path, target)
    except FileNotFoundError:
        pass


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _sync(directory: str) -> None:
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(held)
    finally:
        os.close(held)


# -- settings


def _read_json(path: str) -> dict:
    try:
        with open(path, encoding="utf-8") as handle:
            value = json.load(handle)
    except (FileNotFoundError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _settings(kept: dict[str, Any], settings: Settings) -> dict:
    """Write the config file that the backup speaks of where there is none; else name what differs, and change nothing."""
    path = config_path()
    written = {name: entry["value"] for name, entry in kept.items() if entry.get("origin") == CONFIG}
    if written and not os.path.lexists(path):
        make_private_directory(os.path.dirname(path))
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as handle:
            handle.writelines(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in sorted(written.items()))
        return {"settings": "written", "config": path}
    now = settings_of(settings)
    differing = sorted(name for name in {*kept, *now} if (kept.get(name) or {}).get("value") != (now.get(name) or {}).get("value"))
    return {"settings": "kept", "differing_settings": differing} if differing else {"settings": "kept"}
