"""Every statement on episodes.

Contract: rows.shape, episode.archive, rows.text.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from ..model.cuts import Whole
from ..model.instants import created_text
from ..model.kinds import EPISODE
from ..model.scope import Scope
from . import associations, backlog, damaged, hidden, history, past, postings, tables
from .damaged import Unreadable
from .scope import pool_sql, row_sql
from .transaction import Transaction


@dataclass(frozen=True, slots=True)
class NewEpisode:
    """An episode about to be written; an empty created_at means now."""

    agent_id: str
    summary: str
    keywords: str = ""
    project_id: str = ""
    channel: str = ""
    start_time: str | None = None
    end_time: str | None = None
    resolved: bool = False
    created_at: str = ""
    whole: Whole | None = None  # what the summary was before it was cut


@dataclass(frozen=True, slots=True)
class Episode:
    """A stored episode as it is read back."""

    id: int
    agent_id: str
    project_id: str
    channel: str
    summary: str
    keywords: str
    start_time: str | None
    end_time: str | None
    resolved: int
    created_at: str
    whole_length: int | None
    whole_key: bytes | None

    @property
    def cut(self) -> dict | None:
        """The mark of a summary that was cut, None for one that is whole."""
        return (
            None
            if self.whole_length is None or self.whole_key is None
            else Whole(self.whole_length, self.whole_key).told(self.summary)
        )


_FULL = (
    "id, agent_id, project_id, channel, summary, keywords, start_time, end_time, resolved, created_at, whole_length,"
    " whole_key"
)


def insert(tx: Transaction, new: NewEpisode, episode_id: int | None = None) -> int:
    """Write an episode and its postings and return its id; one that is gone may come back under its own."""
    tx.execute(
        "INSERT INTO episodes (id, agent_id, project_id, channel, created_at, start_time, end_time, resolved, keywords,"
        " summary, whole_length, whole_key) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            episode_id,
            new.agent_id,
            new.project_id,
            new.channel,
            new.created_at or created_text(tx.now),
            new.start_time,
            new.end_time,
            int(new.resolved),
            new.keywords,
            new.summary,
            *((new.whole.length, new.whole.key) if new.whole else (None, None)),
        ),
    )
    if episode_id is not None:
        postings.put_episode(tx.conn, episode_id, new.summary, new.keywords)
        return episode_id
    episode_id = tx.conn.last_insert_rowid()
    postings.add_episode(tx.conn, episode_id, new.agent_id, new.summary, new.keywords)
    return episode_id


def delete(tx: Transaction, episode_id: int, noted: bool = True) -> None:
    """Remove an episode with its postings, vector, backlog entry, mentions and relations; that it went is ``noted``,
    and what it was is kept.
    """
    if noted:
        history.note_deletion(tx, EPISODE, episode_id)
        past.keep_deleted(tx, EPISODE, episode_id)
    postings.drop(tx.conn, EPISODE, episode_id)
    backlog.detach(tx, EPISODE, [episode_id])
    backlog.forget(tx, EPISODE, episode_id)
    associations.forget_record(tx, EPISODE, episode_id)
    tx.execute("DELETE FROM episodes WHERE id = ?", (episode_id,))


def owner(conn: apsw.Connection, episode_id: int) -> tuple[str, str] | None:
    """Return the agent and project that an episode belongs to, or None when there is no such episode."""
    return conn.execute(
        f"SELECT agent_id, project_id FROM episodes WHERE id = ? AND {hidden.seen('episodes')}", (episode_id,)
    ).fetchone()


def _read(row: tuple | Unreadable) -> Episode | Unreadable:
    if isinstance(row, Unreadable):
        return row
    episode = Episode(*row)
    reason = damaged.unfit(episode.summary + episode.keywords)
    return episode if reason is None else Unreadable(episode.id, reason)


def by_ids(
    conn: apsw.Connection, ids: list[int], scope: Scope | None = None, agent_id: str | None = None
) -> dict[int, Episode | Unreadable]:
    """Return the episodes with these ids that are visible in the scope (or owned by the agent), by id."""
    seen = None if scope is None else row_sql(scope, EPISODE.table)
    return {row.id: row for row in map(_read, tables.by_ids(conn, EPISODE.table, _FULL, ids, seen, agent_id))}


def newest(
    conn: apsw.Connection, agent_id: str, project_id: str | None, limit: int, channel: str = ""
) -> list[Episode | Unreadable]:
    """Return episodes created_at DESC, id DESC; agent '' lists all agents."""
    found = map(_read, tables.newest(conn, EPISODE.table, _FULL, agent_id, project_id, limit, channel=channel))
    return tables.within_a_frame(found, lambda episode: len(episode.summary) + len(episode.keywords))


def count_in_scope(conn: apsw.Connection, scope: Scope, at_most: int) -> int:
    """Count episodes in the agent, project and channel scope, stopping at ``at_most``."""
    return tables.count_in_scope(conn, EPISODE.table, scope, at_most)


def boundary(conn: apsw.Connection, scope: Scope) -> str | None:
    """Return the created_at of the newest episode in the axes of a scope, or None without episodes."""
    condition, params = pool_sql(scope, EPISODE.table)
    row = conn.execute(
        f"SELECT created_at FROM episodes WHERE {condition} ORDER BY created_at DESC LIMIT 1", tuple(params)
    ).fetchone()
    return None if row is None else row[0]
