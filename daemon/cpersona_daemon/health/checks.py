"""Every check of the store's health by name: a small function each, which reads and reports, and repairs nothing.

An issue is `{check, severity, message, count?, …}`. Critical: data is damaged or cannot be trusted. Warn: something is
found less well than it should be, or others could see it. Info: worth knowing, nothing is wrong.

Contract: health.checks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

import apsw
import numpy as np

from ..calibration.file import scoring_version
from ..context import Context
from ..memory.cleaning import sanitise
from ..memory.store import CLOCK_ALLOWANCE_SECONDS
from ..model.instants import parse_instant
from ..model.kinds import EPISODE, MEMORY
from ..shared.holders import holders
from ..storage import backlog, connection, generations, health
from ..storage import canaries as saved
from ..storage.database import WAL_KEPT_BYTES
from ..vectors.choice import files_of

CRITICAL, WARN, INFO = "critical", "warn", "info"
SEVERITIES = (CRITICAL, WARN, INFO)
KINDS = ((MEMORY, "memories"), (EPISODE, "episodes"))
MOST_MESSAGES = 20
FAULT_AFTER = 2
OLD_DAYS = 180
# Twice what the log keeps when it is folded: it only grows so far while somebody reads an older state.
WAL_BYTES = 2 * WAL_KEPT_BYTES
# Below the first a store of long texts may fail at any moment, below the second it does.
SCARCE_BYTES = 64 * 1024 * 1024
NO_ROOM_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class View:
    """What a check looks at: one read snapshot, the daemon's parts, the rows of one agent ('' = all)."""

    conn: apsw.Connection
    ctx: Context
    agent_id: str = ""
    deep: bool = False


Issue = dict
Check = Callable[[View], list[Issue]]


def _issue(severity: str, message: str, **more) -> Issue:
    return {"severity": severity, "message": message, **more}


def sqlite_integrity(view: View) -> list[Issue]:
    """The database file is sound; with deep, its indexes agree with its rows too."""
    return [_issue(CRITICAL, text) for text in health.damage(view.conn, view.deep, MOST_MESSAGES)]


def schema(view: View) -> list[Issue]:
    """The recorded migrations are this program's, and every row has its owner."""
    recorded, known = health.schema_versions(view.conn)
    out = (
        []
        if recorded == known
        else [_issue(CRITICAL, f"the database records the migrations {recorded}, this program has {known}")]
    )
    for table, count in health.foreign_key_violations(view.conn).items():
        out.append(_issue(WARN, f"{count} rows of {table} belong to rows that are gone", count=count, table=table))
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
    message = f"{path} has grown to {size / 1e6:.0f} MB, because a reader keeps an older state in use: {what}; the next writes then cut the file back"
    return [_issue(WARN, message, bytes=size)]


def disk(view: View) -> list[Issue]:
    """What is stored next can be written: there is room, and the files may be written to."""
    db = view.ctx.db
    if db.read_only:
        return [_issue(WARN, "the database cannot be written to, so the daemon serves it for reading alone")]
    if db.write_problem is not None:
        return [_issue(CRITICAL, f"the latest write failed: {db.write_problem}")]
    try:
        room = connection.room(db.path)
    except OSError as error:
        return [_issue(WARN, f"the room left for the database cannot be told: {error.strerror}")]
    if room >= SCARCE_BYTES:
        return []
    severity = CRITICAL if room < NO_ROOM_BYTES else WARN
    return [_issue(severity, f"only {room // 1024:,} KB of room are left for the database", free_bytes=room)]


def lexical_index(view: View) -> list[Issue]:
    """Every row has its postings, no postings are left over, and the index is sound in itself."""
    out = []
    for kind, name in KINDS:
        damage = health.postings_damage(view.conn, kind)
        if damage is not None:
            out.append(_issue(CRITICAL, f"the word index of the {name} is damaged: {damage}", kind=kind))
            continue
        for found, what in (
            (health.rows_without_postings, f"{name} are not in the word index"),
            (health.postings_without_row, f"entries of the word index have no {name}"),
        ):
            count = len(found(view.conn, kind))
            if count:
                out.append(_issue(WARN, f"{count} {what}", count=count, kind=kind))
    return out


