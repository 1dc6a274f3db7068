"""What check_health asks the database, and what its repairs and reindex write.

Contract: health.checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw

from ..model.cuts import key_of_bytes
from ..model.kinds import EPISODE, MEMORY, Kind, VectorKind
from . import connection, damaged, former, migrations, postings
from .damaged import Unreadable
from .frequencies import rewritten
from .transaction import Transaction

_MERGE_PAGES = 256


def _of(agent_id: str, alias: str = "m.") -> tuple[str, tuple[Any, ...]]:
    return (f"{alias}agent_id = ?", (agent_id,)) if agent_id else ("1", ())


def _one(conn: apsw.Connection, sql: str, params: tuple[Any, ...] = ()) -> int:
    count: int = conn.execute(sql, params).get
    return count


# -- SQLite itself


def damage(conn: apsw.Connection, thorough: bool, most: int) -> list[str]:
    """Return what SQLite finds wrong with the file, nothing when it is sound.

    Thorough also compares indexes with rows.
    """
    return _pragma_check(conn, f"PRAGMA {'integrity_check' if thorough else 'quick_check'}({most:d})")


def _pragma_check(conn: apsw.Connection, pragma: str) -> list[str]:
    # On a connection of its own: FTS5 checks against the structure that a connection remembers, and one that has not
    # searched since the last merge would report damage that is not there. It also reads the disk, not a warm cache.
    fresh = connection.open_reading(conn.filename)
    try:
        found = [text for (text,) in fresh.execute(pragma)]
    except apsw.CorruptError as error:
        return [str(error)]
    finally:
        fresh.close()
    return [] if found == ["ok"] else found


def foreign_key_violations(conn: apsw.Connection) -> dict[str, int]:
    """Count rows whose owner is gone, by table."""
    out: dict[str, int] = {}
    for table, *_ in conn.execute("PRAGMA foreign_key_check"):
        out[table] = out.get(table, 0) + 1
    return out


def delete_ownerless(tx: Transaction) -> int:
    """Remove rows whose owner is gone and return how many."""
    found = [(table, key) for table, key, *_ in tx.execute("PRAGMA foreign_key_check") if key is not None]
    for table, key in found:
        tx.execute(f"DELETE FROM {table} WHERE rowid = ?", (key,))
    return len(found)


def schema_versions(conn: apsw.Connection) -> tuple[list[int], list[int]]:
    """Return the migrations that the database records and those that this program has."""
    return [v for (v,) in conn.execute("SELECT version FROM schema_migrations ORDER BY version")], [
        v for v, _, _ in migrations.MIGRATIONS
    ]


# -- postings


def postings_damage(conn: apsw.Connection, kind: Kind) -> str | None:
    """Return what is wrong inside a kind's full-text index, None when it is sound."""
    found = _pragma_check(conn, f"PRAGMA quick_check('{kind.fts}')")
    return found[0] if found else None


def rows_without_postings(conn: apsw.Connection, kind: Kind) -> list[int]:
    """Return the ids of rows that the words cannot find."""
    waiting = f" AND id NOT IN (SELECT id FROM {kind.fts}_former_docsize)" if former.present(conn) else ""
    return [
        i
        for (i,) in conn.execute(
            f"SELECT id FROM {kind.table} WHERE id NOT IN (SELECT id FROM {kind.fts}_docsize){waiting} ORDER BY id"
        )
    ]


def postings_without_row(conn: apsw.Connection, kind: Kind) -> list[int]:
    """Return the ids of postings whose row is gone."""
    return [
        i
        for (i,) in conn.execute(
            f"SELECT id FROM {kind.fts}_docsize WHERE id NOT IN (SELECT id FROM {kind.table}) ORDER BY id"
        )
    ]


