"""What a database from elsewhere must be before it is put in place: ours object by object, with values that we write.

It is opened so that nothing that stands in its schema is run before the schema is known to be ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import apsw

from ..model.kinds import Kind
from ..shared.header import APPLICATION_ID
from . import former, schema
from .damaged import NOT_UTF8
from .health import not_what_was_stored
from .migrations import FORMER_WORDS, SCHEMA_VERSION

LARGEST_ID = 2**53
MOST_NAMED = 100
_ROWS = (*(kind.table for kind in Kind), "profiles")
_ANALYSIS = {"sqlite_stat1", "sqlite_stat4"}  # what ANALYZE leaves; SQLite reads it with care
_TYPES = {"TEXT": "text", "INTEGER": "integer", "REAL": "real", "BLOB": "blob"}
_META = {
    "vector_generation": lambda value: type(value) is int and 0 <= value < LARGEST_ID,
    "vector_store": lambda value: type(value) is bytes and len(value) == 16,
    "vector_stamp": lambda value: type(value) is bytes and len(value) == 8,
    "embedding_dimension": lambda value: type(value) is int and 0 < value <= 65_536,
    "embedding_model": lambda value: type(value) is str,
}

Object = tuple[str, str, str, str]  # type, name, the table that it belongs to, its SQL with single blanks


class Unsound(Exception):
    """A database that must not be put in place; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A sound database: its schema's version, its rows by table, and the rows that no answer carries, as {ref, reason};
    of an older schema none are named.
    """

    schema: int
    rows: dict[str, int]
    unfit: list[dict]


@contextmanager
def opened(path: str) -> Iterator[apsw.Connection]:
    """Open a database of unknown origin for reading. Raises apsw.Error."""
    conn = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        conn.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        conn.execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0").fetchall()
        yield conn
    finally:
        conn.close()


def inspect(path: str) -> Found:
    """Return what a database holds. Raises Unsound, apsw.Error for what cannot be read."""
    with opened(path) as conn:
        version = _version(conn)
        if strange := foreign_objects(conn, version) or missing_objects(conn, version):
            kind, name, *_ = strange[0]
            raise Unsound(f"its {kind} {name} is not as cpersona makes it")
        damage = [text for (text,) in conn.execute("PRAGMA integrity_check(20)") if text != "ok"]
        if damage:
            raise Unsound(f"it is damaged: {damage[0]}")
        if {step for (step,) in conn.execute("SELECT version FROM schema_migrations")} != set(range(1, version + 1)):
            raise Unsound("it has not taken every step of its schema")
        _check_values(conn, version)
        return Found(version, counts(conn), _unfit(conn) if version == SCHEMA_VERSION else [])


def counts(conn: apsw.Connection) -> dict[str, int]:
    """Count the rows by table, without those that nobody sees."""
    tables = {name for (name,) in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    unseen = {table: f" WHERE id NOT IN hidden_{table}" if f"hidden_{table}" in tables else "" for table in _ROWS}
    found: dict[str, Any] = {
        table: conn.execute(f"SELECT count(*) FROM {table}{unseen[table]}").fetchone() for table in _ROWS
    }
    return {table: count for table, (count,) in found.items()}


def version_of(conn: apsw.Connection) -> int:
    """Return the number of the last step that a database's schema took, 0 for none."""
    version: Any
    ((version,),) = conn.execute("SELECT max(version) FROM schema_migrations").fetchall()
    return version or 0


def _version(conn: apsw.Connection) -> int:
    ((application,),), ((encoding,),) = (
        conn.execute("PRAGMA application_id").fetchall(),
        conn.execute("PRAGMA encoding").fetchall(),
    )
    if application != APPLICATION_ID or encoding != "UTF-8":
        raise Unsound("it is not a database of cpersona")
    kind = conn.execute("SELECT type FROM sqlite_schema WHERE name = 'schema_migrations'").fetchone()
    if kind != ("table",):
        raise Unsound("it is not a database of cpersona")
    version = version_of(conn)
    if type(version) is not int or not 1 <= version <= SCHEMA_VERSION:
        raise Unsound(f"it has schema {version!r}, and this version knows 1 to {SCHEMA_VERSION}")
    return version


def _objects(conn: apsw.Connection) -> set[Object]:
    return {
        (kind, name, table, " ".join((sql or "").split()))
        for kind, name, table, sql in conn.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
    }


def expected(conn: apsw.Connection, version: int) -> frozenset[Object]:
    """Return the objects that a database of this version of the schema has: with the former word index, where it still
    has one.
    """
    return _made(version, version >= FORMER_WORDS and former.present(conn))


@cache
def _made(version: int, with_former: bool) -> frozenset[Object]:
    with _model(version, with_former) as conn:
        return frozenset(_objects(conn))


