"""A store as the reference implementation keeps it, made here: its SQLite file of schema 21.

The program itself is not at hand; tables and columns are what was observed of it from outside. `fill` makes rows of
every kind, odd ones among them.
"""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA = """
CREATE TABLE schema_version (version INTEGER NOT NULL, applied_at TEXT NOT NULL);
CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL DEFAULT '',
  msg_id TEXT NOT NULL DEFAULT '', content TEXT NOT NULL, source TEXT NOT NULL DEFAULT '{}', timestamp TEXT NOT NULL,
  metadata TEXT NOT NULL DEFAULT '{}', embedding BLOB, channel TEXT NOT NULL DEFAULT '',
  recall_count INTEGER NOT NULL DEFAULT 0, last_recalled_at TEXT, locked INTEGER NOT NULL DEFAULT 0,
  embedding_model TEXT NOT NULL DEFAULT '', created_at TEXT NOT NULL DEFAULT (datetime('now')));
CREATE TABLE episodes (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL DEFAULT '',
  summary TEXT NOT NULL, keywords TEXT NOT NULL DEFAULT '', embedding BLOB, start_time TEXT, end_time TEXT,
  resolved INTEGER NOT NULL DEFAULT 0, channel TEXT NOT NULL DEFAULT '', embedding_model TEXT NOT NULL DEFAULT '',
  created_at TEXT NOT NULL DEFAULT (datetime('now')));
CREATE TABLE profiles (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL DEFAULT '',
  user_id TEXT NOT NULL DEFAULT '', content TEXT NOT NULL, updated_at TEXT NOT NULL, UNIQUE (agent_id, user_id));
CREATE TABLE entities (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL DEFAULT '',
  channel TEXT NOT NULL DEFAULT '', name TEXT NOT NULL, normalized TEXT NOT NULL, declared_by TEXT NOT NULL,
  created_at TEXT NOT NULL);
CREATE TABLE entity_aliases (entity_id INTEGER NOT NULL, alias TEXT NOT NULL, normalized TEXT NOT NULL,
  PRIMARY KEY (entity_id, normalized));
CREATE TABLE entity_mentions (entity_id INTEGER NOT NULL, ref TEXT NOT NULL, declared_by TEXT NOT NULL,
  created_at TEXT NOT NULL, PRIMARY KEY (entity_id, ref));
CREATE TABLE relations (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL DEFAULT '', channel TEXT NOT NULL DEFAULT '', subject_kind TEXT NOT NULL,
  subject_id INTEGER NOT NULL, predicate TEXT NOT NULL, object_kind TEXT NOT NULL, object_id INTEGER NOT NULL,
  anchor_ref TEXT NOT NULL DEFAULT '', declared_by TEXT NOT NULL, declared_at TEXT NOT NULL);
CREATE TABLE folders (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL DEFAULT '',
  parent_id INTEGER, name TEXT NOT NULL, normalized TEXT NOT NULL, declared_by TEXT NOT NULL, created_at TEXT NOT NULL);
CREATE TABLE folder_members (ref TEXT PRIMARY KEY, folder_id INTEGER NOT NULL, declared_by TEXT NOT NULL,
  declared_at TEXT NOT NULL);
CREATE TABLE pending_memory_tasks (id INTEGER PRIMARY KEY AUTOINCREMENT, task_type TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL DEFAULT '', payload TEXT NOT NULL, retries INTEGER NOT NULL DEFAULT 0, created_at TEXT);
CREATE TABLE record_blocks (parent_kind TEXT, parent_id INTEGER, block_index INTEGER, agent_id TEXT, project_id TEXT,
  channel TEXT, start_char INTEGER, end_char INTEGER, forced_boundary INTEGER, embedding_bits BLOB,
  embedding_model TEXT, PRIMARY KEY (parent_kind, parent_id, block_index));
CREATE TABLE record_block_vectors (parent_kind TEXT, parent_id INTEGER, block_index INTEGER, embedding_i8 BLOB);
CREATE TABLE record_block_changes (seq INTEGER PRIMARY KEY, parent_kind TEXT, parent_id INTEGER);
CREATE TABLE record_nodes (parent_kind TEXT, parent_id INTEGER, node_index INTEGER, start_char INTEGER,
  end_char INTEGER, token_count INTEGER, window INTEGER, embedding BLOB, embedding_model TEXT);
CREATE TABLE record_vector_changes (seq INTEGER PRIMARY KEY, kind TEXT, record_id INTEGER);
CREATE TABLE block_log_clock (id INTEGER PRIMARY KEY, logging, generation, head, pruned_through);
CREATE TABLE vector_log_clock (id INTEGER PRIMARY KEY, logging, generation, head, pruned_through);
CREATE VIRTUAL TABLE memories_fts USING fts5 (content, content = 'memories', content_rowid = 'id');
CREATE VIRTUAL TABLE episodes_fts USING fts5 (summary, keywords, content = 'episodes', content_rowid = 'id');
INSERT INTO block_log_clock VALUES (1, 1, 1, 0, 0);
INSERT INTO vector_log_clock VALUES (1, 1, 1, 0, 0);
"""
DIM = 64
MODEL = "jina-v5-nano"
AGENTS = ("coder", "writer", "planner")
USED = ("memories", "episodes", "profiles", "entities", "entity_aliases", "entity_mentions", "relations")
_SOURCES = ({}, {"type": "User", "id": "u1"}, {"type": "Agent", "id": "a-7", "näme": "Zoë"}, {"System": "note"})
_WORDS = "harbour pilot key watch night grüße 港湾 deploy rollback token cache index shard retry lease quorum".split()
ODD_METADATA = ('{"a": 1', "no json at all", '{"n": NaN, "m": [-Infinity]}', "[1, 2]")
_ROWS = {"memories": 0.62, "episodes": 0.12, "entities": 0.08, "entity_mentions": 0.1, "relations": 0.06}