def put_postings(tx: Transaction, kind: Kind, ids: list[int]) -> int:
    """Write the postings of these rows anew and return how many rows that were; rows that are gone are passed over."""
    done = 0
    for row_id in ids:
        if kind == MEMORY:
            row = damaged.texts(tx.conn, "SELECT content FROM memories WHERE id = ?", (row_id,))
            if row:
                postings.put_memory(tx.conn, row_id, *row[0])
        else:
            row = damaged.texts(tx.conn, "SELECT summary, keywords FROM episodes WHERE id = ?", (row_id,))
            if row:
                postings.put_episode(tx.conn, row_id, *row[0])
        done += bool(row)
    return done


def drop_postings(tx: Transaction, kind: Kind, ids: list[int]) -> int:
    """Remove the postings of these ids."""
    for row_id in ids:
        postings.drop(tx.conn, kind, row_id)
    return len(ids)


def clear_postings(tx: Transaction, kind: Kind) -> None:
    """Empty a full-text index, damaged or not; its rows must be written again."""
    tx.execute(f"INSERT INTO {kind.fts} ({kind.fts}) VALUES ('delete-all')")
    rewritten(tx.conn, kind)


def merge_postings(tx: Transaction, kind: Kind, begin: bool) -> bool:
    """Do a piece of the work that makes an index compact, and tell whether more is left."""
    return postings.tidy(tx, kind, _MERGE_PAGES, begin)


def ids_after(conn: apsw.Connection, kind: Kind, after: int, most: int) -> list[int]:
    """Return the next ids of a kind, ascending."""
    return [i for (i,) in conn.execute(f"SELECT id FROM {kind.table} WHERE id > ? ORDER BY id LIMIT ?", (after, most))]


# -- vectors


def count_rows(conn: apsw.Connection, kind: Kind, agent_id: str = "") -> int:
    """Count the rows of a kind."""
    where, params = _of(agent_id)
    return _one(conn, f"SELECT count(*) FROM {kind.table} m WHERE {where}", params)


def usable_vectors(conn: apsw.Connection, kind: VectorKind) -> int:
    """Count the stored vectors that are at least a whole number of float32 values."""
    return _one(conn, f"SELECT count(*) FROM {kind.vectors} WHERE length(vector) > 0 AND length(vector) % 4 = 0")


def broken_vectors(conn: apsw.Connection, kind: VectorKind, agent_id: str = "") -> list[int]:
    """Return the ids of stored vectors that are no whole number of float32 values."""
    where, params = _of(agent_id)
    return [
        i
        for (i,) in conn.execute(
            f"SELECT v.id FROM {kind.vectors} v JOIN {kind.rows.table} m ON m.id = v.{kind.row_column}"
            f" WHERE (length(v.vector) = 0 OR length(v.vector) % 4) AND {where} ORDER BY v.id",
            params,
        )
    ]


def vectors_of(conn: apsw.Connection, kind: VectorKind, agent_id: str = "") -> Iterator[tuple[Any, ...]]:
    """Yield (id, bytes) of every stored vector."""
    where, params = _of(agent_id)
    return conn.execute(
        f"SELECT v.id, v.vector FROM {kind.vectors} v JOIN {kind.rows.table} m ON m.id = v.{kind.row_column}"
        f" WHERE {where} ORDER BY v.id",
        params,
    )


def without_vector(conn: apsw.Connection, kind: Kind, agent_id: str = "") -> tuple[int, int]:
    """Count the rows without a vector: those listed for embedding, and those that nobody will embed."""
    where, params = _of(agent_id)
    counts: tuple[int, int] = conn.execute(
        f"SELECT count(b.id), count(*) - count(b.id) FROM {kind.table} m LEFT JOIN embedding_backlog b ON b.kind = ?"
        f" AND b.id = m.id WHERE {where} AND m.id NOT IN (SELECT id FROM {kind.vectors})",
        (kind, *params),
    ).get
    return counts


_FOREIGN = "(length(v.vector) <> ? OR (? <> '' AND v.model <> '' AND v.model <> ?))"


