"""The statements of a merge that takes many transactions: what is to be copied, and which rows changed meanwhile.

Changes are noted by triggers of the writer's own connection, which no other connection sees and no restart finds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import apsw

from ..model.cuts import Whole
from ..model.kinds import EPISODE, MEMORY, Kind
from . import episodes, memories
from .damaged import Unreadable, rows, unfit
from .hidden import seen
from .transaction import Transaction


@dataclass(frozen=True, slots=True)
class Copyable:
    """A row of the source as one of the target, with its model and vector where it has them; ``waits`` for one that is
    listed for embedding.
    """

    id: int
    new: memories.NewMemory | episodes.NewEpisode
    model: str
    vector: bytes | None
    waits: bool


_VECTOR = "v.model, v.vector, b.id IS NOT NULL"
_MEMORIES = (
    "SELECT m.id, m.content, m.project_id, m.channel, m.msg_id, m.source, m.timestamp, m.metadata, m.created_at,"
    f" m.locked, m.recall_count, m.last_recalled_at, m.whole_length, m.content_key, {_VECTOR} FROM json_each(?) j"
    " CROSS JOIN memories m ON m.id = j.value LEFT JOIN memory_vectors v ON v.id = m.id"
    " LEFT JOIN embedding_backlog b ON b.kind = 'mem' AND b.id = m.id"
    f" WHERE m.agent_id = ? AND {seen('memories', 'm.id')}"
)
_EPISODES = (
    "SELECT m.id, m.summary, m.keywords, m.project_id, m.channel, m.start_time, m.end_time, m.resolved, m.created_at,"
    f" m.whole_length, m.whole_key, {_VECTOR} FROM json_each(?) j CROSS JOIN episodes m ON m.id = j.value"
    " LEFT JOIN episode_vectors v ON v.id = m.id LEFT JOIN embedding_backlog b ON b.kind = 'ep' AND b.id = m.id"
    f" WHERE m.agent_id = ? AND {seen('episodes', 'm.id')}"
)


def read(conn: apsw.Connection, kind: Kind, ids: list[int], source: str, target: str) -> list[Copyable | Unreadable]:
    """Return those of the source's rows that are there, in the order of ``ids``, as rows of the target: with age, lock
    and counters.

    A row that no answer can carry is an Unreadable: it is not to be there twice.
    """
    statement, made = _READ[kind]
    found: list[Copyable | Unreadable] = []
    for row in rows(conn, statement, (json.dumps(ids), source)):
        if isinstance(row, Unreadable):
            found.append(row)
            continue
        new, reason = made(target, row)
        if reason is not None:
            found.append(Unreadable(row[0], reason))
        else:
            found.append(Copyable(row[0], new, row[-3] or "", row[-2], bool(row[-1])))
    return found


def _memory(agent_id: str, row: Any) -> tuple[memories.NewMemory, str | None]:
    """Return a row as one of the target, and why no answer carries it, None where one does."""
    whole = None if row[12] is None else Whole(*row[12:14])
    new = memories.NewMemory(*(agent_id, *row[1:9], bool(row[9]), *row[10:12], whole))
    return new, unfit(new.content, new.source, new.metadata)


def _episode(agent_id: str, row: Any) -> tuple[episodes.NewEpisode, str | None]:
    """The same of an episode."""
    whole = None if row[9] is None else Whole(*row[9:11])
    new = episodes.NewEpisode(*(agent_id, *row[1:7], bool(row[7]), row[8], whole))
    return new, unfit(new.summary + new.keywords)


_READ: dict[Kind, tuple[str, Callable[[str, Any], tuple[memories.NewMemory | episodes.NewEpisode, str | None]]]] = {
    MEMORY: (_MEMORIES, _memory),
    EPISODE: (_EPISODES, _episode),
}


def watch(tx: Transaction, source: str, target: str) -> None:
    """Begin to note which rows of the source are changed or deleted, and which of the target are deleted."""
    unwatch(tx)
    tx.execute(
        "CREATE TEMP TABLE merge_source (agent_id TEXT); CREATE TEMP TABLE merge_agents (agent_id TEXT);"
        " CREATE TEMP TABLE merge_changed (kind TEXT, id INTEGER, PRIMARY KEY (kind, id)) WITHOUT ROWID"
    )
    tx.execute("INSERT INTO temp.merge_source VALUES (?)", (source,))
    tx.execute("INSERT INTO temp.merge_agents VALUES (?), (?)", (source, target))
    for kind in Kind:
        for event, agents in (("UPDATE", "merge_source"), ("DELETE", "merge_agents")):
            tx.execute(
                f"CREATE TEMP TRIGGER merge_{event}_{kind.table} AFTER {event} ON main.{kind.table}"
                f" WHEN old.agent_id IN {agents}"
                f" BEGIN INSERT OR IGNORE INTO merge_changed VALUES ('{kind}', old.id); END"
            )


def unwatch(tx: Transaction) -> None:
    """Note nothing any more, and forget what was noted."""
    for kind in Kind:
        for event in ("UPDATE", "DELETE"):
            tx.execute(f"DROP TRIGGER IF EXISTS temp.merge_{event}_{kind.table}")
    tx.execute(
        "DROP TABLE IF EXISTS temp.merge_source; DROP TABLE IF EXISTS temp.merge_agents;"
        " DROP TABLE IF EXISTS temp.merge_changed"
    )


def count_changed(conn: apsw.Connection) -> int:
    """Return how many rows are noted."""
    count: Any
    ((count,),) = conn.execute("SELECT count(*) FROM temp.merge_changed").fetchall()
    return count


def take_changed(tx: Transaction, at_most: int = -1) -> list[tuple[Kind, int]]:
    """Return (kind, id) of rows noted since, and take them off the list."""
    found: list[Any] = tx.execute("SELECT kind, id FROM temp.merge_changed LIMIT ?", (at_most,)).fetchall()
    noted = [(Kind(kind), row_id) for kind, row_id in found]
    for kind, row_id in noted:
        tx.execute("DELETE FROM temp.merge_changed WHERE kind = ? AND id = ?", (kind, row_id))
    return noted


def hide_relations_of_hidden(tx: Transaction, agent_id: str) -> None:
    """Let nobody see the agent's relations that name a hidden record."""
    ends = " OR ".join(
        f"{end}_kind = '{kind}' AND {end}_id IN hidden_{kind.table}" for end in ("subject", "object") for kind in Kind
    )
    tx.execute(
        f"INSERT OR IGNORE INTO hidden_relations SELECT id FROM relations WHERE agent_id = ? AND ({ends})", (agent_id,)
    )
