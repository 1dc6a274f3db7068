"""Every statement on vectors to be made, on attaching them and on taking them away.

A row without a vector that should have one stands in embedding_backlog; the row itself is not touched. So does a long
row whose passages are to be made, under the kind of its passages.

Contract: backlog.order, embedding.identity, passages.derived.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apsw

from ..model.changes import VectorDrop, VectorPut
from ..model.identity import Embedded, may_change_width
from ..model.kinds import EPISODE, MEMORY, PASSAGES, Kind, PassageKind
from ..text import passages as texts
from ..text.embedded import episode_text, memory_text
from ..text.passages import Span
from . import damaged, passages
from .hidden import seen
from .passages import Axes
from .transaction import Transaction

_LARGEST_ID = (1 << 63) - 1
# What a vector was made from: the content's digest of a memory, summary and keywords of an episode.
Origin = bytes | tuple[str, str]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A row to be embedded: its texts, and what must still be true when the vectors are attached.

    The text alone for the vector of the row; with ``spans`` the passages that stand there in it.
    """

    kind: Kind
    id: int
    texts: tuple[str, ...]
    origin: Origin
    spans: tuple[Span, ...] | None = None

    @property
    def listed(self) -> tuple[str, int]:
        """The entry of the list that it was read from."""
        return (self.kind if self.spans is None else PASSAGES[self.kind]), self.id


def enqueue(tx: Transaction, kind: str, row_id: int) -> None:
    """List a row for embedding; a row that is listed stays listed once."""
    tx.execute("INSERT OR IGNORE INTO embedding_backlog VALUES (?, ?)", (kind, row_id))


def forget(tx: Transaction, kind: str, row_id: int) -> None:
    """Take a row off the list: it has its vector, or it is gone."""
    tx.execute("DELETE FROM embedding_backlog WHERE kind = ? AND id = ?", (kind, row_id))


def count(conn: apsw.Connection, most: int | None = None) -> int:
    """Return how many rows wait for their vector, counting no further than ``most``."""
    return _count(conn, tuple(Kind), most)


def count_passages(conn: apsw.Connection, most: int | None = None) -> int:
    """Return how many rows wait for their passages, counting no further than ``most``."""
    return _count(conn, tuple(PassageKind), most)


def newest(conn: apsw.Connection) -> dict[str, int]:
    """Return the largest id of each kind of row: what is stored later has a larger one."""
    return {kind: conn.execute(f"SELECT coalesce(max(id), 0) FROM {kind.table}").get for kind in Kind}


def count_upto(conn: apsw.Connection, upto: Mapping[str, int]) -> tuple[int, int]:
    """Return how many rows wait for their vector and how many for their passages, of those up to an id of their kind.

    A kind that is not named counts whole.
    """
    counted = [0, 0]
    for kind in Kind:
        for place, listed in enumerate((kind, PASSAGES[kind])):
            counted[place] += conn.execute(
                "SELECT count(*) FROM embedding_backlog WHERE kind = ? AND id <= ?",
                (listed, upto.get(kind, _LARGEST_ID)),
            ).get
    return counted[0], counted[1]


def _count(conn: apsw.Connection, kinds: Sequence[str], most: int | None) -> int:
    listed = conn.execute(
        "SELECT count(*) FROM (SELECT 1 FROM embedding_backlog WHERE kind IN (?, ?) LIMIT ?)",
        (*kinds, -1 if most is None else most),
    )
    return listed.get


def next_batch(conn: apsw.Connection, most: int, skip: frozenset[tuple[str, int]] = frozenset()) -> list[Waiting]:
    """Return up to ``most`` rows, the newest first: what was stored a moment ago is asked for first.

    Episodes, of which there are few, come before memories. Rows in ``skip`` are left out. Where no row waits for its
    vector, one that waits for its passages, which are many texts.
    """
    found = [
        Waiting(EPISODE, i, (episode_text(summary, keywords),), (summary, keywords))
        for i, summary, keywords in _listed_episodes(conn, EPISODE, most + len(skip))
    ]
    found += [
        Waiting(MEMORY, i, (memory_text(content),), key)
        for i, content, key in _listed_memories(conn, MEMORY, most + len(skip))
    ]
    left = [row for row in found if row.listed not in skip][:most]
    return left or _next_passages(conn, skip)


def _next_passages(conn: apsw.Connection, skip: frozenset[tuple[str, int]]) -> list[Waiting]:
    """Return the newest row that waits for its passages, none where none does."""
    reach = 1 + len(skip)
    listed: list[tuple[Kind, int, str, Origin]] = [
        (EPISODE, i, summary, (summary, keywords))
        for i, summary, keywords in _listed_episodes(conn, PassageKind.OF_EPISODE, reach)
    ]
    listed += [
        (MEMORY, i, memory_text(content), key)
        for i, content, key in _listed_memories(conn, PassageKind.OF_MEMORY, reach)
    ]
    for kind, row_id, text, origin in listed:
        if (PASSAGES[kind], row_id) not in skip:
            spans = tuple(texts.split(text))
            return [Waiting(kind, row_id, tuple(text[start:end] for start, end in spans), origin, spans)]
    return []


def _listed_episodes(conn: apsw.Connection, listed: str, most: int) -> list[tuple[int, str, str]]:
    return damaged.texts(
        conn,
        "SELECT b.id, e.summary, e.keywords FROM embedding_backlog b JOIN episodes e ON e.id = b.id"
        f" WHERE b.kind = ? AND {seen('episodes', 'b.id')} ORDER BY b.id DESC LIMIT ?",
        (listed, most),
    )


