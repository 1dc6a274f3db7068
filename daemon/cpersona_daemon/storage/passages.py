"""Every statement on the passages of long rows: derived from the rows, and replaced as a whole.

Which rows are to have passages is listed by triggers, in the transaction that gives a row its vector, whoever writes
it. Passages of a row that nobody sees are there and are passed over.

Contract: passages.derived, passages.split.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw

from ..model.changes import VectorDrop, VectorPut
from ..model.identity import Embedded
from ..model.kinds import MEMORY, PASSAGES, Kind, PassageKind, Rid, by_kind
from ..shared.fields import LONG_BYTES
from ..text.passages import Span
from .hidden import seen
from .transaction import Transaction


class Axes(NamedTuple):
    """What a vector index knows of a row beside its vector."""

    created_at: str
    agent_id: str
    project_id: str
    channel: str
    source_id: str | None


def put(tx: Transaction, kind: Kind, row_id: int, axes: Axes, spans: Sequence[Span], made: Sequence[Embedded]) -> None:
    """Give a row of these axes these passages in place of any others, and tell the index of them."""
    drop(tx, kind, [row_id])
    passages = PASSAGES[kind]
    for span, (vector, model) in zip(spans, made, strict=True):
        unit = vector.astype("<f4", order="C", copy=False)
        tx.execute(
            f"INSERT INTO {passages.vectors} (row_id, start, stop, model, vector) VALUES (?, ?, ?, ?, ?)",
            (row_id, span.start, span.end, model, unit.tobytes()),
        )
        tx.changes.append(VectorPut(passages, tx.conn.last_insert_rowid(), *axes, model, unit))


def drop(tx: Transaction, kind: Kind, row_ids: Iterable[int]) -> None:
    """Take the passages of rows away, whose text is another now or that are being deleted."""
    passages = PASSAGES[kind]
    gone: Any = tx.execute(
        f"SELECT p.id FROM json_each(?) j CROSS JOIN {passages.vectors} p ON p.row_id = j.value",
        (json.dumps(list(row_ids)),),
    ).fetchall()
    if gone:
        ids = [passage_id for (passage_id,) in gone]
        tx.execute(f"DELETE FROM {passages.vectors} WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(ids),))
        tx.changes += [VectorDrop(passages, passage_id) for passage_id in ids]


def by_ids(conn: apsw.Connection, passages: PassageKind, ids: Iterable[int]) -> dict[int, tuple[int, Span]]:
    """Return of each of these passages the id of its row and where it stands there, of those whose row is seen."""
    kind = passages.rows
    found: Any = conn.execute(
        f"SELECT p.id, p.row_id, p.start, p.stop FROM json_each(?) j CROSS JOIN {passages.vectors} p ON p.id = j.value"
        f" WHERE {seen(kind.table, 'p.row_id')}",
        (json.dumps(list(ids)),),
    ).fetchall()
    return {passage_id: (row_id, Span(start, stop)) for passage_id, row_id, start, stop in found}


def having(conn: apsw.Connection, rids: Iterable[Rid]) -> set[Rid]:
    """Return those of the rows that have passages."""
    return {
        (kind, row_id)
        for kind, ids in by_kind(rids).items()
        for (row_id,) in conn.execute(
            "SELECT j.value FROM json_each(?) j"
            f" WHERE EXISTS (SELECT 1 FROM {PASSAGES[kind].vectors} p WHERE p.row_id = j.value)",
            (json.dumps(ids),),
        )
    }


def of_rows(conn: apsw.Connection, rids: Iterable[Rid]) -> dict[Rid, list[tuple[int, Span]]]:
    """Return the passages of those rows that have any, in their order: the id of each and where it stands."""
    out: dict[Rid, list[tuple[int, Span]]] = {}
    for kind, ids in by_kind(rids).items():
        found: Any = conn.execute(
            f"SELECT p.row_id, p.start, p.stop, p.id FROM json_each(?) j CROSS JOIN {PASSAGES[kind].vectors} p"
            " ON p.row_id = j.value ORDER BY p.row_id, p.start",
            (json.dumps(ids),),
        )
        for row_id, start, stop, passage_id in found if ids else ():
            out.setdefault((kind, row_id), []).append((passage_id, Span(start, stop)))
    return out


def count(conn: apsw.Connection) -> dict[str, int]:
    """Return how many passages there are, of how many rows, and of how many rows they are still to be made."""
    totals = {"passages": 0, "rows": 0, "waiting": 0}
    for passages in PassageKind:
        counts: Any = conn.execute(
            f"SELECT count(*), count(DISTINCT row_id), (SELECT count(*) FROM embedding_backlog WHERE kind = ?)"
            f" FROM {passages.vectors} INDEXED BY {passages.vectors}_row",
            (passages,),
        ).get
        for name, number in zip(totals, counts, strict=True):
            totals[name] += number
    return totals


# -- health

# What ends a commit's note is not embedded: a text may be so much longer than what has passages.
_NOT_EMBEDDED_BYTES = 80


def enqueue_missing(tx: Transaction, kind: Kind, agent_id: str = "") -> int:
    """List every long row that has a vector and no passages for them, and return how many were not listed before."""
    tx.execute(
        f"INSERT OR IGNORE INTO embedding_backlog SELECT ?, m.id FROM {kind.table} m WHERE {_lacks(kind)}"
        " AND ? IN ('', m.agent_id)",
        (PASSAGES[kind], agent_id),
    )
    return tx.conn.changes()


def count_missing(conn: apsw.Connection, kind: Kind, agent_id: str = "") -> tuple[int, int]:
    """Count the long rows without passages: those listed for them, and those that nobody will make any for."""
    counts: Any = conn.execute(
        f"SELECT count(b.id), count(*) - count(b.id) FROM {kind.table} m"
        f" LEFT JOIN embedding_backlog b ON b.kind = ? AND b.id = m.id WHERE {_lacks(kind)} AND ? IN ('', m.agent_id)",
        (PASSAGES[kind], agent_id),
    ).get
    listed, forgotten = counts
    return listed, forgotten


def _lacks(kind: Kind) -> str:
    """Return the condition that a long row has a vector and no passages."""
    text, passages = ("content" if kind is MEMORY else "summary"), PASSAGES[kind]
    return (
        f"octet_length(m.{text}) > {LONG_BYTES + _NOT_EMBEDDED_BYTES}"
        f" AND m.id IN (SELECT id FROM {kind.vectors}) AND m.id NOT IN (SELECT row_id FROM {passages.vectors})"
    )


def rows_having(conn: apsw.Connection, passages: PassageKind, ids: Iterable[int]) -> list[int]:
    """Return the ids of the rows that these passages belong to, seen or not."""
    found: Any = conn.execute(
        f"SELECT DISTINCT row_id FROM {passages.vectors} WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    ).fetchall()
    return [row_id for (row_id,) in found]