def foreign_vectors(
    conn: apsw.Connection, kind: VectorKind, model: str, dimension: int, agent_id: str = ""
) -> tuple[int, int]:
    """Count the vectors of another width or known model: those whose row is listed for embedding, and the others."""
    where, params = _of(agent_id)
    counts: tuple[int, int] = conn.execute(
        f"SELECT count(b.id), count(*) - count(b.id) FROM {kind.vectors} v"
        f" JOIN {kind.rows.table} m ON m.id = v.{kind.row_column}"
        f" LEFT JOIN embedding_backlog b ON b.kind = ? AND b.id = m.id WHERE {where} AND {_FOREIGN}",
        (kind, *params, 4 * dimension, model, model),
    ).get
    return counts


def enqueue_missing(tx: Transaction, kind: Kind, agent_id: str = "") -> int:
    """List every row without a vector for embedding and return how many were not listed before."""
    where, params = _of(agent_id)
    tx.execute(
        f"INSERT OR IGNORE INTO embedding_backlog SELECT ?, m.id FROM {kind.table} m"
        f" WHERE m.id NOT IN (SELECT id FROM {kind.vectors}) AND {where}",
        (kind, *params),
    )
    return tx.conn.changes()


def enqueue_foreign(tx: Transaction, kind: VectorKind, model: str, dimension: int, agent_id: str = "") -> int:
    """List every row whose vector, or one of whose passages, is of another width or known model; return how many were
    not listed before.
    """
    where, params = _of(agent_id)
    tx.execute(
        f"INSERT OR IGNORE INTO embedding_backlog SELECT DISTINCT ?, v.{kind.row_column} FROM {kind.vectors} v"
        f" JOIN {kind.rows.table} m ON m.id = v.{kind.row_column} WHERE {_FOREIGN} AND {where}",
        (kind, 4 * dimension, model, model, *params),
    )
    return tx.conn.changes()


# -- rows


def duplicate_memories(conn: apsw.Connection, agent_id: str) -> int:
    """Count memories whose content stands in a wider bucket too, so that one recall sees both.

    Two stores that race into different buckets leave such a pair; the unique index cannot see it.
    """
    where, params = _of(agent_id)
    return _one(
        conn,
        "SELECT count(*) FROM memories m WHERE (m.project_id <> '' OR m.channel <> '')"
        " AND EXISTS (SELECT 1 FROM memories o WHERE o.agent_id = m.agent_id AND o.content_key = m.content_key"
        f" AND o.project_id IN (m.project_id, '') AND o.channel IN (m.channel, '') AND o.id <> m.id) AND {where}",
        params,
    )


def duplicate_episodes(conn: apsw.Connection, agent_id: str) -> int:
    """Count episodes that repeat the summary of another one in the same bucket."""
    where, params = _of(agent_id)
    return _one(
        conn,
        f"SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM episodes m WHERE {where}"
        " GROUP BY agent_id, substr(summary, 1, 64), summary, whole_key, project_id, channel HAVING n > 1)",
        params,
    )


def echoes(conn: apsw.Connection, agent_id: str = "") -> list[tuple[int, bool, str]]:
    """Return (id, locked, content) of memories that may hold the mark of a recalled memory; SQL finds more than are."""
    where, params = _of(agent_id)
    found = damaged.rows(
        conn,
        f"SELECT id, locked, content FROM memories m WHERE instr(content, '[Memory from ') AND {where} ORDER BY id",
        params,
    )
    return [(row[0], bool(row[1]), row[2]) for row in found if not isinstance(row, Unreadable)]


def stamps(conn: apsw.Connection, agent_id: str, after: float) -> tuple[int, int]:
    """Count the memories whose timestamp names no instant, and those that lie after an instant."""
    where, params = _of(agent_id)
    return (
        _one(conn, f"SELECT count(*) FROM memories m WHERE timestamp <> '' AND instant IS NULL AND {where}", params),
        _one(conn, f"SELECT count(*) FROM memories m WHERE instant > ? AND {where}", (after, *params)),
    )


def odd_created(conn: apsw.Connection, agent_id: str = "") -> int:
    """Count the rows whose created_at has another form than the one that the order of the window relies on."""
    form = "created_at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]'"
    where, params = _of(agent_id)
    return sum(_one(conn, f"SELECT count(*) FROM {kind.table} m WHERE {form} AND {where}", params) for kind in Kind)