def vector_index(view: View) -> list[Issue]:
    """The vector index is in use and holds what the database holds; with deep, every vector is compared."""
    (generation, _), out = generations.current(view.conn), []
    for kind, name in KINDS if view.deep else ():
        differing = view.ctx.vectors.differing(kind)
        if differing:
            message = f"{len(differing)} {name} have another vector in the vector index than in the database, so that recall ranks them wrongly"
            out.append(_issue(CRITICAL, message, kind=kind, count=len(differing)))
    for kind, status in view.ctx.vectors.status().items():
        name = dict(KINDS)[kind]
        for aside in status.get("moved_aside", ()):
            out.append(
                _issue(
                    INFO,
                    f"what stood in the place of the vector index of the {name} is now {aside}",
                    kind=kind,
                    path=aside,
                )
            )
        if status["state"] == "rebuilding":
            out.append(
                _issue(
                    INFO,
                    f"the vector index of the {name} is being rebuilt; recall scans the database meanwhile",
                    kind=kind,
                )
            )
        elif status["state"] != "ready":
            out.append(
                _issue(
                    WARN,
                    f"the vector index of the {name} is not in use ({status.get('reason', 'unknown reason')}); recall scans the database",
                    kind=kind,
                )
            )
        elif "reason" in status:
            out.append(_issue(WARN, f"the vector index of the {name} is in use, but {status['reason']}", kind=kind))
        elif (
            status.get("generation") == generation.number
        ):  # else a commit came in between and the numbers cannot be compared
            stored = health.usable_vectors(view.conn, kind)
            if stored != status["rows"]:
                out.append(
                    _issue(
                        CRITICAL,
                        f"the vector index of the {name} holds {status['rows']} vectors, the database {stored}",
                        kind=kind,
                    )
                )
    return out


def missing_vectors(view: View) -> list[Issue]:
    """Every row has a vector or waits for one, where there is an embedder."""
    out = []
    if not view.ctx.embedding.enabled:
        return out
    for kind, name in KINDS:
        listed, forgotten = health.without_vector(view.conn, kind, view.agent_id)
        if forgotten:
            out.append(
                _issue(WARN, f"{forgotten} {name} have no vector and do not wait for one", count=forgotten, kind=kind)
            )
        if listed:
            out.append(_issue(INFO, f"{listed} {name} wait for their vector", count=listed, kind=kind))
    return out


def foreign_vectors(view: View) -> list[Issue]:
    """Every vector is of the present model, so that vector search can see it."""
    embedding, out = view.ctx.embedding, []
    model, dimension = embedding.model
    if not embedding.enabled or dimension is None:
        return out
    for kind, name in KINDS:
        listed, others = health.foreign_vectors(view.conn, kind, model, dimension, view.agent_id)
        if others:
            out.append(
                _issue(
                    WARN,
                    f"{others} {name} have a vector of another model, which recall passes over; reindex embeds them anew",
                    count=others,
                    kind=kind,
                )
            )
        if listed:
            out.append(
                _issue(
                    INFO, f"{listed} {name} with a vector of another model wait for a new one", count=listed, kind=kind
                )
            )
    return out


def damaged_vectors(view: View) -> list[Issue]:
    """Every stored vector is one; with deep, its numbers are looked at too."""
    out = []
    for kind, name in KINDS:
        count = len(damaged(view.conn, kind, view.deep, view.agent_id))
        if count:
            out.append(
                _issue(
                    WARN,
                    f"{count} {name} have a vector that is none (wrong length, not finite or zero)",
                    count=count,
                    kind=kind,
                )
            )
    return out


def damaged(conn: apsw.Connection, kind: str, deep: bool, agent_id: str = "") -> list[int]:
    """Return the ids of stored vectors that count as none."""
    found = health.broken_vectors(conn, kind, agent_id)
    if deep:
        found += [
            row_id
            for row_id, data in health.vectors_of(conn, kind, agent_id)
            if data and len(data) % 4 == 0 and not _is_usable(data)
        ]
    return found


def _is_usable(data: bytes) -> bool:
    values = np.frombuffer(data, "<f4")
    return bool(np.isfinite(values).all() and values.any())


