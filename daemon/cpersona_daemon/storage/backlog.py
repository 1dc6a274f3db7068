"""Every statement on vectors to be made and on attaching them.

A row without a vector that should have one stands in embedding_backlog; the row itself is not touched.

Contract: backlog.order, embedding.identity.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from ..model.changes import VectorPut
from ..model.identity import Embedded, may_change_width
from ..model.kinds import EPISODE, MEMORY, Kind
from ..text.embedded import episode_text, memory_text
from . import damaged
from .transaction import Transaction

# What a vector was made from: the content's digest of a memory, summary and keywords of an episode.
Origin = bytes | tuple[str, str]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A row to be embedded: its text, and what must still be true when the vector is attached."""

    kind: Kind
    id: int
    text: str
    origin: Origin


def enqueue(tx: Transaction, kind: str, row_id: int) -> None:
    """List a row for embedding; a row that is listed stays listed once."""
    tx.execute("INSERT OR IGNORE INTO embedding_backlog VALUES (?, ?)", (kind, row_id))


def forget(tx: Transaction, kind: str, row_id: int) -> None:
    """Take a row off the list: it has its vector, or it is gone."""
    tx.execute("DELETE FROM embedding_backlog WHERE kind = ? AND id = ?", (kind, row_id))


def count(conn: apsw.Connection, most: int | None = None) -> int:
    """Return how many rows wait, counting no further than ``most``."""
    listed = conn.execute(
        "SELECT count(*) FROM (SELECT 1 FROM embedding_backlog LIMIT ?)", (-1 if most is None else most,)
    )
    return listed.get


def next_batch(conn: apsw.Connection, most: int, skip: frozenset[tuple[str, int]] = frozenset()) -> list[Waiting]:
    """Return up to ``most`` rows, the newest first: what was stored a moment ago is asked for first.

    Episodes, of which there are few, come before memories. Rows in ``skip`` are left out.
    """
    reach = most + len(skip)
    episodes = damaged.texts(
        conn,
        "SELECT b.id, e.summary, e.keywords FROM embedding_backlog b JOIN episodes e ON e.id = b.id"
        " WHERE b.kind = ? ORDER BY b.id DESC LIMIT ?",
        (EPISODE, reach),
    )
    found = [
        Waiting(EPISODE, i, episode_text(summary, keywords), (summary, keywords)) for i, summary, keywords in episodes
    ]
    memories = damaged.texts(
        conn,
        "SELECT b.id, m.content, m.content_key FROM embedding_backlog b JOIN memories m ON m.id = b.id"
        " WHERE b.kind = ? ORDER BY b.id DESC LIMIT ?",
        (MEMORY, reach),
    )
    found += [Waiting(MEMORY, i, memory_text(content), key) for i, content, key in memories]
    return [row for row in found if (row.kind, row.id) not in skip][:most]


def forget_missing(tx: Transaction) -> int:
    """Take rows off the list that no longer exist and return how many."""
    tx.execute("DELETE FROM embedding_backlog WHERE kind = ? AND id NOT IN (SELECT id FROM memories)", (MEMORY,))
    gone = tx.conn.changes()
    tx.execute("DELETE FROM embedding_backlog WHERE kind = ? AND id NOT IN (SELECT id FROM episodes)", (EPISODE,))
    return gone + tx.conn.changes()


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
    select, insert = _ATTACH[kind]
    found = damaged.texts(tx.conn, select, (row_id,))
    if not found:
        forget(tx, kind, row_id)
        return False
    created_at, agent_id, project_id, channel, source_id, *now = found[0]
    if origin is not None and origin != (tuple(now) if kind == EPISODE else now[0]):
        return False
    model, unit = made.model, made.vector.astype("<f4", order="C", copy=False)
    tx.execute(insert, (row_id, model, unit.tobytes()))
    forget(tx, kind, row_id)
    remember_width(tx, model, len(unit))
    tx.changes.append(VectorPut(kind, row_id, created_at, agent_id, project_id, channel, source_id, model, unit))
    return True


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
