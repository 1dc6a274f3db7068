"""The SQL of the vector index: what a rebuild reads, and the scan without an index.

Rebuilds and plain scans run on connections of their own, opened for the purpose: they work while the
caller is inside a read transaction, and nothing of them outlives its use.

Contract: rows.shape, window.near.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw
import numpy as np

from ..errors import translate
from ..model.changes import VectorPut, VectorRows
from ..model.instants import created_seconds
from ..model.kinds import MEMORY, Kind, VectorKind
from ..model.scope import Scope
from . import connection
from .damaged import texts
from .scope import kind_sql
from .transaction import Transaction

CHUNK = 512
_IDENTITY = "vector_store"


@contextmanager
def reader(path: str) -> Iterator[apsw.Connection]:
    """Open a read-only connection for one piece of work. Raises the typed errors of ``translate``."""
    try:
        conn = connection.open_reading(path)
        try:
            conn.execute("PRAGMA cache_size = -4000; PRAGMA mmap_size = 0")
            yield conn
        finally:
            conn.close()
    except apsw.Error as error:
        raise translate(error) from error


def identity(conn: apsw.Connection) -> bytes | None:
    """Return the 16 bytes that tell this database from every other one, None before the first start."""
    row = conn.execute("SELECT value FROM meta WHERE key = ?", (_IDENTITY,)).fetchone()
    return None if row is None or not isinstance(row[0], bytes) or len(row[0]) != 16 else row[0]


def give_identity(tx: Transaction) -> None:
    """Write job: give the database its identity."""
    tx.execute("INSERT OR REPLACE INTO meta VALUES (?, randomblob(16))", (_IDENTITY,))


def width_of_newest(conn: apsw.Connection, kind: VectorKind) -> int | None:
    """Return the width of the newest stored vector in scan order, None where there is none."""
    if conn.execute(f"SELECT 1 FROM {kind.vectors} LIMIT 1").fetchone() is None:
        return None
    row = conn.execute(
        f"SELECT length(v.vector) / 4 FROM {kind.rows.table} m CROSS JOIN {kind.vectors} v ON v.{kind.row_column} ="
        " m.id WHERE length(v.vector) >= 4 ORDER BY m.created_at DESC, m.id LIMIT 1"
    ).fetchone()
    return None if row is None else row[0]


def latest(conn: apsw.Connection, kind: VectorKind, count: int) -> list[tuple[Any, ...]]:
    """Return (id, vector) of the highest ids: a cheap sample against an index of another database."""
    return conn.execute(f"SELECT id, vector FROM {kind.vectors} ORDER BY id DESC LIMIT ?", (count,)).fetchall()


def stored(conn: apsw.Connection, kind: VectorKind, ids: list[int] | None = None) -> Iterator[tuple[Any, ...]]:
    """Yield (id, vector) of every row that has one, or of those among ``ids``."""
    if ids is None:
        return conn.execute(f"SELECT id, vector FROM {kind.vectors} ORDER BY id")
    return conn.execute(
        f"SELECT v.id, v.vector FROM json_each(?) j CROSS JOIN {kind.vectors} v ON v.id = j.value", (json.dumps(ids),)
    )


def scan_order(conn: apsw.Connection, kind: VectorKind, scope: Scope | None = None) -> np.ndarray:
    """Return the ids of all rows in scope, with a vector or not, in scan order: created_at DESC, id ASC. int64.

    Of passages, which all have a vector, those that are there.
    """
    where, params = ("1", []) if scope is None else kind_sql(scope, kind.rows, "m.")
    ids_of = "m.id" if isinstance(kind, Kind) else "v.id"
    beside = "" if isinstance(kind, Kind) else f" CROSS JOIN {kind.vectors} v ON v.{kind.row_column} = m.id"
    found = texts(conn, f"SELECT {ids_of}, m.created_at FROM {kind.rows.table} m{beside} WHERE {where}", tuple(params))
    ids = np.array([row_id for row_id, _ in found], np.int64)
    return ids[np.lexsort((ids, -created_column([text for _, text in found])))]


def with_vectors(conn: apsw.Connection, kind: VectorKind, ids: np.ndarray) -> list[VectorPut]:
    """Return the rows among ``ids`` that have a vector, in the order asked for. Unusable bytes count as no vector."""
    return [
        VectorPut(kind, row_id, created, agent, project, channel, source, model, np.frombuffer(vector, "<f4"))
        for row_id, created, agent, project, channel, source, model, vector in _found(conn, kind, ids.tolist())
    ]


def in_bulk(conn: apsw.Connection, kind: VectorKind, ids: np.ndarray) -> VectorRows | None:
    """Return what ``with_vectors`` returns in the form that an index takes in quickly; None when no row is left."""
    found = _found(conn, kind, ids.tolist())
    return VectorRows(*zip(*found, strict=True)) if found else None


def in_scope(conn: apsw.Connection, kind: VectorKind, ids: Iterable[int], scope: Scope) -> list[VectorPut]:
    """Return those of some rows that have a vector and are in a scope, as ``with_vectors`` does."""
    where, params = kind_sql(scope, kind.rows, "m.")
    return [
        VectorPut(kind, row_id, created, agent, project, channel, source, model, np.frombuffer(vector, "<f4"))
        for row_id, created, agent, project, channel, source, model, vector in _found(conn, kind, ids, where, params)
    ]


def at_position(conn: apsw.Connection, kind: VectorKind, scope: Scope, position: int) -> tuple[str, int] | None:
    """Return created_at and id of the row at a scan position of a scope, None where there are fewer.

    The position of a row counts those before it that have a vector, of whatever model.
    """
    where, params = kind_sql(scope, kind.rows, "m.")
    id_of, beside = "v.id", f" CROSS JOIN {kind.vectors} v ON v.{kind.row_column} = m.id"
    without = "SELECT 1 FROM vector_counts WHERE agent_id = ? AND kind = ? AND width = 0"
    if isinstance(kind, Kind) and conn.execute(without, (scope.agent_id, kind)).fetchone() is None:
        id_of, beside = "m.id", ""  # every row has one, and vectors are many pages to walk over
    found = conn.execute(
        f"SELECT m.created_at, {id_of} FROM {kind.rows.table} m{beside}"
        f" WHERE {where} ORDER BY m.created_at DESC, {id_of} LIMIT 1 OFFSET ?",
        (*params, position),
    ).fetchone()
    return None if found is None else (found[0], found[1])


def newest_of(conn: apsw.Connection, kind: Kind, scope: Scope, width: int, model: str, rows: int) -> list[int]:
    """Return the ids of those of the newest ``rows`` rows with a vector in a scope that can be compared, newest first.

    ``model`` '' is comparable with every one.
    """
    where, params = kind_sql(scope, kind, "m.")
    others = conn.execute(
        "SELECT 1 FROM vector_counts WHERE agent_id = ? AND kind = ?"
        " AND (width <> ? OR model NOT IN (?, '') AND ? <> '')",
        (scope.agent_id, kind, width, model, model),
    ).fetchone()
    if others is None:  # every row of the agent has such a vector: none of them is read
        sql = f"SELECT m.id, 1 FROM {kind.table} m WHERE {where} ORDER BY m.created_at DESC, m.id LIMIT ?"
        params = [*params, rows]
    else:
        sql = (
            "SELECT m.id, length(v.vector) = ? AND (? IN ('', v.model) OR v.model = '')"
            f" FROM {kind.table} m CROSS JOIN {kind.vectors} v ON v.id = m.id"
            f" WHERE {where} ORDER BY m.created_at DESC, m.id LIMIT ?"
        )
        params = [width * 4, model, *params, rows]
    return [row_id for row_id, fits in conn.execute(sql, params) if fits]


def _found(
    conn: apsw.Connection, kind: VectorKind, ids: Iterable[int], where: str = "1", params: Sequence[Any] = ()
) -> list[tuple[Any, ...]]:
    source = "m.source_id" if kind.rows == MEMORY else "NULL"
    return texts(
        conn,
        f"SELECT v.id, m.created_at, m.agent_id, m.project_id, m.channel, {source}, v.model, v.vector"
        f" FROM json_each(?) j CROSS JOIN {kind.vectors} v ON v.id = j.value"
        f" CROSS JOIN {kind.rows.table} m ON m.id = v.{kind.row_column}"
        f" WHERE length(v.vector) > 0 AND length(v.vector) % 4 = 0 AND {where}",
        (json.dumps(list(ids)), *params),
    )


def created_column(texts: Sequence[str]) -> np.ndarray:
    """Return many created_at texts as epoch seconds, int64: ``created_seconds`` of each, quick for the usual form."""
    if len(texts) > 8 and all(len(text) == 19 and text[10] == " " for text in texts):
        try:
            return np.array(texts, "datetime64[s]").astype(np.int64)
        except ValueError:
            pass  # one of them only looks like a stamp
    return np.array([created_seconds(text) for text in texts], np.int64)
