"""A store that was written before cut texts were marked opens, keeps its rows, and marks what comes.

Contract: store.cleaned.
"""

from __future__ import annotations

import os

import apsw
from house_kit import House

from cpersona_daemon.model.cuts import content_key
from cpersona_daemon.storage import schema


def written_by_schema_4(path: str) -> None:
    """Write a store as it was written then: a whole text, and one that was cut without a mark."""
    os.makedirs(os.path.dirname(path), mode=0o700)
    conn = apsw.Connection(path)
    conn.execute("PRAGMA journal_mode = WAL")
    with conn:
        conn.execute(
            "CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"
        )
        for version, name, script in schema.MIGRATIONS[:4]:
            conn.execute(script)
            conn.execute("INSERT INTO schema_migrations VALUES (?, ?, '2026-11-30 00:00:00')", (version, name))
        conn.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        for text in ("a whole text", "x" * 16_000):
            conn.execute(
                (
                    "INSERT INTO memories (agent_id, created_at, content_key, content) VALUES ('a', '2026-11-30 "
                    "00:00:00', ?, ?)"
                ),
                (content_key(text), text),
            )
        conn.execute(
            "INSERT INTO episodes (agent_id, created_at, summary) VALUES ('a', '2026-11-30 00:00:00', 'an episode')"
        )
    conn.close()


def test_its_rows_stay_and_new_ones_are_told_apart(tmp_path):
    written_by_schema_4(str(tmp_path / "db" / "t.db"))
    house = House(tmp_path)
    try:
        assert house.sql("SELECT max(version) FROM schema_migrations") == [(schema.SCHEMA_VERSION,)]
        assert [len(row["content"]) for row in house.ask("list_memories", agent_id="a")["memories"]] == [16_000, 12]
        assert house.ask("store", agent_id="a", content="a whole text")["result"] == "skipped"
        assert house.ask("store", agent_id="a", content="x" * 16_000)["result"] == "skipped"
        # Of what was cut without a mark nobody knows the end, so the whole text is another memory, once.
        assert [house.ask("store", agent_id="a", content="x" * 20_000)["result"] for _ in range(2)] == [
            "stored",
            "skipped",
        ]
        lines = house.export("out.jsonl", agent_id="")
        assert [line.get("cut", {}).get("of") for line in lines if line["_type"] == "memory"] == [None, None, 20_000]
        assert house.ask("import_memories", input_path=str(tmp_path / "out.jsonl"))["skipped_memories"] == 3
    finally:
        house.close()