def create(path: Path, version: int = 21, schema: str = SCHEMA) -> sqlite3.Connection:
    """Make an empty store and return a connection to it, in WAL mode as the reference leaves it."""
    conn = sqlite3.connect(path)
    conn.execute("PRAGMA journal_mode = WAL")
    conn.executescript(schema)
    conn.execute("INSERT INTO schema_version VALUES (?, ?)", (version, "2026-01-01T00:00:00+00:00"))
    conn.commit()
    return conn


def made(path: Path, rows: int = 60, seed: int = 7) -> Path:
    """Make a store of about so many rows of every kind, closed and folded together."""
    conn = create(path)
    fill(conn, rows, seed)
    conn.close()
    assert not Path(f"{path}-wal").exists()
    return path


def fill(conn: sqlite3.Connection, rows: int, seed: int = 7) -> None:
    """Fill a store with rows of every kind."""
    draw = random.Random(seed)
    numbers = np.random.default_rng(seed)
    counts = {table: max(4, round(share * rows)) for table, share in _ROWS.items()}
    owners: dict[str, list[str]] = {"mem": [], "ep": [], "entity": []}
    for number in range(counts["memories"]):
        owners["mem"].append(_memory(conn, draw, numbers, number))
    for number in range(counts["episodes"]):
        owners["ep"].append(_episode(conn, draw, numbers, number))
    for agent in AGENTS:
        for user in ("", "u1", "ü2")[: 1 + AGENTS.index(agent)]:
            insert(
                conn,
                "profiles",
                agent_id=agent,
                user_id=user,
                content=f"{agent} knows {user or 'everybody'}",
                updated_at=_second(draw),
            )
    for number in range(counts["entities"]):
        owners["entity"].append(_entity(conn, draw, number))
    _associate(conn, draw, owners, counts)
    _rest(conn, draw)
    conn.commit()


