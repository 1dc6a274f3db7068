"""Checks of the files: the database itself, its log and its room, who may use them, and what waits in the spool.

Contract: health.checks.
"""

from __future__ import annotations

import os
import stat

from ..context import Context
from ..shared.holders import holders
from ..storage import connection, health
from ..storage.database import WAL_KEPT_BYTES
from ..vectors.choice import files_of
from .view import CRITICAL, INFO, MOST_MESSAGES, WARN, Issue, View, issue

# Twice what the log keeps when it is folded: it only grows so far while somebody reads an older state.
WAL_BYTES = 2 * WAL_KEPT_BYTES
# Below the first a store of long texts may fail at any moment, below the second it does.
SCARCE_BYTES = 64 * 1024 * 1024
NO_ROOM_BYTES = 1024 * 1024


def sqlite_integrity(view: View) -> list[Issue]:
    """The database file is sound; with deep, its indexes agree with its rows too."""
    return [issue(CRITICAL, text) for text in health.damage(view.conn, view.deep, MOST_MESSAGES)]


def schema(view: View) -> list[Issue]:
    """The recorded migrations are this program's, and every row has its owner."""
    recorded, known = health.schema_versions(view.conn)
    out = (
        []
        if recorded == known
        else [issue(CRITICAL, f"the database records the migrations {recorded}, this program has {known}")]
    )
    for table, count in health.foreign_key_violations(view.conn).items():
        out.append(issue(WARN, f"{count} rows of {table} belong to rows that are gone", count=count, table=table))
    return out


def wal(view: View) -> list[Issue]:
    """No reader keeps the write-ahead log from being folded into the database, which lets it grow without end."""
    path = view.ctx.places.db + "-wal"
    try:
        size = os.path.getsize(path)
    except FileNotFoundError:
        return []
    if size <= WAL_BYTES:
        return []
    others = ", ".join(f"{program} (pid {pid})" for pid, program in holders(view.ctx.places.db))
    what = (
        f"{others} has the database open, end its read"
        if others
        else f"a backup or an export of this daemon, which ends by itself, or what `lsof {view.ctx.places.db}` names"
    )
    message = (
        f"{path} has grown to {size / 1e6:.0f} MB, because a reader keeps an older state in use: {what};"
        " the next writes then cut the file back"
    )
    return [issue(WARN, message, bytes=size)]


def disk(view: View) -> list[Issue]:
    """What is stored next can be written: there is room, and the files may be written to."""
    db = view.ctx.db
    if db.read_only:
        return [issue(WARN, "the database cannot be written to, so the daemon serves it for reading alone")]
    if db.write_problem is not None:
        return [issue(CRITICAL, f"the latest write failed: {db.write_problem}")]
    try:
        room = connection.room(db.path)
    except OSError as error:
        return [issue(WARN, f"the room left for the database cannot be told: {error.strerror}")]
    if room >= SCARCE_BYTES:
        return []
    severity = CRITICAL if room < NO_ROOM_BYTES else WARN
    return [issue(severity, f"only {room // 1024:,} KB of room are left for the database", free_bytes=room)]


def permissions(view: View) -> list[Issue]:
    """The store's files are closed to others, and nobody else can write into their directory."""
    out = []
    for path, mode in open_to_others(view.ctx):
        out.append(issue(WARN, f"{path} can be used by others (mode {mode:04o}, should be 0600)", path=path))
    directory = os.path.dirname(view.ctx.places.db)
    mode = stat.S_IMODE(os.stat(directory).st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        out.append(
            issue(
                WARN,
                f"others can write into {directory} (mode {mode:04o});"
                " close it, or move the database into a directory of its own",
                path=directory,
            )
        )
    elif mode & (stat.S_IRWXG | stat.S_IRWXO):
        out.append(issue(INFO, f"others can enter {directory} (mode {mode:04o})", path=directory))
    return out


def open_to_others(ctx: Context) -> list[tuple[str, int]]:
    """Return the store's own files that have bits for others, with their modes."""
    places, out = ctx.places, []
    beside = (places.lock, places.daemon_json, places.calibration, places.calibration + ".previous", *files_of(places))
    for path in (places.db, places.db + "-wal", places.db + "-shm", *beside):
        try:
            info = os.lstat(path)
        except FileNotFoundError:
            continue
        if stat.S_ISREG(info.st_mode) and info.st_uid == os.getuid() and info.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            out.append((path, stat.S_IMODE(info.st_mode)))
    return out


def spool(view: View) -> list[Issue]:
    """Nothing that was queued was refused."""
    directory, out = view.ctx.places.spool, []
    failed, waiting = _files(os.path.join(directory, "failed")), _files(directory)
    if failed:
        out.append(
            issue(
                WARN,
                f"{failed} queued stores were refused; they and the reasons lie in {os.path.join(directory, 'failed')}",
                count=failed,
            )
        )
    if waiting:
        out.append(issue(INFO, f"{waiting} queued stores wait in {directory}", count=waiting))
    return out


def _files(directory: str) -> int:
    try:
        with os.scandir(directory) as entries:
            return sum(entry.name.endswith(".json") and not entry.name.startswith(".") for entry in entries)
    except FileNotFoundError:
        return 0