def contents(view: View) -> list[Issue]:
    """With deep: every text is what was stored, can be read, and can be given out."""
    out = []
    for kind, name in KINDS if view.deep else ():
        unreadable, changed, uncarried = health.not_what_was_stored(view.conn, kind, view.agent_id)
        changed = [row_id for row_id in changed if row_id not in set(unreadable)]
        for ids, severity, what in (
            (unreadable, CRITICAL, "hold bytes that are no text (not valid UTF-8), so lists and recall leave them out"),
            (changed, CRITICAL, "hold another text than was stored: a disk or another program changed it"),
            (
                [row_id for row_id, _ in uncarried],
                WARN,
                "are too large or nest too deeply for any answer, so lists and recall leave them out",
            ),
        ):
            if ids:
                named = ", ".join(f"{kind}:{row_id}" for row_id in ids[:MOST_MESSAGES]) + (
                    ", …" if len(ids) > MOST_MESSAGES else ""
                )
                out.append(
                    _issue(
                        severity,
                        f"{len(ids)} {name} {what} ({named}); restore a backup, or delete them and store them anew",
                        count=len(ids),
                        kind=kind,
                    )
                )
    return out


def permissions(view: View) -> list[Issue]:
    """The store's files are closed to others, and nobody else can write into their directory."""
    out = []
    for path, mode in open_to_others(view.ctx):
        out.append(_issue(WARN, f"{path} can be used by others (mode {mode:04o}, should be 0600)", path=path))
    directory = os.path.dirname(view.ctx.places.db)
    mode = stat.S_IMODE(os.stat(directory).st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        out.append(
            _issue(
                WARN,
                f"others can write into {directory} (mode {mode:04o}); close it, or move the database into a directory of its own",
                path=directory,
            )
        )
    elif mode & (stat.S_IRWXG | stat.S_IRWXO):
        out.append(_issue(INFO, f"others can enter {directory} (mode {mode:04o})", path=directory))
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


def duplicates(view: View) -> list[Issue]:
    """How much is stored twice although one recall sees both."""
    out = []
    count = health.duplicate_memories(view.conn, view.agent_id)
    if count:
        out.append(
            _issue(INFO, f"{count} memories repeat the content of a wider project or channel", count=count, kind=MEMORY)
        )
    count = health.duplicate_episodes(view.conn, view.agent_id)
    if count:
        out.append(_issue(INFO, f"{count} episodes repeat the summary of another one", count=count, kind=EPISODE))
    return out


def contamination(view: View) -> list[Issue]:
    """No memory holds what a recall once printed: stored again, it would be recalled as if it were new."""
    found = echoed(view.conn, view.agent_id)
    if not found:
        return []
    locked = sum(locked for _, locked, _ in found)
    more = f"; {locked} of them are locked and stay as they are" if locked else ""
    return [
        _issue(
            WARN, f"{len(found)} memories hold the mark of a recalled memory ([Memory from …]){more}", count=len(found)
        )
    ]


def echoed(conn: apsw.Connection, agent_id: str = "") -> list[tuple[int, bool, str]]:
    """Return (id, locked, cleaned text) of memories that a store would have cleaned."""
    cleaned = ((row_id, locked, text, sanitise(text)) for row_id, locked, text in health.echoes(conn, agent_id))
    return [(row_id, locked, clean) for row_id, locked, text, clean in cleaned if clean and clean != text]


def timestamps(view: View) -> list[Issue]:
    """Stamps name instants that the clock has reached; with deep, what was read from them is read again."""
    out, allowed = [], view.ctx.clock.now() + CLOCK_ALLOWANCE_SECONDS
    unread, ahead = health.stamps(view.conn, view.agent_id, allowed)
    if unread:
        out.append(
            _issue(
                INFO,
                f"{unread} memories have a timestamp that names no instant; their age counts as unknown",
                count=unread,
            )
        )
    if ahead:
        out.append(
            _issue(
                INFO,
                f"{ahead} memories have a timestamp ahead of the clock; the prior takes the newest of them for now",
                count=ahead,
            )
        )
    if odd := health.odd_created(view.conn, view.agent_id):
        out.append(
            _issue(
                WARN,
                f"{odd} rows have a created_at of another form, which puts them in a wrong place of the window",
                count=odd,
            )
        )
    if view.deep and (wrong := len(misread(view.conn, view.agent_id))):
        out.append(
            _issue(WARN, f"{wrong} memories are filed under another instant than their timestamp names", count=wrong)
        )
    return out


def misread(conn: apsw.Connection, agent_id: str = "") -> list[tuple[int, float | None]]:
    """Return (id, instant) of memories whose timestamp names another instant than the one recorded."""
    return [
        (row_id, named)
        for row_id, text, recorded in health.timestamps(conn, agent_id)
        if (named := parse_instant(text)) != recorded
    ]


def associations(view: View) -> list[Issue]:
    """No mention or relation names something that is gone."""
    mentions, relations = health.dangling_associations(view.conn, view.agent_id)
    if not mentions and not relations:
        return []
    return [
        _issue(
            WARN,
            f"{mentions} mentions and {relations} relations name something that is gone",
            count=mentions + relations,
        )
    ]


def embedder(view: View) -> list[Issue]:
    """The embedder, if there is one, works."""
    status = view.ctx.embedding.status()
    if status["state"] == "failed":
        return [_issue(WARN, f"the embedder cannot be used, recall is lexical only: {status['problem']}")]
    if status["consecutive_failures"] >= FAULT_AFTER:
        return [_issue(WARN, f"the last {status['consecutive_failures']} query embeddings failed: {status['problem']}")]
    waiting = backlog.count(view.conn, 1) if status["mode"] == "none" else 0
    return (
        [_issue(INFO, "rows are listed for embedding, and there is no embedder (CPERSONA_EMBEDDING_MODE=none)")]
        if waiting
        else []
    )


def calibration(view: View) -> list[Issue]:
    """The calibration file can be read, and was measured with the present model and not too long ago."""
    book, embedding = view.ctx.calibration, view.ctx.embedding
    if book.problem:
        return [_issue(WARN, book.problem)]
    if not embedding.enabled or not book.exists:
        return []
    if book.current.stale(*embedding.model, scoring_version(view.ctx.settings)):
        return [
            _issue(
                WARN,
                "the thresholds were measured with another model or scoring and are not used; `cpersona calibrate` measures them again",
            )
        ]
    try:
        days = (view.ctx.clock.now() - os.stat(book.path).st_mtime) / 86_400
    except FileNotFoundError:
        return [_issue(WARN, "the calibration file was removed; `cpersona calibrate` writes it again")]
    return (
        [
            _issue(
                INFO,
                f"the last calibration is {days:.0f} days old; `cpersona calibrate` measures again",
                days=round(days),
            )
        ]
        if days > OLD_DAYS
        else []
    )


def canaries(view: View) -> list[Issue]:
    """Every saved question still finds its row. ``check_health`` runs them before it looks."""
    lost = [c for c in saved.listed(view.conn, view.agent_id) if c.state in (saved.LOST, saved.GONE)]
    why = {saved.LOST: "does not come back", saved.GONE: "is gone"}
    out = [
        _issue(WARN, f"canary {c.id} is lost: {c.ref} {why[c.state]}", canary=c.id, ref=c.ref)
        for c in lost[:MOST_MESSAGES]
    ]
    if len(lost) > MOST_MESSAGES:
        out.append(_issue(WARN, f"{len(lost) - MOST_MESSAGES} more canaries are lost", count=len(lost) - MOST_MESSAGES))
    return out


def spool(view: View) -> list[Issue]:
    """Nothing that was queued was refused."""
    directory, out = view.ctx.places.spool, []
    failed, waiting = _files(os.path.join(directory, "failed")), _files(directory)
    if failed:
        out.append(
            _issue(
                WARN,
                f"{failed} queued stores were refused; they and the reasons lie in {os.path.join(directory, 'failed')}",
                count=failed,
            )
        )
    if waiting:
        out.append(_issue(INFO, f"{waiting} queued stores wait in {directory}", count=waiting))
    return out


def _files(directory: str) -> int:
    try:
        with os.scandir(directory) as entries:
            return sum(entry.name.endswith(".json") and not entry.name.startswith(".") for entry in entries)
    except FileNotFoundError:
        return 0


CHECKS: dict[str, Check] = {
    "sqlite_integrity": sqlite_integrity,
    "schema": schema,
    "wal": wal,
    "disk": disk,
    "lexical_index": lexical_index,
    "vector_index": vector_index,
    "missing_vectors": missing_vectors,
    "foreign_vectors": foreign_vectors,
    "damaged_vectors": damaged_vectors,
    "contents": contents,
    "permissions": permissions,
    "duplicates": duplicates,
    "contamination": contamination,
    "timestamps": timestamps,
    "associations": associations,
    "embedder": embedder,
    "calibration": calibration,
    "canaries": canaries,
    "spool": spool,
}

# What concerns the rows of one agent, asked for that agent alone. The others tell of the store as a whole: how much of it
# there is, where it lies, and who uses it.
OF_AN_AGENT = frozenset(
    {
        "missing_vectors",
        "foreign_vectors",
        "damaged_vectors",
        "contents",
        "duplicates",
        "contamination",
        "timestamps",
        "associations",
        "canaries",
    }
)