def _memory(conn: sqlite3.Connection, draw: random.Random, numbers: Any, number: int) -> str:
    agent = draw.choice(AGENTS)
    odd = number % 50
    metadata = json.dumps({"n": number, "tags": draw.sample(_WORDS, 2)}, ensure_ascii=False) if number % 3 else "{}"
    source = json.dumps(draw.choice(_SOURCES), ensure_ascii=False)
    if odd in (10, 20, 30, 40):
        metadata = ODD_METADATA[odd // 10 - 1]
    elif odd == 11:
        metadata = json.dumps({"long": "m" * 9_500})
    elif odd == 21:
        source = "user:7 {not json"
    recalled = draw.randrange(3) * draw.randrange(20)
    insert(
        conn,
        "memories",
        agent_id=agent,
        project_id=draw.choice(("", "", "web", "api")),
        msg_id=f"msg-{number}" if number % 2 else "",
        content=f"{number}: {' '.join(draw.choices(_WORDS, k=draw.randrange(3, 40)))}.\n\tAnd {number**3}",
        source=source,
        timestamp=draw.choice((_micro(draw), _second(draw), "last tuesday", "")),
        metadata=metadata,
        channel=draw.choice(("", "", "mail")),
        recall_count=recalled,
        last_recalled_at=_second(draw) if recalled else None,
        locked=int(number % 17 == 3),
        created_at=_second(draw),
        **_vector(numbers, number),
    )
    return agent


def _episode(conn: sqlite3.Connection, draw: random.Random, numbers: Any, number: int) -> str:
    agent = draw.choice(AGENTS)
    insert(
        conn,
        "episodes",
        agent_id=agent,
        project_id=draw.choice(("", "web")),
        summary=f"episode {number}: {' '.join(draw.choices(_WORDS, k=12))}",
        keywords=" ".join(draw.sample(_WORDS, 3)) if number % 4 else "",
        start_time=_micro(draw) if number % 5 else None,
        end_time=_micro(draw) if number % 5 else None,
        resolved=number % 2,
        channel=draw.choice(("", "mail")),
        created_at=_second(draw),
        **_vector(numbers, number),
    )
    return agent


def _entity(conn: sqlite3.Connection, draw: random.Random, number: int) -> str:
    agent, name = draw.choice(AGENTS), f"Entity {number} Ö"
    insert(
        conn,
        "entities",
        agent_id=agent,
        name=name,
        normalized=name.casefold(),
        project_id=draw.choice(("", "web")),
        channel=draw.choice(("", "mail")),
        declared_by=draw.choice(("agent", "operator")),
        created_at=_micro(draw),
    )
    for which in range(number % 3):
        alias = f"Alias {number}.{which}"
        insert(conn, "entity_aliases", entity_id=number + 1, alias=alias, normalized=alias.casefold())
    return agent


def _associate(conn: sqlite3.Connection, draw: random.Random, owners: dict[str, list[str]], counts: dict) -> None:
    """Declare mentions and relations, each within one agent."""
    ids = {
        agent: {kind: [i + 1 for i, owner in enumerate(found) if owner == agent] for kind, found in owners.items()}
        for agent in AGENTS
    }

    def end(agent: str, *kinds: str) -> tuple[str, int]:
        kind = draw.choice([kind for kind in kinds if ids[agent][kind]])
        return kind, draw.choice(ids[agent][kind])

    whose = [agent for agent in AGENTS if ids[agent]["entity"] and (ids[agent]["mem"] or ids[agent]["ep"])]
    mentions: set[tuple[int, str]] = set()
    for _ in range(counts["entity_mentions"]):
        agent = draw.choice(whose)
        (_, entity), (kind, row) = end(agent, "entity"), end(agent, "mem", "ep")
        mentions.add((entity, f"{kind}:{row}"))
    for entity, ref in sorted(mentions):
        by = draw.choice(("agent", "operator"))
        insert(conn, "entity_mentions", entity_id=entity, ref=ref, declared_by=by, created_at=_micro(draw))
    relations: set[tuple] = set()
    for number in range(counts["relations"]):
        agent = draw.choice(whose)
        subject, object_ = end(agent, "entity", "mem", "ep"), end(agent, "entity", "mem", "ep")
        triple = (agent, *subject, draw.choice(("uses", "supersedes", "lives in")), *object_)
        if triple in relations:
            continue
        relations.add(triple)
        anchor = f"{(anchored := end(agent, 'mem', 'ep'))[0]}:{anchored[1]}" if number % 2 else ""
        insert(
            conn,
            "relations",
            agent_id=agent,
            project_id=draw.choice(("", "web")),
            subject_kind=subject[0],
            subject_id=subject[1],
            predicate=triple[3],
            object_kind=object_[0],
            object_id=object_[1],
            anchor_ref=anchor,
            declared_by=draw.choice(("agent", "operator")),
            declared_at=_micro(draw),
        )


def _rest(conn: sqlite3.Connection, draw: random.Random) -> None:
    """Add what has no place in another store: folders, tasks, and what is derived from rows."""
    for number in range(3):
        insert(
            conn,
            "folders",
            agent_id="coder",
            name=f"Folder {number}",
            normalized=f"folder {number}",
            declared_by="agent",
            created_at=_micro(draw),
        )
        insert(
            conn,
            "folder_members",
            ref=f"mem:{number + 1}",
            folder_id=number + 1,
            declared_by="agent",
            declared_at=_micro(draw),
        )
    insert(conn, "pending_memory_tasks", task_type="archive", agent_id="coder", payload="{}")
    for number in range(5):
        insert(conn, "record_blocks", parent_kind="mem", parent_id=number + 1, block_index=0, agent_id="coder")
        insert(conn, "record_block_vectors", parent_kind="mem", parent_id=number + 1, block_index=0)
        insert(conn, "record_vector_changes", kind="mem", record_id=number + 1)


def insert(conn: sqlite3.Connection, table: str, **values: Any) -> int:
    names = ", ".join(values)
    places = ", ".join("?" * len(values))
    cursor = conn.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", tuple(values.values()))
    return cursor.lastrowid or 0


def _second(draw: random.Random) -> str:
    return f"2026-0{draw.randrange(1, 8)}-{draw.randrange(10, 28)} 0{draw.randrange(10)}:{draw.randrange(10, 60)}:07"


def _micro(draw: random.Random) -> str:
    return _second(draw).replace(" ", "T") + f".{draw.randrange(1, 1_000_000):06d}+00:00"


def _vector(numbers: Any, number: int) -> dict[str, Any]:
    if number % 9 == 4:
        return {"embedding": None, "embedding_model": ""}
    vector = numbers.standard_normal(DIM)
    vector /= np.linalg.norm(vector)
    return {"embedding": vector.astype("<f4").tobytes(), "embedding_model": MODEL if number % 7 else ""}
