"""Every step that the schema took, oldest first: a script, or a function where SQL alone does not say it.

A step that has been released is never changed, and names tables and kinds as they were called then.

Contract: rows.shape, lexical.index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import apsw

from . import camel_case, former

# Embeddings stand in tables of their own: listing, counting and dedup then read pages of text only, and
# attaching a vector later rewrites neither the row nor its postings.
# content_key is a 128-bit digest of the content. The unique index on (agent, content, project, channel)
# holds the digest instead of up to 16,000 characters of text, in the column order that the dedup probe uses.
# instant is the timestamp as epoch seconds, NULL when the text names none.
_CORE = """
CREATE TABLE memories (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL DEFAULT '',
  channel TEXT NOT NULL DEFAULT '',
  msg_id TEXT NOT NULL DEFAULT '',
  source_id TEXT,
  created_at TEXT NOT NULL,
  instant REAL,
  locked INTEGER NOT NULL DEFAULT 0,
  recall_count INTEGER NOT NULL DEFAULT 0,
  last_recalled_at TEXT,
  timestamp TEXT NOT NULL DEFAULT '',
  source TEXT NOT NULL DEFAULT '{}',
  metadata TEXT NOT NULL DEFAULT '{}',
  content_key BLOB NOT NULL,
  content TEXT NOT NULL
);
CREATE UNIQUE INDEX memories_content ON memories (agent_id, content_key, project_id, channel);
CREATE UNIQUE INDEX memories_msg_id ON memories (agent_id, msg_id, project_id) WHERE msg_id <> '';
CREATE INDEX memories_recent ON memories (agent_id, created_at);
CREATE INDEX memories_created ON memories (created_at);
CREATE INDEX memories_instant ON memories (agent_id, instant);

CREATE TABLE memory_vectors (
  id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
  model TEXT NOT NULL,
  vector BLOB NOT NULL
);

CREATE TABLE episodes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL DEFAULT '',
  channel TEXT NOT NULL DEFAULT '',
  created_at TEXT NOT NULL,
  start_time TEXT,
  end_time TEXT,
  resolved INTEGER NOT NULL DEFAULT 0,
  keywords TEXT NOT NULL DEFAULT '',
  summary TEXT NOT NULL
);
CREATE INDEX episodes_recent ON episodes (agent_id, created_at);
-- Import and merge look for an episode with the same summary; its beginning is enough to find it.
CREATE INDEX episodes_same ON episodes (agent_id, substr(summary, 1, 64));

CREATE TABLE episode_vectors (
  id INTEGER PRIMARY KEY REFERENCES episodes (id) ON DELETE CASCADE,
  model TEXT NOT NULL,
  vector BLOB NOT NULL
);

CREATE TABLE profiles (
  agent_id TEXT NOT NULL,
  user_id TEXT NOT NULL DEFAULT '',
  project_id TEXT NOT NULL DEFAULT '',
  updated_at TEXT NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (agent_id, user_id)
) WITHOUT ROWID;

