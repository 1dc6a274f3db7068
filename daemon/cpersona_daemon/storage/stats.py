"""What a store is made of, in numbers: counts that triggers keep, ranges of one index, and a look at the newest rows.

No statement reads a table whole, however large it is.

Contract: stats.bounded.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

import apsw

from ..model.kinds import EPISODE, MEMORY, Kind
from . import damaged
from .hidden import seen

NEWEST = 10_000  # memories that are looked at one by one
NAMED = 20  # of an axis; what the others have together is told too
# Bytes of a text: the last is what has passages beyond it, see ``fields.LONG_BYTES``.
LENGTHS = (50, 100, 200, 400, 800, 1_200, 4_000, 16_000)
_AXES = {"agents": "agent_id", "projects": "project_id", "channels": "channel"}


def read(conn: apsw.Connection, agent_id: str, first: date, days: int) -> dict[str, Any]:
    """Return the numbers of an agent ('' = all): rows, memories a day from ``first`` on, by axis, and of the newest."""
    counted = {kind: _rows(conn, agent_id, kind) for kind in (MEMORY, EPISODE)}
    return {
        "memories": counted[MEMORY][0],
        "episodes": counted[EPISODE][0],
        "without_vector": counted[MEMORY][1] + counted[EPISODE][1],
        "days": [{"day": str(day), "memories": count} for day, count in _days(conn, agent_id, first, days)],
        **{name: _by_axis(conn, agent_id, column) for name, column in _AXES.items()},
        **_newest(conn, agent_id),
    }


def pages(conn: apsw.Connection) -> tuple[int, int]:
    """Return how many bytes of the database's pages are used, and how many are free."""
    size: int = conn.pragma("page_size")
    free: int = conn.pragma("freelist_count")
    used: int = conn.pragma("page_count") - free
    return size * used, size * free


def _rows(conn: apsw.Connection, agent_id: str, kind: Kind) -> tuple[int, int]:
    """Return how many rows of a kind there are, and how many of them have no vector."""
    found: tuple[int, int] = conn.execute(
        "SELECT coalesce(sum(rows), 0), coalesce(sum(rows) FILTER (WHERE width = 0), 0) FROM vector_counts"
        " WHERE kind = ?2 AND (?1 = '' OR agent_id = ?1)",
        (agent_id, kind),
    ).get
    return found


def _days(conn: apsw.Connection, agent_id: str, first: date, days: int) -> Iterable[tuple[date, int]]:
    """Return how many memories were stored on each UTC day, from the index of their times alone."""
    whose, params = ("agent_id = ? AND ", (agent_id,)) if agent_id else ("", ())
    sql = f"SELECT count(*) FROM memories WHERE {whose}created_at >= ? AND created_at < ?"
    for number in range(days):
        day = first + timedelta(days=number)
        yield day, conn.execute(sql, (*params, f"{day}", f"{day + timedelta(days=1)}")).get


def _by_axis(conn: apsw.Connection, agent_id: str, column: str) -> dict[str, Any]:
    """Return the memories under the names of an axis, most first, and how many of them NAMED names leave out."""
    found: list[Any] = conn.execute(
        f"SELECT {column}, sum(rows) AS n FROM vector_counts WHERE kind = ?2 AND (?1 = '' OR agent_id = ?1)"
        f" GROUP BY {column} ORDER BY n DESC, {column}",
        (agent_id, MEMORY),
    ).fetchall()
    return _named(found)


def _named(found: list[tuple[str, int]]) -> dict[str, Any]:
    rest = found[NAMED:]
    return {
        "most": [{"name": name, "memories": count} for name, count in found[:NAMED]],
        "others": len(rest),
        "memories_of_others": sum(count for _, count in rest),
    }


def _newest(conn: apsw.Connection, agent_id: str) -> dict[str, Any]:
    """Return sources, lengths in bytes and recalls of the newest memories, and how many were looked at."""
    whose, order, params = ("agent_id = ? AND ", "created_at", (agent_id,)) if agent_id else ("", "id", ())
    rows: list[tuple[str, int, int, str | None]] = damaged.texts(
        conn,
        "SELECT coalesce(source_id, '') AS source, octet_length(content) AS bytes, recall_count, last_recalled_at"
        f" FROM memories WHERE {whose}{seen('memories')} ORDER BY {order} DESC LIMIT {NEWEST}",
        params,
    )
    sizes = [size for _, size, _, _ in rows]
    return {
        "looked_at": len(rows),
        "sources": _named(Counter(source for source, *_ in rows).most_common()),
        "lengths": _lengths(sizes),
        "median_bytes": int(statistics.median(sizes)) if sizes else 0,
        "longest_bytes": max(sizes, default=0),
        "recalled": sum(count > 0 for _, _, count, _ in rows),
        "recalls": sum(count for _, _, count, _ in rows),
        "last_recalled_at": max((at for *_, at in rows if at), default=None),
    }


def _lengths(sizes: Iterable[int]) -> list[dict[str, int | None]]:
    found = Counter(next((most for most in LENGTHS if size <= most), None) for size in sizes)
    return [{"at_most": most, "memories": found[most]} for most in (*LENGTHS, None)]
