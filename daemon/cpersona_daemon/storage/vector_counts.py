"""How many rows of a scope a question's vector cannot be compared with, from counts that triggers keep.

The counts know the agent, the project and the channel of a row, not its source nor when it was stored. Rows with a
usable vector cost nothing here: only the buckets of the others are looked at, one for each width, model, project and
channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from ..model.kinds import MEMORY, PASSAGES, VectorKind
from ..model.scope import Scope
from .scope import axes_sql


def unusable(conn: apsw.Connection, scope: Scope, width: int, model: str) -> int:
    """Return how many rows in the axes of a scope have no vector, one of another width, or one of another known model.

    '' is a model that is not known: it is compared by its width alone, here as in a recall.
    """
    axes, params = axes_sql(scope)
    ranges: list[tuple[str, tuple[Any, ...]]] = [("width < ?", (width,)), ("width > ?", (width,))]
    if model:
        ranges += [
            ("width = ? AND model > '' AND model < ?", (width, model)),
            ("width = ? AND model > ?", (width, model)),
        ]
    steps = [
        (f"SELECT rows FROM vector_counts WHERE {axes} AND kind = ? AND {where}", (*params, kind, *values))
        for kind in scope.kinds
        for where, values in ranges
    ]
    return _sum(conn, steps)


def waiting(conn: apsw.Connection, scope: Scope) -> int:
    """Return how many rows in the axes of a scope are listed for embedding."""
    axes, params = axes_sql(scope)
    return _sum(
        conn, [(f"SELECT rows FROM backlog_counts WHERE {axes} AND kind = ?", (*params, kind)) for kind in scope.kinds]
    )


def passages(conn: apsw.Connection, scope: Scope, rows: int | None = None) -> int:
    """Return how many passages are in the axes of a scope; with ``rows``, the number of rows in all of the scope, about
    how many are in the scope where it is narrower than its axes.
    """
    found = _sum(conn, _counted(scope, [PASSAGES[kind] for kind in scope.kinds]))
    if rows is None or not found or not (scope.of_a_time or scope.source_id):
        return found
    return round(found * min(1.0, rows / max(1, _sum(conn, _counted(scope, scope.kinds)))))


def _counted(scope: Scope, kinds: Sequence[str]) -> list[tuple[str, tuple[Any, ...]]]:
    axes, params = axes_sql(scope)
    return [(f"SELECT rows FROM vector_counts WHERE {axes} AND kind = ?", (*params, kind)) for kind in kinds]


def with_vectors(conn: apsw.Connection, kind: VectorKind, scope: Scope) -> int:
    """Return how many rows of a kind in the axes of a scope have a vector."""
    axes, params = axes_sql(scope)
    return _sum(conn, [(f"SELECT rows FROM vector_counts WHERE {axes} AND kind = ? AND width > 0", (*params, kind))])


def forms(conn: apsw.Connection, kind: VectorKind, agent_id: str = "") -> list[tuple[int, str, int]]:
    """Return width, model and how many vectors of a kind are of both, of an agent or of all."""
    return [
        (width, model, count)
        for width, model, count in conn.execute(
            "SELECT width, model, sum(rows) FROM vector_counts WHERE kind = ?1 AND width > 0"
            " AND (?2 = '' OR agent_id = ?2) GROUP BY 1, 2",
            (kind, agent_id),
        )
    ]


def size(conn: apsw.Connection, agent_id: str = "") -> int:
    """Return how many memories and passages an agent has, or all have: of so many the best row of noise is the best."""
    found: Any = conn.execute(
        "SELECT coalesce(sum(rows), 0) FROM vector_counts WHERE (?1 = '' OR agent_id = ?1) AND kind IN (?2, ?3, ?4)",
        (agent_id, MEMORY, *PASSAGES.values()),
    ).get
    return int(found)


def _sum(conn: apsw.Connection, steps: list[tuple[str, tuple[Any, ...]]]) -> int:
    sql = " UNION ALL ".join(sql for sql, _ in steps)
    values = tuple(value for _, values in steps for value in values)
    count: int = conn.execute(f"SELECT coalesce(sum(rows), 0) FROM ({sql})", values).get
    return count
