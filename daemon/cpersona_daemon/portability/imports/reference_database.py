"""The format of the reference implementation's SQLite file: its rows as the records of an export.

Its schema is looked at by its columns, so that versions near the known one are read too; what has no place here is
counted.

Contract: import.lines, import.untouched.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import apsw

from ...errors import Refused, ShuttingDown
from ...model.kinds import parse_ref
from ...shared import header
from ...shared.settings import Settings
from ...storage.associations import ENTITY
from ...storage.damaged import NOT_UTF8, Unreadable, readable, rows
from . import lines
from .format import Survey
from .records import BadRecord, Record, Row, Unkept
from .untouched import Opened

KNOWN_SCHEMA = 21  # the one whose tables are listed here
LAST_SCHEMA = 24  # as far as versions after it are taken for near ones
THERE = "export it there, and import the file that this writes"


@dataclass(frozen=True, slots=True)
class _Table:
    """A table that is read: the columns that it must have, and those that it may have."""

    needed: tuple[str, ...]
    known: tuple[str, ...]

    def columns(self, there: set[str]) -> list[str]:
        return [name for name in (*self.needed, *self.known) if name in there]


TABLES = {
    "memories": _Table(
        ("id", "agent_id", "content"),
        (
            "project_id",
            "channel",
            "msg_id",
            "source",
            "timestamp",
            "metadata",
            "embedding",
            "embedding_model",
            "recall_count",
            "last_recalled_at",
            "locked",
            "created_at",
        ),
    ),
    "episodes": _Table(
        ("id", "agent_id", "summary"),
        (
            "project_id",
            "channel",
            "keywords",
            "embedding",
            "embedding_model",
            "start_time",
            "end_time",
            "resolved",
            "created_at",
        ),
    ),
    "profiles": _Table(("agent_id", "content"), ("id", "user_id", "project_id", "updated_at")),
    "entities": _Table(
        ("id", "agent_id", "name"), ("project_id", "channel", "normalized", "declared_by", "created_at")
    ),
    "entity_aliases": _Table(("entity_id", "alias"), ("normalized",)),
    "entity_mentions": _Table(("entity_id", "ref"), ("declared_by", "created_at")),
    "relations": _Table(
        ("id", "agent_id", "subject_kind", "subject_id", "predicate", "object_kind", "object_id"),
        ("project_id", "channel", "anchor_ref", "declared_by", "declared_at"),
    ),
}
_TYPES = {"memories": "memory", "episodes": "episode", "profiles": "profile", "relations": "relation"}
# What is made of the rows, and made anew here: counted so that nobody misses it.
_DERIVED = ("record_blocks", "record_nodes")
# What is neither a row nor made of one: versions, clocks, and logs of changes.
_SILENT = (
    "schema_version",
    "block_log_clock",
    "vector_log_clock",
    "record_block_changes",
    "record_vector_changes",
    "record_block_vectors",
)
_SILENT_BEGINNINGS = ("memories_fts", "episodes_fts", "sqlite_")


@dataclass(slots=True)
class _Read(Survey):
    """A database that is being read: which columns of which tables, and what has no place."""

    unit: str = "Row"
    opened: Opened | None = None
    columns: dict[str, list[str]] = field(default_factory=dict)
    unkept: dict[str, int] = field(default_factory=dict)

    @property
    def conn(self) -> apsw.Connection:
        assert self.opened is not None
        return self.opened.conn

    def close(self) -> None:
        if self.opened is not None:
            self.opened.close()

    def select(self, table: str, order: str = "") -> str:
        names = ", ".join(self.columns[table])
        return f"SELECT {names} FROM {table}{f' ORDER BY {order}' if order else ''}"


class ReferenceDatabase:
    """Implements Format. The tables are read one after another, rows of one snapshot."""

    def survey(self, handle: BinaryIO, stop: threading.Event) -> Survey | None:
        handle.seek(0)
        head = handle.read(header.BYTES)
        if not head.startswith(header.MAGIC) or header.application(head):
            return None
        found = _Read()
        try:
            found.opened = Opened(handle)
            if _look(found, stop):
                return found
        except apsw.Error as error:
            found.close()
            mended = (
                "what `sqlite3 FILE .recover` saves of it may be imported"
                if isinstance(error, (apsw.CorruptError, apsw.NotADBError, apsw.SQLError))
                else f"end the program that has it open, or {THERE}"
            )
            raise Refused(
                f"it seems to be a SQLite database, and it cannot be read ({error}); {mended}; nothing was imported"
            ) from None
        except BaseException:
            found.close()
            raise
        found.close()
        return None

    def records(
        self, handle: BinaryIO, survey: Survey, target: str, settings: Settings
    ) -> Iterator[tuple[int, int, Record | BadRecord]]:
        assert isinstance(survey, _Read) and survey.opened is not None
        number = 0
        try:
            for number, (name, record) in enumerate(_records(survey), 1):
                yield number, _size(record), _parsed(name, record, target, settings)
            survey.opened.check()
        except apsw.Error as error:
            survey.opened.check()
            raise Refused(f"the database cannot be read on ({error})") from None
        for what, count in survey.unkept.items():
            yield number, 0, Unkept(what, count)


def _look(found: _Read, stop: threading.Event) -> bool:
    """Note what there is to read; False for another program's database. Raises Refused for a version too new."""
    conn = found.conn
    tables = {name for (name,) in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables:
        raise Refused(
            "it seems to be a SQLite database without a table; a copy lacks what stands in the log beside it,"
            " FILE-wal: copy both, or make a whole one with `cpersona backup`; nothing was imported"
        )
    if "memories" not in tables:
        return False
    _check_version(conn, tables)
    for table in sorted(tables):
        if stop.is_set():
            raise ShuttingDown("the import was ended before it began")
        if table in TABLES:
            found.lines += _look_at(found, table)
        elif table not in _SILENT and not table.startswith(_SILENT_BEGINNINGS) and (count := _count(conn, table)):
            found.unkept[f"{table} (made anew here)" if table in _DERIVED else table] = count
    _want(found)
    return True


def _check_version(conn: apsw.Connection, tables: set[str]) -> None:
    if "schema_version" not in tables:
        raise Refused(
            f"it seems to be a database of another program that keeps memories ({len(tables)} tables, and none of them"
            f" says which schema it is); {THERE}; nothing was imported"
        )
    versions: list[Any] = conn.execute("SELECT max(version) FROM schema_version").fetchall()
    version = versions[0][0]
    if type(version) is not int or not 0 < version <= LAST_SCHEMA:
        named = "a schema without a number" if version is None else f"schema {version}"
        raise Refused(
            f"it seems to be a database of the reference implementation with {named} ({len(tables)} tables);"
            f" schemas up to {LAST_SCHEMA} are read here; {THERE}; nothing was imported"
        )


def _look_at(found: _Read, table: str) -> int:
    """Note the columns of a table, and values of others, and return how many rows it has."""
    there = {row[1] for row in found.conn.execute(f"PRAGMA table_info({table})")}
    if lacking := [name for name in TABLES[table].needed if name not in there]:
        raise Refused(
            f"it seems to be a database of another program that keeps memories, and its table {table} has no"
            f" {', '.join(lacking)}; {THERE}; nothing was imported"
        )
    found.columns[table] = TABLES[table].columns(there)
    for name in sorted(there.difference(found.columns[table])):
        if count := _count(found.conn, table, f"{_quoted(name)} IS NOT NULL"):
            found.unkept[f"{table}.{name}"] = count
    return 0 if table == "entity_aliases" else _count(found.conn, table)


def _count(conn: apsw.Connection, table: str, where: str = "1") -> int:
    counted: list[Any] = conn.execute(f"SELECT count(*) FROM {_quoted(table)} WHERE {where}").fetchall()
    count: int = counted[0][0]
    return count


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _want(found: _Read) -> None:
    """Note the rows that associations name."""
    conn = found.conn
    if "entity_mentions" in found.columns:
        for entity, ref in _readable(conn, "SELECT entity_id, ref FROM entity_mentions"):
            found.wanted.add((0, ENTITY, entity))
            if (rid := parse_ref(ref)) is not None:
                found.wanted.add((0, *rid))
    if "relations" in found.columns:
        anchor = "anchor_ref" if "anchor_ref" in found.columns["relations"] else "NULL"
        for kind, row_id, other, other_id, ref in _readable(
            conn, f"SELECT subject_kind, subject_id, object_kind, object_id, {anchor} FROM relations"
        ):
            found.wanted |= {(0, kind, row_id), (0, other, other_id)}
            if (rid := parse_ref(ref)) is not None:
                found.wanted.add((0, *rid))


def _readable(conn: apsw.Connection, sql: str) -> Iterator[tuple]:
    """Yield the rows of a statement that are valid UTF-8."""
    return (row for row in readable(conn.execute(sql)) if row is not None)


_Named = tuple[str, dict | BadRecord]  # what a complaint calls a row, and the row as an object of an export


def _records(found: _Read) -> Iterator[_Named]:
    """Yield every row, what others name before what names it."""
    for table in ("memories", "episodes"):
        yield from _numbered(found, table)
    for row in _others(found, "profiles"):
        yield f"profile of {row.get('agent_id')}" if isinstance(row, dict) else "a profile", row
    aliases = _aliases(found)
    for name, row in _numbered(found, "entities"):
        if isinstance(row, dict):
            row |= {"_type": "entity", "aliases": aliases.get(row["id"], [])}
        yield name, row
    for row in _others(found, "entity_mentions"):
        if isinstance(row, dict):
            row |= {"_type": "mention", "entity": row["entity_id"]}
        yield "a mention", row
    yield from _numbered(found, "relations")


def _numbered(found: _Read, table: str) -> Iterator[_Named]:
    """Yield the rows of a table with ids in their order."""
    if table not in found.columns:
        return
    for row in rows(found.conn, found.select(table, "id")):
        if isinstance(row, Unreadable):
            yield f"{table} {row.id}", BadRecord(row.reason)
        else:
            yield f"{table} {row[0]}", _object(found, table, row)


def _others(found: _Read, table: str) -> Iterator[dict | BadRecord]:
    if table not in found.columns:
        return
    for row in readable(found.conn.execute(found.select(table))):
        yield BadRecord(NOT_UTF8) if row is None else _object(found, table, row)


def _object(found: _Read, table: str, row: tuple) -> dict:
    """Return a row as an export has it; JSON stays the text that it is, a vector the bytes."""
    out: dict[str, Any] = dict(zip(found.columns[table], row, strict=True))
    out["_type"] = _TYPES.get(table, table)
    for name, becomes in (("source", "source_text"), ("metadata", "metadata_text"), ("embedding", "embedding_b64")):
        if name in out:
            out[becomes] = out.pop(name)
    return out


def _aliases(found: _Read) -> dict[int, list[str]]:
    """Return the names of every entity, as they are written."""
    out: dict[int, list[str]] = defaultdict(list)
    if "entity_aliases" in found.columns:
        for entity, alias in _readable(
            found.conn, "SELECT entity_id, alias FROM entity_aliases ORDER BY entity_id, alias"
        ):
            out[entity].append(alias)
    return out


def _size(record: dict | BadRecord) -> int:
    """Return about how many bytes a row holds."""
    values = record.values() if isinstance(record, dict) else ()
    return sum(len(value) for value in values if isinstance(value, (str, bytes)))


def _parsed(name: str, record: dict | BadRecord, target: str, settings: Settings) -> Record | BadRecord:
    """Return the record that an object stands for; what is said of it names the row."""
    try:
        if isinstance(record, BadRecord):
            raise record
        out = lines.read(record, target, settings)
    except BadRecord as error:
        return BadRecord(f"{name}: {error}", error.skipped)
    if isinstance(out, Row):
        out.remarks[:] = [f"{name}: {remark}" for remark in out.remarks]
    return out