@contextmanager
def _model(version: int, with_former: bool = False) -> Iterator[apsw.Connection]:
    conn = apsw.Connection(":memory:")
    try:
        if with_former:
            schema.migrate(conn, 0.0, FORMER_WORDS - 1)
            conn.execute(
                "INSERT INTO episodes (agent_id, created_at, summary) VALUES ('', '', '')"
            )  # one row, and its index stays
        schema.migrate(conn, 0.0, version)
        yield conn
    finally:
        conn.close()


def foreign_objects(conn: apsw.Connection, version: int) -> list[Object]:
    """Return the objects of a database that its version of the schema has not, or has otherwise, in their order."""
    return sorted((one for one in _objects(conn) - expected(conn, version) if one[1] not in _ANALYSIS), key=_by_author)


def drop_foreign_objects(conn: apsw.Connection, version: int) -> None:
    """Take out of a database, open for writing, what can be taken out of what its version of the schema has not."""
    ours = {(kind, name) for kind, name, *_ in expected(conn, version)}
    for wanted in ("trigger", "view", "index", "table"):
        for kind, name, *_ in foreign_objects(conn, version):
            if kind == wanted and (kind, name) not in ours:
                try:
                    conn.execute(f"DROP {kind} IF EXISTS " + '"' + name.replace('"', '""') + '"')
                except apsw.SQLError:
                    pass  # a part of another one, with which it goes


def missing_objects(conn: apsw.Connection, version: int) -> list[Object]:
    """Return the objects that a database lacks, in their order."""
    return sorted(expected(conn, version) - _objects(conn), key=_by_author)


def _by_author(one: Object) -> tuple:
    return not one[3], one  # an index that SQLite makes by itself comes behind the table that it is for


def _check_values(conn: apsw.Connection, version: int) -> None:
    """Raise Unsound for a value of a kind, or an id, that cpersona never writes:

    SQLite keeps any value in any column.
    """
    with _model(version) as model:
        for table in _plain_tables(version):
            columns = [_Column(*row) for row in model.execute(_COLUMNS, (table,))]
            _check_kinds(conn, table, columns)
            _check_ids(conn, table, columns)
    for table, last in conn.execute("SELECT name, seq FROM sqlite_sequence"):
        if type(last) is not int or not 0 <= last <= LARGEST_ID:
            raise Unsound(f"{table} would go on with ids that cpersona never gives")
    for key, value in conn.execute("SELECT key, value FROM meta"):
        if (key in _META and not _META[key](value)) or str(key).startswith("outbox_"):
            raise Unsound(f"its {key} is not what cpersona writes")


def _plain_tables(version: int) -> list[str]:
    """Return the tables whose values we write ourselves: all but SQLite's own and those inside a full-text index."""
    inside = {f"{kind.fts}_{part}" for kind in Kind for part in ("data", "idx", "content", "docsize", "config")}
    return sorted(
        name
        for kind, name, _, sql in _made(version, False)
        if (kind, sql[:12]) == ("table", "CREATE TABLE") and name not in inside and not name.startswith("sqlite_")
    )


_COLUMNS = 'SELECT name, type, "notnull", pk FROM pragma_table_info(?)'


class _Column(NamedTuple):
    """A column as the schema declares it; ``key`` is its place in the primary key, 0 for none."""

    name: str
    type: str
    needed: int
    key: int

    @property
    def kinds(self) -> tuple[str, str]:
        """The kinds of values that it may hold, as ``typeof`` names them."""
        kind = _TYPES[self.type]
        return kind, kind if self.needed or self.key else "null"


def _check_kinds(conn: apsw.Connection, table: str, columns: list[_Column]) -> None:
    typed = [column for column in columns if column.type in _TYPES]
    wrong: Any = conn.execute(
        f"SELECT {', '.join(f'max(typeof({column.name}) NOT IN {column.kinds})' for column in typed)} FROM {table}"
    ).fetchone()
    for column, found in zip(typed, wrong, strict=True):
        if found:
            raise Unsound(f"{table}.{column.name} holds a value of a kind that cpersona never writes")


def _check_ids(conn: apsw.Connection, table: str, columns: list[_Column]) -> None:
    """Raise Unsound for a table whose primary key is one whole number and holds one that is none of our ids."""
    keys = [column for column in columns if column.key]
    if len(keys) != 1 or keys[0].type != "INTEGER":
        return
    least: Any
    most: Any
    ((least, most),) = conn.execute(f"SELECT min({keys[0].name}), max({keys[0].name}) FROM {table}").fetchall()
    if least is not None and not 1 <= least <= most <= LARGEST_ID:
        raise Unsound(f"{table} has ids that cpersona never gives")


def _unfit(conn: apsw.Connection) -> list[dict]:
    """Return the rows that no answer carries, as {ref, reason}: they come back like every other, and are left out of
    answers.
    """
    out = []
    for kind in Kind:
        unreadable, _, uncarried = not_what_was_stored(conn, kind)
        named = sorted([*((row_id, NOT_UTF8) for row_id in unreadable), *uncarried])
        out += [{"ref": kind.ref(row_id), "reason": reason} for row_id, reason in named]
    return out[:MOST_NAMED]