def _listed_memories(conn: apsw.Connection, listed: str, most: int) -> list[tuple[int, str, bytes]]:
    return damaged.texts(
        conn,
        "SELECT b.id, m.content, m.content_key FROM embedding_backlog b JOIN memories m ON m.id = b.id"
        f" WHERE b.kind = ? AND {seen('memories', 'b.id')} ORDER BY b.id DESC LIMIT ?",
        (listed, most),
    )


def forget_missing(tx: Transaction) -> int:
    """Take rows off the list that no longer exist and return how many."""
    gone = 0
    for kind in Kind:
        tx.execute(
            f"DELETE FROM embedding_backlog WHERE kind IN (?, ?) AND id NOT IN (SELECT id FROM {kind.table})",
            (kind, PASSAGES[kind]),
        )
        gone += tx.conn.changes()
    return gone


# An upsert: OR REPLACE would fire none of the triggers that count vectors.
_PUT = (
    "(id, model, vector) VALUES (?, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET model = excluded.model, vector = excluded.vector"
)
_ATTACH = {
    MEMORY: (
        "SELECT created_at, agent_id, project_id, channel, source_id, content_key FROM memories WHERE id = ?",
        f"INSERT INTO memory_vectors {_PUT}",
    ),
    EPISODE: (
        "SELECT created_at, agent_id, project_id, channel, NULL, summary, keywords FROM episodes WHERE id = ?",
        f"INSERT INTO episode_vectors {_PUT}",
    ),
}


def attach_or_enqueue(tx: Transaction, kind: Kind, row_id: int, made: Embedded | None, later: bool) -> None:
    """Give a row that is being written its vector, or list it for one where an embedder exists but made none yet."""
    if made is not None:
        attach_vector(tx, kind, row_id, made)
    elif later:
        enqueue(tx, kind, row_id)


def attach_vector(tx: Transaction, kind: Kind, row_id: int, made: Embedded, origin: Origin | None = None) -> bool:
    """Give a row its vector, tell the vector index and take the row off the list.

    With an ``origin`` the vector is refused (False) when the row has changed since; such a row keeps its
    place in the list. A row that is gone is refused too and leaves the list.
    """
    axes = _unchanged(tx, (kind, row_id), kind, origin)
    if axes is None:
        return False
    model, unit = made.model, made.vector.astype("<f4", order="C", copy=False)
    tx.execute(_ATTACH[kind][1], (row_id, model, unit.tobytes()))
    forget(tx, kind, row_id)
    remember_width(tx, model, len(unit))
    tx.changes.append(VectorPut(kind, row_id, *axes, model, unit))
    return True


def attach(tx: Transaction, row: Waiting, made: Sequence[Embedded]) -> bool:
    """Give a row what was made for it, its vector or its passages; refused as ``attach_vector`` says."""
    if row.spans is None:
        return attach_vector(tx, row.kind, row.id, made[0], row.origin)
    axes = _unchanged(tx, row.listed, row.kind, row.origin)
    if axes is None:
        return False
    passages.put(tx, row.kind, row.id, axes, row.spans, made)
    forget(tx, *row.listed)
    return True


def _unchanged(tx: Transaction, listed: tuple[str, int], kind: Kind, origin: Origin | None) -> Axes | None:
    """Return the axes of a row, None where it is gone, which takes it off the list, or has changed since."""
    found = damaged.texts(tx.conn, _ATTACH[kind][0], (listed[1],))
    if not found:
        forget(tx, *listed)
        return None
    axes, now = found[0][:5], tuple(found[0][5:])
    return None if origin is not None and origin != (now if kind == EPISODE else now[0]) else Axes(*axes)


def detach(tx: Transaction, kind: Kind, row_ids: Sequence[int]) -> None:
    """Take the vectors and passages of rows away, as far as they have any, and tell the vector index."""
    named = json.dumps(list(row_ids))
    whose = dict(
        tx.execute(f"SELECT m.id, m.agent_id FROM json_each(?) j CROSS JOIN {kind.table} m ON m.id = j.value", (named,))
    )
    tx.execute(f"DELETE FROM {kind.vectors} WHERE id IN (SELECT value FROM json_each(?))", (named,))
    tx.changes += [VectorDrop(kind, row_id, whose.get(row_id, "")) for row_id in row_ids]
    passages.drop(tx, kind, row_ids)


def make_again(tx: Transaction, of: PassageKind, ids: Sequence[int]) -> None:
    """Take away the passages of the rows that these belong to, and list the rows for new ones."""
    row_ids = passages.rows_having(tx.conn, of, ids)
    passages.drop(tx, of.rows, row_ids)
    for row_id in row_ids:
        enqueue(tx, of, row_id)


def known_width(conn: apsw.Connection) -> tuple[str, int] | None:
    """Return the identity and the dimension of the database's vectors, or None before the first."""
    found = dict(conn.execute("SELECT key, value FROM meta WHERE key IN ('embedding_dimension', 'embedding_model')"))
    return (found["embedding_model"], found["embedding_dimension"]) if len(found) == 2 else None


def remember_width(tx: Transaction, model: str, dimension: int) -> None:
    """Note which model and width the database's vectors are of, where that is news."""
    known = known_width(tx.conn)
    if known is not None and not may_change_width(known[0], model) and (known[0] or not model):
        return
    if known != (model, dimension):
        tx.execute(
            "INSERT OR REPLACE INTO meta VALUES ('embedding_dimension', ?), ('embedding_model', ?)", (dimension, model)
        )
