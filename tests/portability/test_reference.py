"""The reference implementation's database and exports, in, out and back. Contract: import.untouched, export.reference.

What stands for the program itself is said in the kit.
"""

import json
import os
import sqlite3
import subprocess
import sys

import pytest
import reference_files as files
import reference_kit as kit
from house_kit import memory

UNKEPT = {"folder_members": 3, "folders": 3, "pending_memory_tasks": 1, "record_blocks (made anew here)": 5}


@pytest.fixture
def peer(tmp_path):
    return kit.made(tmp_path / "peer.db")


def beside(path):
    return {p.name: p.read_bytes() for p in path.parent.iterdir() if p.is_file() and p.name.startswith(path.name)}


def back(house, name, **params):
    """Return the export for the reference, taken in by a new store of its own, and what that refuses."""
    lines = house.export("back.jsonl", include_embeddings=True, for_reference=True, **params)
    conn = kit.create(house.root / name)
    return conn, files.take(conn, lines)


def test_a_database_goes_in_and_back_with_every_field(house, peer):
    before = beside(peer)
    dry = house.ask("import_memories", input_path=str(peer), dry_run=True)
    answer = house.ask("import_memories", input_path=str(peer))
    assert answer["ok"] and "errors" not in answer and answer["unkept"] == UNKEPT
    assert {**dry, "dry_run": False} == answer
    assert beside(peer) == before
    after, refused = back(house, "back.db")
    assert refused == []
    found = files.compared(sqlite3.connect(peer), after)
    assert [row for row in found if row[2] != row[3]] == [] and len(found) == 55
    again = house.ask("import_memories", input_path=str(peer))
    assert (again["imported_memories"], again["imported_episodes"]) == (0, 0)


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_an_export_of_every_version_goes_in_and_back(house, peer, version):
    conn = sqlite3.connect(peer)
    answer = house.ask("import_memories", input_path=house.write("in.jsonl", *files.export(conn, version)))
    assert answer["ok"] and "errors" not in answer
    assert answer.get("unkept") == ({"folders": 3, "folder_members": 3} if version == "1.2" else None)
    after, refused = back(house, "back.db")
    tables = kit.USED[:3] if version == "1.0" else kit.USED
    assert refused == [] and [row for row in files.compared(conn, after) if row[0] in tables and row[2] != row[3]] == []


def test_who_declared_something_is_restored_where_it_was_known(house, make_house):
    declared = {"entities": [{"name": "Ada"}], "relations": [{"subject": "Ada", "predicate": "knows", "object": "Bob"}]}
    house.ask("store", agent_id="a", content="Ada knows Bob", associations=declared)
    house.change("UPDATE relations SET declared_by = 'client-7'")
    lines = house.export("out.jsonl", for_reference=True)
    assert {line["declared_by"] for line in lines if line["_type"] in ("entity", "mention")} == {"operator"}
    assert [line["declared_by"] for line in lines if line["_type"] == "relation"] == ["agent"]
    assert files.take(kit.create(house.root / "ref.db"), lines) == []
    other = make_house("two")
    other.ask("import_memories", input_path=str(house.root / "out.jsonl"))
    plain = [house.export("plain.jsonl"), other.export("plain.jsonl")]
    assert [[line.get("declared_by") for line in found[1:]] for found in plain] == [
        [None, "owner", "owner", "owner", "owner", "client-7"]
    ] * 2
    assert not any("declared_as" in line for line in plain[0])


def test_metadata_that_is_no_object_goes_to_the_reference_as_text(house):
    house.ask("import_memories", input_path=house.write("in.jsonl", memory("x", metadata=[1, "two"])))
    conn, refused = back(house, "back.db")
    assert refused == [] and conn.execute("SELECT metadata FROM memories").fetchall() == [('[1,"two"]',)]


# -- a file that somebody else has open