def timestamps(conn: apsw.Connection, agent_id: str = "") -> Iterator[tuple[Any, ...]]:
    """Yield (id, timestamp, instant) of every memory whose timestamp can be read."""
    where, params = _of(agent_id)
    found = damaged.rows(conn, f"SELECT id, timestamp, instant FROM memories m WHERE {where} ORDER BY id", params)
    return (row for row in found if not isinstance(row, Unreadable))


# Content, source and metadata, what stands beside them, and what the content's key was made of.
_TEXTS = {
    MEMORY: (
        "content, source, metadata, agent_id || project_id || channel || msg_id || timestamp || created_at",
        "coalesce(kept_key, content_key)",
    ),
    EPISODE: (
        (
            "summary || keywords, '', '', agent_id || project_id || channel || coalesce(start_time, '')"
            " || coalesce(end_time, '') || created_at"
        ),
        "NULL",
    ),
}


def not_what_was_stored(
    conn: apsw.Connection, kind: Kind, agent_id: str = ""
) -> tuple[list[int], list[int], list[tuple[int, str]]]:
    """Read every text of a kind and return what is wrong with them.

    That is the ids whose text is no valid UTF-8, those whose content is not what its key was made of (memories alone
    have one), and (id, reason) of rows that no answer carries.
    """
    where, params = _of(agent_id)
    texts, key = _TEXTS[kind]
    blobs = ", ".join(f"CAST({text} AS BLOB)" for text in texts.split(", ", 3))
    unreadable, changed, uncarried = [], [], []
    for row_id, content, source, metadata, beside, made_of in conn.execute(
        f"SELECT id, {blobs}, {key} FROM {kind.table} m WHERE {where} ORDER BY id", params
    ):
        if made_of is not None and key_of_bytes(content) != made_of:
            changed.append(row_id)
        try:
            beside.decode()
            reason = damaged.unfit(content.decode(), source.decode(), metadata.decode())
        except UnicodeDecodeError:
            unreadable.append(row_id)
        else:
            if reason is not None:
                uncarried.append((row_id, reason))
    return unreadable, changed, uncarried


def set_instant(tx: Transaction, memory_id: int, instant: float | None) -> None:
    tx.execute("UPDATE memories SET instant = ? WHERE id = ?", (instant, memory_id))


_GONE = " OR ".join(f"kind = '{kind}' AND record_id NOT IN (SELECT id FROM {kind.table})" for kind in Kind)
_ENDS = " OR ".join(
    f"{end}_kind = '{kind}' AND {end}_id NOT IN (SELECT id FROM {table})"
    for end in ("subject", "object")
    for kind, table in (*((kind, kind.table) for kind in Kind), ("entity", "entities"))
)


_Condition = tuple[str, tuple[Any, ...]]


def _dangling(agent_id: str) -> tuple[_Condition, _Condition]:
    """Return table and condition of an agent's mentions, and of its relations, that name what is gone; '' is all."""
    where, params = _of(agent_id, "")
    return (
        (f"entity_mentions WHERE ({_GONE}) AND entity_id IN (SELECT id FROM entities WHERE {where})", params),
        (f"relations WHERE ({_ENDS}) AND {where}", params),
    )


def dangling_associations(conn: apsw.Connection, agent_id: str = "") -> tuple[int, int]:
    """Count mentions and relations that name something that is gone."""
    mentions, relations = _dangling(agent_id)
    return _one(conn, f"SELECT count(*) FROM {mentions[0]}", mentions[1]), _one(
        conn, f"SELECT count(*) FROM {relations[0]}", relations[1]
    )


def delete_dangling(tx: Transaction, agent_id: str = "") -> int:
    """Remove mentions and relations that name something that is gone, and return how many."""
    gone = 0
    for rows, params in _dangling(agent_id):
        tx.execute(f"DELETE FROM {rows}", params)
        gone += tx.conn.changes()
    return gone
