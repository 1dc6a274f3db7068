"""A backup whose database somebody made or changed: everything is checked before anything is replaced.

Contract: restore.checked.
"""

import sqlite3
from pathlib import Path

import apsw
import pytest
from backup_kit import refused, untouched

from cpersona_daemon.portability.backup import restore
from cpersona_daemon.storage import schema


def test_a_sound_backup_passes_and_is_put_in_place(place, backed_up):
    assert restore.check(backed_up)["memories"] == 2
    untouched(place)
    told = place.restore(backed_up)
    assert told["memories"] == 2 and sqlite3.connect(place.places.db).execute(
        "SELECT content FROM memories ORDER BY id"
    ).fetchall() == [("one",), ("two",)]
    assert Path(told["moved_aside"]).read_bytes() == b"the store that is there"


OBJECTS = {
    "a trigger": ("CREATE TRIGGER gone AFTER INSERT ON memories BEGIN DELETE FROM memories; END", "trigger", "gone"),
    "a trigger of a known name": (
        (
            "DROP TRIGGER batches_memory; CREATE TRIGGER batches_memory AFTER DELETE ON memories BEGIN DELETE FROM "
            "episodes; END"
        ),
        "trigger",
        "batches_memory",
    ),
    "a view": ("CREATE VIEW peek AS SELECT * FROM memories", "view", "peek"),
    "a table": ("CREATE TABLE extra (x)", "table", "extra"),
    "an index": ("CREATE INDEX wide ON memories (content)", "index", "wide"),
    "no index": ("DROP INDEX memories_msg_id", "index", "memories_msg_id"),
    "no unique index": (
        (
            "DROP INDEX memories_content; CREATE INDEX memories_content ON memories (agent_id, content_key, "
            "project_id, channel)"
        ),
        "index",
        "memories_content",
    ),
    "another column": ("ALTER TABLE profiles ADD COLUMN more TEXT", "table", "profiles"),
    "a generated column": ("ALTER TABLE canaries ADD COLUMN more AS (1 / 0)", "table", "canaries"),
    "another tokenizer": (
        (
            "DROP TABLE memory_terms; DROP TABLE memory_fts;"
            "CREATE VIRTUAL TABLE memory_fts USING fts5 (body, content = '', contentless_delete = 1);"
            "CREATE VIRTUAL TABLE memory_terms USING fts5vocab (memory_fts, row)"
        ),
        "table",
        "memory_fts",
    ),
    "a virtual table of another kind": ("CREATE VIRTUAL TABLE files USING fts4 (x)", "table", "files"),
}


@pytest.mark.parametrize("what", OBJECTS)
def test_a_schema_that_is_not_ours_object_by_object_is_refused(place, rebuilt, what):
    sql, kind, name = OBJECTS[what]
    refused(place, rebuilt(sql), kind, name, "nothing was changed")


CONTENTS = {
    "a step left out": ("DELETE FROM schema_migrations WHERE version = 3", "schema"),
    "a text that is bytes": ("UPDATE memories SET content = x'00ff' WHERE id = 1", "memories.content"),
    "an agent that is a number": ("UPDATE memories SET agent_id = x'31' WHERE id = 1", "memories.agent_id"),
    "a lock that is a text": ("UPDATE memories SET locked = 'yes' WHERE id = 1", "memories.locked"),
    "a stamp that is none": ("UPDATE episodes SET created_at = x'32303236'", "episodes.created_at"),
    "the last id": ("UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'memories'", "ids"),
    "a row with the last id": ("UPDATE memories SET id = 9223372036854775807 WHERE id = 2", "ids"),
    "a negative id": ("UPDATE memories SET id = -5 WHERE id = 2", "ids"),
    "a generation that is a text": (
        "UPDATE meta SET value = 'many' WHERE key = 'vector_generation'",
        "vector_generation",
    ),
    "a list for a service": ("INSERT INTO meta VALUES ('outbox_filling', '{')", "outbox_filling"),
    "an identity of another length": ("UPDATE meta SET value = x'00' WHERE key = 'vector_store'", "vector_store"),
    "another application": ("PRAGMA application_id = 7", "cpersona"),
}


@pytest.mark.parametrize("what", CONTENTS)
def test_values_that_cpersona_never_writes_are_refused(place, rebuilt, what):
    sql, word = CONTENTS[what]
    refused(place, rebuilt(sql), word, "nothing was changed")


def test_other_rows_than_the_manifest_says_are_refused(place, rebuilt):
    refused(
        place,
        rebuilt(change=lambda files, facts: facts.update(rows={"memories": 3, "episodes": 1, "profiles": 0})),
        "manifest",
    )


def test_an_older_schema_is_compared_with_what_that_version_made(place, rebuilt, tmp_path):

    def older(files, facts):
        path = tmp_path / "older.db"
        conn = apsw.Connection(str(path))
        schema.migrate(conn, 0.0, 4)
        conn.close()
        files["database.sqlite"] = path.read_bytes()
        facts.update(schema=4, rows={"memories": 0, "episodes": 0, "profiles": 0})

    assert place.restore(rebuilt(change=older))["schema"] == 4


def test_rows_that_no_answer_carries_come_back_and_are_named(place, rebuilt):
    deep = '{"a":' * 900 + "1" + "}" * 900
    path = rebuilt(
        f"UPDATE memories SET source = '{deep}' WHERE id = 1; UPDATE memories SET content = CAST(x'ff20' AS TEXT) "
        f"WHERE id = 2"
    )
    for told in (restore.check(path), place.restore(path)):
        assert [row["ref"] for row in told["unfit"]] == ["mem:1", "mem:2"] and all(
            row["reason"] for row in told["unfit"]
        )