WRITER = """
import sqlite3, sys
conn = sqlite3.connect(sys.argv[1], isolation_level=None)
conn.execute("PRAGMA wal_autocheckpoint = 0")
conn.execute(sys.argv[2])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def writer():
    """Run a statement on a database in another process, which keeps it open; ``kill=True`` ends it there."""
    running = []

    def begin(path, statement, kill=False):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), statement],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stdout.readline() == "ready\n"
        if kill:
            process.kill()
            process.wait()

    yield begin
    for process in running:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


LATE = "UPDATE memories SET content = 'written late' WHERE id = 1"


def late(house):
    return house.sql("SELECT count(*) FROM memories WHERE content = 'written late'") == [(1,)]


def test_what_a_writer_has_not_folded_in_comes_along_while_it_has_the_file_open(house, peer, writer):
    writer(peer, LATE)
    before = beside(peer)
    assert set(before) == {"peer.db", "peer.db-wal", "peer.db-shm"}
    answer = house.ask("import_memories", input_path=str(peer))
    after = beside(peer)
    assert answer["ok"] and late(house), answer
    # The index of the log is the memory that its readers share: there they sign in.
    assert {name: after[name] for name in after if name != "peer.db-shm"} == {
        name: before[name] for name in before if name != "peer.db-shm"
    } and set(after) == set(before)


def test_a_log_that_a_killed_writer_left_comes_along_and_stays(house, peer, writer):
    writer(peer, LATE, kill=True)
    os.remove(f"{peer}-shm")
    before = beside(peer)
    answer = house.ask("import_memories", input_path=str(peer))
    assert answer["ok"] and late(house) and beside(peer) == before, answer


def test_a_transaction_that_holds_everybody_off_is_said(house, peer, writer, monkeypatch):
    monkeypatch.setattr("cpersona_daemon.portability.imports.untouched.BUSY_MS", 50)
    conn = sqlite3.connect(peer)
    conn.execute("PRAGMA journal_mode = DELETE")
    conn.close()
    writer(peer, "BEGIN EXCLUSIVE")
    answer = house.ask("import_memories", input_path=str(peer))
    assert answer["ok"] is False and "end the program that has it open" in answer["error"], answer
    assert house.sql("SELECT count(*) FROM memories") == [(0,)]


def test_no_copy_is_left_behind(house, peer, writer, monkeypatch, tmp_path):
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    writer(peer, LATE)
    assert house.ask("import_memories", input_path=str(peer))["ok"] and list(copies.iterdir()) == []


def test_a_file_that_changes_while_it_is_read_ends_the_import(house, peer, monkeypatch):
    from cpersona_daemon.portability.imports import reference_database

    read = reference_database.lines.read

    def meanwhile(*given):
        os.utime(peer, ns=(1, 1))
        return read(*given)

    monkeypatch.setattr(reference_database.lines, "read", meanwhile)
    answer = house.ask("import_memories", input_path=str(peer))
    assert answer["ok"] is False and "was changed while it was read" in answer["error"], answer


def test_the_database_that_is_served_is_not_opened_to_be_imported(house):
    answer = house.ask("import_memories", input_path=house.places.db)
    assert answer["ok"] is False and "this daemon serves" in answer["error"]


def test_a_database_without_its_log_is_said_to_be_that(house, tmp_path, writer):
    path = tmp_path / "new.db"
    sqlite3.connect(path).execute("PRAGMA journal_mode = WAL").connection.close()
    writer(path, "CREATE TABLE memories (id)")
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    answer = house.ask("import_memories", input_path=str(copy))
    assert answer["ok"] is False and "FILE-wal" in answer["error"], answer


# -- schemas near the known one


def changed(path, *statements):
    with sqlite3.connect(path) as conn:
        for statement in statements:
            conn.execute(statement)
    conn.close()
    return str(path)


def test_columns_and_tables_that_are_missing_are_done_without(house, peer):
    path = changed(
        peer,
        "UPDATE schema_version SET version = 17",
        "ALTER TABLE memories DROP COLUMN recall_count",
        "ALTER TABLE memories DROP COLUMN embedding_model",
        "ALTER TABLE profiles DROP COLUMN project_id",
        "ALTER TABLE relations DROP COLUMN anchor_ref",
        "DROP TABLE folders",
        "DROP TABLE entity_aliases",
        "DROP TABLE entity_mentions",
    )
    answer = house.ask("import_memories", input_path=path)
    assert answer["ok"] and "errors" not in answer and answer["imported_memories"] == 37
    assert answer["associations"]["mentions"] == 0 < answer["associations"]["relations"]


def test_columns_and_tables_that_are_not_known_are_counted(house, peer):
    path = changed(
        peer,
        "UPDATE schema_version SET version = 23",
        "ALTER TABLE memories ADD COLUMN importance REAL",
        "UPDATE memories SET importance = 0.5 WHERE id < 3",
        'CREATE TABLE "more ""things" (x)',
        'INSERT INTO "more ""things" VALUES (1)',
    )
    answer = house.ask("import_memories", input_path=path)
    assert answer["ok"] and answer["unkept"] == UNKEPT | {"memories.importance": 2, 'more "things': 1}


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE schema_version SET version = 40", "with schema 40 ("),
        ("DELETE FROM schema_version", "with a schema without a number ("),
        ("ALTER TABLE episodes RENAME COLUMN summary TO text", "its table episodes has no summary"),
        ("DROP TABLE schema_version", "keeps memories"),
    ],
)
def test_an_unknown_version_is_said_with_what_was_found(house, peer, statement, said):
    answer = house.ask("import_memories", input_path=changed(peer, statement))
    assert answer["ok"] is False and said in answer["error"] and "export it there" in answer["error"], answer
    assert "\n" not in answer["error"] and answer["error"].count("nothing was imported") == 1


def test_a_damaged_row_costs_itself_alone_and_is_named(house, peer):
    path = changed(
        peer,
        "UPDATE memories SET content = CAST(x'ff41' AS TEXT) WHERE id = 2",
        "UPDATE memories SET content = x'41' WHERE id = 3",
        "UPDATE memories SET created_at = 'once' WHERE id = 4",
        "UPDATE entities SET name = CAST(x'ff' AS TEXT) WHERE id = 1",
        "DELETE FROM entity_mentions",
        "DELETE FROM relations",
    )
    answer = house.ask("import_memories", input_path=path)
    assert answer["ok"] and answer["imported_memories"] == 35 and answer["rejected"] == 3
    first, second, third, fourth = answer["errors"]
    assert first.startswith("Row 2: memories 2: its text is damaged")
    assert second == "Row 3: memories 3: content is text, not bytes"
    assert third.startswith("Row 4: memories 4: created_at 'once' names no time")
    assert "entities 1: its text is damaged" in fourth


def test_a_database_that_is_cut_imports_nothing(house, peer):
    os.truncate(peer, os.path.getsize(peer) // 2)
    answer = house.ask("import_memories", input_path=str(peer))
    assert answer["ok"] is False and "cannot be read" in answer["error"], answer
    assert "sqlite3 FILE .recover" in answer["error"] or answer["error"].endswith("; nothing was written"), answer


def test_a_database_whose_schema_is_damaged_is_said_to_need_a_rescue(house, peer):
    data = peer.read_bytes()
    peer.write_bytes(data.replace(b"CREATE TABLE relations", b"CREATE TABLE relat)ons"))
    answer = house.ask("import_memories", input_path=str(peer))
    assert answer["ok"] is False and "sqlite3 FILE .recover" in answer["error"], answer


# -- through the command line


def test_the_command_line_takes_it_from_a_pipe_and_says_what_has_no_place(run_cli, peer, home):
    out = run_cli(["import", "-"], input=peer.read_bytes())
    assert out.returncode == 0, out.stderr
    said = out.stderr.decode()
    assert "3 folder_members, 3 folders, 1 pending_memory_tasks, 5 record_blocks (made anew here)" in said
    assert "3 profiles of other users are kept" in said
    target = str(peer.parent / "back.jsonl")
    done = run_cli(["export", target, "--all-agents", "--embeddings", "--for", "reference"])
    assert done.returncode == 0, done.stderr
    with open(target, encoding="utf-8") as handle:
        lines = [json.loads(line) for line in handle]
    after = kit.create(peer.parent / "back.db")
    assert files.take(after, lines) == []
    assert all(rows == equal for _, _, rows, equal, _ in files.compared(sqlite3.connect(peer), after))