CREATE VIRTUAL TABLE memory_fts USING fts5 (
  body, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE episode_fts USING fts5 (
  summary, keywords, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
-- Views of the terms themselves; they store nothing. A prefix is counted here before FTS5 merges all that it starts.
CREATE VIRTUAL TABLE memory_terms USING fts5vocab (memory_fts, row);
CREATE VIRTUAL TABLE episode_terms USING fts5vocab (episode_fts, row);

-- Rows that should have a vector and have none yet, so that a restart goes on where the last process stopped.
CREATE TABLE embedding_backlog (
  kind TEXT NOT NULL,
  id INTEGER NOT NULL,
  PRIMARY KEY (kind, id)
) WITHOUT ROWID;

CREATE TABLE idempotency (
  key TEXT PRIMARY KEY,
  answered_at REAL NOT NULL,
  answer BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency (answered_at);

CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO meta VALUES ('vector_generation', 0);
INSERT INTO meta VALUES ('vector_store', randomblob(16));
"""

_ASSOCIATIONS = """
CREATE TABLE entities (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL DEFAULT '',
  channel TEXT NOT NULL DEFAULT '',
  name TEXT NOT NULL,
  declared_by TEXT NOT NULL DEFAULT '',
  created_at TEXT NOT NULL
);
-- The entity's own name stands here too (is_name = 1), so that one unique index keeps names and aliases apart.
CREATE TABLE entity_aliases (
  entity_id INTEGER NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  channel TEXT NOT NULL,
  normalized TEXT NOT NULL,
  alias TEXT NOT NULL,
  is_name INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (agent_id, normalized, project_id, channel)
) WITHOUT ROWID;
CREATE INDEX entity_aliases_entity ON entity_aliases (entity_id);
CREATE TABLE entity_mentions (
  entity_id INTEGER NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  record_id INTEGER NOT NULL,
  declared_by TEXT NOT NULL DEFAULT '',
  created_at TEXT NOT NULL,
  PRIMARY KEY (entity_id, kind, record_id)
) WITHOUT ROWID;
CREATE INDEX entity_mentions_record ON entity_mentions (kind, record_id);
CREATE TABLE relations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL DEFAULT '',
  channel TEXT NOT NULL DEFAULT '',
  subject_kind TEXT NOT NULL,
  subject_id INTEGER NOT NULL,
  predicate TEXT NOT NULL,
  object_kind TEXT NOT NULL,
  object_id INTEGER NOT NULL,
  anchor_ref TEXT,
  declared_by TEXT NOT NULL DEFAULT '',
  declared_at TEXT NOT NULL
);
CREATE UNIQUE INDEX relations_triple ON relations
  (agent_id, subject_kind, subject_id, predicate, object_kind, object_id, project_id, channel);
CREATE INDEX relations_object ON relations (object_kind, object_id);
CREATE INDEX relations_subject ON relations (subject_kind, subject_id);
"""

# Which run wrote a row, for runs that were given a name. A table of its own: rows of no named run cost nothing.
_BATCHES = """
CREATE TABLE batches (
  kind TEXT NOT NULL,
  id INTEGER NOT NULL,
  batch TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX batches_name ON batches (batch, kind, id);
CREATE TRIGGER batches_memory AFTER DELETE ON memories BEGIN
  DELETE FROM batches WHERE kind = 'mem' AND id = old.id;
END;
CREATE TRIGGER batches_episode AFTER DELETE ON episodes BEGIN
  DELETE FROM batches WHERE kind = 'ep' AND id = old.id;
END;
"""

# project_id NULL: the question is asked without that filter.
_CANARIES = """
CREATE TABLE canaries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent_id TEXT NOT NULL,
  project_id TEXT,
  channel TEXT NOT NULL DEFAULT '',
  query TEXT NOT NULL,
  kind TEXT NOT NULL,
  record_id INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  ran_at TEXT,
  state TEXT NOT NULL DEFAULT '',
  rank INTEGER
);
CREATE INDEX canaries_agent ON canaries (agent_id, id);
"""

# The changes noted until now say nothing of the history that they belong to.
_STAMPED = """
DELETE FROM meta WHERE key = 'vector_changes';
INSERT OR REPLACE INTO meta VALUES ('vector_stamp', randomblob(8));
"""

# A text that was cut is known by what it was before: content_key is the digest of all of it, whole_length says how long
# it was, and kept_key is the digest of what is kept, by which the row can be checked. All three differ from a whole
# text's, where the last two are NULL. Episodes have no key; whole_key tells apart summaries that only begin alike.
_CUT = """
ALTER TABLE memories ADD COLUMN whole_length INTEGER;
ALTER TABLE memories ADD COLUMN kept_key BLOB;
ALTER TABLE episodes ADD COLUMN whole_length INTEGER;
ALTER TABLE episodes ADD COLUMN whole_key BLOB;
"""

# changed_at: when a memory last got another text, NULL for one that says what it said when it was stored.
# deletions: when rows went, without what they said; the newest of them (``history``).
# recorded_since: the instant before which neither was recorded, for an agent, or for all under the name ''. Rows of an
# earlier version may have been changed or deleted before it came.
_HISTORY = """
ALTER TABLE memories ADD COLUMN changed_at TEXT;
CREATE INDEX memories_changed ON memories (agent_id, changed_at) WHERE changed_at IS NOT NULL;
CREATE TABLE deletions (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  channel TEXT NOT NULL,
  created_at TEXT NOT NULL,
  deleted_at TEXT NOT NULL
);
CREATE INDEX deletions_agent ON deletions (agent_id, deleted_at);
CREATE TABLE recorded_since (agent_id TEXT PRIMARY KEY, since TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO recorded_since SELECT '', datetime('now')
  WHERE EXISTS (SELECT 1 FROM sqlite_sequence WHERE name IN ('memories', 'episodes'));
"""

# Whose answer it is: the digest of the request that the key came with. Empty for answers kept before keys were bound.
_BOUND_KEYS = """
ALTER TABLE idempotency ADD COLUMN request BLOB NOT NULL DEFAULT x'';
"""

# How many rows there are, by agent, width and model of their vector (0 and '' without one) and the other axes; and how
# many of an agent's rows wait for a vector. Triggers keep them, whoever writes. A row never moves between axes, and a
# vector is replaced by an upsert, never by OR REPLACE, which fires no trigger.
_COUNTED = """
CREATE TABLE vector_counts (
  agent_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  width INTEGER NOT NULL,
  model TEXT NOT NULL,
  project_id TEXT NOT NULL,
  channel TEXT NOT NULL,
  rows INTEGER NOT NULL,
  PRIMARY KEY (agent_id, kind, width, model, project_id, channel)
) WITHOUT ROWID;
CREATE TABLE backlog_counts (
  agent_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  project_id TEXT NOT NULL,
  channel TEXT NOT NULL,
  rows INTEGER NOT NULL,
  PRIMARY KEY (agent_id, kind, project_id, channel)
) WITHOUT ROWID;
"""

_WIDTH = "iif(length({0}.vector) % 4, 0, length({0}.vector) / 4)"
_MODEL = "iif(length({0}.vector) % 4, '', {0}.model)"


def _counting(kind: str, rows: str, vectors: str) -> str:
    """Return the triggers that count the rows of one kind, and the counts of what is there."""

    def move(end: str, sign: str, width: str, model: str, row: str = "m") -> str:
        """Return the statements of a trigger that add a row to a bucket or take it away."""
        source = f"FROM {rows} m WHERE m.id = {end}.id" if row == "m" else "WHERE true"
        if sign == "+":
            return (
                f"INSERT INTO vector_counts SELECT {row}.agent_id, '{kind}', {width}, {model}, {row}.project_id,"
                f" {row}.channel, 1 {source} ON CONFLICT DO UPDATE SET rows = rows + 1;"
            )
        bucket = (
            "(agent_id, kind, width, model, project_id, channel) ="
            f" (SELECT {row}.agent_id, '{kind}', {width}, {model}, {row}.project_id, {row}.channel {source})"
        )
        return (
            f"UPDATE vector_counts SET rows = rows - 1 WHERE {bucket};"
            f" DELETE FROM vector_counts WHERE {bucket} AND rows = 0;"
        )

    def listed(end: str) -> str:
        return (
            "(agent_id, kind, project_id, channel) ="
            f" (SELECT agent_id, '{kind}', project_id, channel FROM {rows} WHERE id = {end}.id)"
        )

    new, old = [(_WIDTH.format(end), _MODEL.format(end)) for end in ("new", "old")]
    return f"""
CREATE TRIGGER {rows}_counted AFTER INSERT ON {rows} BEGIN {move("new", "+", "0", "''", "new")} END;
CREATE TRIGGER {rows}_uncounted BEFORE DELETE ON {rows} BEGIN
  DELETE FROM embedding_backlog WHERE kind = '{kind}' AND id = old.id;
  DELETE FROM {vectors} WHERE id = old.id;
  {move("old", "-", "0", "''", "old")}
END;
CREATE TRIGGER {vectors}_counted AFTER INSERT ON {vectors} BEGIN
  {move("new", "-", "0", "''")} {move("new", "+", *new)} END;
CREATE TRIGGER {vectors}_uncounted AFTER DELETE ON {vectors} BEGIN
  {move("old", "-", *old)} {move("old", "+", "0", "''")} END;
CREATE TRIGGER {vectors}_recounted AFTER UPDATE ON {vectors} BEGIN
  {move("old", "-", *old)} {move("new", "+", *new)} END;
CREATE TRIGGER backlog_{rows}_counted AFTER INSERT ON embedding_backlog WHEN new.kind = '{kind}' BEGIN
  INSERT INTO backlog_counts SELECT agent_id, '{kind}', project_id, channel, 1 FROM {rows} WHERE id = new.id
    ON CONFLICT DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER backlog_{rows}_uncounted AFTER DELETE ON embedding_backlog WHEN old.kind = '{kind}' BEGIN
  UPDATE backlog_counts SET rows = rows - 1 WHERE {listed("old")};
  DELETE FROM backlog_counts WHERE {listed("old")} AND rows = 0;
END;
-- Materialized, or the vectors themselves would go into the sorter.
INSERT INTO vector_counts WITH each AS MATERIALIZED (
  SELECT m.agent_id, coalesce({_WIDTH.format("v")}, 0) AS width, coalesce({_MODEL.format("v")}, '') AS model,
    m.project_id, m.channel
  FROM {rows} m NOT INDEXED LEFT JOIN {vectors} v ON v.id = m.id
) SELECT agent_id, '{kind}', width, model, project_id, channel, count(*) FROM each GROUP BY 1, 3, 4, 5, 6;
INSERT INTO backlog_counts SELECT m.agent_id, '{kind}', m.project_id, m.channel, count(*)
  FROM embedding_backlog b JOIN {rows} m ON m.id = b.id WHERE b.kind = '{kind}' GROUP BY 1, 3, 4;
"""


_COUNTED += _counting("mem", "memories", "memory_vectors") + _counting("ep", "episodes", "episode_vectors")

# Rows that are there and that nobody sees, see ``hidden``: a table of its own each, which every read looks into.
_HIDDEN = """
CREATE TABLE hidden_memories (id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE);
CREATE TABLE hidden_episodes (id INTEGER PRIMARY KEY REFERENCES episodes (id) ON DELETE CASCADE);
CREATE TABLE hidden_entities (id INTEGER PRIMARY KEY REFERENCES entities (id) ON DELETE CASCADE);
CREATE TABLE hidden_relations (id INTEGER PRIMARY KEY REFERENCES relations (id) ON DELETE CASCADE);
"""

# The words of rows are spelled anew, and each row's postings name its agent. The former index answers for the rows that
# have not been written into the new one (``former``); where there are none it is not kept.
_WORDS = """
DROP TABLE memory_terms;
DROP TABLE episode_terms;
ALTER TABLE memory_fts RENAME TO memory_fts_former;
ALTER TABLE episode_fts RENAME TO episode_fts_former;
CREATE VIRTUAL TABLE memory_fts USING fts5 (
  body, owner, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE episode_fts USING fts5 (
  summary, keywords, owner, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE memory_terms USING fts5vocab (memory_fts, row);
CREATE VIRTUAL TABLE episode_terms USING fts5vocab (episode_fts, row);
INSERT INTO meta VALUES ('former_words', 1);
"""


# The passages of long texts, each with where it stands in the content, in code points, and its vector. A row that gets
# a vector and is long is listed for them: a text of more bytes than a window of the builtin model takes in.
_LONG_BYTES = 1200


def _passages(kind: str, rows: str, vectors: str, passages: str, text: str) -> str:
    """Return the table of one kind's passages, and what keeps it in step with the rows and their vectors."""

    # In a trigger the statement that fires it overrules OR IGNORE, and not a clause of its own.
    def listing(when: str) -> str:
        return (
            f"INSERT INTO embedding_backlog SELECT '{kind}+', m.id FROM {rows} m"
            f" WHERE {when} AND octet_length(m.{text}) > {_LONG_BYTES} ON CONFLICT DO NOTHING;"
        )

    bucket = (
        f"(agent_id, kind, width, model, project_id, channel) = (SELECT m.agent_id, '{kind}+', {_WIDTH.format('old')},"
        f" {_MODEL.format('old')}, m.project_id, m.channel FROM {rows} m WHERE m.id = old.row_id)"
    )
    return f"""
CREATE TABLE {passages} (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  row_id INTEGER NOT NULL,
  start INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  model TEXT NOT NULL,
  vector BLOB NOT NULL
);
CREATE INDEX {passages}_row ON {passages} (row_id, start, stop);
CREATE TRIGGER {vectors}_listed AFTER INSERT ON {vectors} BEGIN {listing("m.id = new.id")} END;
CREATE TRIGGER {vectors}_relisted AFTER UPDATE ON {vectors} BEGIN {listing("m.id = new.id")} END;
CREATE TRIGGER {passages}_gone BEFORE DELETE ON {rows} BEGIN
  DELETE FROM {passages} WHERE row_id = old.id;
  DELETE FROM embedding_backlog WHERE kind = '{kind}+' AND id = old.id;
END;
CREATE TRIGGER {passages}_counted AFTER INSERT ON {passages} BEGIN
  INSERT INTO vector_counts SELECT m.agent_id, '{kind}+', {_WIDTH.format("new")}, {_MODEL.format("new")}, m.project_id,
    m.channel, 1 FROM {rows} m WHERE m.id = new.row_id ON CONFLICT DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER {passages}_uncounted AFTER DELETE ON {passages} BEGIN
  UPDATE vector_counts SET rows = rows - 1 WHERE {bucket};
  DELETE FROM vector_counts WHERE {bucket} AND rows = 0;
END;
{listing(f"m.id IN (SELECT id FROM {vectors})")}
"""


_PASSAGES = _passages("mem", "memories", "memory_vectors", "memory_passages", "content") + _passages(
    "ep", "episodes", "episode_vectors", "episode_passages", "summary"
)


# What a service elsewhere has yet to hear of (``outbox``). Empty where none is configured.
_OUTBOX = """
CREATE TABLE outbox (
  kind TEXT NOT NULL,
  id INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  generation INTEGER NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (kind, id, agent_id)
) WITHOUT ROWID;
CREATE INDEX outbox_order ON outbox (generation, id);
CREATE INDEX outbox_age ON outbox (at);
"""

# When an association was declared, as the file that brought it has it; NULL where created_at or declared_at says it
# all, by which lists are sorted.
_STAMPS = """
ALTER TABLE entities ADD COLUMN stamp TEXT;
ALTER TABLE entity_mentions ADD COLUMN stamp TEXT;
ALTER TABLE relations ADD COLUMN stamp TEXT;
"""

# What rows were before they were changed or deleted (``past``). Its indexes serve a row's past, the last act of an
# agent, and what is too old; the last one has the sizes too, so that they are added up without the texts.
_PAST = """
CREATE TABLE past (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  row_id INTEGER NOT NULL,
  at TEXT NOT NULL,
  act TEXT NOT NULL,
  together INTEGER NOT NULL,
  newest_memory INTEGER NOT NULL,
  newest_episode INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  channel TEXT NOT NULL,
  created_at TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  batch TEXT,
  fields TEXT NOT NULL,
  links TEXT,
  model TEXT,
  text TEXT,
  vector BLOB
);
CREATE INDEX past_row ON past (kind, row_id);
CREATE INDEX past_agent ON past (agent_id, id);
CREATE INDEX past_at ON past (at, bytes);
CREATE INDEX past_together ON past (together);
"""


def _words(conn: apsw.Connection) -> None:
    conn.execute(_WORDS)
    if not conn.execute(
        "SELECT 1 FROM (SELECT 1 FROM memories LIMIT 1) UNION ALL SELECT 1 FROM (SELECT 1 FROM episodes LIMIT 1)"
    ).fetchall():
        former.forget(conn)


class Migration(NamedTuple):
    """One step of the schema: its number, what it brings in a few words, and what it does."""

    version: int
    name: str
    script: str | Callable[[apsw.Connection], None]


MIGRATIONS = (
    Migration(1, "core tables", _CORE),
    Migration(2, "declared associations", _ASSOCIATIONS),
    Migration(3, "named batches", _BATCHES),
    Migration(4, "canaries", _CANARIES),
    Migration(5, "stamped generations", _STAMPED),
    Migration(6, "what a cut text was", _CUT),
    Migration(7, "what was changed and deleted when", _HISTORY),
    Migration(8, "bound idempotency keys", _BOUND_KEYS),
    Migration(9, "counted vectors", _COUNTED),
    Migration(10, "rows that nobody sees", _HIDDEN),
    Migration(11, "words by agent", _words),
    Migration(12, "words inside camel case", camel_case.begin),
    Migration(13, "passages of long texts", _PASSAGES),
    Migration(14, "outbox", _OUTBOX),
    Migration(15, "stamps of associations as they came", _STAMPS),
    Migration(16, "what rows were before", _PAST),
)
SCHEMA_VERSION = MIGRATIONS[-1][0]
FORMER_WORDS = 11  # the step that keeps the index of before until its rows are written anew
